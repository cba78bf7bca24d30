/* ports: all that a search sees of the world beside its game: a table and an environment.
 *
 * The same search runs over the embedded table, over shards and in the virtual cluster, because it
 * knows these functions only; it never reads a clock (design section 4). One port belongs to one
 * search: its functions are called by that search's thread (or fiber) alone. */
#ifndef WORKER_SEARCH_PORTS_H
#define WORKER_SEARCH_PORTS_H

#include "common/tt/tt.h"

#include <stdatomic.h>

struct search;
struct peer_port;

/* A note of the table's own: what it wants back of an ask, with the store or release that ends an
 * OPEN visit, or of a peek that was sent ahead. Only `later` is for the search. */
struct table_ticket {
    uint64_t sent_us; /* of a peek */
    uint32_t request; /* the client's ticket; 0: none */
    uint8_t where; /* the shard that was asked, or CLIENT_NOWHERE */
    uint8_t state; /* the table's own */
    bool claimed; /* other hosts hear when the last of this one leaves */
    bool later; /* the table's own answer comes by search_answered(), which makes it false: the ask
                   was answered from what is known here, or the node was renewed */
};

/* State of a peek that was sent ahead. */
enum table_taken {
    TABLE_LATER, /* its answer travels */
    TABLE_TAKEN,
    TABLE_LOST, /* or too old to be used */
};

struct table_port {
    void *self;
    /* NULL: nothing to gain. The node is about to be asked for: brings near what is known of it. */
    void (*prefetch)(void *self, uint64_t key);
    /* Sends an ask. True: `answer` is there, that of the table or, with ticket->later, what is
     * known here. False: it travels, or is still on its way from memory: there is time to generate
     * moves, before await gives it. */
    bool (*ask)(void *self, const struct tt_ask *ask, struct table_ticket *ticket,
                struct tt_answer *answer);
    /* Waits for the answer of that ask, with the same `answer`; always gives one (after a time-out:
     * OPEN, unregistered). */
    void (*await)(void *self, const struct tt_ask *ask, struct table_ticket *ticket,
                  struct tt_answer *answer);
    /* Each OPEN answer is ended by exactly one of these two. Neither waits. */
    void (*store)(void *self, const struct table_ticket *ticket, const struct tt_store *store);
    void (*release)(void *self, const struct table_ticket *ticket,
                    const struct tt_release *release);
    /* NULL: in-flight entries do not expire. The node of that ticket has been in flight for long:
     * asks again, so that its entry does not expire, and sets ticket->later, or does nothing. Never
     * waits. */
    void (*renew)(void *self, const struct tt_ask *ask, struct table_ticket *ticket);
    /* What is known of `count` nodes and how many searchers are in each; may wait. `near`: of the
     * searchers of this host alone and of what is known here, which costs next to nothing and is
     * true now. */
    void (*peek)(void *self, const struct tt_peek *peek, unsigned count, bool near,
                 struct tt_peeked *out);
    /* Both or none (NULL: a peek costs next to nothing and is true now; nodes are then peeked at
     * one by one). peek_ahead sends a peek whose answer is wanted later; false: not worth it here.
     * Each true is ended by a peek_take that does not say TABLE_LATER. It says so only if it is not
     * to wait; with `out` NULL nobody wants the answer any more. */
    bool (*peek_ahead)(void *self, const struct tt_peek *peek, unsigned count,
                       struct table_ticket *ticket);
    enum table_taken (*peek_take)(void *self, const struct table_ticket *ticket, bool waits,
                                  struct tt_peeked *out);
    /* Nodes of at least this remaining depth are searched beside others, and registered in flight
     * if the algorithm counts them; below, only results are shared. Called unless the algorithm is
     * for one searcher: when `iteration` begins, while no node is open, and after each poll.
     * `*sees_foreign`: whether a near peek tells the searchers of other hosts, too (`foreign`).
     * Then those of this host help each other in large children, rather than spread over what
     * others do. */
    unsigned (*inflight_depth)(void *self, unsigned iteration, bool *sees_foreign);
};

struct env_port {
    void *self;
    /* Called about every SEARCH_POLL_NODES nodes, or sooner (until_poll); also between iterations.
     * True: stop. May call what stands below. */
    bool (*poll)(void *self, struct search *search);
    /* NULL, or what the search counts its nodes down in, from search_run on; it outlives the
     * search. Who stores 1 (release), in any thread, makes it poll at its next node; where the
     * search counted a node at that very moment, up to SEARCH_POLL_NODES later. */
    atomic_uint *until_poll;
    /* NULL: there is none. By which searchers hand each other work (handover/peers.h); it outlives
     * the search. */
    const struct peer_port *peers;
};

/* ---- what an environment may say to its search, from poll only ---- */

/* From env.poll: another searcher finished this node. If this search is in it and the result
 * resolves it in its window, it unwinds to the node and takes the result (Weill 1996, footnote 12,
 * first way). */
void search_node_done(struct search *search, const struct tt_store *result);

/* From env.poll: a searcher of another host is in that node as well, and goes before this one. If
 * this search is in it because nobody seemed to be, and nobody has joined it, it unwinds to the
 * node, which is BUSY; else it is not alone in it any more. */
void search_node_claimed(struct search *search, uint64_t key, uint8_t depth);

/* From env.poll: the answer to an ask whose ticket said `later` (deferred reads: Kuszmaul 1995,
 * section 4). The node was begun meanwhile as if OPEN; CUT and BUSY unwind to it. */
void search_answered(struct search *search, const struct tt_ask *ask,
                     const struct tt_answer *answer);

/* From env.poll, now and then: renews the nodes that were in flight at the call before this one and
 * still are. So an in-flight entry is renewed before it is as old as two pauses between calls. */
void search_renew(struct search *search);

/* From env.poll: the value of the open node that is this split point matters only between `alpha`
 * and `beta` from now on. The child under way is searched again in the new window (the table knows
 * what was finished of it), unless the node is cut off now; the node ends with a value that is a
 * right bound for the new window. If the window is empty now, as search_abort. Nothing happens if
 * no such node is open (split_id 0 is none), or if the window is no smaller than before. */
void search_narrow(struct search *search, uint64_t split_id, int alpha, int beta);

/* From env.poll: the open node that is this split point is not wanted any more. The search unwinds
 * to it and releases it and the nodes on the way; but those whose value is known by then (the game
 * is over at the node that polls, say) are stored, and a split point that ends so keeps its value.
 * Nothing happens if no such node is open. */
void search_abort(struct search *search, uint64_t split_id);

/* The ply of that split point; -1: it is not open, or the search unwinds to it already. */
int search_split_ply(struct search *search, uint64_t split_id);

/* Returns what all searchers of the root set last have in common. */
uint64_t search_root(const struct search *search);

#endif
