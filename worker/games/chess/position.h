/* position: a chess position, its keys, and moves made and taken back on it.
 *
 * Moves are 16 bits: from | to << 6 | kind << 12, squares a1 = 0 ... h8 = 63; castling is the
 * king's move to the file c or g. The en-passant square is kept, and enters the key, only while
 * some en-passant capture is legal, so positions with the same moves have the same key (FIDE
 * Laws, 9.2.3). Threads: two threads may use two positions. Memory: never allocates; copying the
 * bytes copies the position with its history. Nothing blocks. */
#ifndef WORKER_GAMES_CHESS_POSITION_H
#define WORKER_GAMES_CHESS_POSITION_H

#include "worker/games/chess/bitboard.h"
#include "worker/games/game.h"

#include <stdbool.h>
#include <stdint.h>

/* A middlegame and an endgame number packed in 32 bits, which add as one (the endgame half borrows;
 * CHESS_MG and CHESS_EG undo that). Both halves stay within 16 bits. */
#define CHESS_SCORE(mg, eg) ((int32_t)((eg)*65536 + (mg)))
#define CHESS_MG(score) ((int)(int16_t)(uint16_t)(uint32_t)(score))
#define CHESS_EG(score) ((int)(int16_t)(uint16_t)(((uint32_t)(score) + 0x8000u) >> 16))

/* A set's index is colour << 3 | kind; on the board the same number names the piece. */
enum chess_kind {
    CHESS_PAWN,
    CHESS_KNIGHT,
    CHESS_BISHOP,
    CHESS_ROOK,
    CHESS_QUEEN,
    CHESS_KING,
    CHESS_ALL, /* the set of all pieces of a colour */
    CHESS_EMPTY, /* on the board only */
};

enum chess_move_kind {
    CHESS_QUIET,
    CHESS_DOUBLE,
    CHESS_SHORT,
    CHESS_LONG,
    CHESS_CAPTURE, /* this bit: something is captured */
    CHESS_EN_PASSANT,
    CHESS_PROMOTION = 8, /* this bit: a promotion; the low two bits: knight, bishop, rook, queen */
    CHESS_TO_QUEEN = 11,
};

enum { CHESS_WHITE_SHORT = 1, CHESS_WHITE_LONG = 2, CHESS_BLACK_SHORT = 4, CHESS_BLACK_LONG = 8 };
enum { CHESS_NO_SQUARE = 64 };
/* Halfmoves without capture or pawn move: a draw; and from where on they are part of what a search
 * takes positions for equal by (counted_key in game.h). */
enum { CHESS_HALFMOVES_DRAWN = 100, CHESS_HALFMOVES_COUNTED = 60 };

struct chess_undo {
    uint64_t key; /* key of the position the move was made in */
    int32_t score;
    uint16_t halfmoves, reversible;
    uint8_t castling, ep, captured;
};

struct chess_position {
    uint64_t set[16];
    uint8_t board[64];
    uint64_t key;
    int32_t score; /* piece-square sum, white minus black: a CHESS_SCORE */
    uint16_t halfmoves; /* since the last capture or pawn move */
    uint16_t reversible; /* made here, and since the last capture, pawn move or null move */
    uint16_t fullmove;
    uint16_t ply; /* entries of `undo` in use */
    uint8_t side, castling, ep;
    /* fixed: where the rooks of the castling rights stand, in the order of the bits, and the rights
     * that survive a move from or to a square */
    bool chess960; /* castling is written as the king's move to its rook's square, and rights as the
                      rook's file (Shredder-FEN) */
    bool is_unreal; /* a side has more promoted pieces than a game can have */
    uint8_t rook_home[4];
    uint8_t rights_kept[64];
    struct chess_undo undo[GAME_UNDO_MAX];
};

BITBOARD_INLINE unsigned chess_move_from(unsigned move)
{
    return move & 63;
}

BITBOARD_INLINE unsigned chess_move_to(unsigned move)
{
    return move >> 6 & 63;
}

BITBOARD_INLINE unsigned chess_move_kind(unsigned move)
{
    return move >> 12;
}

BITBOARD_INLINE uint16_t chess_move_pack(unsigned from, unsigned to, unsigned kind)
{
    return (uint16_t)(from | to << 6 | kind << 12);
}

BITBOARD_INLINE unsigned chess_move_promoted(unsigned move)
{
    return CHESS_KNIGHT + (move >> 12 & 3);
}

BITBOARD_INLINE uint64_t chess_set(const struct chess_position *position, unsigned colour,
                                   unsigned kind)
{
    return position->set[colour << 3 | kind];
}

/* Pieces of both colours. */
BITBOARD_INLINE uint64_t chess_both(const struct chess_position *position, unsigned kind)
{
    return position->set[kind] | position->set[8 | kind];
}

BITBOARD_INLINE uint64_t chess_occupied(const struct chess_position *position)
{
    return chess_both(position, CHESS_ALL);
}

BITBOARD_INLINE unsigned chess_king(const struct chess_position *position, unsigned colour)
{
    return bitboard_first(chess_set(position, colour, CHESS_KING));
}

/* Pieces of `by` that attack the square when `occupied` squares stop sliders. */
BITBOARD_INLINE uint64_t chess_attackers(const struct chess_position *position, unsigned square,
                                         unsigned by, uint64_t occupied)
{
    const uint64_t *set = &position->set[by << 3];
    return (bitboard_tables.pawn[by ^ 1][square] & set[CHESS_PAWN]) |
           (bitboard_tables.knight[square] & set[CHESS_KNIGHT]) |
           (bitboard_tables.king[square] & set[CHESS_KING]) |
           (bitboard_rook(square, occupied) & (set[CHESS_ROOK] | set[CHESS_QUEEN])) |
           (bitboard_bishop(square, occupied) & (set[CHESS_BISHOP] | set[CHESS_QUEEN]));
}

/* Pawns of `colour` that may legally capture en passant on `ep`. */
uint64_t chess_position_ep_pawns(const struct chess_position *position, unsigned colour,
                                 unsigned ep);

/* The table of game.h has functions of this and other headers as they are: what they take as void
 * is a struct chess_position. */

/* `move` is legal here, and fewer than GAME_UNDO_MAX moves have been made. */
void chess_position_make(void *position, uint16_t move);
void chess_position_unmake(void *position, uint16_t move);
/* Gives the turn away: never when in check. Ends the repetition window. */
void chess_position_make_null(void *position);
void chess_position_unmake_null(void *position);

bool chess_position_check(const void *position);

/* The same position with an empty history: cheap, for looking ahead from a const position. */
void chess_position_fork(struct chess_position *to, const struct chess_position *from);
/* Empty board, white to move, nothing made. */
void chess_position_clear(struct chess_position *position);
void chess_position_put(struct chess_position *position, unsigned piece, unsigned square);
/* Gives the right of castling with the rook on that square, of the king's colour and rank. */
void chess_position_give_right(struct chess_position *position, unsigned king, unsigned rook);
/* Sets key and score from the rest. */
void chess_position_refresh(struct chess_position *position);

#endif
