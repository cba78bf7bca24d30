#include "worker/search/children.h"

#include "common/rng.h"
#include "common/tt/ops.h"
#include "worker/search/node.h"
#include "worker/search/order.h"
#include "worker/search/select.h"

#include <string.h>

enum {
    FAILURES_BELIEVED = 3,
    REFUSALS_EACH = 2, /* of the children that are left, until an answer is waited for */
    PEEKS_MOST = 4, /* children in a batch that is not waited for: each may be another message */
    JOIN_DEPTH = 6, /* of children that have work for two searchers of this host ... */
    JOIN_MOST = 64, /* ... for twice as many with each ply more, up to so many */
};

/* ---- one child ---- */

/* Remaining depth below moves[at], which has been made; `scout`: the one of its first visit. */
static int child_depth(const struct search *s, const struct node *n, unsigned at, int *scout)
{
    bool check = s->options.game->check(s->position);
    /* At selection full a line of checks has an end, else some endings take a hundred times the
     * nodes; in plain searches the ply may not matter, since strict scores are those of a key. */
    bool extends = check && (!s->options.full || n->ply < 2 * s->iteration);
    int full = n->depth - 1 + (extends ? 1 : 0);
    if (s->options.game->passed != NULL && s->options.game->passed(s->position)) {
        full++;
    }
    if (s->options.full && n->extension != 0 && n->moves[at].move == n->extended) {
        full = n->depth - 1 + n->extension;
        full = full < SEARCH_DEPTH_MAX ? full : SEARCH_DEPTH_MAX;
    }
    *scout = full - select_reduction(s, n, at, check);
    return full;
}

void children_take_value(struct node *n, uint16_t move, int value)
{
    if (value <= n->best) {
        return;
    }
    n->best = value;
    n->best_move = move;
    if (value > n->alpha_now) {
        const struct search_line *below = &n[1].pv;
        unsigned length = below->length < SEARCH_PV_MAX - 1 ? below->length : SEARCH_PV_MAX - 1;
        n->alpha_now = value;
        n->pv.length = (uint16_t)(length + 1);
        n->pv.move[0] = move;
        memcpy(&n->pv.move[1], below->move, length * sizeof n->pv.move[0]);
    }
}

/* What of a visit is wanted: NegaScout's null-window search (a test), the search in the window
 * after it (the value), or one after the other. */
enum part { TEST_AND_VALUE, TEST_ONLY, VALUE_ONLY };

