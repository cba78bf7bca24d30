#include "worker/table/horizon.h"

#include "proto/codec.h"

enum { PLY = 6 }; /* a ply more costs about the effective branching factor */

void horizon_begin(struct horizon *h, uint8_t depth, uint64_t now_us, uint64_t spent_us)
{
    *h = (struct horizon){
        .depth = depth == PROTO_HORIZON_AUTO ? HORIZON_FIRST : depth,
        .adaptive = depth == PROTO_HORIZON_AUTO,
        .from_us = now_us,
        .spent_us = spent_us,
    };
}

void horizon_adapt(struct horizon *h, unsigned iteration, bool company, uint64_t now_us,
                   uint64_t spent_us)
{
    uint64_t elapsed = now_us - h->from_us;
    if (!h->adaptive || elapsed < HORIZON_EVERY_US) {
        return;
    }
    uint64_t permille = (spent_us - h->spent_us) * 1000 / elapsed;
    unsigned most = company ? HORIZON_COST_PERMILLE : HORIZON_ALONE_PERMILLE;
    bool is_quiet = permille * PLY < most && (company || iteration > HORIZON_FIRST);
    h->quiet = is_quiet ? h->quiet + 1 : 0;
    if (permille > most && h->depth < HORIZON_MAX && h->depth < iteration) {
        h->depth++;
    } else if (h->quiet >= (company ? 1 : HORIZON_QUIET_LOOKS)) {
        h->depth -= h->depth > HORIZON_MIN;
        h->quiet = 0;
    }
    h->from_us = now_us;
    h->spent_us = spent_us;
}
