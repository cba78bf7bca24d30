#include "worker/games/chess/chess.h"

#include "common/rng.h"
#include "worker/games/chess/eval.h"
#include "worker/games/chess/fen.h"
#include "worker/games/chess/movegen.h"
#include "worker/games/chess/position.h"
#include "worker/games/chess/see.h"

#include <namespaces.h>
#include <string.h>

enum { HALFMOVES_COUNTED = 60, HALFMOVES_DRAWN = 100 };

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

/* An equal position earlier among the moves made here (once is enough: a search that comes back can
 * come back again); a hundred halfmoves without capture or pawn move, unless the last one mates; or
 * insufficient material. Stalemate is left to the move generator. */
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
    return chess->halfmoves >= HALFMOVES_DRAWN && (!check(chess) || chess_movegen_count(chess) > 0)
               ? GAME_DRAWN_BY_COUNT
               : 0;
}

/* The clock is part of the key when it has run so far that a search may reach its end. */
static uint64_t counted_key(const void *position)
{
    const struct chess_position *chess = position;
    return chess->halfmoves < HALFMOVES_COUNTED ? chess->key
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
    (void)position;
    unsigned squares[2] = {chess_move_from(move), chess_move_to(move)};
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

static enum err parse_move(const void *position, const char *text, uint16_t *move)
{
    size_t size = strlen(text);
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
    .finished = finished,
    .check = check,
    .drawn = drawn,
    .counted_key = counted_key,
    .repeatable = repeatable,
    .losing = losing,
    .zugzwang = zugzwang,
    .cramped = cramped,
    .format_move = format_move,
    .parse_move = parse_move,
};
