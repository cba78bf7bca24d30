/* One score whatever the algorithm and the number of searchers; and that searchers do keep apart.
 */
#include "tests/support/test_search.h"

static const char *const algorithms[] = {"sequential", "abdada", "abdada-paper", "shared-table"};

static uint64_t refused_or_deferred(const struct rig *rig)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < rig->searchers; i++) {
        sum += rig->searcher[i].counters.busy + rig->searcher[i].counters.deferred;
    }
    return sum;
}

#ifdef __SANITIZE_THREAD__
enum { DEEPER = 0 }; /* some ten times slower */
#else
enum { DEEPER = 1 };
#endif

/* Positions of Bratko and Kopec with small trees. */
static const struct {
    unsigned at, depth;
} chosen[] = {{0, 4 + DEEPER}, {1, 5 + DEEPER}, {6, 4 + DEEPER}};

static void one_score_whatever_the_algorithm_and_the_searchers(void **state)
{
    (void)state;
    static const unsigned searchers[] = {1, 2, 4};
    struct suite suite = test_positions();
    struct rig *oracle = oracle_open();
    for (unsigned p = 0; p < sizeof chosen / sizeof chosen[0]; p++) {
        const char *text = suite.at[chosen[p].at].position;
        unsigned depth = chosen[p].depth;
        rig_run_text(oracle, text, depth);
        int score = oracle->searcher[0].result.score;
        for (unsigned a = 0; a < 4; a++) {
            for (unsigned n = 0; n < 3; n++) {
                struct rig *rig = rig_open(algorithms[a], searchers[n], 2, RIG_BYTES);
                if (p % 2 == 0) {
                    rig_peek_directly(rig);
                }
                rig_run_text(rig, text, depth);
                rig_expect_score(rig, depth, score);
                rig_expect_best_moves(rig, oracle);
                rig_close(rig);
            }
        }
    }
    rig_close(oracle);
    suite_close(&suite);
}

static void a_table_that_forgets_changes_no_score(void **state)
{
    (void)state;
    struct suite suite = test_positions();
    struct rig *oracle = oracle_open();
    rig_run_text(oracle, suite.at[1].position, 4);
    for (unsigned a = 0; a < 4; a++) {
        struct rig *rig = rig_open(algorithms[a], 3, 1, 1 << 12);
        rig_run_text(rig, suite.at[1].position, 4);
        rig_expect_score(rig, 4, oracle->searcher[0].result.score);
        rig_close(rig);
    }
    rig_close(oracle);
    suite_close(&suite);
}

static void two_searchers_do_meet(void **state)
{
    (void)state;
    struct suite suite = test_positions();
    for (unsigned a = 1; a < 3; a++) {
        uint64_t met = 0;
        struct rig *rig = rig_open(algorithms[a], 2, 2, RIG_BYTES);
        for (unsigned i = 0; i < suite.count && met == 0; i++) {
            rig_run_text(rig, suite.at[i].position, 4);
            met += refused_or_deferred(rig);
        }
        assert_true(met > 0);
        rig_close(rig);
    }
    suite_close(&suite);
}

static void a_shared_table_alone_refuses_nobody(void **state)
{
    (void)state;
    struct suite suite = test_positions();
    struct rig *rig = rig_open("shared-table", 4, 2, RIG_BYTES);
    for (unsigned i = 0; i < 3; i++) {
        rig_run_text(rig, suite.at[i].position, 4);
        assert_int_equal(refused_or_deferred(rig), 0);
        for (unsigned d = 0; d < rig->searchers; d++) {
            assert_int_equal(rig->searcher[d].watch.busy, 0);
            assert_int_equal(rig->searcher[d].counters.peeks, 0);
        }
    }
    rig_close(rig);
    suite_close(&suite);
}

static void a_sequential_search_registers_nothing_in_flight(void **state)
{
    (void)state;
    struct suite suite = test_positions();
    struct rig *rig = rig_open("sequential", 1, 1, RIG_BYTES);
    rig_run_text(rig, suite.at[0].position, 4);
    assert_int_equal(rig->searcher[0].counters.busy + rig->searcher[0].counters.asks, 0);
    assert_int_equal(rig->searcher[0].counters.peeks, 0);
    rig_close(rig);
    suite_close(&suite);
}

static void one_searcher_repeats_itself_to_the_node(void **state)
{
    (void)state;
    struct suite suite = test_positions();
    uint64_t nodes[4];
    for (unsigned run = 0; run < 2; run++) {
        for (unsigned a = 0; a < 4; a++) {
            struct rig *rig = rig_open(algorithms[a], 1, 2, RIG_BYTES);
            rig_run_text(rig, suite.at[1].position, 4);
            assert_true(run == 0 || nodes[a] == rig->searcher[0].counters.nodes);
            nodes[a] = rig->searcher[0].counters.nodes;
            rig_close(rig);
        }
    }
    suite_close(&suite);
}

