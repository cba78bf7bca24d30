#include "tests/support/test_tree.h"
#include "worker/games/games.h"
#include "worker/search/handover/algorithms.h"
#include "worker/search/search.h"
#include "worker/table/embedded.h"

/* The game with its leaves counted: one thread, one search at a time. */
static struct {
    unsigned ply;
    uint64_t visited;
} leaves;

static int counting_evaluate(const void *position)
{
    const struct tree_position *p = position;
    leaves.visited += p->ply == leaves.ply;
    return game_tree.evaluate(position);
}

static bool never_stop(void *self, struct search *search)
{
    (void)self;
    (void)search;
    return false;
}

struct run {
    int score[TREE_DEPTH_MAX + 1]; /* by iteration */
    uint64_t leaves[TREE_DEPTH_MAX + 1]; /* at its own depth */
    uint64_t nodes;
};

static void note_iteration(void *context, const struct search_result *result,
                           const struct counters *counters)
{
    struct run *r = context;
    if (result->bound != TT_EXACT) {
        return;
    }
    r->score[result->depth] = result->score;
    r->leaves[result->depth] = leaves.visited;
    r->nodes = counters->nodes;
    leaves.visited = 0;
    leaves.ply = result->depth + 1;
}

static struct run search_tree(const char *text, const char *algorithm, unsigned depth)
{
    struct game game = game_tree;
    struct embedded *table = NULL;
    struct search *search = NULL;
    struct search_result result;
    struct tree_position p;
    struct run r = {0};

    game.evaluate = counting_evaluate;
    test_parse(&p, text);
    assert_int_equal(embedded_open(&table, 16 << 20, 1), ERR_OK);
    struct embedded_port port = {.table = table, .inflight_depth_max = 1};
    struct table_port slot = embedded_table_port(&port);
    struct env_port env = {.poll = never_stop};
    struct search_options options = {.game = &game,
                                     .algorithm = algorithm_by_name(algorithm),
                                     .strict = true,
                                     .depth_limit = depth};
    assert_int_equal(search_open(&search, &options, &slot, &env), ERR_OK);
    search_set_position(search, &p);
    leaves.visited = 0;
    leaves.ply = 1;
    search_run(search, note_iteration, &r, &result);
    assert_int_equal(result.depth, depth);
    assert_int_equal(embedded_inflight(table), 0);
    search_free(&search);
    embedded_close(&table);
    return r;
}

/* Minimax without anything: no table, no pruning, no ordering. */
static int brute(struct tree_position *p, int depth)
{
    struct game_move list[GAME_MOVES_MAX];
    unsigned n = depth <= 0 ? 0 : game_tree.generate(p, list);
    int best = -GAME_INFINITE;
    if (n == 0) {
        return game_tree.evaluate(p);
    }
    for (unsigned i = 0; i < n; i++) {
        game_tree.make(p, list[i].move);
        int value = -brute(p, depth - 1 + (game_tree.check(p) ? 1 : 0));
        game_tree.unmake(p, list[i].move);
        best = value > best ? value : best;
    }
    return best;
}

static void strict_scores_are_the_minimax_values(void **state)
{
    (void)state;
    static const char *const trees[] = {
        "tree:b=4,d=6,seed=%u",
        "tree:b=5,d=5,seed=%u,edges=bell,order=40",
        "tree:b=4,d=6,seed=%u,edges=tailed,range=900,order=0",
        "tree:b=4,d=6,seed=%u,edges=losses,order=70",
        "tree:b=4,d=6,seed=%u,edges=sharp,order=20",
        "tree:b=3,d=7,seed=%u,shape=ranked",
        "tree:b=3,d=9,seed=%u,shape=varied,ends=10,checks=15,range=1",
        "tree:b=4,d=8,seed=%u,replies=1,shape=ranked",
        "tree:b=3,d=8,seed=%u,t=2",
        "tree:b=3,d=8,seed=%u,t=4,edges=tailed,ends=5,checks=10,order=50,range=7",
        "tree:b=3,d=8,seed=%u,t=2,edges=losses,order=30",
    };
    static const char *const algorithms[] = {"sequential", "shared-table", "abdada-paper",
                                             "abdada"};
    for (unsigned i = 0; i < 6 * sizeof trees / sizeof trees[0]; i++) {
        char text[GAME_TEXT_MAX];
        struct tree_position p;
        snprintf(text, sizeof text, trees[i / 6], i + 1);
        test_parse(&p, text);
        /* With checks the tree is searched to less than its depth; else beyond it. */
        unsigned depth = p.params.checks > 0 ? 6 : (unsigned)p.params.d + 1;
        struct run r = search_tree(text, algorithms[i % 4], depth);
        for (unsigned d = 1; d <= depth; d++) {
            int expected = brute(&p, (int)d);
            if (r.score[d] != expected) {
                fail_msg("%s with %s, depth %u: %d, not %d", text, algorithms[i % 4], d, r.score[d],
                         expected);
            }
        }
    }
}

