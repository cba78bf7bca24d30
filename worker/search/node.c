#include "worker/search/node.h"

#include "common/rng.h"
#include "common/tt/ops.h"
#include "worker/search/children.h"
#include "worker/search/order.h"
#include "worker/search/select.h"

/* ---- counting and polling ---- */

void node_update_inflight_depth(struct search *s)
{
    const struct algorithm *algorithm = s->options.algorithm;
    s->inflight_depth = UINT8_MAX;
    if (algorithm->counts_inflight || algorithm->uses_searchers || algorithm->uses_shards) {
        s->inflight_depth = s->table.inflight_depth(s->table.self, s->iteration, &s->sees_foreign);
    }
}

void node_count(struct search *s, const struct node *n, unsigned nodes)
{
    unsigned until = atomic_load_explicit(s->env.until_poll, memory_order_acquire);
    s->counters.nodes += nodes;
    s->deepest = n->ply > s->deepest ? n->ply : s->deepest;
    if (until > nodes) {
        atomic_store_explicit(s->env.until_poll, until - nodes, memory_order_relaxed);
        return;
    }
    until = s->options.poll_nodes ? s->options.poll_nodes : SEARCH_POLL_NODES;
    atomic_store_explicit(s->env.until_poll, until, memory_order_relaxed);
    s->poll_ply = n->ply;
    s->stopped = s->env.poll(s->env.self, s) || s->stopped;
    if (s->options.algorithm->handover != NULL) {
        s->options.algorithm->handover->serve(s);
    }
    node_update_inflight_depth(s);
}

/* ---- what others say ----
 *
 * Others write the table, and a shard may be anybody's. What cannot be true is not believed, and
 * the node is searched as if nothing were known of it. So alpha < beta holds in every node (no
 * window that real scores make reaches GAME_INFINITE by GAME_MATE and a ply each), and every visit
 * ends. What is false but could be true may spoil a result (docs/security.md). */

static bool is_wanted_at_root(const struct search *s, uint16_t move)
{
    bool is_named = s->options.root_moves == 0;
    for (unsigned i = 0; i < s->lines_done; i++) {
        if (s->line[i].move == move) {
            return false;
        }
    }
    for (unsigned i = 0; i < s->options.root_moves && !is_named; i++) {
        is_named = s->options.root_move[i] == move;
    }
    return is_named;
}

/* Whether what others say of a node can be its value, or a lower bound of it. At the root somebody
 * plays the move, so a value above alpha needs one that may be played there. */
static bool names_a_move(const struct search *s, const struct node *n, int score, uint16_t move)
{
    bool is_named = n->ply > 0 || score <= n->ask.alpha;
    for (unsigned i = 0; i < s->root_list_count && !is_named; i++) {
        is_named = s->root_list[i] == move && is_wanted_at_root(s, move);
    }
    return is_named;
}

static bool is_possible(const struct search *s, const struct node *n, const struct tt_ask *ask,
                        const struct tt_answer *answer)
{
    if (answer->verdict == TT_CUT) {
        return node_is_score(s, answer->score) && names_a_move(s, n, answer->score, answer->move);
    }
    if (answer->verdict == TT_BUSY) { /* to others it would end a node without a value */
        return ask->flags & TT_EXCLUSIVE;
    }
    return answer->alpha < answer->beta &&
           (answer->alpha == ask->alpha ||
            (answer->alpha > ask->alpha && node_is_score(s, answer->alpha))) &&
           (answer->beta == ask->beta ||
            (answer->beta < ask->beta && node_is_score(s, answer->beta)));
}

/* What is left of an answer: nothing where it cannot be true; of a lower bound that does not end
 * the node only a strict one, since that of another search is worth less than what the moves turn
 * out to be worth in this one. An upper bound stays until the visit disproves it: without such
 * bounds a search to the same depth takes 14% more nodes. */
