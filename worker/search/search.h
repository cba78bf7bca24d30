/* search: one recursive NegaScout that is sequential or ABDADA by its table and its algorithm.
 *
 * A `struct search` is one searcher (the papers say processor): one thread or fiber calls into it.
 * It owns its position, nodes and ordering tables, allocated once in search_open; nothing is
 * allocated after that. Scores are relative to the node they belong to: a mate found n plies below
 * is GAME_MATE - n, and loses one per ply on its way up, so that a stored value does not depend on
 * the path (strict mode). Sources: Weill 1996 (ABDADA), Reinefeld 1983 (NegaScout), Marsland 1986
 * (ordering). Its functions are those of iterations.c; what an environment may say to it: ports.h.
 */
#ifndef WORKER_SEARCH_SEARCH_H
#define WORKER_SEARCH_SEARCH_H

#include "common/counters.h"
#include "worker/games/game.h"
#include "worker/search/algorithm.h"
#include "worker/search/ports.h"

enum {
    SEARCH_DEPTH_MAX = 100, /* iterations */
    SEARCH_PLY_MAX = 246, /* extensions and quiescence included */
    SEARCH_PV_MAX = 64,
    SEARCH_AWAY = 1024,
    SEARCH_LINES_MAX = GAME_MOVES_MAX,
    SEARCH_POLL_NODES = 256,
    SEARCH_HISTORY = 4096,
};

struct search_options {
    const struct game *game;
    const struct algorithm *algorithm;
    bool strict; /* value = f(position, depth): see design section 4 */
    bool full; /* forward pruning and reductions */
    bool keeps_endings; /* set where the table is asked for endings afterwards: pieces that the
                           game solves are the smallest (GAME_PIECE_KEPT) */
    uint16_t slot; /* names this searcher within its session */
    unsigned searchers; /* with this one's table, in this process; 0: not known */
    unsigned number; /* among those that search the job: 0 is the front-end's first, then its other
                        threads; from SEARCH_AWAY on those of other processes, who may share one */
    uint64_t seed; /* of tie-breaking; 0: none, the plain order */
    bool random_order; /* for a searcher that does not wait for answers: moves of equal worth in an
                     order of its own, and any child while a peek travels */
    uint64_t namespace_id; /* mixed into every key: unlike searches never share an entry */
    unsigned depth_limit; /* 1..SEARCH_DEPTH_MAX */
    const uint16_t *root_move; /* borrowed for the search: only these are searched at the root... */
    unsigned root_moves; /* 0: all. The root then has a key of its own */
    unsigned lines; /* the best so many moves of the root, each with an exact value; 0: one */
    bool only_ties; /* ... but only moves as good as the best */
    unsigned poll_nodes; /* between two env.poll; 0: SEARCH_POLL_NODES */
    void *solver_memory; /* borrowed: of the game's solver_size() bytes, zero at first, which
                            searchers may share; NULL: the search has its own. Fixed at open */
};

struct search_line {
    uint16_t length;
    uint16_t move[SEARCH_PV_MAX];
};

struct search_result {
    unsigned depth; /* of the last finished iteration; 0: none */
    unsigned unfinished; /* depth of the iteration that was stopped, if it has found something: then
                            score, move and line are its best so far; else 0 */
    unsigned deepest; /* plies of its longest path, quiescence included */
    int score;
    enum tt_bound bound; /* of the score: not exact only in a report of an iteration under way */
    uint16_t move; /* 0 only when the game is over at the root */
    struct search_line pv;
};

struct search;

/* Copies all it is given. ERR_NOMEM. */
enum err search_open(struct search **out, const struct search_options *options,
                     const struct table_port *table, const struct env_port *env);
/* Accepts NULL; nulls. */
void search_free(struct search **search);

/* Sets the root: copies `position` (game->position_size bytes). Forgets killers, ages history. */
void search_set_position(struct search *search, const void *position);
/* Forgets what earlier searches learned of moves and evaluations. Accepts NULL. */
void search_forget(struct search *search);
/* For a job of the same game: options and environment anew. */
void search_set_limits(struct search *search, const struct search_options *options,
                       const struct env_port *env);

/* Called from search_run: after each finished iteration, with its best line; and when the value of
 * one under way is outside its window, with the bound and no line. */
typedef void search_report(void *context, const struct search_result *result,
                           const struct counters *counters);

/* Iterative deepening from the game's first iteration to depth_limit or until env says stop.
 * Returns the last finished iteration; if none was finished, depth 0 and some legal move. A stopped
 * iteration gives its best move so far, as it begins with that of the one before. Blocks. */
void search_run(struct search *search, search_report *report, void *context,
                struct search_result *result);

/* The lines of the last finished iteration, the best first, which is search_run's result; fewer
 * than wanted where there are fewer moves. For the search's own thread. */
const struct search_result *search_lines(const struct search *search, unsigned *count);

/* The root's move under way, 0 for none, and its place in the order of moves, from 1; moves of
 * better lines count. From env.poll. */
uint16_t search_root_move(const struct search *search, unsigned *number);

/* ---- a search begun at any node ---- */

enum search_status {
    SEARCH_VALUE,
    SEARCH_STOPPED, /* by env.poll */
    SEARCH_ABORTED, /* by search_abort, or by search_narrow to an empty window */
};

/* A node where work is divided. Others name it by its id (search_narrow, search_abort in ports.h).
 */
struct search_split {
    uint64_t id; /* not 0 */
    const uint16_t *path; /* moves from the root position; borrowed for the call */
    unsigned length;
    unsigned depth; /* remaining there, at least 1 */
    unsigned iteration; /* that it is part of, at least 1: sets the in-flight depth */
    int alpha, beta; /* seen from the side to move there */
    bool cut_node; /* expected to fail high there */
};

/* Searches one node below the root that was set last, asking and storing as at any node. `result`
 * is written with SEARCH_VALUE only: its score is exact if it lies in the window, else a bound (no
 * move and no line with an upper one). Leaves no node in flight. Counters begin at 0. Blocks. */
enum search_status search_subtree(struct search *search, const struct search_split *split,
                                  struct search_result *result);

/* Counters so far and the iteration under way: for the search's own thread. */
const struct counters *search_counters(const struct search *search);
unsigned search_iteration(const struct search *search);
/* From env.poll, in the iteration that solves the position to its end: how many nodes this search
 * still needs, by the subtrees that are done. With one thread most estimates are within a factor of
 * two (docs/research/measurements.md). 0: unknown, as it is with several lines and with algorithms
 * that hand work over or pass twice. */
uint64_t search_nodes_left(const struct search *search);

/* The root, but from env.poll: where the search stands. */
const void *search_position(const struct search *search);

#endif
