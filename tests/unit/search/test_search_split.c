/* Searches that begin at any node, and are narrowed or aborted by the id of their split point. */
#include "tests/support/test_search_split.h"

static void a_split_has_the_value_of_a_whole_search_of_its_node(void **state)
{
    (void)state;
    uint64_t random = tt_seed();
    struct suite suite = test_positions();
    struct rig *oracle = oracle_open();
    for (unsigned i = 0; i < 8; i++) {
        const char *text = suite.at[i].position;
        struct place place = place_below(text, &random);
        struct rig *rig = rig_open(algorithms[i % 4], 1, 1, RIG_BYTES);
        int expected = oracle_value(oracle, place.position, DEPTH), value = 0;
        assert_int_equal(run_split(rig, text, &place, -GAME_INFINITE, GAME_INFINITE, &value),
                         SEARCH_VALUE);
        assert_int_equal(value, expected);
        const struct search_result *result = &rig->searcher[0].result;
        assert_true(result->depth == DEPTH && result->pv.length > 0 && result->move != 0);
        assert_int_equal(result->pv.move[0], result->move);
        assert_int_equal(known_of(rig, &place).move, result->move);
        assert_int_equal(search_iteration(rig->searcher[0].search), DEPTH + PATH);
        assert_int_equal(run_split(rig, text, &place, expected - 1, expected + 1, &value),
                         SEARCH_VALUE);
        assert_int_equal(value, expected);
        assert_int_equal(run_split(rig, text, &place, expected, expected + 20, &value),
                         SEARCH_VALUE);
        assert_int_equal(value, expected);
        assert_int_equal(run_split(rig, text, &place, expected + 10, expected + 20, &value),
                         SEARCH_VALUE);
        assert_in_range(value - expected, 0, 10);
        assert_int_equal(run_split(rig, text, &place, expected - 20, expected - 10, &value),
                         SEARCH_VALUE);
        assert_in_range(expected - value, 0, 10);
        rig_close(rig);
        free(place.position);
    }
    rig_close(oracle);
    suite_close(&suite);
}

/* ---- narrow ---- */

/* At the poll number `at`, and with `percent` at each later one. */
struct narrowing {
    unsigned at, percent;
    int to, low, high; /* `to`, or at random between low and high */
    int beta; /* 0: as it is */
    int alpha; /* the highest so far that was inside the window */
    uint64_t random;
    uint64_t id;
};

static void narrow_now(struct rig_searcher *d)
{
    struct narrowing *c = d->context;
    if (d->polls != c->at && (d->polls < c->at || !tt_chance(&c->random, c->percent))) {
        return;
    }
    int alpha = c->percent == 0
                    ? c->to
                    : c->low + (int)rng_below(&c->random, (uint32_t)(c->high - c->low + 1));
    search_narrow(d->search, c->id, alpha, c->beta != 0 ? c->beta : GAME_INFINITE);
    c->alpha = alpha > c->alpha ? alpha : c->alpha;
}

static struct rig *narrowed_rig(const char *algorithm, struct narrowing *c)
{
    struct rig *rig = rig_open(algorithm, 1, 1, RIG_BYTES);
    struct rig_searcher *d = &rig->searcher[0];
    d->options.poll_nodes = 16;
    d->meddle = narrow_now;
    d->context = c;
    d->watch.may_unwind = d->watch.narrows = true;
    return rig;
}

static void narrowing_ends_a_split_early_with_a_right_bound(void **state)
{
    (void)state;
    uint64_t random = tt_seed(), whole = 0, narrowed = 0;
    struct suite suite = test_positions();
    struct rig *oracle = oracle_open();
    for (unsigned i = 0; i < 8; i++) {
        const char *text = suite.at[i].position;
        struct place place = place_below(text, &random);
        struct narrowing c = {.id = ID, .at = UINT32_MAX};
        struct rig *rig = narrowed_rig(algorithms[i % 4], &c);
        int expected = oracle_value(oracle, place.position, DEPTH), value = 0;
        run_split(rig, text, &place, -GAME_INFINITE, GAME_INFINITE, &value);
        whole += rig->searcher[0].counters.nodes;
        c.at = 5;
        c.to = expected + 50;
        assert_int_equal(run_split(rig, text, &place, -GAME_INFINITE, GAME_INFINITE, &value),
                         SEARCH_VALUE);
        narrowed += rig->searcher[0].counters.nodes;
        assert_in_range(value - expected, 0, 50);
        struct tt_peeked seen = known_of(rig, &place);
        assert_int_equal(seen.upper, value);
        assert_true(seen.lower <= expected);
        rig_close(rig);
        free(place.position);
    }
    assert_true(narrowed < whole);
    rig_close(oracle);
    suite_close(&suite);
}