static void doubt(const struct search *s, const struct node *n, struct tt_answer *answer)
{
    if (!is_possible(s, n, &n->ask, answer)) {
        *answer =
            (struct tt_answer){.verdict = TT_OPEN, .alpha = n->ask.alpha, .beta = n->ask.beta};
    } else if (!s->options.strict || !names_a_move(s, n, answer->alpha, answer->move)) {
        answer->alpha = n->ask.alpha;
    }
    if (n->distrusts && answer->verdict == TT_OPEN) {
        answer->beta = n->ask.beta;
    }
}

void node_peek_here(struct search *s, const struct tt_peek *peek, struct tt_peeked *seen)
{
    s->table.peek(s->table.self, peek, 1, s->table.peek_ahead != NULL, seen);
}

/* ---- one node ---- */

uint64_t node_root_key(const struct search *s)
{
    uint64_t key = node_key(s) ^ s->root_variant;
    for (unsigned i = 0; i < s->lines_done; i++) {
        key ^= rng_mix((uint64_t)s->line[i].move << 32);
    }
    return key;
}

unsigned node_generate_root(const struct search *s, struct game_move *list)
{
    unsigned count = s->options.game->generate(s->position, list), kept = 0;
    for (unsigned i = 0; i < count; i++) {
        if (is_wanted_at_root(s, list[i].move)) {
            list[kept++] = list[i];
        }
    }
    return kept;
}

void node_generate(struct search *s, struct node *n)
{
    n->moves = &s->move_stack[s->moves_used];
    n->move_count = n->ply == 0 ? node_generate_root(s, n->moves)
                                : s->options.game->generate(s->position, n->moves);
    for (unsigned i = 0; n->excluded != 0 && i < n->move_count; i++) {
        if (n->moves[i].move == n->excluded) {
            n->moves[i] = n->moves[--n->move_count];
        }
    }
    n->generated = true;
    s->moves_used += n->move_count;
}

static void set_line(struct node *n, uint16_t move)
{
    if (move != 0) {
        n->pv = (struct search_line){.length = 1, .move = {move}};
    }
}

/* A refutation that an answer names orders the moves here, too. */
static void order_by_refutation(struct search *s, const struct node *n,
                                const struct tt_answer *answer)
{
    if (answer->move != 0 && answer->score >= n->ask.beta && n->ask.depth >= s->inflight_depth) {
        order_refuted(s, n, answer->move, n->ask.depth);
    }
}

/* For the game's solver: counts its nodes. False: it is to stop. */
static bool count_solved(void *self, unsigned nodes)
{
    struct search *s = self;
    node_count(s, &s->node[s->poll_ply], nodes);
    return !search_halted(s);
}

/* Whether its algorithm puts off what others are in. */
static bool puts_off(const struct search *s)
{
    const struct algorithm *a = s->options.algorithm;
    return a->counts_inflight && a->search_children != children_in_order;
}

static bool is_piece(const struct search *s, int depth, enum game_piece piece)
{
    return s->options.game->solves != NULL && s->options.game->solves(s->position, depth, piece);
}

static bool is_exact_piece(const struct search *s, int depth)
{
    const bool is_alone = s->inflight_depth == UINT8_MAX,
               is_together = s->table.peek_ahead == NULL && puts_off(s);
    return is_piece(s, depth,
                    s->options.keeps_endings  ? GAME_PIECE_KEPT
                    : is_alone || is_together ? GAME_PIECE_TOGETHER
                                              : GAME_PIECE);
}

/* Whether the node is one of the iteration before the exact one. */
static bool is_selective(const struct search *s, const struct node *n)
{
    return s->prepares && n->depth < (int)s->options.game->depth_left(s->position);
}

/* Whether the game solves the node, exactly or selectively. */
static bool is_solved(const struct search *s, const struct node *n)
{
    return (n->ply > 0 || node_has_all_moves(s)) &&
           (is_selective(s, n) ? is_piece(s, n->depth + 1, GAME_PIECE_SELECTIVE)
                               : is_exact_piece(s, n->depth));
}

