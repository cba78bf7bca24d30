#include "worker/search/handover/tasks.h"

#include "worker/search/children.h"
#include "worker/search/node.h"
#include "worker/search/order.h"

#include <stdlib.h>
#include <string.h>

enum {
    PLACES = 1 << 18, /* a power of two */
    PLACES_USED = PLACES / 4 * 3,
    KNOWN = 6, /* results kept of a position */
    HAND_MAX = 256, /* tasks of a worker; what is more waits for the next pass */
    SIGNATURE_PLIES = 12,
    SIGNATURE_BITS = 5,
    PATIENCE_MS = 500, /* without a sign of a worker, until it is asked for one; and again, until
                          others have its tasks */
    MARGIN = 2, /* aspiration widths */
    NO_PEER = UINT16_MAX,
    NO_PLY = SEARCH_PLY_MAX + 1,
};

/* What is known of a position at a depth. */
struct known {
    uint8_t depth;
    int16_t lower, upper;
    uint16_t move; /* the best; 0: not known */
};

/* A position of the master's tree. */
struct place {
    uint64_t key; /* 0: none */
    uint16_t move; /* the best of the last pass */
    uint16_t owner; /* the worker that has or had it, or NO_PEER */
    bool is_task; /* it is in the list of tasks, the owner's */
    uint8_t depth; /* ... to be searched to */
    int16_t alpha, beta; /* ... in this window */
    uint32_t pass; /* the last that came to it as a task */
    uint32_t request; /* its number */
    bool has_static;
    int16_t value; /* `has_static`: the evaluation */
    unsigned known_count;
    struct known known[KNOWN]; /* the deepest first */
};

struct places {
    struct place *at; /* PLACES of them, zeroes at first */
    unsigned used;
};

/* What the master knows of a worker. */
struct hand {
    unsigned tasks; /* which it has */
    unsigned in_pass; /* of them came in this pass */
    uint32_t seen; /* when it had its first task, or gave a sign since (ms) */
    uint32_t asked_pass; /* in which it was asked for a sign; 0: it was not */
    uint32_t asked; /* when (ms) */
    bool is_silent; /* its tasks were given to others, and it has sent nothing since */
};

struct tasks {
    struct places places;
    uint32_t *list; /* places that are tasks */
    unsigned listed;
    struct hand *hand; /* by the searcher's number; there is one for the master, too */
    unsigned hands, hands_room;
    unsigned next_hand, idle, silent; /* `idle`: give signs and have no task */
    unsigned plies; /* of the master's tree, at most: for larger ones there was no room */
    unsigned leaf_depth; /* of this iteration */
    bool is_ready; /* for a tree in this search */
    bool is_full; /* there was no room for a place */
    unsigned alone_ply; /* the subtree of the node there is the master's own work; or NO_PLY */
    uint32_t pass, requests;
    uint32_t now_ms; /* as of the last pass or wait */
    bool is_new; /* a result has come since the pass began */
};

/* ---- positions, and what is known of each; nothing is moved while it is used ---- */

/* The place of that key, a new one without an owner if need be. NULL: there is no room for it. */
static struct place *place_of(struct places *t, uint64_t key)
{
    key = key == 0 ? 1 : key;
    uint64_t at = key & (PLACES - 1);
    while (t->at[at].key != key) {
        if (t->at[at].key == 0) {
            if (t->used == PLACES_USED) {
                return NULL;
            }
            t->used++;
            t->at[at].key = key;
            t->at[at].owner = NO_PEER;
            break;
        }
        at = (at + 1) & (PLACES - 1);
    }
    return &t->at[at];
}

