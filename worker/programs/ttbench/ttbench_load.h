/* ttbench_load: what the clients of `abdada ttbench` ask a shard: a list of visits, each an ask and
 * the store that ended it.
 *
 * Threads: any; a load is not changed once it is made. Memory: a record's table, while it is made.
 */
#ifndef WORKER_PROGRAMS_TTBENCH_TTBENCH_LOAD_H
#define WORKER_PROGRAMS_TTBENCH_TTBENCH_LOAD_H

#include "common/err.h"
#include "common/tt/tt.h"

#include <stdbool.h>

enum { TTBENCH_VISITS = 1 << 15 };

struct ttbench_visit {
    struct tt_ask ask;
    int16_t score; /* score of its store */
    uint16_t move;
    uint8_t bound;
    bool is_stored; /* false: answered CUT, or released; if --mix wants a store, it is made up */
};

struct ttbench_load {
    struct ttbench_visit visit[TTBENCH_VISITS];
    unsigned count; /* zeroed before, then 1..TTBENCH_VISITS */
};

/* Asks and stores of one thread's chess search, in their order: keys, depths, windows, exclusivity.
 * Takes about a second. ERR_NOMEM. */
enum err ttbench_load_record(struct ttbench_load *load);
/* Uniform random keys, depths from 4 to 12. */
void ttbench_load_random(struct ttbench_load *load, uint64_t seed);

#endif
