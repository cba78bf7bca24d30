/* uci_lines: the lines of a search as UCI prints them. What endgame tables know of the root's moves
 * (uci_limits.h) decides their values and their order before the search does.
 *
 * Threads: begin, end and best while nothing is searched; the others as observers are called
 * (observer.h): one at a time, by a thread that does not search. Memory: none. */
#ifndef WORKER_PROGRAMS_UCI_UCI_LINES_H
#define WORKER_PROGRAMS_UCI_UCI_LINES_H

#include "worker/engine/engine.h"
#include "worker/programs/uci/uci_limits.h"

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
/* Of engine_observer. The lines of an iteration are printed when all are there. */
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
