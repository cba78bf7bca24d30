/* Searches that are stopped, or get completion notices: nothing wrong is left behind. */
#include "tests/support/test_search.h"

/* ---- stop ---- */

static void stops_leave_nothing_in_flight_and_nothing_wrong(void **state)
{
    (void)state;
    static const char *const algorithms[] = {"abdada", "abdada-paper", "shared-table",
                                             "sequential"};
    uint64_t random = tt_seed();
    struct suite suite = test_positions();
    struct rig *oracle = oracle_open();
    rig_run_text(oracle, suite.at[1].position, 5);
    int score = oracle->searcher[0].result.score;
    unsigned polls = oracle->searcher[0].polls;
    for (unsigned a = 0; a < 4; a++) {
        struct rig *rig = rig_open(algorithms[a], a == 3 ? 1 : 3, 1, RIG_BYTES);
        for (unsigned round = 0; round < 10; round++) {
            struct rig_searcher *d = &rig->searcher[rng_below(&random, rig->searchers)];
            d->stop_after = rng_below(&random, polls);
            rig_run_text(rig, suite.at[1].position, 5);
            d->stop_after = RIG_NEVER;
        }
        for (unsigned d = 0; d < rig->searchers; d++) {
            rig->searcher[d].watch.sample_every = 300;
            rig->searcher[d].watch.sample_depth_max = 3;
        }
        rig_run_text(rig, suite.at[1].position, 5);
        rig_expect_score(rig, 5, score);
        rig_expect_true_samples(rig, oracle);
        rig_expect_best_moves(rig, oracle);
        rig_close(rig);
    }
    rig_close(oracle);
    suite_close(&suite);
}

static void a_search_stopped_at_once_still_names_a_legal_move(void **state)
{
    (void)state;
    struct game_move list[GAME_MOVES_MAX];
    struct suite suite = test_positions();
    struct rig *rig = rig_open("abdada", 1, 1, RIG_BYTES);
    rig->searcher[0].stop_after = 0;
    rig_run_text(rig, suite.at[0].position, 5);
    const struct search_result *r = &rig->searcher[0].result;
    unsigned n = test_game()->generate(rig->position, list), at = 0;
    while (at < n && list[at].move != r->move) {
        at++;
    }
    assert_true(at < n);
    assert_int_equal(r->depth, 0);
    assert_in_range(rig->searcher[0].counters.nodes, 1, 2);
    rig_close(rig);
    suite_close(&suite);
}

static void a_stopped_search_keeps_the_last_finished_iteration(void **state)
{
    (void)state;
    struct suite suite = test_positions();
    struct rig *oracle = oracle_open(), *rig = rig_open("abdada", 1, 1, RIG_BYTES);
    rig->searcher[0].stop_after = 12;
    rig_run_text(rig, suite.at[0].position, SEARCH_DEPTH_MAX);
    struct search_result r = rig->searcher[0].result;
    assert_in_range(r.depth, 1, SEARCH_DEPTH_MAX - 1);
    rig_run_text(oracle, suite.at[0].position, r.depth);
    assert_int_equal(oracle->searcher[0].result.score, r.score);
    assert_int_equal(rig->searcher[0].counters.abandoned, 0); /* nobody had resolved a node */
    rig_expect_best_moves(rig, oracle);
    rig_close(oracle);
    rig_close(rig);
    suite_close(&suite);
}

static void it_asks_the_environment_often_enough(void **state)
{
    (void)state;
    struct suite suite = test_positions();
    struct rig *rig = rig_open("abdada", 1, 1, RIG_BYTES);
    for (unsigned stop_after = 1; stop_after < 40; stop_after += 3) {
        rig->searcher[0].stop_after = stop_after;
        embedded_clear(rig->table);
        rig_run_text(rig, suite.at[2].position, SEARCH_DEPTH_MAX);
        assert_int_equal(rig->searcher[0].polls, stop_after + 1);
        assert_in_range(rig->searcher[0].counters.nodes, stop_after * SEARCH_POLL_NODES,
                        (stop_after + 1) * SEARCH_POLL_NODES);
    }
    rig_close(rig);
    suite_close(&suite);
}

/* An environment that keeps the count: when it says so the next node polls. */
struct hurry {
    atomic_uint until_poll;
    uint64_t at; /* the node to poll at; 0: in no hurry */
    unsigned polls;
};

static void hurry_now_and_then(struct watch *w, void *context)
{
    struct hurry *hurry = context;
    if (search_counters(w->search)->nodes > 0 && hurry->at == 0 && tt_chance(&w->random, 5)) {
        hurry->at = search_counters(w->search)->nodes + 1;
        atomic_store(&hurry->until_poll, 1);
    }
}

