#include "worker/programs/suite.h"

#include "common/lines.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static enum err append(struct suite *suite, const struct suite_case *c)
{
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
        copy(out, size, value, v);
        return;
    }
}

/* The length of the leading fields that belong to the position: four, or six where counters follow.
 */
static size_t position_length(const char *line, unsigned *fields)
{
    const char *p = line, *end = line;
    *fields = 0;
    while (*fields < 6) {
        p += strspn(p, " \t");
        size_t n = strcspn(p, " \t;");
        if (n == 0 || (*fields >= 4 && strspn(p, "0123456789") != n)) {
            break;
        }
        p += n;
        end = p;
        ++*fields;
    }
    return (size_t)(end - line);
}

static const char not_fields[] = "a position has 4 to 6 fields, then come operations";

/* What follows the position; counters that are not known ("-") are skipped. */
static const char *operations_of(const char *text, unsigned fields)
{
    text += strspn(text, " \t");
    for (; fields < 6 && *text == '-' && (text[1] == '\0' || strchr(" \t;", text[1])); fields++) {
        text++;
        text += strspn(text, " \t");
    }
    return text;
}

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
    if (n == 0 || n >= sizeof c->position) {
        return not_fields;
    }
    const char *operations = operations_of(line + n, fields);
    if (*operations != '\0' && *operations != ';' && !isalpha((unsigned char)*operations)) {
        return not_fields; /* the operation after it would be taken as its operand */
    }
    copy(c->position, sizeof c->position, line, n);
    operation(operations, "id", c->id, sizeof c->id);
    operation(operations, "bm", c->best, sizeof c->best);
    operation(operations, "am", c->avoid, sizeof c->avoid);
    return fields > 4 || add_counters(operations, c->position) ? NULL : not_fields;
}

static bool is_blank_or_end(char c)
{
    return c == '\0' || strchr(" \t:;", c) != NULL;
}

/* The text after a move, which is added to `move`; NULL: there is none. */
static const char *read_move(const char *text, char move[8])
{
    static const char *const passes[] = {"pass", "pa", "ps", "--"};
    for (unsigned i = 0; i < sizeof passes / sizeof *passes; i++) {
        const size_t n = strlen(passes[i]);
        if (strncasecmp(text, passes[i], n) == 0 && is_blank_or_end(text[n])) {
            strcpy(move, "pass");
            return text + n;
        }
    }
    if (text[0] == '\0' || strchr("abcdefghABCDEFGH", text[0]) == NULL || text[1] < '1' ||
        text[1] > '8') {
        return NULL;
    }
    snprintf(move, 8, "%c%c", text[0], text[1]);
    return text + 2;
}

/* "F5:+12; E3:-2; PA:-4": false: it is none. */
static bool read_scores(struct suite_case *c, const char *text)
{
    while (*(text += strspn(text, " \t;")) != '\0') {
        char move[8];
        int score, length = 0;
        text = read_move(text, move);
        if (text == NULL || sscanf(text, " : %4d%n", &score, &length) != 1 || score < -64 ||
            score > 64) {
            return false;
        }
        text += length;
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
        if (score == c->score) {
            snprintf(c->best + used, sizeof c->best - used, used > 0 ? " %s" : "%s", move);
        }
    }
    return true;
}

/* "% FFO #40, 20 empties": the next position's name, up to a comma. */
static void take_name(const char *comment, char *name)
{
    comment += strspn(comment, "%# \t");
    copy(name, SUITE_ID_MAX, comment, strcspn(comment, ","));
}

/* As read_line; a comment at its end is cut off. */
static const char *read_board(struct suite_case *c, char *line)
{
    line[strcspn(line, "%#")] = '\0';
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
        c = (struct suite_case){.line = number, .wrong = wrong};
    } else if (is_obf && name[0] != '\0') {
        snprintf(c.id, sizeof c.id, "%s", name);
    } else if (c.id[0] == '\0') {
        snprintf(c.id, sizeof c.id, "%u", suite->count + 1);
    }
    name[0] = '\0';
    return append(suite, &c);
}

static enum err read_file(struct suite *suite, const char *path, bool is_obf, char *why,
                          size_t why_size)
{
    char name[SUITE_ID_MAX] = "";
    enum err err = ERR_OK;
    bool is_stdin = strcmp(path, "-") == 0;
    struct lines lines = {.file = is_stdin ? stdin : fopen(path, "r")};
    if (is_stdin) {
        path = "standard input";
    }
    if (lines.file == NULL) {
        snprintf(why, why_size, "%s: %s", path, strerror(errno));
        return ERR_IO;
    }
    while (err == ERR_OK && lines_next(&lines)) {
        char *text = lines.text + strspn(lines.text, " \t");
        if (*text == '#' || *text == '%') {
            take_name(text, name);
        } else if (*text != '\0') {
            err = add_line(suite, text, lines.number, is_obf, name);
        }
    }
    if (err != ERR_OK || !feof(lines.file)) {
        err = err != ERR_OK ? err : ERR_IO;
        snprintf(why, why_size, "%s: %s", path, strerror(errno));
    }
    lines_close(&lines);
    if (!is_stdin) {
        fclose(lines.file);
    }
    return err;
}

enum err suite_read_epd(struct suite *suite, const char *path, char *why, size_t why_size)
{
    return read_file(suite, path, false, why, why_size);
}

enum err suite_read_obf(struct suite *suite, const char *path, char *why, size_t why_size)
{
    return read_file(suite, path, true, why, why_size);
}

void suite_close(struct suite *suite)
{
    free(suite->at);
    *suite = (struct suite){0};
}
