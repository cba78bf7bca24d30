#include "worker/games/chess/san.h"

#include "worker/games/chess/movegen.h"

#include <string.h>

static const char letters[] = "PNBRQK";

/* ---- reading ---- */

/* What a text says of a move; -1 where it says nothing. */
struct wanted {
    int kind, from_file, from_rank, to, promoted;
    unsigned castling; /* CHESS_SHORT, CHESS_LONG or 0 */
    bool captures, en_passant;
};

static int find(const char *set, char c)
{
    const char *at = c ? strchr(set, c) : NULL;
    return at ? (int)(at - set) : -1;
}

static bool read_castling(const char *text, size_t size, struct wanted *wanted)
{
    static const char *const names[6] = {"O-O", "0-0", "o-o", "O-O-O", "0-0-0", "o-o-o"};
    for (unsigned i = 0; i < 6; i++) {
        if (strlen(names[i]) == size && memcmp(names[i], text, size) == 0) {
            wanted->castling = i < 3 ? CHESS_SHORT : CHESS_LONG;
            return true;
        }
    }
    return false;
}

/* The text between the piece's letter and the target square: [file][rank][x]. */
static bool read_middle(const char *text, size_t size, struct wanted *wanted)
{
    size_t at = 0;
    if (at < size && find("abcdefgh", text[at]) >= 0) {
        wanted->from_file = find("abcdefgh", text[at++]);
    }
    if (at < size && find("12345678", text[at]) >= 0) {
        wanted->from_rank = find("12345678", text[at++]);
    }
    if (at < size && text[at] == 'x') {
        wanted->captures = true;
        at++;
    }
    return at == size;
}

static size_t without_tail(const char *text, size_t size)
{
    while (size > 0 && find("+#!?", text[size - 1]) >= 0) {
        size--;
    }
    return size;
}

/* "exd6ep", "exd6e.p.": the length without it. */
static size_t without_en_passant(const char *text, size_t size, struct wanted *wanted)
{
    static const char *const tails[] = {"e.p.", "e.p", "ep"};
    for (unsigned i = 0; i < sizeof tails / sizeof *tails && !wanted->en_passant; i++) {
        const size_t n = strlen(tails[i]);
        if (size > n && memcmp(text + size - n, tails[i], n) == 0) {
            wanted->en_passant = true;
            size = without_tail(text, size - n);
        }
    }
    return size;
}

static bool read_text(const char *text, struct wanted *wanted)
{
    *wanted = (struct wanted){.kind = CHESS_PAWN, .from_file = -1, .from_rank = -1, .promoted = -1};
    size_t size = without_en_passant(text, without_tail(text, strlen(text)), wanted);
    if (read_castling(text, size, wanted)) {
        return true;
    }
    if (size > 0 && find(letters, text[0]) >= 0) {
        wanted->kind = find(letters, text[0]);
        text++;
        size--;
    }
    const bool has_sign = size > 1 && find("=/", text[size - 2]) >= 0;
    if (has_sign && find("nbrq", text[size - 1]) >= 0) {
        wanted->promoted = find("pnbrqk", text[size - 1]);
        size -= 2;
    } else if (size > 0 && find("NBRQ", text[size - 1]) >= 0) {
        wanted->promoted = find(letters, text[size - 1]);
        size -= has_sign ? 2 : 1;
    }
    if (size < 2 || find("abcdefgh", text[size - 2]) < 0 || find("12345678", text[size - 1]) < 0) {
        return false;
    }
    wanted->to = find("abcdefgh", text[size - 2]) + 8 * find("12345678", text[size - 1]);
    return read_middle(text, size - 2, wanted);
}

static bool names(const struct wanted *wanted, const struct chess_position *position, uint16_t move)
{
    unsigned kind = chess_move_kind(move), from = chess_move_from(move);
    if (wanted->castling || kind == CHESS_SHORT || kind == CHESS_LONG) {
        return kind == wanted->castling;
    }
    int promoted = kind & CHESS_PROMOTION ? (int)chess_move_promoted(move) : -1;
    return (position->board[from] & 7) == wanted->kind && (int)chess_move_to(move) == wanted->to &&
           promoted == wanted->promoted && (!wanted->captures || (kind & CHESS_CAPTURE)) &&
           (!wanted->en_passant || kind == CHESS_EN_PASSANT) &&
           (wanted->from_file < 0 || wanted->from_file == (int)(from & 7)) &&
           (wanted->from_rank < 0 || wanted->from_rank == (int)(from >> 3));
}

enum err chess_san_parse(const struct chess_position *position, const char *text, uint16_t *move)
{
    struct wanted wanted;
    if (!read_text(text, &wanted)) {
        return ERR_SYNTAX;
    }
    struct game_move list[GAME_MOVES_MAX];
    unsigned count = chess_movegen_all(position, list), matches = 0;
    uint16_t match = 0;
    for (unsigned i = 0; i < count; i++) {
        if (names(&wanted, position, list[i].move)) {
            match = list[i].move;
            matches++;
        }
    }
    if (matches != 1) {
        return ERR_ILLEGAL;
    }
    *move = match;
    return ERR_OK;
}

/* ---- writing ---- */

/* Adds the file, the rank or both of the origin, as far as other moves of the same kind of piece
 * to the same square make it necessary. */
static char *disambiguate(const struct chess_position *position, uint16_t move, unsigned kind,
                          char *out)
{
    struct game_move list[GAME_MOVES_MAX];
    unsigned count = chess_movegen_all(position, list), from = chess_move_from(move);
    bool other = false, same_file = false, same_rank = false;
    for (unsigned i = 0; i < count; i++) {
        unsigned rival = chess_move_from(list[i].move);
        if (rival != from && chess_move_to(list[i].move) == chess_move_to(move) &&
            (position->board[rival] & 7) == kind) {
            other = true;
            same_file |= (rival & 7) == (from & 7);
            same_rank |= (rival >> 3) == (from >> 3);
        }
    }
    if (other && (!same_file || same_rank)) {
        *out++ = (char)('a' + (from & 7));
    }
    if (same_file) {
        *out++ = (char)('1' + (from >> 3));
    }
    return out;
}

static char *format_plain(const struct chess_position *position, uint16_t move, char *out)
{
    unsigned from = chess_move_from(move), to = chess_move_to(move);
    unsigned kind = position->board[from] & 7;
    bool captures = chess_move_kind(move) & CHESS_CAPTURE;
    if (kind != CHESS_PAWN) {
        *out++ = letters[kind];
        out = disambiguate(position, move, kind, out);
    } else if (captures) {
        *out++ = (char)('a' + (from & 7));
    }
    if (captures) {
        *out++ = 'x';
    }
    *out++ = (char)('a' + (to & 7));
    *out++ = (char)('1' + (to >> 3));
    if (chess_move_kind(move) & CHESS_PROMOTION) {
        *out++ = '=';
        *out++ = letters[chess_move_promoted(move)];
    }
    return out;
}

void chess_san_format(const struct chess_position *position, uint16_t move,
                      char text[CHESS_SAN_MAX])
{
    unsigned kind = chess_move_kind(move);
    char *out = text;
    if (kind == CHESS_SHORT || kind == CHESS_LONG) {
        strcpy(out, kind == CHESS_SHORT ? "O-O" : "O-O-O");
        out += strlen(out);
    } else {
        out = format_plain(position, move, out);
    }
    struct chess_position after;
    chess_position_fork(&after, position);
    chess_position_make(&after, move);
    if (chess_position_check(&after)) {
        *out++ = chess_movegen_count(&after) ? '+' : '#';
    }
    *out = '\0';
}
