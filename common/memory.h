/* memory: cache lines, large pages, how much there is.
 *
 * What one thread writes often must not lie in a cache line that another thread reads often.
 * Threads: any. Memory: the caller frees. */
#ifndef COMMON_MEMORY_H
#define COMMON_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { MEMORY_LINE = 64, MEMORY_LARGE_PAGE = 2 << 20 }; /* bytes; some systems have larger pages */

/* Requests that are newer than some C libraries; a kernel without them answers EINVAL. */
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* Linux 5.14 */
#endif
#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25 /* Linux 6.1 */
#endif

/* Whole cache lines, zeroed; NULL when there is no memory. For free(). */
static inline void *memory_lines(size_t bytes)
{
    size_t whole = (bytes + MEMORY_LINE - 1) / MEMORY_LINE * MEMORY_LINE;
    void *lines = aligned_alloc(MEMORY_LINE, whole);
    return lines == NULL ? NULL : memset(lines, 0, whole);
}

/* The same for a large block of which only what is used shall count: not written to here. `block`
 * is for free(). */
static inline void *memory_lines_untouched(size_t bytes, void **block)
{
    *block = calloc(1, bytes + MEMORY_LINE);
    return *block == NULL ? NULL : (char *)*block + MEMORY_LINE - (uintptr_t)*block % MEMORY_LINE;
}

/* What the machine has. */
uint64_t memory_machine_bytes(void);

/* What the cgroups of a process may have, by the list of them ("/proc/self/cgroup") and the folder
 * of their files; UINT64_MAX: there is no limit. */
uint64_t memory_cgroup_bytes(const char *list, const char *root);

/* Whether this process may have tables of so many bytes: who takes more than a container has is
 * killed without a word. False: `why` is for people. */
bool memory_has_room(uint64_t bytes, char *why, size_t why_size);

#endif
