/* othello_clock: how much of a side's thinking time a move of Othello takes.
 *
 * The time is divided over the side's own moves that are left. Moves of the middle game weigh most,
 * and those where the exact value is about to be found; after that there is hardly anything to
 * think about. Pure; threads: any. Memory: none. */
#ifndef WORKER_PROGRAMS_OTHELLO_OTHELLO_CLOCK_H
#define WORKER_PROGRAMS_OTHELLO_OTHELLO_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

struct othello_clock {
    bool is_set; /* else there is no limit */
    int64_t left_ms; /* for all the moves to come; may be negative */
    int64_t increment_ms; /* added after each move */
    int64_t period_ms; /* for each move when the rest has run out: of byo-yomi */
};

/* For the next move, with so many squares empty; at least 1. Never more than is left, less what a
 * move takes beside the search. */
uint32_t othello_clock_move_ms(const struct othello_clock *clock, unsigned empties);

/* How many empty squares one thread is likely to solve exactly in this time. A rough rule: each
 * more takes twice as long. */
unsigned othello_clock_solvable(uint64_t time_ms);

#endif