static enum search_visit visit_child(struct search *s, struct node *n, unsigned at, bool exclusive,
                                     uint64_t split_id, enum part part, bool *lacks_value)
{
    const struct game *game = s->options.game;
    const uint16_t move = n->moves[at].move;
    /* Nothing is tested against no score at all, which another process may give as its alpha. */
    const bool is_in_window = at == 0 || part == VALUE_ONLY || n->alpha_now == -GAME_INFINITE;
    const bool is_quiet = !(n->moves[at].flags & GAME_NOISY);
    struct node *child = n + 1;
    enum search_visit visit;
    bool is_narrowed, in_window;
    int scout_depth;

    /* Step 1. Moves without hope (selection full). */
    *lacks_value = false;
    if (select_skips(s, n, at)) {
        n->visited++;
        return VISIT_VALUE;
    }

    /* Step 2. Make the move, and bring near what the table knows of it: memory is slow, and there
     * is work to do meanwhile. Most children of depth 1 never ask. */
    if (s->options.full && game->move_class != NULL) {
        n->move_class = game->move_class(s->position, move);
    }
    game->make(s->position, move);
    child->split_id = split_id;
    n->child_begun = s->counters.nodes;
    n->move_now = move;
    if (n->ply == 0) {
        s->root_move = move;
        s->root_number = s->lines_done + at + 1;
    }
    if (n->depth > 1 && s->table.prefetch != NULL) {
        s->table.prefetch(s->table.self, node_key(s));
    }
    const int full_depth = child_depth(s, n, at, &scout_depth);
    do {
        const int alpha = n->alpha_now, beta = n->beta;
        const int scout_beta = is_in_window ? beta : alpha + 1;
        const bool is_open = beta - n->alpha > 1, cut_node = is_open ? !is_in_window : !n->cut_node;

        /* Step 3. The first visit. */
        node_child(n, scout_depth, alpha, scout_beta, cut_node)->exclusive = exclusive;
        visit = node_search(s, child);
        if (is_in_window) {
            n->path += child->path;
        } else if (child->path > n->longest_scout) {
            n->longest_scout = child->path;
        }

        /* Step 4. It was reduced and is better than expected: again at full depth. */
        if (visit == VISIT_VALUE && scout_depth < full_depth && score_up(child->best) > alpha) {
            visit = node_search(s, node_child(n, full_depth, alpha, scout_beta, cut_node));
            n->path += child->path;
        }

        /* Step 5. A scout that fell into the window: again in the whole window. */
        in_window = visit == VISIT_VALUE && scout_beta < beta && score_up(child->best) > alpha &&
                    score_up(child->best) < beta;
        if (in_window && part == TEST_AND_VALUE) {
            visit = node_search(s, node_child(n, full_depth, alpha, beta, false));
            n->path += child->path;
        }
        is_narrowed = visit == VISIT_STOP && node_window_changed(s, n);
    } while (is_narrowed && !node_is_cut_off(n));
    game->unmake(s->position, move);
    if (is_narrowed) {
        return VISIT_VALUE; /* the node has its value without this child */
    }

    /* Step 6. Its value; and what refutes this node is tried early elsewhere. */
    *lacks_value = in_window && part == TEST_ONLY;
    if (visit == VISIT_VALUE && !*lacks_value) {
        const uint64_t nodes = s->counters.nodes - n->child_begun;
        n->eldest_nodes = n->visited == 0 ? nodes : n->eldest_nodes;
        n->visited_nodes += nodes;
        n->visited++;
        if (score_up(child->best) > n->best) {
            n->repeats = child->repeats;
            n->counts = child->counts;
        }
        children_take_value(n, move, score_up(child->best));
        if (is_quiet && node_is_cut_off(n) && !child->is_uncertain) {
            order_reward(s, n, at);
        }
    }
    return visit;
}

enum search_visit children_visit(struct search *s, struct node *n, unsigned at, bool exclusive,
                                 uint64_t split_id)
{
    bool lacks_value;
    return visit_child(s, n, at, exclusive, split_id, TEST_AND_VALUE, &lacks_value);
}

enum search_visit children_test(struct search *s, struct node *n, unsigned at, bool *lacks_value)
{
    return visit_child(s, n, at, false, 0, TEST_ONLY, lacks_value);
}

enum search_visit children_value(struct search *s, struct node *n, unsigned at)
{
    bool lacks_value;
    return visit_child(s, n, at, false, 0, VALUE_ONLY, &lacks_value);
}

bool children_refute(struct search *s, struct node *n)
{
    const struct game *game = s->options.game;
    for (unsigned i = 0; i < n->move_count; i++) {
        int scout_depth, score;
        struct tt_peeked seen;
        game->make(s->position, n->moves[i].move);
        const int depth = child_depth(s, n, i, &scout_depth);
        const struct tt_peek peek = {node_key(s), (uint8_t)depth};
        game->unmake(s->position, n->moves[i].move);
        node_peek_here(s, &peek, &seen);
        const struct tt_found found = {
            .lower = seen.lower, .upper = seen.upper, .depth = seen.depth};
        if (depth > 0 &&
            tt_ops_resolves(&found, (uint8_t)depth, s->options.strict, bound_down(n->beta),
                            bound_down(n->alpha), &score) &&
            node_is_score(s, score) && score_up(score) >= n->beta) {
            n[1].pv.length = 0;
            children_take_value(n, n->moves[i].move, score_up(score));
            return true;
        }
    }
    return false;
}

/* ---- one pass, all in order, none exclusive ---- */

