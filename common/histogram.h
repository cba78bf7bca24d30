/* histogram: times from 1 ns to an hour in buckets 1.6% wide: cheap to add to, exact enough for
 * percentiles. Pure; the caller owns the struct, a zeroed one is empty. Threads: one at a time. */
#ifndef COMMON_HISTOGRAM_H
#define COMMON_HISTOGRAM_H

#include <stdint.h>

enum {
    HISTOGRAM_FINE = 64, /* buckets for each doubling */
    HISTOGRAM_DOUBLINGS = 38,
    HISTOGRAM_BUCKETS = HISTOGRAM_FINE * HISTOGRAM_DOUBLINGS,
};

struct histogram {
    uint64_t count, max;
    uint64_t bucket[HISTOGRAM_BUCKETS];
};

/* The last bucket takes what is longer. */
static inline unsigned histogram_bucket(uint64_t value)
{
    unsigned shift = 0;
    if (value >= 2 * HISTOGRAM_FINE) {
        shift = 57u - (unsigned)__builtin_clzll(value); /* leaves 7 bits, the highest set */
    }
    unsigned at = shift * HISTOGRAM_FINE + (unsigned)(value >> shift);
    return at < HISTOGRAM_BUCKETS ? at : HISTOGRAM_BUCKETS - 1;
}

static inline void histogram_add(struct histogram *h, uint64_t value)
{
    h->bucket[histogram_bucket(value)]++;
    h->count++;
    h->max = value > h->max ? value : h->max;
}

void histogram_merge(struct histogram *h, const struct histogram *other);

/* The value that `share` (0 to 1) of all do not exceed, to the middle of its bucket; 0 when empty,
 * never above the maximum. */
double histogram_quantile(const struct histogram *h, double share);

#endif
