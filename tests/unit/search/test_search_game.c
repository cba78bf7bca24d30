/* What a search takes from its game: iterations, aspiration, and a solver of endings. */
#include "tests/support/test_tree.h"
#include "worker/search/handover/algorithms.h"
#include "worker/search/node.h"
#include "worker/table/embedded.h"

enum {
    TREE_DEPTH = 7,
    NOT_COUNTED = 99,
    SOLVED_PLIES = 3,
    COUNT_EVERY = 50,
    POLL_NODES = 64,
    POLLS_NOTED = 4096
};

/* ---- a solver for synthetic trees: plain alpha-beta to the end ---- */

static struct {
    unsigned plies; /* from the end: what is solved */
    unsigned calls, selective_calls, uncounted, counts;
    int error; /* of a selective value */
    bool stopped, never_counts;
} solved; /* one search at a time */

static bool tree_solves(const void *position, int depth, enum game_piece piece)
{
    const struct tree_position *p = position;
    (void)depth, (void)piece;
    return p->params.d - p->ply <= solved.plies;
}

static int solve_below(struct tree_position *p, int alpha, int beta,
                       const struct game_solver *solver, uint16_t *best_move)
{
    struct game_move list[GAME_MOVES_MAX];
    unsigned n = game_tree.generate(p, list);
    int best = n == 0 ? game_tree.evaluate(p) : -GAME_INFINITE;
    if (++solved.uncounted == COUNT_EVERY && !solved.never_counts) {
        solved.uncounted = 0;
        solved.counts++;
        solved.stopped = solved.stopped || !solver->count(solver->self, COUNT_EVERY);
    }
    for (unsigned i = 0; i < n && best < beta && !solved.stopped; i++) {
        int alpha_now = best > alpha ? best : alpha;
        game_tree.make(p, list[i].move);
        uint16_t reply = 0;
        int value = -solve_below(p, -beta, -alpha_now, solver, &reply);
        game_tree.unmake(p, list[i].move);
        *best_move = value > alpha_now ? list[i].move : *best_move;
        best = value > best ? value : best;
    }
    return best;
}

static bool tree_solve(void *position, int alpha, int beta, const struct game_solver *solver,
                       int *value, uint16_t *move)
{
    solved.calls++;
    assert_false(solved.stopped); /* nothing is begun after a stop */
    int best = solve_below(position, alpha, beta, solver, move);
    if (!solved.stopped) {
        *value = best + (solver->is_selective ? solved.error : 0);
        solved.selective_calls += solver->is_selective;
    }
    return !solved.stopped;
}

/* ---- draws that depend on the path ---- */

enum { DRAWN_PLY = 4 };
static unsigned drawn_as; /* every position at DRAWN_PLY; 0: none */
static int planted; /* outside of a search: what the table has of all children of the root */

static unsigned tree_drawn(const void *position, unsigned ply)
{
    (void)ply;
    const struct tree_position *p = position;
    return p->ply == DRAWN_PLY ? drawn_as : 0;
}

static unsigned tree_drawn_at_once(const void *position, unsigned ply)
{
    return ply == 1 && ((const struct tree_position *)position)->ply == 1 ? ply + 1 : 0;
}

static uint64_t tree_counted_key(const void *position)
{
    return game_tree.key(position) ^ 1;
}

/* ---- a table that notes what it is asked ---- */

struct asked {
    struct table_port inner;
    uint64_t asks;
    unsigned shallowest_ply; /* plies to the end */
    unsigned solved_stores, drawn_stores, deep_stores;
    int alpha[TREE_DEPTH + 1], beta[TREE_DEPTH + 1]; /* of the first ask of an iteration */
    struct search *search;
};

static bool noting_ask(void *self, const struct tt_ask *ask, struct table_ticket *ticket,
                       struct tt_answer *answer)
{
    struct asked *a = self;
    const struct tree_position *p = search_position(a->search);
    a->asks++;
    if (p->params.d - p->ply < a->shallowest_ply) {
        a->shallowest_ply = (unsigned)(p->params.d - p->ply);
    }
    if (p->ply == 0 && a->alpha[ask->depth] == a->beta[ask->depth]) {
        a->alpha[ask->depth] = ask->alpha;
        a->beta[ask->depth] = ask->beta;
    }
    return a->inner.ask(a->inner.self, ask, ticket, answer);
}

