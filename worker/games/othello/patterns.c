#include "worker/games/othello/patterns.h"

#include "common/err.h"

#include <string.h>

extern const char _binary_evaluation_weights_start[], _binary_evaluation_weights_end[];

/* ---- the patterns ---- */

enum { /* where the weights of each begin */
       EDGE = 0, /* with the two squares diagonal to its corners */
       CORNER = EDGE + 59049,
       BLOCK = CORNER + 19683,
       LINE2 = BLOCK + 59049,
       LINE3 = LINE2 + 6561,
       LINE4 = LINE3 + 6561,
       DIAGONAL8 = LINE4 + 6561,
       DIAGONAL7 = DIAGONAL8 + 6561,
       DIAGONAL6 = DIAGONAL7 + 2187,
       DIAGONAL5 = DIAGONAL6 + 729,
       DIAGONAL4 = DIAGONAL5 + 243,
};
_Static_assert(DIAGONAL4 + 81 == OTHELLO_CONFIGURATIONS, "the last ends where the stage does");

const struct othello_pattern othello_pattern[OTHELLO_PATTERNS] = {
    {10, 4, {0, 1, 2, 3, 4, 5, 6, 7, 9, 14}, EDGE},
    {9, 4, {0, 1, 2, 8, 9, 10, 16, 17, 18}, CORNER},
    {10, 8, {0, 1, 2, 3, 4, 8, 9, 10, 11, 12}, BLOCK},
    {8, 4, {8, 9, 10, 11, 12, 13, 14, 15}, LINE2},
    {8, 4, {16, 17, 18, 19, 20, 21, 22, 23}, LINE3},
    {8, 4, {24, 25, 26, 27, 28, 29, 30, 31}, LINE4},
    {8, 2, {0, 9, 18, 27, 36, 45, 54, 63}, DIAGONAL8},
    {7, 4, {1, 10, 19, 28, 37, 46, 55}, DIAGONAL7},
    {6, 4, {2, 11, 20, 29, 38, 47}, DIAGONAL6},
    {5, 4, {3, 12, 21, 30, 39}, DIAGONAL5},
    {4, 4, {4, 13, 22, 31}, DIAGONAL4},
};

/* ---- the numbers of the places ---- */

typedef othello_lanes lanes;
enum { LANES = OTHELLO_LANES, VECTORS = OTHELLO_VECTORS, ROWS = 8 };

static struct {
    lanes adds[ROWS][256][VECTORS]; /* what the own discs of a row add */
    struct {
        uint8_t squares, square[OTHELLO_PATTERN_SQUARES];
    } place[OTHELLO_PLACES];
} table;

/* The places of a pattern are its symmetric ones, each set of squares once. */
static unsigned add_places(const struct othello_pattern *pattern, unsigned place)
{
    uint64_t seen[OTHELLO_SYMMETRIES];
    unsigned count = 0;
    for (unsigned symmetry = 0; symmetry < OTHELLO_SYMMETRIES; symmetry++) {
        uint64_t set = 0;
        bool is_new = true;
        for (unsigned i = 0; i < pattern->squares; i++) {
            set |= othello_bit(othello_symmetric(pattern->square[i], symmetry));
        }
        for (unsigned i = 0; i < count; i++) {
            is_new = is_new && seen[i] != set;
        }
        if (is_new) {
            seen[count++] = set;
            table.place[place].squares = pattern->squares;
            for (unsigned i = 0; i < pattern->squares; i++) {
                table.place[place].square[i] =
                    (uint8_t)othello_symmetric(pattern->square[i], symmetry);
            }
            place++;
        }
    }
    CHECK(count == pattern->places);
    return place;
}

__attribute__((constructor)) static void fill_table(void)
{
    CHECK((uintptr_t)_binary_evaluation_weights_end - (uintptr_t)_binary_evaluation_weights_start ==
          sizeof(struct othello_weights));
    CHECK((uintptr_t)_binary_evaluation_weights_start % _Alignof(struct othello_weights) == 0);
    unsigned places = 0;
    for (unsigned i = 0; i < OTHELLO_PATTERNS; i++) {
        places = add_places(&othello_pattern[i], places);
    }
    CHECK(places == OTHELLO_PLACES);
    for (unsigned place = 0; place < OTHELLO_PLACES; place++) {
        unsigned power = 1;
        for (unsigned i = 0; i < table.place[place].squares; i++, power *= 3) {
            const unsigned square = table.place[place].square[i];
            for (unsigned set = 0; set < 256; set++) {
                if ((set >> square % 8 & 1) != 0) {
                    table.adds[square / 8][set][place / LANES][place % LANES] += (uint16_t)power;
                }
            }
        }
    }
}

static inline void add_up(uint64_t set, lanes sum[VECTORS])
{
    for (unsigned row = 0; row < ROWS; row++) {
        const lanes *adds = table.adds[row][set >> 8 * row & 255];
        for (unsigned i = 0; i < VECTORS; i++) {
            sum[i] += adds[i];
        }
    }
}