static bool call_solver(struct search *s, const struct node *n, bool selective, int *value,
                        uint16_t *move)
{
    const struct game_solver solver = {
        .self = s,
        .memory = s->solver,
        .searcher = s->options.slot,
        .searchers = s->options.searchers,
        .is_selective = selective,
        .divides = s->options.searchers > 1 && puts_off(s),
        .count_nodes = s->options.poll_nodes,
        .count = count_solved,
    };
    s->poll_ply = n->ply;
    *move = 0;
    return s->options.game->solve(s->position, n->alpha, n->beta, &solver, value, move);
}

static enum search_visit solve(struct search *s, struct node *n)
{
    uint64_t nodes_before = s->counters.nodes;
    const bool has_value = call_solver(s, n, is_selective(s, n), &n->best, &n->best_move);
    n->path += s->counters.nodes - nodes_before;
    set_line(n, n->best_move);
    return has_value && !search_halted(s) ? VISIT_VALUE : VISIT_STOP;
}

/* The move to try first in an exact node above the pieces: that of a selective search of the node
 * in its window, which costs a small part of it; of one that fails low, too, as its moves are
 * ordered by the same search. 0: there is none. */
static uint16_t prepare(struct search *s, struct node *n)
{
    int value;
    uint16_t move = 0;
    const uint64_t nodes_before = s->counters.nodes;
    if (s->prepares && n->ply > 0 && !is_selective(s, n) &&
        is_piece(s, n->depth, GAME_PIECE_SELECTIVE)) {
        (void)call_solver(s, n, true, &value, &move);
        n->path += s->counters.nodes - nodes_before;
    }
    return move;
}

uint16_t node_solved_move(struct search *s)
{
    const struct node all = {.alpha = -GAME_INFINITE, .beta = GAME_INFINITE};
    int value;
    uint16_t move;
    const bool has_move = is_exact_piece(s, (int)s->options.game->depth_left(s->position)) &&
                          call_solver(s, &all, false, &value, &move);
    return has_move ? move : 0;
}

/* Against the window that was searched, not the one that alpha was raised to. A value that falls on
 * or outside a bound that the table had proved is that bound. A lower bound comes with the move
 * that proved it: all moves have failed low against it here, and so the best of them is none. */
static enum tt_bound classify(struct node *n)
{
    if (n->best <= n->known_lower) {
        n->best = n->known_lower;
        n->best_move = n->known_move;
        n->pv.length = 0;
        set_line(n, n->known_move);
        return TT_EXACT;
    }
    if (n->best >= n->known_upper) {
        n->best = n->known_upper;
        return TT_EXACT;
    }
    return tt_bound_of(n->best, n->alpha, n->beta);
}

/* The visit found a move that is worth more than the upper bound of another search, which looked at
 * less perhaps (in a scout's window) or further: to this one that bound is false, and the moves
 * that were left out because of it may be the best (seen: 1 iteration in 20,000 of endings).
 * What says that the node is lost by endgame tables or a mate is believed. Deeper nodes are not
 * searched again: each on a line might be, because a deeper result stays in the table, and the
 * nodes would double with every ply. */
static bool is_disproved(const struct search *s, const struct node *n)
{
    return !s->options.strict && n->ply <= NODE_ANSWER_PLY && n->best > n->known_upper &&
           n->known_upper > -GAME_PROVED_MIN;
}

/* In the window that was asked for, and as deep. */
static enum search_visit search_again(struct search *s, struct node *n)
{
    const uint64_t path = n->path;
    n->alpha = n->ask.alpha;
    n->beta = n->ask.beta;
    n->depth = n->ask.depth;
    n->distrusts = true;
    enum search_visit visit = node_search(s, n);
    n->distrusts = false;
    n->path += path;
    return visit;
}

