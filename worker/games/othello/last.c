#include "worker/games/othello/last.h"

#include <stdlib.h>

/* ---- what the last disc turns ---- */

/* Twice the number of discs turned in a line of eight by a disc on square x, where the squares set
 * in y are of its colour, and all others of the other colour: what the difference of discs gains,
 * without the new disc. By x and y. */
static unsigned char turned[8][256];

/* The column and the diagonals through a square, and where it is in them, counted as _pext does. */
static struct lines {
    uint64_t column, falling, rising;
    unsigned char in_row, in_column, in_falling, in_rising;
} lines_of[OTHELLO_SQUARES];

static uint64_t around[OTHELLO_SQUARES]; /* squares next to each */
static unsigned char quadrant[OTHELLO_SQUARES]; /* quadrant of each: a bit */
static uint64_t quadrant_set[16]; /* by the bits of quadrants */

#ifdef __BMI2__
enum { USES_PEXT = 1 };
#else
enum { USES_PEXT = 0 };
#endif

__attribute__((constructor)) static void fill_tables(void)
{
    for (unsigned x = 0; x < 8; x++) {
        for (unsigned y = 0; y < 256; y++) { /* up to the next one on each side, if there is one */
            const unsigned above = y >> (x + 1), below = y & ((1u << x) - 1);
            const unsigned up = above == 0 ? 0 : (unsigned)__builtin_ctz(above);
            const unsigned down = below == 0 ? 0 : x + (unsigned)__builtin_clz(below) - 32;
            turned[x][y] = (unsigned char)(2 * (up + down));
        }
    }
    for (int s = 0; s < OTHELLO_SQUARES; s++) {
        const int row = s / 8, column = s % 8, right = 7 - column;
        struct lines *l = &lines_of[s];
        for (int t = 0; t < OTHELLO_SQUARES; t++) {
            const int down = t / 8 - row, across = t % 8 - column;
            l->column |= across == 0 ? othello_bit((unsigned)t) : 0;
            l->falling |= across == down ? othello_bit((unsigned)t) : 0;
            l->rising |= across == -down ? othello_bit((unsigned)t) : 0;
            around[s] |=
                t != s && abs(down) <= 1 && abs(across) <= 1 ? othello_bit((unsigned)t) : 0;
        }
        l->in_row = (unsigned char)column;
        l->in_column = (unsigned char)row;
        l->in_falling = (unsigned char)(USES_PEXT && row < column ? row : column);
        l->in_rising = (unsigned char)(!USES_PEXT ? column : row < right ? row : right);
        quadrant[s] = (unsigned char)(1 << ((row >= 4) * 2 + (column >= 4)));
        for (unsigned set = 0; set < 16; set++) {
            quadrant_set[set] |= (set & quadrant[s]) != 0 ? othello_bit((unsigned)s) : 0;
        }
    }
}

static inline unsigned line(uint64_t set, uint64_t mask)
{
#ifdef __BMI2__
    return (unsigned)_pext_u64(set, mask);
#else
    return (unsigned)((set & mask) * UINT64_C(0x0101010101010101) >> 56);
#endif
}

static inline unsigned column(uint64_t set, const struct lines *lines)
{
#ifdef __BMI2__
    return (unsigned)_pext_u64(set, lines->column);
#else
    return (unsigned)((set >> lines->in_row & UINT64_C(0x0101010101010101)) *
                          UINT64_C(0x0102040810204080) >>
                      56);
#endif
}

/* Twice the discs turned on the only empty square x, where own are all of one colour. */
static inline int last_turned(uint64_t own, unsigned x)
{
    const struct lines *lines = &lines_of[x];
    return turned[lines->in_row][own >> (x & 56) & 0xff] +
           turned[lines->in_column][column(own, lines)] +
           turned[lines->in_falling][line(own, lines->falling)] +
           turned[lines->in_rising][line(own, lines->rising)];
}

/* ---- one to four empty squares ---- */

/* One empty square; the value from the side of `own`. */
static inline int last_1(uint64_t own, unsigned x, int alpha)
{
    const int without = 2 * (int)othello_count(own) - 62; /* own disc on x, nothing turned */
    const int gain = last_turned(own, x);
    if (gain != 0) {
        return without + gain;
    }
    /* The other side moves, or nobody does and x goes to the winner. */
    const int stay = without > 0 ? without : without - 2;
    if (stay <= alpha) {
        return stay;
    }
    const int loss = last_turned(~own, x);
    return loss != 0 ? without - 2 - loss : stay;
}

