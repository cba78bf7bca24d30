#include "worker/search/select.h"

#include "common/rng.h"
#include "worker/search/node.h"
#include "worker/search/order.h"

#include <math.h>

enum {
    VERIFY_DEPTH = 12,
    SINGULAR_BEHIND = 3, /* plies by which the table's entry may be less deep */
    SINGULAR_TWICE = 25, /* centipawns below: two plies more */
    EVALUATION_MAX = GAME_MATE_MIN - 1,
    REDUCTIONS = 64,
    PLY = 1024, /* the unit of reductions */
};

/* Reductions by the place of a move and by depth. */
static int reductions[REDUCTIONS][REDUCTIONS];

__attribute__((constructor)) static void fill_reductions(void)
{
    for (unsigned depth = 1; depth < REDUCTIONS; depth++) {
        for (unsigned at = 1; at < REDUCTIONS; at++) {
            reductions[depth][at] = (int)(PLY * (0.6 + log(depth) * log(at) / 2.1));
        }
    }
}

static int base_reduction(int depth, unsigned at)
{
    return reductions[depth < REDUCTIONS ? depth : REDUCTIONS - 1]
                     [at < REDUCTIONS ? at : REDUCTIONS - 1];
}

static bool is_mate(int score)
{
    return score > GAME_MATE_MIN || score < -GAME_MATE_MIN;
}

/* Makes a node of the same position two plies below, so that the plies below keep their sides. */
static struct node *again(struct node *n, int depth, int alpha, int beta)
{
    n[1].in_flight = false;
    n[1].split_id = n[2].split_id = 0;
    n[1].reduces = false; /* it is no node: nothing is compared with it */
    return node_prepare(n + 2, depth, alpha, beta, n->cut_node);
}

/* Whether the side to move has a move, too, that keeps the node at beta, and not only the pass,
 * which is no legal move: a search of the same node without one. Two passes lead to it. */
static enum search_visit verify(struct search *s, struct node *n, int depth)
{
    const struct game *game = s->options.game;
    struct node *node = again(n, depth, n->beta - 1, n->beta);

    game->make_null(s->position);
    game->make_null(s->position);
    node->after_null = true;
    n->move_class = n[1].move_class = 0;
    enum search_visit visit = node_search(s, node);
    game->unmake_null(s->position);
    game->unmake_null(s->position);
    return visit != VISIT_VALUE ? VISIT_STOP : node->best < n->beta ? VISIT_CONTINUE : VISIT_VALUE;
}

static enum search_visit try_null(struct search *s, struct node *n)
{
    const struct game *game = s->options.game;
    const int lead = (n->static_eval - n->beta) / game->search->null_margin;
    const int reduced = n->depth - 4 - n->depth / 4 - (lead < 3 ? lead : 3);
    const bool is_cramped = game->cramped(s->position);

