#include "tests/chaos/lab_want.h"

#include "common/rng.h"
#include "worker/lab/event.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/mman.h>

static struct lab_want *now;

struct lab_want *lab_want_set(struct lab_want *want)
{
    struct lab_want *before = now;
    now = want;
    return before;
}

static bool is_refused(void)
{
    if (now == NULL || now->ppm == 0 || rng_below(&now->random, 1000000) >= now->ppm) {
        return false;
    }
    now->refused++;
    errno = ENOMEM;
    return true;
}

/* The linker knows these names: __real_x is x. Weak, as programs that are linked without have none
 * and call none. */
#define WRAPPED __attribute__((used, externally_visible))
#define REAL __attribute__((weak))

REAL void *__real_malloc(size_t size);
REAL void *__real_calloc(size_t count, size_t size);
REAL void *__real_realloc(void *old, size_t size);
REAL void *__real_aligned_alloc(size_t line, size_t size);
REAL void *__real_mmap(void *at, size_t size, int protection, int flags, int file, off_t offset);
REAL void __real_lab_heap_push(struct lab_heap *heap, struct lab_event event);
REAL struct lab_packet *__real_lab_packet_new(const void *bytes, size_t length);
WRAPPED void *__wrap_malloc(size_t size);
WRAPPED void *__wrap_calloc(size_t count, size_t size);
WRAPPED void *__wrap_realloc(void *old, size_t size);
WRAPPED void *__wrap_aligned_alloc(size_t line, size_t size);
WRAPPED void *__wrap_mmap(void *at, size_t size, int protection, int flags, int file, off_t offset);
WRAPPED void __wrap_lab_heap_push(struct lab_heap *heap, struct lab_event event);
WRAPPED struct lab_packet *__wrap_lab_packet_new(const void *bytes, size_t length);

void *__wrap_malloc(size_t size)
{
    return is_refused() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
    return is_refused() ? NULL : __real_calloc(count, size);
}

void *__wrap_realloc(void *old, size_t size)
{
    return is_refused() ? NULL : __real_realloc(old, size);
}

void *__wrap_aligned_alloc(size_t line, size_t size)
{
    return is_refused() ? NULL : __real_aligned_alloc(line, size);
}

void *__wrap_mmap(void *at, size_t size, int protection, int flags, int file, off_t offset)
{
    return is_refused() ? MAP_FAILED : __real_mmap(at, size, protection, flags, file, offset);
}

/* What the cluster itself needs, whoever runs. */

void __wrap_lab_heap_push(struct lab_heap *heap, struct lab_event event)
{
    struct lab_want *outer = lab_want_set(NULL);
    __real_lab_heap_push(heap, event);
    (void)lab_want_set(outer);
}

struct lab_packet *__wrap_lab_packet_new(const void *bytes, size_t length)
{
    struct lab_want *outer = lab_want_set(NULL);
    struct lab_packet *packet = __real_lab_packet_new(bytes, length);
    (void)lab_want_set(outer);
    return packet;
}
