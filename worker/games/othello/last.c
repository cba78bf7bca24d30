#include "worker/games/othello/last.h"

/* ---- what the last disc turns ---- */

/* The gain of a disc on square x in a line of squares first..last, by what is set of the others:
 * twice the number of discs turned. The low byte is for a disc of the colour that is set, the high
 * byte for the other colour. By first, last, x. */
static uint16_t gains[8][8][8][256];

/* The column and the diagonals through a square, and the gains in its row and in these. */
static struct lines {
    uint64_t column, falling, rising;
    const uint16_t *gains[4];
} lines_of[OTHELLO_SQUARES];

/* The squares of a line as the low bits. */
static inline unsigned line(uint64_t set, uint64_t mask)
{
#ifdef __BMI2__
    return (unsigned)_pext_u64(set, mask);
#else
    return (unsigned)((set & mask) * UINT64_C(0x0101010101010101) >> 56);
#endif
}

static inline unsigned line_of_column(uint64_t set, uint64_t mask)
{
#ifdef __BMI2__
    return line(set, mask);
#else
    return (unsigned)(((set & mask) >> othello_first(mask)) * UINT64_C(0x0102040810204080) >> 56);
#endif
}

/* Up to the next one on each side, if there is one. */
static unsigned turned(unsigned x, unsigned own)
{
    const unsigned above = own >> (x + 1), below = own & ((1u << x) - 1);
    const unsigned up = above == 0 ? 0 : (unsigned)__builtin_ctz(above);
    const unsigned down = below == 0 ? 0 : x + (unsigned)__builtin_clz(below) - 32;
    return 2 * (up + down);
}

static const uint16_t *gains_of(unsigned all, unsigned x)
{
    return gains[__builtin_ctz(all)][31 - __builtin_clz(all)][__builtin_ctz(x)];
}

__attribute__((constructor)) static void fill_tables(void)
{
    for (unsigned i = 0; i < 8 * 8 * 8 * 256; i++) {
        const unsigned own = i & 255, x = i >> 8 & 7, last = i >> 11 & 7, first = i >> 14;
        const unsigned all = (2u << last) - (1u << first);
        if (first <= x && x <= last) {
            gains[first][last][x][own] =
                (uint16_t)(turned(x, own & all) | turned(x, ~own & all) << 8);
        }
    }
    for (int s = 0; s < OTHELLO_SQUARES; s++) {
        const int row = s / 8, column = s % 8;
        const uint64_t bit = othello_bit((unsigned)s), all = UINT64_MAX;
        struct lines *l = &lines_of[s];
        for (int t = 0; t < OTHELLO_SQUARES; t++) {
            const int down = t / 8 - row, across = t % 8 - column;
            l->column |= across == 0 ? othello_bit((unsigned)t) : 0;
            l->falling |= across == down ? othello_bit((unsigned)t) : 0;
            l->rising |= across == -down ? othello_bit((unsigned)t) : 0;
        }
        l->gains[0] = gains_of(255, 1u << column);
        l->gains[1] = gains_of(255, 1u << row);
        l->gains[2] = gains_of(line(all, l->falling), line(bit, l->falling));
        l->gains[3] = gains_of(line(all, l->rising), line(bit, l->rising));
    }
}

/* ---- one to four empty squares ---- */

enum { NO_VALUE = -OTHELLO_SCORE_MAX - 2 }; /* below every value */

/* One empty square; the value from the side of `own`. */
static inline int last_1(uint64_t own, unsigned x)
{
    const struct lines *lines = &lines_of[x];
    unsigned both = lines->gains[0][own >> (x & 56) & 0xff];
    both += lines->gains[1][line_of_column(own, lines->column)];
    both += lines->gains[2][line(own, lines->falling)];
    both += lines->gains[3][line(own, lines->rising)];
    const int gain = both & 0xff, loss = both >> 8;
    const int without = 2 * (int)othello_count(own) - 62; /* own disc on x, nothing turned */
    /* Else the other side moves, or nobody does and x goes to the winner. */
    const int left = without - loss - 2 * ((loss != 0) | (without <= 0));
    return gain != 0 ? without + gain : left;
}

static int final_score(othello_wide own, othello_wide other)
{
    return othello_final_score((struct othello_board){othello_narrow(own), othello_narrow(other)});
}