    if (is_cramped && reduced < 1) {
        return VISIT_CONTINUE;
    }
    n->move_class = 0;
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

/* The table's move is searched deeper if no other comes near it: a search of half the depth without
 * it says so (Anantharaman, Campbell, Hsu 1990). If others reach beta as well, so does the node. */
static enum search_visit try_singular(struct search *s, struct node *n, uint16_t table_move)
{
    const struct tt_peek peek = {n->ask.key, n->ask.depth};
    struct tt_peeked seen;
    if (search_halted(s)) {
        return VISIT_STOP;
    }
    node_peek_here(s, &peek, &seen);
    if (seen.move != table_move || seen.lower == TT_SCORE_MIN || is_mate(seen.lower) ||
        (int)seen.depth < n->depth - SINGULAR_BEHIND) {
        return VISIT_CONTINUE;
    }
    const int limit = seen.lower - 2 * n->depth;
    struct node *node = again(n, (n->depth - 1) / 2, limit - 1, limit);
    node->excluded = table_move;
    n[1].move_class = n->ply > s->start_ply ? n[-1].move_class : 0;
    n->move_class = n->ply > s->start_ply + 1 ? n[-2].move_class : 0;
    enum search_visit visit = node_search(s, node);
    if (visit != VISIT_VALUE) {
        return VISIT_STOP;
    }
    if (node->best < limit) {
        n->extended = table_move;
        n->extension = 1 + (node_is_null_window(n) && node->best < limit - SINGULAR_TWICE);
    } else if (limit >= n->beta && !is_mate(node->best)) {
        n->best = limit;
        n->repeats = node->repeats == NO_REPEAT ? NO_REPEAT
                     : node->repeats < 2        ? -1
                                                : node->repeats - 2; /* it counts two plies more */
        n->counts = node->counts;
        return VISIT_VALUE;
    } else if (seen.lower >= n->beta) {
        n->extended = table_move;
        n->extension = -1;
    }
    return VISIT_CONTINUE;
}

uint64_t select_variant(const struct node *n)
{
    return n->excluded != 0 ? rng_mix((uint64_t)n->excluded << 16) : 0; /* unlike other variants */
}

static void evaluate(struct search *s, struct node *n)
{
    const struct node *before = n->ply >= s->start_ply + 2 ? n - 2 : NULL;
    n->raw_eval = node_evaluate(s);
    n->static_eval = n->raw_eval + order_correction(s);
    n->static_eval = n->static_eval > EVALUATION_MAX    ? EVALUATION_MAX
                     : n->static_eval < -EVALUATION_MAX ? -EVALUATION_MAX
                                                        : n->static_eval;
    n->improves = before != NULL && before->reduces && n->static_eval > before->static_eval;
}

/* ProbCut (Buro 1995): a search of about half the depth says, with a margin, that the value of this
 * one lies outside the window. Not where the search would be exact. */
static enum search_visit try_probcut(struct search *s, struct node *n)
{
    const struct game *game = s->options.game;
    const struct game_search *limits = game->search;
    if (n->ply == 0 || n->depth < limits->probcut_depth || !node_is_null_window(n) ||
        n->depth >= (int)game->depth_left(s->position)) {
        return VISIT_CONTINUE;
    }
    const unsigned row = (unsigned)(n->depth - limits->probcut_depth),
                   last = limits->deviations - 1;
    const int deviation = limits->deviation[row < last ? row : last];
    const int shallow = select_forecast_depth(n->depth);
    const int margin = (deviation * limits->probcut_tenths + 999) / 1000;
    const bool is_high = node_evaluate(s) >= n->beta;
    const int bound = is_high ? n->beta + margin : n->alpha - margin;
    if (!node_is_score(s, bound)) {
        return VISIT_CONTINUE;
    }
    struct node *node =
        is_high ? again(n, shallow, bound - 1, bound) : again(n, shallow, bound, bound + 1);
    n->move_class = n[1].move_class = 0;
    if (node_search(s, node) != VISIT_VALUE) {
        return VISIT_STOP;
    }
    if (is_high ? node->best < bound : node->best > bound) {
        return VISIT_CONTINUE;
    }
    n->best = is_high ? n->beta : n->alpha;
    n->best_move = is_high ? node->best_move : 0;
    return VISIT_VALUE;
}

enum search_visit select_node(struct search *s, struct node *n, uint16_t table_move)
{
    const struct game *game = s->options.game;
    const struct game_search *limits = game->search;

