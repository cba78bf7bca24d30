#include "worker/search/search.h"

#include "common/memory.h"
#include "common/rng.h"
#include "common/tt/ops.h"
#include "worker/search/children.h"
#include "worker/search/node.h"
#include "worker/search/order.h"

#include <stdlib.h>
#include <string.h>

void search_set_limits(struct search *s, const struct search_options *options,
                       const struct env_port *env)
{
    const struct game *game = options->game;
    s->options = *options;
    s->key = options->strict || game->counted_key == NULL ? game->key : game->counted_key;
    s->env = *env;
    if (s->env.until_poll == NULL) {
        s->env.until_poll = &s->until_poll;
    }
    memset(&s->counters, 0, sizeof s->counters); /* not those of the last search */
    order_seed(s);
}

enum err search_open(struct search **out, const struct search_options *options,
                     const struct table_port *table, const struct env_port *env)
{
    struct search *s = calloc(1, sizeof *s);
    if (s == NULL) {
        return ERR_NOMEM;
    }
    const struct game *game = options->game;
    const bool evaluates = game->evaluator_size > 0,
               solves = game->solver_size != NULL && options->solver_memory == NULL;
    s->position = memory_lines(game->position_size);
    s->histories = order_histories();
    s->evaluator = evaluates ? memory_lines(game->evaluator_size) : NULL;
    s->solver = solves ? memory_lines_untouched(game->solver_size(), &s->solver_block)
                       : options->solver_memory;
    if (s->position == NULL || s->histories == NULL || (evaluates && s->evaluator == NULL) ||
        (solves && s->solver == NULL)) {
        search_free(&s);
        return ERR_NOMEM;
    }
    if (evaluates) {
        game->evaluator_open(s->evaluator);
    }
    s->table = *table;
    search_set_limits(s, options, env);
    s->unwind = NO_UNWIND;
    for (unsigned ply = 0; ply < SEARCH_PLY_MAX + 2; ply++) {
        s->node[ply].ply = ply;
    }
    *out = s;
    return ERR_OK;
}

void search_free(struct search **search)
{
    if (*search != NULL) {
        free((*search)->position);
        free((*search)->evaluator);
        free((*search)->solver_block);
        order_histories_free((*search)->histories);
        free(*search);
        *search = NULL;
    }
}

void search_set_position(struct search *s, const void *position)
{
    memcpy(s->position, position, s->options.game->position_size);
    /* With other moves, or with draws that others do not see, the root is a node of its own. */
    const bool sees_draws = !s->options.strict && s->options.game->repeatable != NULL;
    s->root_variant = sees_draws ? s->options.game->repeatable(s->position) : 0;
    for (unsigned i = 0; i < s->options.root_moves; i++) {
        s->root_variant ^= rng_mix(s->options.root_move[i]);
    }
    s->root_key = node_key(s) ^ s->root_variant;
    order_age(s);
}

void search_forget(struct search *s)
{
    if (s != NULL) {
        order_forget(s);
    }
}

uint64_t search_root(const struct search *s)
{
    return s->root_key;
}

const struct counters *search_counters(const struct search *s)
{
    return &s->counters;
}

unsigned search_iteration(const struct search *s)
{
    return s->iteration;
}

const void *search_position(const struct search *s)
{
    return s->position;
}

static void begin(struct search *s, unsigned start_ply)
{
    const struct game *game = s->options.game;
    memset(&s->counters, 0, sizeof s->counters);
    s->accounted = 0;
    s->stopped = s->window_changed = false;
    s->unwind = NO_UNWIND;
    s->start_ply = s->poll_ply = start_ply;
    s->moves_used = s->children_used = 0;
    s->divided_depth = UINT8_MAX;
    s->prepares = game->depth_left != NULL && game->search->prepares && !s->options.strict &&
                  s->options.depth_limit >= game->depth_left(s->position);
    s->root_move = 0; /* that of the last search is none of this position's */
    struct game_move list[GAME_MOVES_MAX];
    s->root_list_count = start_ply == 0 ? node_generate_root(s, list) : 0;
    for (unsigned i = 0; i < s->root_list_count; i++) {
        s->root_list[i] = list[i].move;
    }
    atomic_store_explicit(s->env.until_poll, 1, memory_order_relaxed);
}

