#include "worker/search/node.h"

#include "worker/search/brothers.h"
#include "worker/search/select.h"

void node_update_inflight_depth(struct search *s)
{
    s->inflight_depth = s->options.algorithm->counted
                            ? s->table.inflight_depth(s->table.self, s->iteration)
                            : UINT8_MAX;
}

void node_count(struct search *s)
{
    unsigned until = atomic_load_explicit(s->env.until_poll, memory_order_acquire);
    s->counters.nodes++;
    if (until > 1) {
        atomic_store_explicit(s->env.until_poll, until - 1, memory_order_relaxed);
        return;
    }
    until = s->options.poll_nodes ? s->options.poll_nodes : SEARCH_POLL_NODES;
    atomic_store_explicit(s->env.until_poll, until, memory_order_relaxed);
    s->stopped = s->env.poll(s->env.self, s) || s->stopped;
    node_update_inflight_depth(s);
}

static bool closes(const struct tt_store *result, const struct frame *f)
{
    return result->bound == TT_EXACT || (result->bound == TT_LOWER && result->score >= f->beta) ||
           (result->bound == TT_UPPER && result->score <= f->alpha);
}

static void settle(struct search *s, unsigned ply, enum settled how, int score, uint16_t move)
{
    struct frame *f = &s->frame[ply];
    f->settled = how;
    f->settled_score = score;
    f->settled_move = move;
    s->unwind = ply;
}

void search_node_done(struct search *s, const struct tt_store *result)
{
    for (unsigned ply = 0; ply < s->unwind && ply < SEARCH_PLY_MAX; ply++) {
        const struct frame *f = &s->frame[ply];
        if (f->held && f->ask->key == result->key && f->ask->depth == result->depth &&
            closes(result, f)) {
            settle(s, ply, SETTLED_DONE, result->score, result->move);
            s->counters.unwound++;
            return;
        }
    }
}

static void learn_refutation(struct search *s, unsigned ply, const struct tt_ask *ask,
                             const struct tt_answer *answer)
{
    if (answer->move != 0 && answer->score >= ask->beta && ask->depth >= s->inflight_depth) {
        order_learn(s, ply, answer->move, ask->depth);
    }
}

void search_answered(struct search *s, const struct tt_ask *ask, const struct tt_answer *answer)
{
    for (unsigned ply = 0; ply < s->unwind && ply < SEARCH_PLY_MAX; ply++) {
        struct frame *f = &s->frame[ply];
        if (!f->held || !f->ticket->later || f->ask->key != ask->key ||
            f->ask->depth != ask->depth) {
            continue;
        }
        f->ticket->later = false;
        if (answer->verdict == TT_CUT) {
            s->counters.cuts++;
            learn_refutation(s, ply, ask, answer);
            settle(s, ply, SETTLED_CUT, answer->score, answer->move);
        } else if (answer->verdict == TT_BUSY) {
            s->counters.busy++;
            settle(s, ply, SETTLED_BUSY, 0, 0);
        } else if (answer->nproc > 1) {
            /* Never the other way: a brother may have been found busy meanwhile, and a look sent
             * ahead that is not of the brothers left now. */
            f->crowded = true;
        }
        return;
    }
}

void search_renew(struct search *s)
{
    for (unsigned ply = 0; ply < s->unwind && ply < SEARCH_PLY_MAX; ply++) {
        struct frame *f = &s->frame[ply];
        if (f->held && f->aged && s->table.renew != NULL) {
            struct tt_ask again = *f->ask;
            again.flags &= (uint8_t)~TT_EXCLUSIVE; /* others may have joined */
            s->table.renew(s->table.self, &again, f->ticket);
        }
        f->aged = true;
    }
}

static void generate(struct search *s, unsigned ply)
{
    struct frame *f = &s->frame[ply];
    f->moves = &s->move_stack[s->moves_used];
    f->count = s->options.game->generate(s->position, f->moves);
    f->generated = true;
    s->moves_used += f->count;
}

/* The children of a node with what the table said of it. */
static enum search_visit expand(struct search *s, unsigned ply, int depth,
                                const struct tt_answer *answer, struct outcome *o)
{
    struct frame *f = &s->frame[ply];
    if (s->options.full && ply > 0) {
        enum search_visit settled = select_node(s, ply, depth, o);
        if (settled != VISIT_BUSY) {
            return settled;
        }
    }
    if (!f->generated) {
        generate(s, ply);
    }
    if (f->count == 0) {
        o->best = o->known_lower = o->known_upper = s->options.game->finished(s->position);
        return VISIT_VALUE;
    }
    order_moves(s, ply, answer->move);
    bool counted = depth - 1 >= (int)s->inflight_depth;
    return brothers_search(s, ply, depth, o, counted);
}

/* Against the window that was searched, not the one alpha was raised to. A value that falls on or
 * outside a bound the table had proved is that bound. */
static enum tt_bound classify(struct outcome *o)
{
    if (o->best <= o->known_lower) {
        o->best = o->known_lower;
        return TT_EXACT;
    }
    if (o->best >= o->known_upper) {
        o->best = o->known_upper;
        return TT_EXACT;
    }
    return o->best <= o->alpha ? TT_UPPER : o->best >= o->beta ? TT_LOWER : TT_EXACT;
}

