/* games: the games by name. Threads: any. */
#ifndef WORKER_GAMES_GAMES_H
#define WORKER_GAMES_GAMES_H

#include "worker/games/game.h"

/* NULL: no game of that name. */
const struct game *games_by_name(const char *name);

/* Bytes of the memory that the game's solver keeps; NULL: the most that any game's does. */
size_t games_solver_bytes(const struct game *game);

/* The names, separated by ", ", for messages. */
const char *games_names(void);

#endif
