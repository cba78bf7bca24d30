#include "worker/games/chess/fen.h"

#include "worker/games/chess/movegen.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char letters[] = "PNBRQK..pnbrqk";
static const char right_letters[] = "KQkq"; /* in the order of the bits */

struct reader {
    struct chess_position *position;
    char *why;
    size_t why_size;
};

__attribute__((format(printf, 3, 4))) static enum err fail(struct reader *reader, enum err code,
                                                           const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(reader->why, reader->why_size, format, arguments);
    va_end(arguments);
    return code;
}

/* Adds to what is left out of a position that is good without it. */
__attribute__((format(printf, 2, 3))) static void leave_out(struct reader *reader,
                                                            const char *format, ...)
{
    char *why = reader->why;
    size_t used = reader->why_size > 0 ? strlen(why) : 0;
    va_list arguments;
    va_start(arguments, format);
    if (used > 0 && used + 2 < reader->why_size) {
        strcpy(why + used, "; ");
        used += 2;
    }
    vsnprintf(why + used, reader->why_size - used, format, arguments);
    va_end(arguments);
}

/* For messages: a byte that is safe to print. */
static char printable(char c)
{
    return c >= ' ' && c <= '~' ? c : '?';
}

struct field {
    const char *text;
    size_t size;
};

enum { FIELDS_MIN = 3, FIELDS_MAX = 6, FIELDS_READ = 4 };

/* Cuts at spaces; returns the number of fields, FIELDS_MAX + 1 for too many. */
static unsigned split(const char *text, struct field *fields)
{
    unsigned count = 0;
    for (;;) {
        text += strspn(text, " \t\r\n");
        if (!*text) {
            return count;
        }
        if (count == FIELDS_MAX) {
            return FIELDS_MAX + 1;
        }
        size_t size = strcspn(text, " \t\r\n");
        fields[count++] = (struct field){text, size};
        text += size;
    }
}

static enum err read_board(struct reader *reader, const struct field *field)
{
    unsigned rank = 7, file = 0;
    for (size_t i = 0; i < field->size; i++) {
        char c = field->text[i];
        const char *letter = c == '.' ? NULL : strchr(letters, c);
        if (c == '/') {
            if (file != 8) {
                return fail(reader, ERR_SYNTAX, "rank %u has %u squares, not 8", rank + 1, file);
            }
            if (rank == 0) {
                return fail(reader, ERR_SYNTAX, "more than 8 ranks");
            }
            rank--;
            file = 0;
        } else if (c >= '1' && c <= '8') {
            file += (unsigned)(c - '0');
        } else if (letter) {
            if (file < 8) {
                chess_position_put(reader->position, (unsigned)(letter - letters), rank * 8 + file);
            }
            file++;
        } else {
            return fail(reader, ERR_SYNTAX, "'%c' is not a piece", printable(c));
        }
        if (file > 8) {
            return fail(reader, ERR_SYNTAX, "rank %u has more than 8 squares", rank + 1);
        }
    }
    if (file != 8) {
        return fail(reader, ERR_SYNTAX, "rank %u has %u squares, not 8", rank + 1, file);
    }
    if (rank != 0) {
        return fail(reader, ERR_SYNTAX, "%u ranks, not 8", 8 - rank);
    }
    return ERR_OK;
}

static enum err read_side(struct reader *reader, const struct field *field)
{
    if (field->size != 1 || (field->text[0] != 'w' && field->text[0] != 'b')) {
        return fail(reader, ERR_SYNTAX, "side to move is not w or b");
    }
    reader->position->side = field->text[0] == 'w' ? CHESS_WHITE : CHESS_BLACK;
    return ERR_OK;
}

/* K and Q are the outermost rook on that side of the king (X-FEN), a file's letter the rook there
 * (Shredder-FEN). */
static unsigned castling_rook(const struct chess_position *position, unsigned colour, unsigned king,
                              char letter)
{
    const unsigned rank = king & 56, piece = colour << 3 | CHESS_ROOK;
    const unsigned first = letter == 'K'   ? rank + 7
                           : letter == 'Q' ? rank
                                           : rank + (unsigned)(letter - 'A');
    for (unsigned at = first; at != king; at = at < king ? at + 1 : at - 1) {
        if (position->board[at] == piece) {
            return at;
        }
        if (letter != 'K' && letter != 'Q') {
            break;
        }
    }
    return CHESS_NO_SQUARE;
}

