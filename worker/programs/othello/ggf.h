/* ggf: one game of Othello in the Generic Game Format, as NBoard and the game server GGS write it:
 * (;GM[Othello]...BO[8 ... *]B[F5/0.50/1.2]W[PA];). Every move that it gives is legal where it
 * stands. Pure; threads: any. Memory: none.
 * Source: M. Buro, https://www.skatgame.net/mburo/ggsa/ggf, and the description of the NBoard
 * protocol, version 2, by C. Welty. */
#ifndef WORKER_PROGRAMS_OTHELLO_GGF_H
#define WORKER_PROGRAMS_OTHELLO_GGF_H

#include "worker/games/othello/board.h"

#include <stddef.h>

enum {
    GGF_MOVES_MAX = 128, /* a disc for each square, and at most one pass before each */
    GGF_PASS = OTHELLO_SQUARES, /* as a move */
    GGF_WHY_MAX = 192,
};

/* A side's thinking time. */
struct ggf_clock {
    bool is_set; /* the game names it, in a form that is understood */
    int64_t main_ms, increment_ms; /* for the game; added with each move */
    int64_t extra_ms; /* once, when the main time has run out */
};

struct ggf_game {
    struct othello_board board; /* where it begins, seen from the side to move */
    bool is_black; /* set when that side is Black */
    unsigned moves;
    uint8_t move[GGF_MOVES_MAX]; /* a square, or GGF_PASS */
    int64_t used_ms[2]; /* time of Black, of White: the sums of what the moves say */
    struct ggf_clock clock[2];
};

/* A pass that the format leaves out, because the next move is the other side's, is put in. On
 * failure false, one line in `why`, and `game` as it was. */
bool ggf_parse(const char *text, struct ggf_game *game, char why[GGF_WHY_MAX]);

/* "D3", "d3", "PA", "pass", then an end or '/'. -1: none of these. */
int ggf_move(const char *text);

/* A move with evaluation and time, both of which may be left out: "D3/-1.20/0.5", "D3//0.5". What
 * is no time counts as none. -1: the move is none. */
int ggf_move_and_time(const char *text, int64_t *used_ms);

#endif