/* The nodes of a registered visit that no other has accounted for; now this one has. So no node
 * counts twice as work in vain, and none does whose registered visit had stored a value before:
 * others may have used that. */
static uint64_t account(struct search *s, const struct node *n)
{
    uint64_t nodes = s->counters.nodes - s->accounted - n->unaccounted_before;
    s->accounted += nodes;
    return nodes;
}

/* How a visit ends that the search unwinds to. A node that ended by itself before it could unwind
 * keeps its value. Else it was resolved from outside, or its parent searches it again in another
 * window. */
static enum search_visit end_visit(struct search *s, struct node *n, enum search_visit visit)
{
    if (s->stopped || s->unwind != n->ply) {
        return visit;
    }
    if (s->window_changed && visit != VISIT_VALUE) {
        return VISIT_STOP;
    }
    s->unwind = NO_UNWIND;
    s->window_changed = false;
    if (visit == VISIT_VALUE) {
        return VISIT_VALUE;
    }
    n->pv.length = 0;
    if (n->resolved != RESOLVED_ABORTED) {
        s->counters.abandoned += account(s, n);
    }
    if (n->resolved == RESOLVED_BUSY || n->resolved == RESOLVED_ABORTED) {
        return n->resolved == RESOLVED_BUSY ? VISIT_BUSY : VISIT_ABORTED;
    }
    node_forget_path(n);
    n->best = n->resolved_score;
    n->best_move = n->resolved_score > n->ask.alpha ? n->resolved_move : 0;
    set_line(n, n->best_move);
    return VISIT_VALUE;
}

static bool is_drawn(const struct search *s, struct node *n)
{
    unsigned drawn = s->options.game->drawn(s->position, n->ply);
    n->counts = drawn == GAME_DRAWN_BY_COUNT;
    if (drawn > 0 && drawn < GAME_DRAWN_BY_COUNT) {
        n->repeats = drawn <= n->ply ? (int)(n->ply - drawn) : -1;
    }
    return drawn != 0;
}

/* Whether the value holds for the position, by whatever path it is reached. A draw that does not
 * must not reach a table: there it would be taken for the position's (the graph-history problem:
 * Campbell 1985). A repetition of this position itself is none of the path's, and a count that is
 * part of the key holds. What is not looked at: moves that such draws made worse than the best one,
 * and results in the table of paths on which a move repeats (docs/design.md, section 4). */
static bool is_true_on_all_paths(const struct search *s, const struct node *n)
{
    return n->repeats >= (int)n->ply &&
           (!n->counts || s->key(s->position) != s->options.game->key(s->position));
}

static enum search_visit search_children(struct search *s, struct node *n, uint16_t table_move)
{
    const int refuting_depth = s->options.game->search->children_depth;
    if (refuting_depth > 0 && n->ply > 0 && n->depth >= refuting_depth && children_refute(s, n)) {
        return VISIT_VALUE;
    }
    const uint16_t prepared = prepare(s, n);
    if (search_halted(s)) {
        return VISIT_STOP;
    }
    order_moves(s, n, prepared != 0 ? prepared : table_move);
    n->visited_nodes = n->eldest_nodes = n->visited = 0;
    n->has_children = true;
    const unsigned least =
        s->inflight_depth < s->divided_depth ? s->inflight_depth : s->divided_depth;
    enum search_visit visit = n->depth - 1 >= (int)least
                                  ? s->options.algorithm->search_children(s, n)
                                  : children_in_order(s, n);
    n->has_children = false;
    return visit == VISIT_ABORTED ? VISIT_STOP : visit; /* no value without that child */
}

enum search_visit node_search(struct search *s, struct node *n)
{
    const struct game *game = s->options.game;
    const struct table_port *table = &s->table;
    const struct handover *handover = s->options.algorithm->handover;
    const uint64_t nodes_before = s->counters.nodes;
    const unsigned moves_before = s->moves_used;
    const bool has_room =
        n->ply < SEARCH_PLY_MAX && moves_before + 2 * GAME_MOVES_MAX <= MOVE_STACK;
    const bool is_shared = has_room && n->depth > 0 && (unsigned)n->depth >= s->inflight_depth;
    const bool counts = is_shared && s->options.algorithm->counts_inflight;
    struct tt_answer answer;