static void narrowing_below_the_value_changes_no_value(void **state)
{
    (void)state;
    uint64_t random = tt_seed();
    struct suite suite = test_positions();
    struct rig *oracle = oracle_open();
    for (unsigned i = 0; i < 48 / TSAN_SEES_ONE_OF; i++) {
        const char *text = suite.at[i % 8].position;
        struct place place = place_below(text, &random);
        int expected = oracle_value(oracle, place.position, DEPTH), value = 0;
        struct narrowing c = {.id = ID,
                              .at = 1 + rng_below(&random, 30),
                              .percent = 20,
                              .low = expected - 100,
                              .high = expected + (i % 2 ? 30 : -1),
                              .alpha = -GAME_INFINITE,
                              .random = rng_next(&random)};
        struct rig *rig = narrowed_rig(algorithms[i % 4], &c);
        assert_int_equal(run_split(rig, text, &place, -GAME_INFINITE, GAME_INFINITE, &value),
                         SEARCH_VALUE);
        if (expected > c.alpha) {
            assert_int_equal(value, expected);
        } else {
            assert_in_range(value - expected, 0, c.alpha - expected);
        }
        rig_close(rig);
        free(place.position);
    }
    rig_close(oracle);
    suite_close(&suite);
}

static void narrowing_to_nothing_aborts(void **state)
{
    (void)state;
    uint64_t random = tt_seed();
    struct suite suite = test_positions();
    struct place place = place_below(suite.at[0].position, &random);
    struct narrowing c = {.id = ID, .at = 4, .to = 200};
    struct rig *rig = narrowed_rig("abdada", &c);
    int value = 4711;
    assert_int_equal(run_split(rig, suite.at[0].position, &place, -3000, 200, &value),
                     SEARCH_ABORTED);
    assert_int_equal(value, 4711);
    rig_close(rig);
    free(place.position);
    suite_close(&suite);
}

static void no_more_than_before_or_another_id_changes_nothing(void **state)
{
    (void)state;
    uint64_t random = tt_seed(), nodes = 0;
    struct suite suite = test_positions();
    struct place place = place_below(suite.at[2].position, &random);
    for (unsigned i = 0; i < 3; i++) {
        struct narrowing c = {
            .id = i == 1 ? ID + 1 : ID, .at = i == 0 ? UINT32_MAX : 3, .to = i == 1 ? 500 : -3000};
        struct rig *rig = narrowed_rig("abdada", &c);
        int value = 0;
        assert_int_equal(run_split(rig, suite.at[2].position, &place, -3000, 3000, &value),
                         SEARCH_VALUE);
        assert_true(i == 0 || rig->searcher[0].counters.nodes == nodes);
        nodes = rig->searcher[0].counters.nodes;
        rig_close(rig);
    }
    free(place.position);
    suite_close(&suite);
}

/* No oracle for its score; but the rules of the table hold. */
static void full_selection_is_narrowed_too(void **state)
{
    (void)state;
    uint64_t random = tt_seed();
    struct suite suite = test_positions();
    for (unsigned i = 0; i < 16 / TSAN_SEES_ONE_OF; i++) {
        const char *text = suite.at[i].position;
        struct place place = place_below(text, &random);
        struct narrowing c = {.id = ID,
                              .at = 1 + rng_below(&random, 30),
                              .percent = 20,
                              .low = -300,
                              .high = 300,
                              .random = rng_next(&random)};
        struct rig *rig = narrowed_rig("abdada", &c);
        int value = 0;
        rig->searcher[0].options.strict = false;
        rig->searcher[0].options.full = true;
        rig->searcher[0].watch.prunes = true;
        assert_int_equal(run_split(rig, text, &place, -GAME_INFINITE, GAME_INFINITE, &value),
                         SEARCH_VALUE);
        rig_close(rig);
        free(place.position);
    }
    suite_close(&suite);
}

static void narrowing_from_above_ends_a_split_early_with_a_right_bound(void **state)
{
    (void)state;
    uint64_t random = tt_seed(), whole = 0, narrowed = 0;
    struct suite suite = test_positions();
    struct rig *oracle = oracle_open();
    for (unsigned i = 0; i < 8; i++) {
        const char *text = suite.at[i].position;
        struct place place = place_below(text, &random);
        struct narrowing c = {.id = ID, .at = UINT32_MAX};
        struct rig *rig = narrowed_rig(algorithms[i % 4], &c);
        int expected = oracle_value(oracle, place.position, DEPTH), value = 0;
        run_split(rig, text, &place, -GAME_INFINITE, GAME_INFINITE, &value);
        whole += rig->searcher[0].counters.nodes;
        c.at = 5;
        c.to = -GAME_INFINITE;
        c.beta = expected - 50;
        assert_int_equal(run_split(rig, text, &place, -GAME_INFINITE, GAME_INFINITE, &value),
                         SEARCH_VALUE);
        narrowed += rig->searcher[0].counters.nodes;
        assert_in_range(expected - value, 0, 50);
        struct tt_peeked seen = known_of(rig, &place);
        assert_true(seen.lower == value && seen.upper >= expected);
        rig_close(rig);
        free(place.position);
    }
    assert_true(narrowed < whole);
    rig_close(oracle);
    suite_close(&suite);
}

