#include "worker/search/steal.h"

#include "common/rng.h"
#include "worker/search/children.h"

#include <stdlib.h>
#include <string.h>

enum {
    SPLITS_MAX = 64,
    PARKED_MAX = 32,
    PATIENCE = 8, /* waits without an answer, until another searcher is asked */
};

enum child_state { CHILD_FREE, CHILD_MINE, CHILD_GIVEN, CHILD_TESTED, CHILD_DONE };

/* A node whose children others may search. */
struct split {
    uint64_t id;
    unsigned ply;
    unsigned given; /* children that slaves have */
    bool waits; /* no child is being searched by the master */
    uint8_t state[GAME_MOVES_MAX];
    uint16_t slave[GAME_MOVES_MAX];
};

struct parked {
    uint16_t from;
    uint32_t request;
    uint16_t length;
    uint16_t path[SEARCH_PLY_MAX];
};

struct steal {
    struct split split[SPLITS_MAX]; /* nested as the tree is: the first is nearest to the root */
    unsigned splits;
    uint64_t serial, random;
    uint32_t requests, wanted; /* the number of the request under way; 0: none */
    unsigned waits; /* since it was sent */
    bool is_idle; /* nothing is being searched */
    bool has_task;
    struct peer_message task; /* the answer to the request */
    struct parked parked[PARKED_MAX];
    unsigned parked_count;
};

struct steal *steal_open(void)
{
    return calloc(1, sizeof(struct steal));
}

static void send(struct search *s, unsigned to, const struct peer_message *m)
{
    s->env.peers->send(s->env.peers->self, to, m);
}

/* ---- a master and his slaves ---- */

static struct split *split_by_id(struct search *s, uint64_t id)
{
    for (unsigned i = 0; i < s->steal->splits; i++) {
        if (s->steal->split[i].id == id) {
            return &s->steal->split[i];
        }
    }
    return NULL;
}

static unsigned free_child(const struct node *n, const struct split *sp)
{
    unsigned at = 0;
    while (at < n->move_count && sp->state[at] != CHILD_FREE) {
        at++;
    }
    return at;
}

/* The child that is to be searched for its value: all before it are done. */
static unsigned tested_child(const struct node *n, const struct split *sp)
{
    unsigned at = 0;
    while (at < n->move_count && sp->state[at] == CHILD_DONE) {
        at++;
    }
    return at < n->move_count && sp->state[at] == CHILD_TESTED ? at : n->move_count;
}

static bool is_below(const struct search *s, const struct parked *asked, unsigned ply)
{
    bool is = asked->length == 0 || asked->length < ply;
    for (unsigned i = 0; i < asked->length && is; i++) {
        is = s->node[i].move_now == asked->path[i];
    }
    return is;
}

static void give(struct search *s, struct split *sp, unsigned at, const struct parked *asked)
{
    const struct node *n = &s->node[sp->ply];
    struct peer_message m;
    peer_message(s, &m, STEAL_WORK);
    m.split = sp->id;
    m.request = asked->request;
    m.at = at;
    m.eldest = n->moves[0];
    m.move = n->moves[at];
    m.alpha = n->alpha;
    m.alpha_now = n->alpha_now;
    m.beta = n->beta;
    m.best = n->best;
    m.depth = n->depth;
    m.iteration = (int)s->iteration;
    m.cut_node = n->cut_node;
    peer_set_path(s, &m, sp->ply);
    sp->state[at] = CHILD_GIVEN;
    sp->slave[at] = asked->from;
    sp->given++;
    send(s, asked->from, &m);
}

/* The free child nearest to the root. False: there is none. */
static bool answer(struct search *s, const struct parked *asked)
{
    struct steal *st = s->steal;
    for (unsigned i = 0; i < st->splits && !search_halted(s); i++) {
        struct split *sp = &st->split[i];
        const struct node *n = &s->node[sp->ply];
        unsigned at = free_child(n, sp);
        if (at < n->move_count && !node_is_cut_off(n) && is_below(s, asked, sp->ply)) {
            give(s, sp, at, asked);
            return true;
        }
    }
    return false;
}

static void refuse(struct search *s, const struct parked *asked)
{
    struct peer_message m;
    peer_message(s, &m, STEAL_NO_WORK);
    m.request = asked->request;
    send(s, asked->from, &m);
}

