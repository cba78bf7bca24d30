/* lines: the lines of a text file, whatever program wrote it: an end is LF, CR LF or CR alone, and
 * a byte order mark (of UTF-8) at the beginning of the file is none of its text.
 *
 * Threads: any, on its own struct. Memory: one line, which grows; freed by close. Blocking: as the
 * file. */
#ifndef COMMON_LINES_H
#define COMMON_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct lines {
    FILE *file; /* borrowed; set by the caller, the rest zero */
    char *text; /* the last line, without its end; a zero byte in it became a blank */
    size_t room;
    unsigned number; /* number of that line, from 1 */
};

/* False: there is none, because the file has ended, cannot be read (ferror), or there is no memory
 * (errno is ENOMEM). */
bool lines_next(struct lines *lines);
/* Accepts a struct that has read nothing, and twice. */
void lines_close(struct lines *lines);

/* Past a byte order mark, if the text begins with one. */
const char *lines_skip_bom(const char *text);

#endif
