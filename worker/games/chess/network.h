/* network: the evaluation that the project learned from its own games (tests/instruments/tune/).
 *
 * One hidden layer, seen from both sides: each piece on its square is an input, seen from a side
 * with that side's pieces as its own, the board turned for black, and mirrored so that its king
 * stands on the files a to d. The inputs of a side sum up to its half of the layer; a clipped
 * square of both halves, the mover's first, gives the score by weights for the number of pieces.
 * Sources: Nasu 2018 (efficiently updatable networks); for the mirror and the kept sums, what
 * engines do today.
 *
 * Threads: two threads may use two `struct chess_sums`; the weights are only read after the start
 * of the program. Memory: none but the caller's. */
#ifndef WORKER_GAMES_CHESS_NETWORK_H
#define WORKER_GAMES_CHESS_NETWORK_H

#include <stdbool.h>
#include <stdint.h>

enum {
    CHESS_NETWORK_INPUTS = 768, /* own or not, kind, square */
    CHESS_NETWORK_HALF = 128, /* sums of one side: half of the hidden layer */
    CHESS_NETWORK_PARTS = 8, /* parts of the game, by pieces on the board */
    CHESS_NETWORK_ONE = 255, /* what 1.0 is in the hidden layer */
    CHESS_NETWORK_WEIGHT_ONE = 64, /* and in the weights of the output */
    CHESS_NETWORK_WEIGHT_MAX = 127,
    CHESS_NETWORK_SCALE = 230, /* centipawns: a score so high is won with 1 / (1 + 1/e) points */
};

/* The file, as it is: numbers of this processor's order (little-endian). */
struct chess_network {
    int16_t input[CHESS_NETWORK_INPUTS][CHESS_NETWORK_HALF];
    int16_t bias[CHESS_NETWORK_HALF];
    int16_t output[CHESS_NETWORK_PARTS][2][CHESS_NETWORK_HALF]; /* the mover's half first */
    int32_t output_bias[CHESS_NETWORK_PARTS]; /* ONE * WEIGHT_ONE is 1.0 */
};

/* Sums of a side's inputs as they were when last asked for, so that only what changed is added: one
 * for each side and whether its board is mirrored. */
struct chess_sum {
    uint64_t set[16]; /* the pieces that are in it: as in a position */
    int16_t value[CHESS_NETWORK_HALF];
};

struct chess_sums {
    struct chess_sum side[2][2]; /* colour, mirrored */
};

/* What a piece is to a side. `colour` is the side, `own` whether the piece is its. */
static inline unsigned chess_network_input(unsigned colour, bool mirrored, bool own, unsigned kind,
                                           unsigned square)
{
    unsigned turned = square ^ (colour ? 56 : 0) ^ (mirrored ? 7 : 0);
    return ((own ? 0 : 6) + kind) * 64 + turned;
}

static inline unsigned chess_network_part(unsigned pieces)
{
    unsigned part = (pieces - 2) / 4;
    return part < CHESS_NETWORK_PARTS ? part : CHESS_NETWORK_PARTS - 1;
}

/* Empty boards; `sums` is a struct chess_sums, as the game port has it. */
void chess_sums_clear(void *sums);

/* In centipawns, from `side`, which is to move. `set` as in a position, with a king each. */
int chess_network_eval(struct chess_sums *sums, const uint64_t *set, unsigned side);

#endif
