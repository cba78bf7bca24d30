/* suite: positions to analyse, from the command line or an EPD file.
 *
 * An EPD line is four FEN fields and operations; `id` names it, `bm` and `am` are kept as text.
 * Empty lines and lines that begin with '#' or '%' are skipped.
 * Threads: any, on its own suite. Memory: grows in add and read_epd; freed by close. */
#ifndef WORKER_CLI_SUITE_H
#define WORKER_CLI_SUITE_H

#include "common/err.h"

#include <stddef.h>

enum { SUITE_ID_MAX = 64, SUITE_POSITION_MAX = 160, SUITE_MOVES_MAX = 64 };

struct suite_case {
    char id[SUITE_ID_MAX];
    char position[SUITE_POSITION_MAX];
    char best[SUITE_MOVES_MAX], avoid[SUITE_MOVES_MAX]; /* SAN, or empty */
    unsigned line; /* in the file; 0: from the command line */
};

struct suite {
    struct suite_case *at;
    unsigned count, room;
};

enum err suite_add(struct suite *suite, const char *id, const char *position);
/* ERR_IO with `why` when the file cannot be read; ERR_SYNTAX names the line. */
enum err suite_read_epd(struct suite *suite, const char *path, char *why, size_t why_size);
void suite_close(struct suite *suite);

#endif
