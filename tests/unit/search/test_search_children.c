/* Children that are split points, of algorithms of this file's own: aborted and narrowed while they
 * are searched; and algorithms that register nothing. */
#include "tests/support/test_search_split.h"
#include "worker/search/children.h"
#include "worker/search/order.h"

enum { OTHER_ID = ID + 1, NOTHING = -GAME_INFINITE };

/* ---- an algorithm that names every child, one searcher at a time ---- */

static struct {
    uint64_t last;
    uint64_t open[SEARCH_PLY_MAX + 2], latest[SEARCH_PLY_MAX + 2]; /* by ply of the child */
    unsigned aborted; /* and visited again */
} ids;

static enum search_visit visit_named(struct search *s, struct node *n, unsigned at)
{
    ids.open[n->ply + 1] = ids.latest[n->ply + 1] = ++ids.last;
    enum search_visit visit = children_visit(s, n, at, false, ids.last);
    ids.open[n->ply + 1] = 0;
    return visit;
}

static enum search_visit children_named(struct search *s, struct node *n)
{
    order_sort(s, n);
    for (unsigned i = 0; i < n->move_count && !node_is_cut_off(n); i++) {
        enum search_visit visit = visit_named(s, n, i);
        while (visit == VISIT_ABORTED) {
            ids.aborted++;
            visit = visit_named(s, n, i);
        }
        if (!children_go_on(visit)) {
            return visit;
        }
    }
    return VISIT_VALUE;
}

static const struct algorithm named = {"named", children_named, true, true, true, false};

static struct rig *named_rig(unsigned inflight_depth, unsigned poll_nodes,
                             void (*meddle)(struct rig_searcher *), void *context)
{
    struct rig *rig = rig_open("abdada", 1, inflight_depth, RIG_BYTES);
    struct rig_searcher *d = &rig->searcher[0];
    memset(&ids, 0, sizeof ids);
    ids.last = 1000;
    d->options.algorithm = &named;
    d->options.poll_nodes = poll_nodes;
    d->meddle = meddle;
    d->context = context;
    d->watch.may_unwind = d->watch.narrows = true;
    d->watch.sample_every = 40;
    d->watch.sample_depth_max = 3;
    return rig;
}

/* ---- everything at once ---- */

struct mixing {
    struct rig *oracle;
    const struct place *place;
    void *position;
    uint64_t random;
    unsigned percent, actions;
};

/* A window around the value, in which the node is worth as much as before. */
static void narrow_around(struct mixing *m, struct search *s, uint64_t id, int value)
{
    search_narrow(s, id, value - 1 - (int)rng_below(&m->random, 30),
                  value + 1 + (int)rng_below(&m->random, 30));
}

static void act_on(struct mixing *m, struct rig_searcher *d, unsigned ply, unsigned action)
{
    struct search *s = d->search;
    const unsigned at = ply - s->start_ply;
    const uint64_t id = ids.open[ply], old = ids.latest[ply];
    const struct tt_ask *ask = &d->watch.node[at].ask;
    if (action == 0) {
        search_abort(s, id); /* 0, too */
    } else if (action == 1 && id == 0) { /* another node was there: this one has no name */
        search_narrow(s, old, 0, 1);
        search_abort(s, old);
    } else if (at >= d->watch.open) {
        search_narrow(s, id, s->node[ply].alpha_now + 1, GAME_INFINITE); /* in quiescence */
    } else if (ask->depth <= 3) {
        watched_position(&d->watch, at, m->place->position, m->position);
        int value = oracle_value(m->oracle, m->position, ask->depth);
        if (action == 2) {
            struct tt_store done = tt_result(ask->key, ask->depth, TT_EXACT, value, 0);
            search_node_done(s, &done);
        } else {
            narrow_around(m, s, id, value);
        }
    }
    m->actions++;
}

static void meddle_at_random(struct rig_searcher *d)
{
    struct mixing *m = d->context;
    const struct search *s = d->search;
    for (unsigned i = 0; i < 3 && s->poll_ply > s->start_ply; i++) {
        if (tt_chance(&m->random, m->percent)) {
            unsigned ply = s->start_ply + 1 + rng_below(&m->random, s->poll_ply - s->start_ply);
            act_on(m, d, ply, rng_below(&m->random, 5));
        }
    }
}