    n->path = n->pv.length = 0;
    n->alpha_now = n->alpha;
    n->is_uncertain = false;
    node_forget_path(n);

    /* Step 1. Draws by repetition or counting depend on the path; a strict value must not. */
    if (!s->options.strict && n->ply > 0 && game->drawn != NULL && is_drawn(s, n)) {
        n->best = 0;
        return VISIT_VALUE;
    }

    /* Step 2. A node of a master's tree. Endings that the game solves, without the table. */
    const bool solves = is_solved(s, n);
    enum search_visit visit = VISIT_CONTINUE;
    if (handover != NULL && handover->visit != NULL) {
        visit = handover->visit(s, n, solves);
    }
    if (visit != VISIT_CONTINUE) {
        return visit;
    }
    if (solves && !is_shared) {
        return search_halted(s) ? VISIT_STOP : end_visit(s, n, solve(s, n));
    }

    /* Step 3. Quiescence, when no depth is left or no room for another ply. */
    if (n->depth <= 0 || !has_room) {
        n->best = quiesce(s, n, n->alpha, n->beta);
        n->path = s->counters.nodes - nodes_before;
        return end_visit(s, n, search_halted(s) ? VISIT_STOP : VISIT_VALUE);
    }
    if (search_halted(s)) {
        return VISIT_STOP;
    }

    /* Step 4. Ask the table; generate moves meanwhile (Weill 1996, figure 1, line 9). */
    n->ask = (struct tt_ask){
        .key = n->ply == 0 ? node_root_key(s) : node_key(s) ^ select_variant(n),
        .alpha = (int16_t)n->alpha,
        .beta = (int16_t)n->beta,
        .depth = (uint8_t)n->depth,
        .flags = (n->exclusive ? TT_EXCLUSIVE : 0) | (s->options.strict ? TT_STRICT : 0),
        .slot = s->options.slot,
    };
    n->ticket = (struct table_ticket){0};
    n->generated = false;
    s->counters.asks += counts;
    if (!table->ask(table->self, &n->ask, &n->ticket, &answer)) {
        if (!s->options.full) { /* few need moves */
            node_generate(s, n);
        }
        table->await(table->self, &n->ask, &n->ticket, &answer);
    }
    doubt(s, n, &answer);

    /* Step 5. CUT: the table knows the value. BUSY: another searcher is in the node. */
    if (answer.verdict == TT_CUT) {
        s->counters.cuts += counts;
        n->best = answer.score;
        n->best_move = answer.score > n->alpha ? answer.move : 0; /* else it is for order only */
        order_by_refutation(s, n, &answer);
        set_line(n, n->best_move);
        s->moves_used = moves_before;
        return VISIT_VALUE;
    }
    if (answer.verdict == TT_BUSY) {
        s->counters.busy += counts;
        s->moves_used = moves_before;
        return VISIT_BUSY;
    }

    /* Step 6. OPEN: the search is in the node until step 11, in the window that came back. */
    n->alpha = n->alpha_now = answer.alpha;
    n->beta = answer.beta;
    n->known_lower = answer.alpha > n->ask.alpha ? answer.alpha : -GAME_INFINITE;
    n->known_move = answer.move;
    n->known_upper = answer.beta < n->ask.beta ? answer.beta : GAME_INFINITE;
    n->best = -GAME_INFINITE;
    n->longest_scout = n->best_move = 0;
    n->in_flight = counts || n->ticket.later; /* an ask that travels is one to a shard */
    n->contended = answer.nproc > 1;
    n->is_old = n->prunes = n->reduces = false;
    n->extension = 0;
    n->resolved = RESOLVED_NOT;
    n->path = 1;
    n->unaccounted_before = s->counters.nodes - s->accounted;