/* Takes a result. False: it says nothing new. */
static bool place_take(struct place *p, const struct task_result *m)
{
    CHECK_THAT(p->known_count <= KNOWN, "the results of a place fit");
    const int depth = m->depth;
    unsigned at = 0;
    while (at < p->known_count && p->known[at].depth > depth) {
        at++;
    }
    if (at == p->known_count || p->known[at].depth != depth) {
        at = at < KNOWN ? at : KNOWN - 1;
        p->known_count += p->known_count < KNOWN;
        memmove(&p->known[at + 1], &p->known[at], (p->known_count - at - 1) * sizeof p->known[0]);
        p->known[at] = (struct known){(uint8_t)depth, -GAME_INFINITE, GAME_INFINITE, 0};
    }
    struct known *k = &p->known[at];
    const struct known before = *k;
    if (m->alpha > k->upper || m->beta < k->lower) { /* not strict, or a lie: asked once more it
                                                        might contradict itself for ever */
        k->lower = k->upper = (int16_t)m->best;
        k->move = m->move;
    } else if (m->alpha > k->lower || (m->alpha == k->lower && k->move == 0)) {
        k->move = m->move; /* the one that proved the lower bound, or none */
    }
    k->lower = m->alpha > k->lower ? (int16_t)m->alpha : k->lower;
    k->upper = m->beta < k->upper ? (int16_t)m->beta : k->upper;
    k->upper = k->upper < k->lower ? k->lower : k->upper;
    p->move = m->move != 0 ? m->move : p->move;
    return k->lower != before.lower || k->upper != before.upper;
}

/* The deepest result, of `most` plies at most, that says where the value lies in the window; NULL:
 * there is none. */
static const struct known *place_deepest(const struct place *p, int most, int alpha, int beta)
{
    for (unsigned i = 0; i < p->known_count; i++) {
        const struct known *k = &p->known[i];
        if (k->depth <= most && (k->lower >= beta || k->upper <= alpha || k->lower == k->upper)) {
            return k;
        }
    }
    return NULL;
}

static struct tasks *tasks_of(const struct search *s)
{
    return s->env.peers->peers->tasks;
}

struct tasks *tasks_open(void)
{
    return calloc(1, sizeof(struct tasks));
}

void tasks_free(struct tasks **tasks)
{
    if (*tasks != NULL) {
        free((*tasks)->places.at);
        free((*tasks)->list);
        free((*tasks)->hand);
        free(*tasks);
        *tasks = NULL;
    }
}

/* Searchers come while a search runs. Without memory those who come late get no tasks. */
static void take_hands(struct search *s)
{
    struct tasks *t = tasks_of(s);
    const struct peer_port *port = s->env.peers;
    if (t->hands_room < port->count) {
        struct hand *hand = realloc(t->hand, 2 * port->count * sizeof *hand);
        if (hand != NULL) {
            t->hand = hand;
            t->hands_room = 2 * port->count;
        }
    }
    for (; t->hands < port->count && t->hands < t->hands_room; t->hands++) {
        t->hand[t->hands] = (struct hand){0};
        t->idle += t->hands != port->index;
    }
}

void tasks_begin(struct search *s)
{
    tasks_of(s)->leaf_depth = 0;
    tasks_of(s)->alone_ply = 0; /* until the root is begun */
    tasks_of(s)->is_ready = false;
}

/* When the first worker is there. */
static void make_ready(struct search *s)
{
    struct tasks *t = tasks_of(s);
    t->is_ready = true;
    if (t->places.at == NULL || t->places.used > 0) {
        free(t->places.at);
        t->places.at = calloc(PLACES, sizeof *t->places.at);
    }
    if (t->list == NULL) {
        t->list = malloc(PLACES * sizeof *t->list);
    }
    t->hands = 0;
    t->idle = 0;
    take_hands(s);
    t->places.used = t->listed = t->next_hand = 0;
    t->pass = t->requests = t->silent = 0;
    t->plies = SEARCH_DEPTH_MAX;
    t->is_full = false;
}

/* Whether the nodes of this iteration may be those of a master's tree. */
static bool has_tree(struct search *s)
{
    const struct tasks *t = tasks_of(s);
    const struct peer_port *port = s->env.peers;
    if (!port->owns_root || port->count < 2 || port->count >= NO_PEER ||
        s->iteration < TASKS_DEPTH) {
        return false;
    }
    if (!t->is_ready) {
        make_ready(s);
    }
    return t->places.at != NULL && t->list != NULL && t->hands >= 2;
}

