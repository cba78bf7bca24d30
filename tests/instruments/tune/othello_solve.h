/* othello_solve: the exact score and a best move of a board with few empty squares, for the tools.
 *
 * The move does not depend on what was solved before: of the best ones it is the first of those
 * that leave the opponent fewest moves. Threads: each its own memory. Memory: the caller frees. */
#ifndef TESTS_INSTRUMENTS_TUNE_OTHELLO_SOLVE_H
#define TESTS_INSTRUMENTS_TUNE_OTHELLO_SOLVE_H

#include "common/err.h"
#include "worker/games/othello/solver.h"

#include <stdlib.h>
#include <string.h>

static inline struct othello_memory *othello_solve_open(void)
{
    struct othello_memory *memory = aligned_alloc(64, othello_memory_bytes());
    if (memory != NULL) {
        memset(memory, 0, othello_memory_bytes());
    }
    return memory;
}

static inline int othello_solve_window(struct othello_memory *memory, struct othello_board b,
                                       int alpha, int beta)
{
    int value = 0;
    unsigned move;
    CHECK(othello_solve(memory, b, alpha, beta, NULL, &value, &move));
    return value;
}

static inline int othello_solve_exactly(struct othello_memory *memory, struct othello_board b)
{
    return othello_solve_window(memory, b, -OTHELLO_SCORE_MAX - 1, OTHELLO_SCORE_MAX + 1);
}

/* `next` is the board after a best move, or after a pass; the game is not over. */
static inline int othello_solve_best(struct othello_memory *memory, struct othello_board b,
                                     struct othello_board *next)
{
    const uint64_t all = othello_moves(b.own, b.other);
    const int best = othello_solve_exactly(memory, b);
    if (all == 0) {
        *next = othello_pass(b);
        return best;
    }
    for (unsigned replies = 0; replies < OTHELLO_SQUARES; replies++) {
        for (uint64_t moves = all; moves != 0; moves &= moves - 1) {
            const unsigned square = othello_first(moves);
            const struct othello_board after =
                othello_play(b, square, othello_flips(b.own, b.other, square));
            if (othello_count(othello_moves(after.own, after.other)) == replies &&
                othello_solve_window(memory, after, -best, 1 - best) <= -best) {
                *next = after;
                return best;
            }
        }
    }
    CHECK(false);
    return best;
}

#endif
