#include "worker/programs/suite.h"

#include "worker/programs/othello/othello_game.h"

#include "common/lines.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GAMES_BYTES_MAX = 1 << 28, CASES_MAX = 1000000, WRONG_MAX = OTHELLO_GAME_WHY_MAX };

static enum err append(struct suite *suite, const struct suite_case *c)
{
    if (suite->count == CASES_MAX) {
        return ERR_RANGE;
    }
    if (suite->count == suite->room) {
        unsigned room = suite->room ? suite->room * 2 : 32;
        struct suite_case *at = realloc(suite->at, room * sizeof *at);
        if (at == NULL) {
            return ERR_NOMEM;
        }
        suite->at = at;
        suite->room = room;
    }
    suite->at[suite->count++] = *c;
    return ERR_OK;
}

static const char *failure(enum err err)
{
    return err == ERR_IO      ? strerror(errno)
           : err == ERR_RANGE ? "more than 1,000,000 positions: divide it into smaller files"
           : err == ERR_FULL  ? "more than 256 MiB: divide it into smaller files"
                              : err_text(err);
}

enum err suite_add(struct suite *suite, const char *id, const char *position)
{
    struct suite_case c = {.line = 0};
    if (strlen(position) >= sizeof c.position) {
        return ERR_SYNTAX;
    }
    snprintf(c.id, sizeof c.id, "%s", id);
    snprintf(c.position, sizeof c.position, "%s", position);
    return append(suite, &c);
}

/* Copies what fits: a character of several bytes (UTF-8) is there whole or not at all. */
static void copy(char *out, size_t size, const char *text, size_t length)
{
    if (length >= size) {
        length = size - 1;
        while (length > 0 && ((unsigned char)text[length] & 0xc0) == 0x80) {
            length--;
        }
    }
    memcpy(out, text, length);
    out[length] = '\0';
}

/* For people's screens, too: a blank for a tab, '?' for each byte that controls a terminal. */
static void copy_text(char *out, size_t size, const char *text, size_t length)
{
    copy(out, size, text, length);
    for (unsigned char *c = (unsigned char *)out; *c != '\0'; c++) {
        const bool is_c1 = c[0] == 0xc2 && c[1] >= 0x80 && c[1] < 0xa0;
        c[1] = is_c1 ? '?' : c[1];
        *c = *c == '\t' ? ' ' : *c < 0x20 || *c == 0x7f || is_c1 ? '?' : *c;
    }
}

/* Where the operation that begins here ends: at a ';' that is in no text. A text is in quotes, the
 * first of which begins an operand (5" is none) and is closed; others are characters like all. */
static const char *operation_end(const char *p)
{
    for (bool begins = false; *p != '\0' && *p != ';'; begins = p[-1] == ' ' || p[-1] == '\t') {
        const char *close = begins && *p == '"' ? strchr(p + 1, '"') : NULL;
        p = close != NULL ? close + 1 : p + 1;
    }
    return p;
}

/* The value of operation `name` in `text` ("bm Qd1+; id "x";"), without quotes around it. */
static void operation(const char *text, const char *name, char *out, size_t size)
{
    const size_t n = strlen(name);
    out[0] = '\0';
    for (const char *p = text + strspn(text, " \t;"), *end; *p != '\0';
         p = end + strspn(end, " \t;")) {
        end = operation_end(p);
        if (strncmp(p, name, n) != 0 || (p[n] != ' ' && p[n] != '\t')) {
            continue;
        }
        const char *value = p + n + strspn(p + n, " \t");
        size_t v = (size_t)(end - value);
        while (v > 0 && isspace((unsigned char)value[v - 1])) {
            v--;
        }
        if (v > 0 && value[0] == '"') {
            const char *close = memchr(value + 1, '"', v - 1);
            value++;
            v = close != NULL ? (size_t)(close - value) : v - 1;
        }
        copy_text(out, size, value, v);
        return;
    }
}

/* The fourth field may be missing: then a known operation begins there (PGN standard, section 16.2;
 * c1 to c8 are not among them: they are squares). */
static bool is_operation(const char *field, size_t n)
{
    static const char known[] =
        " acd acn acs am bm c0 c9 ce dm draw_accept draw_claim draw_offer draw_reject eco fmvn "
        "hmvc "
        "id nic noop pm pv rc resign sm tcgs tcri tcsi v0 v1 v2 v3 v4 v5 v6 v7 v8 v9 ";
    char word[16];
    const int length = snprintf(word, sizeof word, " %.*s ", n < 13 ? (int)n : 13, field);
    return n > 1 && (size_t)length == n + 2 && strstr(known, word) != NULL;
}

