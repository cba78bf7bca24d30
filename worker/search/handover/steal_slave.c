/* A slave's part of steal.h. */
#include "worker/search/handover/steal_core.h"

#include <string.h>

enum {
    PATIENCE_MS = 20, /* without an answer, until another searcher is asked */
};

void steal_return_work(struct search *s, const struct peer_message *work)
{
    struct peer_message m;
    peer_message(s, &m, STEAL_RESULT);
    m.child.split = work->child.split;
    m.child.at = work->child.at;
    peers_send(s, work->from, &m);
}

enum search_visit steal_visit(struct search *s, struct node *n, unsigned at, bool *lacks_value)
{
    *lacks_value = false;
    return s->options.algorithm->handover->steals->gives_tests
               ? children_test(s, n, at, lacks_value)
               : children_visit(s, n, at, false, 0);
}

/* The node of the master, with one child; then that child. */
static enum search_visit visit_given(struct search *s, const struct peer_message *m,
                                     bool *lacks_value)
{
    const struct steal_work *w = &m->work;
    struct node *n = &s->node[m->length];
    const unsigned moves_before = s->moves_used;
    CHECK_THAT(moves_before + 2 <= MOVE_STACK, "there is room for two moves");
    n->depth = w->depth;
    n->alpha = w->alpha;
    n->alpha_now = w->alpha_now;
    n->beta = w->beta;
    n->best = w->best;
    n->best_move = 0;
    n->pv.length = 0;
    n->cut_node = w->cut_node;
    n->prunes = n->reduces = false;
    n->contended = n->in_flight = false;
    n->resolved = RESOLVED_NOT;
    n->path = n->longest_scout = 0;
    n->split_id = w->child.split ^ w->child.at;
    steal_of(s)->master[n->ply] = (uint16_t)m->from;
    n->moves = &s->move_stack[s->moves_used];
    n->moves[0] = w->eldest;
    n->moves[1] = w->move;
    n->move_count = 2;
    s->moves_used += 2;
    node_forget_path(n);
    n->has_children = true;
    enum search_visit visit = steal_visit(s, n, 1, lacks_value);
    n->has_children = false;
    n->split_id = 0;
    s->moves_used = moves_before;
    if (!s->stopped && s->unwind == n->ply && !s->window_changed) {
        s->unwind = NO_UNWIND; /* end_visit, too: the child may end before it has unwound */
        return visit == VISIT_VALUE ? VISIT_VALUE : VISIT_ABORTED;
    }
    return visit;
}

void steal_search_task(struct search *s, unsigned ply)
{
    const struct peer_message w = steal_of(s)->task;
    const struct node *n = &s->node[w.length];
    struct peer_message m;
    unsigned made = ply, same = 0;
    CHECK_THAT(steal_of(s)->has_task && w.length >= ply, "there is work, below this node");
    steal_of(s)->has_task = false;
    while (same < ply && same < w.length && s->node[same].move_now == w.moves[same]) {
        same++;
    }
    while (same == ply && made < w.length &&
           game_is_legal(s->options.game, s->position, w.moves[made])) {
        s->options.game->make(s->position, w.moves[made++]);
    }
    const bool is_legal = same == ply && made == w.length &&
                          game_is_legal(s->options.game, s->position, w.work.move.move);
    for (unsigned i = made; i > ply && !is_legal; i--) {
        s->options.game->unmake(s->position, w.moves[i - 1]);
    }
    if (!is_legal) { /* another process may say anything */
        steal_return_work(s, &w);
        return;
    }
    for (unsigned i = ply; i < w.length; i++) {
        struct node *above = &s->node[i];
        if (i > ply || s->start_ply == w.length) { /* only a node on the way */
            above->in_flight = above->has_children = false;
            above->split_id = 0;
        }
        above->move_now = w.moves[i];
        above[1].after_null = false;
        above[1].excluded = 0;
    }
    s->counters.steals++;
    bool lacks_value;
    enum search_visit visit = visit_given(s, &w, &lacks_value);
    for (unsigned i = w.length; i > ply; i--) {
        s->options.game->unmake(s->position, w.moves[i - 1]);
    }
    peer_message(s, &m, STEAL_RESULT);
    struct steal_result *r = &m.result;
    r->child.split = w.child.split;
    r->child.at = w.child.at;
    r->has_value = visit == VISIT_VALUE && !s->stopped;
    r->lacks_value = lacks_value;
    r->best = n->best;
    r->repeats = n->repeats;
    r->counts = n->counts;
    r->path_scout = n->longest_scout;
    r->path_again = n->path;
    m.length = n->pv.length;
    memcpy(m.moves, n->pv.move, n->pv.length * sizeof m.moves[0]);
    peers_send(s, w.from, &m);
}

void steal_ask(struct search *s, unsigned whom, const struct node *below)
{
    struct steal *st = steal_of(s);
    struct peer_message m;
    peer_message(s, &m, STEAL_REQUEST);
    m.request.number = st->wanted = ++st->requests;
    peer_set_path(s, &m, below != NULL ? below->ply : 0);
    st->whom = whom;
    st->asked_ms = peers_now_ms(s);
    peers_send(s, whom, &m);
}

bool steal_is_patient(struct search *s)
{
    struct steal *st = steal_of(s);
    if (st->wanted != 0 && peers_now_ms(s) - st->asked_ms > PATIENCE_MS) {
        st->wanted = 0;
    }
    return st->wanted != 0;
}
