/* remote_depth: the remote depth limit, the remaining depth from which a searcher asks the shards
 * (design section 5).
 *
 * Fixed by the job, or adaptive. An adaptive limit begins by what a node costs: at selection full
 * one of depth 14 takes as long as one of depth 6 of a search to a fixed depth, and short searches
 * are over before it has moved far. It moves by a ply at a time, by two where far too much
 * was spent, and more often in the first milliseconds. While there are peers with another table it
 * keeps asking and waiting near REMOTE_DEPTH_COST_PERMILLE of the time. While there are none, or
 * foreign claims take the place of asks, it stays below REMOTE_DEPTH_ALONE_PERMILLE: searchers with
 * the same table find each other's results without asking, and asks keep lane and shard busy,
 * perhaps on the CPUs of the search. One ask in REMOTE_DEPTH_EVERY_US is enough then. Asks come in
 * bursts, most of all at the begin of an iteration: the limit rises at once, and falls only after
 * some quiet checks. Iterations with hardly a node to ask about say nothing about the next ones,
 * and it does not fall in them.
 *
 * Threads: the searcher's own. Memory: none. Pure. */
#ifndef WORKER_TABLE_REMOTE_DEPTH_H
#define WORKER_TABLE_REMOTE_DEPTH_H

#include "proto/lane/lane.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    REMOTE_DEPTH_FIRST = 6,
    REMOTE_DEPTH_FIRST_FULL = 14, /* selection full */
    REMOTE_DEPTH_MIN = 1,
    REMOTE_DEPTH_MAX = 12,
    REMOTE_DEPTH_EVERY_US = 10000, /* between two checks of what was spent */
    REMOTE_DEPTH_EARLY_US = 20000, /* so long after the begin of a search the checks come ... */
    REMOTE_DEPTH_EARLY_EVERY_US = 2000, /* ... so often */
    REMOTE_DEPTH_COST_PERMILLE = 60, /* share of the time */
    /* One ask between two checks; as much time of waiting counts the same. */
    REMOTE_DEPTH_ALONE_PERMILLE = LANE_ASK_US * 1000 / REMOTE_DEPTH_EVERY_US,
    REMOTE_DEPTH_QUIET_CHECKS = 10, /* in a row, until it falls without peers */
    REMOTE_DEPTH_NEAR_ROOT =
        1, /* plies below the root, where foreign claims take the place of asks */
};

struct remote_depth {
    uint8_t depth; /* the limit, and ... */
    uint8_t now; /* ... what of it counts in the iteration under way */
    bool adaptive, full;
    uint8_t quiet; /* checks in a row that found little spent */
    uint64_t begun_us; /* when the search began */
    uint64_t from_us, spent_us; /* at the last check */
};

/* A search with the limit `depth`, or PROTO_REMOTE_DEPTH_AUTO: an adaptive limit begins where it
 * was at the end of the search before, as a short search would be over before it had adapted;
 * anew where that was of another selection. Zeroed before the first. `spent_us`: for asking and
 * waiting so far. */
void remote_depth_begin(struct remote_depth *remote_depth, uint8_t depth, bool full,
                        uint64_t now_us, uint64_t spent_us);
/* In the iteration of depth `iteration`, as often as one likes. It never rises above the iteration:
 * from REMOTE_DEPTH_FIRST on, the root is asked about, in smaller ones than it begins with, too. */
void remote_depth_adapt(struct remote_depth *remote_depth, unsigned iteration, bool has_peers,
                        uint64_t now_us, uint64_t spent_us);
/* The same while foreign claims say which nodes others are in (share.h): only what is near the
 * root is asked about, so that the shards keep it, and no more than without peers. */
void remote_depth_adapt_to_claims(struct remote_depth *remote_depth, unsigned iteration,
                                  uint64_t now_us, uint64_t spent_us);

#endif
