#include "worker/games/chess/position.h"

#include "common/rng.h"
#include "worker/games/chess/tables.h"

#include <stddef.h>
#include <string.h>

static const uint8_t rook_home[4] = {7, 0, 63, 56};

/* The history is left alone: entries above `ply` are never read. */
void chess_position_clear(struct chess_position *position)
{
    memset(position, 0, offsetof(struct chess_position, undo));
    memset(position->board, CHESS_EMPTY, sizeof(position->board));
    position->ep = CHESS_NO_SQUARE;
    position->fullmove = 1;
    memcpy(position->rook_home, rook_home, sizeof rook_home);
    memset(position->rights_kept, 15, sizeof position->rights_kept);
}

void chess_position_give_right(struct chess_position *position, unsigned king, unsigned rook)
{
    const unsigned colour = rook >> 3 ? CHESS_BLACK : CHESS_WHITE;
    const unsigned at = 2 * colour + (rook < king);
    position->castling |= (uint8_t)(1u << at);
    position->rook_home[at] = (uint8_t)rook;
    position->chess960 |= rook != rook_home[at] || (king & 7) != 4;
    position->rights_kept[rook] &= (uint8_t) ~(1u << at);
    position->rights_kept[king] &= (uint8_t) ~(3u << 2 * colour);
}

/* Linear in the rights. Another rook's right is another one. */
static uint64_t castling_key(const struct chess_position *position, unsigned rights)
{
    uint64_t key = chess_tables.castling[rights];
    for (unsigned i = 0; position->chess960 && i < 4; i++) {
        if ((rights & 1u << i) && position->rook_home[i] != rook_home[i]) {
            key ^= rng_mix(chess_tables.castling[1u << i] + position->rook_home[i]);
        }
    }
    return key;
}

void chess_position_fork(struct chess_position *to, const struct chess_position *from)
{
    memcpy(to, from, offsetof(struct chess_position, undo));
    to->ply = 0;
    to->reversible = 0;
}

void chess_position_put(struct chess_position *position, unsigned piece, unsigned square)
{
    position->set[piece] |= bitboard_of(square);
    position->set[(piece & 8) | CHESS_ALL] |= bitboard_of(square);
    position->board[square] = (uint8_t)piece;
}

void chess_position_refresh(struct chess_position *position)
{
    uint64_t key = castling_key(position, position->castling);
    int32_t score = 0;
    for (unsigned s = 0; s < 64; s++) {
        if (position->board[s] != CHESS_EMPTY) {
            key ^= chess_tables.square[position->board[s]][s].key;
            score += chess_tables.square[position->board[s]][s].score;
        }
    }
    if (position->ep != CHESS_NO_SQUARE) {
        key ^= chess_tables.ep[position->ep & 7];
    }
    if (position->side == CHESS_BLACK) {
        key ^= chess_tables.black;
    }
    position->key = key;
    position->score = score;
}

/* Both the capturer and the captured pawn leave their squares, which may open the capturer's
 * king to a slider along the rank: the one case pin masks do not see. So look at the result. */
uint64_t chess_position_ep_pawns(const struct chess_position *position, unsigned colour,
                                 unsigned ep)
{
    uint64_t pawns = bitboard_tables.pawn[colour ^ 1][ep] & chess_set(position, colour, CHESS_PAWN);
    uint64_t legal = 0;
    while (pawns) {
        unsigned from = bitboard_pop(&pawns);
        uint64_t after =
            (chess_occupied(position) ^ bitboard_of(from) ^ bitboard_of(ep ^ 8)) | bitboard_of(ep);
        unsigned king = chess_king(position, colour);
        if (!(chess_attackers(position, king, colour ^ 1, after) & after)) {
            legal |= bitboard_of(from);
        }
    }
    return legal;
}

/* Moves the bits and board entries only; `piece` need not be what stands on `from`. */
BITBOARD_INLINE void shift(struct chess_position *position, unsigned piece, unsigned from,
                           unsigned to)
{
    uint64_t both = bitboard_of(from) | bitboard_of(to);
    position->set[piece] ^= both;
    position->set[(piece & 8) | CHESS_ALL] ^= both;
    position->board[from] = CHESS_EMPTY;
    position->board[to] = (uint8_t)piece;
}

BITBOARD_INLINE void lift(struct chess_position *position, unsigned piece, unsigned square)
{
    position->set[piece] ^= bitboard_of(square);
    position->set[(piece & 8) | CHESS_ALL] ^= bitboard_of(square);
}

struct rook_trip {
    uint8_t from, to;
};

