/* context: what the files of the search share, and nobody else sees.
 *
 * A `struct node` is the context of one node on the path from the root: every function of the
 * search takes the search and the node. They lie in one array by ply, so that `node + 1` is the
 * child. Move lists live in two stacks, so that a node costs what it uses. Threads: the search's
 * own. Memory: nothing is allocated after search_open. */
#ifndef WORKER_SEARCH_CONTEXT_H
#define WORKER_SEARCH_CONTEXT_H

#include "worker/search/search.h"

enum {
    MOVE_STACK = 16384,
    CHILD_STACK = 4096,
    NO_UNWIND = SEARCH_PLY_MAX + 1,
    NO_REPEAT = SEARCH_PLY_MAX + 1,
};

/* How a node was resolved from outside while this searcher was below it. */
enum resolved {
    RESOLVED_NOT,
    RESOLVED_DONE, /* another searcher finished it; this one is still registered in it */
    RESOLVED_CUT, /* the table answered CUT; this searcher is not registered */
    RESOLVED_BUSY, /* the table answered BUSY; this searcher is not registered */
    RESOLVED_ABORTED, /* search_abort; this searcher is still registered */
};

/* A child of a node whose children are chosen by how many searchers are in them. */
struct child {
    uint64_t key;
    uint8_t depth; /* remaining at its first visit */
    uint8_t full; /* remaining without reductions: a value that raises alpha needs this depth */
    bool known; /* key, depths and the next are computed */
    bool is_drawn; /* here, on this path: the table's value is not its own */
    bool done;
    bool deferred; /* counted once in `deferred` */
};

struct node {
    /* fixed after open */
    unsigned ply;
    /* set before the visit: node_prepare, but for the split_id */
    int depth; /* remaining */
    int alpha, beta; /* as wanted; during the visit as the table narrowed them */
    bool exclusive; /* BUSY is wanted if another searcher is in the node */
    bool cut_node; /* expected to fail high in the minimal tree (Knuth, Moore 1975) */
    bool after_null; /* the move that led here was a pass */
    uint16_t excluded; /* is not searched: what the others are worth is wanted; 0: none */
    uint64_t split_id; /* of the split point that this node is; 0: none */
    /* result of the visit */
    int best; /* its value when the visit ends with VISIT_VALUE */
    uint16_t best_move;
    struct search_line pv;
    uint64_t path; /* nodes on the critical path below and with this node */
    /* The draw that its value comes from, if it is one that depends on the path (not strict): */
    int repeats; /* the ply of the position that is repeated (-1: before the root); or NO_REPEAT */
    bool counts; /* by count */
    bool is_uncertain; /* it comes from shallower results of tasks */
    /* during the visit */
    struct tt_ask ask;
    struct table_ticket ticket;
    int known_lower, known_upper; /* what the table proved, or the infinite window */
    uint16_t known_move; /* the move that proved known_lower; 0: none is known */
    bool distrusts; /* visited again, without the upper bound that its first visit disproved */
    int alpha_now; /* max(alpha, best): what the next child must beat */
    struct game_move *moves;
    unsigned move_count;
    unsigned visited; /* children that have a value, ... */
    uint64_t visited_nodes, eldest_nodes; /* ... their nodes, and those of the eldest */
    uint64_t child_begun; /* the search's nodes when the child under way was first entered */
    bool generated;
    bool in_flight; /* registered in the table: completion notices and answers may name it */
    bool is_old; /* in flight since before the last search_renew */
    bool has_children; /* they are being searched: another window concerns the one under way */
    bool contended; /* other searchers were in it when the table answered, or a child was BUSY */
    /* selection full: */
    bool prunes; /* below the root, not in check: moves may be skipped */
    bool reduces; /* not in check: moves may be reduced */
    bool improves; /* static_eval is better than two plies ago */
    int raw_eval, static_eval; /* if `reduces`; the second is corrected by its history */
    int extension; /* plies added to ... */
    uint16_t extended; /* ... this move */
    uint16_t move_now; /* under way */
    unsigned move_class; /* of the move under way; 0, too: none */
    uint64_t unaccounted_before; /* nodes that no visit accounted for when it began */
    uint64_t longest_scout; /* critical path of the longest scout among its children */
    enum resolved resolved;
    int resolved_score;
    uint16_t resolved_move;
    /* kept between visits */
    uint16_t killer[2];
};

