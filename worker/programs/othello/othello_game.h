/* othello_game: games of Othello: their moves, each legal where it stands, the text of one in the
 * Generic Game Format, and the forms of files in which people keep many, read one after the other:
 *
 * - transcripts: one game a line from the usual first board, F5D6C3 or f5 d6 c3, blanks, commas and
 *   numbers (1. f5 d6 2. c3) between or not, passes said or not; a comment from '#', '%' or ';' on;
 * - GGF, as NBoard and the game server GGS write it, (;GM[Othello]...BO[8 ... *]B[F5/0.50/1.2];),
 *   on one line or many, several on a line, with the count of games before them that GGS writes;
 * - WTHOR (.wtb): a header of 16 bytes and records of 68.
 *
 * The first two may be mixed. A game that cannot be read is an answer of its own, and the others
 * are read all the same. Sources: M. Buro, https://www.skatgame.net/mburo/ggsa/ggf; the description
 * of the NBoard protocol, version 2, by C. Welty; Federation Francaise d'Othello, "Format de la
 * base WThor".
 *
 * Pure; threads: any, on its own struct. Memory: none but the caller's bytes. */
#ifndef WORKER_PROGRAMS_OTHELLO_OTHELLO_GAME_H
#define WORKER_PROGRAMS_OTHELLO_OTHELLO_GAME_H

#include "worker/games/othello/board.h"

#include <stddef.h>

enum {
    OTHELLO_GAME_MOVES_MAX = 128, /* a disc for each square, and at most one pass before each */
    OTHELLO_GAME_WHY_MAX = 192, /* a line on why a text is no game */
};

struct othello_game {
    struct othello_board board; /* at the beginning, seen from the side to move */
    bool is_black; /* set when that side is Black */
    unsigned moves;
    uint8_t move[OTHELLO_GAME_MOVES_MAX]; /* a square, or OTHELLO_PASSED */
    struct othello_board last; /* after all moves ... */
    bool is_last_black; /* ... and who is to move there */
};

/* Finds the position with so many empty squares, from the side that can move there, or from the
 * side to move when the game is over. False: the game has none. */
bool othello_game_at(const struct othello_game *game, unsigned empties, struct othello_board *board,
                     bool *is_black);

/* ---- GGF ---- */

/* A side's thinking time. */
struct ggf_clock {
    bool is_set; /* the game names it, in a form that is understood */
    int64_t main_ms, increment_ms; /* for the game; added with each move */
    int64_t extra_ms; /* once, when the main time has run out */
};

struct ggf_game {
    struct othello_game game;
    int64_t used_ms[2]; /* time of Black, of White: the sums of what the moves say */
    struct ggf_clock clock[2];
};

/* A backslash in a value stands before a character that is meant as it is: PB[a\]b]. A pass that
 * the format leaves out, because the next move is the other side's, is put in. On failure false,
 * one line in `why`, and `game` as it was. */
bool ggf_parse(const char *text, struct ggf_game *game, char why[OTHELLO_GAME_WHY_MAX]);
/* "D3", "d3", "PA", "pass", then an end or '/'. -1: none of these. */
int ggf_move(const char *text);

/* A move with evaluation and time, both of which may be left out: "D3/-1.20/0.5", "D3//0.5". What
 * is no time counts as none. -1: the move is none. */
int ggf_move_and_time(const char *text, int64_t *used_ms);

/* ---- files ---- */

struct game_file {
    unsigned game; /* number of the game that was read last, from 1 */
    unsigned line; /* where it begins; in WTHOR `game` again */
    /* private */
    char *bytes;
    size_t size, at;
    bool is_wthor, has_ended;
    unsigned lines; /* number of the line at `at` */
    size_t ggf_end; /* of the lines with the last game in GGF */
};

enum game_file_answer { GAME_FILE_END, GAME_FILE_GAME, GAME_FILE_WRONG };

/* Begins to read so many bytes, which are borrowed and changed; a zero follows them. False: the
 * whole file cannot be read, with a line in `why`. */
bool game_file_open(struct game_file *file, char *bytes, size_t size,
                    char why[OTHELLO_GAME_WHY_MAX]);
/* The next game. GAME_FILE_WRONG: it cannot be read, with a line in `why`. */
enum game_file_answer game_file_next(struct game_file *file, struct othello_game *game,
                                     char why[OTHELLO_GAME_WHY_MAX]);

#endif
