/* games: the games by name. Threads: any. */
#ifndef WORKER_GAMES_GAMES_H
#define WORKER_GAMES_GAMES_H

#include "worker/games/game.h"

/* NULL: no game of that name. */
const struct game *games_by_name(const char *name);

/* The names, separated by ", ", for messages. */
const char *games_names(void);

#endif
