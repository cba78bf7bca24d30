/* claims: which nodes the threads of other processes of this host are in, and which the searchers
 * of other hosts (foreign claims, share.h), in the memory that all who share a table have
 * (host_table.h). Hints: a claim may take the place of another one, or be of a process that was
 * killed; then a node is searched twice, or last.
 *
 * Threads: any; a claim is one word, written and read without a lock. Memory: none. Never blocks.
 * Pure. */
#ifndef WORKER_TABLE_CLAIMS_H
#define WORKER_TABLE_CLAIMS_H

#include "common/tt/tt.h"
#include "worker/table/host_table.h"

enum {
    CLAIMS_FOREIGN_DEPTH = 4, /* below, foreign claims cost more than they save */
    CLAIMS_FOREIGN_LEAST_MS = 4, /* so long one counts at that depth, if nothing ends it ... */
    CLAIMS_FOREIGN_PLY = 4, /* ... so many times as long for each ply more, as the node takes ... */
    CLAIMS_FOREIGN_MOST_MS = 16384, /* ... and never longer */
};

/* ---- of this host: `name` is that of a thread ---- */

/* The thread enters the node. Whether another one is in it; then a thread that asked for the node
 * alone does not enter. */
bool claims_enter(struct host_state *state, const struct tt_ask *ask, uint16_t name);
void claims_leave(struct host_state *state, uint64_t key, uint8_t depth, uint16_t name);
bool claims_others(struct host_state *state, uint64_t key, uint8_t depth, uint16_t name);

/* ---- foreign ones, of nodes of CLAIMS_FOREIGN_DEPTH and more ---- */

bool claims_foreign(struct host_state *state, uint64_t key, uint8_t depth, uint64_t now_us);
/* The node has a result, which ends a claim of any host. */
void claims_end_foreign(struct host_state *state, uint64_t key, uint8_t depth);
/* Another host claims a node, or ends that. Whether it is news: of two claims of a node that count
 * the one of the host that goes first stays, and its host alone can end it. If the claims of
 * two nodes have one place, the one that counts longer stays. */
bool claims_take_foreign(struct host_state *state, const struct tt_store *claim, uint64_t now_us);
/* Whether of two hosts in a node `host` goes on alone: another one for each node. */
bool claims_goes_first(uint64_t key, uint16_t host, uint16_t other);
/* Ends the claims of old jobs. */
void claims_clear_foreign(struct host_state *state);

#endif
