#include "worker/table/remote_depth.h"

#include "proto/codec.h"

enum { PLY = 6 }; /* a ply more costs about the effective branching factor */

void remote_depth_begin(struct remote_depth *h, uint8_t depth, uint64_t now_us, uint64_t spent_us)
{
    uint8_t last = h->adaptive ? h->depth : REMOTE_DEPTH_FIRST;
    *h = (struct remote_depth){
        .depth = depth == PROTO_REMOTE_DEPTH_AUTO ? last : depth,
        .adaptive = depth == PROTO_REMOTE_DEPTH_AUTO,
        .from_us = now_us,
        .spent_us = spent_us,
    };
}

void remote_depth_adapt(struct remote_depth *h, unsigned iteration, bool has_peers, uint64_t now_us,
                        uint64_t spent_us)
{
    uint64_t elapsed = now_us - h->from_us;
    if (!h->adaptive || elapsed < REMOTE_DEPTH_EVERY_US) {
        return;
    }
    uint64_t permille = (spent_us - h->spent_us) * 1000 / elapsed;
    unsigned most = has_peers ? REMOTE_DEPTH_COST_PERMILLE : REMOTE_DEPTH_ALONE_PERMILLE;
    bool is_quiet = permille * PLY < most && (has_peers || iteration > REMOTE_DEPTH_FIRST);
    h->quiet = is_quiet ? h->quiet + 1 : 0;
    if (permille > most && h->depth < REMOTE_DEPTH_MAX && h->depth < iteration) {
        h->depth++;
    } else if (h->quiet >= (has_peers ? 1 : REMOTE_DEPTH_QUIET_CHECKS)) {
        h->depth -= h->depth > REMOTE_DEPTH_MIN;
        h->quiet = 0;
    }
    h->from_us = now_us;
    h->spent_us = spent_us;
}