static void answer_parked(struct search *s, bool refuses)
{
    struct steal *st = s->steal;
    unsigned kept = 0;
    for (unsigned i = 0; i < st->parked_count; i++) {
        if (answer(s, &st->parked[i])) {
            continue;
        }
        if (refuses) {
            refuse(s, &st->parked[i]);
        } else {
            st->parked[kept++] = st->parked[i];
        }
    }
    st->parked_count = kept;
}

static void say_to_slaves(struct search *s, const struct split *sp, enum peer_kind kind)
{
    const struct node *n = &s->node[sp->ply];
    struct peer_message m;
    peer_message(s, &m, kind);
    m.split = sp->id;
    m.alpha = n->alpha_now;
    m.beta = n->beta;
    for (unsigned at = 0, left = sp->given; left > 0 && at < n->move_count; at++) {
        if (sp->state[at] == CHILD_GIVEN) {
            m.at = at;
            send(s, sp->slave[at], &m);
            left--;
        }
    }
}

/* As children_take_value, but the line comes with the message. After a test that lacks the value
 * `best` is what it was when the child was given: not better. */
static void take_value(struct search *s, struct split *sp, const struct peer_message *m)
{
    struct node *n = &s->node[sp->ply];
    n->path += m->path_again;
    n->longest_scout = m->path_scout > n->longest_scout ? m->path_scout : n->longest_scout;
    if (m->best <= n->best) {
        return;
    }
    n->best = m->best;
    n->best_move = m->move.move;
    n->repeats = m->repeats;
    n->counts = m->counts;
    if (m->best <= n->alpha_now) {
        return;
    }
    n->alpha_now = m->best;
    n->pv.length = m->line_length;
    memcpy(n->pv.move, m->moves, m->line_length * sizeof m->moves[0]);
    if (!node_is_cut_off(n)) {
        say_to_slaves(s, sp, STEAL_NARROW);
    } else if (!(n->moves[m->at].flags & GAME_NOISY)) {
        order_reward(s, n, m->at);
    }
    if (!sp->waits && n->ply + 1 < s->unwind) { /* the master's own child, in the new window */
        s->unwind = n->ply + 1;
        s->window_changed = true;
    }
}

static void take_result(struct search *s, const struct peer_message *m)
{
    struct split *sp = split_by_id(s, m->split);
    if (sp == NULL || sp->state[m->at] != CHILD_GIVEN) {
        return; /* the node is done without it */
    }
    sp->given--;
    sp->state[m->at] = !m->has_value ? CHILD_FREE : m->lacks_value ? CHILD_TESTED : CHILD_DONE;
    if (m->has_value) {
        take_value(s, sp, m);
    }
}

/* ---- what comes ---- */

static void take_request(struct search *s, const struct peer_message *m)
{
    struct steal *st = s->steal;
    struct parked asked = {.from = (uint16_t)m->from, .request = m->request, .length = m->length};
    memcpy(asked.path, m->moves, m->length * sizeof m->moves[0]);
    if (answer(s, &asked)) {
        return;
    }
    if (st->is_idle || st->parked_count == PARKED_MAX) {
        refuse(s, &asked);
    } else {
        st->parked[st->parked_count++] = asked;
    }
}

static void return_work(struct search *s, const struct peer_message *work)
{
    struct peer_message m;
    peer_message(s, &m, STEAL_RESULT);
    m.split = work->split;
    m.at = work->at;
    send(s, work->from, &m);
}

void steal_take(struct search *s, const struct peer_message *m)
{
    struct steal *st = s->steal;
    switch ((enum peer_kind)m->kind) {
    case STEAL_REQUEST:
        take_request(s, m);
        break;
    case STEAL_NO_WORK:
        st->wanted = m->request == st->wanted ? 0 : st->wanted;
        break;
    case STEAL_WORK:
        if (m->request != st->wanted) { /* it is not waited for any more */
            return_work(s, m);
            break;
        }
        st->wanted = 0;
        st->task = *m;
        st->has_task = true;
        break;
    case STEAL_RESULT:
        take_result(s, m);
        break;
    case STEAL_NARROW:
    case STEAL_ABORT:
        if (st->has_task && st->task.split == m->split && st->task.at == m->at) {
            st->has_task = false; /* not begun yet: a new window is as good a reason */
            return_work(s, m);
        } else if (m->kind == STEAL_ABORT) {
            search_abort(s, m->split ^ m->at);
        } else {
            search_narrow(s, m->split ^ m->at, m->alpha, m->beta);
        }
        break;
    case TASK_WORK:
    case TASK_DROP:
    case TASK_RESULT:
        break;
    }
}

