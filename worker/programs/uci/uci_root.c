#include "worker/programs/uci/uci_root.h"

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

static bool is_alike(const struct chess_tablebase_move *a, const struct chess_tablebase_move *b)
{
    return a->value == b->value && a->score == b->score;
}

void uci_root_tablebase(struct job *job, struct uci_root_values *values)
{
    const struct chess_tablebase_move *move = values->move;
    values->count = chess_tablebase_root(job->position, values->move);
    if (values->count == 0 || job->root_moves > 0) {
        return;
    }
    const unsigned wanted = job->lines > 1 ? job->lines : 1;
    unsigned kept = wanted < values->count ? wanted : values->count;
    const struct chess_tablebase_move last = move[kept - 1];
    const bool loses = move[0].score < 0; /* then the search chooses among all of these */
    while (kept < values->count &&
           (is_alike(&move[kept], &last) || (loses && move[kept].value == last.value))) {
        kept++;
    }
    for (unsigned i = 0; i < kept; i++) {
        job->root_move[i] = move[i].move;
    }
    job->root_moves = kept;
    /* The search would take the lines that it likes best. */
    job->lines = wanted > 1 && !is_alike(&move[0], &last) ? kept : job->lines;
}

int uci_root_score(const struct uci_root_values *values, uint16_t move, int score)
{
    for (unsigned i = 0; i < values->count; i++) {
        const int known = values->move[i].score;
        if (values->move[i].move == move) {
            const bool is_mate = known > 0   ? score > GAME_MATE_MIN
                                 : known < 0 ? score < -GAME_MATE_MIN
                                             : false;
            return is_mate ? score : known;
        }
    }
    return score;
}
