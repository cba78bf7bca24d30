#include "tests/support/test_tree.h"

#include <math.h>
#include <namespaces.h>

static void the_namespace_is_that_of_the_sources(void **state)
{
    (void)state;
    assert_true(game_tree.namespace_id == NAMESPACE_tree);
    assert_true(game_tree.namespace_id != NAMESPACE_chess);
}

/* ---- nodes ---- */

static void check_node(const struct tree_position *p, void *context)
{
    struct game_move list[GAME_MOVES_MAX];
    unsigned n = game_tree.generate(p, list);
    uint64_t seen[2] = {0};
    (void)context;
    for (unsigned i = 0; i < n; i++) {
        unsigned m = list[i].move;
        assert_in_range(m, 1, n);
        assert_false(seen[m / 64] >> (m % 64) & 1);
        seen[m / 64] |= UINT64_C(1) << (m % 64);
        assert_int_equal(list[i].flags, GAME_NOISY);
        assert_in_range(list[i].order, 1, 1000);
        struct tree_position copy = *p;
        game_tree.make(&copy, list[i].move);
        assert_true(abs(game_tree.evaluate(&copy)) < GAME_MATE_MIN);
        game_tree.unmake(&copy, list[i].move);
        assert_true(game_tree.key(&copy) == game_tree.key(p));
        assert_int_equal(game_tree.evaluate(&copy), game_tree.evaluate(p));
        assert_int_equal(game_tree.generate(&copy, list), n);
    }
    assert_int_equal(game_tree.finished(p), game_tree.evaluate(p));
    assert_true(p->ply < p->params.d || n == 0);
}

static void nodes_keep_the_rules_of_the_port(void **state)
{
    (void)state;
    struct tree_position p;
    for (unsigned i = 0; i < TEST_TREES; i++) {
        test_parse(&p, test_trees[i]);
        test_walk(&p, check_node, NULL);
    }
}

static void static_values_stay_within_their_bound(void **state)
{
    (void)state;
    static const char *const kinds[] = {"uniform", "bell", "tailed", "losses", "sharp"};
    struct game_move list[GAME_MOVES_MAX];
    uint64_t random = 4;
    struct tree_position p;
    for (unsigned k = 0; k < 200; k++) {
        char text[GAME_TEXT_MAX];
        snprintf(text, sizeof text, "tree:b=9,d=%u,seed=%u,range=299,edges=%s,t=%u", 60 + k % 41, k,
                 kinds[k % 5], k % 5 == 4 ? 1 : 1 + k / 5 % 5);
        test_parse(&p, text);
        /* As far from the middle as one can get: the best move of one side, the worst of the other.
         */
        for (unsigned n; (n = game_tree.generate(&p, list)) > 0;) {
            unsigned chosen = rng_below(&random, n);
            for (unsigned i = 0; i < n && k % 2 == 0; i++) {
                bool higher = list[i].order > list[chosen].order;
                chosen = higher == (p.ply % 2 == 0) ? i : chosen;
            }
            int before = game_tree.evaluate(&p);
            game_tree.make(&p, list[chosen].move);
            int change = abs(game_tree.evaluate(&p) + before);
            assert_true(abs(game_tree.evaluate(&p)) <= (int)p.ply * 299);
            assert_true(k % 5 == 4 || change <= (p.params.t == 1 ? 299 : 450));
        }
    }
}

static void the_same_text_is_the_same_tree(void **state)
{
    (void)state;
    struct tree_position p, q;
    test_parse(&p, test_trees[6]);
    memset(&q, 0xa5, sizeof q);
    test_parse(&q, test_trees[6]);
    assert_memory_equal(&p, &q, sizeof p);
    /* Fixed for ever: published figures and tests rest on it. */
    test_parse(&p, "tree:b=20,d=8,seed=1");
    game_tree.make(&p, 3);
    game_tree.make(&p, 20);
    uint64_t fingerprint = game_tree.key(&p) ^ (uint64_t)game_tree.evaluate(&p);
    if (fingerprint != UINT64_C(0x44a695fb33c93a72)) {
        fail_msg("the tree has changed: 0x%016llx", (unsigned long long)fingerprint);
    }
}