/* ---- other searchers that are not real ---- */

/* The slot after those of the rig's searchers has a node in flight, or leaves it. */
static void set_in_flight(struct rig *rig, uint64_t key, unsigned depth, bool in_flight)
{
    struct embedded_port slot = {
        .table = rig->table, .slot = (uint16_t)rig->searchers, .inflight_depth_max = 0};
    struct table_port port = embedded_table_port(&slot);
    struct table_ticket ticket = {0};
    struct tt_answer answer;
    struct tt_ask ask = {.key = key,
                         .alpha = -GAME_INFINITE,
                         .beta = GAME_INFINITE,
                         .depth = (uint8_t)depth,
                         .flags = TT_STRICT,
                         .slot = slot.slot};
    if (in_flight) {
        tt_pose(&port, &ask, &ticket, &answer);
        assert_int_equal(answer.verdict, TT_OPEN);
    } else {
        struct tt_release release = {key, (uint8_t)depth, slot.slot};
        port.release(port.self, &ticket, &release);
    }
}

/* As rig_run for one searcher, while another has a node in flight. */
static void run_beside(struct rig *rig, unsigned depth, uint64_t key, unsigned at_depth)
{
    struct rig_searcher *d = &rig->searcher[0];
    embedded_begin(&d->slot, 0, 0);
    set_in_flight(rig, key, at_depth, true);
    d->options.depth_limit = depth;
    d->watch.first_depth = depth;
    search_set_limits(d->search, &d->options, &d->env);
    search_set_position(d->search, rig->position);
    watch_begin(&d->watch, d->search);
    rig_slot(d);
    watch_end(&d->watch);
    assert_int_equal(embedded_inflight(rig->table), 1);
    set_in_flight(rig, key, at_depth, false);
    assert_int_equal(embedded_inflight(rig->table), 0);
}

static uint64_t last_open_at_ply_one(const struct watch *w)
{
    uint64_t last = 0;
    for (unsigned i = 0; i < w->first; i++) {
        if (w->first_answer[i].verdict == TT_OPEN) {
            last = w->first_key[i];
        }
    }
    return last;
}

/* Of a quiet position: every child has a new key, no checks, nobody cuts at the root. */
static void a_child_with_another_searcher_comes_last(void **state)
{
    (void)state;
    const struct game *game = test_game();
    static const char *const text = "4k3/p6p/8/8/8/8/P6P/4K3 w - - 0 1";
    enum { DEPTH = 3 };
    for (unsigned a = 1; a < 3; a++) {
        struct game_move list[GAME_MOVES_MAX];
        struct rig *rig = rig_open(algorithms[a], 1, 1, RIG_BYTES);
        test_parse(rig->position, text);
        unsigned moves = game->generate(rig->position, list);
        rig_run(rig, DEPTH);
        uint16_t best = rig->searcher[0].result.move;
        int score = rig->searcher[0].result.score;
        for (unsigned i = 0; i < moves; i++) {
            if (list[i].move == best) {
                continue;
            }
            game->make(rig->position, list[i].move);
            uint64_t key = game->key(rig->position);
            game->unmake(rig->position, list[i].move);
            embedded_clear(rig->table);
            run_beside(rig, DEPTH, key, DEPTH - 1);
            struct rig_searcher *d = &rig->searcher[0];
            assert_int_equal(d->result.score, score);
            assert_true(d->counters.deferred >= 1);
            assert_true(d->counters.helped >= 1 || d->counters.cuts > 0);
            assert_true(last_open_at_ply_one(&d->watch) == key);
        }
        rig_close(rig);
    }
}

/* The keys of the root's children in the order they were gone into. */
static unsigned opened_at_ply_one(const struct watch *w, uint64_t *key)
{
    unsigned n = 0;
    for (unsigned i = 0; i < w->first; i++) {
        if (w->first_answer[i].verdict == TT_OPEN && (n == 0 || key[n - 1] != w->first_key[i])) {
            key[n++] = w->first_key[i];
        }
    }
    return n;
}

/* Where peeks are answered at once, the siblings of a busy child come in their order, and each
 * choice peeks at no more than it and the free one; where answers may be out of date they are drawn
 * from all. Same position, and no other searcher is met before the last iteration. */
