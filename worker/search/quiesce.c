#include "worker/search/node.h"

/* Stand pat or capture on; in check, every evasion. Only alpha-beta itself uses alpha (no delta
 * pruning), so the value depends on the position alone. */
int quiesce(struct search *s, struct node *n, int alpha, int beta)
{
    const struct game *game = s->options.game;
    int best = -GAME_INFINITE;

    node_count(s, n, 1);
    n->pv.length = 0;
    if (game->generate_noisy == NULL || n->ply >= SEARCH_PLY_MAX ||
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
    n->moves = &s->move_stack[s->moves_used];
    n->move_count = game->generate_noisy(s->position, n->moves);
    if (check && n->move_count == 0) {
        return game->finished(s->position);
    }
    s->moves_used += n->move_count;
    for (unsigned i = 0; i < n->move_count && best < beta && !search_halted(s); i++) {
        for (unsigned j = i + 1; j < n->move_count; j++) {
            if (n->moves[j].order > n->moves[i].order) {
                struct game_move m = n->moves[i];
                n->moves[i] = n->moves[j];
                n->moves[j] = m;
            }
        }
        uint16_t move = n->moves[i].move;
        if (!check && game->losing(s->position, move)) {
            continue;
        }
        int alpha_now = best > alpha ? best : alpha;
        game->make(s->position, move);
        n[1].split_id = 0;
        int v = score_up(quiesce(s, n + 1, bound_down(beta), bound_down(alpha_now)));
        game->unmake(s->position, move);
        best = v > best ? v : best;
    }
    s->moves_used -= n->move_count;
    return best;
}