static void leave(struct search *s, const struct tt_ask *ask, const struct table_ticket *ticket,
                  enum search_visit visit, struct outcome *o)
{
    if (visit == VISIT_VALUE) {
        enum tt_bound bound = classify(o);
        struct tt_store store = {
            .key = ask->key,
            .score = (int16_t)o->best,
            .depth = ask->depth,
            .bound = (uint8_t)bound,
            .move = bound == TT_UPPER ? 0 : o->move, /* a fail-low knows no best move */
            .slot = ask->slot,
        };
        s->table.store(s->table.self, ticket, &store);
    } else { /* letting go of a node one is not in is no error (settled by CUT or BUSY) */
        struct tt_release release = {.key = ask->key, .depth = ask->depth, .slot = ask->slot};
        s->table.release(s->table.self, ticket, &release);
    }
}

/* An OPEN node, from the answer to the store or release. */
static enum search_visit inside(struct search *s, unsigned ply, const struct tt_ask *ask,
                                struct table_ticket *ticket, const struct tt_answer *answer,
                                int *score)
{
    struct frame *f = &s->frame[ply];
    uint64_t nodes_before = s->counters.nodes;
    struct outcome o = {
        .alpha = answer->alpha,
        .beta = answer->beta,
        .known_lower = answer->alpha > ask->alpha ? answer->alpha : -GAME_INFINITE,
        .known_upper = answer->beta < ask->beta ? answer->beta : GAME_INFINITE,
        .best = -GAME_INFINITE,
        .raised = answer->alpha,
    };
    bool counted = ask->depth >= s->inflight_depth;

    f->alpha = o.alpha;
    f->beta = o.beta;
    f->held = counted;
    f->aged = false;
    f->ask = ask;
    f->ticket = ticket;
    f->crowded = answer->nproc > 1;
    f->settled = SETTLED_NOT;
    f->path = 1;
    f->scouts = 0;
    node_count(s); /* with the frame in place: the answer may come with this very poll */
    enum search_visit visit = expand(s, ply, ask->depth, answer, &o);
    f->held = false;
    if (s->stopped) {
        visit = VISIT_STOP; /* nothing from a stopped search is stored, be it whole */
    }
    s->path = f->path + f->scouts;
    leave(s, ask, ticket, visit, &o);
    if (counted && f->crowded) {
        s->counters.helped++;
        if (ask->depth <= s->inflight_depth) {
            s->counters.duplicated += s->counters.nodes - nodes_before;
        }
    }
    *score = o.best;
    return visit;
}

/* Asks, and goes inside when the answer is OPEN. */
static enum search_visit enter(struct search *s, unsigned ply, const struct tt_ask *ask, int *score)
{
    struct frame *f = &s->frame[ply];
    struct table_ticket ticket = {0};
    struct tt_answer answer;
    unsigned moves_before = s->moves_used;
    enum search_visit visit = VISIT_VALUE;
    bool counted = ask->depth >= s->inflight_depth;

    f->pv.length = 0;
    f->generated = false;
    s->counters.asks += counted;
    if (s->table.ask(s->table.self, ask, &ticket)) {
        generate(s, ply); /* while the answer travels (Weill 1996, figure 1, line 9) */
    }
    s->table.await(s->table.self, ask, &ticket, &answer);
    switch (answer.verdict) {
    case TT_CUT:
        s->counters.cuts += counted;
        *score = answer.score;
        learn_refutation(s, ply, ask, &answer);
        if (answer.move != 0) {
            f->pv = (struct search_line){.length = 1, .move = {answer.move}};
        }
        break;
    case TT_BUSY:
        s->counters.busy += counted;
        visit = VISIT_BUSY;
        break;
    case TT_OPEN:
        visit = inside(s, ply, ask, &ticket, &answer, score);
        break;
    }
    s->moves_used = moves_before;
    return visit;
}

/* Unwound to here: others settled this node. */
static enum search_visit take_settled(struct search *s, unsigned ply, int *score)
{
    struct frame *f = &s->frame[ply];
    s->unwind = NOBODY_UNWINDS;
    f->pv.length = 0;
    if (f->settled == SETTLED_BUSY) {
        return VISIT_BUSY;
    }
    if (f->settled_move != 0) {
        f->pv = (struct search_line){.length = 1, .move = {f->settled_move}};
    }
    *score = f->settled_score;
    return VISIT_VALUE;
}

enum search_visit node_visit(struct search *s, unsigned ply, int depth, int alpha, int beta,
                             bool exclusive, int *score)
{
    const struct game *game = s->options.game;

    s->frame[ply].pv.length = 0;
    s->path = 0;
    if (!s->options.strict && ply > 0 && game->drawn != NULL && game->drawn(s->position)) {
        *score = 0;
        return VISIT_VALUE;
    }
    if (depth <= 0 || ply >= SEARCH_PLY_MAX || s->moves_used + 2 * GAME_MOVES_MAX > MOVE_STACK) {
        uint64_t nodes_before = s->counters.nodes;
        *score = quiesce(s, ply, alpha, beta);
        s->path = s->counters.nodes - nodes_before;
        return search_halted(s) ? VISIT_STOP : VISIT_VALUE;
    }
    struct tt_ask ask = {
        .key = node_key(s),
        .alpha = (int16_t)alpha,
        .beta = (int16_t)beta,
        .depth = (uint8_t)depth,
        .flags = (exclusive ? TT_EXCLUSIVE : 0) | (s->options.strict ? TT_STRICT : 0),
        .slot = s->options.slot,
    };
    if (search_halted(s)) {
        return VISIT_STOP;
    }
    enum search_visit visit = enter(s, ply, &ask, score);
    if (s->stopped || s->unwind != ply) {
        return visit;
    }
    if (visit == VISIT_VALUE) { /* done by itself before it could unwind: nobody is to unwind now */
        s->unwind = NOBODY_UNWINDS;
        return visit;
    }
    return take_settled(s, ply, score);
}
