#include "worker/search/select.h"

enum {
    REVERSE_DEPTH = 6,
    REVERSE_MARGIN = 85, /* centipawns a ply */
    NULL_DEPTH = 3,
    FUTILITY_DEPTH = 4,
    FUTILITY_MARGIN = 110,
    LATE_DEPTH = 4,
    REDUCE_DEPTH = 3,
    REDUCE_FROM = 3, /* moves searched at full depth first */
};

static bool is_scout(const struct outcome *o)
{
    return o->beta - o->alpha == 1;
}

static enum search_visit try_null(struct search *s, unsigned ply, int depth, struct outcome *o)
{
    const struct game *game = s->options.game;
    int reduced = depth - 4 - depth / 5, score = 0;

    game->make_null(s->position);
    s->frame[ply + 1].after_null = true;
    enum search_visit visit = node_visit(s, ply + 1, reduced, bound_down(o->beta),
                                         bound_down(o->beta - 1), false, &score);
    s->frame[ply + 1].after_null = false;
    game->unmake_null(s->position);
    if (visit != VISIT_VALUE) {
        return VISIT_STOP;
    }
    int value = score_up(score);
    if (value < o->beta) {
        return VISIT_BUSY;
    }
    o->best = value > GAME_MATE_MIN ? o->beta : value; /* a mate after a pass is none */
    return VISIT_VALUE;
}

enum search_visit select_node(struct search *s, unsigned ply, int depth, struct outcome *o)
{
    const struct game *game = s->options.game;
    struct frame *f = &s->frame[ply];

    f->calm = !game->check(s->position);
    if (!f->calm) {
        return VISIT_BUSY;
    }
    f->standing = game->evaluate(s->position);
    if (!is_scout(o) || o->beta > GAME_MATE_MIN || o->beta < -GAME_MATE_MIN) {
        return VISIT_BUSY;
    }
    if (depth <= REVERSE_DEPTH && f->standing - REVERSE_MARGIN * depth >= o->beta) {
        o->best = f->standing;
        return VISIT_VALUE;
    }
    if (depth >= NULL_DEPTH && f->standing >= o->beta && !f->after_null &&
        game->make_null != NULL && !game->zugzwang(s->position)) {
        return try_null(s, ply, depth, o);
    }
    return VISIT_BUSY;
}

bool select_skips(const struct search *s, unsigned ply, int depth, const struct outcome *o,
                  unsigned at)
{
    const struct frame *f = &s->frame[ply];
    const struct game_move *m = &f->moves[at];
    if (!s->options.full || !f->calm || at == 0 || m->flags & GAME_NOISY ||
        o->best < -GAME_MATE_MIN) {
        return false;
    }
    if (depth <= LATE_DEPTH && (int)at > 3 + depth * depth) {
        return true;
    }
    return is_scout(o) && depth <= FUTILITY_DEPTH &&
           f->standing + FUTILITY_MARGIN * (depth + 1) <= o->raised;
}

int select_reduction(const struct search *s, unsigned ply, int depth, const struct outcome *o,
                     unsigned at, bool gives_check)
{
    const struct frame *f = &s->frame[ply];
    if (!s->options.full || !f->calm || gives_check || depth < REDUCE_DEPTH || at < REDUCE_FROM ||
        f->moves[at].flags & GAME_NOISY) {
        return 0;
    }
    int r = 1 + (at >= 8) + (at >= 20) + (depth >= 8) + (depth >= 8 && at >= 12);
    r -= is_scout(o) ? 0 : 1;
    return r < depth - 1 ? r : depth - 2;
}
