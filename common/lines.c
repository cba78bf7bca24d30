#include "common/lines.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_ROOM = 256 };

const char *lines_skip_bom(const char *text)
{
    return strncmp(text, "\xef\xbb\xbf", 3) == 0 ? text + 3 : text;
}

static bool make_room(struct lines *l, size_t used)
{
    if (used < l->room) {
        return true;
    }
    const size_t room = l->room > 0 ? l->room * 2 : FIRST_ROOM;
    char *text = realloc(l->text, room);
    if (text == NULL) {
        errno = ENOMEM;
        return false;
    }
    l->text = text;
    l->room = room;
    return true;
}

/* DOS programs end a text with Ctrl-Z: it counts as a blank, and as nothing at the end of the file.
 */
static int next_character(struct lines *l)
{
    enum { CTRL_Z = 0x1a };
    int c = getc(l->file);
    if (c != CTRL_Z) {
        return c;
    }
    while (c == CTRL_Z) {
        c = getc(l->file);
    }
    return c == EOF ? EOF : (ungetc(c, l->file), ' ');
}

bool lines_next(struct lines *l)
{
    size_t used = 0;
    int c;
    errno = 0;
    while ((c = next_character(l)) != EOF && c != '\n' && c != '\r') {
        if (!make_room(l, used)) {
            return false;
        }
        l->text[used++] = c != '\0' ? (char)c : ' '; /* strings would stop there */
    }
    if (c == EOF && (used == 0 || ferror(l->file))) {
        return false;
    }
    if (!make_room(l, used)) {
        return false;
    }
    l->text[used] = '\0';
    if (c == '\r') { /* the LF of a CR LF belongs to it */
        const int next = getc(l->file);
        if (next != '\n' && next != EOF) {
            ungetc(next, l->file);
        }
    }
    if (l->number++ == 0) {
        const char *text = lines_skip_bom(l->text);
        memmove(l->text, text, strlen(text) + 1);
    }
    return true;
}

void lines_close(struct lines *l)
{
    free(l->text);
    l->text = NULL;
    l->room = 0;
}