static void unlike_texts_share_no_keys(void **state)
{
    (void)state;
    static const char *const unlike[] = {
        "tree:",           "tree:b=19",        "tree:d=11",        "tree:seed=2",
        "tree:replies=19", "tree:edges=bell",  "tree:edges=sharp", "tree:shape=ranked",
        "tree:range=99",   "tree:order=99",    "tree:t=2",         "tree:ends=1",
        "tree:checks=1",   "tree:b=1,range=2", "tree:b=2,range=1", "tree:seed=0",
    };
    enum { UNLIKE = sizeof unlike / sizeof unlike[0] };
    struct tree_position p[UNLIKE];
    for (unsigned i = 0; i < UNLIKE; i++) {
        test_parse(&p[i], unlike[i]);
        for (unsigned j = 0; j < i; j++) {
            assert_true(game_tree.key(&p[i]) != game_tree.key(&p[j]));
            struct tree_position a = p[i], b = p[j];
            game_tree.make(&a, 1);
            game_tree.make(&b, 1);
            assert_true(game_tree.key(&a) != game_tree.key(&b));
        }
    }
}

static void order_leaves_the_values_alone(void **state)
{
    (void)state;
    struct tree_position p, q;
    test_parse(&p, "tree:b=20,d=5,seed=3,order=100");
    test_parse(&q, "tree:b=20,d=5,seed=3,order=10");
    for (uint16_t m = 1; m <= 5; m++) {
        game_tree.make(&p, m);
        game_tree.make(&q, m);
        assert_int_equal(game_tree.evaluate(&p), game_tree.evaluate(&q));
    }
    test_parse(&q, "tree:b=20,d=5,seed=4");
    unsigned differ = 0;
    for (uint16_t m = 1; m <= 20; m++) {
        struct tree_position a = p, b = q;
        a.ply = 0;
        game_tree.make(&a, m);
        game_tree.make(&b, m);
        differ += game_tree.evaluate(&a) != game_tree.evaluate(&b);
    }
    assert_true(differ > 15);
}

/* ---- shapes ---- */

struct census {
    uint64_t nodes, leaves, narrowest, widest, interior, early, checks;
};

static void count_node(const struct tree_position *p, void *context)
{
    struct census *c = context;
    unsigned width = tree_position_node(p)->width;
    c->nodes++;
    c->leaves += p->ply == p->params.d;
    c->checks += game_tree.check(p);
    if (p->ply > 0 && p->ply < p->params.d) {
        c->interior++;
        c->early += width == 0;
    }
    if (width > 0) {
        c->narrowest = c->narrowest == 0 || width < c->narrowest ? width : c->narrowest;
        c->widest = width > c->widest ? width : c->widest;
    }
}

static struct census census(const char *text)
{
    struct census c = {0};
    struct tree_position p;
    test_parse(&p, text);
    test_walk(&p, count_node, &c);
    return c;
}

static void a_uniform_tree_has_b_moves_everywhere(void **state)
{
    (void)state;
    struct census c = census("tree:b=5,d=6");
    assert_int_equal(c.leaves, test_power(5, 6));
    assert_int_equal(c.nodes, (test_power(5, 7) - 1) / 4);
    assert_int_equal(c.narrowest, 5);
    assert_int_equal(c.widest, 5);
    assert_int_equal(c.checks, 0);
    c = census("tree:b=5,replies=3,d=5");
    assert_int_equal(c.leaves, 5 * 3 * 5 * 3 * 5);
    c = census("tree:b=1,d=100");
    assert_int_equal(c.nodes, 101);
}

static void a_ranked_tree_has_every_width_and_the_same_leaves(void **state)
{
    (void)state;
    struct census c = census("tree:b=4,d=7,shape=ranked");
    assert_int_equal(c.leaves, test_power(4, 7));
    assert_int_equal(c.narrowest, 1);
    assert_int_equal(c.widest, 7);
    /* Hyatt's forced replies: the widths pass through the nodes without choice. */
    c = census("tree:b=4,d=10,replies=1,shape=ranked");
    assert_int_equal(c.leaves, test_power(4, 5));
    assert_int_equal(c.widest, 7);
    /* Full width at the root: its children have 1, 2, ..., in order. */
    struct tree_position p;
    test_parse(&p, "tree:b=4,d=3,shape=ranked");
    game_tree.make(&p, 4);
    unsigned parent = tree_position_node(&p)->width, last = 0;
    for (uint16_t m = 1; m <= parent; m++) {
        game_tree.make(&p, m);
        assert_true(tree_position_node(&p)->width > last);
        last = tree_position_node(&p)->width;
        game_tree.unmake(&p, m);
    }
}

