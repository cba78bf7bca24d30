/* ttcore_ledger: what a shard shares with the threads of its process that write its results down,
 * so that they survive the shard: which were stored, and how the writing goes.
 *
 * The shard notes what it stored and waits for nobody: for each bucket of the table there is one
 * bit, set by the shard, cleared by the thread before it reads the bucket. So nothing is queued,
 * nothing is ever full, and a result that is stored ten times meanwhile is written once. A bit that
 * is seen set was set after the result was stored. It costs the shard 5 to 20 ns a store, most of
 * it for fetching the bit (tests/instruments/bench/core_alone.c).
 *
 * Pure. Threads: the shard's owner calls note; others read, and write what is theirs. Memory: the
 * caller's. */
#ifndef TTSERVER_CORE_LEDGER_H
#define TTSERVER_CORE_LEDGER_H

#include "common/tt/results.h"

#include <stdatomic.h>
#include <stdint.h>

/* clang-format off */
/* Figures of the threads, which STATS answers; docs/reference/ttserver.md says what they are. */
#define TTCORE_LEDGER(X) X(restored) X(snapshots) X(snapshot_failures) X(snapshot_entries) \
    X(backing_written) X(backing_lost)
/* clang-format on */

struct ttcore_ledger {
    /* fixed before the shard runs */
    _Atomic uint64_t *unwritten; /* a bit for each bucket; NULL: nobody wants them */
    uint64_t words; /* of these */
    uint8_t depth_min; /* of what sets them */
    /* the shard's */
    _Atomic uint64_t changes; /* grows when the table changes */
    _Atomic uint64_t deep; /* results stored that set bits */
    _Atomic uint64_t flushed; /* grows when all begins to be forgotten, and when it is */
    /* the threads' */
    _Atomic uint64_t backed; /* as many of `deep` are written */
    _Atomic uint64_t again; /* 1: the whole table is to be written once more */
#define X(name) _Atomic uint64_t name;
    TTCORE_LEDGER(X)
#undef X
};

static inline uint64_t ttcore_ledger_read(const _Atomic uint64_t *figure)
{
    return atomic_load_explicit(figure, memory_order_acquire);
}

/* For figures that one thread writes. */
static inline void ttcore_ledger_add(_Atomic uint64_t *figure, uint64_t n)
{
    uint64_t now = atomic_load_explicit(figure, memory_order_relaxed) + n;
    atomic_store_explicit(figure, now, memory_order_release);
}

/* These results are in the table now. */
void ttcore_ledger_note(struct ttcore_ledger *ledger, const struct tt_results *results,
                        const struct tt_store *store, uint32_t count);

#endif