/* ---- the master: who has which task ---- */

static bool is_idle(const struct hand *h)
{
    return h->tasks == 0 && !h->is_silent;
}

static void count_task(struct tasks *t, unsigned owner, int more)
{
    CHECK_THAT(owner < t->hands, "a task is a worker's");
    struct hand *h = &t->hand[owner];
    CHECK_THAT((more > 0 || h->tasks > 0), "a worker loses a task that it has");
    if (h->tasks == 0) {
        h->seen = t->now_ms;
        h->asked_pass = 0;
    }
    t->idle -= is_idle(h);
    h->tasks += (unsigned)more;
    t->idle += is_idle(h);
}

static void drop(struct search *s, const struct place *p, unsigned whose)
{
    struct peer_message m;
    peer_message(s, &m, TASK_DROP);
    m.drop.key = p->key;
    m.drop.request = tasks_of(s)->requests;
    peers_send(s, whose, &m);
}

/* The worker with the fewest tasks, in turn. */
static unsigned least_busy(struct search *s, unsigned but)
{
    struct tasks *t = tasks_of(s);
    const struct peer_port *port = s->env.peers;
    unsigned best = NO_PEER;
    for (unsigned i = 0; i < t->hands; i++) {
        unsigned at = (t->next_hand + i) % t->hands;
        if (at == port->index || at == but) {
            continue;
        }
        const struct hand *h = &t->hand[at], *b = best == NO_PEER ? NULL : &t->hand[best];
        if (b == NULL || h->is_silent < b->is_silent ||
            (h->is_silent == b->is_silent && h->tasks < b->tasks)) {
            best = at;
            if (is_idle(h)) {
                break;
            }
        }
    }
    t->next_hand = best + 1;
    return best == NO_PEER ? but : best; /* there is one worker alone */
}

static uint64_t signature(const struct search *s, const struct node *n)
{
    uint64_t sum = 0;
    for (unsigned ply = 0; ply < SIGNATURE_PLIES; ply++) {
        unsigned rank = 0;
        const unsigned most = (1u << SIGNATURE_BITS) - 1;
        while (ply < n->ply && rank < most &&
               s->node[ply].moves[rank].move != s->node[ply].move_now) {
            rank++;
        }
        sum = sum << SIGNATURE_BITS | rank;
    }
    return sum;
}

static void give(struct search *s, const struct node *n, const struct place *p, bool asks)
{
    struct peer_message m;
    struct task_offer *o = &m.offer;
    peer_message(s, &m, TASK_WORK);
    o->key = p->key;
    o->signature = signature(s, n);
    o->request = p->request;
    o->asks = asks;
    o->alpha = p->alpha;
    o->beta = p->beta;
    o->depth = p->depth;
    o->iteration = (int)s->iteration;
    o->cut_node = n->cut_node;
    peer_set_path(s, &m, n->ply);
    peers_send(s, p->owner, &m);
}

static void set_silent(struct tasks *t, unsigned owner, bool is_silent)
{
    struct hand *h = &t->hand[owner];
    t->idle -= is_idle(h);
    t->silent -= h->is_silent;
    t->silent += is_silent;
    h->is_silent = is_silent;
    t->idle += is_idle(h);
}

/* Not where mates are: there each ply counts. */
static int wider(int bound, int by)
{
    return bound >= GAME_MATE_MIN || bound <= -GAME_MATE_MIN ? bound : bound + by;
}

/* Whether the worker has given no sign for so long that it is to be asked for one, task by task. */
static bool is_overdue(const struct tasks *t, const struct hand *h)
{
    return h->tasks > 0 && t->now_ms - h->seen > PATIENCE_MS;
}

