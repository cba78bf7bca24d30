#include "worker/cli/suite.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

/* The value of operation `name` in `text` ("bm Qd1+; id "x";"), without quotes. */
static void operation(const char *text, const char *name, char *out, size_t size)
{
    size_t n = strlen(name);
    out[0] = '\0';
    for (const char *p = text; *p;) {
        p += strspn(p, " \t;");
        size_t length = strcspn(p, ";");
        if (strncmp(p, name, n) == 0 && (p[n] == ' ' || p[n] == '\t')) {
            const char *value = p + n + strspn(p + n, " \t\"");
            size_t v = (size_t)(p + length - value);
            while (v > 0 && (isspace((unsigned char)value[v - 1]) || value[v - 1] == '"')) {
                v--;
            }
            snprintf(out, size, "%.*s", (int)v, value);
            return;
        }
        p += length;
    }
}

/* How many leading fields belong to the position: four, or six where counters follow. */
static size_t position_length(const char *line)
{
    const char *p = line, *end = line;
    for (unsigned field = 0; field < 6 && *p && *p != ';'; field++) {
        p += strspn(p, " \t");
        size_t n = strcspn(p, " \t;");
        if (field >= 4 && strspn(p, "0123456789") != n) {
            break;
        }
        p += n;
        end = p;
    }
    return (size_t)(end - line);
}

static enum err add_line(struct suite *suite, const char *line, unsigned number)
{
    struct suite_case c = {.line = number};
    size_t n = position_length(line);
    if (n == 0 || n >= sizeof c.position) {
        return ERR_SYNTAX;
    }
    snprintf(c.position, sizeof c.position, "%.*s", (int)n, line);
    operation(line + n, "id", c.id, sizeof c.id);
    operation(line + n, "bm", c.best, sizeof c.best);
    operation(line + n, "am", c.avoid, sizeof c.avoid);
    if (c.id[0] == '\0') {
        snprintf(c.id, sizeof c.id, "%u", suite->count + 1);
    }
    return append(suite, &c);
}

/* "F5:+12; E3:-2; ...": false: it is none. */
static bool read_scores(struct suite_case *c, const char *text)
{
    while (*(text += strspn(text, " \t;")) != '\0') {
        char square[3], end;
        int score, length = 0;
        if (sscanf(text, "%2[A-Ha-h1-8] : %4d %n%c", square, &score, &length, &end) != 3 ||
            end != ';' || strlen(square) != 2 || score < -64 || score > 64) {
            return false;
        }
        if (!c->has_score || score > c->score) {
            c->has_score = true;
            c->score = score;
            c->best[0] = '\0';
        }
        const size_t used = strlen(c->best);
        if (score == c->score) {
            snprintf(c->best + used, sizeof c->best - used, used > 0 ? " %s" : "%s", square);
        }
        text += length;
    }
    return true;
}

/* "% FFO #40, 20 empties": the next position's name, up to a comma. */
static void take_name(const char *comment, char *name)
{
    comment += strspn(comment, "%# \t");
    snprintf(name, SUITE_ID_MAX, "%.*s", (int)strcspn(comment, ","), comment);
}

static enum err add_board(struct suite *suite, const char *line, unsigned number, char *name)
{
    struct suite_case c = {.line = number};
    const size_t n = strcspn(line, ";");
    if (n == 0 || n >= sizeof c.position || !read_scores(&c, line + n)) {
        return ERR_SYNTAX;
    }
    snprintf(c.position, sizeof c.position, "%.*s", (int)n, line);
    snprintf(c.id, sizeof c.id, "%s", name);
    if (name[0] == '\0') {
        snprintf(c.id, sizeof c.id, "%u", suite->count + 1);
    }
    name[0] = '\0';
    return append(suite, &c);
}

static enum err read_file(struct suite *suite, const char *path, bool is_obf, char *why,
                          size_t why_size)
{
    char name[SUITE_ID_MAX] = "";
    char *line = NULL;
    size_t room = 0;
    unsigned number = 0;
    enum err err = ERR_OK;
    bool is_stdin = strcmp(path, "-") == 0;
    FILE *file = is_stdin ? stdin : fopen(path, "r");
    if (is_stdin) {
        path = "standard input";
    }
    if (file == NULL) {
        snprintf(why, why_size, "%s: %s", path, strerror(errno));
        return ERR_IO;
    }
    while (err == ERR_OK && getline(&line, &room, file) >= 0) {
        number++;
        line[strcspn(line, "\r\n")] = '\0';
        const char *text = line + strspn(line, " \t");
        if (*text == '#' || *text == '%') {
            take_name(text, name);
        } else if (*text != '\0') {
            err = is_obf ? add_board(suite, text, number, name) : add_line(suite, text, number);
        }
    }
    if (err != ERR_OK) {
        snprintf(why, why_size, "%s:%u: %s", path, number, err_text(err));
    } else if (ferror(file)) {
        snprintf(why, why_size, "%s: %s", path, strerror(errno));
        err = ERR_IO;
    }
    free(line);
    if (!is_stdin) {
        fclose(file);
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
