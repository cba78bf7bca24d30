#include "worker/search/young.h"

#include "common/rng.h"
#include "worker/search/brothers.h"
#include "worker/search/move.h"

#include <string.h>

enum { FAILURES_BELIEVED = 3 };

/* A batch of brothers looked at together. */
struct look {
    struct tt_peek peek[GAME_MOVES_MAX];
    uint16_t index[GAME_MOVES_MAX];
    unsigned count;
};

struct young {
    struct child *child; /* beside moves[] */
    unsigned count, left;
    unsigned sorted; /* moves[0..sorted) are in their places; all are before a look that travels */
    unsigned refusals; /* BUSY answers since the last value */
    bool ahead; /* `look` was sent before the last visit: `peek_ticket` is its ticket */
    struct table_peek_ticket peek_ticket;
    struct look look;
};

static void learn(struct search *s, unsigned ply, int depth, const struct outcome *o, unsigned at,
                  struct child *child)
{
    int reduced;
    const struct game *game = s->options.game;
    uint16_t move = s->frame[ply].moves[at].move;
    game->make(s->position, move);
    child->key = node_key(s);
    child->full = (uint8_t)move_depth(s, ply, depth, o, at, &reduced);
    child->depth = (uint8_t)reduced;
    child->known = true;
    game->unmake(s->position, move);
}

static struct tt_peek peek_at(struct search *s, unsigned ply, int depth, const struct outcome *o,
                              const struct young *y, unsigned at)
{
    struct child *child = &y->child[at];
    if (!child->known) {
        learn(s, ply, depth, o, at, child);
    }
    return (struct tt_peek){child->key, child->depth};
}

/* What is left to do, without `except`. */
static void gather(struct search *s, unsigned ply, int depth, const struct outcome *o,
                   struct young *y, unsigned except)
{
    struct look *look = &y->look;
    look->count = 0;
    for (unsigned i = 1; i < y->count; i++) {
        if (y->child[i].done || i == except) {
            continue;
        }
        look->peek[look->count] = peek_at(s, ply, depth, o, y, i);
        look->index[look->count++] = (uint16_t)i;
    }
}

/* What a peeked child settles without a visit. `o` may be cut off after it. */
static void take_peeked(struct search *s, unsigned ply, struct outcome *o, struct young *y,
                        unsigned at, const struct tt_peeked *seen)
{
    struct child *child = &y->child[at];
    bool counts = s->options.strict ? seen->depth == child->depth : seen->depth >= child->depth;
    bool proves = s->options.strict ? seen->depth == child->full : seen->depth >= child->full;
    bool has_lower = seen->lower >= -GAME_INFINITE, has_upper = seen->upper <= GAME_INFINITE;
    int most = has_lower ? score_up(seen->lower) : GAME_INFINITE;
    int least = has_upper ? score_up(seen->upper) : -GAME_INFINITE;
    if ((counts && most <= o->raised) || (proves && (least >= o->beta || least == most))) {
        s->frame[ply + 1].pv.length = 0;
        move_take_value(s, ply, o, s->frame[ply].moves[at].move, least >= o->beta ? least : most);
        child->done = true;
        y->left--;
        if (has_lower && seen->move != 0) {
            order_learn(s, ply + 1, seen->move, child->depth);
        }
    }
}

/* How many unfinished brothers are open to choice, the first of them of `depth`, with `inside`
 * processors in those looked at and here. Where a node is expected to fail high, an early brother
 * most likely does it and what others do in later ones is in vain: as many are opened as those
 * inside can keep busy, and each ply above the inflight_depth employs three times as many. After a
 * few have failed the node is taken for one that does not. */
static unsigned open_brothers(const struct search *s, unsigned ply, const struct young *y,
                              unsigned inside, unsigned depth)
{
    unsigned employed = 1;
    if (!s->frame[ply].fails_high || y->count - y->left > FAILURES_BELIEVED) {
        return y->count;
    }
    for (unsigned d = s->inflight_depth; d < depth && employed <= inside; d++) {
        employed *= 3;
    }
    return 1 + inside / employed;
}

