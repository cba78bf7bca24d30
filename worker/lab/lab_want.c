#include "worker/lab/lab_want.h"

#include "common/rng.h"

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
WRAPPED void *__wrap_malloc(size_t size);
WRAPPED void *__wrap_calloc(size_t count, size_t size);
WRAPPED void *__wrap_realloc(void *old, size_t size);
WRAPPED void *__wrap_aligned_alloc(size_t line, size_t size);
WRAPPED void *__wrap_mmap(void *at, size_t size, int protection, int flags, int file, off_t offset);

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
