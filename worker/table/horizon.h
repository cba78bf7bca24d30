/* horizon: from which remaining depth up a processor asks the shards (design section 5).
 *
 * Fixed by the job, or adaptive: then it moves by a ply at a time so that asking and waiting stay
 * near HORIZON_COST_PERMILLE of the time while somebody is heard of who does not use the same
 * table, and below HORIZON_ALONE_PERMILLE while nobody is: those who use one table find each
 * other's results without asking, and an ask keeps transport and shard busy, too, on a host that
 * they may share with the search. Alone, one ask in HORIZON_EVERY_US is enough, and asks come in
 * bursts, at the begin of an iteration most of all: it rises at once, and falls when it was quiet
 * for a while; not at all in iterations that hardly have nodes to ask about, which say nothing
 * about the next ones.
 *
 * Threads: the processor's own. Memory: none. */
#ifndef WORKER_TABLE_HORIZON_H
#define WORKER_TABLE_HORIZON_H

#include <stdbool.h>
#include <stdint.h>

enum {
    HORIZON_FIRST = 6,
    HORIZON_MIN = 1,
    HORIZON_MAX = 12,
    HORIZON_ASK_US = 120, /* an ask and its store count as: 28 are the sender's; where all
                             processors of a host search and one is the shard's, 240 are gone in
                             all. Between the two, by what searches took (tests/bench/NOTES.md) */
    HORIZON_EVERY_US = 10000, /* between two looks at what was spent */
    HORIZON_COST_PERMILLE = 60, /* of the time */
    HORIZON_ALONE_PERMILLE = HORIZON_ASK_US * 1000 / HORIZON_EVERY_US, /* an ask a look; so much of
                                                                          waiting, too */
    HORIZON_QUIET_LOOKS = 10, /* in a row, until it falls alone */
};

struct horizon {
    uint8_t depth; /* the horizon */
    bool adaptive;
    uint8_t quiet; /* looks in a row that found little spent */
    uint64_t from_us, spent_us; /* at the last look */
};

/* A search of `depth`, or PROTO_HORIZON_AUTO. `spent_us`: for asking and waiting so far. */
void horizon_begin(struct horizon *horizon, uint8_t depth, uint64_t now_us, uint64_t spent_us);
/* In the iteration of depth `iteration`, as often as one likes. It never rises above the iteration:
 * from HORIZON_FIRST on, the root is asked about. */
void horizon_adapt(struct horizon *horizon, unsigned iteration, bool company, uint64_t now_us,
                   uint64_t spent_us);

#endif