/* Narrows the split to end at its best value so far, once it has one. */
static void narrow_to_best(struct rig_searcher *d)
{
    struct narrowing *c = d->context;
    const struct node *n = &d->search->node[d->search->start_ply];
    if (c->beta == 0 && d->polls >= c->at && n->has_children && n->best > -GAME_INFINITE) {
        c->beta = n->best;
        c->at = d->polls;
        search_narrow(d->search, ID, -GAME_INFINITE, n->best);
    }
}

static void a_best_value_that_beta_falls_to_ends_the_split(void **state)
{
    (void)state;
    uint64_t random = tt_seed();
    struct suite suite = test_positions();
    struct rig *oracle = oracle_open();
    for (unsigned i = 0; i < 12; i++) {
        const char *text = suite.at[i].position;
        struct place place = place_below(text, &random);
        struct narrowing c = {.at = 1 + rng_below(&random, 100)};
        struct rig *rig = narrowed_rig(algorithms[i % 4], &c);
        struct rig_searcher *d = &rig->searcher[0];
        int expected = oracle_value(oracle, place.position, DEPTH), value = 0;
        d->meddle = narrow_to_best;
        d->options.poll_nodes = 4;
        assert_int_equal(run_split(rig, text, &place, -GAME_INFINITE, GAME_INFINITE, &value),
                         SEARCH_VALUE);
        assert_true(c.beta != 0 && d->polls == c.at);
        assert_true(value >= c.beta && value <= expected);
        assert_int_equal(known_of(rig, &place).lower, value);
        rig_close(rig);
        free(place.position);
    }
    rig_close(oracle);
    suite_close(&suite);
}

/* What the table proved is the window's end; what falls on it is exact. */
static void a_value_on_a_proved_bound_is_exact(void **state)
{
    (void)state;
    uint64_t random = tt_seed();
    struct suite suite = test_positions();
    struct rig *oracle = oracle_open();
    for (unsigned i = 0; i < 8; i++) {
        const char *text = suite.at[i].position;
        struct place place = place_below(text, &random);
        struct rig *rig = rig_open(algorithms[i % 4], 1, 1, RIG_BYTES);
        int expected = oracle_value(oracle, place.position, DEPTH), value = 0;
        struct tt_store bound = tt_result(place.key, DEPTH, i / 4 ? TT_UPPER : TT_LOWER, expected,
                                          oracle->searcher[0].result.move);
        embedded_put(&rig->searcher[0].slot, &bound);
        assert_int_equal(run_split_again(rig, text, &place, -GAME_INFINITE, GAME_INFINITE, &value),
                         SEARCH_VALUE);
        assert_int_equal(value, expected);
        struct tt_peeked seen = known_of(rig, &place);
        assert_true(seen.lower == expected && seen.upper == expected);
        const struct tt_store *stored = &rig->searcher[0].watch.last_store;
        assert_true(stored->key == place.key && stored->bound == TT_EXACT && stored->move != 0);
        rig_close(rig);
        free(place.position);
    }
    rig_close(oracle);
    suite_close(&suite);
}

static void name_nothing(struct rig_searcher *d)
{
    search_abort(d->search, 0);
    search_narrow(d->search, 0, 0, 1);
}

static void split_id_0_is_no_node(void **state)
{
    (void)state;
    struct suite suite = test_positions();
    uint64_t nodes = 0;
    for (unsigned i = 0; i < 2; i++) {
        struct rig *rig = rig_open("abdada", 1, 1, RIG_BYTES);
        rig->searcher[0].meddle = i == 1 ? name_nothing : NULL;
        rig_run_text(rig, suite.at[1].position, 5);
        assert_int_equal(rig->searcher[0].result.depth, 5);
        assert_true(i == 0 || rig->searcher[0].counters.nodes == nodes);
        nodes = rig->searcher[0].counters.nodes;
        rig_close(rig);
    }
    suite_close(&suite);
}

/* ---- abort ---- */

struct aborting {
    unsigned at;
    uint64_t id;
    unsigned open; /* nodes that were open then */
    uint64_t stores;
};

static void abort_now(struct rig_searcher *d)
{
    struct aborting *c = d->context;
    if (d->polls == c->at) {
        search_abort(d->search, c->id);
        c->open = d->watch.open;
        c->stores = d->watch.stores;
    }
}