static enum err read_castling(struct reader *reader, const struct field *field)
{
    static const uint64_t home[2] = {BITBOARD_RANK_1, BITBOARD_RANK_8};
    struct chess_position *position = reader->position;
    if (field->size == 1 && field->text[0] == '-') {
        return ERR_OK;
    }
    for (size_t i = 0; i < field->size; i++) {
        char c = field->text[i];
        const unsigned colour = c >= 'a' ? CHESS_BLACK : CHESS_WHITE, before = position->castling;
        const char upper = (char)(colour ? c - 'a' + 'A' : c);
        if (upper != 'K' && upper != 'Q' && (upper < 'A' || upper > 'H')) {
            return fail(reader, ERR_SYNTAX, "'%c' is not a castling right", printable(c));
        }
        if (memchr(field->text, c, i) != NULL) {
            return fail(reader, ERR_SYNTAX, "castling right '%c' twice", c);
        }
        const uint64_t kings = chess_set(position, colour, CHESS_KING) & home[colour];
        const unsigned king = kings ? bitboard_first(kings) : CHESS_NO_SQUARE;
        const unsigned rook = kings ? castling_rook(position, colour, king, upper) : king;
        if (rook == CHESS_NO_SQUARE) {
            leave_out(reader, "left out castling right '%c': no king and rook at home", c);
            continue;
        }
        chess_position_give_right(position, king, rook);
        if (position->castling == before) {
            return fail(reader, ERR_SYNTAX, "castling right '%c' twice", c);
        }
        position->chess960 |= upper != 'K' && upper != 'Q';
    }
    return ERR_OK;
}

static enum err read_ep(struct reader *reader, const struct field *field)
{
    if (field->size == 1 && field->text[0] == '-') {
        return ERR_OK;
    }
    if (field->size != 2 || field->text[0] < 'a' || field->text[0] > 'h' || field->text[1] < '1' ||
        field->text[1] > '8') {
        return fail(reader, ERR_SYNTAX, "en-passant square is not a square or -");
    }
    char rank = reader->position->side == CHESS_WHITE ? '6' : '3';
    if (field->text[1] != rank) {
        leave_out(reader, "left out en-passant square %.2s: not on rank %c", field->text, rank);
        return ERR_OK;
    }
    reader->position->ep = (uint8_t)((field->text[1] - '1') * 8 + (field->text[0] - 'a'));
    return ERR_OK;
}

static enum err read_counter(struct reader *reader, const struct field *field, const char *name,
                             uint16_t *out)
{
    unsigned value = 0;
    for (size_t i = 0; i < field->size; i++) {
        char c = field->text[i];
        if (c < '0' || c > '9') {
            return fail(reader, ERR_SYNTAX, "%s is not a number", name);
        }
        value = value * 10 + (unsigned)(c - '0');
        if (value > CHESS_COUNTER_MAX) {
            return fail(reader, ERR_SYNTAX, "%s above %d", name, CHESS_COUNTER_MAX);
        }
    }
    *out = (uint16_t)value;
    return ERR_OK;
}

static enum err check_pieces(struct reader *reader, unsigned colour)
{
    const uint64_t *set = &reader->position->set[colour << 3];
    const char *name = colour == CHESS_WHITE ? "white" : "black";
    unsigned kings = bitboard_count(set[CHESS_KING]), pawns = bitboard_count(set[CHESS_PAWN]);
    if (kings != 1) {
        return fail(reader, ERR_ILLEGAL, "%s has %u kings, not 1", name, kings);
    }
    if (set[CHESS_PAWN] & (BITBOARD_RANK_1 | BITBOARD_RANK_8)) {
        return fail(reader, ERR_ILLEGAL, "%s pawn on the first or last rank", name);
    }
    if (bitboard_count(set[CHESS_ALL]) > 16) {
        return fail(reader, ERR_ILLEGAL, "%s has more than 16 pieces", name);
    }
    if (pawns > 8) {
        return fail(reader, ERR_ILLEGAL, "%s has more than 8 pawns", name);
    }
    static const unsigned at_first[CHESS_KING] = {8, 2, 2, 2, 1};
    unsigned promoted = 0;
    for (unsigned kind = CHESS_KNIGHT; kind < CHESS_KING; kind++) {
        unsigned count = bitboard_count(set[kind]);
        promoted += count > at_first[kind] ? count - at_first[kind] : 0;
    }
    reader->position->is_unreal |= promoted > 8 - pawns;
    return ERR_OK;
}

/* Keeps the square only if a pawn has just stepped over it and may legally be captured. */
static void drop_useless_ep(struct chess_position *position)
{
    unsigned ep = position->ep, us = position->side;
    if (ep == CHESS_NO_SQUARE) {
        return;
    }
    unsigned home = us == CHESS_WHITE ? ep + 8 : ep - 8;
    if (position->board[ep] != CHESS_EMPTY || position->board[home] != CHESS_EMPTY ||
        position->board[ep ^ 8] != ((us ^ 1) << 3 | CHESS_PAWN) ||
        !chess_position_ep_pawns(position, us, ep)) {
        position->ep = CHESS_NO_SQUARE;
    }
}