static void expect_hurry(struct rig_searcher *d)
{
    struct hurry *hurry = d->context;
    uint64_t nodes = search_counters(d->search)->nodes;
    assert_true(hurry->at == 0 || hurry->at == nodes);
    hurry->polls += hurry->at != 0;
    hurry->at = 0;
    assert_int_equal(atomic_load(&hurry->until_poll), SEARCH_POLL_NODES);
}

static void it_polls_at_once_when_asked_to(void **state)
{
    (void)state;
    struct suite suite = test_positions();
    struct rig *rig = rig_open("abdada", 1, 1, RIG_BYTES);
    struct rig_searcher *d = &rig->searcher[0];
    struct hurry hurry = {0};
    d->env.until_poll = &hurry.until_poll;
    d->meddle = expect_hurry;
    d->watch.random = tt_seed();
    d->watch.on_open = hurry_now_and_then;
    d->context = d->watch.context = &hurry;
    rig_run_text(rig, suite.at[1].position, 4);
    assert_in_range(hurry.polls, 20, d->polls - 1);
    rig_close(rig);
    suite_close(&suite);
}

/* ---- completion notices ---- */

/* Copies of the positions of open nodes are made from the root by asking which child it is. */
struct completion {
    struct rig *oracle;
    void *position;
    uint64_t random;
    unsigned sent;
    uint64_t given_up; /* nodes, where only ... */
    bool is_deep; /* ... nodes at least two plies above quiescence have others finished */
};

/* Another searcher (the spare slot) stores the true value of a node that this one has in flight. */
static void finish_for(struct rig_searcher *d)
{
    struct completion *completion = d->context;
    struct rig *rig = d->rig;
    const struct watch *w = &d->watch;
    if (w->open < 2 || !tt_chance(&completion->random, 40)) {
        return;
    }
    unsigned at = rng_below(&completion->random, w->open - 1); /* the last is not yet searched */
    const struct tt_ask *ask = &w->node[at].ask;
    if (ask->depth > 4 || (completion->is_deep && (watch_top(&d->watch)->ask.depth < 2 ||
                                                   watch_top(&d->watch)->moves == 0))) {
        return;
    }
    watched_position(w, at, rig->position, completion->position);
    int value = oracle_value(completion->oracle, completion->position, ask->depth);
    struct tt_store store = tt_result(ask->key, ask->depth, TT_EXACT, value,
                                      completion->oracle->searcher[0].result.move);
    struct embedded_port slot = {
        .table = rig->table, .slot = (uint16_t)rig->searchers, .inflight_depth_max = 1};
    struct table_port port = embedded_table_port(&slot);
    struct table_ticket ticket = {0};
    store.slot = slot.slot;
    port.store(port.self, &ticket, &store);
    rig_serve(d);
    assert_int_equal(d->search->unwind, at);
    assert_int_equal(d->search->node[at].resolved_score, value);
    completion->sent++;
    completion->given_up += w->open - at;
}

static void a_node_others_finished_is_unwound_to_and_taken(void **state)
{
    (void)state;
    static const char *const algorithms[] = {"abdada", "abdada-paper"};
    struct suite suite = test_positions();
    struct completion completion = {.oracle = oracle_open(), .random = tt_seed()};
    completion.position = malloc(test_game()->position_size);
    for (unsigned a = 0; a < 2; a++) {
        for (unsigned i = 0; i < 3; i++) {
            struct rig *rig = rig_open(algorithms[a], 1, 1, RIG_BYTES);
            struct rig_searcher *d = &rig->searcher[0];
            rig_run_text(rig, suite.at[i].position, 4);
            int score = d->result.score;
            embedded_clear(rig->table);
            d->meddle = finish_for;
            d->context = &completion;
            d->watch.may_unwind = true;
            completion.sent = 0;
            rig_run_text(rig, suite.at[i].position, 4);
            rig_expect_score(rig, 4, score);
            assert_true(completion.sent > 0);
            assert_in_range(d->counters.unwound, 1, completion.sent);
            rig_expect_best_moves(rig, completion.oracle);
            rig_close(rig);
        }
    }
    free(completion.position);
    rig_close(completion.oracle);
    suite_close(&suite);
}

/* All nodes are registered, so those given up are those under way: what was finished below them is
 * in the table. A node given up inside another that is given up later counts once. */
