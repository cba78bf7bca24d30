#include "worker/search/handover/steal.h"

#include "common/rng.h"
#include "worker/search/children.h"
#include "worker/search/order.h"

#include <stdlib.h>
#include <string.h>

enum {
    SPLITS_MAX = 64,
    PARKED_MAX = 32,
    PATIENCE_MS = 500, /* without a word of a slave, until it is asked for a sign; and then */
    ANSWER_MS = 20, /* without an answer, until another searcher is asked */
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
    uint32_t alive_ms[GAME_MOVES_MAX]; /* when the child's slave was last in touch */
    bool asked[GAME_MOVES_MAX]; /* set when it was asked for a sign since */
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
    unsigned whom; /* it was sent to */
    uint32_t asked_ms; /* when it was sent */
    bool is_idle; /* nothing is being searched */
    bool has_task;
    struct peer_message task; /* the answer to the request */
    uint16_t master[SEARCH_PLY_MAX + 2]; /* by the ply of a node that was given: whose it is */
    struct parked parked[PARKED_MAX];
    unsigned parked_count;
};

static struct steal *steal_of(const struct search *s)
{
    return s->env.peers->peers->steal;
}

struct steal *steal_open(void)
{
    return calloc(1, sizeof(struct steal));
}

/* A message about a child. */
static void child_message(const struct search *s, struct peer_message *m, enum peer_kind kind,
                          uint64_t split, uint32_t at)
{
    peer_message(s, m, kind);
    m->child.split = split;
    m->child.at = at;
}

/* ---- a slave ---- */

/* To its master, unsearched. */
static void return_work(struct search *s, const struct peer_message *work)
{
    struct peer_message m;
    child_message(s, &m, STEAL_RESULT, work->child.split, work->child.at);
    peers_send(s, work->from, &m);
}

/* A child of a divided node, by the master or a slave: as the rules say, for its value or tested.
 */
static enum search_visit visit_child(struct search *s, struct node *n, unsigned at,
                                     bool *lacks_value)
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
    enum search_visit visit = visit_child(s, n, 1, lacks_value);
    n->has_children = false;
    n->split_id = 0;
    s->moves_used = moves_before;
    if (!s->stopped && s->unwind == n->ply && !s->window_changed) {
        s->unwind = NO_UNWIND; /* end_visit, too: the child may end before it has unwound */
        return visit == VISIT_VALUE ? VISIT_VALUE : VISIT_ABORTED;
    }
    return visit;
}

/* Searches what was given (task), from the node of `ply` at which the position is, and reports; or
 * returns it, if its path is none of this game's or leads elsewhere. */
static void search_task(struct search *s, unsigned ply)
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
        return_work(s, &w);
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
    child_message(s, &m, STEAL_RESULT, w.child.split, w.child.at);
    struct steal_result *r = &m.result;
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

/* Asks for work below that node; NULL: for any. */
static void ask(struct search *s, unsigned whom, const struct node *below)
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

/* Whether the answer to the last request is still awaited. */
static bool is_patient(struct search *s)
{
    struct steal *st = steal_of(s);
    if (st->wanted != 0 && peers_now_ms(s) - st->asked_ms > ANSWER_MS) {
        st->wanted = 0;
    }
    return st->wanted != 0;
}

/* ---- a master and its slaves ---- */

