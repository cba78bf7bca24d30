/* sample: a position with what it turned out to be worth, as selfplay writes it and fit reads it.
 *
 * The side to move is always white here: with black to move the board is turned and the colours
 * are swapped. */
#ifndef TESTS_INSTRUMENTS_TUNE_SAMPLE_H
#define TESTS_INSTRUMENTS_TUNE_SAMPLE_H

#include <stdint.h>

struct sample {
    uint64_t occupied;
    uint8_t
        piece[16]; /* four bits each (struct chess_position), in the order of squares, low first */
    int16_t score; /* of a search, in centipawns, from the side to move */
    uint8_t result; /* of the game, from the side to move: 0 lost, 1 drawn, 2 won */
    uint8_t unused[5];
};

_Static_assert(sizeof(struct sample) == 32, "files are read by other builds");

#endif