void steal_refuse_parked(struct search *s)
{
    answer_parked(s, true);
}

/* ---- a slave ---- */

static enum search_visit visit_free(struct search *s, struct node *n, unsigned at,
                                    bool *lacks_value)
{
    *lacks_value = false;
    return s->options.algorithm->steals->gives_tests ? children_test(s, n, at, lacks_value)
                                                     : children_visit(s, n, at, false, 0);
}

/* The node of the master, with one child; then that child. */
static enum search_visit visit_given(struct search *s, const struct peer_message *w,
                                     bool *lacks_value)
{
    struct node *n = &s->node[w->length];
    const unsigned moves_before = s->moves_used;
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
    n->split_id = w->split ^ w->at;
    n->moves = &s->move_stack[s->moves_used];
    n->moves[0] = w->eldest;
    n->moves[1] = w->move;
    n->move_count = 2;
    s->moves_used += 2;
    node_forget_path(n);
    n->has_children = true;
    enum search_visit visit = visit_free(s, n, 1, lacks_value);
    n->has_children = false;
    n->split_id = 0;
    s->moves_used = moves_before;
    if (!s->stopped && s->unwind == n->ply && !s->window_changed) {
        s->unwind = NO_UNWIND; /* as in end_visit: a child may have ended before it could unwind */
        return visit == VISIT_VALUE ? VISIT_VALUE : VISIT_ABORTED;
    }
    return visit;
}

/* Searches what was given, from the node of `ply` at which the position is. */
static void search_task(struct search *s, unsigned ply)
{
    const struct peer_message w = s->steal->task;
    const struct node *n = &s->node[w.length];
    struct peer_message m;
    s->steal->has_task = false;
    for (unsigned i = ply; i < w.length; i++) {
        struct node *above = &s->node[i];
        if (i > ply || s->start_ply == w.length) { /* only a node on the way */
            above->in_flight = above->has_children = false;
            above->split_id = 0;
        }
        above->move_now = w.moves[i];
        above[1].after_null = false;
        above[1].excluded = 0;
        s->options.game->make(s->position, w.moves[i]);
    }
    s->counters.steals++;
    bool lacks_value;
    enum search_visit visit = visit_given(s, &w, &lacks_value);
    for (unsigned i = w.length; i > ply; i--) {
        s->options.game->unmake(s->position, w.moves[i - 1]);
    }
    peer_message(s, &m, STEAL_RESULT);
    m.split = w.split;
    m.at = w.at;
    m.has_value = visit == VISIT_VALUE && !s->stopped;
    m.lacks_value = lacks_value;
    m.best = n->best;
    m.move = w.move;
    m.repeats = n->repeats;
    m.counts = n->counts;
    m.path_scout = n->longest_scout;
    m.path_again = n->path;
    m.line_length = n->pv.length;
    memcpy(m.moves, n->pv.move, n->pv.length * sizeof m.moves[0]);
    send(s, w.from, &m);
}

static void ask(struct search *s, unsigned whom, const struct node *below)
{
    struct steal *st = s->steal;
    struct peer_message m;
    peer_message(s, &m, STEAL_REQUEST);
    m.request = st->wanted = ++st->requests;
    peer_set_path(s, &m, below != NULL ? below->ply : 0);
    st->waits = 0;
    send(s, whom, &m);
}

static bool is_patient(struct steal *st)
{
    if (st->wanted != 0 && ++st->waits > PATIENCE) {
        st->wanted = 0;
    }
    return st->wanted != 0;
}

void steal_begin(struct search *s)
{
    struct steal *st = s->steal;
    st->splits = st->parked_count = 0;
    st->has_task = false;
    st->is_idle = peers_helps(s);
    st->wanted = 0;
    st->random = rng_mix(s->options.seed + s->options.number + 1);
}

bool steal_work(struct search *s)
{
    struct steal *st = s->steal;
    const struct peer_port *port = s->env.peers;
    if (st->has_task) {
        st->is_idle = false;
        peers_begin_work(s, st->task.length, (unsigned)st->task.iteration);
        search_task(s, 0);
        st->is_idle = true;
        return true;
    }
    if (!is_patient(st)) {
        unsigned whom = rng_below(&st->random, port->count - 1);
        ask(s, whom + (whom >= port->index), NULL);
    }
    return false;
}