static void plain_await(void *self, const struct tt_ask *ask, struct table_ticket *ticket,
                        struct tt_answer *answer)
{
    struct asked *a = self;
    a->inner.await(a->inner.self, ask, ticket, answer);
    answer->nproc = planted != 0 ? 2 : answer->nproc;
}

static void plain_store(void *self, const struct table_ticket *ticket, const struct tt_store *store)
{
    struct asked *a = self;
    const struct tree_position *p = search_position(a->search);
    a->solved_stores += tree_solves(p, 0, GAME_PIECE_TOGETHER);
    a->drawn_stores += p->ply + store->depth >= DRAWN_PLY; /* in iterations that reach that ply */
    a->deep_stores +=
        p->ply + store->depth >= DRAWN_PLY && store->depth > 0 && p->ply > DRAWN_PLY - 2;
    a->inner.store(a->inner.self, ticket, store);
}

static void plain_release(void *self, const struct table_ticket *ticket,
                          const struct tt_release *release)
{
    struct asked *a = self;
    a->inner.release(a->inner.self, ticket, release);
}

static void plain_peek(void *self, const struct tt_peek *peek, unsigned count, bool near,
                       struct tt_peeked *out)
{
    struct asked *a = self;
    a->inner.peek(a->inner.self, peek, count, near, out);
    const struct tree_position *p = search_position(a->search);
    for (unsigned i = 0; planted != 0 && p->ply == 0 && i < count; i++) {
        out[i].lower = out[i].upper = (int16_t)-planted;
        out[i].depth = UINT8_MAX;
    }
}

static unsigned plain_depth(void *self, unsigned iteration, bool *sees_foreign)
{
    struct asked *a = self;
    return a->inner.inflight_depth(a->inner.self, iteration, sees_foreign);
}

/* ---- a run ---- */

struct run {
    unsigned stop_after, polls;
    struct search_result result;
    unsigned depth[TREE_DEPTH + 1], score[TREE_DEPTH + 1], move[TREE_DEPTH + 1], iterations;
    uint64_t nodes;
    unsigned noted; /* polls of the last iteration, with the nodes before it and those left */
    uint64_t nodes_at[POLLS_NOTED], left_at[POLLS_NOTED];
    struct asked asked;
};

static bool poll_run(void *self, struct search *search)
{
    struct run *r = self;
    const uint64_t left = search_nodes_left(search);
    if (left > 0 && r->noted < POLLS_NOTED) {
        assert_int_equal(search_iteration(search), TREE_DEPTH);
        r->nodes_at[r->noted] = search_counters(search)->nodes;
        r->left_at[r->noted++] = left;
    }
    return r->stop_after != 0 && ++r->polls >= r->stop_after;
}

static void note(void *context, const struct search_result *result, const struct counters *counters)
{
    struct run *r = context;
    (void)counters;
    if (result->bound != TT_EXACT) {
        return;
    }
    r->depth[r->iterations] = result->depth;
    r->move[r->iterations] = result->move;
    r->score[r->iterations++] = (unsigned)result->score;
}

static void solve_plies(unsigned plies)
{
    memset(&solved, 0, sizeof solved);
    solved.plies = plies;
}

static struct run run_with(const struct game *game, unsigned depth, unsigned stop_after,
                           unsigned inflight_depth, bool strict)
{
    struct embedded *table = NULL;
    struct search *search = NULL;
    struct tree_position p;
    struct run r = {.stop_after = stop_after};
    test_parse(&p, "tree:b=6,d=7,seed=3,order=70");
    const int error = solved.error;
    solve_plies(solved.plies);
    solved.error = error;
    assert_int_equal(embedded_open(&table, 4 << 20, 1), ERR_OK);
    struct embedded_port slot = {.table = table, .inflight_depth_max = (uint8_t)inflight_depth};
    r.asked = (struct asked){.inner = embedded_table_port(&slot), .shallowest_ply = TREE_DEPTH};
    struct table_port port = {.self = &r.asked,
                              .ask = noting_ask,
                              .await = plain_await,
                              .store = plain_store,
                              .release = plain_release,
                              .peek = plain_peek,
                              .inflight_depth = plain_depth};
    struct env_port env = {.self = &r, .poll = poll_run};
    struct search_options options = {.game = game,
                                     .algorithm = algorithm_by_name("abdada"),
                                     .strict = strict,
                                     .poll_nodes = POLL_NODES,
                                     .depth_limit = depth};
    assert_int_equal(search_open(&search, &options, &port, &env), ERR_OK);
    r.asked.search = search;
    search_set_position(search, &p);
    search_run(search, note, &r, &r.result);
    r.nodes = search_counters(search)->nodes;
    assert_int_equal(embedded_inflight(table), 0);
    assert_int_equal(((const struct tree_position *)search_position(search))->ply, 0);
    search_free(&search);
    embedded_close(&table);
    return r;
}