static int last_2(uint64_t own, uint64_t other, unsigned x1, unsigned x2, int alpha,
                  unsigned *nodes)
{
    ++*nodes;
    int best = -OTHELLO_SCORE_MAX - 2;
    uint64_t flips;
    if ((around[x1] & other) != 0 && (flips = othello_flips(own, other, x1)) != 0) {
        ++*nodes;
        best = -last_1(other ^ flips, x2, -alpha - 2);
        if (best > alpha) {
            return best;
        }
    }
    if ((around[x2] & other) != 0 && (flips = othello_flips(own, other, x2)) != 0) {
        ++*nodes;
        const int value = -last_1(other ^ flips, x1, -alpha - 2);
        return value > best ? value : best;
    }
    if (best >= -OTHELLO_SCORE_MAX) {
        return best;
    }
    /* A pass: from the other side, whose best is the least here. */
    int worst = OTHELLO_SCORE_MAX + 2;
    if ((around[x1] & own) != 0 && (flips = othello_flips(other, own, x1)) != 0) {
        ++*nodes;
        worst = last_1(own ^ flips, x2, alpha);
        if (worst <= alpha) {
            return worst;
        }
    }
    if ((around[x2] & own) != 0 && (flips = othello_flips(other, own, x2)) != 0) {
        ++*nodes;
        const int value = last_1(own ^ flips, x1, alpha);
        return value < worst ? value : worst;
    }
    return worst <= OTHELLO_SCORE_MAX ? worst
                                      : othello_final_score((struct othello_board){own, other});
}

static int last_3(uint64_t own, uint64_t other, unsigned x1, unsigned x2, unsigned x3, int alpha,
                  unsigned *nodes)
{
    ++*nodes;
    const unsigned q1 = quadrant[x1], q2 = quadrant[x2], q3 = quadrant[x3];
    if (q1 == q3 && q1 != q2) {
        const unsigned x = x1;
        x1 = x2;
        x2 = x;
    } else if (q1 == q2 && q1 != q3) {
        const unsigned x = x1;
        x1 = x3;
        x3 = x;
    }
    for (int passed = 0;; passed = 1) {
        int best = -OTHELLO_SCORE_MAX - 2;
        uint64_t flips;
        if ((around[x1] & other) != 0 && (flips = othello_flips(own, other, x1)) != 0) {
            best = -last_2(other ^ flips, own ^ flips ^ othello_bit(x1), x2, x3, -alpha - 2, nodes);
            if (best > alpha) {
                return passed ? -best : best;
            }
        }
        if ((around[x2] & other) != 0 && (flips = othello_flips(own, other, x2)) != 0) {
            const int value =
                -last_2(other ^ flips, own ^ flips ^ othello_bit(x2), x1, x3, -alpha - 2, nodes);
            if (value > alpha) {
                return passed ? -value : value;
            }
            best = value > best ? value : best;
        }
        if ((around[x3] & other) != 0 && (flips = othello_flips(own, other, x3)) != 0) {
            const int value =
                -last_2(other ^ flips, own ^ flips ^ othello_bit(x3), x1, x2, -alpha - 2, nodes);
            best = value > best ? value : best;
        }
        if (best >= -OTHELLO_SCORE_MAX) {
            return passed ? -best : best;
        }
        if (passed) {
            return -othello_final_score((struct othello_board){own, other});
        }
        const uint64_t turn = own;
        own = other;
        other = turn;
        alpha = -alpha - 2;
    }
}

