/* othello_sample: a board with its final score, as othello_selfplay writes it and othello_fit reads
 * it; and the evaluation written by hand that the first games are played with. */
#ifndef TESTS_INSTRUMENTS_TUNE_OTHELLO_SAMPLE_H
#define TESTS_INSTRUMENTS_TUNE_OTHELLO_SAMPLE_H

#include "worker/games/othello/board.h"

struct othello_sample {
    uint64_t own, other;
    uint32_t game; /* samples of a game are held back together */
    int8_t score; /* discs, from the side to move */
    uint8_t unused[3];
};

_Static_assert(sizeof(struct othello_sample) == 24, "files are read by other builds");

/* The squares next to those of a set. */
static inline uint64_t othello_start_near(uint64_t set)
{
    const uint64_t not_a = UINT64_C(0xfefefefefefefefe), not_h = UINT64_C(0x7f7f7f7f7f7f7f7f);
    set |= (set << 1 & not_a) | (set >> 1 & not_h);
    return set | set << 8 | set >> 8;
}

/* Moves, squares where there may be moves later, corners, and the squares that give them away; in
 * `unit` for a disc. Without any measurement: it is where the fit starts from. */
static inline int othello_start_evaluate(struct othello_board board, int unit)
{
    static const struct {
        uint64_t corner, diagonal, beside;
    } corner[4] = {
        {UINT64_C(0x0000000000000001), UINT64_C(0x0000000000000200), UINT64_C(0x0000000000000102)},
        {UINT64_C(0x0000000000000080), UINT64_C(0x0000000000004000), UINT64_C(0x0000000000008040)},
        {UINT64_C(0x0100000000000000), UINT64_C(0x0002000000000000), UINT64_C(0x0201000000000000)},
        {UINT64_C(0x8000000000000000), UINT64_C(0x0040000000000000), UINT64_C(0x4080000000000000)},
    };
    const uint64_t own = board.own, other = board.other, empty = othello_empties(board);
    int halves = 2 * ((int)othello_count(othello_moves(own, other)) -
                      (int)othello_count(othello_moves(other, own))) +
                 (int)othello_count(othello_start_near(other) & empty) -
                 (int)othello_count(othello_start_near(own) & empty);
    for (unsigned i = 0; i < 4; i++) {
        if ((empty & corner[i].corner) != 0) {
            halves -=
                8 * ((own & corner[i].diagonal) != 0) - 8 * ((other & corner[i].diagonal) != 0);
            halves -= 3 * ((int)othello_count(own & corner[i].beside) -
                           (int)othello_count(other & corner[i].beside));
        } else {
            halves += (own & corner[i].corner) != 0 ? 16 : -16;
        }
    }
    const int value = halves * unit / 2, most = OTHELLO_SCORE_MAX * unit;
    return value > most ? most : value < -most ? -most : value;
}

#endif