enum search_visit children_in_order(struct search *s, struct node *n)
{
    for (unsigned i = 0; i < n->move_count && !node_is_cut_off(n); i++) {
        select_drop_late(s, n, i);
        if (i == n->move_count) {
            break;
        }
        order_pick(s, n, i);
        enum search_visit visit = children_visit(s, n, i, false, 0);
        if (!children_go_on(visit)) {
            return visit;
        }
    }
    return VISIT_VALUE;
}

/* ---- figure 1 of the paper ---- */

enum search_visit children_two_passes(struct search *s, struct node *n)
{
    bool all_done = false;
    order_sort(s, n);
    for (unsigned pass = 1; pass <= 2 && !all_done; pass++) {
        all_done = true;
        for (unsigned i = 0; i < n->move_count && !node_is_cut_off(n); i++) {
            bool exclusive = pass == 1 && i > 0;
            enum search_visit visit = children_visit(s, n, i, exclusive, 0);
            if (!children_go_on(visit)) {
                return visit;
            }
            if (visit == VISIT_BUSY) {
                s->counters.deferred++;
                all_done = false;
            }
        }
        if (node_is_cut_off(n)) {
            break;
        }
    }
    return VISIT_VALUE;
}

/* ---- the least helped first ---- */

/* The children that wait for the eldest. */
struct young {
    struct child *child; /* beside moves[] */
    unsigned left;
    unsigned sorted; /* moves[0..sorted) are in their places: all before a peek is sent ahead */
    unsigned refusals; /* BUSY answers since the last value */
    bool peek_sent; /* the batch was sent before the last visit, with this ticket */
    struct table_ticket peek_ticket;
    struct tt_peek peek[GAME_MOVES_MAX]; /* the batch, and which children it is of */
    uint16_t index[GAME_MOVES_MAX];
    unsigned batch;
    unsigned searchers; /* in the children of the last batch that was answered, and this one */
};

static void sort_to(struct search *s, struct node *n, struct young *y, unsigned end)
{
    while (y->sorted < end) {
        order_pick(s, n, y->sorted++);
    }
}

static struct tt_peek peek_of(struct search *s, const struct node *n, struct young *y, unsigned at)
{
    struct child *child = &y->child[at];
    if (!child->known) {
        const struct game *game = s->options.game;
        int scout_depth;
        game->make(s->position, n->moves[at].move);
        child->key = node_key(s);
        child->is_drawn =
            !s->options.strict && game->drawn != NULL && game->drawn(s->position, n->ply + 1) != 0;
        child->full = (uint8_t)child_depth(s, n, at, &scout_depth);
        child->depth = (uint8_t)scout_depth;
        child->known = true;
        game->unmake(s->position, n->moves[at].move);
    }
    return (struct tt_peek){child->key, child->depth};
}

/* Takes the value of a child that a peeked entry resolves without a visit. A value that fails low
 * here is proved at the depth of a scout, any other at full depth. The node may be cut off then. */
static void take_peeked(struct search *s, struct node *n, struct young *y, unsigned at,
                        const struct tt_peeked *seen)
{
    struct child *child = &y->child[at];
    const struct tt_found found = {
        .lower = seen->lower, .upper = seen->upper, .depth = seen->depth};
    const int alpha = bound_down(n->beta), beta = bound_down(n->alpha_now);
    const bool strict = s->options.strict;
    int score;
    if (!child->is_drawn &&
        (tt_ops_resolves(&found, child->full, strict, alpha, beta, &score) ||
         (tt_ops_resolves(&found, child->depth, strict, alpha, beta, &score) && score >= beta)) &&
        node_is_score(s, score)) {
        n[1].pv.length = 0;
        if (score_up(score) > n->best) {
            node_forget_path(n);
        }
        children_take_value(n, n->moves[at].move, score_up(score));
        child->done = true;
        y->left--;
        n->visited++;
        if (seen->lower > TT_SCORE_MIN && seen->move != 0) {
            order_refuted(s, n + 1, seen->move, child->depth);
        }
    }
}

/* How many unfinished children are open to choice, the first of them of `depth`, with `searchers`
 * in those that were peeked at and here. Where a node is expected to fail high, an early child most
 * likely does it and work in later ones is lost: so many are opened as the searchers can keep busy,
 * and each ply above the in-flight depth employs three times as many. After a few children have
 * failed the node is taken for one that does not fail high. */
