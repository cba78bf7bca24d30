/* board: an Othello board as two sets of squares, and what a move does to it.
 *
 * Bit i of a set is the square a1 b1 ... h1 a2 ... h8, row 1 at the top. A board is seen from the
 * side to move: `own` are its discs, `other` its opponent's. No square is in both.
 *
 * Threads: any. Memory: none. Pure. With AVX2 four directions are computed at once; else one after
 * the other. */
#ifndef WORKER_GAMES_OTHELLO_BOARD_H
#define WORKER_GAMES_OTHELLO_BOARD_H

#include <stdbool.h>
#include <stdint.h>
#ifdef __AVX2__
#include <immintrin.h>
#endif

enum {
    OTHELLO_SQUARES = 64,
    OTHELLO_PASSED = OTHELLO_SQUARES, /* a pass, where a move is a square */
    OTHELLO_SCORE_MAX = 64, /* discs */
    OTHELLO_WHY_MAX = 96,
};

struct othello_board {
    uint64_t own, other;
};

/* The squares in a line from each square, without it: four directions to higher bits (right, down,
 * down and right, down and left), then the four opposite ones. */
struct othello_rays {
    _Alignas(32) uint64_t up[4], down[4];
};
extern struct othello_rays othello_rays[OTHELLO_SQUARES];

static const uint64_t othello_corners = UINT64_C(0x8100000000000081);

static inline uint64_t othello_bit(unsigned square)
{
    return UINT64_C(1) << square;
}

static inline unsigned othello_count(uint64_t set)
{
    return (unsigned)__builtin_popcountll(set);
}

static inline unsigned othello_first(uint64_t set) /* not empty */
{
    return (unsigned)__builtin_ctzll(set);
}

static inline uint64_t othello_empties(struct othello_board b)
{
    return ~(b.own | b.other);
}

/* A set of squares as a search keeps it that computes four directions at once: in each lane of a
 * vector, where the processor has them. The operators of sets work on it. */
#ifdef __AVX2__
typedef __m256i othello_wide;
#else
typedef uint64_t othello_wide;
#endif

static inline othello_wide othello_widen(uint64_t set)
{
#ifdef __AVX2__
    return _mm256_set1_epi64x((long long)set);
#else
    return set;
#endif
}

static inline uint64_t othello_narrow(othello_wide set)
{
#ifdef __AVX2__
    return (uint64_t)_mm_cvtsi128_si64(_mm256_castsi256_si128(set));
#else
    return set;
#endif
}

/* The squares where `own` may place a disc. */
static inline uint64_t othello_moves_wide(othello_wide own, othello_wide other)
{
#ifdef __AVX2__
    const __m256i step = _mm256_set_epi64x(7, 9, 8, 1), twice = _mm256_set_epi64x(14, 18, 16, 2);
    const long long inner = 0x7e7e7e7e7e7e7e7e;
    const __m256i between = _mm256_and_si256(other, _mm256_set_epi64x(inner, inner, -1, inner));
    __m256i up = _mm256_and_si256(between, _mm256_sllv_epi64(own, step));
    __m256i down = _mm256_and_si256(between, _mm256_srlv_epi64(own, step));
    up = _mm256_or_si256(up, _mm256_and_si256(between, _mm256_sllv_epi64(up, step)));
    down = _mm256_or_si256(down, _mm256_and_si256(between, _mm256_srlv_epi64(down, step)));
    const __m256i pair_up = _mm256_and_si256(between, _mm256_sllv_epi64(between, step));
    const __m256i pair_down = _mm256_srlv_epi64(pair_up, step);
    up = _mm256_or_si256(up, _mm256_and_si256(pair_up, _mm256_sllv_epi64(up, twice)));
    down = _mm256_or_si256(down, _mm256_and_si256(pair_down, _mm256_srlv_epi64(down, twice)));
    up = _mm256_or_si256(up, _mm256_and_si256(pair_up, _mm256_sllv_epi64(up, twice)));
    down = _mm256_or_si256(down, _mm256_and_si256(pair_down, _mm256_srlv_epi64(down, twice)));
    const __m256i all = _mm256_or_si256(_mm256_sllv_epi64(up, step), _mm256_srlv_epi64(down, step));
    const __m128i half =
        _mm_or_si128(_mm256_castsi256_si128(all), _mm256_extracti128_si256(all, 1));
    const uint64_t found = (uint64_t)_mm_cvtsi128_si64(half) | (uint64_t)_mm_extract_epi64(half, 1);
    return found & ~othello_narrow(_mm256_or_si256(own, other));
#else
    static const unsigned steps[4] = {1, 8, 9, 7};
    uint64_t found = 0, inner = other & UINT64_C(0x7e7e7e7e7e7e7e7e);
    for (unsigned i = 0; i < 4; i++) {
        const unsigned step = steps[i];
        const uint64_t between = step == 8 ? other : inner;
        uint64_t up = between & own << step, down = between & own >> step;
        up |= between & up << step;
        down |= between & down >> step;
        const uint64_t pair_up = between & between << step, pair_down = pair_up >> step;
        up |= pair_up & up << 2 * step;
        down |= pair_down & down >> 2 * step;
        up |= pair_up & up << 2 * step;
        down |= pair_down & down >> 2 * step;
        found |= up << step | down >> step;
    }
    return found & ~(own | other);
#endif
}

static inline uint64_t othello_moves(uint64_t own, uint64_t other)
{
    return othello_moves_wide(othello_widen(own), othello_widen(other));
}

/* The discs of `other` that a disc of `own` on the empty square turns; 0: it is no move. By the
 * instructions that every processor has. */