/* The length of the leading fields that belong to the position: three or four, or six where
 * counters follow. */
static size_t position_length(const char *line, unsigned *fields)
{
    const char *p = line, *end = line;
    *fields = 0;
    while (*fields < 6) {
        p += strspn(p, " \t");
        size_t n = strcspn(p, " \t;");
        if (n == 0 || (*fields == 3 && is_operation(p, n)) ||
            (*fields >= 4 && strspn(p, "0123456789") != n)) {
            break;
        }
        p += n;
        end = p;
        ++*fields;
    }
    return (size_t)(end - line);
}

static const char no_square[] = " -";
static const char not_fields[] = "a position has 3 to 6 fields, then come operations";

/* The counters, where the position has none and there are operations for them. */
static bool add_counters(const char *operations, char *position)
{
    char clock[16], number[16];
    const size_t used = strlen(position);
    operation(operations, "hmvc", clock, sizeof clock);
    operation(operations, "fmvn", number, sizeof number);
    if (clock[0] == '\0' && number[0] == '\0') {
        return true;
    }
    const int n = snprintf(position + used, SUITE_POSITION_MAX - used, " %s %s",
                           clock[0] != '\0' ? clock : "0", number[0] != '\0' ? number : "1");
    return (size_t)n < SUITE_POSITION_MAX - used;
}

/* NULL; or what is wrong with the line. */
static const char *read_line(struct suite_case *c, const char *line)
{
    unsigned fields;
    const size_t n = position_length(line, &fields);
    if (n == 0 || n + strlen(no_square) >= sizeof c->position) {
        return not_fields;
    }
    const char *operations = line + n + strspn(line + n, " \t");
    for (unsigned i = fields; i < 6 && *operations == '-' && strchr(" \t;", operations[1]); i++) {
        operations += 1 + strspn(operations + 1, " \t"); /* a counter that is not known */
    }
    if (*operations != '\0' && *operations != ';' && !isalpha((unsigned char)*operations)) {
        return not_fields; /* the operation after it would be taken as its operand */
    }
    copy(c->position, sizeof c->position, line, n);
    strcat(c->position, fields == 3 ? no_square : ""); /* counters may come behind it */
    operation(operations, "id", c->id, sizeof c->id);
    operation(operations, "bm", c->best, sizeof c->best);
    operation(operations, "am", c->avoid, sizeof c->avoid);
    return fields > 4 || add_counters(operations, c->position) ? NULL : not_fields;
}

/* "F5:+12; E3:-2; PA:-4", or a score alone, "-48". False: it is none. */
static bool read_scores(struct suite_case *c, const char *text)
{
    while (*(text += strspn(text, " \t;")) != '\0') {
        int score, length = 0;
        char move[8];
        const char *number = text;
        const int square = othello_read_move(&number);
        const bool is_pass = square == OTHELLO_PASSED;
        snprintf(move, sizeof move, "%.*s",
                 is_pass       ? 4
                 : square >= 0 ? 2
                               : 0,
                 is_pass ? "pass" : text);
        if ((is_pass && *number != '\0' && !strchr(" \t:;", *number)) ||
            sscanf(number, square >= 0 ? " : %4d%n" : "%4d%n", &score, &length) != 1 ||
            score < -64 || score > 64) {
            return false;
        }
        text = number + length;
        text += strspn(text, " \t");
        if (*text != ';' && *text != '\0') {
            return false;
        }
        if (!c->has_score || score > c->score) {
            c->has_score = true;
            c->score = score;
            c->best[0] = '\0';
        }
        const size_t used = strlen(c->best);
        if (score == c->score && move[0] != '\0') {
            snprintf(c->best + used, sizeof c->best - used, used > 0 ? " %s" : "%s", move);
        }
    }
    return true;
}

/* "% FFO #40, 20 empties": the next position's name, up to a comma. */
static void take_name(const char *comment, char *name)
{
    comment += strspn(comment, "%# \t");
    copy_text(name, SUITE_ID_MAX, comment, strcspn(comment, ","));
}

/* As read_line; a comment at its end, which may name it, is cut off. */
static const char *read_board(struct suite_case *c, char *line)
{
    char *comment = line + strcspn(line, "%#");
    take_name(comment, c->id);
    *comment = '\0';
    const size_t n = strcspn(line, ";");
    if (n == 0 || n >= sizeof c->position) {
        return "a board, the side to move, and ';' are wanted";
    }
    copy(c->position, sizeof c->position, line, n);
    return read_scores(c, line + n) ? NULL : "after the side to move come moves, as in F5:+12;";
}