/* A brother not to be gone into before all that are freer. */
static void pass_over(struct search *s, struct child *child)
{
    s->counters.deferred += !child->passed_over;
    child->passed_over = true;
}

/* The least helped so far, ties at random. */
struct choice {
    unsigned at, fewest, ties;
};

static void consider(struct search *s, struct young *y, struct choice *c, unsigned at,
                     unsigned nproc)
{
    if (nproc > 0) {
        pass_over(s, &y->child[at]);
    }
    if (nproc < c->fewest) {
        *c = (struct choice){.at = at, .fewest = nproc, .ties = 1};
    } else if (nproc == c->fewest && rng_below(&s->random, ++c->ties) == 0) {
        c->at = at;
    }
}

static void sort_to(struct search *s, unsigned ply, struct young *y, unsigned end)
{
    while (y->sorted < end) {
        order_pick(s, ply, y->sorted++);
    }
}

/* ---- tables whose looks are of now ---- */

/* The first that nobody is inside: no other processor sees it so, and the order of moves is worth
 * more than a drawn one. So they are looked at one by one, and what comes after it need not be
 * looked at nor sorted, and who is in there opens none. With helpers in all that are open the least
 * helped, ties at random. count when none is left. */
static unsigned choose_first_free(struct search *s, unsigned ply, int depth, struct outcome *o,
                                  struct young *y, bool *alone)
{
    struct choice choice = {.at = y->count, .fewest = UINT32_MAX};
    unsigned inside = 1, looked = 0, first_depth = 0;
    for (unsigned i = 1; i < y->count && choice.fewest > 0 && !move_cut_off(o); i++) {
        struct child *child = &y->child[i];
        struct tt_peeked seen;
        if (child->done) {
            continue;
        }
        sort_to(s, ply, y, i + 1);
        struct tt_peek peek = peek_at(s, ply, depth, o, y, i);
        first_depth = looked == 0 ? peek.depth : first_depth;
        if (looked >= open_brothers(s, ply, y, inside, first_depth)) {
            break;
        }
        s->table.peek(s->table.self, &peek, 1, &seen);
        s->counters.peeks++;
        take_peeked(s, ply, o, y, i, &seen);
        if (child->done) {
            continue;
        }
        looked++;
        inside += seen.nproc;
        consider(s, y, &choice, i, seen.nproc);
    }
    *alone = choice.fewest == 0;
    return choice.at;
}

/* ---- tables whose looks travel ---- */

/* The least helped of those looked at, ties at random: the look is out of date when it comes, and
 * others saw the same. count when none of them is left. */
static unsigned weigh(struct search *s, unsigned ply, struct outcome *o, struct young *y,
                      const struct tt_peeked *seen, bool *alone)
{
    struct choice choice = {.at = y->count, .fewest = UINT32_MAX};
    unsigned inside = 1;
    for (unsigned k = 0; k < y->look.count; k++) {
        inside += seen[k].nproc;
    }
    unsigned open = open_brothers(s, ply, y, inside, y->child[y->look.index[0]].depth);
    for (unsigned k = 0; k < y->look.count && !move_cut_off(o); k++) {
        unsigned i = y->look.index[k];
        struct child *child = &y->child[i];
        CHECK(!child->done); /* it would be counted twice, and another never searched */
        take_peeked(s, ply, o, y, i, &seen[k]);
        if (child->done || open == 0) {
            continue;
        }
        open--;
        consider(s, y, &choice, i, seen[k].nproc);
    }
    *alone = choice.fewest == 0;
    return choice.at;
}

/* Sends a look at what is left but `except`, to be there when that one is done; false: none goes.
 */
static bool look_ahead(struct search *s, unsigned ply, int depth, struct outcome *o,
                       struct young *y, unsigned except)
{
    gather(s, ply, depth, o, y, except);
    y->ahead = y->look.count > 0 &&
               s->table.peek_ahead(s->table.self, y->look.peek, y->look.count, &y->peek_ticket);
    return y->ahead;
}

/* Of all, where few would be open, too: drawn among the first ones more would meet there. */
static unsigned draw_unseen(struct search *s, const struct young *y)
{
    unsigned skip = rng_below(&s->random, y->left), i = 1;
    while (y->child[i].done || skip-- > 0) {
        i++;
    }
    return i;
}