static enum search_visit search_start(struct search *s, const struct search_split *split)
{
    struct node *n = node_prepare(&s->node[s->start_ply], (int)split->depth, split->alpha,
                                  split->beta, split->cut_node);
    n->split_id = split->id;
    s->iteration = split->iteration;
    node_update_inflight_depth(s);
    return node_search(s, n);
}

const struct search_result *search_lines(const struct search *s, unsigned *count)
{
    *count = s->lines;
    return s->line;
}

uint16_t search_root_move(const struct search *s, unsigned *number)
{
    *number = s->root_number;
    return s->root_move;
}

/* For a report of an iteration whose value is outside the window. */
struct run {
    search_report *report; /* NULL: nobody wants any */
    void *context;
};

static void report_bound(struct search *s, const struct run *run, unsigned depth, int value,
                         enum tt_bound bound)
{
    const struct search_result outside = {
        .depth = depth, .deepest = s->deepest, .score = value, .bound = bound};
    if (run->report != NULL && s->lines_done == 0) {
        run->report(run->context, &outside, &s->counters);
    }
}

/* Whether a value below that of the best line is of no interest. */
static bool seeks_tie(const struct search *s)
{
    return s->options.only_ties && s->lines_done > 0;
}

/* Widens around the last score until the value falls into the window. False: stopped. */
static bool aspirate(struct search *s, const struct run *run, unsigned depth, int guess, int *value)
{
    const struct game_search *limits = s->options.game->search;
    bool is_open = depth < limits->aspiration_depth;
    int width = limits->aspiration_width;
    /* In a game of few scores the best one ends the search. */
    const bool is_small = s->options.game->score_kind == GAME_DISCS;
    const int lowest = seeks_tie(s) ? s->line[0].score - 1
                       : is_small   ? -s->options.game->score_max - 1
                                    : -GAME_INFINITE;
    const int highest = is_small ? s->options.game->score_max : GAME_INFINITE;
    const int least = is_small || seeks_tie(s) ? lowest : -GAME_MATE_MIN;
    const int most = is_small ? highest : GAME_MATE_MIN;
    int alpha = is_open ? lowest : guess - width;
    int beta = is_open ? highest : guess + width;
    for (;;) {
        alpha = alpha < least ? lowest : alpha;
        beta = beta > most ? highest : beta;
        const struct search_split root = {
            .depth = depth, .iteration = depth, .alpha = alpha, .beta = beta};
        if (search_start(s, &root) != VISIT_VALUE) {
            return false;
        }
        *value = s->node[0].best;
        s->above.length = *value >= beta && beta < highest ? s->node[0].pv.length : 0;
        memcpy(s->above.move, s->node[0].pv.move, s->above.length * sizeof s->above.move[0]);
        s->above_score = *value;
        s->counters.critical += s->node[0].path;
        width *= 4;
        if (*value <= alpha && alpha > lowest) {
            report_bound(s, run, depth, *value, TT_UPPER);
            alpha = *value - width;
        } else if (*value >= beta && beta < highest) {
            report_bound(s, run, depth, *value, TT_LOWER);
            beta = *value + width;
        } else {
            return true;
        }
    }
}

/* Moves that the table gave are another's word: the line ends before the first that is not legal.
 * With `want` more moves than are left, it goes on with those that the table knows, while they are
 * legal and nobody says stop: with `may_wait` each may cost a round trip, else the first two alone
 * (so there is a move to ponder on). */
static void complete_line(struct search *s, struct search_line *line, unsigned depth, unsigned want,
                          bool may_wait)
{
    const struct game *game = s->options.game;
    unsigned made = 0;
    /* Then the game's own solver says how it goes on to the end. */
    const bool is_exact = game->depth_left != NULL && depth >= game->depth_left(s->position);
    want = is_exact && want > 0 ? SEARCH_PV_MAX : want;

    while (made < line->length && game_is_legal(game, s->position, line->move[made])) {
        game->make(s->position, line->move[made++]);
    }
    line->length = (uint16_t)made;
    while (made < want && !s->stopped) {
        const unsigned left = is_exact ? game->depth_left(s->position) : depth - made;
        struct tt_peek peek = {made == 0 ? node_root_key(s) : node_key(s), (uint8_t)left};
        const bool is_solved = is_exact && (made > 0 || node_has_all_moves(s));
        struct tt_peeked seen = {.move = is_solved ? node_solved_move(s) : 0};
        if (seen.move == 0 && (may_wait || made < 2)) {
            s->table.peek(s->table.self, &peek, 1, false, &seen);
        } else if (seen.move == 0) {
            node_peek_here(s, &peek, &seen);
        }
        if (seen.move == 0 || !game_is_legal(game, s->position, seen.move)) {
            break;
        }
        line->move[made++] = seen.move;
        line->length = (uint16_t)made;
        game->make(s->position, seen.move);
        s->stopped = s->env.poll(s->env.self, s);
    }
    while (made > 0) {
        game->unmake(s->position, line->move[--made]);
    }
}