static void narrowed_aborted_and_finished_children_change_no_value(void **state)
{
    (void)state;
    uint64_t random = tt_seed(), actions = 0, aborted = 0, unwound = 0;
    struct suite suite = test_positions();
    struct mixing m = {.oracle = oracle_open(), .percent = 12};
    m.position = malloc(test_game()->position_size);
    for (unsigned i = 0; i < 24 / TSAN_SEES_ONE_OF; i++) {
        const char *text = suite.at[i].position;
        struct place place = place_below(text, &random);
        struct rig *rig = named_rig(i % 3, 16, meddle_at_random, &m);
        struct rig_searcher *d = &rig->searcher[0];
        int expected = oracle_value(m.oracle, place.position, DEPTH), value = 0;
        m.place = &place;
        m.random = rng_next(&random);
        assert_int_equal(run_split(rig, text, &place, NOTHING, GAME_INFINITE, &value),
                         SEARCH_VALUE);
        assert_int_equal(value, expected);
        assert_true(d->result.pv.length > 0 && d->result.pv.move[0] == d->result.move);
        rig_expect_true_samples(rig, m.oracle);
        actions += m.actions;
        aborted += ids.aborted;
        unwound += d->counters.unwound;
        rig_close(rig);
        free(place.position);
    }
    assert_true(actions > 100 / TSAN_SEES_ONE_OF && aborted > 10 / TSAN_SEES_ONE_OF &&
                unwound > 10 / TSAN_SEES_ONE_OF);
    free(m.position);
    rig_close(m.oracle);
    suite_close(&suite);
}

/* ---- a child that is aborted, where nothing takes its place ---- */

static void abort_child_once(struct rig_searcher *d)
{
    struct mixing *m = d->context;
    struct search *s = d->search;
    if (m->actions == 0 && s->poll_ply > s->start_ply + 1 && tt_chance(&m->random, 5)) {
        unsigned ply = s->start_ply + 1 + rng_below(&m->random, s->poll_ply - s->start_ply - 1);
        m->actions++;
        s->node[ply].split_id = OTHER_ID;
        search_abort(s, OTHER_ID);
    }
}

static void a_node_with_an_aborted_child_has_no_value(void **state)
{
    (void)state;
    uint64_t random = tt_seed();
    unsigned stopped = 0;
    struct suite suite = test_positions();
    struct rig *oracle = oracle_open();
    for (unsigned i = 0; i < 36 / TSAN_SEES_ONE_OF; i++) {
        const char *text = suite.at[i % 24].position;
        struct place place = place_below(text, &random);
        struct mixing m = {.random = rng_next(&random)};
        struct rig *rig = rig_open(algorithms[1 + i % 3], 1, 1, RIG_BYTES);
        struct rig_searcher *d = &rig->searcher[0];
        int expected = oracle_value(oracle, place.position, DEPTH), value = expected;
        d->options.poll_nodes = 8;
        d->meddle = abort_child_once;
        d->context = &m;
        d->watch.may_unwind = true;
        d->watch.sample_every = 1;
        d->watch.sample_depth_max = 4;
        enum search_status status = run_split(rig, text, &place, NOTHING, GAME_INFINITE, &value);
        assert_true(status == SEARCH_STOPPED || status == SEARCH_VALUE);
        assert_int_equal(value, expected); /* or none */
        stopped += status == SEARCH_STOPPED;
        rig_expect_true_samples(rig, oracle);
        assert_int_equal(run_split_again(rig, text, &place, NOTHING, GAME_INFINITE, &value),
                         SEARCH_VALUE);
        assert_int_equal(value, expected);
        rig_close(rig);
        free(place.position);
    }
    assert_true(stopped > 20 / TSAN_SEES_ONE_OF);
    rig_close(oracle);
    suite_close(&suite);
}

/* ---- narrowing where no child is searched ---- */

