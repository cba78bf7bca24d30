#include "worker/programs/engine/line_reader.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

enum { FIRST_ROOM = 4096 };

void line_reader_clear(struct line_reader *r)
{
    r->begin = r->used = 0;
    r->is_skipping = r->has_ended = false;
}

void line_reader_free(struct line_reader *r)
{
    free(r->text);
    r->text = NULL;
    r->room = r->begin = r->used = 0;
}

static bool make_room(struct line_reader *r)
{
    if (r->begin > 0) {
        memmove(r->text, r->text + r->begin, r->used - r->begin);
    }
    r->used -= r->begin;
    r->begin = 0;
    if (r->used + 1 < r->room) {
        return true;
    }
    const size_t room = r->room > 0 ? 2 * r->room : FIRST_ROOM;
    char *text = r->room < r->longest ? realloc(r->text, room) : NULL;
    if (text != NULL) {
        r->text = text;
        r->room = room;
    }
    return text != NULL;
}

bool line_reader_fill(struct line_reader *r, int file)
{
    if (!make_room(r)) {
        r->used = 0;
        r->is_skipping = true; /* the rest of the line, too */
    }
    if (r->has_ended || r->room == 0) {
        r->has_ended = true; /* there is no memory for a first line */
        return false;
    }
    char *at = r->text + r->used;
    const ssize_t n = read(file, at, r->room - 1 - r->used);
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) {
        r->has_ended = true;
        r->text[r->used] = '\n';
        r->used += r->used > r->begin;
    }
    for (ssize_t i = 0; i < n; i++) {
        at[i] = at[i] == '\0' ? ' ' : at[i];
    }
    r->used += n > 0 ? (size_t)n : 0;
    return n > 0;
}

char *line_reader_next(struct line_reader *r)
{
    for (;;) {
        char *line = r->used > r->begin ? r->text + r->begin : NULL;
        char *end = line != NULL ? memchr(line, '\n', r->used - r->begin) : NULL;
        if (end == NULL) {
            return NULL;
        }
        r->begin = (size_t)(end - r->text) + 1;
        do {
            *end = '\0';
        } while (end > line && *--end == '\r');
        if (!r->is_skipping) {
            return line;
        }
        r->is_skipping = false;
    }
}