static void a_varied_tree_has_b_moves_on_average(void **state)
{
    (void)state;
    double leaves = 0;
    for (unsigned seed = 1; seed <= 40; seed++) {
        char text[GAME_TEXT_MAX];
        snprintf(text, sizeof text, "tree:b=6,d=5,shape=varied,seed=%u", seed);
        struct census c = census(text);
        assert_int_equal(c.narrowest, 1);
        assert_int_equal(c.widest, 11);
        leaves += (double)c.leaves / 40;
    }
    assert_true(fabs(leaves / (double)test_power(6, 5) - 1) < 0.25);
}

static void ends_and_checks_come_as_often_as_given(void **state)
{
    (void)state;
    struct census c = census("tree:b=20,d=5,ends=30,checks=20");
    assert_true(fabs((double)c.early / (double)c.interior - 0.30) < 0.02);
    assert_true(fabs((double)c.checks / (double)c.nodes - 0.20) < 0.01);
}

/* ---- ordering ---- */

struct ranks {
    uint64_t nodes, first, quarter;
};

static void rank_best(const struct tree_position *p, void *context)
{
    struct ranks *r = context;
    struct game_move list[GAME_MOVES_MAX];
    unsigned n = game_tree.generate(p, list), best = 0, ahead = 0;
    int lowest = INT32_MAX;
    if (n == 0) {
        return;
    }
    struct tree_position copy = *p;
    for (unsigned i = 0; i < n; i++) {
        game_tree.make(&copy, list[i].move);
        if (game_tree.evaluate(&copy) < lowest) {
            lowest = game_tree.evaluate(&copy);
            best = i;
        }
        game_tree.unmake(&copy, list[i].move);
    }
    for (unsigned i = 0; i < n; i++) {
        ahead += list[i].order > list[best].order;
    }
    r->nodes++;
    r->first += ahead == 0;
    r->quarter += ahead < n / 4;
}

static void order_is_the_share_of_nodes_with_the_best_first(void **state)
{
    (void)state;
    static const unsigned orders[] = {100, 90, 70, 30, 1};
    static const char *const kinds[] = {"uniform", "losses", "sharp"};
    for (unsigned i = 0; i < 15; i++) {
        char text[GAME_TEXT_MAX];
        unsigned order = orders[i / 3];
        snprintf(text, sizeof text, "tree:b=40,d=3,order=%u,edges=%s,range=900", order,
                 kinds[i % 3]);
        struct ranks r = {0};
        struct tree_position p;
        test_parse(&p, text);
        test_walk(&p, rank_best, &r);
        double first = 100.0 * (double)r.first / (double)r.nodes;
        double quarter = 100.0 * (double)r.quarter / (double)r.nodes;
        assert_int_equal(r.nodes, 1 + 40 + 1600);
        assert_true(fabs(first - order) < 4);
        assert_true(order < 100 || first == 100);
        assert_true(order != 70 || quarter >= 89); /* strongly ordered */
    }
}

static void order_zero_lists_no_move_above_another(void **state)
{
    (void)state;
    struct tree_position p;
    struct game_move list[GAME_MOVES_MAX];
    test_parse(&p, "tree:b=40,order=0");
    assert_int_equal(game_tree.generate(&p, list), 40);
    for (unsigned i = 0; i < 40; i++) {
        assert_int_equal(list[i].order, list[0].order);
    }
}

/* ---- transpositions ---- */

/* What is known of a node by its key. */
struct known {
    uint64_t key;
    int value;
    unsigned width, order;
    bool check;
};

