#include "worker/programs/commands.h"

#include "common/lines.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FIRST_ROOM = 65536 };

bool commands_open(struct commands *c)
{
    *c = (struct commands){.text = malloc(FIRST_ROOM), .room = FIRST_ROOM};
    return c->text != NULL;
}

void commands_close(struct commands *c)
{
    free(c->text);
    c->text = NULL;
}

/* For one byte more at least. False: the line is too long, or memory for it is not there. */
static bool make_room(struct commands *c)
{
    memmove(c->text, c->text + c->begin, c->used - c->begin);
    c->used -= c->begin;
    c->begin = 0;
    if (c->used + 1 < c->room) {
        return true;
    }
    char *text = c->room < COMMANDS_LINE_MAX ? realloc(c->text, c->room * 2) : NULL;
    if (text != NULL) {
        c->text = text;
        c->room *= 2;
    }
    return text != NULL;
}

/* Zero bytes would end strings, and CR is a line's end like LF. */
static void clean(char *text, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        text[i] = text[i] == '\0' ? ' ' : text[i] == '\r' ? '\n' : text[i];
    }
}

static void skip(struct commands *c)
{
    const char *end = memchr(c->text, '\n', c->used);
    const size_t skipped = end == NULL ? c->used : (size_t)(end - c->text) + 1;
    c->used -= skipped;
    memmove(c->text, c->text + skipped, c->used);
    c->is_skipping = end == NULL;
}

bool commands_read(struct commands *c, char *start, size_t size)
{
    if (!make_room(c)) { /* commands_next found no end */
        snprintf(start, size, "%.*s", (int)c->used, c->text);
        c->used = 0;
        c->is_skipping = true;
        return false;
    }
    const ssize_t n = read(STDIN_FILENO, c->text + c->used, c->room - 1 - c->used);
    if (n < 0 && errno == EINTR) {
        return true;
    }
    if (n <= 0) {
        c->is_closed = true;
        if (c->used > 0) {
            c->text[c->used++] = '\n';
        }
        return true;
    }
    clean(c->text + c->used, (size_t)n);
    c->used += (size_t)n;
    if (c->is_skipping) {
        skip(c);
    }
    return true;
}

char *commands_next(struct commands *c)
{
    char *line = c->text + c->begin;
    char *end = memchr(line, '\n', c->used - c->begin);
    if (end == NULL) {
        return NULL;
    }
    *end = '\0';
    c->begin = (size_t)(end - c->text) + 1;
    if (!c->has_begun) {
        line += lines_skip_bom(line) - line;
        c->has_begun = true;
    }
    return line;
}

bool commands_output_is_gone(int revents)
{
    if ((revents & (POLLERR | POLLHUP)) == 0) {
        return false;
    }
    const int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (nowhere >= 0) { /* else the next line ends the program, by a signal */
        (void)dup2(nowhere, STDOUT_FILENO);
        close(nowhere);
    }
    return true;
}