BITBOARD_INLINE struct rook_trip rook_trip(const struct chess_position *position, unsigned kind,
                                           unsigned colour)
{
    unsigned rank = colour == CHESS_WHITE ? 0 : 56;
    unsigned to = kind == CHESS_SHORT ? 5 : 3;
    return (struct rook_trip){position->rook_home[2 * colour + (kind == CHESS_LONG)],
                              (uint8_t)(rank + to)};
}

/* The rest of a promotion, en-passant capture or double step, once the moving piece
 * itself stands on `to`. Returns the change to the key. */
BITBOARD_INLINE uint64_t make_special(struct chess_position *position, uint16_t move,
                                      const unsigned us)
{
    unsigned to = chess_move_to(move), kind = chess_move_kind(move);
    if (kind == CHESS_DOUBLE) {
        unsigned ep = to ^ 8;
        /* Nearly always no enemy pawn is beside: keep the full test out of the way. */
        if ((bitboard_tables.pawn[us][ep] & chess_set(position, us ^ 1, CHESS_PAWN)) &&
            chess_position_ep_pawns(position, us ^ 1, ep)) {
            position->ep = (uint8_t)ep;
            return chess_tables.ep[ep & 7];
        }
        return 0;
    }
    if (kind & CHESS_PROMOTION) {
        unsigned pawn = us << 3 | CHESS_PAWN;
        unsigned piece = us << 3 | chess_move_promoted(move);
        position->set[pawn] ^= bitboard_of(to);
        position->set[piece] ^= bitboard_of(to);
        position->board[to] = (uint8_t)piece;
        position->score +=
            chess_tables.square[piece][to].score - chess_tables.square[pawn][to].score;
        return chess_tables.square[piece][to].key ^ chess_tables.square[pawn][to].key;
    }
    unsigned pawn = (us ^ 1) << 3 | CHESS_PAWN; /* en passant */
    lift(position, pawn, to ^ 8);
    position->board[to ^ 8] = CHESS_EMPTY;
    position->score -= chess_tables.square[pawn][to ^ 8].score;
    return chess_tables.square[pawn][to ^ 8].key;
}

BITBOARD_INLINE void push_undo(struct chess_position *position, unsigned captured)
{
    CHECK(position->ply < GAME_UNDO_MAX);
    struct chess_undo *undo = &position->undo[position->ply++];
    undo->key = position->key;
    undo->score = position->score;
    undo->halfmoves = position->halfmoves;
    undo->reversible = position->reversible;
    undo->castling = position->castling;
    undo->ep = position->ep;
    undo->captured = (uint8_t)captured;
}

BITBOARD_INLINE const struct chess_undo *pop_undo(struct chess_position *position)
{
    const struct chess_undo *undo = &position->undo[--position->ply];
    position->key = undo->key;
    position->score = undo->score;
    position->halfmoves = undo->halfmoves;
    position->reversible = undo->reversible;
    position->castling = undo->castling;
    position->ep = undo->ep;
    return undo;
}

BITBOARD_INLINE bool is_castling(unsigned kind)
{
    return kind == CHESS_SHORT || kind == CHESS_LONG;
}

/* King and rook leave before either arrives: each may come to where the other was. */
BITBOARD_INLINE void exchange_places(struct chess_position *position, const unsigned us,
                                     unsigned king_from, unsigned king_to, unsigned rook_from,
                                     unsigned rook_to)
{
    const unsigned king = us << 3 | CHESS_KING, rook = us << 3 | CHESS_ROOK;
    lift(position, king, king_from);
    lift(position, rook, rook_from);
    position->board[king_from] = position->board[rook_from] = CHESS_EMPTY;
    chess_position_put(position, king, king_to);
    chess_position_put(position, rook, rook_to);
}

static void make_castling(struct chess_position *position, uint16_t move, const unsigned us)
{
    const unsigned from = chess_move_from(move), to = chess_move_to(move);
    const unsigned king = us << 3 | CHESS_KING, rook = us << 3 | CHESS_ROOK;
    const struct rook_trip trip = rook_trip(position, chess_move_kind(move), us);
    const unsigned lost = position->castling & (3u << 2 * us);
    push_undo(position, CHESS_EMPTY);
    position->key ^= chess_tables.black ^ castling_key(position, lost) ^
                     chess_tables.square[king][from].key ^ chess_tables.square[king][to].key ^
                     chess_tables.square[rook][trip.from].key ^
                     chess_tables.square[rook][trip.to].key;
    if (position->ep != CHESS_NO_SQUARE) {
        position->key ^= chess_tables.ep[position->ep & 7];
        position->ep = CHESS_NO_SQUARE;
    }
    position->castling ^= (uint8_t)lost;
    position->score += chess_tables.square[king][to].score - chess_tables.square[king][from].score +
                       chess_tables.square[rook][trip.to].score -
                       chess_tables.square[rook][trip.from].score;
    position->halfmoves++;
    position->reversible++;
    exchange_places(position, us, from, to, trip.from, trip.to);
    position->fullmove = (uint16_t)(position->fullmove + us);
    position->side = us ^ 1;
}