static void losses_and_sharp_have_their_static_value(void **state)
{
    (void)state;
    static const char *const trees[] = {"tree:b=5,d=6,edges=losses,order=10",
                                        "tree:b=5,d=6,edges=sharp,order=10",
                                        "tree:b=5,d=6,edges=losses,t=3"};
    uint64_t random = 1;
    for (unsigned i = 0; i < 90; i++) {
        struct tree_position p;
        test_parse(&p, trees[i % 3]);
        for (unsigned ply = 0; ply < i % 6; ply++) {
            game_tree.make(&p, (uint16_t)(1 + rng_below(&random, 5)));
        }
        for (int depth = 1; depth <= 6 - (int)p.ply; depth++) {
            assert_int_equal(brute(&p, depth), game_tree.evaluate(&p));
        }
    }
}

/* Knuth and Moore 1975: leaves that every alpha-beta search must see; at each depth above, too. */
static uint64_t minimal_leaves(unsigned b, unsigned d)
{
    return test_power(b, d / 2) + test_power(b, (d + 1) / 2) - 1;
}

static void perfect_order_visits_the_minimal_tree(void **state)
{
    (void)state;
    static const unsigned size[][2] = {{20, 4}, {20, 5}, {5, 8}, {3, 11}, {40, 3}, {2, 14}};
    static const char *const kinds[] = {"losses", "sharp"};
    for (unsigned i = 0; i < 12; i++) {
        char text[GAME_TEXT_MAX];
        unsigned b = size[i / 2][0], d = size[i / 2][1];
        snprintf(text, sizeof text, "tree:b=%u,d=%u,seed=%u,edges=%s", b, d, i, kinds[i % 2]);
        struct run r = search_tree(text, i % 3 ? "abdada" : "sequential", d);
        uint64_t nodes = 0;
        for (unsigned depth = 1; depth <= d; depth++) {
            assert_int_equal(r.leaves[depth], minimal_leaves(b, depth));
            for (unsigned level = 0; level <= depth; level++) {
                nodes += minimal_leaves(b, level);
            }
        }
        assert_int_equal(r.nodes, nodes);
    }
}

static void worse_order_costs_more(void **state)
{
    (void)state;
    static const unsigned orders[] = {100, 90, 70, 40, 0};
    static const double at_least[] = {1, 1.1, 1.4, 1.8, 3};
    uint64_t before = 0;
    for (unsigned i = 0; i < 5; i++) {
        uint64_t visited = 0;
        for (unsigned seed = 1; seed <= 5; seed++) {
            char text[GAME_TEXT_MAX];
            snprintf(text, sizeof text, "tree:b=14,d=6,seed=%u,edges=sharp,order=%u", seed,
                     orders[i]);
            visited += search_tree(text, "sequential", 6).leaves[6];
        }
        assert_true(visited > before);
        assert_true((double)visited >= at_least[i] * 5 * (double)minimal_leaves(14, 6));
        before = visited;
    }
}

/* Hyatt's minimax trees: nothing to prune where one side has no choice. */
static void forced_replies_leave_nothing_to_prune(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 10; i++) {
        char text[GAME_TEXT_MAX];
        snprintf(text, sizeof text, "tree:b=6,replies=1,d=8,seed=%u,edges=losses,shape=%s", i,
                 i % 2 ? "ranked" : "uniform");
        struct run r = search_tree(text, "sequential", 8);
        assert_int_equal(r.leaves[8], test_power(6, 4));
    }
}

static void the_game_is_known_by_name(void **state)
{
    (void)state;
    assert_ptr_equal(games_by_name("tree"), &game_tree);
    assert_non_null(strstr(games_names(), "tree"));
    assert_null(games_by_name("tre"));
}

#define T(name) cmocka_unit_test(name)
int main(void)
{
    const struct CMUnitTest tests[] = {
        T(strict_scores_are_the_minimax_values),  T(losses_and_sharp_have_their_static_value),
        T(perfect_order_visits_the_minimal_tree), T(worse_order_costs_more),
        T(forced_replies_leave_nothing_to_prune), T(the_game_is_known_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
