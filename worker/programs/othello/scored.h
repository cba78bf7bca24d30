/* scored: a file of Othello boards with their exact scores, one OBF a line (suite.h): what `abdada
 * solve --obf-out FILE` writes, and goes on with by --resume.
 *
 *     XXXO... X; D3:+4; C4:+4;
 *
 * A line is written whole and at once, so that a program that is killed leaves whole lines and
 * perhaps a torn one at the end, which is cut off before another goes on. The file is locked
 * (flock) while it is open. Threads: any, one at a time. Memory: the boards that were there, until
 * the close. Blocking: on the disk. */
#ifndef WORKER_PROGRAMS_OTHELLO_SCORED_H
#define WORKER_PROGRAMS_OTHELLO_SCORED_H

#include "worker/engine/job.h"

enum { SCORED_WHY_MAX = 256 };

struct scored;

/* Begins the file, or with `resumes` goes on with the one that is there. ERR_EXIST: another program
 * writes it; ERR_SYNTAX: what is there is no such file, and stays as it is; ERR_IO, ERR_NOMEM.
 * `why` is a line for people. */
enum err scored_open(struct scored **out, const char *path, bool resumes, char why[SCORED_WHY_MAX]);
/* Whether that board (a job's text) was there already. Each line answers once: a board that is
 * wanted twice is there twice. */
bool scored_take(struct scored *scored, const char *text);
/* The board with its best moves, of which there may be none when the game is over, and its score.
 * ERR_IO with `why`. */
enum err scored_put(struct scored *scored, const struct job *job, const uint16_t *move,
                    unsigned moves, int score, char why[SCORED_WHY_MAX]);
/* Syncs the file to the disk; frees and nulls in any case. Accepts a null. ERR_IO with `why`. */
enum err scored_close(struct scored **scored, char why[SCORED_WHY_MAX]);

#endif