static unsigned open_children(const struct search *s, const struct node *n, const struct young *y,
                              unsigned searchers, unsigned depth)
{
    unsigned employed = 1;
    if (!n->cut_node || n->move_count - y->left > FAILURES_BELIEVED) {
        return n->move_count;
    }
    for (unsigned d = s->inflight_depth; d < depth && employed <= searchers; d++) {
        employed *= 3;
    }
    return 1 + searchers / employed;
}

static void defer(struct search *s, struct child *child)
{
    s->counters.deferred += !child->deferred;
    child->deferred = true;
}

/* The least helped child so far, ties at random. */
struct choice {
    unsigned at, fewest, ties;
};

static void consider(struct search *s, struct young *y, struct choice *c, unsigned at,
                     unsigned nproc)
{
    if (nproc > 0) {
        defer(s, &y->child[at]);
    }
    if (nproc < c->fewest) {
        *c = (struct choice){.at = at, .fewest = nproc, .ties = 1};
    } else if (nproc == c->fewest && rng_below(&s->random, ++c->ties) == 0) {
        c->at = at;
    }
}

/* Nobody else is known to be in the node: the next in order. Most nodes end by a cut, so what comes
 * after it is not sorted. */
static unsigned choose_next(struct search *s, struct node *n, struct young *y)
{
    unsigned i = 1;
    while (y->child[i].done) { /* some are left */
        i++;
    }
    sort_to(s, n, y, i + 1);
    return i;
}

/* Where a peek is true now (shared memory): the first child that no searcher is in. No other
 * searcher chooses it at the same time, so the order of moves is worth more than a random choice.
 * Peeks go one by one; what comes after it is neither peeked at nor sorted, and its searchers open
 * no further children. If all open children have searchers: the least helped, ties at random.
 * move_count when none is left. */
static unsigned choose_by_peeks_of_now(struct search *s, struct node *n, struct young *y,
                                       bool *is_free)
{
    struct choice choice = {.at = n->move_count, .fewest = UINT32_MAX};
    unsigned searchers = 1, peeked = 0, first_depth = 0;
    for (unsigned i = 1; i < n->move_count && choice.fewest > 0 && !node_is_cut_off(n); i++) {
        struct child *child = &y->child[i];
        struct tt_peeked seen;
        if (child->done) {
            continue;
        }
        sort_to(s, n, y, i + 1);
        struct tt_peek peek = peek_of(s, n, y, i);
        first_depth = peeked == 0 ? peek.depth : first_depth;
        if (peeked >= open_children(s, n, y, searchers, first_depth)) {
            break;
        }
        s->table.peek(s->table.self, &peek, 1, false, &seen);
        s->counters.peeks++;
        take_peeked(s, n, y, i, &seen);
        if (!child->done) {
            peeked++;
            searchers += seen.nproc;
            consider(s, y, &choice, i, seen.nproc);
        }
    }
    *is_free = choice.fewest == 0;
    return choice.at;
}

/* Chooses children that are left, but `except`; returns how many. A search that waits for answers
 * wants to know of all of them. Another takes up to `most`, at random of those that are open to
 * choice and in which the fewest searchers of this host are. On the way it takes the values that
 * are known here; 0 if one of them cuts the node off. */
static unsigned gather(struct search *s, struct node *n, struct young *y, unsigned except,
                       unsigned most, struct tt_peek *peek, uint16_t *index)
{
    const bool all = !s->options.random_order;
    unsigned open = UINT32_MAX, fewest = UINT32_MAX, found = 0, count = 0;
    for (unsigned i = 1; i < n->move_count && open > 0; i++) {
        if (y->child[i].done || i == except) {
            continue;
        }
        const struct tt_peek own = peek_of(s, n, y, i);
        struct tt_peeked seen;
        s->table.peek(s->table.self, &own, 1, true, &seen);
        take_peeked(s, n, y, i, &seen);
        if (node_is_cut_off(n)) {
            return 0;
        }
        if (y->child[i].done || (!all && seen.nproc > fewest)) {
            continue;
        }
        if (!all) {
            open = open == UINT32_MAX ? open_children(s, n, y, y->searchers, own.depth) : open;
            open--;
            found = seen.nproc < fewest ? 0 : found;
            count = seen.nproc < fewest ? 0 : count;
            fewest = seen.nproc;
        }
        unsigned at = all || found < most ? count : rng_below(&s->random, found + 1);
        found++;
        if (all || at < most) {
            peek[at] = own;
            index[at] = (uint16_t)i;
            count += at == count;
        }
    }
    return count;
}

