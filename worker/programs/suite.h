/* suite: positions to analyse, from the command line or a file of EPD (chess) or OBF (Othello).
 *
 * An EPD line is four FEN fields and operations; `id` names it, `bm` and `am` are kept as text,
 * `hmvc` and `fmvn` are the FEN's last two fields (Edwards, PGN standard 1994, section 16.2).
 * An OBF line is a board, a side to move, and moves (or a pass) with their scores, each ended by
 * ';', and perhaps a comment from '%' or '#' on; a comment before it ("% FFO #40, 20 empties")
 * names it, and the moves of the highest score are its best. Empty lines and lines that begin with
 * '#' or '%' are skipped. What may end lines: lines.h.
 * Threads: any, on its own suite. Memory: grows in add and read_epd; freed by close. */
#ifndef WORKER_PROGRAMS_SUITE_H
#define WORKER_PROGRAMS_SUITE_H

#include "common/err.h"

#include <stdbool.h>
#include <stddef.h>

enum { SUITE_ID_MAX = 64, SUITE_POSITION_MAX = 160, SUITE_MOVES_MAX = 256 };

struct suite_case {
    char id[SUITE_ID_MAX];
    char position[SUITE_POSITION_MAX];
    char best[SUITE_MOVES_MAX], avoid[SUITE_MOVES_MAX]; /* SAN, in Othello squares; or empty */
    bool is_best_cut, is_avoid_cut; /* moves that cannot be read were left out: score_drop_unread */
    int score; /* of the best moves, if ... */
    bool has_score;
    unsigned line; /* in the file; 0: from the command line */
    const char *wrong; /* why the line is none, then all else is empty; NULL: it is one */
};

struct suite {
    struct suite_case *at;
    unsigned count, room;
};

enum err suite_add(struct suite *suite, const char *id, const char *position);
/* ERR_IO with `why` when the file cannot be read. A line that is none is a case with `wrong` set:
 * the others are read all the same. */
enum err suite_read_epd(struct suite *suite, const char *path, char *why, size_t why_size);
enum err suite_read_obf(struct suite *suite, const char *path, char *why, size_t why_size);
void suite_close(struct suite *suite);

#endif
