/* uci_person: what a person at a console asks besides the UCI protocol, of a position of chess.
 * Answers go to stdout. Threads: any, with a job that nobody else uses meanwhile. */
#ifndef WORKER_PROGRAMS_UCI_UCI_PERSON_H
#define WORKER_PROGRAMS_UCI_UCI_PERSON_H

#include "worker/engine/job.h"

/* `d`: the board. */
void uci_person_board(const struct job *job);
/* `eval`: the static value of selection full. */
void uci_person_evaluation(const struct job *job);
/* `go perft N`: the legal move sequences by first move, depth 1 or more. Nothing ends it. */
void uci_person_perft(const struct job *job, unsigned depth);
/* `flip`: the same position for the other side, with ranks mirrored and colours changed. The value
 * for the side to move stays. ERR_NOMEM. */
enum err uci_person_flip(struct job *job);

#endif
