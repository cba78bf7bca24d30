#include "worker/games/chess/chess.h"

#include "common/rng.h"
#include "worker/games/chess/eval.h"
#include "worker/games/chess/fen.h"
#include "worker/games/chess/movegen.h"
#include "worker/games/chess/position.h"
#include "worker/games/chess/see.h"
#include "worker/games/chess/tablebase.h"

#include <namespaces.h>
#include <string.h>

static enum err parse(void *position, const char *text, char *why, size_t why_size)
{
    return chess_position_parse(position, text, why, why_size);
}

static void format(const void *position, char *text)
{
    chess_position_format(position, text);
}

static unsigned generate(const void *position, struct game_move *list)
{
    return chess_movegen_all(position, list);
}

static unsigned generate_noisy(const void *position, struct game_move *list)
{
    return chess_movegen_noisy(position, list);
}

static void make(void *position, uint16_t move)
{
    chess_position_make(position, move);
}

static void unmake(void *position, uint16_t move)
{
    chess_position_unmake(position, move);
}

static void make_null(void *position)
{
    chess_position_make_null(position);
}

static void unmake_null(void *position)
{
    chess_position_unmake_null(position);
}

static uint64_t key(const void *position)
{
    return ((const struct chess_position *)position)->key;
}

static int evaluate(const void *position)
{
    return chess_eval(position);
}

static void evaluator_open(void *evaluator)
{
    chess_sums_clear(evaluator);
}

static int evaluate_full(const void *position, void *evaluator)
{
    return chess_eval_full(position, evaluator);
}

static bool check(const void *position)
{
    return chess_position_check(position);
}

static int finished(const void *position)
{
    return check(position) ? -GAME_MATE : 0;
}

/* K, K+N or K+B against K. */
static bool insufficient(const struct chess_position *position)
{
    uint64_t occupied = chess_occupied(position);
    return bitboard_count(occupied) <= 3 &&
           (chess_both(position, CHESS_KING) | chess_both(position, CHESS_KNIGHT) |
            chess_both(position, CHESS_BISHOP)) == occupied;
}

/* A hundred halfmoves without capture or pawn move, unless the last one mates. */
static bool is_counted_out(const struct chess_position *chess)
{
    return chess->halfmoves >= CHESS_HALFMOVES_DRAWN &&
           (!check(chess) || chess_movegen_count(chess) > 0);
}

/* An equal position earlier among the moves made here (once is enough: a search that comes back can
 * come back again); the count; or insufficient material. Stalemate is left to the move generator.
 */
static unsigned drawn(const void *position)
{
    const struct chess_position *chess = position;
    if (insufficient(chess)) {
        return GAME_DRAWN_HERE;
    }
    for (unsigned back = 4; back <= chess->reversible; back += 2) {
        if (chess->undo[chess->ply - back].key == chess->key) {
            return back;
        }
    }
    return is_counted_out(chess) ? GAME_DRAWN_BY_COUNT : 0;
}

/* Kings and bishops of one colour of squares alone. */
static bool is_dead(const struct chess_position *position)
{
    static const uint64_t light = UINT64_C(0x55aa55aa55aa55aa);
    const uint64_t bishops = chess_both(position, CHESS_BISHOP);
    return (chess_both(position, CHESS_KING) | bishops) == chess_occupied(position) &&
           ((bishops & light) == 0 || (bishops & ~light) == 0);
}

static bool ended(const void *position)
{
    const struct chess_position *chess = position;
    unsigned before = 0;
    for (unsigned back = 4; back <= chess->reversible; back += 2) {
        before += chess->undo[chess->ply - back].key == chess->key;
    }
    return before >= 2 || insufficient(chess) || is_dead(chess) || is_counted_out(chess);
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
    uint64_t names = 0;
    for (unsigned back = 3; back <= chess->reversible; back += 2) {
        names ^= rng_mix(chess->undo[chess->ply - back].key);
    }
    return names;
}

static bool losing(const void *position, uint16_t move)
{
    return !chess_see_at_least(position, move, 0);
}

static bool exchange(const void *position, uint16_t move, int least)
{
    return chess_see_at_least(position, move, least);
}

static unsigned move_class(const void *position, uint16_t move)
{
    const struct chess_position *chess = position;
    return chess->board[chess_move_from(move)] << 6 | chess_move_to(move);
}

/* Of the pawns and the side to move. */
static uint64_t structure(const void *position)
{
    const struct chess_position *chess = position;
    return rng_mix(chess_set(chess, CHESS_WHITE, CHESS_PAWN)) ^
           rng_mix(chess_set(chess, CHESS_BLACK, CHESS_PAWN) ^ chess->side);
}

/* Of all moves but castling and en-passant captures with another than the moved piece. */
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

static bool tablebase(const void *position, int *value)
{
    return chess_tablebase_probe(position, value);
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
    .parse = parse,
    .format = format,
    .generate = generate,
    .generate_noisy = generate_noisy,
    .make = make,
    .unmake = unmake,
    .make_null = make_null,
    .unmake_null = unmake_null,
    .key = key,
    .evaluate = evaluate,
    .evaluator_size = sizeof(struct chess_sums),
    .evaluator_open = evaluator_open,
    .evaluate_full = evaluate_full,
    .finished = finished,
    .check = check,
    .drawn = drawn,
    .ended = ended,
    .counted_key = counted_key,
    .repeatable = repeatable,
    .losing = losing,
    .exchange = exchange,
    .move_class = move_class,
    .structure = structure,
    .gives_check = gives_check,
    .tablebase = tablebase,
    .zugzwang = zugzwang,
    .cramped = cramped,
    .format_move = format_move,
    .parse_move = parse_move,
};

void chess_write_as_960(void *position)
{
    ((struct chess_position *)position)->chess960 = true;
}

void chess_forget(void *position)
{
    struct chess_position *chess = position;
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
