/* remote_depth: from which remaining depth up a processor asks the shards (design section 5).
 *
 * Fixed by the job, or adaptive: then it moves by a ply at a time so that asking and waiting stay
 * near REMOTE_DEPTH_COST_PERMILLE of the time while somebody is heard of who does not use the same
 * table, and below REMOTE_DEPTH_ALONE_PERMILLE while nobody is: those who use one table find each
 * other's results without asking, and an ask keeps transport and shard busy, too, on a host that
 * they may share with the search. Alone, one ask in REMOTE_DEPTH_EVERY_US is enough, and asks come
 * in bursts, at the begin of an iteration most of all: it rises at once, and falls when it was
 * quiet for a while; not at all in iterations that hardly have nodes to ask about, which say
 * nothing about the next ones.
 *
 * Threads: the processor's own. Memory: none. */
#ifndef WORKER_TABLE_REMOTE_DEPTH_H
#define WORKER_TABLE_REMOTE_DEPTH_H

#include <stdbool.h>
#include <stdint.h>

enum {
    REMOTE_DEPTH_FIRST = 6,
    REMOTE_DEPTH_MIN = 1,
    REMOTE_DEPTH_MAX = 12,
    REMOTE_DEPTH_ASK_US = 120, /* an ask and its store count as: 28 are the sender's; where all
                             processors of a host search and one is the shard's, 240 are gone in
                             all. Between the two, by what searches took (docs/experiments.md) */
    REMOTE_DEPTH_EVERY_US = 10000, /* between two looks at what was spent */
    REMOTE_DEPTH_COST_PERMILLE = 60, /* of the time */
    REMOTE_DEPTH_ALONE_PERMILLE =
        REMOTE_DEPTH_ASK_US * 1000 / REMOTE_DEPTH_EVERY_US, /* an ask a look; so much of
                                                waiting, too */
    REMOTE_DEPTH_QUIET_LOOKS = 10, /* in a row, until it falls alone */
};

struct remote_depth {
    uint8_t depth; /* the remote_depth */
    bool adaptive;
    uint8_t quiet; /* looks in a row that found little spent */
    uint64_t from_us, spent_us; /* at the last look */
};

/* A search of `depth`, or PROTO_REMOTE_DEPTH_AUTO. `spent_us`: for asking and waiting so far. */
void remote_depth_begin(struct remote_depth *remote_depth, uint8_t depth, uint64_t now_us,
                        uint64_t spent_us);
/* In the iteration of depth `iteration`, as often as one likes. It never rises above the iteration:
 * from REMOTE_DEPTH_FIRST on, the root is asked about. */
void remote_depth_adapt(struct remote_depth *remote_depth, unsigned iteration, bool has_others,
                        uint64_t now_us, uint64_t spent_us);

#endif
