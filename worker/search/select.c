#include "worker/search/select.h"

enum { VERIFY_DEPTH = 12 };

/* Whether the side to move has a move, too, that keeps the node at beta, and not only the pass,
 * which is no legal move: a search of the same node without one. Two passes lead to it, so that
 * the plies below keep their sides. */
static enum search_visit verify(struct search *s, struct node *n, int depth)
{
    const struct game *game = s->options.game;
    struct node *again = n + 2;

    game->make_null(s->position);
    game->make_null(s->position);
    n[1].in_flight = false;
    n[1].split_id = again->split_id = 0;
    again->depth = depth;
    again->alpha = n->beta - 1;
    again->beta = n->beta;
    again->exclusive = false;
    again->cut_node = n->cut_node;
    again->after_null = true;
    enum search_visit visit = node_search(s, again);
    game->unmake_null(s->position);
    game->unmake_null(s->position);
    return visit != VISIT_VALUE ? VISIT_STOP : again->best < n->beta ? VISIT_CONTINUE : VISIT_VALUE;
}

static enum search_visit try_null(struct search *s, struct node *n)
{
    const struct game *game = s->options.game;
    const int reduced = n->depth - 4 - n->depth / 5;
    const bool is_cramped = game->cramped(s->position);

    if (is_cramped && reduced < 1) {
        return VISIT_CONTINUE;
    }
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
    n->repeats = n[1].repeats;
    n->counts = n[1].counts;
    if (!is_cramped && n->depth < VERIFY_DEPTH) {
        return VISIT_VALUE;
    }
    visit = verify(s, n, reduced);
    if (visit == VISIT_CONTINUE) { /* nothing is known yet */
        n->best = -GAME_INFINITE;
        node_forget_path(n);
    }
    return visit;
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
