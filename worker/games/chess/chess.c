#include "worker/games/chess/chess.h"

#include "common/rng.h"
#include "worker/games/chess/drawn_endings.h"
#include "worker/games/chess/eval.h"
#include "worker/games/chess/fen.h"
#include "worker/games/chess/movegen.h"
#include "worker/games/chess/position.h"
#include "worker/games/chess/see.h"
#include "worker/games/chess/tablebase.h"

#include <namespaces.h>
#include <string.h>

static uint64_t key(const void *position)
{
    return ((const struct chess_position *)position)->key;
}

static int finished(const void *position)
{
    return chess_position_check(position) ? -GAME_MATE : 0;
}

/* A hundred halfmoves without capture or pawn move, unless the last one mates. */
static bool is_counted_out(const struct chess_position *chess)
{
    return chess->halfmoves >= CHESS_HALFMOVES_DRAWN &&
           (!chess_position_check(chess) || chess_movegen_count(chess) > 0);
}

/* An equal position at or below the root (once is enough: a search that comes back can come back
 * again), or two before it, as the players may not want to come back; the count; or an ending that
 * is known. Stalemate is left to the move generator. */
static unsigned drawn(const void *position, unsigned ply)
{
    const struct chess_position *chess = position;
    unsigned before = 0;
    if (chess_draws_known(chess)) {
        return GAME_DRAWN_HERE;
    }
    for (unsigned back = 4; back <= chess->reversible; back += 2) {
        before += chess->undo[chess->ply - back].key == chess->key;
        if (before == (back <= ply ? 1 : 2)) {
            return back;
        }
    }
    return is_counted_out(chess) ? GAME_DRAWN_BY_COUNT : 0;
}

static bool ended(const void *position)
{
    const struct chess_position *chess = position;
    unsigned before = 0;
    for (unsigned back = 4; back <= chess->reversible; back += 2) {
        before += chess->undo[chess->ply - back].key == chess->key;
    }
    return before >= 2 || chess_draws_dead(chess) || is_counted_out(chess);
}

/* The clock is part of the key when it has run so far that a search may reach its end. */
static uint64_t counted_key(const void *position)
{
    const struct chess_position *chess = position;
    return chess->halfmoves < CHESS_HALFMOVES_COUNTED ? chess->key
                                                      : chess->key ^ rng_mix(chess->halfmoves);
}

static uint64_t repeatable(const void *position)
{
    const struct chess_position *chess = position;
    const struct chess_undo *now = &chess->undo[chess->ply];
    uint64_t names = 0;
    for (unsigned back = 3; back <= chess->reversible; back += 2) {
        const uint64_t key = now[-(int)back].key;
        unsigned earlier = back + 4;
        while (earlier <= chess->reversible && now[-(int)earlier].key != key) {
            earlier += 2;
        }
        names += earlier <= chess->reversible ? rng_mix(key) : 0;
    }
    return names;
}

static bool losing(const void *position, uint16_t move)
{
    return !chess_see_at_least(position, move, 0);
}

static unsigned move_class(const void *position, uint16_t move)
{
    const struct chess_position *chess = position;
    return chess->board[chess_move_from(move)] << 6 | chess_move_to(move);
}

/* A name of the pawns and the side to move, never 0; 0 where the ending is likely a draw, about
 * which positions with the same pawns say nothing. */
static uint64_t structure(const void *position)
{
    const struct chess_position *chess = position;
    if (chess_draws_likely(chess)) {
        return 0;
    }
    return (rng_mix(chess_set(chess, CHESS_WHITE, CHESS_PAWN)) ^
            rng_mix(chess_set(chess, CHESS_BLACK, CHESS_PAWN) ^ chess->side)) |
           UINT64_C(1) << 63; /* without pawns the rest may be 0 */
}

/* Covers all moves but castling and en-passant captures with another than the moved piece. */
static bool gives_check(const void *position, uint16_t move)
{
    const struct chess_position *chess = position;
    const unsigned from = chess_move_from(move), to = chess_move_to(move), us = chess->side;
    const unsigned king = chess_king(chess, us ^ 1);
    const unsigned kind = chess_move_kind(move) & CHESS_PROMOTION ? chess_move_promoted(move)
                                                                  : chess->board[from] & 7u;
    const uint64_t occupied = (chess_occupied(chess) ^ bitboard_of(from)) | bitboard_of(to);
    const uint64_t queens = chess_set(chess, us, CHESS_QUEEN);
    uint64_t lines = (chess_set(chess, us, CHESS_ROOK) | queens) & ~bitboard_of(from);
    uint64_t diagonals = (chess_set(chess, us, CHESS_BISHOP) | queens) & ~bitboard_of(from);
    lines |= kind == CHESS_ROOK || kind == CHESS_QUEEN ? bitboard_of(to) : 0;
    diagonals |= kind == CHESS_BISHOP || kind == CHESS_QUEEN ? bitboard_of(to) : 0;
    return (kind == CHESS_KNIGHT && bitboard_tables.knight[king] & bitboard_of(to)) ||
           (kind == CHESS_PAWN && bitboard_tables.pawn[us ^ 1][king] & bitboard_of(to)) ||
           (bitboard_rook(king, occupied) & lines) || (bitboard_bishop(king, occupied) & diagonals);
}

