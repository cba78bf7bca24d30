#include "worker/table/remote_depth.h"

#include "proto/codec.h"

/* A ply more costs about the effective branching factor; MUCH: so many times what may be spent. */
enum { PLY = 6, PLY_FULL = 3, MUCH = 4 };

void remote_depth_begin(struct remote_depth *h, uint8_t depth, bool full, uint64_t now_us,
                        uint64_t spent_us)
{
    uint8_t first = full ? REMOTE_DEPTH_FIRST_FULL : REMOTE_DEPTH_FIRST;
    uint8_t last = h->adaptive && h->full == full ? h->depth : first;
    *h = (struct remote_depth){
        .depth = depth == PROTO_REMOTE_DEPTH_AUTO ? last : depth,
        .adaptive = depth == PROTO_REMOTE_DEPTH_AUTO,
        .full = full,
        .begun_us = now_us,
        .from_us = now_us,
        .spent_us = spent_us,
    };
    h->now = h->depth;
}

static void adapt(struct remote_depth *h, unsigned iteration, bool has_peers, uint64_t now_us,
                  uint64_t spent_us)
{
    uint64_t elapsed = now_us - h->from_us;
    bool is_early = h->full && now_us - h->begun_us < REMOTE_DEPTH_EARLY_US;
    if (!h->adaptive ||
        elapsed < (is_early ? REMOTE_DEPTH_EARLY_EVERY_US : REMOTE_DEPTH_EVERY_US)) {
        return;
    }
    uint64_t permille = (spent_us - h->spent_us) * 1000 / elapsed;
    unsigned most = has_peers ? REMOTE_DEPTH_COST_PERMILLE : REMOTE_DEPTH_ALONE_PERMILLE;
    unsigned highest = h->full ? TT_DEPTH_MAX : REMOTE_DEPTH_MAX;
    unsigned first = h->full ? REMOTE_DEPTH_FIRST_FULL : REMOTE_DEPTH_FIRST;
    bool is_quiet =
        permille * (h->full ? PLY_FULL : PLY) < most && (has_peers || iteration > first);
    h->quiet = is_quiet ? h->quiet + 1 : 0;
    highest = iteration < highest ? iteration : highest;
    if (permille > most && h->depth < highest) {
        h->depth += h->full && permille > most * MUCH && h->depth + 1U < highest ? 2 : 1;
    } else if (h->quiet >= (has_peers ? 1 : REMOTE_DEPTH_QUIET_CHECKS)) {
        h->depth -= h->depth > REMOTE_DEPTH_MIN;
        h->quiet = 0;
    }
    h->from_us = now_us;
    h->spent_us = spent_us;
}

void remote_depth_adapt(struct remote_depth *h, unsigned iteration, bool has_peers, uint64_t now_us,
                        uint64_t spent_us)
{
    unsigned root = iteration > REMOTE_DEPTH_FIRST ? iteration : REMOTE_DEPTH_FIRST;
    adapt(h, iteration, has_peers, now_us, spent_us);
    h->now = h->adaptive && h->depth > root ? (uint8_t)root : h->depth;
}

void remote_depth_adapt_to_claims(struct remote_depth *h, unsigned iteration, uint64_t now_us,
                                  uint64_t spent_us)
{
    unsigned near_root =
        iteration > REMOTE_DEPTH_NEAR_ROOT ? iteration - REMOTE_DEPTH_NEAR_ROOT : 1;
    near_root = near_root < REMOTE_DEPTH_MAX ? near_root : REMOTE_DEPTH_MAX;
    remote_depth_adapt(h, iteration, false, now_us, spent_us);
    if (h->adaptive && h->depth < near_root) {
        h->depth = h->now = (uint8_t)near_root;
    }
}