/* The window of the task, around that of the leaf; if a pass comes to a position twice, around
 * both. False: it was wide enough. */
static bool fit(const struct search *s, const struct node *n, struct place *p)
{
    const int margin = MARGIN * s->options.game->search->aspiration_width;
    const bool is_same = p->is_task && p->depth == n->depth;
    if (is_same && p->alpha <= n->alpha && p->beta >= n->beta) {
        return false;
    }
    const int alpha = wider(n->alpha, -margin), beta = wider(n->beta, margin);
    const bool is_again = is_same && p->pass == tasks_of(s)->pass;
    p->alpha = (int16_t)(is_again && p->alpha < alpha ? p->alpha : alpha);
    p->beta = (int16_t)(is_again && p->beta > beta ? p->beta : beta);
    p->depth = (uint8_t)n->depth;
    return true;
}

/* The worker that is to have the position; NO_PEER: all have enough. */
static unsigned owner_of(struct search *s, struct place *p)
{
    struct tasks *t = tasks_of(s);
    struct hand *h = p->owner == NO_PEER ? NULL : &t->hand[p->owner];
    unsigned other;
    if (!p->is_task) {
        if (h != NULL && !h->is_silent && h->in_pass == 0) {
            return p->owner;
        }
        other = least_busy(s, NO_PEER);
        return t->hand[other].tasks < HAND_MAX ? other : NO_PEER;
    }
    if (is_overdue(t, h) && h->asked_pass != 0 && h->asked_pass != t->pass &&
        t->now_ms - h->asked > PATIENCE_MS) {
        /* It is lost. No DROP: if the worker is alive its next result is welcome. */
        set_silent(t, p->owner, true);
        return least_busy(s, p->owner);
    }
    if (h->is_silent) {
        return least_busy(s, p->owner);
    }
    if (p->pass != t->pass && t->idle > 0 && h->in_pass > 0) {
        drop(s, p, p->owner);
        return least_busy(s, p->owner);
    }
    return p->owner;
}

/* The leaf's full result is wanted: makes it a task, or sees to the one that it is. */
static void want(struct search *s, const struct node *n, struct place *p)
{
    struct tasks *t = tasks_of(s);
    const unsigned owner = owner_of(s, p);
    if (owner == NO_PEER) {
        return;
    }
    struct hand *h = &t->hand[owner];
    const bool is_new = !p->is_task || owner != p->owner, is_changed = fit(s, n, p) || is_new;
    if (is_new) {
        if (p->is_task) {
            count_task(t, p->owner, -1);
        } else {
            CHECK_THAT(t->listed < t->places.used, "a place is listed once");
            t->list[t->listed++] = (uint32_t)(p - t->places.at);
        }
        count_task(t, owner, 1);
        p->is_task = true;
        p->owner = (uint16_t)owner;
    }
    h->in_pass += is_new || p->pass != t->pass;
    p->pass = t->pass;
    const bool asks = is_overdue(t, h);
    if (asks && h->asked_pass == 0) {
        h->asked_pass = t->pass;
        h->asked = t->now_ms;
    }
    if (is_changed) {
        p->request = ++t->requests;
    }
    if (is_changed || (asks && h->asked_pass == t->pass)) {
        give(s, n, p, asks);
    }
}

static void take_result(struct search *s, const struct peer_message *m)
{
    struct tasks *t = tasks_of(s);
    struct place *p =
        t->places.at == NULL || m->from >= t->hands ? NULL : place_of(&t->places, m->known.key);
    if (p == NULL) {
        return;
    }
    struct hand *h = &t->hand[m->from];
    set_silent(t, m->from, false);
    h->seen = t->now_ms = peers_now_ms(s); /* no later than the pass's own time */
    h->asked_pass = 0;
    if (!p->is_task || p->owner != m->from) { /* it was given to another */
        drop(s, p, m->from);
    }
    if (m->known.depth < 1 || !node_is_score(s, m->known.best)) {
        return; /* a sign, no result */
    }
    t->is_new |= place_take(p, &m->known);
    if (p->is_task && p->request == m->known.request && p->depth == m->known.depth) {
        p->depth = 0; /* the worker has nothing left to do there */
        t->is_new = true;
    }
}