static struct run run_counted(const struct game *game, unsigned depth, unsigned stop_after,
                              unsigned inflight_depth)
{
    return run_with(game, depth, stop_after, inflight_depth, true);
}

static struct run run_tree(const struct game *game, unsigned depth, unsigned stop_after)
{
    return run_counted(game, depth, stop_after, NOT_COUNTED);
}

static struct game solving_game(void)
{
    solve_plies(SOLVED_PLIES);
    struct game game = game_tree;
    game.solves = tree_solves;
    game.solve = tree_solve;
    return game;
}

static void a_solver_takes_over_without_the_table(void **state)
{
    (void)state;
    struct game game = solving_game();
    struct run plain = run_tree(&game_tree, TREE_DEPTH, 0);
    assert_int_equal(plain.asked.shallowest_ply, 1);
    /* What is solved is solved to the end: with its plies less the search sees as much. */
    for (unsigned depth = TREE_DEPTH - SOLVED_PLIES; depth <= TREE_DEPTH; depth++) {
        struct run r = run_tree(&game, depth, 0);
        assert_int_equal(r.result.score, plain.result.score);
        assert_int_equal(r.result.depth, depth);
        assert_int_equal(r.asked.shallowest_ply, SOLVED_PLIES + 1);
        assert_true(r.asked.asks < plain.asked.asks);
        assert_true(solved.calls > 0 && solved.counts > 0);
        assert_true(r.nodes >= (uint64_t)solved.counts * COUNT_EVERY);
    }
}

/* Nodes that others may be in are registered and stored, though the game solves them. */
static void a_shared_ending_goes_through_the_table(void **state)
{
    (void)state;
    struct game game = solving_game();
    for (unsigned depth = TREE_DEPTH - SOLVED_PLIES; depth <= TREE_DEPTH; depth++) {
        struct run alone = run_tree(&game, depth, 0);
        struct run r = run_counted(&game, depth, 0, 1);
        bool has_depth_left = depth > TREE_DEPTH - SOLVED_PLIES;
        assert_int_equal(r.result.score, alone.result.score);
        assert_int_equal(r.asked.shallowest_ply, SOLVED_PLIES + !has_depth_left);
        assert_int_equal(r.asked.solved_stores > 0, has_depth_left);
        assert_int_equal(alone.asked.solved_stores, 0);
    }
}

static unsigned tree_depth_left(const void *position)
{
    const struct tree_position *p = position;
    return p->params.d - p->ply;
}

static bool tree_solves_to_the_end(const void *position, int depth, enum game_piece piece)
{
    return tree_solves(position, depth, piece) && depth >= (int)tree_depth_left(position);
}

/* Its values are wrong here: what they leave in the table must not answer the exact iteration. */
static void a_selective_iteration_comes_before_the_exact_one(void **state)
{
    (void)state;
    struct game game = solving_game();
    struct game_search limits = *game_tree.search;
    limits.first_iteration = limits.iteration_step = 1;
    limits.exact_gap = 4;
    limits.prepares = true;
    game.search = &limits;
    game.solves = tree_solves_to_the_end;
    game.depth_left = tree_depth_left;
    const struct run plain = run_tree(&game_tree, TREE_DEPTH, 0);
    for (int error = -40; error <= 40; error += 20) {
        static const unsigned depths[] = {1, 2, 3, TREE_DEPTH - 1, TREE_DEPTH};
        solved.error = error;
        struct run r = run_with(&game, TREE_DEPTH, 0, NOT_COUNTED, false);
        assert_int_equal(r.iterations, 5);
        assert_memory_equal(r.depth, depths, sizeof depths);
        assert_int_equal(r.result.score, plain.result.score);
        assert_in_range(solved.selective_calls, 1, solved.calls - 1);
        /* A value must be that of the position and the depth alone; or the end is not wanted. */
        r = run_with(&game, TREE_DEPTH, 0, NOT_COUNTED, true);
        assert_int_equal(r.iterations, 4);
        assert_int_equal(solved.selective_calls, 0);
        run_with(&game, TREE_DEPTH - 1, 0, NOT_COUNTED, false);
        assert_int_equal(solved.calls, 0);
    }
}