enum search_status search_subtree(struct search *s, const struct search_split *split,
                                  struct search_result *result)
{
    const struct node *n = &s->node[split->length];
    const struct game *game = s->options.game;
    CHECK(split->id != 0 && split->depth >= 1 && split->depth <= SEARCH_DEPTH_MAX &&
          split->iteration >= 1 && split->iteration <= SEARCH_DEPTH_MAX &&
          split->length < SEARCH_PLY_MAX && split->alpha < split->beta);
    begin(s, split->length);
    for (unsigned i = 0; i < split->length; i++) {
        game->make(s->position, split->path[i]);
    }
    enum search_visit visit = search_start(s, split);
    struct search_line line = n->pv;
    if (visit == VISIT_VALUE) {
        complete_line(s, &line, split->depth, 0, false);
    }
    for (unsigned i = split->length; i > 0; i--) {
        game->unmake(s->position, split->path[i - 1]);
    }
    s->counters.critical = n->path;
    if (visit == VISIT_VALUE) {
        *result = (struct search_result){.depth = split->depth, .score = n->best, .pv = line};
        result->bound = tt_bound_of(n->best, split->alpha, split->beta);
        result->move = line.length > 0 ? line.move[0] : 0;
        return SEARCH_VALUE;
    }
    return visit == VISIT_ABORTED ? SEARCH_ABORTED : SEARCH_STOPPED;
}

static void accept_line(struct search *s, unsigned depth, int value, bool complete,
                        struct search_result *result)
{
    struct search_line line = s->node[0].pv;
    /* The next iteration should not wait for the line of this one. */
    complete_line(s, &line, depth,
                  !complete               ? 0
                  : depth < SEARCH_PV_MAX ? depth
                                          : SEARCH_PV_MAX,
                  depth == s->options.depth_limit);
    CHECK(line.length > 0); /* the root takes no value without a move that may be played */
    result->pv = line;
    result->move = line.move[0];
    result->score = value;
    result->depth = depth;
    result->deepest = s->deepest > line.length ? s->deepest : line.length; /* others were there */
    result->bound = TT_EXACT;
}

/* The value of the best move, then of the best of the others, and so on: each as exact as one that
 * is searched alone; with only_ties until one is not as good. False: stopped. */
static bool iterate(struct search *s, const struct run *run, unsigned depth, unsigned lines)
{
    const bool complete = run->report != NULL || depth == s->options.depth_limit;
    bool goes_on = true;
    for (unsigned i = 0; i < lines && goes_on; i++) {
        int value = 0;
        s->lines_done = i;
        s->deepest = 0;
        s->above.length = 0;
        goes_on = aspirate(s, run, depth, s->line[seeks_tie(s) ? 0 : i].score, &value);
        if (seeks_tie(s) && value < s->line[0].score) {
            break;
        }
        if (goes_on) {
            accept_line(s, depth, value, complete, &s->line[i]);
            s->lines = i + 1;
        }
    }
    s->lines_done = 0;
    return goes_on;
}

/* Moves that were searched before the stop, the best of the last iteration first, are as good as
 * their values say: what is better than it is played. */
static void take_unfinished(struct search *s, struct search_result *result)
{
    const struct node *root = &s->node[0];
    struct search_line line = root->pv.length > 0 ? root->pv : s->above;
    if (result->depth == 0 || line.length == 0 || s->options.strict || s->options.lines > 1) {
        return;
    }
    result->score = root->pv.length > 0 ? root->alpha_now : s->above_score;
    complete_line(s, &line, s->iteration, 0, false);
    result->unfinished = s->iteration;
    result->pv = line;
    result->move = line.move[0];
}