static inline uint64_t othello_flips_plainly(uint64_t own, uint64_t other, unsigned square)
{
    const struct othello_rays *rays = &othello_rays[square];
    uint64_t flips = 0;
    for (unsigned i = 0; i < 4; i++) {
        const uint64_t up = rays->up[i], down = rays->down[i];
        const uint64_t end = ((other | ~up) + 1) & own & up;
        flips |= end != 0 ? (end - 1) & up : 0;
        const uint64_t rest = down & ~other;
        if (rest != 0) {
            const unsigned last = 63 - (unsigned)__builtin_clzll(rest);
            flips |= (own >> last & 1) != 0 ? down & (UINT64_MAX << last << 1) : 0;
        }
    }
    return flips;
}

/* As othello_flips_plainly. */
static inline othello_wide othello_flips_wide(othello_wide own, othello_wide other, unsigned square)
{
#ifdef __AVX2__
    const struct othello_rays *rays = &othello_rays[square];
    const __m256i zero = _mm256_setzero_si256(), ones = _mm256_set1_epi64x(-1);
    /* Upwards the lowest square that is none of theirs must be an own disc. */
    const __m256i up = _mm256_load_si256((const __m256i *)rays->up);
    __m256i end = _mm256_sub_epi64(zero, _mm256_andnot_si256(other, up));
    end = _mm256_and_si256(end, _mm256_and_si256(own, up));
    const __m256i above = _mm256_andnot_si256(_mm256_cmpeq_epi64(end, zero),
                                              _mm256_and_si256(up, _mm256_add_epi64(end, ones)));
    /* Downwards the highest own disc must be higher than the highest empty square. */
    const __m256i down = _mm256_load_si256((const __m256i *)rays->down);
    const __m256i mine = _mm256_and_si256(own, down);
    const __m256i free = _mm256_andnot_si256(_mm256_or_si256(own, other), down);
    const __m256i between = _mm256_and_si256(down, _mm256_cmpgt_epi64(mine, free));
#if defined(__AVX512CD__) && defined(__AVX512VL__)
    const __m256i filled = _mm256_srlv_epi64(ones, _mm256_lzcnt_epi64(mine));
#else
    const __m256i step = _mm256_set_epi64x(7, 9, 8, 1), twice = _mm256_set_epi64x(14, 18, 16, 2);
    const __m256i four = _mm256_set_epi64x(28, 36, 32, 4);
    __m256i filled = _mm256_or_si256(mine, _mm256_and_si256(down, _mm256_srlv_epi64(mine, step)));
    filled = _mm256_or_si256(filled, _mm256_and_si256(down, _mm256_srlv_epi64(filled, twice)));
    filled = _mm256_or_si256(filled, _mm256_srlv_epi64(filled, four));
#endif
    __m256i flips = _mm256_or_si256(above, _mm256_andnot_si256(filled, between));
    flips = _mm256_or_si256(flips, _mm256_permute4x64_epi64(flips, 0x4e));
    return _mm256_or_si256(flips, _mm256_shuffle_epi32(flips, 0x4e));
#else
    return othello_flips_plainly(own, other, square);
#endif
}

static inline uint64_t othello_flips(uint64_t own, uint64_t other, unsigned square)
{
    return othello_narrow(othello_flips_wide(othello_widen(own), othello_widen(other), square));
}

/* The board after a disc on `square` that turns `flips`, from the other side. */
static inline struct othello_board othello_play(struct othello_board b, unsigned square,
                                                uint64_t flips)
{
    return (struct othello_board){b.other ^ flips, b.own ^ flips ^ othello_bit(square)};
}

static inline struct othello_board othello_pass(struct othello_board b)
{
    return (struct othello_board){b.other, b.own};
}

static inline uint64_t othello_quadrant(unsigned square)
{
    return UINT64_C(0x0f0f0f0f) << (square & 36);
}

/* The squares of quadrants with an odd number of empty ones. */
static inline uint64_t othello_odd_quadrants(uint64_t empties)
{
    uint64_t odd = 0;
    for (unsigned i = 0; i < 4; i++) {
        const uint64_t quadrant = othello_quadrant(i % 2 * 4 + i / 2 * 32);
        odd |= (othello_count(empties & quadrant) & 1) != 0 ? quadrant : 0;
    }
    return odd;
}

/* When neither side can move: the difference of discs, empty squares counted for the winner. */
static inline int othello_final_score(struct othello_board b)
{
    const int own = (int)othello_count(b.own), other = (int)othello_count(b.other);
    const int empties = OTHELLO_SQUARES - own - other;
    return own > other ? own - other + empties : own < other ? own - other - empties : 0;
}

/* Discs of `own` that can never be turned again, whatever is played; not all that there are: those
 * in four full lines, and those that lean in every other direction on the border or on such a disc.
 */
uint64_t othello_stable(uint64_t own, uint64_t other);

/* A hash of the board. Symmetric boards have unlike ones. */
uint64_t othello_hash(struct othello_board b);

/* Reads 64 squares (X * or b: black; O 0 or w: white; - . or _: empty), spaces between or not, and
 * then the side to move (X O b w); what follows a ';' is not read. On failure false and one line in
 * `why`. `is_black`: whether black is to move. */
bool othello_parse(const char *text, struct othello_board *board, bool *is_black,
                   char why[OTHELLO_WHY_MAX]);
/* Reads the move that the text begins with, a square ("d3", "D3") or a pass ("PA", "PS", "pass",
 * "--"), and moves the text behind it. -1: there is none, and the text stays. */
int othello_read_move(const char **text);
/* 64 characters X O -, a space, X or O; and the end: 67 bytes. */
void othello_format(struct othello_board board, bool is_black, char text[67]);

#endif
