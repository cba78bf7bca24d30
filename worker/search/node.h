/* node: the inside of a search, shared by its files only.
 *
 * Frames are one per ply; move lists live in two stacks so that a frame costs what it uses.
 * Threads: the search's own. */
#ifndef WORKER_SEARCH_NODE_H
#define WORKER_SEARCH_NODE_H

#include "worker/search/search.h"

enum {
    MOVE_STACK = 16384,
    CHILD_STACK = 4096,
    NOBODY_UNWINDS = SEARCH_PLY_MAX + 1,
};

/* A young brother at a node where processors are kept apart. */
struct child {
    uint64_t key;
    uint8_t depth; /* remaining at its first visit */
    uint8_t full; /* remaining without reductions: what proves more than a failure needs it */
    bool known; /* key and depths are computed */
    bool done;
    bool passed_over; /* counted once in `deferred` */
};

/* A node settled from outside; the processor unwinds to it. */
enum settled {
    SETTLED_NOT,
    SETTLED_DONE, /* somebody finished it; we are counted inside */
    SETTLED_CUT, /* the table cut it: we are not counted */
    SETTLED_BUSY, /* somebody else is inside: we are not counted */
};

struct frame {
    struct game_move *moves;
    unsigned count;
    uint64_t path, scouts; /* critical path: what goes one by one, and the longest scout */
    bool generated;
    const struct tt_ask *ask; /* of the visit, while held */
    struct table_ticket *ticket;
    int alpha, beta; /* as the table narrowed them */
    bool held; /* in the table: search_node_done may be about it */
    bool aged; /* held since before the last search_renew */
    bool crowded; /* others were inside when the table answered, at first or to a renewal */
    bool fails_high; /* expected to: a cut node of the minimal tree (Knuth, Moore 1975) */
    enum settled settled; /* by others, while this processor was below */
    int settled_score;
    uint16_t settled_move;
    bool calm, after_null; /* selection full: not in check; the move here was a pass */
    int standing; /* selection full: static evaluation when calm */
    uint16_t killer[2];
    struct search_line pv;
};

/* What a node has found out so far. alpha and beta as asked, narrowed by the table. */
struct outcome {
    int alpha, beta; /* the window searched */
    int known_lower, known_upper; /* what the table proved, or the infinite window */
    int best;
    int raised; /* max(alpha, best): what brothers must beat */
    uint16_t move;
};

struct search {
    /* fixed after open */
    struct search_options options;
    struct table_port table;
    struct env_port env;
    void *position;
    /* state */
    struct frame frame[SEARCH_PLY_MAX + 2];
    struct game_move move_stack[MOVE_STACK];
    struct child child_stack[CHILD_STACK];
    unsigned moves_used, children_used;
    int32_t history[2 * SEARCH_HISTORY]; /* by tt_weight's index: order_at */
    uint32_t fresh[2 * SEARCH_HISTORY]; /* learnt here and not given away yet */
    unsigned halved; /* here, since the last search_history_merge */
    unsigned fresh_from; /* where the next gift begins to look */
    uint64_t root_key;
    uint8_t noise[SEARCH_HISTORY];
    uint64_t random;
    unsigned iteration;
    unsigned inflight_depth;
    unsigned unwind; /* ply to unwind to, or NOBODY_UNWINDS */
    atomic_uint until_poll; /* unless the environment keeps it */
    uint64_t path; /* critical path of the node visited last */
    bool stopped;
    /* statistics */
    struct search_counters counters;
};

/* Enters the node at `ply`, searches it and leaves it: the only place that pairs ask with store or
 * release. */
enum search_visit node_visit(struct search *s, unsigned ply, int depth, int alpha, int beta,
                             bool exclusive, int *score);

/* Value of a quiet position near this one; alpha < beta; fail-soft. Check search_halted() after it.
 */
int quiesce(struct search *s, unsigned ply, int alpha, int beta);

/* Counts a node and asks the environment now and then. */
void node_count(struct search *s);
/* Sets s->inflight_depth by what the table says now. */
void node_update_inflight_depth(struct search *s);

static inline bool search_halted(const struct search *s)
{
    return s->stopped || s->unwind != NOBODY_UNWINDS;
}

static inline uint64_t node_key(const struct search *s)
{
    return s->options.game->key(s->position) ^ s->options.salt;
}

/* ---- mate distance: a value seen from one ply above, and a bound seen from one ply below ---- */

static inline int score_up(int child)
{
    int v = -child;
    return v > GAME_MATE_MIN ? v - 1 : v < -GAME_MATE_MIN ? v + 1 : v;
}

static inline int bound_down(int bound)
{
    if (bound >= GAME_INFINITE || bound <= -GAME_INFINITE) {
        return -bound;
    }
    int v = bound >= GAME_MATE_MIN ? bound + 1 : bound <= -GAME_MATE_MIN ? bound - 1 : bound;
    return -v;
}

/* ---- ordering (order.c) ---- */

/* Gives every move its place: table move, good captures, killers, history, bad captures. */
void order_moves(struct search *s, unsigned ply, uint16_t table_move);
/* Brings the best of moves[at..count) to `at`; bad captures are found out only here. */
void order_pick(struct search *s, unsigned ply, unsigned at);
/* All at once. */
void order_sort(struct search *s, unsigned ply);
/* The move refuted a node of this ply, here or, as an answer tells, at another processor: of many
 * processors each walks a small part of the tree, and orders its moves by what it has seen. */
void order_learn(struct search *s, unsigned ply, uint16_t move, int depth);
/* A quiet move refuted the node here. */
void order_reward(struct search *s, unsigned ply, uint16_t move, int depth);
/* The processor's tie-breaking. */
void order_seed(struct search *s);
void order_age(struct search *s);

#endif
