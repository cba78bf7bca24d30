/* share: the result broadcast (PROTOCOL.md, SHARE). Below the remote depth limit nobody is asked,
 * so that each searcher would search what another has searched: results found there are broadcast
 * while there are peers with another table, and those of such peers are put into the own table.
 * Peers with the same table find them there.
 *
 * Threads: the searcher's own. Memory: none. Never blocks; what gets lost is searched again. */
#ifndef WORKER_TABLE_SHARE_H
#define WORKER_TABLE_SHARE_H

#include "proto/client.h"
#include "worker/table/embedded.h"

struct share {
    /* fixed, the caller's to set, borrowed */
    struct client *client;
    const struct embedded_port *local;
    uint8_t depth; /* results of at least this one are broadcast; 0: none */
    /* state */
    struct tt_store list[CLIENT_SHARE_MAX];
    unsigned count;
    uint64_t due_us;
    bool wanted; /* there are peers with another table, or it is time to find out */
};

/* A new search. */
void share_begin(struct share *share);
/* Whether there are peers with another table: their results have to be asked for. */
bool share_has_peers(const struct share *share, uint64_t now_us);
/* A result was found here. True: share_send is due, there is no room for another. */
bool share_add(struct share *share, const struct tt_store *result);
/* To the searchers of the root `root_key`. */
void share_send(struct share *share, uint64_t root_key, uint64_t now_us);
/* Results came from a peer with another table, which counts as there until `until_us`. */
void share_take(struct share *share, const struct tt_store *results, uint32_t count,
                uint64_t until_us);
/* From env.poll: sends what is due. `has_others`: there were signs of other searchers, which may
 * have the same table. */
void share_serve(struct share *share, uint64_t root_key, bool has_others, uint64_t now_us);

#endif
