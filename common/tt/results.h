/* results: 16-byte entries, four to a cache line, in one array sized at start.
 *
 * Replacement: the same key first, then an empty place, then the oldest generation by its rank
 * (generation.h), then the shallowest entry; never a chain. A match compares all 64 bits of the
 * key. Threads: any number. An entry is two relaxed 64-bit atomics, the first being key XOR second
 * (Hyatt and Mann 2002), so a torn entry is a miss, never a wrong answer. Memory: allocates in open
 * only. */
#ifndef COMMON_TT_RESULTS_H
#define COMMON_TT_RESULTS_H

#include "common/err.h"
#include "common/tt/generation.h"
#include "common/tt/tt.h"

#include <stdatomic.h>
#include <stddef.h>

struct tt_entry {
    _Atomic uint64_t check; /* key XOR body */
    _Atomic uint64_t body; /* move 16, lower 16, upper 16, depth 8, generation 8; 0: empty */
};

enum { TT_BUCKET_ENTRIES = 4 };

struct tt_bucket {
    struct tt_entry slot[TT_BUCKET_ENTRIES];
};
_Static_assert(sizeof(struct tt_bucket) == 64, "one cache line");

struct tt_results {
    struct tt_bucket *bucket;
    uint64_t buckets; /* a power of two or not: the bucket is chosen by multiply-shift */
    size_t bytes;
    const struct tt_generations *generations; /* borrowed until close: read for ranks */
    bool is_own; /* set when close gives the memory back */
};

struct tt_found {
    int16_t lower, upper;
    uint16_t move;
    uint8_t depth;
    uint8_t generation;
};

/* A result as an entry of no generation. */
struct tt_found tt_found_of(const struct tt_store *store);

/* Reserves at most `bytes` (at least one bucket). ERR_NOMEM. */
enum err tt_results_open(struct tt_results *results, size_t bytes,
                         const struct tt_generations *generations);
/* The same over memory of the caller's, which outlives it: `bytes`, one bucket at least, all zero
 * at first, 64-byte aligned; other processes may use the same in this way. */
void tt_results_over(struct tt_results *results, void *memory, size_t bytes,
                     const struct tt_generations *generations);
/* Accepts a zeroed struct, and twice. */
void tt_results_close(struct tt_results *results);
/* Forgets everything. Not beside other calls. */
void tt_results_clear(struct tt_results *results);
/* Forgets what is in up to `buckets` buckets from the one at `from` on. */
void tt_results_clear_some(struct tt_results *results, uint64_t from, uint64_t buckets);
/* The entry in a slot of the bucket at an index below `buckets`. False: it is empty, or a writer
 * was seen at work. */
bool tt_results_entry(const struct tt_results *results, uint64_t bucket, unsigned slot,
                      struct tt_scanned *out);

static inline struct tt_bucket *tt_results_bucket(const struct tt_results *results, uint64_t key)
{
    return &results->bucket[(uint64_t)(((__uint128_t)key * results->buckets) >> 64)];
}

static inline void tt_results_prefetch(const struct tt_results *results, uint64_t key)
{
    __builtin_prefetch(tt_results_bucket(results, key));
}

/* The entry of `key` and `depth`, else the deepest of `key`. False: nothing is known of it. */
bool tt_results_find(const struct tt_results *results, uint64_t key, unsigned depth,
                     struct tt_found *out);

/* Writes a result by the replacement rule: with TT_BESIDE among its bounds beside those of other
 * depths of its key, else in the place of its key. Bounds of an entry of the same key and depth are
 * merged unless they contradict. The move of an entry with a lower bound is the one that proved the
 * bound, or 0; without one it is the last that was known, for order, of its own depth or the
 * deepest. Without TT_BESIDE an entry of the same key and generation stays when it is deeper; so
 * does one of no generation, which then is of this one. `generation` is positive. */
void tt_results_store(struct tt_results *results, const struct tt_store *store, uint8_t generation);
/* The same with an entry that a table had before, TT_SCORE_MIN <= lower <= upper: of no generation,
 * so that it answers, and is the first to be replaced until it is used. It stands beside those
 * of other depths of its key, as they did with TT_BESIDE. Nothing is restored where one of its
 * depth is there, or a deeper one that was stored since. */
void tt_results_restore(struct tt_results *results, const struct tt_scanned *entry);

/* Share of a sample of entries written in `generation`, in permille. */
unsigned tt_results_permille(const struct tt_results *results, uint8_t generation);

#endif