static inline void numbers_of(struct othello_board board, lanes number[VECTORS])
{
    lanes other[VECTORS] = {{0}};
    memset(number, 0, sizeof other);
    add_up(board.own, number);
    add_up(board.other, other);
    for (unsigned i = 0; i < VECTORS; i++) {
        number[i] += other[i] + other[i];
    }
}

void othello_place_numbers(struct othello_board board, uint16_t number[OTHELLO_PLACES_ROOM])
{
    lanes found[VECTORS];
    numbers_of(board, found);
    memcpy(number, found, sizeof found);
}

void othello_place_numbers_slowly(struct othello_board board, uint16_t number[OTHELLO_PLACES_ROOM])
{
    memset(number, 0, OTHELLO_PLACES_ROOM * sizeof number[0]);
    for (unsigned place = 0; place < OTHELLO_PLACES; place++) {
        for (unsigned i = table.place[place].squares; i-- > 0;) {
            const unsigned square = table.place[place].square[i];
            number[place] = (uint16_t)(3 * number[place] + (board.own >> square & 1) +
                                       2 * (board.other >> square & 1));
        }
    }
}

/* ---- the value ---- */

static inline unsigned counted(uint64_t moves)
{
    const unsigned count = othello_count(moves);
    return count < OTHELLO_MOVES_COUNTED ? count : OTHELLO_MOVES_COUNTED - 1;
}

static inline int value_of(const struct othello_weights *weights, struct othello_board board,
                           uint64_t own_moves, uint64_t other_moves, const lanes numbers[VECTORS])
{
    uint16_t number[OTHELLO_PLACES_ROOM];
    memcpy(number, numbers, sizeof number);
    const unsigned empties = othello_count(othello_empties(board));
    const struct othello_stage *stage = &weights->stage[othello_stage(empties)];
    int sum = weights->empties[empties % OTHELLO_SQUARES] + stage->moves[0][counted(own_moves)] +
              stage->moves[1][counted(other_moves)];
    unsigned place = 0;
#pragma GCC unroll 11
    for (unsigned i = 0; i < OTHELLO_PATTERNS; i++) {
        const int16_t *weight = &stage->configuration[othello_pattern[i].first];
#pragma GCC unroll 8
        for (unsigned k = 0; k < othello_pattern[i].places; k++) {
            sum += weight[number[place++]];
        }
    }
    return sum > OTHELLO_EVAL_MAX    ? OTHELLO_EVAL_MAX
           : sum < -OTHELLO_EVAL_MAX ? -OTHELLO_EVAL_MAX
                                     : sum;
}

static inline const struct othello_weights *built_in(void)
{
    return (const struct othello_weights *)(const void *)_binary_evaluation_weights_start;
}

int othello_evaluate_by(const struct othello_weights *weights, struct othello_board board)
{
    lanes number[VECTORS];
    numbers_of(board, number);
    return value_of(weights, board, othello_moves(board.own, board.other),
                    othello_moves(board.other, board.own), number);
}

int othello_evaluate(struct othello_board board)
{
    return othello_evaluate_by(built_in(), board);
}

/* ---- from board to board ---- */

void othello_sum(struct othello_board board, struct othello_sums *sums)
{
    memset(sums, 0, sizeof *sums);
    add_up(board.own, sums->own);
    add_up(board.other, sums->other);
}

int othello_evaluate_sums(struct othello_board board, const struct othello_sums *sums)
{
    lanes number[VECTORS];
    for (unsigned i = 0; i < VECTORS; i++) {
        number[i] = sums->own[i] + sums->other[i] + sums->other[i];
    }
    return value_of(built_in(), board, othello_moves(board.own, board.other),
                    othello_moves(board.other, board.own), number);
}

void othello_sum_next(const struct othello_sums *sums, unsigned square, uint64_t flips,
                      struct othello_sums *next)
{
    lanes turned[VECTORS] = {{0}};
    add_up(flips, turned);
    const lanes *placed = table.adds[square / 8][1 << square % 8];
    for (unsigned i = 0; i < VECTORS; i++) {
        next->own[i] = sums->other[i] - turned[i];
        next->other[i] = sums->own[i] + turned[i] + placed[i];
    }
}

int othello_evaluate_next(const struct othello_sums *sums, unsigned square, uint64_t flips,
                          struct othello_board next, uint64_t own_moves, uint64_t other_moves)
{
    lanes turned[VECTORS] = {{0}}, number[VECTORS];
    add_up(flips, turned);
    const lanes *placed = table.adds[square / 8][1 << square % 8];
    for (unsigned i = 0; i < VECTORS; i++) {
        const lanes own = sums->own[i] + placed[i];
        number[i] = sums->other[i] + own + own + turned[i];
    }
    return value_of(built_in(), next, own_moves, other_moves, number);
}
