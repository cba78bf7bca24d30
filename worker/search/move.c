#include "worker/search/move.h"

#include "worker/search/select.h"

#include <string.h>

/* Remaining depth below a move that has been made; `scout`: the one its first visit gets. */
int move_depth(struct search *s, unsigned ply, int depth, const struct outcome *o, unsigned at,
               int *scout)
{
    bool check = s->options.game->check(s->position);
    int full = depth - 1 + (check ? 1 : 0);
    *scout = full - select_reduction(s, ply, depth, o, at, check);
    return full;
}

/* One move: the eldest in the open window, the others in a null window first (NegaScout). */
static enum search_visit search_move(struct search *s, unsigned ply, int depth,
                                     const struct outcome *o, unsigned at, bool exclusive,
                                     int *value)
{
    const struct game *game = s->options.game;
    uint16_t move = s->frame[ply].moves[at].move;
    int raised = o->raised, beta = o->beta, score = 0;

    game->make(s->position, move);
    /* Memory is slow, and there is work to do meanwhile. Most children of depth 1 never ask. */
    if (depth > 1 && s->table.prefetch != NULL) {
        s->table.prefetch(s->table.self, node_key(s));
    }
    int reduced, below = move_depth(s, ply, depth, o, at, &reduced);
    int scout = at == 0 ? beta : raised + 1;
    struct frame *f = &s->frame[ply], *below_it = &s->frame[ply + 1];
    bool open = beta - o->alpha > 1;
    below_it->fails_high = open ? at > 0 : !f->fails_high;
    enum search_visit visit =
        node_visit(s, ply + 1, reduced, bound_down(scout), bound_down(raised), exclusive, &score);
    f->path += at == 0 ? s->path : 0;
    f->scouts = at > 0 && s->path > f->scouts ? s->path : f->scouts;
    if (visit == VISIT_VALUE && reduced < below && score_up(score) > raised) {
        visit = node_visit(s, ply + 1, below, bound_down(scout), bound_down(raised), false, &score);
        f->path += s->path;
    }
    if (visit == VISIT_VALUE && scout < beta && score_up(score) > raised &&
        score_up(score) < beta) {
        below_it->fails_high = false;
        visit = node_visit(s, ply + 1, below, bound_down(beta), bound_down(raised), false, &score);
        f->path += s->path;
    }
    game->unmake(s->position, move);
    *value = score_up(score);
    return visit;
}

static void extend_line(struct search *s, unsigned ply, uint16_t move)
{
    struct search_line *line = &s->frame[ply].pv;
    const struct search_line *below = &s->frame[ply + 1].pv;
    unsigned n = below->length < SEARCH_PV_MAX - 1 ? below->length : SEARCH_PV_MAX - 1;

    line->length = (uint16_t)(n + 1);
    line->move[0] = move;
    memcpy(&line->move[1], below->move, n * sizeof line->move[0]);
}

void move_take_value(struct search *s, unsigned ply, struct outcome *o, uint16_t move, int value)
{
    if (value > o->best) {
        o->best = value;
        o->move = move;
        if (value > o->raised) {
            o->raised = value;
            extend_line(s, ply, move);
        }
    }
}

bool move_cut_off(const struct outcome *o)
{
    return o->best >= o->beta;
}

enum search_visit move_search(struct search *s, unsigned ply, int depth, struct outcome *o,
                              unsigned at, bool exclusive)
{
    if (select_skips(s, ply, depth, o, at)) {
        return VISIT_VALUE;
    }
    const struct game_move *m = &s->frame[ply].moves[at];
    uint16_t move = m->move;
    bool quiet = !(m->flags & GAME_NOISY);
    int value;
    enum search_visit visit = search_move(s, ply, depth, o, at, exclusive, &value);
    if (visit == VISIT_VALUE) {
        move_take_value(s, ply, o, move, value);
        if (quiet && move_cut_off(o)) {
            order_reward(s, ply, move, depth);
        }
    }
    return visit;
}