/* By the look sent ahead if it is young enough, else by a fresh one. That one takes a round trip:
 * who does not wait for answers goes into any of those left meanwhile, alone, unless no more looks
 * can be under way. */
static unsigned choose_by_look(struct search *s, unsigned ply, int depth, struct outcome *o,
                               struct young *y, bool *alone)
{
    struct tt_peeked seen[GAME_MOVES_MAX];
    struct table_port *table = &s->table;
    sort_to(s, ply, y, y->count);
    bool seen_ahead = y->ahead && table->peek_take(table->self, &y->peek_ticket, seen);
    y->ahead = false;
    if (!seen_ahead && s->options.random_order) {
        unsigned any = draw_unseen(s, y);
        if (look_ahead(s, ply, depth, o, y, any) || y->left == 1) {
            *alone = true;
            return any;
        }
    }
    if (!seen_ahead) {
        gather(s, ply, depth, o, y, 0);
        CHECK(y->look.count == y->left && y->left > 0);
        table->peek(table->self, y->look.peek, y->look.count, seen);
    }
    s->counters.peeks += y->look.count;
    unsigned chosen = weigh(s, ply, o, y, seen, alone);
    if (chosen < y->count && !move_cut_off(o)) {
        look_ahead(s, ply, depth, o, y, chosen);
    }
    return chosen;
}

/* Most nodes are left by a cut: what would come after it need not be sorted. */
static unsigned choose_in_order(struct search *s, unsigned ply, struct young *y)
{
    unsigned i = 1;
    while (y->child[i].done) { /* some are left */
        i++;
    }
    sort_to(s, ply, y, i + 1);
    return i;
}

static unsigned choose(struct search *s, unsigned ply, int depth, struct outcome *o,
                       struct young *y, bool *alone)
{
    if (!s->frame[ply].crowded) {
        return choose_in_order(s, ply, y);
    }
    return s->table.peek_ahead == NULL ? choose_first_free(s, ply, depth, o, y, alone)
                                       : choose_by_look(s, ply, depth, o, y, alone);
}

static enum search_visit search_young(struct search *s, unsigned ply, int depth, struct outcome *o,
                                      struct young *y)
{
    struct frame *f = &s->frame[ply];
    while (y->left > 0 && !move_cut_off(o)) {
        bool alone = true;
        unsigned i = choose(s, ply, depth, o, y, &alone);
        if (i >= y->count || move_cut_off(o)) {
            continue; /* all that was looked at is finished; perhaps all there is */
        }
        /* A look can be out of date when the visit comes: after as many refusals as brothers, help.
         */
        bool exclusive = alone && y->refusals <= y->left;
        enum search_visit visit = move_search(s, ply, depth, o, i, exclusive);
        if (visit == VISIT_STOP) {
            return VISIT_STOP;
        }
        if (visit == VISIT_BUSY) {
            f->crowded = true;
            y->refusals++;
            pass_over(s, &y->child[i]);
        } else {
            y->child[i].done = true;
            y->left--;
            y->refusals = 0;
        }
    }
    return VISIT_VALUE;
}

enum search_visit young_brothers(struct search *s, unsigned ply, int depth, struct outcome *o)
{
    struct frame *f = &s->frame[ply];
    struct young y;
    if (s->children_used + f->count > CHILD_STACK) {
        return brothers_in_order(s, ply, depth, o);
    }
    order_pick(s, ply, 0);
    if (move_search(s, ply, depth, o, 0, false) == VISIT_STOP) {
        return VISIT_STOP;
    }
    y.child = &s->child_stack[s->children_used];
    y.count = f->count;
    y.left = f->count - 1;
    y.sorted = 1;
    y.refusals = 0;
    y.ahead = false;
    memset(y.child, 0, f->count * sizeof *y.child);
    s->children_used += f->count;
    enum search_visit visit = search_young(s, ply, depth, o, &y);
    s->children_used -= f->count;
    if (y.ahead) {
        s->table.peek_drop(s->table.self, &y.peek_ticket);
    }
    return visit;
}