static enum err check_position(struct reader *reader)
{
    struct chess_position *position = reader->position;
    enum err err = check_pieces(reader, CHESS_WHITE);
    err = err ? err : check_pieces(reader, CHESS_BLACK);
    if (err) {
        return err;
    }
    unsigned us = position->side;
    if (chess_attackers(position, chess_king(position, us ^ 1), us, chess_occupied(position))) {
        return fail(reader, ERR_ILLEGAL, "the side not to move is in check");
    }
    return ERR_OK;
}

static enum err read_fields(struct reader *reader, const struct field *fields, unsigned count)
{
    static enum err (*const readers[FIELDS_READ])(struct reader *, const struct field *) = {
        read_board, read_side, read_castling, read_ep};
    enum err err = ERR_OK;
    for (unsigned i = 0; i < FIELDS_READ && i < count && !err; i++) {
        err = readers[i](reader, &fields[i]);
    }
    if (!err && count > 4) {
        err = read_counter(reader, &fields[4], "halfmove clock", &reader->position->halfmoves);
    }
    if (!err && count > 5) {
        err = read_counter(reader, &fields[5], "move number", &reader->position->fullmove);
    }
    return err ? err : check_position(reader);
}

enum err chess_position_parse(void *position, const char *text, char *why, size_t why_size)
{
    struct chess_position scratch; /* so that a failure leaves `position` alone */
    struct reader reader = {&scratch, why, why_size};
    struct field fields[FIELDS_MAX];
    unsigned count = split(text, fields);
    if (why_size > 0) {
        why[0] = '\0';
    }
    if (count == 1 && fields[0].size == 8 && memcmp(fields[0].text, "startpos", 8) == 0) {
        count = split(CHESS_START, fields);
    }
    if (count < FIELDS_MIN || count > FIELDS_MAX) {
        return fail(&reader, ERR_SYNTAX, "a position has 3 to 6 fields, not %s%u",
                    count > FIELDS_MAX ? "more than " : "",
                    count > FIELDS_MAX ? FIELDS_MAX : count);
    }
    chess_position_clear(&scratch);
    enum err err = read_fields(&reader, fields, count);
    if (err) {
        return err;
    }
    drop_useless_ep(&scratch);
    chess_position_refresh(&scratch);
    const unsigned moves = scratch.is_unreal ? chess_movegen_count(&scratch) : 0;
    if (moves > GAME_MOVES_MAX) {
        return fail(&reader, ERR_ILLEGAL, "%u legal moves are more than %d", moves, GAME_MOVES_MAX);
    }
    chess_position_fork(position, &scratch);
    return ERR_OK;
}

static char *format_board(const struct chess_position *position, char *out)
{
    for (unsigned rank = 8; rank-- > 0;) {
        unsigned empty = 0;
        for (unsigned file = 0; file < 8; file++) {
            unsigned piece = position->board[rank * 8 + file];
            empty += piece == CHESS_EMPTY;
            if (empty > 0 && (piece != CHESS_EMPTY || file == 7)) {
                *out++ = (char)('0' + empty);
                empty = 0;
            }
            if (piece != CHESS_EMPTY) {
                *out++ = letters[piece];
            }
        }
        *out++ = rank ? '/' : ' ';
    }
    return out;
}

/* So that the text can be read. */
static unsigned at_most(unsigned counter)
{
    return counter < CHESS_COUNTER_MAX ? counter : CHESS_COUNTER_MAX;
}

void chess_position_format(const void *at, char *text)
{
    const struct chess_position *position = at;
    char *out = format_board(position, text);
    *out++ = position->side == CHESS_WHITE ? 'w' : 'b';
    *out++ = ' ';
    for (unsigned i = 0; i < 4; i++) {
        if (position->castling & 1u << i) {
            char file = (char)((i < 2 ? 'A' : 'a') + (position->rook_home[i] & 7));
            *out++ = position->chess960 ? file : right_letters[i];
        }
    }
    if (!position->castling) {
        *out++ = '-';
    }
    *out++ = ' ';
    if (position->ep != CHESS_NO_SQUARE) {
        *out++ = (char)('a' + (position->ep & 7));
        *out++ = (char)('1' + (position->ep >> 3));
    } else {
        *out++ = '-';
    }
    snprintf(out, GAME_TEXT_MAX - (size_t)(out - text), " %u %u", at_most(position->halfmoves),
             at_most(position->fullmove));
}
