#include "worker/games/games.h"

#include "worker/games/chess/chess.h"
#include "worker/games/othello/claim.h"
#include "worker/games/othello/othello.h"
#include "worker/games/tree/tree.h"

#include <string.h>

static const struct game *const games[] = {&game_chess, &game_othello, &game_othello_wld,
                                           &game_othello_claim, &game_tree};
enum { GAMES = sizeof games / sizeof games[0] };

const struct game *games_by_name(const char *name)
{
    for (unsigned i = 0; i < GAMES; i++) {
        if (strcmp(name, games[i]->name) == 0) {
            return games[i];
        }
    }
    return NULL;
}

size_t games_solver_bytes(const struct game *game)
{
    size_t most = 0;
    for (unsigned i = 0; i < GAMES; i++) {
        if ((game == NULL || game == games[i]) && games[i]->solver_size != NULL) {
            const size_t bytes = games[i]->solver_size();
            most = bytes > most ? bytes : most;
        }
    }
    return most;
}

const char *games_names(void)
{
    return "chess, othello, othello-wld, tree";
}