static inline othello_wide bit_of(unsigned x)
{
    return othello_widen(othello_bit(x));
}

static int passed_2(othello_wide own, othello_wide other, unsigned x1, unsigned x2, int alpha,
                    unsigned *nodes);

/* `passed`: the other side cannot move; the board has been counted. */
static int last_2(othello_wide own, othello_wide other, unsigned x1, unsigned x2, int alpha,
                  unsigned *nodes, bool passed)
{
    *nodes += !passed;
    int best = NO_VALUE;
    const uint64_t flips1 = othello_narrow(othello_flips_wide(own, other, x1));
    const uint64_t flips2 = othello_narrow(othello_flips_wide(own, other, x2));
    const uint64_t theirs = othello_narrow(other);
    if (flips1 != 0) {
        ++*nodes;
        best = -last_1(theirs ^ flips1, x2);
        if (best > alpha) {
            return best;
        }
    }
    if (flips2 != 0) {
        ++*nodes;
        const int value = -last_1(theirs ^ flips2, x1);
        return value > best ? value : best;
    }
    return best != NO_VALUE ? best
           : passed         ? final_score(own, other)
                            : -passed_2(other, own, x1, x2, -alpha - 2, nodes);
}

/* Not a part of last_2, which needs fewer registers without. */
__attribute__((noinline)) static int passed_2(othello_wide own, othello_wide other, unsigned x1,
                                              unsigned x2, int alpha, unsigned *nodes)
{
    return last_2(own, other, x1, x2, alpha, nodes, true);
}

static int last_3(othello_wide own, othello_wide other, unsigned x1, unsigned x2, unsigned x3,
                  int alpha, unsigned *nodes, bool passed)
{
    *nodes += !passed;
    int best = NO_VALUE;
    for (unsigned i = 0; i < 3; i++) {
        const othello_wide flips = othello_flips_wide(own, other, x1);
        if (othello_narrow(flips) != 0) {
            const int value =
                -last_2(other ^ flips, own ^ flips ^ bit_of(x1), x2, x3, -alpha - 2, nodes, false);
            best = value > best ? value : best;
            if (best > alpha) {
                return best;
            }
        }
        const unsigned x = x1;
        x1 = x2;
        x2 = x3;
        x3 = x;
    }
    return best != NO_VALUE ? best
           : passed         ? final_score(own, other)
                            : -last_3(other, own, x1, x2, x3, -alpha - 2, nodes, true);
}

/* Squares alone in their quadrant first. */
static inline int last_3_in_order(othello_wide own, othello_wide other, unsigned x1, unsigned x2,
                                  unsigned x3, int alpha, unsigned *nodes)
{
    const bool is_3 = ((x1 ^ x2) & 36) == 0, is_2 = ((x1 ^ x3) & 36) == 0;
    const unsigned first = is_3 ? x3 : is_2 ? x2 : x1, second = is_2 && !is_3 ? x1 : x2;
    const unsigned third = x1 ^ x2 ^ x3 ^ first ^ second;
    return last_3(own, other, first, second, third, alpha, nodes, false);
}

/* The squares are bytes of x, the first one the lowest. */
static int last_4(othello_wide own, othello_wide other, unsigned x, int alpha, unsigned *nodes,
                  bool passed)
{
    *nodes += !passed;
    int best = NO_VALUE;
    for (unsigned i = 0; i < 4; i++) {
        const unsigned x1 = x & 63;
        const othello_wide flips = othello_flips_wide(own, other, x1);
        if (othello_narrow(flips) != 0) {
            const int value = -last_3_in_order(other ^ flips, own ^ flips ^ bit_of(x1), x >> 8 & 63,
                                               x >> 16 & 63, x >> 24, -alpha - 2, nodes);
            best = value > best ? value : best;
            if (best > alpha) {
                return best;
            }
        }
        x = x >> 8 | x << 24;
    }
    return best != NO_VALUE ? best
           : passed         ? final_score(own, other)
                            : -last_4(other, own, x, -alpha - 2, nodes, true);
}

