/* othello_solve: the exact score of a board with few empty squares, for the tools.
 *
 * Alpha-beta with a table; moves that leave the opponent few moves come first. Up to about 14 empty
 * squares in some milliseconds. Threads: each its own solver. Memory: the caller frees. */
#ifndef TESTS_TUNE_OTHELLO_SOLVE_H
#define TESTS_TUNE_OTHELLO_SOLVE_H

#include "worker/games/othello/board.h"

#include <stdlib.h>
#include <string.h>

enum {
    OTHELLO_SOLVER_ENTRIES = 1 << 14,
    OTHELLO_SOLVER_ORDERED = 6, /* empty squares: with fewer the moves are tried as they come */
    OTHELLO_SOLVER_KEPT = 7, /* with fewer they are not worth a table */
};

struct othello_solver {
    struct {
        uint64_t own, other;
        int8_t low, high;
    } entry[OTHELLO_SOLVER_ENTRIES];
};

static inline void othello_solver_clear(struct othello_solver *solver)
{
    memset(solver, 0, sizeof *solver);
}

static inline struct othello_solver *othello_solver_open(void)
{
    return calloc(1, sizeof(struct othello_solver));
}

static int othello_solver_few(struct othello_board b, int alpha, int beta)
{
    int best = -OTHELLO_SCORE_MAX - 1;
    for (uint64_t rest = othello_empties(b); rest != 0 && best < beta; rest &= rest - 1) {
        const unsigned square = othello_first(rest);
        const uint64_t flips = othello_flips(b.own, b.other, square);
        if (flips != 0) {
            const int low = best > alpha ? best : alpha;
            const int score = -othello_solver_few(othello_play(b, square, flips), -beta, -low);
            best = score > best ? score : best;
        }
    }
    if (best >= -OTHELLO_SCORE_MAX) {
        return best;
    }
    return othello_moves(b.other, b.own) == 0 ? othello_final_score(b)
                                              : -othello_solver_few(othello_pass(b), -beta, -alpha);
}

static int othello_solver_search(struct othello_solver *solver, struct othello_board b, int alpha,
                                 int beta)
{
    const uint64_t corners = UINT64_C(0x8100000000000081);
    const unsigned empties = othello_count(othello_empties(b));
    if (empties < OTHELLO_SOLVER_ORDERED) {
        return othello_solver_few(b, alpha, beta);
    }
    uint64_t moves = othello_moves(b.own, b.other);
    if (moves == 0) {
        return othello_moves(b.other, b.own) == 0
                   ? othello_final_score(b)
                   : -othello_solver_search(solver, othello_pass(b), -beta, -alpha);
    }
    const size_t at = othello_hash(b) % OTHELLO_SOLVER_ENTRIES;
    const bool is_kept = solver->entry[at].own == b.own && solver->entry[at].other == b.other;
    int least = -OTHELLO_SCORE_MAX, most = OTHELLO_SCORE_MAX;
    if (empties >= OTHELLO_SOLVER_KEPT && is_kept) {
        least = solver->entry[at].low;
        most = solver->entry[at].high;
        if (least >= beta || least == most) {
            return least;
        }
        if (most <= alpha) {
            return most;
        }
    }
    struct {
        struct othello_board after;
        unsigned order;
    } list[34];
    unsigned count = 0;
    for (; moves != 0; moves &= moves - 1) {
        const unsigned square = othello_first(moves);
        const struct othello_board after =
            othello_play(b, square, othello_flips(b.own, b.other, square));
        const uint64_t replies = othello_moves(after.own, after.other);
        const unsigned order = 2 * (othello_count(replies) + othello_count(replies & corners)) -
                               ((othello_bit(square) & corners) != 0);
        unsigned place = count++;
        for (; place > 0 && list[place - 1].order > order; place--) {
            list[place] = list[place - 1];
        }
        list[place].after = after;
        list[place].order = order;
    }
    int best = -OTHELLO_SCORE_MAX - 1;
    for (unsigned i = 0; i < count && best < beta; i++) {
        const int low = best > alpha ? best : alpha;
        int score = 0;
        if (i > 0 && beta - low > 1) {
            score = -othello_solver_search(solver, list[i].after, -low - 1, -low);
        }
        if (i == 0 || beta - low <= 1 || (score > low && score < beta)) {
            score = -othello_solver_search(solver, list[i].after, -beta, -low);
        }
        best = score > best ? score : best;
    }
    if (empties >= OTHELLO_SOLVER_KEPT) {
        solver->entry[at].own = b.own;
        solver->entry[at].other = b.other;
        solver->entry[at].low = (int8_t)(best > alpha ? best : least);
        solver->entry[at].high = (int8_t)(best < beta ? best : most);
    }
    return best;
}

/* The exact score; `next` is the board after a best move, or after a pass if there is none and the
 * game is not over. */
static int othello_solve_best(struct othello_solver *solver, struct othello_board b,
                              struct othello_board *next)
{
    const uint64_t all = othello_moves(b.own, b.other);
    int best = -OTHELLO_SCORE_MAX - 1;
    if (all == 0) {
        *next = othello_pass(b);
        return othello_moves(b.other, b.own) == 0
                   ? othello_final_score(b)
                   : -othello_solver_search(solver, *next, -OTHELLO_SCORE_MAX, OTHELLO_SCORE_MAX);
    }
    for (unsigned replies = 0; replies <= 34; replies++) { /* few replies first */
        for (uint64_t moves = all; moves != 0; moves &= moves - 1) {
            const unsigned square = othello_first(moves);
            const struct othello_board after =
                othello_play(b, square, othello_flips(b.own, b.other, square));
            if (othello_count(othello_moves(after.own, after.other)) == replies) {
                const int low = best > -OTHELLO_SCORE_MAX ? best : -OTHELLO_SCORE_MAX;
                int score = best >= -OTHELLO_SCORE_MAX
                                ? -othello_solver_search(solver, after, -low - 1, -low)
                                : low + 1;
                if (score > low || best < -OTHELLO_SCORE_MAX) {
                    score = -othello_solver_search(solver, after, -OTHELLO_SCORE_MAX, -low);
                }
                if (score > best) {
                    best = score;
                    *next = after;
                }
            }
        }
    }
    return best;
}

#endif
