#include "worker/programs/othello/othello_game.h"

#include "common/lines.h"
#include "proto/codec.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum {
    TAG_MAX = 32,
    VALUE_MAX = 1024, /* of a property that matters; others may be of any length */
    MS_MAX = 1000000000, /* no game takes longer */
    WTHOR_HEADER = 16,
    WTHOR_COUNT = 4, /* offsets in the header ... */
    WTHOR_BOARD = 12,
    WTHOR_RECORD = 68,
    WTHOR_MOVES = 8, /* ... and in a record */
    END_OF_FILE = 0x1a, /* of DOS */
};

/* Black's discs and White's in the usual first board. */
static const struct othello_board start = {UINT64_C(0x0000000810000000),
                                           UINT64_C(0x0000001008000000)};

static bool must_pass(struct othello_board b)
{
    return othello_moves(b.own, b.other) == 0 && othello_moves(b.other, b.own) != 0;
}

/* False: the move is not legal, and the board stays. */
static bool make(struct othello_board *b, unsigned move)
{
    if (move == OTHELLO_PASSED && must_pass(*b)) {
        *b = othello_pass(*b);
        return true;
    }
    if (move >= OTHELLO_SQUARES || (othello_moves(b->own, b->other) & othello_bit(move)) == 0) {
        return false;
    }
    *b = othello_play(*b, move, othello_flips(b->own, b->other, move));
    return true;
}

static void begin(struct othello_game *g, struct othello_board board, bool is_black)
{
    *g = (struct othello_game){
        .board = board, .is_black = is_black, .last = board, .is_last_black = is_black};
}

/* Adds a move: a square or OTHELLO_PASSED. False: it is not legal, or there is no room. */
static bool add(struct othello_game *g, unsigned move)
{
    if (g->moves == OTHELLO_GAME_MOVES_MAX || !make(&g->last, move)) {
        return false;
    }
    g->move[g->moves++] = (uint8_t)move;
    g->is_last_black = !g->is_last_black;
    return true;
}

/* The same for a game that is written without passes: one that this move implies goes before. */
static bool add_square(struct othello_game *g, unsigned square)
{
    (void)add(g, OTHELLO_PASSED);
    return add(g, square);
}

bool othello_game_at(const struct othello_game *g, unsigned empties, struct othello_board *board,
                     bool *is_black)
{
    struct othello_board b = g->board;
    bool black = g->is_black;
    for (unsigned i = 0; i < g->moves && othello_count(othello_empties(b)) > empties; i++) {
        (void)make(&b, g->move[i]);
        black = !black;
    }
    if (othello_count(othello_empties(b)) != empties) {
        return false;
    }
    *is_black = must_pass(b) ? !black : black;
    *board = must_pass(b) ? othello_pass(b) : b;
    return true;
}

