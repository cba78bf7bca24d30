#include "worker/cli/uci_root.h"

#include "worker/games/chess/tablebase.h"

#include <stdio.h>

static bool is_named(const struct job *job, uint16_t move)
{
    for (unsigned i = 0; i < job->root_moves; i++) {
        if (job->root_move[i] == move) {
            return true;
        }
    }
    return false;
}

bool uci_root_searchmoves(struct job *job, const struct uci_limits *limits)
{
    job->root_moves = 0;
    for (unsigned i = 0; i < limits->moves; i++) {
        uint16_t move;
        if (job->game->parse_move(job->position, limits->move[i], &move) != ERR_OK) {
            printf("info string error: searchmoves: '%s' is not a legal move here\n",
                   limits->move[i]);
        } else if (!is_named(job, move)) {
            job->root_move[job->root_moves++] = move;
        }
    }
    return limits->moves == 0 || job->root_moves > 0;
}

void uci_root_tablebase(struct job *job)
{
    if (job->root_moves == 0) {
        job->root_moves = chess_tablebase_root(job->position, job->root_move);
    }
}