struct book {
    struct known *at;
    size_t count, room;
    unsigned ply; /* only nodes of this ply; UINT32_MAX: all */
};

static void note(const struct tree_position *p, void *context)
{
    struct book *b = context;
    struct game_move list[GAME_MOVES_MAX];
    if (b->ply != UINT32_MAX && p->ply != b->ply) {
        return;
    }
    unsigned n = game_tree.generate(p, list), order = p->ply;
    for (unsigned i = 0; i < n; i++) {
        order = order * 31 + (unsigned)list[i].order;
    }
    assert_true(b->count < b->room);
    b->at[b->count++] =
        (struct known){game_tree.key(p), game_tree.evaluate(p), n, order, game_tree.check(p)};
}

static int by_key(const void *a, const void *b)
{
    const struct known *x = a, *y = b;
    return x->key < y->key ? -1 : x->key > y->key;
}

/* Distinct keys of the tree; fails where one key has two meanings. */
static size_t distinct(const char *text, unsigned ply)
{
    struct book b = {.room = 1 << 18, .ply = ply};
    struct tree_position p;
    size_t n = 0;
    b.at = calloc(b.room, sizeof *b.at);
    assert_non_null(b.at);
    test_parse(&p, text);
    test_walk(&p, note, &b);
    qsort(b.at, b.count, sizeof *b.at, by_key);
    for (size_t i = 0; i < b.count; i++) {
        if (i > 0 && b.at[i].key == b.at[i - 1].key) {
            assert_int_equal(b.at[i].value, b.at[i - 1].value);
            assert_int_equal(b.at[i].width, b.at[i - 1].width);
            assert_int_equal(b.at[i].order, b.at[i - 1].order);
            assert_int_equal(b.at[i].check, b.at[i - 1].check);
        } else {
            n++;
        }
    }
    free(b.at);
    return n;
}

static void without_transpositions_every_node_is_another(void **state)
{
    (void)state;
    assert_int_equal(distinct("tree:b=5,d=6", UINT32_MAX), (test_power(5, 7) - 1) / 4);
    assert_int_equal(distinct("tree:b=3,d=9,shape=ranked,order=40", 9), test_power(3, 9));
}

/* The sets of k moves among n, repetition allowed. */
static size_t sets(unsigned n, unsigned k)
{
    size_t c = 1;
    for (unsigned i = 0; i < k; i++) {
        c = c * (n + i) / (i + 1);
    }
    return c;
}

static void moves_of_a_block_commute(void **state)
{
    (void)state;
    assert_int_equal(distinct("tree:b=4,d=4,t=2", 4), sets(4, 2) * sets(4, 2));
    assert_int_equal(distinct("tree:b=4,d=8,t=2", 8), test_power((unsigned)sets(4, 2), 4));
    assert_int_equal(distinct("tree:b=3,d=8,t=3,order=50", 6), sets(3, 3) * sets(3, 3));
    assert_int_equal(distinct("tree:b=3,d=8,t=3,order=50", 8), sets(3, 3) * sets(3, 3) * 9);
    assert_int_equal(distinct("tree:b=3,replies=2,d=9,t=16", 9), sets(3, 5) * sets(2, 4));
    assert_int_equal(distinct("tree:b=3,replies=2,d=9,t=4,edges=losses,checks=30", 8),
                     sets(3, 4) * sets(2, 4));
}

#define T(name) cmocka_unit_test(name)
int main(void)
{
    const struct CMUnitTest tests[] = {
        T(the_namespace_is_that_of_the_sources),
        T(nodes_keep_the_rules_of_the_port),
        T(static_values_stay_within_their_bound),
        T(the_same_text_is_the_same_tree),
        T(unlike_texts_share_no_keys),
        T(order_leaves_the_values_alone),
        T(a_uniform_tree_has_b_moves_everywhere),
        T(a_ranked_tree_has_every_width_and_the_same_leaves),
        T(a_varied_tree_has_b_moves_on_average),
        T(ends_and_checks_come_as_often_as_given),
        T(order_is_the_share_of_nodes_with_the_best_first),
        T(order_zero_lists_no_move_above_another),
        T(without_transpositions_every_node_is_another),
        T(moves_of_a_block_commute),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