    /* Step 7. Count the node, now that it is complete: the poll may be about it. */
    node_count(s, n, 1);

    /* Step 8. What needs no children: endings; forward pruning (selection full). */
    visit = solves            ? solve(s, n)
            : s->options.full ? select_node(s, n, answer.move)
                              : VISIT_CONTINUE;
    if (visit == VISIT_CONTINUE) {
        /* Step 9. Moves. Without any the game is over here. */
        if (!n->generated) {
            node_generate(s, n);
        }
        if (n->move_count == 0) {
            n->known_move = 0;
            n->best = n->known_lower = n->known_upper =
                n->excluded != 0 ? -GAME_MATE : game->finished(s->position);
            visit = VISIT_VALUE;
        } else {
            /* Step 10. The children, as the algorithm has it where they are shared. */
            visit = search_children(s, n, answer.move);
        }
    }
    n->in_flight = false;
    n->path += n->longest_scout;
    s->moves_used = moves_before;

    /* Step 11. Store the value, or release the node without one: nothing of a stopped search is
     * stored, nor what holds on this path only. A node that CUT resolved may be released. */
    visit = s->stopped ? VISIT_STOP : visit;
    const bool is_again = visit == VISIT_VALUE && is_disproved(s, n),
               goes_on = is_again && !search_halted(s);
    enum tt_bound bound = visit == VISIT_VALUE ? classify(n) : TT_EXACT;
    if (visit == VISIT_VALUE && !is_again && n->reduces && n->excluded == 0) {
        order_correct(s, n, bound);
    }
    if (visit == VISIT_VALUE && !is_again && is_true_on_all_paths(s, n)) {
        struct tt_store store = {
            .key = n->ask.key,
            .score = (int16_t)n->best,
            .depth = n->ask.depth,
            .bound = (uint8_t)(bound | (s->options.strict ? TT_BESIDE : 0)),
            .move = bound == TT_UPPER ? 0 : n->best_move, /* a fail-low knows no best move */
            .slot = n->ask.slot,
        };
        table->store(table->self, &n->ticket, &store);
    } else {
        struct tt_release release = {n->ask.key, n->ask.depth, n->ask.slot};
        table->release(table->self, &n->ticket, &release);
    }
    if (counts && n->contended && !goes_on) {
        s->counters.helped++;
        if (n->ask.depth <= s->inflight_depth) {
            s->counters.duplicated += account(s, n);
        }
    }
    if (is_shared && visit == VISIT_VALUE) {
        account(s, n);
    }

    /* Step 12. Others may have resolved the node meanwhile; a disproved bound is no value. */
    return goes_on ? search_again(s, n) : end_visit(s, n, is_again ? VISIT_STOP : visit);
}

/* ---- what the environment says from env.poll (ports.h) ---- */

/* The search unwinds to `n`, unless it unwinds to a node above already. */
static void resolve(struct search *s, struct node *n, enum resolved how, int score, uint16_t move)
{
    n->resolved = how;
    n->resolved_score = score;
    n->resolved_move = move;
    s->unwind = n->ply;
    s->window_changed = false;
}

void search_node_done(struct search *s, const struct tt_store *result)
{
    struct tt_found found = tt_found_of(result);
    for (struct node *n = s->node; n->ply < s->unwind && n->ply < SEARCH_PLY_MAX; n++) {
        int score;
        if (n->in_flight && n->ask.key == result->key && n->ask.depth == result->depth &&
            tt_ops_resolves(&found, n->ask.depth, true, n->alpha, n->beta, &score) &&
            node_is_score(s, score) && names_a_move(s, n, score, result->move)) {
            resolve(s, n, RESOLVED_DONE, score, result->move);
            s->counters.unwound++;
            return;
        }
    }
}