/* ---- a node ---- */

static bool has_to_wait(const struct search *s, const struct node *n, const struct split *sp)
{
    return sp->given > 0 && !node_is_cut_off(n) && !search_halted(s) &&
           free_child(n, sp) == n->move_count && tested_child(n, sp) == n->move_count;
}

/* While there is nothing for him to do the master helps a slave, below this node. */
static void await_slaves(struct search *s, struct node *n, struct split *sp)
{
    struct steal *st = s->steal;
    const struct peer_port *port = s->env.peers;
    sp->waits = true;
    while (has_to_wait(s, n, sp)) {
        s->poll_ply = n->ply;
        s->stopped = s->env.poll(s->env.self, s) || s->stopped;
        if (s->stopped) {
            break;
        }
        peers_serve(s);
        if (!has_to_wait(s, n, sp)) {
            if (st->has_task) {
                return_work(s, &st->task);
                st->has_task = false;
            }
            break;
        }
        if (st->has_task) {
            search_task(s, n->ply);
            continue;
        }
        if (!is_patient(st)) {
            unsigned skip = rng_below(&st->random, sp->given), at = 0;
            while (sp->state[at] != CHILD_GIVEN || skip-- > 0) {
                at++;
            }
            ask(s, sp->slave[at], n);
        }
        port->wait(port->self);
    }
    st->wanted = 0; /* what comes later is returned */
    sp->waits = false;
}

static enum search_visit search_divided(struct search *s, struct node *n, struct split *sp)
{
    enum search_visit visit = VISIT_VALUE;
    while (!node_is_cut_off(n) && children_go_on(visit)) {
        const int alpha = n->alpha_now;
        unsigned at = tested_child(n, sp);
        if (at < n->move_count) {
            sp->state[at] = CHILD_MINE;
            visit = children_value(s, n, at);
            sp->state[at] = CHILD_DONE;
        } else if ((at = free_child(n, sp)) < n->move_count) {
            bool lacks_value;
            sp->state[at] = CHILD_MINE;
            visit = visit_free(s, n, at, &lacks_value);
            sp->state[at] = lacks_value ? CHILD_TESTED : CHILD_DONE;
        } else if (sp->given > 0) {
            await_slaves(s, n, sp);
            /* Another window for the node's parent, or a stop: no child says so. */
            visit = search_halted(s) ? VISIT_STOP : VISIT_VALUE;
        } else {
            break;
        }
        if (n->alpha_now > alpha && sp->given > 0 && !node_is_cut_off(n)) {
            say_to_slaves(s, sp, STEAL_NARROW);
        }
    }
    return visit;
}

enum search_visit steal_children(struct search *s, struct node *n)
{
    const struct peer_port *port = s->env.peers;
    const struct steal_rules *rules = s->options.algorithm->steals;
    struct steal *st = s->steal;
    if (!peers_are_there(s) || port->count < 2 || st->splits == SPLITS_MAX || n->move_count < 2 ||
        (rules->divides != NULL && !rules->divides(s, n))) {
        return children_in_order(s, n);
    }
    const unsigned first = rules->comes_first == NULL ? 1 : rules->comes_first(n);
    enum search_visit visit = VISIT_VALUE;
    for (unsigned at = 0; at < first && at < n->move_count; at++) {
        order_pick(s, n, at);
        visit = children_visit(s, n, at, false, 0);
        if (!children_go_on(visit) || node_is_cut_off(n)) {
            return visit;
        }
    }
    order_sort(s, n);
    struct split *sp = &st->split[st->splits++];
    sp->id = ((uint64_t)(port->index + 1) << 48) | ++st->serial << 8;
    sp->ply = n->ply;
    sp->given = 0;
    sp->waits = true;
    memset(sp->state, CHILD_FREE, n->move_count);
    memset(sp->state, CHILD_DONE, first < n->move_count ? first : n->move_count);
    answer_parked(s, false);
    sp->waits = false;
    visit = search_divided(s, n, sp);
    say_to_slaves(s, sp, STEAL_ABORT);
    st->splits--;
    return visit == VISIT_BUSY ? VISIT_VALUE : visit;
}