void tasks_take_results(struct search *s)
{
    struct peer_message m;
    while (peers_receive(s, &m)) {
        if (m.kind == TASK_RESULT) {
            take_result(s, &m);
        }
    }
}

/* Tasks that this pass did not come to, and those that are done, are none any more. */
static void end_pass(struct search *s)
{
    struct tasks *t = tasks_of(s);
    unsigned kept = 0;
    for (unsigned i = 0; i < t->listed; i++) {
        struct place *p = &t->places.at[t->list[i]];
        if (p->depth != 0 && p->pass == t->pass) {
            t->list[kept++] = t->list[i];
            continue;
        }
        if (p->depth != 0) {
            drop(s, p, p->owner);
        }
        count_task(t, p->owner, -1);
        p->is_task = false;
    }
    t->listed = kept;
}

/* ---- the master's tree ---- */

/* The deepest value that is known of a leaf; the static evaluation at least. */
static enum search_visit leaf(struct search *s, struct node *n, struct place *p)
{
    const struct known *k = place_deepest(p, n->depth, n->alpha, n->beta);
    if (k != NULL) {
        n->best = k->lower >= n->beta || k->lower == k->upper ? k->lower : k->upper;
        n->best_move = n->best > n->alpha ? k->move : 0;
    } else {
        if (!p->has_static) {
            p->value = (int16_t)quiesce(s, n, -GAME_INFINITE, GAME_INFINITE);
            p->has_static = true;
        }
        n->best = p->value;
    }
    if (search_halted(s)) {
        p->has_static = false;
        return VISIT_STOP;
    }
    if (n->best_move != 0) {
        n->pv = (struct search_line){.length = 1, .move = {n->best_move}};
    }
    n->is_uncertain = k == NULL || k->depth != n->depth;
    if (n->is_uncertain) {
        want(s, n, p);
    }
    return VISIT_VALUE;
}

/* The best move of the last pass first. */
static void sort(struct search *s, struct node *n, const struct place *p)
{
    struct tt_peeked seen = {.move = p->move};
    const struct tt_peek peek = {p->key, (uint8_t)n->depth};
    if (seen.move == 0) {
        node_peek_here(s, &peek, &seen);
    }
    node_generate(s, n);
    order_moves(s, n, seen.move);
    order_sort(s, n);
}

/* All children by what is known of them. A cut-off by a decided child is decided; else each has to
 * be. */
static enum search_visit pass_children(struct search *s, struct node *n)
{
    bool is_uncertain = false;
    if (n->move_count == 0) {
        n->best = s->options.game->finished(s->position);
    }
    for (unsigned at = 0; at < n->move_count && !node_is_cut_off(n); at++) {
        enum search_visit visit = children_visit(s, n, at, false, 0);
        if (!children_go_on(visit)) {
            return visit;
        }
        is_uncertain = node_is_cut_off(n) ? n[1].is_uncertain : is_uncertain || n[1].is_uncertain;
    }
    n->is_uncertain = is_uncertain;
    return VISIT_VALUE;
}

static void begin_node(struct node *n)
{
    n->alpha_now = n->alpha;
    n->best = -GAME_INFINITE;
    n->best_move = 0;
    n->pv.length = 0;
    n->longest_scout = 0;
    n->path = 1;
    node_forget_path(n);
}

/* Waits for a result that the pass before did not know, or until a task may be overdue. False:
 * stopped. */
static bool await_results(struct search *s)
{
    struct tasks *t = tasks_of(s);
    const uint32_t began = t->now_ms;
    while (t->now_ms - began <= PATIENCE_MS) {
        s->stopped = s->env.poll(s->env.self, s) || s->stopped;
        if (s->stopped) {
            return false;
        }
        s->env.peers->wait(s->env.peers->self);
        tasks_take_results(s);
        t->now_ms = peers_now_ms(s);
        if (t->is_new) {
            break;
        }
    }
    return true;
}