static void an_aborted_split_leaves_nothing_and_stores_nothing(void **state)
{
    (void)state;
    uint64_t random = tt_seed();
    struct suite suite = test_positions();
    struct rig *oracle = oracle_open();
    for (unsigned i = 0; i < 40 / TSAN_SEES_ONE_OF; i++) {
        const char *text = suite.at[i % 8].position;
        struct place place = place_below(text, &random);
        struct aborting c = {.at = 1 + rng_below(&random, 40), .id = ID};
        struct rig *rig = rig_open(algorithms[i % 4], 1, 1, RIG_BYTES);
        struct rig_searcher *d = &rig->searcher[0];
        int expected = oracle_value(oracle, place.position, DEPTH), value = 4711;
        d->options.poll_nodes = 8;
        d->meddle = abort_now;
        d->context = &c;
        d->watch.may_unwind = true;
        assert_int_equal(run_split(rig, text, &place, -GAME_INFINITE, GAME_INFINITE, &value),
                         SEARCH_ABORTED);
        assert_int_equal(value, 4711);
        /* The game may be over at the node that polls: its value is known, and stored. */
        assert_in_range(d->watch.stores - c.stores, 0, 1);
        assert_in_range(d->watch.releases, c.open - 1, c.open);
        struct tt_peeked seen = known_of(rig, &place);
        assert_true(seen.lower == TT_SCORE_MIN && seen.upper == TT_SCORE_MAX);
        assert_int_equal(d->polls, c.at);
        c.id = ID + 1;
        assert_int_equal(run_split(rig, text, &place, -GAME_INFINITE, GAME_INFINITE, &value),
                         SEARCH_VALUE);
        assert_int_equal(value, expected);
        rig_close(rig);
        free(place.position);
    }
    rig_close(oracle);
    suite_close(&suite);
}

/* A child is to be searched again in a new window, but then its parent is not wanted any more. */
static void narrow_and_abort(struct rig_searcher *d)
{
    if (d->polls == 9) {
        search_narrow(d->search, ID, -3000, 3000);
        search_abort(d->search, ID);
    }
}

static void a_split_that_is_narrowed_and_then_aborted_is_aborted(void **state)
{
    (void)state;
    uint64_t random = tt_seed();
    struct suite suite = test_positions();
    for (unsigned i = 0; i < 4; i++) {
        struct place place = place_below(suite.at[i].position, &random);
        struct rig *rig = rig_open(algorithms[i], 1, 1, RIG_BYTES);
        int value = 4711;
        rig->searcher[0].options.poll_nodes = 8;
        rig->searcher[0].meddle = narrow_and_abort;
        rig->searcher[0].watch.may_unwind = true;
        assert_int_equal(
            run_split(rig, suite.at[i].position, &place, -GAME_INFINITE, GAME_INFINITE, &value),
            SEARCH_ABORTED);
        assert_int_equal(value, 4711);
        rig_close(rig);
        free(place.position);
    }
    suite_close(&suite);
}

static void a_stopped_split_says_so(void **state)
{
    (void)state;
    uint64_t random = tt_seed();
    struct suite suite = test_positions();
    struct place place = place_below(suite.at[1].position, &random);
    struct rig *rig = rig_open("abdada", 1, 1, RIG_BYTES);
    int value = 4711;
    rig->searcher[0].options.poll_nodes = 16;
    rig->searcher[0].stop_after = 3;
    assert_int_equal(
        run_split(rig, suite.at[1].position, &place, -GAME_INFINITE, GAME_INFINITE, &value),
        SEARCH_STOPPED);
    assert_int_equal(value, 4711);
    rig_close(rig);
    free(place.position);
    suite_close(&suite);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_split_has_the_value_of_a_whole_search_of_its_node),
        cmocka_unit_test(narrowing_ends_a_split_early_with_a_right_bound),
        cmocka_unit_test(narrowing_below_the_value_changes_no_value),
        cmocka_unit_test(narrowing_to_nothing_aborts),
        cmocka_unit_test(no_more_than_before_or_another_id_changes_nothing),
        cmocka_unit_test(full_selection_is_narrowed_too),
        cmocka_unit_test(narrowing_from_above_ends_a_split_early_with_a_right_bound),
        cmocka_unit_test(a_best_value_that_beta_falls_to_ends_the_split),
        cmocka_unit_test(a_value_on_a_proved_bound_is_exact),
        cmocka_unit_test(split_id_0_is_no_node),
        cmocka_unit_test(an_aborted_split_leaves_nothing_and_stores_nothing),
        cmocka_unit_test(a_split_that_is_narrowed_and_then_aborted_is_aborted),
        cmocka_unit_test(a_stopped_split_says_so),
    };
    return cmocka_run_group_tests_name("search_split", tests, NULL, NULL);
}