/* With pruning a later line may turn out better than an earlier one. */
static void sort_lines(struct search *s)
{
    for (unsigned i = 1; i < s->lines; i++) {
        struct search_result line = s->line[i];
        unsigned at = i;
        for (; at > 0 && s->line[at - 1].score < line.score; at--) {
            s->line[at] = s->line[at - 1];
        }
        s->line[at] = line;
    }
}

/* How many nodes are still to come below `n`, which is on the current path. A child to come is
 * taken for the average of its brothers (P. Kilby et al. 2006, Estimating Search Tree Size), or
 * less, as the table knows more and more. In an open window a scout takes `eldest_share` of the
 * eldest child, which counts as `known` scouts beside those that are done. In a node that is
 * expected to fail high, 1 - `next_refutes` children are to come for each that failed to refute.
 * The constants are fitted to FFO #50 to #54. */
static double left_below(const struct search *s, const struct node *n)
{
    const double eldest_share = 0.12, later_share = 0.65, next_refutes = 0.7, known = 2;
    if (!n->has_children || n->ply >= s->poll_ply) {
        return 0;
    }
    const double left = left_below(s, n + 1), eldest = (double)n->eldest_nodes;
    if (n->move_count <= n->visited) {
        return left;
    }
    const double child = (double)(s->counters.nodes - n->child_begun) + left;
    const double all = (double)n->visited_nodes + child;
    double brothers = n->move_count - n->visited - 1, each = later_share * all / (n->visited + 1.0);
    if (n->beta - n->alpha > 1) {
        each = n->visited == 0 ? eldest_share * child
                               : later_share * (all - eldest + known * eldest_share * eldest) /
                                     (n->visited + known);
    } else if (n->cut_node) {
        const double most = (1 - next_refutes) * n->visited;
        brothers = brothers < most ? brothers : most;
        each /= later_share;
    }
    return left + brothers * each;
}

uint64_t search_nodes_left(const struct search *s)
{
    const bool is_last = s->prepares && s->iteration == s->options.depth_limit;
    const struct algorithm *algorithm = s->options.algorithm;
    const bool walks_all = algorithm->handover == NULL && s->options.lines <= 1 &&
                           algorithm->search_children != children_two_passes;
    const double left = is_last && walks_all ? left_below(s, &s->node[s->start_ply]) : 0;
    return left < (double)(UINT64_MAX / 2) ? (uint64_t)left : UINT64_MAX / 2;
}

/* The last iteration is the answer. */
static bool skips(const struct search *s, unsigned depth)
{
    const struct algorithm *algorithm = s->options.algorithm;
    return algorithm->skips_iteration != NULL && depth < s->options.depth_limit &&
           algorithm->skips_iteration(&s->options, depth);
}

void search_run(struct search *s, search_report *report, void *context,
                struct search_result *result)
{
    const struct game *game = s->options.game;
    const struct run run = {report, context};

    memset(result, 0, sizeof *result);
    s->lines = s->lines_done = 0;
    begin(s, 0);
    const unsigned moves = s->root_list_count;
    if (moves == 0) {
        result->score = game->finished(s->position);
        result->depth = s->options.depth_limit;
        return;
    }
    const unsigned wanted = s->options.lines > 1 ? s->options.lines : 1;
    const unsigned lines = wanted < moves ? wanted : moves;
    for (unsigned i = 0; i < lines; i++) {
        s->line[i] = (struct search_result){.move = s->root_list[i]};
    }
    result->move = s->root_list[0];
    if (s->options.algorithm->handover != NULL && s->options.algorithm->handover->run(s)) {
        return;
    }
    const unsigned limit = s->options.depth_limit;
    const bool is_exact = game->depth_left != NULL && limit >= game->depth_left(s->position);
    const unsigned near = is_exact && limit > game->search->exact_gap
                              ? limit - game->search->exact_gap
                              : limit; /* after it the whole depth is next, or nearly that */
    unsigned depth = game->search->first_iteration < limit ? game->search->first_iteration : limit;
    while (skips(s, depth) || iterate(s, &run, depth, lines)) {
        if (!skips(s, depth)) {
            sort_lines(s);
            *result = s->line[0];
            if (report != NULL) {
                report(context, result, &s->counters);
            }
        }
        if (depth == limit) {
            return;
        }
        unsigned next = depth + game->search->iteration_step;
        depth = next <= near ? next : s->prepares && depth + 1 < limit ? limit - 1 : limit;
    }
    take_unfinished(s, result);
}