/* There was no room for the tree: a smaller one, and nothing is known. */
static void begin_smaller(struct search *s)
{
    struct tasks *t = tasks_of(s);
    t->pass++; /* no task is of this pass */
    end_pass(s);
    memset(t->places.at, 0, PLACES * sizeof *t->places.at);
    t->places.used = 0;
    t->is_full = false;
    t->plies = s->iteration - t->leaf_depth;
    t->plies -= t->plies > 1;
}

/* Pass after pass, until the value is decided. */
static enum search_visit passes(struct search *s, struct node *n, struct place *p)
{
    struct tasks *t = tasks_of(s);
    const unsigned moves_before = s->moves_used;
    const unsigned half = s->iteration / 2, most = s->options.algorithm->handover->tasks->plies;
    for (;;) {
        begin_node(n);
        take_hands(s);
        t->now_ms = peers_now_ms(s);
        if (t->silent + 1 >= t->hands) { /* nobody is there */
            t->alone_ply = n->ply;
            s->moves_used = moves_before;
            sort(s, n, p);
            return children_in_order(s, n);
        }
        unsigned plies = most == 0 || most > half ? half : most;
        plies = plies > t->plies ? t->plies : plies;
        t->leaf_depth = s->iteration - plies;
        t->pass++;
        t->is_new = false;
        for (unsigned i = 0; i < t->hands; i++) {
            t->hand[i].in_pass = 0;
        }
        s->moves_used = moves_before;
        sort(s, n, p);
        enum search_visit visit = pass_children(s, n);
        end_pass(s);
        if (t->is_full && !search_halted(s)) {
            begin_smaller(s);
            p = place_of(&t->places, node_root_key(s));
            continue;
        }
        p->move = visit == VISIT_VALUE ? n->best_move : p->move;
        if (visit != VISIT_VALUE || !n->is_uncertain) {
            return visit;
        }
        if (!t->is_new && !await_results(s)) {
            return VISIT_STOP;
        }
    }
}

enum search_visit tasks_node(struct search *s, struct node *n, bool solves)
{
    const unsigned moves_before = s->moves_used;
    enum search_visit visit;

    if (!peers_are_there(s)) {
        return VISIT_CONTINUE;
    }
    struct tasks *t = tasks_of(s);
    if (n->ply == 0) {
        t->alone_ply = has_tree(s) ? NO_PLY : 0;
    }
    if (n->depth < 1 || n->ply > t->alone_ply || (n->ply == 0 && (solves || t->alone_ply == 0))) {
        return VISIT_CONTINUE;
    }
    t->alone_ply = NO_PLY;
    if (n->ply > TASK_PLIES) {
        t->alone_ply = n->ply;
        return VISIT_CONTINUE;
    }
    struct place *p = place_of(&t->places, n->ply == 0 ? node_root_key(s) : node_key(s));
    if (p == NULL) {
        t->is_full = true;
        return VISIT_STOP;
    }
    begin_node(n);
    n->in_flight = n->has_children = n->contended = n->prunes = n->reduces = false;
    n->extension = 0;
    n->resolved = RESOLVED_NOT;
    const bool is_leaf = solves || (n->ply > 0 && n->depth <= (int)t->leaf_depth);
    node_count(s, n, !is_leaf); /* the evaluation of a leaf counts itself, once */
    if (search_halted(s)) {
        return VISIT_STOP;
    }
    if (n->ply == 0) {
        visit = passes(s, n, p);
    } else if (is_leaf) {
        visit = leaf(s, n, p);
    } else {
        sort(s, n, p);
        visit = pass_children(s, n);
        p->move = visit == VISIT_VALUE ? n->best_move : p->move;
    }
    s->moves_used = moves_before;
    return visit;
}
