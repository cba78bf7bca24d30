/* othello_record: the game of Othello so far: where it began, its moves, and the position that they
 * lead to, as a job that can be searched. Moves can be taken back and made again.
 *
 * Threads: one at a time; while its job is searched nobody changes it. Memory: the position, from
 * othello_record_open to othello_record_close. */
#ifndef WORKER_PROGRAMS_OTHELLO_OTHELLO_RECORD_H
#define WORKER_PROGRAMS_OTHELLO_OTHELLO_RECORD_H

#include "worker/engine/job.h"
#include "worker/programs/othello/ggf.h"

enum { OTHELLO_RECORD_MAX = 512, OTHELLO_RECORD_WHY_MAX = 256 };

struct othello_record {
    struct job job; /* position and text are those after `at` moves */
    unsigned moves, at;
    uint16_t move[OTHELLO_RECORD_MAX]; /* 0: a pass after the end, which changes nothing */
    bool is_implied[OTHELLO_RECORD_MAX]; /* set for a pass that the next move implies */
};

/* The game's first position. ERR_NOMEM; ERR_ABSENT: this build has no Othello. */
enum err othello_record_open(struct othello_record *record, char why[OTHELLO_RECORD_WHY_MAX]);
void othello_record_close(struct othello_record *record);

/* The first position again. ERR_NOMEM: the record is as it was. */
enum err othello_record_clear(struct othello_record *record);
/* All of a game. On failure the record is as it was. */
enum err othello_record_set(struct othello_record *record, const struct ggf_game *game,
                            char why[OTHELLO_RECORD_WHY_MAX]);

/* Whether it is Black's turn; where the game is over, whether it would be. */
bool othello_record_black_moves(const struct othello_record *record);
bool othello_record_is_over(const struct othello_record *record);
unsigned othello_record_empties(const struct othello_record *record);
/* The only legal move, or 0. */
uint16_t othello_record_forced(const struct othello_record *record);
/* When the game is over: discs for Black, empty squares counted for the winner. */
int othello_record_score(const struct othello_record *record);

/* Makes a move: a square or GGF_PASS. Where it is the other side's turn and that has no legal move,
 * its pass is made first. After the end of the game either side may pass, which changes nothing.
 * ERR_ILLEGAL; ERR_FULL. On failure nothing has changed. */
enum err othello_record_play(struct othello_record *record, bool by_black, int move);
/* Makes that pass alone, if this side is not on turn. ERR_ILLEGAL: the other side has moves;
 * ERR_FULL. */
enum err othello_record_turn_to(struct othello_record *record, bool black);
/* Takes back one move, and the pass that it implied. False: there is none. */
bool othello_record_undo(struct othello_record *record);
/* Takes back all but the first so many moves. */
void othello_record_forget(struct othello_record *record, unsigned moves);
/* Goes back, or forth again, to where so many moves were made. */
void othello_record_go_to(struct othello_record *record, unsigned at);

#endif