/* With pawns alone, having to move is often the only problem. */
static bool zugzwang(const void *position)
{
    const struct chess_position *chess = position;
    return (chess_set(chess, chess->side, CHESS_PAWN) |
            chess_set(chess, chess->side, CHESS_KING)) == chess_set(chess, chess->side, CHESS_ALL);
}

/* A single piece may have only bad moves as well. */
static bool cramped(const void *position)
{
    const struct chess_position *chess = position;
    uint64_t others =
        chess_set(chess, chess->side, CHESS_PAWN) | chess_set(chess, chess->side, CHESS_KING);
    return bitboard_count(chess_set(chess, chess->side, CHESS_ALL) & ~others) <= 1;
}

static void format_move(const void *position, uint16_t move, char *text)
{
    const struct chess_position *chess = position;
    const unsigned kind = chess_move_kind(move);
    unsigned squares[2] = {chess_move_from(move), chess_move_to(move)};
    if (chess->chess960 && (kind == CHESS_SHORT || kind == CHESS_LONG)) {
        squares[1] = chess->rook_home[2 * chess->side + (kind == CHESS_LONG)];
    }
    for (unsigned i = 0; i < 2; i++) {
        *text++ = (char)('a' + (squares[i] & 7));
        *text++ = (char)('1' + (squares[i] >> 3));
    }
    if (chess_move_kind(move) & CHESS_PROMOTION) {
        *text++ = "pnbrqk"[chess_move_promoted(move)];
    }
    *text = '\0';
}

static bool is_square(const char *text)
{
    return text[0] >= 'a' && text[0] <= 'h' && text[1] >= '1' && text[1] <= '8';
}

/* Capitals, too, as some programs write a promotion's piece, or all of a move. */
static enum err parse_move(const void *position, const char *written, uint16_t *move)
{
    char text[GAME_MOVE_TEXT_MAX];
    const size_t size = strlen(written);
    for (size_t i = 0; i < size && i < sizeof text; i++) {
        text[i] = (char)(written[i] >= 'A' && written[i] <= 'Z' ? written[i] | 0x20 : written[i]);
    }
    text[size < sizeof text ? size : sizeof text - 1] = '\0';
    if (size < 4 || size > 5 || !is_square(text) || !is_square(text + 2) ||
        (size == 5 && !strchr("nbrq", text[4]))) {
        return ERR_SYNTAX;
    }
    struct game_move list[GAME_MOVES_MAX];
    unsigned count = chess_movegen_all(position, list);
    for (unsigned i = 0; i < count; i++) {
        char legal[GAME_MOVE_TEXT_MAX];
        format_move(position, list[i].move, legal);
        if (strcmp(legal, text) == 0) {
            *move = list[i].move;
            return ERR_OK;
        }
    }
    return ERR_ILLEGAL;
}

static const struct game_search game_search = GAME_SEARCH_CENTIPAWNS;

const struct game game_chess = {
    .name = "chess",
    .namespace_id = NAMESPACE_chess,
    .position_size = sizeof(struct chess_position),
    .score_kind = GAME_CENTIPAWNS,
    .score_max = GAME_MATE,
    .search = &game_search,
    .parse = chess_position_parse,
    .format = chess_position_format,
    .generate = chess_movegen_all,
    .generate_noisy = chess_movegen_noisy,
    .make = chess_position_make,
    .unmake = chess_position_unmake,
    .make_null = chess_position_make_null,
    .unmake_null = chess_position_unmake_null,
    .key = key,
    .evaluate = chess_eval,
    .evaluator_size = sizeof(struct chess_sums),
    .evaluator_open = chess_sums_clear,
    .evaluate_full = chess_eval_full,
    .finished = finished,
    .check = chess_position_check,
    .drawn = drawn,
    .ended = ended,
    .counted_key = counted_key,
    .repeatable = repeatable,
    .losing = losing,
    .exchange = chess_see_at_least,
    .move_class = move_class,
    .structure = structure,
    .gives_check = gives_check,
    .tablebase = chess_tablebase_probe,
    .zugzwang = zugzwang,
    .cramped = cramped,
    .format_move = format_move,
    .parse_move = parse_move,
};

static void forget(struct chess_position *chess)
{
    enum { KEPT = CHESS_HALFMOVES_DRAWN + 2 };
    if (chess->ply > KEPT) {
        memmove(chess->undo, &chess->undo[chess->ply - KEPT], KEPT * sizeof chess->undo[0]);
        chess->ply = KEPT;
        chess->reversible = chess->reversible < KEPT ? chess->reversible : KEPT;
    }
    if (chess->halfmoves > CHESS_COUNTER_MAX) { /* it would begin at 0 again */
        chess->halfmoves = CHESS_COUNTER_MAX;
    }
    if (chess->fullmove > CHESS_COUNTER_MAX) {
        chess->fullmove = CHESS_COUNTER_MAX;
    }
}

void chess_play(void *position, uint16_t move)
{
    enum { PLAYED_MAX = 600 };
    struct chess_position *chess = position;
    game_chess.make(position, move);
    if (chess->ply >= PLAYED_MAX) {
        forget(chess);
    }
}
