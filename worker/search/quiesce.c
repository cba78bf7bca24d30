#include "worker/search/node.h"

/* Stand pat or capture on; in check, every evasion. Nothing here looks at alpha but alpha-beta
 * itself (no delta pruning), so the value depends on the position alone. */
int quiesce(struct search *s, unsigned ply, int alpha, int beta)
{
    const struct game *game = s->options.game;
    struct frame *f = &s->frame[ply];
    int best = -GAME_INFINITE;

    node_count(s);
    f->pv.length = 0;
    if (game->generate_noisy == NULL || ply >= SEARCH_PLY_MAX ||
        s->moves_used + GAME_MOVES_MAX > MOVE_STACK) {
        return game->evaluate(s->position);
    }
    bool check = game->check(s->position);
    if (!check) {
        best = game->evaluate(s->position);
        if (best >= beta) {
            return best;
        }
    }
    f->moves = &s->move_stack[s->moves_used];
    f->count = game->generate_noisy(s->position, f->moves);
    if (check && f->count == 0) {
        return game->finished(s->position);
    }
    s->moves_used += f->count;
    for (unsigned i = 0; i < f->count && best < beta && !search_halted(s); i++) {
        for (unsigned j = i + 1; j < f->count; j++) {
            if (f->moves[j].order > f->moves[i].order) {
                struct game_move m = f->moves[i];
                f->moves[i] = f->moves[j];
                f->moves[j] = m;
            }
        }
        uint16_t move = f->moves[i].move;
        if (!check && game->losing(s->position, move)) {
            continue;
        }
        int raised = best > alpha ? best : alpha;
        game->make(s->position, move);
        int v = score_up(quiesce(s, ply + 1, bound_down(beta), bound_down(raised)));
        game->unmake(s->position, move);
        best = v > best ? v : best;
    }
    s->moves_used -= f->count;
    return best;
}
