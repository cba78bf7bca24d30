/* line_reader: whole lines of a pipe that does not block, or of standard input: an end is LF or
 * CR LF, a zero byte becomes a blank, and a line that is too long is left out.
 *
 * Threads: one. Memory: a buffer that grows to the longest line. Blocking: as the descriptor. */
#ifndef WORKER_PROGRAMS_ENGINE_LINE_READER_H
#define WORKER_PROGRAMS_ENGINE_LINE_READER_H

#include <stdbool.h>
#include <stddef.h>

struct line_reader { /* zeroed: empty */
    size_t longest; /* set by the caller */
    bool has_ended; /* nothing more comes; the last line may lack its end */
    /* private */
    char *text;
    size_t room, begin, used;
    bool is_skipping;
};

/* Forgets what was read, and waits for a new beginning. */
void line_reader_clear(struct line_reader *reader);
/* Accepts a zeroed struct, and twice. */
void line_reader_free(struct line_reader *reader);

/* Reads once; false: there was nothing. */
bool line_reader_fill(struct line_reader *reader, int file);
/* The next whole line without its end, to be changed at will until the next call; NULL: fill. */
char *line_reader_next(struct line_reader *reader);

#endif