static void nodes_given_up_are_counted_once(void **state)
{
    (void)state;
    struct suite suite = test_positions();
    struct completion completion = {.oracle = oracle_open(), .random = tt_seed(), .is_deep = true};
    struct rig *rig = rig_open("abdada", 1, 1, RIG_BYTES);
    struct rig_searcher *d = &rig->searcher[0];
    completion.position = malloc(test_game()->position_size);
    d->options.poll_nodes = 3;
    d->meddle = finish_for;
    d->context = &completion;
    d->watch.may_unwind = true;
    for (unsigned i = 0; i < 3; i++) {
        completion.sent = 0;
        completion.given_up = 0;
        embedded_clear(rig->table);
        rig_run_text(rig, suite.at[i].position, 4);
        assert_true(completion.sent > 0);
        assert_int_equal(d->counters.abandoned, completion.given_up);
        assert_int_equal(d->counters.duplicated, 0);
    }
    rig_close(rig);
    free(completion.position);
    rig_close(completion.oracle);
    suite_close(&suite);
}

/* At a node where the side to move is mated: its parent is worth a mate in one, and the notice of
 * it comes now. The parent may well finish by itself before it could unwind. */
static void finish_parent_of_mate(struct watch *w, void *context)
{
    struct completion *completion = context;
    if (w->open < 2 || watch_top(w)->moves > 0 || !test_game()->check(search_position(w->search))) {
        return;
    }
    const struct tt_ask *parent = &w->node[w->open - 2].ask;
    struct tt_store done = tt_result(parent->key, parent->depth, TT_EXACT, GAME_MATE - 1, 0);
    search_node_done(w->search, &done);
    completion->sent++;
}

static void a_notice_of_a_node_that_finished_by_itself_is_forgotten(void **state)
{
    (void)state;
    static const char *const text[] = {
        "6k1/5ppp/8/8/8/8/5PPP/R5K1 w - - 0 1",
        "7k/8/5K2/6Q1/8/8/8/8 w - - 0 1",
        "8/8/8/6k1/8/8/R7/1R5K w - - 0 1",
    };
    struct rig *oracle = oracle_open();
    for (unsigned i = 0; i < 3; i++) {
        struct completion completion = {0};
        struct rig *rig = rig_open("abdada", 1, 1, RIG_BYTES);
        struct watch *w = &rig->searcher[0].watch;
        w->on_open = finish_parent_of_mate;
        w->context = &completion;
        w->may_unwind = true;
        rig_run_text(oracle, text[i], 5);
        rig_run_text(rig, text[i], 5);
        assert_true(completion.sent > 0);
        rig_expect_score(rig, 5, oracle->searcher[0].result.score);
        rig_close(rig);
    }
    rig_close(oracle);
}

/* Notices of nodes that are not in flight here, or of results that do not resolve the window,
 * change nothing. */
static void send_notices_without_effect(struct rig_searcher *d)
{
    const struct watch *w = &d->watch;
    if (w->open < 2) {
        return;
    }
    const struct watched_node *n = &w->node[0];
    struct tt_store elsewhere = tt_result(n->ask.key ^ 1, n->ask.depth, TT_EXACT, 0, 1);
    struct tt_store shallow = tt_result(n->ask.key, (uint8_t)(n->ask.depth - 1), TT_EXACT, 0, 1);
    struct tt_store low = tt_result(n->ask.key, n->ask.depth, TT_LOWER, n->answer.beta - 1, 1);
    struct tt_store high = tt_result(n->ask.key, n->ask.depth, TT_UPPER, n->answer.alpha + 1, 0);
    search_node_done(d->search, &elsewhere);
    search_node_done(d->search, &shallow);
    search_node_done(d->search, &low);
    search_node_done(d->search, &high);
    assert_false(search_halted(d->search));
}

static void notices_without_effect_change_nothing(void **state)
{
    (void)state;
    struct suite suite = test_positions();
    struct rig *rig = rig_open("abdada", 1, 1, RIG_BYTES);
    rig_run_text(rig, suite.at[1].position, 4);
    struct search_result quiet = rig->searcher[0].result;
    uint64_t nodes = rig->searcher[0].counters.nodes;
    rig_close(rig);
    rig = rig_open("abdada", 1, 1, RIG_BYTES);
    rig->searcher[0].meddle = send_notices_without_effect;
    rig_run_text(rig, suite.at[1].position, 4);
    assert_int_equal(rig->searcher[0].counters.unwound, 0);
    assert_int_equal(rig->searcher[0].counters.abandoned, 0);
    assert_int_equal(rig->searcher[0].counters.nodes, nodes);
    assert_int_equal(rig->searcher[0].result.score, quiet.score);
    assert_int_equal(rig->searcher[0].result.move, quiet.move);
    rig_close(rig);
    suite_close(&suite);
}

