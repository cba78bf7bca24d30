#include "worker/programs/line_reader.h"

#include "common/lines.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

enum { FIRST_ROOM = 4096 };

bool line_reader_open(struct line_reader *r, size_t longest)
{
    *r = (struct line_reader){.longest = longest, .text = malloc(FIRST_ROOM), .room = FIRST_ROOM};
    return r->text != NULL;
}

void line_reader_close(struct line_reader *r)
{
    free(r->text);
    r->text = NULL;
}

void line_reader_clear(struct line_reader *r)
{
    r->begin = r->used = 0;
    r->is_skipping = r->is_after_cr = r->has_ended = false;
}

/* For two bytes more: the last line's end, and the zero behind it. */
static bool make_room(struct line_reader *r)
{
    memmove(r->text, r->text + r->begin, r->used - r->begin + 1);
    r->used -= r->begin;
    r->begin = 0;
    if (r->used + 2 <= r->room) {
        return true;
    }
    char *text = realloc(r->text, 2 * r->room);
    if (text != NULL) {
        r->text = text;
        r->room *= 2;
    }
    return text != NULL;
}

bool line_reader_fill(struct line_reader *r, int file)
{
    if (!make_room(r)) {
        r->longest = r->used - 1; /* the line under way is cut */
        return true;
    }
    char *at = r->text + r->used;
    const ssize_t n = read(file, at, r->room - 1 - r->used);
    for (ssize_t i = 0; i < n; i++) {
        at[i] = at[i] == '\0' ? ' ' : at[i];
    }
    r->used += n > 0 ? (size_t)n : 0;
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) {
        r->has_ended = true;
        *at = '\n';
        r->used += r->used > 0;
    }
    r->text[r->used] = '\0';
    return n > 0;
}

char *line_reader_next(struct line_reader *r)
{
    while (r->used > r->begin) {
        char *line = r->text + r->begin, *end = line + strcspn(line, "\r\n");
        const bool has_end = *end != '\0';
        const bool is_rest = r->is_skipping || (r->is_after_cr && end == line && *end == '\n');
        r->is_cut = (size_t)(end - line) > r->longest;
        if (!has_end && !r->is_cut && !r->is_skipping) {
            break;
        }
        r->begin = (size_t)(end - r->text) + has_end;
        r->is_skipping = !has_end;
        r->is_after_cr = *end == '\r';
        *end = '\0';
        if (!is_rest) {
            return line + (lines_skip_bom(line) - line);
        }
    }
    return NULL;
}
