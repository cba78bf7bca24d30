#include "worker/programs/othello/othello_clock.h"

enum {
    OPENING_EMPTIES = 46, /* above: the opening */
    SOLVE_EMPTIES = 24, /* from here on the search is likely to reach the end of the game, */
    SOLVED_EMPTIES = 18, /* and here it has */
    SOLVED_IN_1_MS = 9, /* empty squares */
    SOLVABLE_MAX = 64,
    OVERHEAD_MS = 40, /* of a move: pipes, processes that wait for a CPU, the opponent's clock */
};

/* What a move is worth, in parts of one of the opening. */
static unsigned weight(unsigned empties)
{
    return empties > OPENING_EMPTIES  ? 4
           : empties > SOLVE_EMPTIES  ? 6
           : empties > SOLVED_EMPTIES ? 10
                                      : 1;
}

uint32_t othello_clock_move_ms(const struct othello_clock *clock, unsigned empties)
{
    const int64_t each_ms = clock->increment_ms + clock->period_ms;
    int64_t most = clock->left_ms + clock->period_ms;
    int64_t sum = 0;
    for (unsigned e = empties; e > 0; e = e > 2 ? e - 2 : 0) {
        sum += weight(e);
    }
    most -= most > 10 * OVERHEAD_MS ? OVERHEAD_MS : most / 10;
    int64_t left = clock->left_ms > 0 ? clock->left_ms : 0;
    int64_t part = (sum == 0 ? left : left * weight(empties) / sum) + each_ms * 4 / 5;
    part = part < most ? part : most;
    return (uint32_t)(part < 1 ? 1 : part > UINT32_MAX ? UINT32_MAX : part);
}

unsigned othello_clock_solvable(uint64_t time_ms)
{
    unsigned empties = SOLVED_IN_1_MS;
    while (time_ms > 1 && empties < SOLVABLE_MAX) {
        time_ms /= 2;
        empties++;
    }
    return empties;
}