/* The table knows little of these trees, so that more is left than it says. */
static void the_last_iteration_says_what_is_left(void **state)
{
    (void)state;
    struct game game = solving_game();
    struct game_search limits = *game_tree.search;
    limits.prepares = true;
    game.search = &limits;
    game.solves = tree_solves_to_the_end;
    game.depth_left = tree_depth_left;
    const struct run r = run_with(&game, TREE_DEPTH, 0, NOT_COUNTED, false);
    assert_in_range(r.noted, 20, POLLS_NOTED - 1);
    for (unsigned i = r.noted / 10; i < r.noted * 9 / 10; i++) {
        const uint64_t left = r.nodes - r.nodes_at[i];
        assert_in_range(r.left_at[i], left / 4, left * 2);
    }
    assert_int_equal(run_with(&game, TREE_DEPTH - 1, 0, NOT_COUNTED, false).noted, 0);
    assert_int_equal(run_tree(&game_tree, TREE_DEPTH, 0).noted, 0);
}

static void a_solved_root_has_its_best_move(void **state)
{
    (void)state;
    struct game game = solving_game();
    for (unsigned counted = 0; counted < 2; counted++) {
        struct tree_position p;
        uint16_t reply = 0;
        int value = 0;
        struct game_solver solver = {.self = NULL};
        solve_plies(TREE_DEPTH);
        struct run r = run_counted(&game, TREE_DEPTH, 0, counted ? 1 : NOT_COUNTED);
        struct run plain = run_tree(&game_tree, TREE_DEPTH, 0);
        assert_int_equal(r.result.score, plain.result.score);
        assert_true(r.result.pv.length > 0 && r.result.pv.move[0] == r.result.move);
        test_parse(&p, "tree:b=6,d=7,seed=3,order=70");
        game_tree.make(&p, r.result.move);
        solve_plies(TREE_DEPTH);
        solved.never_counts = true;
        assert_true(tree_solve(&p, -GAME_INFINITE, GAME_INFINITE, &solver, &value, &reply));
        assert_int_equal(-value, r.result.score);
        assert_int_not_equal(reply, 0);
    }
}

static void a_solver_polls_and_can_be_stopped(void **state)
{
    (void)state;
    struct game game = solving_game();
    for (unsigned stop_after = 1; stop_after < 12; stop_after++) {
        struct run r = run_tree(&game, TREE_DEPTH, stop_after);
        assert_int_equal(r.polls, stop_after);
        assert_true(r.result.depth < TREE_DEPTH);
        assert_in_range(r.nodes, 1, stop_after * (POLL_NODES + COUNT_EVERY));
    }
}

static bool abort_second(void *self, struct search *search)
{
    struct run *r = self;
    if (++r->polls == 2) {
        search_abort(search, 5);
    }
    return false;
}

/* The split point is solved by the game, at once. */
static void a_solver_is_ended_by_an_abort(void **state)
{
    (void)state;
    static const uint16_t path[] = {1, 2, 3, 4};
    struct game game = solving_game();
    struct embedded *table = NULL;
    struct search *search = NULL;
    struct tree_position p;
    struct run r = {0};
    test_parse(&p, "tree:b=20,d=7,seed=3,order=70");
    assert_int_equal(embedded_open(&table, 1 << 20, 1), ERR_OK);
    struct embedded_port slot = {.table = table, .inflight_depth_max = 1};
    struct table_port port = embedded_table_port(&slot);
    struct env_port env = {.self = &r, .poll = abort_second};
    struct search_options options = {.game = &game,
                                     .algorithm = algorithm_by_name("abdada"),
                                     .strict = true,
                                     .poll_nodes = POLL_NODES,
                                     .depth_limit = TREE_DEPTH};
    struct search_split split = {.id = 5,
                                 .path = path,
                                 .length = 4,
                                 .depth = SOLVED_PLIES,
                                 .iteration = TREE_DEPTH,
                                 .alpha = -GAME_INFINITE,
                                 .beta = GAME_INFINITE};
    struct search_result result = {.score = 4711};
    assert_int_equal(search_open(&search, &options, &port, &env), ERR_OK);
    search_set_position(search, &p);
    assert_int_equal(search_subtree(search, &split, &result), SEARCH_ABORTED);
    assert_int_equal(result.score, 4711);
    assert_int_equal(r.polls, 2);
    split.id = 6;
    solve_plies(SOLVED_PLIES);
    r.polls = 0;
    assert_int_equal(search_subtree(search, &split, &result), SEARCH_VALUE);
    assert_true(result.score != 4711 && r.polls > 2);
    assert_int_equal(embedded_inflight(table), 0);
    search_free(&search);
    embedded_close(&table);
}