static void searchers_that_take_notices_agree_too(void **state)
{
    (void)state;
    struct suite suite = test_positions();
    struct rig *oracle = oracle_open(), *rig = rig_open("abdada", 4, 1, RIG_BYTES);
    for (unsigned i = 0; i < rig->searchers; i++) {
        rig->searcher[i].meddle = rig_serve;
        rig->searcher[i].watch.may_unwind = true;
        rig->searcher[i].env.until_poll = embedded_until_poll(&rig->searcher[i].slot);
    }
    for (unsigned i = 0; i < 4; i++) {
        rig_run_text(oracle, suite.at[i].position, 4);
        int score = oracle->searcher[0].result.score;
        rig_run_text(rig, suite.at[i].position, 4);
        rig_expect_score(rig, 4, score);
        rig_expect_best_moves(rig, oracle);
    }
    rig_close(oracle);
    rig_close(rig);
    suite_close(&suite);
}

/* ---- answers that come late ---- */

/* The search begins nodes without waiting and gets the answers later: OPEN, CUT or BUSY. */
static void late_answers_change_no_score(void **state)
{
    (void)state;
    static const unsigned percents[] = {20, 100};
    uint64_t seed = tt_seed(), late = 0, unwound = 0, abandoned = 0;
    struct suite suite = test_positions();
    struct rig *oracle = oracle_open();
    for (unsigned i = 0; i < 8; i++) {
        struct rig *rig = rig_open(i & 1 ? "abdada" : "abdada-paper", 3, 1, RIG_BYTES);
        for (unsigned d = 0; d < rig->searchers; d++) {
            rig->searcher[d].meddle = rig_serve;
            rig->searcher[d].watch.random = rng_next(&seed);
            rig->searcher[d].watch.later_percent = percents[i / 2 % 2];
            rig->searcher[d].watch.may_unwind = true;
        }
        rig_run_text(oracle, suite.at[i / 4].position, 4);
        int score = oracle->searcher[0].result.score;
        rig_run_text(rig, suite.at[i / 4].position, 4);
        rig_expect_score(rig, 4, score);
        rig_expect_best_moves(rig, oracle);
        for (unsigned d = 0; d < rig->searchers; d++) {
            late += rig->searcher[d].watch.late;
            unwound += rig->searcher[d].watch.late_refused;
            const struct counters *c = &rig->searcher[d].counters;
            assert_true(c->abandoned + c->duplicated <= c->nodes);
            abandoned += c->abandoned;
        }
        rig_close(rig);
    }
    assert_true(late > 0 && unwound > 0 && abandoned > 0);
    rig_close(oracle);
    suite_close(&suite);
}

/* A late answer that says "alone" comes after children were found busy and a peek was sent ahead:
 * that peek must not be taken for one of now. */
static void late_answers_between_peeks_change_no_score(void **state)
{
    (void)state;
    uint64_t seed = tt_seed(), ahead = 0, late = 0;
    struct suite suite = test_positions();
    struct rig *oracle = oracle_open();
    for (unsigned i = 0; i < 24; i++) {
        struct rig *rig = rig_open(i & 1 ? "abdada" : "abdada-paper", 2, 1, RIG_BYTES);
        for (unsigned d = 0; d < rig->searchers; d++) {
            struct watch *w = &rig->searcher[d].watch;
            rig->searcher[d].meddle = rig_serve;
            w->random = rng_next(&seed);
            rig->searcher[d].options.poll_nodes = 4;
            w->later_percent = 60;
            w->busy_percent = 30;
            w->contended_percent = 30;
            w->ahead_percent = 80;
            w->may_unwind = true;
        }
        if (i & 2) {
            rig_go_on(rig, 70);
        }
        if (i & 4) {
            rig_peek_near(rig);
        }
        rig_run_text(oracle, suite.at[i / 8].position, 4);
        int score = oracle->searcher[0].result.score;
        rig_run_text(rig, suite.at[i / 8].position, 4);
        rig_expect_score(rig, 4, score);
        for (unsigned d = 0; d < rig->searchers; d++) {
            ahead += rig->searcher[d].watch.ahead;
            late += rig->searcher[d].watch.late;
        }
        rig_close(rig);
    }
    assert_true(ahead > 0 && late > 0);
    rig_close(oracle);
    suite_close(&suite);
}

