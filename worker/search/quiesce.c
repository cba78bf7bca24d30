#include "common/tt/ops.h"
#include "worker/search/node.h"

/* A capture that loses, and in selection full one that does not bring what alpha lacks. */
static bool is_hopeless(const struct search *s, uint16_t move, int lacks)
{
    const struct game *game = s->options.game;
    if (!s->options.full || game->exchange == NULL) {
        return game->losing(s->position, move);
    }
    return !game->exchange(s->position, move, lacks);
}

static int captures(struct search *s, struct node *n, int alpha, int beta, bool check,
                    uint16_t table_move)
{
    const struct game *game = s->options.game;
    int best = -GAME_INFINITE, stand = 0;
    n->best_move = 0;
    if (!check) {
        best = stand = node_evaluate(s);
        if (best >= beta) {
            return best;
        }
    }
    n->moves = &s->move_stack[s->moves_used];
    n->move_count = game->generate_noisy(s->position, n->moves);
    if (check && n->move_count == 0) {
        return game->finished(s->position);
    }
    for (unsigned i = 0; i < n->move_count && table_move != 0; i++) {
        n->moves[i].order = n->moves[i].move == table_move ? INT32_MAX : n->moves[i].order;
    }
    s->moves_used += n->move_count;
    for (unsigned i = 0; i < n->move_count && best < beta && !search_halted(s); i++) {
        for (unsigned j = i + 1; j < n->move_count; j++) {
            if (n->moves[j].order > n->moves[i].order) {
                struct game_move m = n->moves[i];
                n->moves[i] = n->moves[j];
                n->moves[j] = m;
            }
        }
        uint16_t move = n->moves[i].move;
        int alpha_now = best > alpha ? best : alpha;
        const int lacks = alpha_now - stand - game->search->quiescence_margin;
        if (!check && is_hopeless(s, move, lacks > 0 ? lacks : 0)) {
            if (s->options.full && lacks > 0 &&
                best < GAME_MATE_MIN) { /* it may be worth so much */
                best = alpha_now < GAME_MATE_MIN ? alpha_now : GAME_MATE_MIN;
            }
            continue;
        }
        game->make(s->position, move);
        n[1].split_id = 0;
        int v = score_up(quiesce(s, n + 1, bound_down(beta), bound_down(alpha_now)));
        game->unmake(s->position, move);
        if (v > best) {
            best = v;
            n->best_move = move;
        }
    }
    s->moves_used -= n->move_count;
    return best;
}

/* Selection full: what the table knows of the node without a depth, and tells it. */
static int captures_by_table(struct search *s, struct node *n, int alpha, int beta)
{
    const struct table_port *table = &s->table;
    const struct tt_ask ask = {.key = node_key(s),
                               .alpha = (int16_t)alpha,
                               .beta = (int16_t)beta,
                               .slot = s->options.slot};
    struct table_ticket ticket = {0};
    struct tt_answer answer;
    if (search_halted(s)) {
        return alpha;
    }
    const bool is_here = table->ask(table->self, &ask, &ticket, &answer);
    const bool check = s->options.game->check(s->position); /* while memory answers */
    if (!is_here) {
        table->await(table->self, &ask, &ticket, &answer);
    }
    if (answer.verdict == TT_CUT && node_is_score(s, answer.score)) {
        return answer.score;
    }
    const int best = captures(s, n, alpha, beta, check, answer.move);
    if (search_halted(s)) {
        const struct tt_release release = {ask.key, 0, ask.slot};
        table->release(table->self, &ticket, &release);
        return best;
    }
    const struct tt_store store = {.key = ask.key,
                                   .score = (int16_t)best,
                                   .bound = (uint8_t)tt_bound_of(best, alpha, beta),
                                   .move = best > alpha ? n->best_move : 0,
                                   .slot = ask.slot};
    table->store(table->self, &ticket, &store);
    return best;
}

/* Stand pat or capture on; in check, every evasion. In selection plain only alpha-beta itself uses
 * alpha (no delta pruning), so the value depends on the position alone. */
int quiesce(struct search *s, struct node *n, int alpha, int beta)
{
    const struct game *game = s->options.game;
    if (s->options.full && s->table.prefetch != NULL) {
        s->table.prefetch(s->table.self, node_key(s));
    }
    node_count(s, n, 1);
    n->pv.length = 0;
    if (game->generate_noisy == NULL || n->ply >= SEARCH_PLY_MAX ||
        s->moves_used + GAME_MOVES_MAX > MOVE_STACK) {
        return node_evaluate(s);
    }
    return s->options.full ? captures_by_table(s, n, alpha, beta)
                           : captures(s, n, alpha, beta, game->check(s->position), 0);
}
