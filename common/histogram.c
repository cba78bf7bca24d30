#include "common/histogram.h"

void histogram_merge(struct histogram *h, const struct histogram *other)
{
    for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++) {
        h->bucket[i] += other->bucket[i];
    }
    h->count += other->count;
    h->max = other->max > h->max ? other->max : h->max;
}

double histogram_quantile(const struct histogram *h, double share)
{
    double wanted = share * (double)h->count, seen = 0;
    for (unsigned i = 0; i < HISTOGRAM_BUCKETS && h->count > 0; i++) {
        seen += (double)h->bucket[i];
        if (seen > 0 && seen >= wanted) {
            /* The first buckets hold one value each. */
            unsigned shift = i < 2 * HISTOGRAM_FINE ? 0 : i / HISTOGRAM_FINE - 1;
            uint64_t first = (uint64_t)(i - shift * HISTOGRAM_FINE) << shift;
            double middle = (double)first + (double)((UINT64_C(1) << shift) - 1) / 2;
            return middle < (double)h->max ? middle : (double)h->max;
        }
    }
    return (double)h->max;
}