void search_node_claimed(struct search *s, uint64_t key, uint8_t depth)
{
    for (struct node *n = s->node; n->ply < s->unwind && n->ply < SEARCH_PLY_MAX; n++) {
        if (!n->in_flight || n->ask.key != key || n->ask.depth != depth) {
            continue;
        }
        if (n->exclusive && !n->contended) {
            s->counters.busy++;
            resolve(s, n, RESOLVED_BUSY, 0, 0);
        } else {
            n->contended = true;
        }
        return;
    }
}

void search_answered(struct search *s, const struct tt_ask *ask, const struct tt_answer *answer)
{
    for (struct node *n = s->node; n->ply < s->unwind && n->ply < SEARCH_PLY_MAX; n++) {
        if (!n->in_flight || !n->ticket.later || n->ask.key != ask->key ||
            n->ask.depth != ask->depth) {
            continue;
        }
        n->ticket.later = false;
        if (!is_possible(s, n, ask, answer)) {
            return;
        }
        if (answer->verdict == TT_CUT) {
            s->counters.cuts++;
            order_by_refutation(s, n, answer);
            resolve(s, n, RESOLVED_CUT, answer->score, answer->move);
        } else if (answer->verdict == TT_BUSY) {
            s->counters.busy++;
            resolve(s, n, RESOLVED_BUSY, 0, 0);
        } else if (answer->nproc > 1) {
            /* Never set back to false: a child may have been BUSY meanwhile, and a peek sent ahead
             * for other children than those that are left now. */
            n->contended = true;
        }
        return;
    }
}

void search_renew(struct search *s)
{
    for (struct node *n = s->node; n->ply < s->unwind && n->ply < SEARCH_PLY_MAX; n++) {
        if (n->in_flight && n->is_old && s->table.renew != NULL) {
            struct tt_ask again = n->ask;
            again.flags &= (uint8_t)~TT_EXCLUSIVE; /* others may have joined */
            s->table.renew(s->table.self, &again, &n->ticket);
        }
        n->is_old = true;
    }
}

/* The open node of that split point to which the search does not unwind already; or NULL. */
static struct node *open_split(struct search *s, uint64_t split_id)
{
    for (unsigned ply = s->start_ply; ply <= s->poll_ply && ply < s->unwind; ply++) {
        if (split_id != 0 && s->node[ply].split_id == split_id) {
            return &s->node[ply];
        }
    }
    return NULL;
}

int search_split_ply(struct search *s, uint64_t split_id)
{
    const struct node *n = open_split(s, split_id);
    return n != NULL ? (int)n->ply : -1;
}

void search_abort(struct search *s, uint64_t split_id)
{
    struct node *n = open_split(s, split_id);
    if (n != NULL) {
        resolve(s, n, RESOLVED_ABORTED, 0, 0);
    }
}

void search_narrow(struct search *s, uint64_t split_id, int alpha, int beta)
{
    struct node *n = open_split(s, split_id);
    if (n == NULL || (alpha <= n->alpha_now && beta >= n->beta)) {
        return;
    }
    alpha = alpha > n->alpha ? alpha : n->alpha;
    beta = beta < n->beta ? beta : n->beta;
    /* A lie about the window may leave nothing below what the node was given as its alpha. */
    if (alpha >= beta || (beta <= n->alpha_now && n->best < beta)) {
        resolve(s, n, RESOLVED_ABORTED, 0, 0);
        return;
    }
    n->beta = beta;
    n->alpha = alpha > n->alpha_now ? alpha : n->alpha;
    n->alpha_now = alpha > n->alpha_now ? alpha : n->alpha_now;
    if (n->has_children && n->ply + 1 < s->unwind) {
        s->unwind = n->ply + 1;
        s->window_changed = true;
    }
}

bool node_window_changed(struct search *s, const struct node *n)
{
    if (s->stopped || !s->window_changed || s->unwind != n->ply + 1) {
        return false;
    }
    s->window_changed = false;
    s->unwind = NO_UNWIND;
    return true;
}