static int last_4(uint64_t own, uint64_t other, uint64_t empties, int alpha, unsigned *nodes)
{
    ++*nodes;
    /* Squares alone in their quadrant first. */
    unsigned x[4], first = 0, last = 3, q[4], seen = 0, twice = 0, found[4];
    for (unsigned i = 0; i < 4; i++, empties &= empties - 1) {
        found[i] = othello_first(empties);
        q[i] = quadrant[found[i]];
        twice |= seen & q[i];
        seen |= q[i];
    }
    for (unsigned i = 0; i < 4; i++) {
        if ((q[i] & twice) == 0) {
            x[first++] = found[i];
        }
    }
    for (unsigned i = 4; i-- > 0;) {
        if ((q[i] & twice) != 0) {
            x[last--] = found[i];
        }
    }
    for (int passed = 0;; passed = 1) {
        int best = -OTHELLO_SCORE_MAX - 2;
        for (unsigned i = 0; i < 4; i++) {
            if ((around[x[i]] & other) == 0) {
                continue;
            }
            const uint64_t flips = othello_flips(own, other, x[i]);
            if (flips == 0) {
                continue;
            }
            const int value = -last_3(other ^ flips, own ^ flips ^ othello_bit(x[i]), x[i == 0],
                                      x[1 + (i <= 1)], x[2 + (i <= 2)], -alpha - 2, nodes);
            if (value > best) {
                best = value;
                if (best > alpha) {
                    return passed ? -best : best;
                }
            }
        }
        if (best >= -OTHELLO_SCORE_MAX) {
            return passed ? -best : best;
        }
        if (passed) {
            return -othello_final_score((struct othello_board){own, other});
        }
        const uint64_t turn = own;
        own = other;
        other = turn;
        alpha = -alpha - 2;
    }
}

/* ---- five and more ---- */

/* Where so many discs more than the opponent's are wanted, its stable discs may be too many. */
static const signed char stable_alpha[OTHELLO_LAST_MAX + 1] = {99, 99, 99, 99, 99, 10, 12};

static int last_more(uint64_t own, uint64_t other, unsigned empties, unsigned odd, int alpha,
                     unsigned *nodes)
{
    ++*nodes;
    if (alpha >= stable_alpha[empties]) {
        const int most = OTHELLO_SCORE_MAX - 2 * (int)othello_count(othello_stable(other, own));
        if (most <= alpha) {
            return most;
        }
    }
    const uint64_t moves = othello_moves(own, other), free = ~(own | other);
    if (moves == 0) {
        if (othello_moves(other, own) == 0) {
            return othello_final_score((struct othello_board){own, other});
        }
        return -last_more(other, own, empties, odd, -alpha - 2, nodes);
    }
    const uint64_t alone = quadrant_set[odd];
    int best = -OTHELLO_SCORE_MAX - 2;
    const uint64_t group[4] = {moves & alone & othello_corners, moves & alone & ~othello_corners,
                               moves & ~alone & othello_corners, moves & ~alone & ~othello_corners};
    for (unsigned i = 0; i < 4; i++) {
        for (uint64_t rest = group[i]; rest != 0; rest &= rest - 1) {
            const unsigned x = othello_first(rest);
            const uint64_t flips = othello_flips(own, other, x);
            const uint64_t next_own = other ^ flips, next_other = own ^ flips ^ othello_bit(x);
            const int value = empties == 5 ? -last_4(next_own, next_other, free ^ othello_bit(x),
                                                     -alpha - 2, nodes)
                                           : -last_more(next_own, next_other, empties - 1,
                                                        odd ^ quadrant[x], -alpha - 2, nodes);
            if (value > best) {
                best = value;
                if (best > alpha) {
                    return best;
                }
            }
        }
    }
    return best;
}

int othello_last(struct othello_board board, unsigned empties, int alpha, unsigned *nodes)
{
    uint64_t free = othello_empties(board);
    unsigned x[3] = {0};
    if (empties > 4) {
        unsigned odd = 0;
        for (unsigned i = 0; i < 4; i++) {
            odd |= (othello_count(free & quadrant_set[1u << i]) & 1) << i;
        }
        return last_more(board.own, board.other, empties, odd, alpha, nodes);
    }
    if (empties == 4) {
        return last_4(board.own, board.other, free, alpha, nodes);
    }
    for (unsigned i = 0; free != 0; i++, free &= free - 1) {
        x[i] = othello_first(free);
    }
    switch (empties) {
    case 3:
        return last_3(board.own, board.other, x[0], x[1], x[2], alpha, nodes);
    case 2:
        return last_2(board.own, board.other, x[0], x[1], alpha, nodes);
    case 1:
        ++*nodes;
        return last_1(board.own, x[0], alpha);
    default:
        ++*nodes;
        return othello_final_score(board);
    }
}
