/* suite: positions to analyse, from the command line or a file of EPD (chess), of OBF (Othello) or
 * of games of Othello (othello_game.h).
 *
 * An EPD line is four FEN fields and operations; `id` names it, `bm` and `am` are kept as text,
 * `hmvc` and `fmvn` are the FEN's last two fields (Edwards, PGN standard 1994, section 16.2).
 * An OBF line is a board, a side to move, and moves (or a pass) with their scores, each ended by
 * ';', or a score alone, and perhaps a comment from '%' or '#' on; a comment on the line before it
 * ("% FFO #40, 20 empties") names it, or else its own, and the moves of the highest score are its
 * best. Empty lines and lines that begin with '#' or '%' are skipped. What may end lines: lines.h.
 * Threads: any, on its own suite. Memory: grows in add and read; freed by close. */
#ifndef WORKER_PROGRAMS_SUITE_H
#define WORKER_PROGRAMS_SUITE_H

#include "common/err.h"

#include <stdbool.h>
#include <stddef.h>

enum { SUITE_ID_MAX = 64, SUITE_POSITION_MAX = 160, SUITE_MOVES_MAX = 256 };

struct suite_case {
    char id[SUITE_ID_MAX];
    char position[SUITE_POSITION_MAX]; /* or why there is none, if `is_wrong` */
    char best[SUITE_MOVES_MAX], avoid[SUITE_MOVES_MAX]; /* SAN, in Othello squares; or empty */
    bool is_best_cut, is_avoid_cut; /* moves that cannot be read were left out: score_drop_unread */
    int score; /* of the best moves, which may not be named, if ... */
    bool has_score;
    unsigned line; /* in the file, of WTHOR the record; 0: from the command line */
    bool is_wrong; /* there is no position in it */
};

struct suite {
    struct suite_case *at;
    unsigned count, room;
};

enum err suite_add(struct suite *suite, const char *id, const char *position);
/* Forms of files; of games of Othello each gives the position with so many empty squares, or with
 * SUITE_LAST the last, from the side that can move there, and its number as id. */
enum suite_form { SUITE_EPD, SUITE_OBF, SUITE_GAMES };
enum { SUITE_LAST = 64 };
/* With `why`: ERR_IO when the file ("-": standard input) cannot be read, ERR_RANGE when it has more
 * than 1,000,000 positions, ERR_FULL, ERR_SYNTAX when no game of it can be. An unreadable line or
 * game becomes a case with `is_wrong` set. Reading continues. */
enum err suite_read(struct suite *suite, const char *path, enum suite_form form, unsigned empties,
                    char *why, size_t why_size);
void suite_close(struct suite *suite);

#endif