static void the_game_says_which_depths_are_searched(void **state)
{
    (void)state;
    static const struct {
        unsigned first, step, limit, count, depth[8];
    } schedules[] = {
        {1, 1, 5, 5, {1, 2, 3, 4, 5}}, {1, 2, 7, 4, {1, 3, 5, 7}}, {2, 2, 5, 3, {2, 4, 5}},
        {3, 1, 5, 3, {3, 4, 5}},       {6, 1, 4, 1, {4}},
    };
    for (unsigned i = 0; i < sizeof schedules / sizeof schedules[0]; i++) {
        struct game_search limits = *game_tree.search;
        struct game game = game_tree;
        limits.first_iteration = schedules[i].first;
        limits.iteration_step = schedules[i].step;
        game.search = &limits;
        struct run r = run_tree(&game, schedules[i].limit, 0);
        struct run plain = run_tree(&game_tree, schedules[i].limit, 0);
        assert_int_equal(r.iterations, schedules[i].count);
        assert_memory_equal(r.depth, schedules[i].depth, r.iterations * sizeof r.depth[0]);
        assert_int_equal(r.result.score, plain.result.score);
    }
}

static void the_game_says_how_wide_the_first_window_is(void **state)
{
    (void)state;
    static const int widths[] = {1, 10, 300};
    for (unsigned i = 0; i < 3; i++) {
        struct game_search limits = *game_tree.search;
        struct game game = game_tree;
        limits.aspiration_width = widths[i];
        limits.aspiration_depth = 2 + i;
        game.search = &limits;
        struct run r = run_tree(&game, TREE_DEPTH, 0);
        for (unsigned depth = 1; depth <= TREE_DEPTH; depth++) {
            int width = r.asked.beta[depth] - r.asked.alpha[depth];
            assert_int_equal(width, depth < 2 + i ? 2 * GAME_INFINITE : 2 * widths[i]);
        }
        assert_int_equal(r.result.score, run_tree(&game_tree, TREE_DEPTH, 0).result.score);
    }
}

/* ---- algorithms ---- */

/* A repetition of a position above the node, or a count, is no value of the position by another
 * path. A count is that is part of the key. */
static void a_draw_of_the_path_reaches_no_table(void **state)
{
    struct game game = game_tree, counting;
    (void)state;
    solve_plies(0);
    game.drawn = tree_drawn;
    counting = game;
    counting.counted_key = tree_counted_key;
    static const struct {
        unsigned drawn_as;
        bool is_kept, is_kept_with_count;
    } draws[] = {
        {DRAWN_PLY - 2, true, true},   {DRAWN_PLY, true, true}, /* the root itself */
        {DRAWN_PLY + 1, false, false}, {GAME_DRAWN_BY_COUNT, false, true},
        {GAME_DRAWN_HERE, true, true},
    };
    for (size_t i = 0; i < sizeof draws / sizeof draws[0]; i++) {
        drawn_as = draws[i].drawn_as;
        struct run r = run_with(&game, TREE_DEPTH, 0, NOT_COUNTED, false);
        assert_int_equal(r.result.score, 0);
        assert_int_equal(r.asked.drawn_stores > 0, draws[i].is_kept);
        r = run_with(&counting, TREE_DEPTH, 0, NOT_COUNTED, false);
        assert_int_equal(r.asked.drawn_stores > 0, draws[i].is_kept_with_count);
        r = run_with(&game, TREE_DEPTH, 0, NOT_COUNTED, true); /* strict: the game has no draws */
        assert_true(r.asked.drawn_stores > 0 && r.result.score != 0);
    }
    /* It is kept no deeper than the position that is repeated. */
    drawn_as = GAME_DRAWN_HERE;
    const unsigned all = run_with(&game, TREE_DEPTH, 0, NOT_COUNTED, false).asked.deep_stores;
    drawn_as = DRAWN_PLY - 2;
    const struct run r = run_with(&game, TREE_DEPTH, 0, NOT_COUNTED, false);
    assert_in_range(r.asked.deep_stores, 0, all / 2);
    drawn_as = 0;
}

