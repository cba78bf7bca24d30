/* bitboard: sets of squares in 64 bits (a1 = bit 0, h8 = bit 63) and what each piece attacks.
 *
 * Sliders index one table of precomputed sets by the occupied squares on their lines: gathered
 * with PEXT where the machine has BMI2, else hashed by "fancy" magic multiplication (Chess
 * Programming Wiki, "Magic Bitboards"). -DCHESS_MAGIC forces the latter.
 * Threads: any; the tables are filled once before main() and only read afterwards.
 * Memory: static, about 900 kB. */
#ifndef WORKER_GAMES_CHESS_BITBOARD_H
#define WORKER_GAMES_CHESS_BITBOARD_H

#include <stdint.h>

#if defined(__BMI2__) && !defined(CHESS_MAGIC)
#define BITBOARD_PEXT 1
#include <immintrin.h>
#else
#define BITBOARD_PEXT 0
#endif

/* For code written once and compiled for each colour: the colour must arrive as a constant. */
#define BITBOARD_INLINE static inline __attribute__((always_inline))

enum { CHESS_WHITE, CHESS_BLACK };

#define BITBOARD_FILE_A UINT64_C(0x0101010101010101)
#define BITBOARD_FILE_H UINT64_C(0x8080808080808080)
#define BITBOARD_RANK_1 UINT64_C(0x00000000000000ff)
#define BITBOARD_RANK_8 UINT64_C(0xff00000000000000)

struct bitboard_slider {
    uint64_t mask; /* the squares whose occupation matters */
    const uint64_t *sets;
#if !BITBOARD_PEXT
    uint64_t magic;
    unsigned shift;
#endif
};

struct bitboard_tables {
    uint64_t pawn[2][64]; /* captures of a pawn of this colour */
    uint64_t knight[64];
    uint64_t king[64];
    struct bitboard_slider rook[64];
    struct bitboard_slider bishop[64];
    uint64_t between[64][64]; /* strictly between two squares on one line, else empty */
};

extern struct bitboard_tables bitboard_tables;

BITBOARD_INLINE uint64_t bitboard_of(unsigned square)
{
    return UINT64_C(1) << square;
}

BITBOARD_INLINE unsigned bitboard_count(uint64_t set)
{
    return (unsigned)__builtin_popcountll(set);
}

/* The lowest square of a set that is not empty. */
BITBOARD_INLINE unsigned bitboard_first(uint64_t set)
{
    return (unsigned)__builtin_ctzll(set);
}

/* Takes the lowest square out of a set that is not empty. */
BITBOARD_INLINE unsigned bitboard_pop(uint64_t *set)
{
    unsigned square = bitboard_first(*set);
    *set &= *set - 1;
    return square;
}

/* The place of a set of occupied squares in the slider's sets. */
BITBOARD_INLINE uint64_t bitboard_index(const struct bitboard_slider *slider, uint64_t occupied)
{
#if BITBOARD_PEXT
    return _pext_u64(occupied, slider->mask);
#else
    return ((occupied & slider->mask) * slider->magic) >> slider->shift;
#endif
}

BITBOARD_INLINE uint64_t bitboard_rook(unsigned square, uint64_t occupied)
{
    const struct bitboard_slider *slider = &bitboard_tables.rook[square];
    return slider->sets[bitboard_index(slider, occupied)];
}

BITBOARD_INLINE uint64_t bitboard_bishop(unsigned square, uint64_t occupied)
{
    const struct bitboard_slider *slider = &bitboard_tables.bishop[square];
    return slider->sets[bitboard_index(slider, occupied)];
}

/* Moves of a king from one square to another. */
BITBOARD_INLINE int bitboard_distance(unsigned a, unsigned b)
{
    int files = (int)(a & 7) - (int)(b & 7), ranks = (int)(a >> 3) - (int)(b >> 3);
    files = files < 0 ? -files : files;
    ranks = ranks < 0 ? -ranks : ranks;
    return files > ranks ? files : ranks;
}

/* One step towards the opponent. */
BITBOARD_INLINE uint64_t bitboard_forward(uint64_t set, unsigned colour)
{
    return colour == CHESS_WHITE ? set << 8 : set >> 8;
}

/* One step towards the opponent and the a-file, or the h-file. */
BITBOARD_INLINE uint64_t bitboard_forward_west(uint64_t set, unsigned colour)
{
    set &= ~BITBOARD_FILE_A;
    return colour == CHESS_WHITE ? set << 7 : set >> 9;
}

BITBOARD_INLINE uint64_t bitboard_forward_east(uint64_t set, unsigned colour)
{
    set &= ~BITBOARD_FILE_H;
    return colour == CHESS_WHITE ? set << 9 : set >> 7;
}

/* All squares attacked by a set of pawns. */
BITBOARD_INLINE uint64_t bitboard_pawns(uint64_t set, unsigned colour)
{
    return bitboard_forward_west(set, colour) | bitboard_forward_east(set, colour);
}

/* The squares to the left and to the right. */
BITBOARD_INLINE uint64_t bitboard_sideways(uint64_t set)
{
    return (set & ~BITBOARD_FILE_A) >> 1 | (set & ~BITBOARD_FILE_H) << 1;
}

/* All squares attacked by a set of kings. */
BITBOARD_INLINE uint64_t bitboard_kings(uint64_t set)
{
    const uint64_t beside = bitboard_sideways(set), row = set | beside;
    return beside | row << 8 | row >> 8;
}

/* All squares attacked by a set of knights. */
BITBOARD_INLINE uint64_t bitboard_knights(uint64_t set)
{
    uint64_t one = bitboard_sideways(set);
    uint64_t two =
        ((set & ~(BITBOARD_FILE_A * 3)) >> 2) | ((set & ~(BITBOARD_FILE_H / 2 * 3)) << 2);
    return one << 16 | one >> 16 | two << 8 | two >> 8;
}

/* What a slider attacks, step by step. The tables are built from it and tested against it. */
uint64_t bitboard_slow_rook(unsigned square, uint64_t occupied);
uint64_t bitboard_slow_bishop(unsigned square, uint64_t occupied);

#endif
