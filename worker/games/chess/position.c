#include "worker/games/chess/position.h"

#include "common/rng.h"

#include <stddef.h>
#include <string.h>

/* ---- keys and values ---- */

/* Keys (Zobrist) and values, filled once before main() and only read afterwards. */
static struct {
    struct {
        uint64_t key;
        int32_t score; /* from white's side: black's are negative */
    } square[16][64];
    uint64_t castling[16]; /* linear: castling[a] ^ castling[b] == castling[a ^ b] */
    uint64_t ep[65]; /* by square; one for each file, and 0 where there is none */
    uint64_t black;
} tables;

#define S CHESS_SCORE

static const int32_t material[6] = {S(85, 108),  S(325, 305),  S(340, 325),
                                    S(470, 545), S(985, 1000), 0};

/* Half boards, files a to d, as the board is seen in a diagram: the eighth rank comes first, and
 * the other wing mirrors. What passed pawns, shelter and mobility are worth is in eval.c. */
static const int32_t place[6][8][4] = {
    [CHESS_PAWN] = {{0, 0, 0, 0},
                    {S(35, 45), S(40, 42), S(45, 36), S(50, 32)},
                    {S(8, 22), S(15, 20), S(20, 14), S(25, 10)},
                    {S(-2, 8), S(2, 5), S(6, 0), S(16, -4)},
                    {S(-8, 0), S(-4, 0), S(5, -5), S(18, -6)},
                    {S(-7, -4), S(-3, -2), S(0, -3), S(5, 0)},
                    {S(-7, -2), S(2, 0), S(-2, 3), S(-14, 5)},
                    {0, 0, 0, 0}},
    [CHESS_KNIGHT] = {{S(-85, -50), S(-40, -30), S(-25, -16), S(-20, -14)},
                      {S(-30, -24), S(-15, -10), S(12, -6), S(15, 2)},
                      {S(-10, -14), S(12, -4), S(25, 10), S(32, 12)},
                      {S(-5, -8), S(10, 4), S(22, 16), S(28, 20)},
                      {S(-10, -8), S(4, 2), S(16, 14), S(22, 20)},
                      {S(-18, -14), S(0, -2), S(11, 4), S(15, 14)},
                      {S(-28, -26), S(-18, -12), S(-4, -6), S(0, 2)},
                      {S(-60, -40), S(-24, -28), S(-22, -16), S(-16, -12)}},
    [CHESS_BISHOP] = {{S(-25, -14), S(-12, -10), S(-16, -8), S(-18, -6)},
                      {S(-14, -8), S(-4, -3), S(-2, 0), S(-4, -2)},
                      {S(-4, -2), S(6, 0), S(8, 3), S(8, 3)},
                      {S(-4, -2), S(4, 3), S(8, 6), S(16, 9)},
                      {S(-2, -4), S(4, 1), S(8, 6), S(15, 8)},
                      {S(0, -6), S(10, -1), S(8, 4), S(7, 6)},
                      {S(2, -10), S(12, -8), S(6, -3), S(2, 0)},
                      {S(-14, -16), S(-6, -9), S(-12, -10), S(-10, -4)}},
    [CHESS_ROOK] = {{S(4, 8), S(6, 8), S(8, 10), S(10, 9)},
                    {S(8, 8), S(10, 9), S(16, 8), S(18, 6)},
                    {S(-4, 6), S(2, 5), S(4, 5), S(6, 4)},
                    {S(-8, 5), S(-3, 4), S(0, 6), S(3, 3)},
                    {S(-12, 2), S(-5, 3), S(-3, 3), S(0, 1)},
                    {S(-14, -3), S(-6, 0), S(-3, -3), S(0, -2)},
                    {S(-16, -5), S(-8, -4), S(-2, -1), S(2, -1)},
                    {S(-10, -6), S(-6, -2), S(2, 0), S(9, -2)}},
    [CHESS_QUEEN] = {{S(-4, -8), S(2, 6), S(6, 10), S(8, 12)},
                     {S(-6, -8), S(-12, 8), S(2, 14), S(2, 20)},
                     {S(-2, -8), S(0, 4), S(4, 10), S(6, 24)},
                     {S(-6, 0), S(-4, 12), S(-2, 14), S(0, 26)},
                     {S(-4, -6), S(-2, 12), S(-1, 10), S(-2, 24)},
                     {S(-6, -12), S(0, -6), S(-1, 8), S(-1, 6)},
                     {S(-8, -18), S(-2, -16), S(3, -14), S(2, -8)},
                     {S(-12, -24), S(-10, -22), S(-6, -18), S(4, -20)}},
    [CHESS_KING] = {{S(-40, -50), S(-35, -22), S(-45, -12), S(-60, -10)},
                    {S(-35, -16), S(-30, 8), S(-40, 12), S(-55, 12)},
                    {S(-35, 0), S(-30, 18), S(-45, 24), S(-60, 24)},
                    {S(-40, -6), S(-35, 18), S(-50, 26), S(-65, 30)},
                    {S(-35, -14), S(-30, 8), S(-45, 22), S(-60, 28)},
                    {S(-15, -18), S(-10, 2), S(-30, 14), S(-40, 20)},
                    {S(12, -26), S(10, -8), S(-14, 4), S(-26, 10)},
                    {S(22, -50), S(36, -32), S(8, -20), S(-8, -22)}},
};

