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

/* The same for a large block of which only what is used shall count: not written to here, in large
 * pages where the system grants them. `block` is for free(). */
static inline void *memory_lines_untouched(size_t bytes, void **block)
{
    const size_t line = bytes < MEMORY_LARGE_PAGE ? MEMORY_LINE : MEMORY_LARGE_PAGE;
    *block = calloc(1, bytes + line);
    if (*block == NULL) {
        return NULL;
    }
    void *lines = (char *)*block + line - (uintptr_t)*block % line;
    if (line == MEMORY_LARGE_PAGE) {
        (void)madvise(lines, bytes - bytes % line, MADV_HUGEPAGE); /* a hint */
    }
    return lines;
}

/* Memory that this process occupies now, shared pages included. */
uint64_t memory_resident_bytes(void);

/* Bytes that the cgroups of a process leave it, by the list of them ("/proc/self/cgroup") and the
 * folder of their files; UINT64_MAX: there is no limit. Anonymous memory that is in use there, less
 * the process's `own`, counts as taken. The page cache does not, as the kernel gives it back, nor
 * does shared memory: processes of a host share one table, and each counts it as its own. */
uint64_t memory_cgroup_bytes(const char *list, const char *root, uint64_t own);

/* Bytes that this process may still take for its tables, beside the program and that many threads
 * that are to start: the least that the machine, its cgroups, and its limits of address space and
 * data leave. Memory that other processes have reserved and not used yet is not known. A process
 * that takes more than its container has is killed without a word. Where address space is limited
 * malloc has one arena from the first call on. */
uint64_t memory_for_tables(unsigned threads);
/* Whether tables fit in, with what else is known to be taken `besides`. False: `why` goes on after
 * what the tables are: "exceeds this machine's 23.5 GiB". */
bool memory_has_room(uint64_t tables, uint64_t besides, unsigned threads, char *why,
                     size_t why_size);

enum { MEMORY_TEXT_MAX = 32 };
/* "23.5 GiB", for people, never more than there is. */
const char *memory_text(uint64_t bytes, char out[MEMORY_TEXT_MAX]);

#endif