/* Sends a peek at what is left but `except`, so that the answer is there when that one is done.
 * False: none was sent. */
static bool peek_ahead(struct search *s, struct node *n, struct young *y, unsigned except)
{
    y->batch = gather(s, n, y, except, PEEKS_MOST, y->peek, y->index);
    y->peek_sent =
        y->batch > 0 && s->table.peek_ahead(s->table.self, y->peek, y->batch, &y->peek_ticket);
    return y->peek_sent;
}

/* The least helped child of a batch that was peeked at, ties at random: the answer is out of date,
 * and other searchers saw the same. move_count when none of them is left. */
static unsigned choose_of_batch(struct search *s, struct node *n, struct young *y,
                                const struct tt_peeked *seen, bool *is_free)
{
    struct choice choice = {.at = n->move_count, .fewest = UINT32_MAX};
    y->searchers = 1;
    for (unsigned k = 0; k < y->batch; k++) {
        y->searchers += seen[k].nproc;
    }
    unsigned open = s->options.random_order
                        ? y->batch
                        : open_children(s, n, y, y->searchers, y->child[y->index[0]].depth);
    for (unsigned k = 0; k < y->batch && !node_is_cut_off(n); k++) {
        unsigned i = y->index[k];
        struct tt_peeked here;
        if (y->child[i].done) {
            continue; /* visited, or found to be known here, while the answer travelled */
        }
        take_peeked(s, n, y, i, &seen[k]);
        s->table.peek(s->table.self, &y->peek[k], 1, true, &here);
        if (!y->child[i].done && open > 0) {
            open--;
            consider(s, y, &choice, i, seen[k].nproc + here.nproc);
        }
    }
    *is_free = choice.fewest == 0;
    return choice.at;
}

/* Searchers of one host help each other for nothing: what one finds the others see at once. So a
 * child of sufficient depth in which only searchers of this host are has work for more of them. The
 * least helped of those; move_count: none, or the node was cut off meanwhile. */
static unsigned choose_to_join(struct search *s, struct node *n, struct young *y)
{
    unsigned best = n->move_count, fewest = UINT32_MAX, open = UINT32_MAX;
    for (unsigned i = 1; i < n->move_count && open > 0; i++) {
        if (y->child[i].done) {
            continue;
        }
        const struct tt_peek own = peek_of(s, n, y, i);
        struct tt_peeked here;
        unsigned room = 2;
        open = open == UINT32_MAX ? open_children(s, n, y, y->searchers, own.depth) : open;
        open--;
        if (own.depth < JOIN_DEPTH) {
            continue;
        }
        s->table.peek(s->table.self, &own, 1, true, &here);
        take_peeked(s, n, y, i, &here);
        if (node_is_cut_off(n)) {
            return n->move_count;
        }
        for (unsigned d = JOIN_DEPTH; d < own.depth && room < JOIN_MOST; d++) {
            room *= 2;
        }
        if (!y->child[i].done && here.foreign == 0 && here.nproc > 0 && here.nproc < room &&
            here.nproc < fewest) {
            fewest = here.nproc;
            best = i;
        }
    }
    return best;
}

/* Where a peek takes a round trip: by the one that was sent ahead if it is young enough, else by a
 * fresh one. A search that does not wait for answers (random_order) visits meanwhile, alone, a
 * child of which it does not know, unless it was refused too often or no more peeks can be under
 * way. */