BITBOARD_INLINE void make(struct chess_position *position, uint16_t move, const unsigned us)
{
    unsigned from = chess_move_from(move), to = chess_move_to(move), kind = chess_move_kind(move);
    if (is_castling(kind)) {
        make_castling(position, move, us);
        return;
    }
    unsigned piece = position->board[from], captured = position->board[to];
    push_undo(position, captured);
    uint64_t key = position->key ^ chess_tables.black ^ chess_tables.square[piece][from].key ^
                   chess_tables.square[piece][to].key;
    if (position->ep != CHESS_NO_SQUARE) {
        key ^= chess_tables.ep[position->ep & 7];
        position->ep = CHESS_NO_SQUARE;
    }
    unsigned kept = position->castling & position->rights_kept[from] & position->rights_kept[to];
    if (kept != position->castling) {
        key ^= castling_key(position, position->castling ^ kept);
        position->castling = (uint8_t)kept;
    }
    position->score +=
        chess_tables.square[piece][to].score - chess_tables.square[piece][from].score;
    bool progress = piece == (us << 3 | CHESS_PAWN);
    if (captured != CHESS_EMPTY) {
        lift(position, captured, to);
        position->score -= chess_tables.square[captured][to].score;
        key ^= chess_tables.square[captured][to].key;
        progress = true;
    }
    position->halfmoves = progress ? 0 : (uint16_t)(position->halfmoves + 1);
    position->reversible = progress ? 0 : (uint16_t)(position->reversible + 1);
    shift(position, piece, from, to);
    if (kind != CHESS_QUIET && kind != CHESS_CAPTURE) {
        key ^= make_special(position, move, us);
    }
    position->key = key;
    position->fullmove = (uint16_t)(position->fullmove + us);
    position->side = us ^ 1;
}

BITBOARD_INLINE void unmake(struct chess_position *position, uint16_t move, const unsigned us)
{
    unsigned from = chess_move_from(move), to = chess_move_to(move), kind = chess_move_kind(move);
    const struct chess_undo *undo = pop_undo(position);
    position->side = us;
    position->fullmove = (uint16_t)(position->fullmove - us);
    if (is_castling(kind)) {
        struct rook_trip trip = rook_trip(position, kind, us);
        exchange_places(position, us, to, from, trip.to, trip.from);
        return;
    }
    if (kind & CHESS_PROMOTION) {
        position->set[position->board[to]] ^= bitboard_of(to);
        position->set[us << 3 | CHESS_PAWN] ^= bitboard_of(to);
        position->board[to] = (uint8_t)(us << 3 | CHESS_PAWN);
    }
    shift(position, position->board[to], to, from);
    if (undo->captured != CHESS_EMPTY) {
        chess_position_put(position, undo->captured, to);
    } else if (kind == CHESS_EN_PASSANT) {
        chess_position_put(position, (us ^ 1) << 3 | CHESS_PAWN, to ^ 8);
    }
}

void chess_position_make(struct chess_position *position, uint16_t move)
{
    if (position->side == CHESS_WHITE) {
        make(position, move, CHESS_WHITE);
    } else {
        make(position, move, CHESS_BLACK);
    }
}

void chess_position_unmake(struct chess_position *position, uint16_t move)
{
    if (position->side == CHESS_BLACK) {
        unmake(position, move, CHESS_WHITE);
    } else {
        unmake(position, move, CHESS_BLACK);
    }
}

void chess_position_make_null(struct chess_position *position)
{
    push_undo(position, CHESS_EMPTY);
    if (position->ep != CHESS_NO_SQUARE) {
        position->key ^= chess_tables.ep[position->ep & 7];
        position->ep = CHESS_NO_SQUARE;
    }
    position->key ^= chess_tables.black;
    position->halfmoves++;
    position->reversible = 0;
    position->fullmove = (uint16_t)(position->fullmove + position->side);
    position->side ^= 1;
}

void chess_position_unmake_null(struct chess_position *position)
{
    pop_undo(position);
    position->side ^= 1;
    position->fullmove = (uint16_t)(position->fullmove - position->side);
}

bool chess_position_check(const struct chess_position *position)
{
    unsigned us = position->side;
    return chess_attackers(position, chess_king(position, us), us ^ 1, chess_occupied(position)) !=
           0;
}
