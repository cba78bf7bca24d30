/* line_reader: whole lines of a pipe or of standard input, as they come. A line ends with LF, CR LF
 * or CR, the last one also with the input. A zero byte becomes a blank, and a byte order mark
 * before a line is skipped.
 *
 * Threads: one. Memory: a buffer that grows to the longest line. Blocking: as the descriptor. */
#ifndef WORKER_PROGRAMS_LINE_READER_H
#define WORKER_PROGRAMS_LINE_READER_H

#include <stdbool.h>
#include <stddef.h>

struct line_reader {
    size_t longest; /* bytes that a line may have; less once there is no memory for more */
    bool is_cut; /* the last line was longer: that is its beginning, and the rest is skipped */
    bool has_ended; /* nothing more comes */
    /* private */
    char *text;
    size_t room, begin, used;
    bool is_skipping, is_after_cr;
};

/* False: no memory. */
bool line_reader_open(struct line_reader *reader, size_t longest);
/* Accepts a zeroed struct, and twice. */
void line_reader_close(struct line_reader *reader);
/* Forgets what was read, and waits for a new beginning. */
void line_reader_clear(struct line_reader *reader);

/* Reads once, where there is no next line; false: there was nothing. */
bool line_reader_fill(struct line_reader *reader, int file);
/* The next whole line without its end, to be changed at will until the next call; NULL: fill. */
char *line_reader_next(struct line_reader *reader);

#endif
