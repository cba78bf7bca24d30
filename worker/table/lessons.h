/* lessons: what processors that share memory tell each other of moves, one refutation after
 * another.
 *
 * Each has a history table of its own (Schaeffer 1983), so that ordering moves costs no cache line
 * that others write. What a quiet move refuted at depth 2 and more (those of depth 1 are most and
 * weigh least) is appended, a poll's worth at a time, to a log that all read and add to theirs. One
 * array that all write orders no better and costs more (docs/experiments.md). Distant processors
 * exchange sums instead (history.h).
 *
 * A lesson that is overwritten before it is read, or not yet written when it is, is lost, and one
 * whose teller slept for 32 rounds of the log may be heard late; either costs some ordering. Nobody
 * need be trusted: whatever the memory holds, an index is in range. Threads: any, of any process
 * that has the memory; never blocks. Memory: the caller's; all zero is empty. */
#ifndef WORKER_TABLE_LESSONS_H
#define WORKER_TABLE_LESSONS_H

#include "common/memory.h"
#include "common/tt/tt.h"

#include <stdatomic.h>

enum {
    LESSONS_KEPT = 4096,
    LESSONS_WEIGHT_MAX = (1 << 14) - 1, /* a heavier one counts as this */
};

struct lessons {
    _Alignas(MEMORY_LINE) atomic_uint end; /* of the log: counts what was ever appended */
    _Alignas(MEMORY_LINE) _Atomic uint64_t at[LESSONS_KEPT];
};

/* The end of the log: who begins there hears only what is told from now on. */
uint32_t lessons_end(const struct lessons *lessons);
/* Appends what one learnt, at most LESSONS_KEPT, and gives what others appended cursor *cursor, of
 * the last `room` places those of the same root_key; *cursor is the end then. `out` may be the room
 * of `given`. Returns how many. */
unsigned lessons_exchange(struct lessons *lessons, uint32_t root_key, uint32_t *cursor,
                          const struct tt_weight *given, unsigned count, struct tt_weight *out,
                          unsigned room);

#endif