static void siblings_of_a_busy_child_keep_their_order_if_peeks_are_direct(void **state)
{
    (void)state;
    static const char *const text = "4k3/p6p/8/8/8/8/P6P/4K3 w - - 0 1";
    enum { DEPTH = 3, BUSY = 2 };
    uint64_t alone[WATCH_FIRST_ASKS], beside[WATCH_FIRST_ASKS], busy = 0;
    unsigned count = 0;
    for (unsigned run = 0; run < 3; run++) {
        struct rig *rig = rig_open("abdada", 1, 1, RIG_BYTES);
        struct rig_searcher *d = &rig->searcher[0];
        test_parse(rig->position, text);
        if (run < 2) {
            rig_peek_directly(rig);
        }
        if (run == 0) {
            d->watch.first_depth = DEPTH;
            rig_run(rig, DEPTH);
            count = opened_at_ply_one(&d->watch, alone);
            assert_in_range(count, BUSY + 4, WATCH_FIRST_ASKS);
            busy = alone[BUSY];
            memmove(&alone[BUSY], &alone[BUSY + 1], (count - BUSY - 1) * sizeof alone[0]);
            alone[count - 1] = busy;
        } else {
            run_beside(rig, DEPTH, busy, DEPTH - 1);
            assert_int_equal(opened_at_ply_one(&d->watch, beside), count);
            bool same = memcmp(alone, beside, count * sizeof alone[0]) == 0;
            assert_int_equal(same, run == 1);
            if (run == 1) { /* the last peek finds the busy one alone; one more in that one */
                assert_int_equal(d->counters.peeks, 2 * (count - BUSY - 1) + 2);
            }
        }
        rig_close(rig);
    }
}

static void lies_of_the_table_change_no_score_and_end(void **state)
{
    (void)state;
    static const unsigned percents[] = {10, 50, 90, 100};
    uint64_t seed = tt_seed();
    struct suite suite = test_positions();
    struct rig *oracle = oracle_open();
    rig_run_text(oracle, suite.at[1].position, 4);
    for (unsigned a = 1; a < 3; a++) {
        for (unsigned b = 0; b < 4; b++) {
            for (unsigned c = 0; c < 4; c += 3) {
                struct rig *rig = rig_open(algorithms[a], 1 + b % 2, 1, RIG_BYTES);
                for (unsigned d = 0; d < rig->searchers; d++) {
                    rig->searcher[d].watch.random = rng_next(&seed);
                    rig->searcher[d].watch.busy_percent = percents[b];
                    rig->searcher[d].watch.contended_percent = percents[c] % 100;
                }
                if (rng_below(&seed, 2) == 0) {
                    rig_peek_directly(rig);
                }
                rig_run_text(rig, suite.at[1].position, 4);
                rig_expect_score(rig, 4, oracle->searcher[0].result.score);
                uint64_t busy = 0; /* the first may have found all done */
                for (unsigned d = 0; d < rig->searchers; d++) {
                    busy += rig->searcher[d].counters.busy;
                }
                assert_true(busy > 0);
                rig_close(rig);
            }
        }
    }
    rig_close(oracle);
    suite_close(&suite);
}

#ifndef __SANITIZE_THREAD__ /* one thread */
/* Other searchers are reported everywhere and always: every child is deferred, and helped in the
 * end, whether peeks are waited for or not, sent ahead or refused, or answered at once. */
static void contention_everywhere_defers_but_never_spins(void **state)
{
    (void)state;
    struct suite suite = test_positions();
    struct rig *oracle = oracle_open();
    rig_run_text(oracle, suite.at[1].position, 4);
    for (unsigned i = 0; i < 13; i++) {
        struct rig *rig = rig_open("abdada", 1, 1, RIG_BYTES);
        struct watch *w = &rig->searcher[0].watch;
        w->contended_percent = 100;
        w->busy_percent = 100;
        w->ahead_percent = i / 2 % 3 * 50;
        if (i % 2 == 1) {
            rig_go_on(rig, i / 2 * 20);
        }
        if (i == 12) {
            rig_peek_directly(rig);
        } else if (i >= 6) {
            rig_peek_near(rig);
        }
        rig_run_text(rig, suite.at[1].position, 4);
        rig_expect_score(rig, 4, oracle->searcher[0].result.score);
        rig_close(rig);
    }
    rig_close(oracle);
    suite_close(&suite);
}
#endif

/* Who does not wait searches another child while a peek is under way, however long that takes, but
 * for one who was refused twice by all that are left. What comes is used. */
