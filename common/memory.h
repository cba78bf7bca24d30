/* memory: allocations that no other shares a cache line with.
 *
 * What one thread writes all the time must not lie in a line that another reads all the time. */
#ifndef COMMON_MEMORY_H
#define COMMON_MEMORY_H

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum { MEMORY_LINE = 64 };

/* Whole lines, zeroed; NULL when there is no memory. For free(). */
static inline void *memory_lines(size_t bytes)
{
    size_t whole = (bytes + MEMORY_LINE - 1) / MEMORY_LINE * MEMORY_LINE;
    void *lines = aligned_alloc(MEMORY_LINE, whole);
    return lines == NULL ? NULL : memset(lines, 0, whole);
}

#endif