struct search {
    /* fixed after open */
    struct search_options options;
    struct table_port table;
    struct env_port env;
    void *position;
    void *evaluator; /* of the game, for selection full; NULL: it has none */
    void *solver; /* memory of the game's solver; NULL: it needs none */
    void *solver_block; /* ... as allocated */
    uint64_t (*key)(
        const void *position); /* of the game: what the search takes positions for equal by */
    /* state */
    struct node node[SEARCH_PLY_MAX + 2];
    struct game_move move_stack[MOVE_STACK];
    struct child child_stack[CHILD_STACK];
    unsigned moves_used, children_used;
    int32_t history[2 * SEARCH_HISTORY]; /* by order_at: what moves refuted, depths squared */
    bool prepares; /* nodes of a ply less than the end are solved, too: selectively */
    struct histories *histories; /* of selection full (order.c); not touched by plain */
    uint64_t root_key, root_variant;
    uint16_t root_list[GAME_MOVES_MAX]; /* moves of the root that may be wanted */
    unsigned root_list_count;
    uint8_t noise[SEARCH_HISTORY];
    uint64_t random;
    unsigned iteration;
    struct search_result line[SEARCH_LINES_MAX]; /* of the iteration under way, then of the last */
    struct search_line above; /* of the iteration under way: a value above its window; or empty */
    int above_score;
    unsigned lines; /* entries of `line` in use */
    unsigned lines_done; /* have their value in this iteration: their first moves are left out */
    unsigned deepest; /* ply reached for the line under way */
    uint16_t root_move; /* under way; 0: none yet */
    unsigned root_number; /* its place in the order of moves, from 1 */
    unsigned inflight_depth; /* of the table (ports.h); UINT8_MAX for one searcher alone */
    bool sees_foreign; /* of the table, too */
    unsigned divided_depth; /* children of this depth are the algorithm's, too, where those of the
                               in-flight depth are deeper; UINT8_MAX: only those */
    unsigned start_ply, poll_ply; /* from here to the node that was counted last all are open */
    unsigned unwind; /* ply of the node to unwind to, or NO_UNWIND */
    bool window_changed; /* the unwinding is to search this child again in the new window */
    atomic_uint until_poll; /* unless the environment keeps it */
    bool stopped;
    /* statistics */
    struct counters counters;
    uint64_t accounted; /* nodes of registered visits that have ended, with a value or without */
};

/* Whether no move of the root is left out. */
static inline bool node_has_all_moves(const struct search *s)
{
    return s->lines_done == 0 && s->options.root_moves == 0;
}

/* Whether a score that others stored can be one of the game. */
static inline bool node_is_score(const struct search *s, int score)
{
    int most = s->options.game->score_max;
    return score >= -most && score <= most;
}

static inline bool search_halted(const struct search *s)
{
    return s->stopped || s->unwind != NO_UNWIND;
}

static inline uint64_t node_key(const struct search *s)
{
    return s->key(s->position) ^ s->options.namespace_id;
}

static inline int node_evaluate(const struct search *s)
{
    return s->options.full && s->evaluator != NULL
               ? s->options.game->evaluate_full(s->position, s->evaluator)
               : s->options.game->evaluate(s->position);
}

static inline void node_forget_path(struct node *n)
{
    n->repeats = NO_REPEAT;
    n->counts = false;
}

static inline bool node_is_cut_off(const struct node *n)
{
    return n->best >= n->beta;
}

static inline bool node_is_null_window(const struct node *n)
{
    return n->beta - n->alpha == 1;
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

/* Prepares a visit of the node in that window. */
static inline struct node *node_prepare(struct node *n, int depth, int alpha, int beta,
                                        bool cut_node)
{
    n->depth = depth;
    n->alpha = alpha;
    n->beta = beta;
    n->exclusive = n->after_null = false;
    n->cut_node = cut_node;
    n->excluded = 0;
    return n;
}

/* Prepares the child that the position is at, in a window seen from the parent. */
static inline struct node *node_child(struct node *n, int depth, int alpha, int beta, bool cut_node)
{
    return node_prepare(n + 1, depth, bound_down(beta), bound_down(alpha), cut_node);
}

#endif