static void a_search_that_goes_on_waits_for_no_peek(void **state)
{
    (void)state;
    struct suite suite = test_positions();
    struct rig *oracle = oracle_open();
    rig_run_text(oracle, suite.at[1].position, 4);
    for (unsigned i = 0; i < 6; i++) {
        const unsigned under_way_percent = i % 3 * 50;
        struct rig *rig = rig_open("abdada", 1, 1, RIG_BYTES);
        struct watch *w = &rig->searcher[0].watch;
        struct game_move list[GAME_MOVES_MAX];
        w->contended_percent = w->ahead_percent = 100;
        rig_go_on(rig, under_way_percent);
        if (i >= 3) {
            rig_peek_near(rig);
        }
        test_parse(rig->position, suite.at[1].position);
        test_game()->generate(rig->position, list);
        test_game()->make(rig->position, list[0].move);
        uint64_t key = test_game()->key(rig->position);
        test_game()->unmake(rig->position, list[0].move);
        run_beside(rig, 4, key, 3);
        rig_expect_score(rig, 4, oracle->searcher[0].result.score);
        assert_true(2 * w->waited <= w->busy && w->busy < 16);
        assert_true(w->ahead > 0 || under_way_percent == 100);
        assert_int_equal(w->near > 0, i >= 3);
        rig_close(rig);
    }
    rig_close(oracle);
    suite_close(&suite);
}

/* Where another thread of this host is in a child, that one comes last, whatever the shards say. */
static void a_child_with_a_searcher_of_this_host_comes_last(void **state)
{
    (void)state;
    const struct game *game = test_game();
    static const char *const text = "4k3/p6p/8/8/8/8/P6P/4K3 w - - 0 1";
    enum { DEPTH = 3 };
    struct game_move list[GAME_MOVES_MAX];
    struct rig *rig = rig_open("abdada", 1, 1, RIG_BYTES);
    struct rig_searcher *d = &rig->searcher[0];
    rig_go_on(rig, 100);
    rig_peek_near(rig);
    d->watch.ahead_percent = 100;
    test_parse(rig->position, text);
    unsigned moves = game->generate(rig->position, list);
    rig_run(rig, DEPTH);
    uint16_t best = d->result.move;
    for (unsigned i = 0; i < moves; i++) {
        if (list[i].move == best) {
            continue;
        }
        game->make(rig->position, list[i].move);
        uint64_t key = game->key(rig->position);
        game->unmake(rig->position, list[i].move);
        embedded_clear(rig->table);
        run_beside(rig, DEPTH, key, DEPTH - 1);
        assert_true(last_open_at_ply_one(&d->watch) == key);
        assert_true(2 * d->watch.waited <= d->watch.busy);
        assert_in_range(d->watch.busy, 1, 3); /* by the first it learns that there are others */
    }
    rig_close(rig);
}

static void what_searchers_store_is_true(void **state)
{
    (void)state;
    uint64_t seed = tt_seed();
    struct suite suite = test_positions();
    struct rig *oracle = oracle_open();
    unsigned seen = 0;
    for (unsigned a = 1; a < 4; a++) {
        struct rig *rig = rig_open(algorithms[a], 3, 1, RIG_BYTES);
        for (unsigned d = 0; d < rig->searchers; d++) {
            rig->searcher[d].watch.random = rng_next(&seed);
            rig->searcher[d].watch.busy_percent = a < 3 ? 20 : 0;
            rig->searcher[d].watch.sample_every = 40;
            rig->searcher[d].watch.sample_depth_max = 3;
        }
        rig_run_text(rig, suite.at[a].position, 4);
        seen += rig_expect_true_samples(rig, oracle);
        rig_close(rig);
    }
    assert_true(seen > 50);
    rig_close(oracle);
    suite_close(&suite);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_score_whatever_the_algorithm_and_the_searchers),
        cmocka_unit_test(a_table_that_forgets_changes_no_score),
        cmocka_unit_test(two_searchers_do_meet),
        cmocka_unit_test(a_shared_table_alone_refuses_nobody),
        cmocka_unit_test(a_sequential_search_registers_nothing_in_flight),
        cmocka_unit_test(one_searcher_repeats_itself_to_the_node),
        cmocka_unit_test(a_child_with_another_searcher_comes_last),
        cmocka_unit_test(siblings_of_a_busy_child_keep_their_order_if_peeks_are_direct),
        cmocka_unit_test(lies_of_the_table_change_no_score_and_end),
#ifndef __SANITIZE_THREAD__
        cmocka_unit_test(contention_everywhere_defers_but_never_spins),
#endif
        cmocka_unit_test(a_search_that_goes_on_waits_for_no_peek),
        cmocka_unit_test(a_child_with_a_searcher_of_this_host_comes_last),
        cmocka_unit_test(what_searchers_store_is_true),
    };
    return cmocka_run_group_tests_name("search_parallel", tests, NULL, NULL);
}
