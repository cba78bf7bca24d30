/* patterns: the evaluation of an Othello board, fitted to the project's own games
 * (tests/instruments/tune/).
 *
 * 46 places on the board, of 11 patterns: edges with the squares inside them, corners, lines,
 * diagonals. What stands in a place is a number to base 3, an empty square 0, an own disc 1, the
 * opponent's 2; each number has a weight, by the number of empty squares. The value is the sum of
 * the weights, and of those for the moves that either side has. Symmetric boards have the same
 * value. Sources: Buro 1997 (patterns by stage of the game, fitted by least squares to final
 * scores); the choice of patterns is that of Edax.
 *
 * The numbers of all places are added up at once, in vectors, from a table of 192 KB that says what
 * the discs of each row add to each place. It costs no more than to extract the bits of each place
 * where the processor has an instruction for that (57 ns against 71), and is the same on all
 * others.
 *
 * Threads: any; what the start of the program fills in is only read after it. Memory: none. Pure.
 */
#ifndef WORKER_GAMES_OTHELLO_PATTERNS_H
#define WORKER_GAMES_OTHELLO_PATTERNS_H

#include "worker/games/othello/board.h"

enum {
    OTHELLO_EVAL_UNIT = 128, /* a disc */
    OTHELLO_EVAL_MAX = OTHELLO_SCORE_MAX * OTHELLO_EVAL_UNIT,
    OTHELLO_PATTERNS = 11,
    OTHELLO_PATTERN_SQUARES = 10, /* at most */
    OTHELLO_PLACES = 46,
    OTHELLO_PLACES_ROOM = 48, /* whole vectors */
    OTHELLO_CONFIGURATIONS = 2 * 59049 + 19683 + 4 * 6561 + 2187 + 729 + 243 + 81,
    OTHELLO_STAGES = 12,
    OTHELLO_MOVES_COUNTED = 32, /* more moves count as one less than this */
    OTHELLO_SYMMETRIES = 8,
};

/* The squares in one of its places; the others are the symmetric ones. */
struct othello_pattern {
    uint8_t squares, places;
    uint8_t square[OTHELLO_PATTERN_SQUARES];
    uint32_t first; /* first of its weights in a stage */
};
extern const struct othello_pattern othello_pattern[OTHELLO_PATTERNS];

/* The file, as it is, in 1 / OTHELLO_EVAL_UNIT discs, of this processor's order (little-endian). */
struct othello_stage {
    int16_t configuration[OTHELLO_CONFIGURATIONS];
    int16_t moves[2][OTHELLO_MOVES_COUNTED]; /* the mover's, the opponent's */
};
struct othello_weights {
    int16_t empties[OTHELLO_SQUARES];
    struct othello_stage stage[OTHELLO_STAGES];
};

/* The first stages have few games that differ, and no search asks for the last. */
static inline unsigned othello_stage(unsigned empties)
{
    return empties < 8    ? 0
           : empties < 40 ? empties / 4 - 1
           : empties < 45 ? 9
           : empties < 51 ? 10
                          : 11;
}

/* Where a square is when the board is turned or seen in a mirror. */
static inline unsigned othello_symmetric(unsigned square, unsigned symmetry)
{
    square ^= ((symmetry & 1) != 0 ? 7 : 0) ^ ((symmetry & 2) != 0 ? 56 : 0);
    return (symmetry & 4) != 0 ? square % 8 * 8 + square / 8 : square;
}

/* The numbers of all places, those of the first pattern first; what is beyond them is 0. */
void othello_place_numbers(struct othello_board board, uint16_t number[OTHELLO_PLACES_ROOM]);
/* The same, square by square. */
void othello_place_numbers_slowly(struct othello_board board, uint16_t number[OTHELLO_PLACES_ROOM]);

enum { OTHELLO_LANES = 16, OTHELLO_VECTORS = OTHELLO_PLACES_ROOM / OTHELLO_LANES };
/* The compiler makes of it what the processor has. */
typedef uint16_t othello_lanes __attribute__((vector_size(2 * OTHELLO_LANES)));

/* What the discs of either side add to the numbers of all places. A search that plays moves finds
 * those of the next board from what changes. */
struct othello_sums {
    othello_lanes own[OTHELLO_VECTORS], other[OTHELLO_VECTORS];
};
void othello_sum(struct othello_board board, struct othello_sums *sums);
/* othello_evaluate of the board with these. */
int othello_evaluate_sums(struct othello_board board, const struct othello_sums *sums);
/* After a disc on `square` that turns `flips`, from the other side. */
void othello_sum_next(const struct othello_sums *sums, unsigned square, uint64_t flips,
                      struct othello_sums *next);
/* othello_evaluate of that board, `next`, where the sides have these moves. */
int othello_evaluate_next(const struct othello_sums *sums, unsigned square, uint64_t flips,
                          struct othello_board next, uint64_t own_moves, uint64_t other_moves);

/* The final difference of discs that is expected, from the side to move, in 1 / OTHELLO_EVAL_UNIT
 * discs, at most OTHELLO_EVAL_MAX either way. */
int othello_evaluate(struct othello_board board);
/* The same by other weights than the file's. */
int othello_evaluate_by(const struct othello_weights *weights, struct othello_board board);

#endif