    int known;
    if (n->ply > 0 && n->excluded == 0 && game->tablebase != NULL &&
        game->tablebase(s->position, &known)) {
        s->counters.tbhits++;
        if (known == 0 || (known > 0 ? known >= n->beta : known <= n->alpha)) {
            n->best = known;
            return VISIT_VALUE;
        }
    }
    if (limits->deviation != NULL) {
        return try_probcut(s, n);
    }
    n->improves = false;
    n->reduces = !game->check(s->position);
    n->prunes = n->reduces && n->ply > 0;
    if (n->reduces) {
        evaluate(s, n);
    }
    const bool is_narrow = node_is_null_window(n) && !is_mate(n->beta);
    if (n->prunes && is_narrow && n->excluded == 0) {
        if (n->depth <= limits->reverse_depth &&
            n->static_eval - limits->reverse_margin * (n->depth - n->improves) >= n->beta) {
            n->best = n->static_eval;
            return VISIT_VALUE;
        }
        if (n->depth <= limits->razor_depth && n->ply > NODE_ANSWER_PLY &&
            n->static_eval + limits->razor_margin * n->depth <= n->alpha) {
            n[1].split_id = 0;
            int value = quiesce(s, n + 1, n->alpha, n->beta);
            if (search_halted(s)) {
                return VISIT_STOP;
            }
            if (value <= n->alpha) {
                n->best = value;
                return VISIT_VALUE;
            }
        }
        if (n->depth >= limits->null_depth && n->static_eval >= n->beta && !n->after_null &&
            game->make_null != NULL && !game->zugzwang(s->position)) {
            enum search_visit visit = try_null(s, n);
            if (visit != VISIT_CONTINUE) {
                return visit;
            }
        }
    }
    if (table_move == 0 && n->depth >= limits->internal_depth &&
        (n->cut_node || !node_is_null_window(n))) {
        n->depth--;
    }
    if (table_move != 0 && n->depth >= limits->singular_depth && n->ply > 0 && n->excluded == 0 &&
        n->ply < 2 * s->iteration) {
        return try_singular(s, n, table_move);
    }
    return VISIT_CONTINUE;
}

static bool is_late(const struct search *s, const struct node *n, unsigned at)
{
    return n->prunes && at > 0 && n->ply > NODE_ANSWER_PLY && n->best > -GAME_MATE_MIN &&
           n->depth <= s->options.game->search->late_depth &&
           (int)at > (3 + n->depth * n->depth) / (n->improves ? 1 : 2);
}

void select_drop_late(const struct search *s, struct node *n, unsigned at)
{
    if (!is_late(s, n, at)) {
        return;
    }
    unsigned kept = at;
    for (unsigned i = at; i < n->move_count; i++) {
        if (n->moves[i].flags & GAME_NOISY) {
            n->moves[kept++] = n->moves[i];
        }
    }
    n->move_count = kept;
}

static bool gives_check(const struct search *s, uint16_t move)
{
    const struct game *game = s->options.game;
    return game->gives_check != NULL && game->gives_check(s->position, move);
}

bool select_skips(const struct search *s, const struct node *n, unsigned at)
{
    const struct game *game = s->options.game;
    const struct game_search *limits = game->search;
    const uint16_t move = n->moves[at].move;
    if (!n->prunes || at == 0 || n->ply <= NODE_ANSWER_PLY || n->best < -GAME_MATE_MIN) {
        return false;
    }
    if (n->moves[at].flags & GAME_NOISY) {
        return n->depth <= limits->exchange_depth && game->exchange != NULL &&
               !game->exchange(s->position, move, -limits->exchange_margin * n->depth);
    }
    if (is_late(s, n, at)) {
        return true;
    }
    int reduced = n->depth - base_reduction(n->depth, at) / PLY;
    reduced = reduced > 1 ? reduced : 1;
    if (node_is_null_window(n) && reduced <= limits->futility_depth &&
        n->static_eval + limits->futility_margin * (reduced + 1) <= n->alpha_now) {
        return !gives_check(s, move);
    }
    return reduced <= limits->exchange_depth + 2 && game->exchange != NULL &&
           !game->exchange(s->position, move, -limits->quiet_exchange_margin * reduced * reduced);
}

int select_reduction(const struct search *s, const struct node *n, unsigned at, bool gives_check)
{
    const struct game_search *limits = s->options.game->search;
    if (!n->reduces || gives_check || n->depth < limits->reduce_depth || at < limits->reduce_from ||
        n->moves[at].flags & GAME_NOISY) {
        return 0;
    }
    int r = base_reduction(n->depth, at);
    r -= node_is_null_window(n) ? 0 : PLY;
    r += n->cut_node ? PLY : 0;
    r += n->improves ? 0 : PLY / 2;
    r -= n->moves[at].move == n->killer[0] || n->moves[at].move == n->killer[1] ? PLY : 0;
    r -= order_worth(&n->moves[at]) * PLY / 12288;
    r = r < 0 ? 0 : r / PLY;
    return r < n->depth - 1 ? r : n->depth - 2;
}