static void narrow_in_quiescence(struct rig_searcher *d)
{
    struct mixing *m = d->context;
    const struct search *s = d->search;
    for (unsigned ply = s->start_ply; ply < s->poll_ply; ply++) {
        const struct node *n = &s->node[ply];
        if (n->depth <= 0 && ids.open[ply] != 0 && n->alpha_now + 1 < n->beta) {
            search_narrow(d->search, ids.open[ply], n->alpha_now + 1, n->beta);
            m->actions++;
        }
    }
}

static void a_node_in_quiescence_goes_on_when_narrowed(void **state)
{
    (void)state;
    uint64_t random = tt_seed();
    struct suite suite = test_positions();
    struct rig *oracle = oracle_open();
    struct mixing m = {0};
    for (unsigned i = 0; i < 6; i++) {
        struct place place = place_below(suite.at[i].position, &random);
        struct rig *rig = named_rig(0, 1, narrow_in_quiescence, &m);
        int value = 0;
        assert_int_equal(
            run_split(rig, suite.at[i].position, &place, NOTHING, GAME_INFINITE, &value),
            SEARCH_VALUE);
        assert_int_equal(value, oracle_value(oracle, place.position, DEPTH));
        rig_close(rig);
        free(place.position);
    }
    assert_true(m.actions > 0);
    rig_close(oracle);
    suite_close(&suite);
}

/* ---- algorithms that do not register in flight ---- */

static atomic_uint divided;

static enum search_visit children_noted(struct search *s, struct node *n)
{
    assert_true(n->depth - 1 >= 2);
    atomic_fetch_add(&divided, 1);
    return children_in_order(s, n);
}

static void expect_none_in_flight(struct rig_searcher *d)
{
    WATCH_EXPECT(&d->watch, embedded_inflight(d->rig->table) == 0);
}

static void algorithms_that_count_nothing_divide_nodes_and_take_answers(void **state)
{
    (void)state;
    static const struct algorithm rows[] = {
        {"threads", children_noted, false, true, false, true},
        {"threads and shards", children_noted, false, true, true, true},
        {"shards", children_noted, false, false, true, true},
    };
    struct suite suite = test_positions();
    struct rig *oracle = oracle_open();
    rig_run_text(oracle, suite.at[1].position, 5);
    for (unsigned i = 0; i < 3; i++) {
        struct rig *rig = rig_open("abdada", rows[i].uses_searchers ? 3 : 1, 2, RIG_BYTES);
        uint64_t late = 0, refused = 0, cuts = 0;
        for (unsigned k = 0; k < rig->searchers; k++) {
            struct rig_searcher *d = &rig->searcher[k];
            d->options.algorithm = &rows[i];
            d->options.poll_nodes = 16;
            d->slot.results_only = true;
            d->meddle = expect_none_in_flight;
            d->watch.may_unwind = true;
            d->watch.later_percent = rows[i].uses_shards ? 60 : 0;
        }
        atomic_store(&divided, 0);
        for (unsigned again = 0; again < 2; again++) { /* the second time results are there */
            rig_run_text(rig, suite.at[1].position, 5);
            rig_expect_score(rig, 5, oracle->searcher[0].result.score);
        }
        for (unsigned k = 0; k < rig->searchers; k++) {
            late += rig->searcher[k].watch.late;
            refused += rig->searcher[k].watch.late_refused;
            cuts += rig->searcher[k].counters.cuts;
            assert_int_equal(rig->searcher[k].counters.asks, 0);
        }
        assert_true(atomic_load(&divided) > 0);
        assert_int_equal(late > 0, rows[i].uses_shards);
        /* Some come for nodes below one that is unwound to already. */
        assert_int_equal(cuts > refused / 2, rows[i].uses_shards);
        rig_close(rig);
    }
    rig_close(oracle);
    suite_close(&suite);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(narrowed_aborted_and_finished_children_change_no_value),
        cmocka_unit_test(a_node_with_an_aborted_child_has_no_value),
        cmocka_unit_test(a_node_in_quiescence_goes_on_when_narrowed),
        cmocka_unit_test(algorithms_that_count_nothing_divide_nodes_and_take_answers),
    };
    return cmocka_run_group_tests_name("search_children", tests, NULL, NULL);
}