/* It begins with the best of the last one, and its value is no more than that of all moves. */
static void a_stopped_iteration_gives_the_best_that_it_found(void **state)
{
    (void)state;
    struct run r = {.iterations = 0};
    unsigned improved = 0, same = 0;
    solve_plies(0);
    const struct run whole = run_with(&game_tree, TREE_DEPTH, 0, NOT_COUNTED, false);
    for (unsigned stop = 1; r.result.depth < TREE_DEPTH; stop++) {
        r = run_with(&game_tree, TREE_DEPTH, stop, NOT_COUNTED, false);
        if (r.result.unfinished > 0) {
            const unsigned best = r.move[r.iterations - 1];
            assert_int_equal(r.result.unfinished, r.result.depth + 1);
            assert_true(r.result.score <= (int)whole.score[r.iterations]);
            assert_int_equal(r.result.move, r.result.pv.move[0]);
            improved += r.result.move != best;
            same += r.result.move == best;
        }
        const struct run strict = run_with(&game_tree, TREE_DEPTH, stop, NOT_COUNTED, true);
        assert_int_equal(strict.result.unfinished, 0);
    }
    assert_true(improved > 0 && same > 0);
}

/* In a node with other searchers children take values from the table without a visit. */
static void a_child_that_is_a_draw_here_has_no_value_of_the_table(void **state)
{
    (void)state;
    struct game game = game_tree;
    solve_plies(0);
    planted = 500;
    assert_int_equal(run_with(&game, TREE_DEPTH, 0, 1, false).result.score, planted);
    game.drawn = tree_drawn_at_once;
    assert_int_equal(run_with(&game, TREE_DEPTH, 0, 1, false).result.score, 0);
    planted = 0;
}

static void the_algorithms_are_a_table(void **state)
{
    (void)state;
    char names[256];
    unsigned count = 0;
    char all[ALGORITHM_NAMES_MAX];
    snprintf(names, sizeof names, "%s", algorithm_names(all));
    for (char *rest = names, *name; (name = strtok_r(rest, ", ", &rest)) != NULL; count++) {
        const struct algorithm *a = algorithm_by_name(name);
        assert_non_null(a);
        assert_string_equal(a->name, name);
        assert_non_null(a->search_children);
        bool is_parallel = strcmp(name, "sequential") != 0;
        assert_int_equal(a->uses_searchers, is_parallel);
        assert_int_equal(a->uses_shards, is_parallel);
        assert_true(is_parallel || !a->counts_inflight);
    }
    assert_null(algorithm_at(count));
    assert_string_equal(all, ALGORITHM_NAMES);
    assert_null(algorithm_by_name("best"));
}

#define T(name) cmocka_unit_test(name)
int main(void)
{
    const struct CMUnitTest tests[] = {
        T(a_solver_takes_over_without_the_table),
        T(a_shared_ending_goes_through_the_table),
        T(a_selective_iteration_comes_before_the_exact_one),
        T(the_last_iteration_says_what_is_left),
        T(a_solved_root_has_its_best_move),
        T(a_solver_polls_and_can_be_stopped),
        T(a_solver_is_ended_by_an_abort),
        T(the_game_says_which_depths_are_searched),
        T(the_game_says_how_wide_the_first_window_is),
        T(a_draw_of_the_path_reaches_no_table),
        T(a_stopped_iteration_gives_the_best_that_it_found),
        T(a_child_that_is_a_draw_here_has_no_value_of_the_table),
        T(the_algorithms_are_a_table),
    };
    return cmocka_run_group_tests_name("search_game", tests, NULL, NULL);
}
