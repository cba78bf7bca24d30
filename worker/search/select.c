#include "worker/search/select.h"

static enum search_visit try_null(struct search *s, struct node *n)
{
    const struct game *game = s->options.game;
    int reduced = n->depth - 4 - n->depth / 5;

    game->make_null(s->position);
    n[1].split_id = 0;
    node_child(n, reduced, n->beta - 1, n->beta, !n->cut_node)->after_null = true;
    enum search_visit visit = node_search(s, n + 1);
    game->unmake_null(s->position);
    if (visit != VISIT_VALUE) {
        return VISIT_STOP;
    }
    int value = score_up(n[1].best);
    if (value < n->beta) {
        return VISIT_CONTINUE;
    }
    n->best = value > GAME_MATE_MIN ? n->beta : value; /* a mate after a pass is none */
    return VISIT_VALUE;
}

enum search_visit select_node(struct search *s, struct node *n)
{
    const struct game *game = s->options.game;
    const struct game_search *limits = game->search;

    n->prunes = !game->check(s->position);
    if (!n->prunes) {
        return VISIT_CONTINUE;
    }
    n->static_eval = game->evaluate(s->position);
    if (!node_is_null_window(n) || n->beta > GAME_MATE_MIN || n->beta < -GAME_MATE_MIN) {
        return VISIT_CONTINUE;
    }
    if (n->depth <= limits->reverse_depth &&
        n->static_eval - limits->reverse_margin * n->depth >= n->beta) {
        n->best = n->static_eval;
        return VISIT_VALUE;
    }
    if (n->depth >= limits->null_depth && n->static_eval >= n->beta && !n->after_null &&
        game->make_null != NULL && !game->zugzwang(s->position)) {
        return try_null(s, n);
    }
    return VISIT_CONTINUE;
}

bool select_skips(const struct search *s, const struct node *n, unsigned at)
{
    const struct game_search *limits = s->options.game->search;
    if (!n->prunes || at == 0 || n->moves[at].flags & GAME_NOISY || n->best < -GAME_MATE_MIN) {
        return false;
    }
    if (n->depth <= limits->late_depth && (int)at > 3 + n->depth * n->depth) {
        return true;
    }
    return node_is_null_window(n) && n->depth <= limits->futility_depth &&
           n->static_eval + limits->futility_margin * (n->depth + 1) <= n->alpha_now;
}

int select_reduction(const struct search *s, const struct node *n, unsigned at, bool gives_check)
{
    const struct game_search *limits = s->options.game->search;
    if (!n->prunes || gives_check || n->depth < limits->reduce_depth || at < limits->reduce_from ||
        n->moves[at].flags & GAME_NOISY) {
        return 0;
    }
    int r = 1 + (at >= 8) + (at >= 20) + (n->depth >= 8) + (n->depth >= 8 && at >= 12);
    r -= node_is_null_window(n) ? 0 : 1;
    return r < n->depth - 1 ? r : n->depth - 2;
}