/* Other hosts claim nodes that this one is in: those that it has for itself are BUSY then. */
static void claim_for_others(struct rig_searcher *d)
{
    struct watch *w = &d->watch;
    rig_serve(d);
    if (w->open < 2 || search_halted(d->search) || !tt_chance(&w->random, 20)) {
        return;
    }
    unsigned at = rng_below(&w->random, w->open);
    const struct tt_ask *ask = &w->node[at].ask;
    struct node *n = &d->search->node[at];
    bool is_alone = n->in_flight && n->exclusive && !n->contended;
    search_node_claimed(d->search, ask->key ^ 1, ask->depth);
    search_node_claimed(d->search, ask->key, (uint8_t)(ask->depth + 1));
    assert_false(search_halted(d->search));
    search_node_claimed(d->search, ask->key, ask->depth);
    assert_int_equal(search_halted(d->search), is_alone);
    assert_true(is_alone ? d->search->unwind == at : n->contended || !n->in_flight);
    *(_Atomic unsigned *)d->context += is_alone;
}

static void claims_of_others_change_no_score(void **state)
{
    (void)state;
    uint64_t seed = tt_seed();
    _Atomic unsigned unwound = 0;
    struct suite suite = test_positions();
    struct rig *oracle = oracle_open();
    for (unsigned i = 0; i < 12; i++) {
        struct rig *rig = rig_open(i & 1 ? "abdada" : "abdada-paper", 2, 1, RIG_BYTES);
        for (unsigned d = 0; d < rig->searchers; d++) {
            rig->searcher[d].meddle = claim_for_others;
            rig->searcher[d].context = &unwound;
            rig->searcher[d].options.poll_nodes = 4;
            rig->searcher[d].watch.random = rng_next(&seed);
            rig->searcher[d].watch.may_unwind = true;
        }
        rig_run_text(oracle, suite.at[i / 4].position, 4);
        int score = oracle->searcher[0].result.score;
        rig_run_text(rig, suite.at[i / 4].position, 4);
        rig_expect_score(rig, 4, score);
        rig_close(rig);
    }
    assert_true(unwound > 0);
    rig_close(oracle);
    suite_close(&suite);
}

/* ---- selection full ---- */

/* No oracle for its score; but it must keep the rules of the table, and see short mates. */
static void full_selection_keeps_the_rules_of_the_table(void **state)
{
    (void)state;
    struct suite suite = test_positions();
    struct rig *rig = rig_open("abdada", 3, 2, RIG_BYTES);
    uint64_t random = tt_seed();
    for (unsigned i = 0; i < rig->searchers; i++) {
        rig->searcher[i].options.strict = false;
        rig->searcher[i].options.full = true;
        rig->searcher[i].meddle = rig_serve;
        rig->searcher[i].watch.may_unwind = true;
        rig->searcher[i].watch.busy_percent = 10;
        rig->searcher[i].watch.prunes = true;
    }
    for (unsigned i = 0; i < 8; i++) {
        rig->searcher[0].stop_after = i % 2 ? rng_below(&random, 200) : RIG_NEVER;
        rig_run_text(rig, suite.at[i].position, 6);
    }
    rig->searcher[0].stop_after = RIG_NEVER;
    rig_run_text(rig, "7k/8/8/8/8/8/R7/1R5K w - - 0 1", 8);
    assert_true(rig->searcher[0].result.score > GAME_MATE_MIN);
    rig_close(rig);
    suite_close(&suite);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stops_leave_nothing_in_flight_and_nothing_wrong),
        cmocka_unit_test(a_search_stopped_at_once_still_names_a_legal_move),
        cmocka_unit_test(a_stopped_search_keeps_the_last_finished_iteration),
        cmocka_unit_test(it_asks_the_environment_often_enough),
        cmocka_unit_test(it_polls_at_once_when_asked_to),
        cmocka_unit_test(a_node_others_finished_is_unwound_to_and_taken),
        cmocka_unit_test(nodes_given_up_are_counted_once),
        cmocka_unit_test(a_notice_of_a_node_that_finished_by_itself_is_forgotten),
        cmocka_unit_test(notices_without_effect_change_nothing),
        cmocka_unit_test(searchers_that_take_notices_agree_too),
        cmocka_unit_test(late_answers_change_no_score),
        cmocka_unit_test(late_answers_between_peeks_change_no_score),
        cmocka_unit_test(claims_of_others_change_no_score),
        cmocka_unit_test(full_selection_keeps_the_rules_of_the_table),
    };
    return cmocka_run_group_tests_name("search_stop", tests, NULL, NULL);
}
