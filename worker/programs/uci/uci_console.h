/* uci_console: what a person at a console may ask an engine besides the UCI protocol: the board
 * (`d`), its static value (`eval`), the same position for the other side (`flip`: ranks mirrored,
 * colours changed, so that the value for the side to move stays), `bench`, and `go perft N`. The
 * output is for people, on stdout, from the calling thread alone, while nothing is searched. */
#ifndef WORKER_PROGRAMS_UCI_UCI_CONSOLE_H
#define WORKER_PROGRAMS_UCI_UCI_CONSOLE_H

#include "worker/engine/job.h"

/* `job` NULL: there is no position. */
bool uci_console_knows(const char *word);
void uci_console_obey(struct job *job, const char *word);

/* Counts the legal move sequences by first move if `words`, which follow "go", are "perft N".
 * False: they are not. */
bool uci_console_perft(const struct job *job, const char *words);

#endif