static unsigned choose_by_batch(struct search *s, struct node *n, struct young *y, bool *is_free)
{
    struct tt_peeked seen[GAME_MOVES_MAX];
    const struct table_port *table = &s->table;
    const bool goes_on = s->options.random_order && y->refusals < REFUSALS_EACH * y->left;
    enum table_taken taken = TABLE_LOST;
    sort_to(s, n, y, n->move_count);
    if (n->depth > JOIN_DEPTH && s->sees_foreign) {
        unsigned joined = choose_to_join(s, n, y);
        if (joined < n->move_count || node_is_cut_off(n)) {
            *is_free = false;
            return joined;
        }
    }
    if (y->peek_sent) {
        taken = table->peek_take(table->self, &y->peek_ticket, !goes_on, seen);
        y->peek_sent = taken == TABLE_LATER;
    }
    if (taken != TABLE_TAKEN && s->options.random_order) {
        struct tt_peek peek;
        uint16_t any;
        if (gather(s, n, y, 0, 1, &peek, &any) == 0) {
            return n->move_count;
        }
        if (taken == TABLE_LATER || peek_ahead(s, n, y, any) || y->left == 1) {
            *is_free = true;
            return node_is_cut_off(n) ? n->move_count : any;
        }
    }
    if (taken != TABLE_TAKEN) {
        y->batch = gather(s, n, y, 0, PEEKS_MOST, y->peek, y->index);
        if (y->batch == 0) {
            return n->move_count;
        }
        table->peek(table->self, y->peek, y->batch, false, seen);
    }
    s->counters.peeks += y->batch;
    unsigned chosen = choose_of_batch(s, n, y, seen, is_free);
    if (chosen < n->move_count && !node_is_cut_off(n)) {
        peek_ahead(s, n, y, chosen);
    }
    return node_is_cut_off(n) ? n->move_count : chosen;
}

enum search_visit children_least_helped(struct search *s, struct node *n)
{
    struct young y;

    /* Phase 1. The eldest first, whatever the others do: young brothers wait. */
    if (s->children_used + n->move_count > CHILD_STACK) {
        return children_in_order(s, n);
    }
    order_pick(s, n, 0);
    enum search_visit visit = children_visit(s, n, 0, false, 0);
    if (!children_go_on(visit)) {
        return visit;
    }
    y.child = &s->child_stack[s->children_used];
    y.left = n->move_count - 1;
    y.sorted = 1;
    y.refusals = 0;
    y.searchers = 1;
    y.peek_sent = false;
    memset(y.child, 0, n->move_count * sizeof *y.child);
    s->children_used += n->move_count;

    while (y.left > 0 && !node_is_cut_off(n)) {
        bool is_free = true;
        unsigned i;
        if (!n->contended) {
            /* Phase 2. In order, while no other searcher is known to be in this node. */
            i = choose_next(s, n, &y);
        } else if (s->table.peek_ahead == NULL) {
            /* Phase 3. Peek: take what is finished, and choose the least helped of the rest. */
            i = choose_by_peeks_of_now(s, n, &y, &is_free);
        } else {
            i = choose_by_batch(s, n, &y, &is_free);
        }
        if (i >= n->move_count || node_is_cut_off(n)) {
            continue; /* all that was peeked at is finished; perhaps all there is */
        }

        /* Phase 4. Visit it: exclusively if it seemed free. A peek can be out of date, so after as
         * many refusals as there are children: help. */
        visit = children_visit(s, n, i, is_free && y.refusals <= y.left, 0);
        if (!children_go_on(visit)) {
            break;
        }
        if (visit == VISIT_BUSY) {
            n->contended = true;
            y.refusals++;
            defer(s, &y.child[i]);
        } else {
            y.child[i].done = true;
            y.left--;
            y.refusals = 0;
        }
    }

    /* Phase 5. A peek that is still under way is not wanted any more. */
    s->children_used -= n->move_count;
    if (y.peek_sent) {
        (void)s->table.peek_take(s->table.self, &y.peek_ticket, false, NULL);
    }
    return children_go_on(visit) ? VISIT_VALUE : visit;
}