/* Says why a text is no game. */
static bool refuse(char why[OTHELLO_GAME_WHY_MAX], const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static bool refuse(char why[OTHELLO_GAME_WHY_MAX], const char *format, ...)
{
    va_list list;
    va_start(list, format);
    vsnprintf(why, OTHELLO_GAME_WHY_MAX, format, list);
    va_end(list);
    return false;
}

/* ---- GGF ---- */

/* A property as it stands in the text. */
struct property {
    char tag[TAG_MAX];
    const char *value;
    size_t size;
};

static const char *skip_blanks(const char *text)
{
    while (isspace((unsigned char)*text)) {
        text++;
    }
    return text;
}

/* Seconds, or with colons h:m:s or m:s; `unit_ms` is what a number without a colon counts. Stops at
 * the first byte that is not of it. False: there is no number. */
static bool read_time(const char **text, int64_t unit_ms, int64_t *out)
{
    const char *at = skip_blanks(*text);
    int64_t ms = 0;
    bool is_number = false;
    for (;;) {
        int64_t number = 0, part = 0, scale = 1;
        for (; isdigit((unsigned char)*at); at++) {
            number = number < MS_MAX ? number * 10 + (*at - '0') : number;
            is_number = true;
        }
        if (*at == '.') {
            for (at++; isdigit((unsigned char)*at); at++) {
                part = scale < 1000 ? part * 10 + (*at - '0') : part;
                scale = scale < 1000 ? scale * 10 : scale;
                is_number = true;
            }
        }
        if (*at == ':') {
            unit_ms = 1000;
        }
        ms = (ms + number) * unit_ms + part * unit_ms / scale;
        if (ms > MS_MAX) {
            ms = MS_MAX;
        }
        if (*at != ':') {
            break;
        }
        at++;
        ms = ms / 1000 * 60; /* what was seconds is minutes */
    }
    *text = at;
    *out = is_number ? ms : 0;
    return is_number;
}

int ggf_move(const char *text)
{
    const int move = othello_read_move(&text);
    return *text == '\0' || *text == '/' || isspace((unsigned char)*text) ? move : -1;
}

int ggf_move_and_time(const char *text, int64_t *used_ms)
{
    const char *time = strchr(text, '/');
    const int move = ggf_move(text);
    *used_ms = 0;
    time = time == NULL ? NULL : strchr(time + 1, '/');
    if (time != NULL) {
        time++;
        (void)read_time(&time, 1000, used_ms);
    }
    return move;
}

/* MAIN[,...]/INCREMENT[,...]/EXTRA[,...]; each may be empty. A number without a colon is minutes.
 */
static void read_clock(const char *text, struct ggf_clock *clock)
{
    int64_t *field[] = {&clock->main_ms, &clock->increment_ms, &clock->extra_ms};
    struct ggf_clock none = {0};
    *clock = none;
    for (unsigned i = 0; i < 3 && text != NULL; i++) {
        bool is_number = read_time(&text, 60000, field[i]);
        clock->is_set = i == 0 ? is_number : clock->is_set;
        text = strchr(text, '/');
        text = text == NULL ? NULL : text + 1;
    }
    if (!clock->is_set) {
        *clock = none;
    }
}

/* The ']' that ends a value; NULL: there is none. */
static const char *value_end(const char *text)
{
    text += strcspn(text, "]\\");
    while (text[0] == '\\' && text[1] != '\0') {
        text += 2;
        text += strcspn(text, "]\\");
    }
    return *text == ']' ? text : NULL;
}

/* Moves the text behind it. False: there is none, and why. */
static bool read_property(const char **at, struct property *out, char why[OTHELLO_GAME_WHY_MAX])
{
    const char *text = *at;
    size_t size = 0;
    while (isalnum((unsigned char)text[size])) {
        size++;
    }
    const char *value = skip_blanks(text + size);
    if (size == 0 || size >= TAG_MAX || *value != '[') {
        return refuse(why, "a property such as BO[...] is wanted at '%.20s'", text);
    }
    memcpy(out->tag, text, size);
    out->tag[size] = '\0';
    out->value = value + 1;
    const char *end = value_end(out->value);
    if (end == NULL) {
        *at += strlen(*at);
        return refuse(why, "%s[ has no end", out->tag);
    }
    out->size = (size_t)(end - out->value);
    *at = end + 1;
    return true;
}

static bool read_board(const char *text, struct othello_game *game, char why[OTHELLO_GAME_WHY_MAX])
{
    struct othello_board board = start;
    bool is_black = true;
    char reason[OTHELLO_WHY_MAX];
    text = skip_blanks(text);
    if (text[0] != '8' || (text[1] != '\0' && !isspace((unsigned char)text[1]))) {
        return refuse(why, "BO[%.20s: a board of size 8 is wanted", text);
    }
    text = skip_blanks(text + 1);
    if (*text != '\0' && !othello_parse(text, &board, &is_black, reason)) {
        return refuse(why, "BO: %s", reason);
    }
    begin(game, board, is_black);
    return true;
}

/* The game as it is read. */
struct reading {
    struct ggf_game game;
    bool has_board;
};

static bool read_move(struct reading *r, bool by_black, const char *text,
                      char why[OTHELLO_GAME_WHY_MAX])
{
    int64_t used_ms;
    struct othello_game *game = &r->game.game;
    const int move = ggf_move_and_time(skip_blanks(text), &used_ms);
    if (!r->has_board) {
        return refuse(why, "a move stands before the board, BO[...]");
    }
    if (move < 0) {
        return refuse(why, "'%.20s' is no move", text);
    }
    if (by_black != game->is_last_black) {
        (void)add(game, OTHELLO_PASSED); /* the format lets one be left out */
    }
    if (by_black != game->is_last_black || !add(game, (unsigned)move)) {
        return refuse(why, "move %u, %s[%.20s], is not legal there", game->moves + 1,
                      by_black ? "B" : "W", text);
    }
    r->game.used_ms[by_black ? 0 : 1] += used_ms;
    return true;
}

static bool take(struct reading *r, const struct property *p, char why[OTHELLO_GAME_WHY_MAX])
{
    char value[VALUE_MAX];
    const char *digits;
    static const char *const matter[] = {"GM", "TY", "BO", "B", "W", "TI", "TB", "TW"};
    unsigned i = 0;
    while (i < sizeof matter / sizeof *matter && strcasecmp(p->tag, matter[i]) != 0) {
        i++;
    }
    if (i == sizeof matter / sizeof *matter) {
        return true; /* names, places, results */
    }
    if (p->size >= sizeof value) {
        return refuse(why, "%s[...] is longer than %d bytes", p->tag, VALUE_MAX - 1);
    }
    memcpy(value, p->value, p->size);
    value[p->size] = '\0';
    switch (i) {
    case 0:
        return strcasecmp(value, "othello") == 0 || refuse(why, "GM[%.20s] is not Othello", value);
    case 1: /* "8", or with letters of the game server around: s8r20; the board says the rest */
        digits = value + strcspn(value, "0123456789");
        return (*digits == '8' && !isdigit((unsigned char)digits[1]) &&
                strpbrk(digits, "aA") == NULL) ||
               refuse(why, "TY[%.20s] is not Othello on 8x8", value);
    case 2:
        if (r->has_board) {
            return refuse(why, "there are two boards, BO[...]");
        }
        r->has_board = read_board(value, &r->game.game, why);
        return r->has_board;
    case 3:
    case 4:
        return read_move(r, i == 3, value, why);
    case 5:
        read_clock(value, &r->game.clock[0]);
        r->game.clock[1] = r->game.clock[0];
        return true;
    default:
        read_clock(value, &r->game.clock[i - 6]);
        return true;
    }
}

/* Behind the "(;" with which a game begins. */
static bool read_game(const char **text, struct reading *r, char why[OTHELLO_GAME_WHY_MAX])
{
    struct property property;
    for (*text = skip_blanks(*text); **text != ';'; *text = skip_blanks(*text)) {
        if (**text == '\0') {
            return refuse(why, "missing ;) at the end of the game");
        }
        if (!read_property(text, &property, why) || !take(r, &property, why)) {
            return false;
        }
    }
    *text = skip_blanks(*text + 1);
    if (**text != ')') {
        return refuse(why, "after the game's ; a ) is wanted, not '%.20s'", *text);
    }
    ++*text;
    return r->has_board || refuse(why, "there is no board, BO[...]");
}

/* The first game of the text, which is moved behind it, or to where it cannot be read any further.
 */
static bool read_first(const char **text, struct ggf_game *game, char why[OTHELLO_GAME_WHY_MAX])
{
    struct reading r = {.has_board = false};
    const char *begin = skip_blanks(*text);
    if (begin[0] != '(' || *skip_blanks(begin + 1) != ';') {
        return refuse(why, "a game in GGF starts with (;");
    }
    *text = skip_blanks(begin + 1) + 1;
    if (!read_game(text, &r, why)) {
        return false;
    }
    *game = r.game;
    return true;
}

bool ggf_parse(const char *text, struct ggf_game *game, char why[OTHELLO_GAME_WHY_MAX])
{
    struct ggf_game found;
    if (!read_first(&text, &found, why)) {
        return false;
    }
    text = skip_blanks(text);
    if (*text != '\0') {
        return refuse(why, "after the game's ;) there is '%.20s'", text);
    }
    *game = found;
    return true;
}

/* ---- WTHOR ---- */

static unsigned wthor_games(const struct game_file *f)
{
    const unsigned char *count = (const unsigned char *)f->bytes + WTHOR_COUNT;
    return count[0] | (unsigned)count[1] << 8 | (unsigned)count[2] << 16 | (unsigned)count[3] << 24;
}

/* A header begins with the century of its date, a byte that no text has, or says how long the file
 * is. */
static bool is_wthor(const struct game_file *f)
{
    const size_t seen = f->size < WTHOR_HEADER ? f->size : WTHOR_HEADER;
    if (memchr(f->bytes, '\0', seen) == NULL) {
        return false;
    }
    const bool has_century = f->bytes[0] == 19 || f->bytes[0] == 20;
    if (has_century || seen < WTHOR_HEADER) {
        return has_century;
    }
    const uint64_t whole = WTHOR_HEADER + (uint64_t)WTHOR_RECORD * wthor_games(f);
    return wthor_games(f) > 0 && (f->bytes[WTHOR_BOARD] == 0 || f->bytes[WTHOR_BOARD] == 8) &&
           f->size < whole + WTHOR_RECORD && whole < f->size + WTHOR_RECORD;
}

static bool open_wthor(struct game_file *f, char why[OTHELLO_GAME_WHY_MAX])
{
    if (f->size < WTHOR_HEADER) {
        return refuse(why,
                      "the file has zero bytes, as WTHOR has, but not the %d bytes of its header",
                      WTHOR_HEADER);
    }
    const unsigned board = (unsigned char)f->bytes[WTHOR_BOARD];
    if (board != 0 && board != 8) {
        return refuse(why, "a WTHOR file of boards of size %u, not 8", board);
    }
    if (wthor_games(f) == 0) {
        return refuse(why,
                      "a WTHOR file without games: names and tournaments have files of their own");
    }
    f->at = WTHOR_HEADER;
    return true;
}

static bool read_record(const unsigned char *code, struct othello_game *game,
                        char why[OTHELLO_GAME_WHY_MAX])
{
    unsigned i = 0;
    begin(game, start, true);
    for (; i < WTHOR_RECORD - WTHOR_MOVES && code[i] != 0; i++) {
        const unsigned row = code[i] / 10u - 1, column = code[i] % 10u - 1;
        if (row > 7 || column > 7) {
            return refuse(why, "move %u, %u, is no square (10 x row + column)", i + 1, code[i]);
        }
        if (!add_square(game, 8 * row + column)) {
            return refuse(why, "move %u, %c%u, is not legal there", i + 1, (char)('a' + column),
                          row + 1);
        }
    }
    for (; i < WTHOR_RECORD - WTHOR_MOVES; i++) {
        if (code[i] != 0) {
            return refuse(why, "move %u, %u, comes after the end of the game", i + 1, code[i]);
        }
    }
    return true;
}

/* Reports a mismatch between header and file size once, after the last whole record. */
static enum game_file_answer next_record(struct game_file *f, struct othello_game *game,
                                         char why[OTHELLO_GAME_WHY_MAX])
{
    const unsigned games = wthor_games(f);
    const size_t left = f->size - f->at;
    if (f->has_ended || (left == 0 && f->game == games)) {
        return GAME_FILE_END;
    }
    f->line = ++f->game;
    if (f->game > games) {
        (void)refuse(why, "%zu bytes follow, but the header says %u games", left, games);
    } else if (left < WTHOR_RECORD) {
        (void)refuse(why, "the file ends after %zu of its %d bytes; the header says %u games", left,
                     WTHOR_RECORD, games);
    } else {
        f->at += WTHOR_RECORD;
        return read_record((const unsigned char *)f->bytes + f->at - WTHOR_RECORD + WTHOR_MOVES,
                           game, why)
                   ? GAME_FILE_GAME
                   : GAME_FILE_WRONG;
    }
    f->has_ended = true;
    return GAME_FILE_WRONG;
}

/* ---- texts ---- */

/* Moves on to that byte, and counts line ends: LF, CR LF, CR. */
static void go_to(struct game_file *f, size_t to)
{
    for (; f->at < to; f->at++) {
        const char c = f->bytes[f->at];
        f->lines += c == '\n' || (c == '\r' && f->bytes[f->at + 1] != '\n');
    }
}

static size_t line_end(const struct game_file *f, size_t from)
{
    return from + strcspn(f->bytes + from, "\r\n");
}

/* The '(' of a game in GGF, which may have a number before it; NULL: here is none. */
static const char *ggf_begin(const char *text)
{
    text += strspn(text, " \t");
    text += strspn(text, "0123456789");
    text += strspn(text, " \t");
    return *text == '(' && text[1 + strspn(text + 1, " \t\r\n")] == ';' ? text : NULL;
}

/* A game, damaged or not, ends where a line begins with the next one. */
static size_t ggf_end(const struct game_file *f)
{
    size_t end = f->at < f->ggf_end ? f->ggf_end : line_end(f, f->at);
    while (end < f->size && ggf_begin(f->bytes + end + 1) == NULL) {
        end = line_end(f, end + 1);
    }
    return end;
}

/* "12." before a move. */
static const char *skip_between(const char *text)
{
    for (;;) {
        const size_t digits = strspn(text, "0123456789");
        const size_t blanks = strspn(text, " \t,");
        if (blanks == 0 && (digits == 0 || text[digits] != '.')) {
            return text;
        }
        text += blanks > 0 ? blanks : digits + 1;
    }
}

/* Whether a transcript may begin here. */
static bool begins_with_move(const char *text)
{
    struct othello_game game;
    text = skip_between(text);
    begin(&game, start, true);
    const int move = othello_read_move(&text);
    return move >= 0 && move != OTHELLO_PASSED && add_square(&game, (unsigned)move);
}

/* Where to go on after the game at `first`, which cannot be read beyond `stopped`: at the next game
 * in GGF, or at the next line that begins with a legal first move. */
static size_t next_begin(const struct game_file *f, size_t first, size_t stopped, size_t end)
{
    size_t at = stopped == end ? first : stopped; /* a value without end hides all lines */
    while (at > first && strchr("\r\n", f->bytes[at - 1]) == NULL) {
        at--;
    }
    for (at = at > first ? at : first + 1; at < end; at++) {
        const char *text = f->bytes + at;
        if ((at >= stopped && *text == '(' && ggf_begin(text) != NULL) ||
            (strchr("\r\n", text[-1]) != NULL && begins_with_move(text))) {
            return at;
        }
    }
    return end;
}

static bool read_ggf(struct game_file *f, const char *begin, struct othello_game *game,
                     char why[OTHELLO_GAME_WHY_MAX])
{
    struct ggf_game found;
    const size_t end = ggf_end(f), first = (size_t)(begin - f->bytes);
    const char kept = f->bytes[end];
    f->bytes[end] = '\0';
    f->ggf_end = end;
    const bool is_read = read_first(&begin, &found, why);
    const size_t stopped = (size_t)(begin - f->bytes);
    go_to(f, is_read ? stopped : next_begin(f, first, stopped, end));
    f->bytes[end] = kept;
    if (is_read) {
        *game = found.game;
    }
    return is_read;
}

static bool read_moves(const char *text, struct othello_game *game, char why[OTHELLO_GAME_WHY_MAX])
{
    begin(game, start, true);
    for (text = skip_between(text); *text != '\0' && strchr("#%;", *text) == NULL;
         text = skip_between(text)) {
        const char *word = text;
        const int move = othello_read_move(&text);
        if (move < 0) {
            return refuse(why, "'%.20s' is not a move such as f5", word);
        }
        if (move == OTHELLO_PASSED ? !add(game, OTHELLO_PASSED)
                                   : !add_square(game, (unsigned)move)) {
            return refuse(why, "move %u, %.*s, is not legal there", game->moves + 1,
                          (int)(text - word), word);
        }
    }
    return game->moves > 0 || refuse(why, "there is no move on the line");
}

static bool read_transcript(struct game_file *f, struct othello_game *game,
                            char why[OTHELLO_GAME_WHY_MAX])
{
    const size_t end = line_end(f, f->at);
    const char kept = f->bytes[end];
    f->bytes[end] = '\0';
    const bool is_read = read_moves(f->bytes + f->at, game, why);
    f->bytes[end] = kept;
    go_to(f, end);
    return is_read;
}

/* Past blanks and lines of comments. */
static void skip_nothing(struct game_file *f)
{
    for (size_t at = f->at; at < f->size;) {
        at += strspn(f->bytes + at, " \t\r\n\v\f");
        if (f->bytes[at] != '\0' && strchr("#%;", f->bytes[at]) != NULL) {
            at = line_end(f, at);
        }
        if (at == f->at) {
            return;
        }
        go_to(f, at);
    }
}

static enum game_file_answer next_text(struct game_file *f, struct othello_game *game,
                                       char why[OTHELLO_GAME_WHY_MAX])
{
    skip_nothing(f);
    if (f->at == f->size) {
        return GAME_FILE_END;
    }
    f->line = f->lines;
    f->game++;
    const char *ggf = ggf_begin(f->bytes + f->at);
    const bool is_read = ggf != NULL ? read_ggf(f, ggf, game, why) : read_transcript(f, game, why);
    return is_read ? GAME_FILE_GAME : GAME_FILE_WRONG;
}

/* ---- both ---- */

bool game_file_open(struct game_file *f, char *bytes, size_t size, char why[OTHELLO_GAME_WHY_MAX])
{
    *f = (struct game_file){.bytes = bytes, .size = size, .lines = 1};
    f->is_wthor = is_wthor(f);
    if (f->is_wthor) {
        return open_wthor(f, why);
    }
    f->at = (size_t)(lines_skip_bom(bytes) - bytes);
    for (size_t i = 0; i < size; i++) {
        if (bytes[i] == '\0' || bytes[i] == END_OF_FILE) {
            bytes[i] = ' '; /* as in all files of text: lines.h */
        }
    }
    return true;
}

enum game_file_answer game_file_next(struct game_file *f, struct othello_game *game,
                                     char why[OTHELLO_GAME_WHY_MAX])
{
    const enum game_file_answer answer =
        f->is_wthor ? next_record(f, game, why) : next_text(f, game, why);
    if (answer == GAME_FILE_WRONG) { /* a piece of the file may stand in it */
        proto_text_printable(proto_text_of(why), why, OTHELLO_GAME_WHY_MAX);
    }
    return answer;
}
