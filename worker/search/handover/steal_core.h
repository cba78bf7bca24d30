/* steal_core: what the two files of work stealing share (steal.c: nodes that are divided, and
 * messages; steal_slave.c: work that is given); nobody else includes it. Threads: the search's own.
 * Pure. */
#ifndef WORKER_SEARCH_HANDOVER_STEAL_CORE_H
#define WORKER_SEARCH_HANDOVER_STEAL_CORE_H

#include "worker/search/children.h"
#include "worker/search/handover/steal.h"
#include "worker/search/node.h"
#include "worker/search/order.h"

enum { SPLITS_MAX = 64, PARKED_MAX = 32 };

enum child_state { CHILD_FREE, CHILD_MINE, CHILD_GIVEN, CHILD_TESTED, CHILD_DONE };

/* A node whose children others may search. */
struct split {
    uint64_t id;
    unsigned ply;
    unsigned given; /* children that slaves have */
    bool waits; /* no child is being searched by the master */
    uint8_t state[GAME_MOVES_MAX];
    uint16_t slave[GAME_MOVES_MAX];
    uint32_t alive_ms[GAME_MOVES_MAX]; /* when the child's slave was last in touch */
    bool asked[GAME_MOVES_MAX]; /* set when it was asked for a sign since */
};

struct parked {
    uint16_t from;
    uint32_t request;
    uint16_t length;
    uint16_t path[SEARCH_PLY_MAX];
};

struct steal {
    struct split split[SPLITS_MAX]; /* nested as the tree is: the first is nearest to the root */
    unsigned splits;
    uint64_t serial, random;
    uint32_t requests, wanted; /* the number of the request under way; 0: none */
    unsigned whom; /* it was sent to */
    uint32_t asked_ms; /* when it was sent */
    bool is_idle; /* nothing is being searched */
    bool has_task;
    struct peer_message task; /* the answer to the request */
    uint16_t master[SEARCH_PLY_MAX + 2]; /* by the ply of a node that was given: whose it is */
    struct parked parked[PARKED_MAX];
    unsigned parked_count;
};

static inline struct steal *steal_of(const struct search *s)
{
    return s->env.peers->peers->steal;
}

/* ---- steal_slave.c ---- */

/* A child of a divided node, by the master or a slave: as the rules say, for its value or tested.
 */
enum search_visit steal_visit(struct search *s, struct node *n, unsigned at, bool *lacks_value);
/* Searches what was given (task), from the node of `ply` at which the position is, and reports; or
 * returns it, if its path is none of this game's or leads elsewhere. */
void steal_search_task(struct search *s, unsigned ply);
/* To its master, unsearched. */
void steal_return_work(struct search *s, const struct peer_message *work);
/* Asks for work below that node; NULL: for any. */
void steal_ask(struct search *s, unsigned whom, const struct node *below);
/* Whether the answer to the last request is still awaited. */
bool steal_is_patient(struct search *s);

#endif
