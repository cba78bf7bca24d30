/* stable: discs that can never be turned again, whatever is played.
 *
 * Threads: any. Memory: none. Pure. */
#ifndef WORKER_GAMES_OTHELLO_STABLE_H
#define WORKER_GAMES_OTHELLO_STABLE_H

#include "worker/games/othello/board.h"

/* Stable discs of `own`; not all that there are: those in four full lines, and those that lean in
 * every other direction on the border or on such a disc. */
uint64_t othello_stable(uint64_t own, uint64_t other);

#endif