static struct split *split_by_id(struct search *s, uint64_t id)
{
    for (unsigned i = 0; i < steal_of(s)->splits; i++) {
        if (steal_of(s)->split[i].id == id) {
            return &steal_of(s)->split[i];
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
    struct steal_work *w = &m.work;
    child_message(s, &m, STEAL_WORK, sp->id, at);
    w->request = asked->request;
    w->eldest = n->moves[0];
    w->move = n->moves[at];
    w->alpha = n->alpha;
    w->alpha_now = n->alpha_now;
    w->beta = n->beta;
    w->best = n->best;
    w->depth = n->depth;
    w->iteration = (int)s->iteration;
    w->cut_node = n->cut_node;
    peer_set_path(s, &m, sp->ply);
    sp->state[at] = CHILD_GIVEN;
    sp->slave[at] = asked->from;
    sp->alive_ms[at] = peers_now_ms(s);
    sp->asked[at] = false;
    sp->given++;
    peers_send(s, asked->from, &m);
}

/* The free child nearest to the root. False: there is none. */
static bool answer(struct search *s, const struct parked *asked)
{
    struct steal *st = steal_of(s);
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
    m.request.number = asked->request;
    peers_send(s, asked->from, &m);
}

static void answer_parked(struct search *s, bool refuses)
{
    struct steal *st = steal_of(s);
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

/* ABORT, or SIGN to ask for one. */
static void say_to_slave(struct search *s, const struct split *sp, unsigned at, enum peer_kind kind)
{
    struct peer_message m;
    child_message(s, &m, kind, sp->id, at);
    peers_send(s, sp->slave[at], &m);
}

/* NARROW or ABORT. */
static void say_to_slaves(struct search *s, const struct split *sp, enum peer_kind kind)
{
    const struct node *n = &s->node[sp->ply];
    struct peer_message m;
    child_message(s, &m, kind, sp->id, 0);
    if (kind == STEAL_NARROW) {
        m.narrow.alpha = n->alpha_now;
        m.narrow.beta = n->beta;
    }
    for (unsigned at = 0, left = sp->given; left > 0 && at < n->move_count; at++) {
        if (sp->state[at] == CHILD_GIVEN) {
            m.child.at = at;
            peers_send(s, sp->slave[at], &m);
            left--;
        }
    }
}

/* As children_take_value, but the line comes with the message. After a test that lacks the value
 * `best` is what it was when the child was given: not better. */
static void on_value(struct search *s, struct split *sp, const struct peer_message *m)
{
    struct node *n = &s->node[sp->ply];
    const struct steal_result *r = &m->result;
    const unsigned at = r->child.at;
    n->path += r->path_again;
    n->longest_scout = r->path_scout > n->longest_scout ? r->path_scout : n->longest_scout;
    if (r->best <= n->best || !node_is_score(s, r->best)) {
        return;
    }
    n->best = r->best;
    n->best_move = n->moves[at].move;
    n->repeats = r->repeats;
    n->counts = r->counts;
    if (r->best <= n->alpha_now) {
        return;
    }
    n->alpha_now = r->best;
    n->pv = (struct search_line){.length = 1, .move = {n->best_move}}; /* whatever the slave says */
    if (m->length > 0 && m->moves[0] == n->best_move) {
        n->pv.length = m->length;
        memcpy(n->pv.move, m->moves, m->length * sizeof m->moves[0]);
    }
    if (!node_is_cut_off(n)) {
        say_to_slaves(s, sp, STEAL_NARROW);
    } else if (!(n->moves[at].flags & GAME_NOISY)) {
        order_reward(s, n, at);
    }
    if (!sp->waits && n->ply + 1 < s->unwind) { /* the master's own child, in the new window */
        s->unwind = n->ply + 1;
        s->window_changed = true;
    }
}

static void on_result(struct search *s, const struct peer_message *m)
{
    const struct steal_result *r = &m->result;
    const unsigned at = r->child.at;
    struct split *sp = split_by_id(s, r->child.split);
    if (sp == NULL || at >= s->node[sp->ply].move_count || sp->state[at] != CHILD_GIVEN ||
        (!r->has_value && sp->slave[at] != m->from)) {
        return; /* the node is done without it; or another has the child now */
    }
    CHECK_THAT(sp->given > 0, "a child that is given is counted");
    sp->given--;
    if (sp->slave[at] != m->from) { /* the one who lost the child was alive */
        say_to_slave(s, sp, at, STEAL_ABORT);
    }
    sp->state[at] = !r->has_value ? CHILD_FREE : r->lacks_value ? CHILD_TESTED : CHILD_DONE;
    if (r->has_value) {
        on_value(s, sp, m);
    }
}

/* ---- signs ---- */

/* Whether the message is about the work that is not begun yet. */
static bool is_next(const struct steal *st, const struct peer_message *m)
{
    return st->has_task && st->task.child.split == m->child.split &&
           st->task.child.at == m->child.at && st->task.from == m->from;
}

/* Whether the message is of the master of a node that this slave has. */
static bool is_mine(struct search *s, const struct peer_message *m)
{
    const int ply = search_split_ply(s, m->child.split ^ m->child.at);
    return ply >= 0 && steal_of(s)->master[ply] == m->from;
}

/* From a slave who has the child; or from the master, who asks whether it is so. */
static void on_sign(struct search *s, const struct peer_message *m)
{
    struct steal *st = steal_of(s);
    const unsigned at = m->child.at;
    if (m->sign.is_answer) {
        struct split *sp = split_by_id(s, m->child.split);
        if (sp != NULL && at < GAME_MOVES_MAX && sp->slave[at] == m->from) {
            sp->alive_ms[at] = peers_now_ms(s);
            sp->asked[at] = false;
        }
        return;
    }
    if (!is_next(st, m) && !is_mine(s, m)) {
        return_work(s, m);
        return;
    }
    struct peer_message sign;
    child_message(s, &sign, STEAL_SIGN, m->child.split, at);
    sign.sign.is_answer = true;
    peers_send(s, m->from, &sign);
}

/* Between waits. */
static void watch_slaves(struct search *s, struct split *sp)
{
    const struct node *n = &s->node[sp->ply];
    const uint32_t now_ms = peers_now_ms(s);
    for (unsigned at = 0, left = sp->given; left > 0 && at < n->move_count; at++) {
        if (sp->state[at] != CHILD_GIVEN) {
            continue;
        }
        left--;
        if (now_ms - sp->alive_ms[at] < PATIENCE_MS) {
            continue;
        }
        say_to_slave(s, sp, at, sp->asked[at] ? STEAL_ABORT : STEAL_SIGN);
        if (sp->asked[at]) {
            sp->state[at] = CHILD_FREE;
            sp->given--;
        }
        sp->alive_ms[at] = now_ms;
        sp->asked[at] = true;
    }
}

/* ---- what comes ---- */

static void on_request(struct search *s, const struct peer_message *m)
{
    struct steal *st = steal_of(s);
    struct parked asked = {
        .from = (uint16_t)m->from, .request = m->request.number, .length = m->length};
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

static void take(struct search *s, const struct peer_message *m)
{
    struct steal *st = steal_of(s);
    switch ((enum peer_kind)m->kind) {
    case STEAL_REQUEST:
        on_request(s, m);
        break;
    case STEAL_NO_WORK:
        st->wanted = m->request.number == st->wanted ? 0 : st->wanted;
        break;
    case STEAL_WORK:
        if (st->wanted == 0 || m->work.request != st->wanted || m->from != st->whom) {
            /* it is not waited for any more */
            return_work(s, m);
            break;
        }
        st->wanted = 0;
        st->task = *m;
        st->has_task = true;
        break;
    case STEAL_RESULT:
        on_result(s, m);
        break;
    case STEAL_NARROW:
    case STEAL_ABORT:
        if (is_next(st, m)) {
            st->has_task = false; /* not begun yet: a new window is as good a reason */
            return_work(s, m);
        } else if (!is_mine(s, m)) {
            break;
        } else if (m->kind == STEAL_ABORT) {
            search_abort(s, m->child.split ^ m->child.at);
        } else {
            search_narrow(s, m->child.split ^ m->child.at, m->narrow.alpha, m->narrow.beta);
        }
        break;
    case STEAL_SIGN:
        on_sign(s, m);
        break;
    case TASK_WORK:
    case TASK_DROP:
    case TASK_RESULT:
        break;
    }
}

void steal_serve(struct search *s)
{
    struct peer_message m;
    if (peers_are_there(s)) {
        answer_parked(s, true);
        while (peers_receive(s, &m)) {
            take(s, &m);
        }
    }
}

/* What is left of the last search is forgotten. */
static void begin(struct search *s)
{
    struct steal *st = steal_of(s);
    st->splits = st->parked_count = 0;
    st->has_task = false;
    st->is_idle = peers_helps(s);
    st->wanted = 0;
    s->divided_depth = STEAL_DEPTH;
    st->random = rng_mix(s->options.seed + s->options.number + 1);
}

/* What a searcher without a root does next. False: it has no work, and has asked for some. */
static bool seek_work(struct search *s)
{
    struct steal *st = steal_of(s);
    const struct peer_port *port = s->env.peers;
    if (st->has_task) {
        st->is_idle = false;
        peers_begin_work(s, st->task.length, (unsigned)st->task.work.iteration);
        search_task(s, 0);
        st->is_idle = true;
        return true;
    }
    if (!is_patient(s) && port->count >= 2) {
        unsigned whom = rng_below(&st->random, port->count - 1);
        ask(s, whom + (whom >= port->index), NULL);
    }
    return false;
}

bool steal_run(struct search *s)
{
    if (!peers_are_there(s)) {
        return false;
    }
    begin(s);
    return peers_help(s, seek_work);
}

/* ---- a node ---- */

static bool has_to_wait(const struct search *s, const struct node *n, const struct split *sp)
{
    return sp->given > 0 && !node_is_cut_off(n) && !search_halted(s) &&
           free_child(n, sp) == n->move_count && tested_child(n, sp) == n->move_count;
}

/* While it has nothing to do the master helps a slave, below this node. */
static void await_slaves(struct search *s, struct node *n, struct split *sp)
{
    struct steal *st = steal_of(s);
    const struct peer_port *port = s->env.peers;
    sp->waits = true;
    while (has_to_wait(s, n, sp)) {
        s->poll_ply = n->ply;
        s->stopped = s->env.poll(s->env.self, s) || s->stopped;
        if (s->stopped) {
            break;
        }
        steal_serve(s);
        watch_slaves(s, sp);
        if (!has_to_wait(s, n, sp)) {
            if (st->has_task) {
                return_work(s, &st->task);
                st->has_task = false;
            }
            break;
        }
        if (st->has_task && st->task.length <= n->ply) { /* that is no work below this node */
            st->has_task = false;
            return_work(s, &st->task);
        }
        if (st->has_task) {
            search_task(s, n->ply);
            continue;
        }
        if (!is_patient(s)) {
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
            visit = visit_child(s, n, at, &lacks_value);
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
    const struct steal_rules *rules = s->options.algorithm->handover->steals;
    struct steal *st = steal_of(s);
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
    sp->id = rng_mix(port->secret + ++st->serial) & ~UINT64_C(0xff);
    sp->ply = n->ply;
    sp->given = 0;
    sp->waits = true;
    memset(sp->state, CHILD_FREE, n->move_count);
    memset(sp->state, CHILD_DONE, first < n->move_count ? first : n->move_count);
    answer_parked(s, false);
    sp->waits = false;
    visit = search_divided(s, n, sp);
    CHECK_THAT(sp == &st->split[st->splits - 1] && sp->ply == n->ply, "split points nest");
    say_to_slaves(s, sp, STEAL_ABORT);
    st->splits--;
    return visit == VISIT_BUSY ? VISIT_VALUE : visit;
}
