/* uci_search: which moves of the root a "go" command searches, and the lines of the search as UCI
 * prints them. What endgame tables know of the root's moves decides their values and their order
 * before the search does.
 *
 * Threads: one at a time while nothing is searched; uci_lines_take and uci_lines_take_bound as
 * observers are called (engine.h), by a thread that does not search. Memory: none. Source: the
 * UCI protocol, April 2006. */
#ifndef WORKER_PROGRAMS_UCI_UCI_SEARCH_H
#define WORKER_PROGRAMS_UCI_UCI_SEARCH_H

#include "worker/engine/engine.h"
#include "worker/games/chess/tablebase.h"
#include "worker/programs/uci_text.h"

enum {
    UCI_ELO_MIN = 1500,
    UCI_ELO_MAX = 2800,
    UCI_OVERHEAD_MS = 100, /* the option Move Overhead as it is at first */
};

/* Nodes a move for this strength: a rough scale (docs/reference/engines.md). */
uint64_t uci_nodes_of_elo(uint64_t elo);

/* ---- moves of the root ---- */

/* Takes those of "searchmoves", or all where there are none. What is no legal move is said on
 * stdout as an info string. False: moves were named, and none of them is legal. */
bool uci_root_searchmoves(struct job *job, const char *moves);

/* What endgame tables know of the root's moves. */
struct uci_root_values {
    struct chess_tablebase_move move[GAME_MOVES_MAX];
    unsigned count; /* 0: nothing */
};

/* In a position that they know: only moves that keep its value are searched, and where more lines
 * are wanted the best so many; unless moves were named. The job's lines become as many as it takes
 * to have the best of them. */
void uci_root_tablebase(struct job *job, struct uci_root_values *values);
/* The score of a root's move, of which the search says `score`. When the search
 * found a mate and the tables a win, returns the mate. */
int uci_root_score(const struct uci_root_values *values, uint16_t move, int score);

/* ---- lines ---- */

struct uci_lines {
    /* fixed for a search */
    const struct job *job;
    unsigned wanted; /* lines that are printed */
    bool are_numbered; /* MultiPV is more than one */
    unsigned all; /* lines of an iteration */
    struct uci_root_values values;
    /* state */
    struct search_result
        line[SEARCH_LINES_MAX]; /* of the last finished iteration, the best first */
    unsigned count; /* 0: none is finished */
    bool is_open; /* something of the iteration after it was said last */
};

/* `values` and the job's root moves are set by then. */
void uci_lines_begin(struct uci_lines *lines, const struct job *job, uint64_t multipv);
/* As in engine_observer. The lines of an iteration are printed when all are there. */
void uci_lines_take(struct uci_lines *lines, unsigned number, const struct search_result *result,
                    const struct engine_status *status);
/* A bound of the best line; it is the last word on it only for a while: see end. */
void uci_lines_take_bound(struct uci_lines *lines, const struct search_result *result,
                          const struct engine_status *status);
/* The search has ended with this result. The last lines that are printed are those of an iteration
 * that is finished; where the game is over, its score. */
void uci_lines_end(struct uci_lines *lines, const struct engine_result *result);
/* What each process contributed, a line each; of one alone nothing. */
void uci_lines_hosts(const struct engine_result *result);
/* The line whose move is to be played. */
const struct search_result *uci_lines_best(const struct uci_lines *lines,
                                           const struct engine_result *result);

/* Moves until the mate that the score says; 0: no mate for the side to move. */
unsigned uci_lines_mate(const struct game *game, int score);
/* The same of a mate that was found without the line to it, so that it is said as a win: line.h. */
unsigned uci_lines_bare_mate(const struct game *game, int score);

#endif