/* Before main, so before there are threads: the games know nothing of locks. */
__attribute__((constructor)) static void fill_tables(void)
{
    uint64_t seed = rng_hash_text("chess keys/1");
    for (unsigned kind = CHESS_PAWN; kind <= CHESS_KING; kind++) {
        for (unsigned square = 0; square < 64; square++) {
            unsigned row = 7 - (square >> 3), file = square & 7;
            unsigned column = file < 4 ? file : 7 - file;
            int32_t score = material[kind] + place[kind][row][column];
            tables.square[kind][square].key = rng_next(&seed);
            tables.square[kind][square].score = score;
            tables.square[8 | kind][square ^ 56].key = rng_next(&seed);
            tables.square[8 | kind][square ^ 56].score = -score;
        }
    }
    for (unsigned rights = 1; rights < 16; rights++) {
        unsigned rest = rights & (rights - 1);
        tables.castling[rights] =
            rest ? tables.castling[rest] ^ tables.castling[rights ^ rest] : rng_next(&seed);
    }
    for (unsigned square = 0; square < 64; square++) {
        tables.ep[square] = square < 8 ? rng_next(&seed) : tables.ep[square - 8];
    }
    tables.black = rng_next(&seed);
}

/* ---- positions ---- */

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
    uint64_t key = tables.castling[rights];
    for (unsigned i = 0; position->chess960 && i < 4; i++) {
        if ((rights & 1u << i) && position->rook_home[i] != rook_home[i]) {
            key ^= rng_mix(tables.castling[1u << i] + position->rook_home[i]);
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
            key ^= tables.square[position->board[s]][s].key;
            score += tables.square[position->board[s]][s].score;
        }
    }
    key ^= tables.ep[position->ep];
    if (position->side == CHESS_BLACK) {
        key ^= tables.black;
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
            return tables.ep[ep];
        }
        return 0;
    }
    if (kind & CHESS_PROMOTION) {
        unsigned pawn = us << 3 | CHESS_PAWN;
        unsigned piece = us << 3 | chess_move_promoted(move);
        position->set[pawn] ^= bitboard_of(to);
        position->set[piece] ^= bitboard_of(to);
        position->board[to] = (uint8_t)piece;
        position->score += tables.square[piece][to].score - tables.square[pawn][to].score;
        return tables.square[piece][to].key ^ tables.square[pawn][to].key;
    }
    unsigned pawn = (us ^ 1) << 3 | CHESS_PAWN; /* en passant */
    lift(position, pawn, to ^ 8);
    position->board[to ^ 8] = CHESS_EMPTY;
    position->score -= tables.square[pawn][to ^ 8].score;
    return tables.square[pawn][to ^ 8].key;
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
    position->key ^= tables.black ^ castling_key(position, lost) ^ tables.square[king][from].key ^
                     tables.square[king][to].key ^ tables.square[rook][trip.from].key ^
                     tables.square[rook][trip.to].key;
    position->key ^= tables.ep[position->ep];
    position->ep = CHESS_NO_SQUARE;
    position->castling ^= (uint8_t)lost;
    position->score += tables.square[king][to].score - tables.square[king][from].score +
                       tables.square[rook][trip.to].score - tables.square[rook][trip.from].score;
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
    uint64_t key = position->key ^ tables.black ^ tables.square[piece][from].key ^
                   tables.square[piece][to].key;
    key ^= tables.ep[position->ep];
    position->ep = CHESS_NO_SQUARE;
    unsigned kept = position->castling & position->rights_kept[from] & position->rights_kept[to];
    if (kept != position->castling) {
        key ^= castling_key(position, position->castling ^ kept);
        position->castling = (uint8_t)kept;
    }
    position->score += tables.square[piece][to].score - tables.square[piece][from].score;
    bool progress = piece == (us << 3 | CHESS_PAWN);
    if (captured != CHESS_EMPTY) {
        lift(position, captured, to);
        position->score -= tables.square[captured][to].score;
        key ^= tables.square[captured][to].key;
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

void chess_position_make(void *at, uint16_t move)
{
    struct chess_position *position = at;
    if (position->side == CHESS_WHITE) {
        make(position, move, CHESS_WHITE);
    } else {
        make(position, move, CHESS_BLACK);
    }
}

void chess_position_unmake(void *at, uint16_t move)
{
    struct chess_position *position = at;
    if (position->side == CHESS_BLACK) {
        unmake(position, move, CHESS_WHITE);
    } else {
        unmake(position, move, CHESS_BLACK);
    }
}

void chess_position_make_null(void *at)
{
    struct chess_position *position = at;
    push_undo(position, CHESS_EMPTY);
    position->key ^= tables.ep[position->ep];
    position->ep = CHESS_NO_SQUARE;
    position->key ^= tables.black;
    position->halfmoves++;
    position->reversible = 0;
    position->fullmove = (uint16_t)(position->fullmove + position->side);
    position->side ^= 1;
}

void chess_position_unmake_null(void *at)
{
    struct chess_position *position = at;
    pop_undo(position);
    position->side ^= 1;
    position->fullmove = (uint16_t)(position->fullmove - position->side);
}

bool chess_position_check(const void *at)
{
    const struct chess_position *position = at;
    unsigned us = position->side;
    return chess_attackers(position, chess_king(position, us), us ^ 1, chess_occupied(position)) !=
           0;
}