/* Four squares as last_4 wants them, those alone in their quadrant first. */
static inline unsigned in_order(uint64_t empties)
{
    uint64_t seen = 0, twice = 0, rest = empties;
    for (unsigned i = 0; i < 4; i++, rest &= rest - 1) {
        const uint64_t quadrant = othello_quadrant(othello_first(rest));
        twice |= seen & quadrant;
        seen |= quadrant;
    }
    uint64_t sooner = empties & ~twice, later = empties & twice;
    unsigned x = 0;
    for (unsigned shift = 0; shift < 32; shift += 8) {
        x |= othello_first(sooner != 0 ? sooner : later) << shift;
        later = sooner != 0 ? later : later & (later - 1);
        sooner &= sooner - 1;
    }
    return x;
}

/* ---- five and more ---- */

/* Where so many discs more than the opponent's are wanted, its stable discs may be too many. */
static const signed char stable_alpha[OTHELLO_LAST_MAX + 1] = {99, 99, 99, 99, 99, 10, 12};

/* `odd`: the squares of quadrants with an odd number of empty ones. */
static int last_5(othello_wide own, othello_wide other, uint64_t odd, int alpha, unsigned *nodes,
                  bool passed);

/* The best of all moves, or NO_VALUE. */
static inline int best_of_more(othello_wide own, othello_wide other, unsigned empties, uint64_t odd,
                               int alpha, unsigned *nodes, bool passed)
{
    *nodes += !passed;
    if (alpha >= stable_alpha[empties]) {
        const uint64_t stable = othello_stable(othello_narrow(other), othello_narrow(own));
        const int most = OTHELLO_SCORE_MAX - 2 * (int)othello_count(stable);
        if (most <= alpha) {
            return most;
        }
    }
    int best = NO_VALUE;
    for (uint64_t moves = othello_moves_wide(own, other); moves != 0;) {
        const uint64_t sooner = (moves & odd) != 0 ? moves & odd : moves;
        const uint64_t corners = sooner & othello_corners;
        const unsigned x = othello_first(corners != 0 ? corners : sooner);
        moves ^= othello_bit(x);
        const othello_wide flips = othello_flips_wide(own, other, x);
        const othello_wide next_own = other ^ flips, next_other = own ^ flips ^ bit_of(x);
        const int value = empties == 5 ? -last_4(next_own, next_other,
                                                 in_order(~othello_narrow(next_own | next_other)),
                                                 -alpha - 2, nodes, false)
                                       : -last_5(next_own, next_other, odd ^ othello_quadrant(x),
                                                 -alpha - 2, nodes, false);
        best = value > best ? value : best;
        if (best > alpha) {
            return best;
        }
    }
    return best;
}

static int last_5(othello_wide own, othello_wide other, uint64_t odd, int alpha, unsigned *nodes,
                  bool passed)
{
    const int best = best_of_more(own, other, 5, odd, alpha, nodes, passed);
    return best != NO_VALUE ? best
           : passed         ? final_score(own, other)
                            : -last_5(other, own, odd, -alpha - 2, nodes, true);
}

static int last_6(othello_wide own, othello_wide other, uint64_t odd, int alpha, unsigned *nodes,
                  bool passed)
{
    const int best = best_of_more(own, other, 6, odd, alpha, nodes, passed);
    return best != NO_VALUE ? best
           : passed         ? final_score(own, other)
                            : -last_6(other, own, odd, -alpha - 2, nodes, true);
}

int othello_last(struct othello_board board, unsigned empties, int alpha, unsigned *nodes)
{
    uint64_t free = othello_empties(board);
    const othello_wide own = othello_widen(board.own), other = othello_widen(board.other);
    unsigned x[3] = {0};
    if (empties > 4) {
        const uint64_t odd = othello_odd_quadrants(free);
        return empties == 5 ? last_5(own, other, odd, alpha, nodes, false)
                            : last_6(own, other, odd, alpha, nodes, false);
    }
    if (empties == 4) {
        return last_4(own, other, in_order(free), alpha, nodes, false);
    }
    for (unsigned i = 0; free != 0; i++, free &= free - 1) {
        x[i] = othello_first(free);
    }
    switch (empties) {
    case 3:
        return last_3(own, other, x[0], x[1], x[2], alpha, nodes, false);
    case 2:
        return last_2(own, other, x[0], x[1], alpha, nodes, false);
    case 1:
        ++*nodes;
        return last_1(board.own, x[0]);
    default:
        ++*nodes;
        return othello_final_score(board);
    }
}
