/* uci: the front-end that speaks UCI on stdin and stdout, for what searches in place of an engine.
 * Threads: the main thread. */
#ifndef WORKER_PROGRAMS_UCI_UCI_H
#define WORKER_PROGRAMS_UCI_UCI_H

#include "worker/programs/gui.h"

/* Until "quit" or the end of the input; returns the exit status. Options that say how an engine
 * searches are left out, and no time is kept for the answer, whose clock is not the GUI's: before
 * each move the time and nodes of the search are printed. `ucinewgame` clears. */
int uci_stand_in(const struct gui_stand_in *stand_in, const struct algorithm *algorithm, bool full);

#endif