static enum err add_line(struct suite *suite, char *line, unsigned number, bool is_obf, char *name)
{
    struct suite_case c = {.line = number};
    const char *wrong = is_obf ? read_board(&c, line) : read_line(&c, line);
    if (wrong != NULL) {
        c = (struct suite_case){.line = number, .is_wrong = true};
        snprintf(c.position, sizeof c.position, "%s", wrong);
    } else if (is_obf && name[0] != '\0') {
        snprintf(c.id, sizeof c.id, "%s", name);
    } else if (c.id[0] == '\0') {
        snprintf(c.id, sizeof c.id, "%u", suite->count + 1);
    }
    name[0] = '\0';
    return append(suite, &c);
}

static enum err read_lines(struct suite *suite, FILE *file, bool is_obf, char wrong[WRONG_MAX])
{
    char name[SUITE_ID_MAX] = "";
    enum err err = ERR_OK;
    struct lines lines = {.file = file};
    while (err == ERR_OK && lines_next(&lines)) {
        char *text = lines.text + strspn(lines.text, " \t");
        if (*text == '#' || *text == '%') {
            take_name(text, name);
        } else if (*text != '\0') {
            err = add_line(suite, text, lines.number, is_obf, name);
        }
    }
    err = err == ERR_OK && !feof(file) ? ERR_IO : err;
    snprintf(wrong, WRONG_MAX, "%s", failure(err));
    lines_close(&lines);
    return err;
}

/* ---- games of Othello ---- */

/* All bytes of the file and a zero. ERR_FULL: there are too many. */
static enum err read_bytes(FILE *file, char **bytes, size_t *size)
{
    size_t room = 1 << 15;
    *size = 0;
    *bytes = NULL;
    do {
        room *= 2;
        char *more = room > GAMES_BYTES_MAX ? NULL : realloc(*bytes, room + 1);
        if (more == NULL) {
            return room > GAMES_BYTES_MAX ? ERR_FULL : ERR_NOMEM;
        }
        *bytes = more;
        *size += fread(more + *size, 1, room - *size, file);
    } while (*size == room);
    (*bytes)[*size] = '\0';
    return ferror(file) ? ERR_IO : ERR_OK;
}

static void take_game(struct suite_case *c, const struct othello_game *game, unsigned empties)
{
    const unsigned first = othello_count(othello_empties(game->board));
    const unsigned last = othello_count(othello_empties(game->last));
    struct othello_board board;
    bool is_black;
    if (othello_game_at(game, empties == SUITE_LAST ? last : empties, &board, &is_black)) {
        othello_format(board, is_black, c->position);
        return;
    }
    c->is_wrong = true;
    snprintf(c->position, sizeof c->position,
             "game %s: it goes from %u to %u empty squares, not to %u", c->id, first, last,
             empties);
}

static enum err read_games(struct suite *suite, FILE *file, unsigned empties, char wrong[WRONG_MAX])
{
    struct game_file games;
    struct othello_game game;
    enum game_file_answer answer;
    char *bytes;
    size_t size;
    enum err err = read_bytes(file, &bytes, &size);
    if (err == ERR_OK && !game_file_open(&games, bytes, size, wrong)) {
        free(bytes);
        return ERR_SYNTAX;
    }
    while (err == ERR_OK && (answer = game_file_next(&games, &game, wrong)) != GAME_FILE_END) {
        struct suite_case c = {.line = games.line, .is_wrong = answer == GAME_FILE_WRONG};
        snprintf(c.id, sizeof c.id, "%u", games.game);
        if (c.is_wrong) {
            snprintf(c.position, sizeof c.position, "game %u: %.120s", games.game, wrong);
        } else {
            take_game(&c, &game, empties);
        }
        err = append(suite, &c);
    }
    snprintf(wrong, WRONG_MAX, "%s", failure(err));
    free(bytes);
    return err;
}

enum err suite_read(struct suite *suite, const char *path, enum suite_form form, unsigned empties,
                    char *why, size_t why_size)
{
    const bool is_stdin = strcmp(path, "-") == 0;
    FILE *file = is_stdin ? stdin : fopen(path, "r");
    char wrong[WRONG_MAX];
    enum err err = ERR_IO;
    if (file == NULL) {
        snprintf(wrong, sizeof wrong, "%s", failure(err));
    } else if (form == SUITE_GAMES) {
        err = read_games(suite, file, empties, wrong);
    } else {
        err = read_lines(suite, file, form == SUITE_OBF, wrong);
    }
    if (err != ERR_OK) {
        snprintf(why, why_size, "%s: %s", is_stdin ? "standard input" : path, wrong);
    }
    if (file != NULL && !is_stdin) {
        fclose(file);
    }
    return err;
}

void suite_close(struct suite *suite)
{
    free(suite->at);
    *suite = (struct suite){0};
}
