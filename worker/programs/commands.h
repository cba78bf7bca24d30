/* commands: the lines that a GUI sends on standard input, and whether it is still there. A line
 * ends with LF, CR LF or CR, the last one also with the input; a byte order mark before the first
 * is skipped.
 *
 * Threads: one. Memory: a buffer that grows to the longest line, at most COMMANDS_LINE_MAX bytes.
 * Blocking: commands_read, unless poll() said that there is something to read. */
#ifndef WORKER_PROGRAMS_COMMANDS_H
#define WORKER_PROGRAMS_COMMANDS_H

#include <stdbool.h>
#include <stddef.h>

enum { COMMANDS_LINE_MAX = 1 << 20 }; /* a game of 200,000 plies in UCI */

struct commands {
    bool is_closed; /* the input has ended */
    /* private */
    char *text;
    size_t room, begin, used;
    bool has_begun, is_skipping; /* the rest of a line that was too long */
};

/* False: no memory. */
bool commands_open(struct commands *commands);
/* Accepts a zeroed struct, and twice. */
void commands_close(struct commands *commands);

/* Reads what is there. False: a line is too long; what it begins with is in `start` of `size`
 * bytes, and the rest of it will be skipped. */
bool commands_read(struct commands *commands, char *start, size_t size);
/* The next whole line without its end, to be changed as the caller likes until the next call; NULL:
 * there is none yet. */
char *commands_next(struct commands *commands);

/* For poll(): what it reports of standard output, without waiting for anything (events 0), when
 * nobody can read what is said there. True: it is so, and from now on nothing is written. */
bool commands_output_is_gone(int revents);

#endif
