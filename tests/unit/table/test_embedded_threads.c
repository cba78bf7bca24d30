/* The embedded table under several threads. Assertions are made by the test's own thread. */
#include "tests/support/test_host_table.h"
#include "tests/support/test_tt.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

enum {
    THREADS = 4,
    KEYS = 6,
    DEPTHS = 3,
    STEPS = 20000,
    INFLIGHT_DEPTH = 2,
    CROWD = 12,
    VISITS = 50000,
    NODES_OF_ALL = 24
};

static struct embedded *open_table(size_t bytes, unsigned slots)
{
    struct embedded *table = NULL;
    assert_int_equal(embedded_open(&table, bytes, slots), ERR_OK);
    return table;
}

static enum tt_verdict pose(struct table_port *port, const struct tt_ask *ask,
                            struct tt_answer *answer)
{
    struct table_ticket ticket = {0};
    tt_pose(port, ask, &ticket, answer);
    return answer->verdict;
}

static enum tt_verdict enter(struct table_port *port, uint16_t slot, uint64_t key, uint8_t depth,
                             uint8_t flags, struct tt_answer *answer)
{
    struct tt_ask ask = {
        .key = key, .depth = depth, .alpha = -50, .beta = 50, .flags = flags, .slot = slot};
    return pose(port, &ask, answer);
}

static void finish(struct table_port *port, uint16_t slot, struct tt_store store)
{
    struct table_ticket ticket = {0};
    store.slot = slot;
    port->store(port->self, &ticket, &store);
}

static void let_go(struct table_port *port, uint16_t slot, uint64_t key, uint8_t depth)
{
    struct table_ticket ticket = {0};
    struct tt_release release = {key, depth, slot};
    port->release(port->self, &ticket, &release);
}

static unsigned nproc(struct table_port *port, uint64_t key, uint8_t depth)
{
    struct tt_peek peek = {key, depth};
    struct tt_peeked seen;
    port->peek(port->self, &peek, 1, false, &seen);
    return seen.nproc;
}

/* ---- random operations ---- */

struct actor {
    pthread_barrier_t *begin;
    struct embedded_port slot;
    struct table_port port;
    uint64_t random;
    bool is_holder[KEYS][DEPTHS];
    unsigned notices;
    const char *broken;
};

/* One value per key, and only bounds of it: a table that mixes entries up would show it. */
static int truth(unsigned k)
{
    return (int)k * 7 - 20;
}

static void expect(struct actor *a, bool is_true, const char *rule)
{
    if (!is_true && a->broken == NULL) {
        a->broken = rule;
    }
}

static void act_ask(struct actor *a, unsigned k, uint8_t depth)
{
    bool registered = depth >= INFLIGHT_DEPTH, wide = tt_chance(&a->random, 70);
    int16_t alpha = (int16_t)(wide ? -50 : (int)rng_below(&a->random, 60) - 30);
    struct tt_answer answer;
    struct tt_ask ask = {
        .key = k,
        .depth = depth,
        .alpha = alpha,
        .beta = (int16_t)(wide ? 50 : alpha + 1),
        .flags = (uint8_t)rng_below(&a->random, 4),
        .slot = a->slot.slot,
    };
    switch (pose(&a->port, &ask, &answer)) {
    case TT_OPEN:
        a->is_holder[k][depth - 1] = registered;
        expect(a, answer.alpha < answer.beta, "an open window");
        expect(a, answer.alpha <= truth(k) || answer.alpha == alpha, "a true alpha");
        expect(a, answer.beta >= truth(k) || answer.beta == ask.beta, "a true beta");
        expect(a, registered ? answer.nproc >= 1 && answer.nproc <= THREADS : answer.nproc == 0,
               "nproc counts the asker and at most all");
        break;
    case TT_BUSY:
        expect(a, registered && ask.flags & TT_EXCLUSIVE, "busy only when asked to be alone");
        expect(a, answer.nproc >= 1u + a->is_holder[k][depth - 1], "another one is registered");
        break;
    case TT_CUT:
        expect(a, answer.score >= ask.beta ? answer.score <= truth(k) : answer.score >= truth(k),
               "a true score");
        break;
    }
}

static void act_take_notices(struct actor *a)
{
    struct tt_store notice[8];
    unsigned n = notices_take(embedded_notices(&a->slot), notice, 8);
    expect(a, n <= 8, "no more notices than room");
    for (unsigned i = 0; i < n; i++) {
        expect(a, notice[i].key < KEYS && notice[i].slot != a->slot.slot,
               "notices come from others");
        int value = truth((unsigned)notice[i].key);
        expect(a, notice[i].bound == TT_LOWER ? notice[i].score < value : notice[i].score > value,
               "notices are true");
    }
    a->notices += n;
}

static void act(struct actor *a)
{
    unsigned k = rng_below(&a->random, KEYS), dice = rng_below(&a->random, 100);
    uint8_t depth = (uint8_t)(1 + rng_below(&a->random, DEPTHS));
    if (dice < 45) {
        act_ask(a, k, depth);
    } else if (dice < 60) {
        enum tt_bound bound = (enum tt_bound)(1 + rng_below(&a->random, 2));
        int off = 1 + (int)rng_below(&a->random, 9); /* never exact: the nodes stay open */
        int score = truth(k) + (bound == TT_LOWER ? -off : off);
        finish(&a->port, a->slot.slot, tt_result(k, depth, bound, score, 1));
        a->is_holder[k][depth - 1] = false;
    } else if (dice < 80) {
        let_go(&a->port, a->slot.slot, k, depth);
        a->is_holder[k][depth - 1] = false;
    } else if (dice < 95) {
        unsigned n = nproc(&a->port, k, depth);
        expect(a, n >= a->is_holder[k][depth - 1] && n <= THREADS, "nproc is in range");
    } else {
        act_take_notices(a);
    }
}

static void *play(void *context)
{
    struct actor *a = context;
    pthread_barrier_wait(a->begin);
    for (unsigned i = 0; i < STEPS; i++) {
        act(a);
        if (tt_chance(&a->random, 2)) {
            sched_yield(); /* also on few CPUs the threads meet */
        }
    }
    for (unsigned i = 0; i < KEYS * DEPTHS; i++) {
        let_go(&a->port, a->slot.slot, i / DEPTHS, (uint8_t)(1 + i % DEPTHS));
    }
    return NULL;
}

static void play_together(size_t bytes)
{
    uint64_t seed = tt_seed();
    struct embedded *table = open_table(bytes, THREADS);
    struct actor *actor = calloc(THREADS, sizeof *actor);
    pthread_t thread[THREADS];
    pthread_barrier_t begin;
    unsigned notices = 0;
    assert_non_null(actor);
    pthread_barrier_init(&begin, NULL, THREADS);
    for (unsigned i = 0; i < THREADS; i++) {
        actor[i].slot = (struct embedded_port){
            .table = table, .slot = (uint16_t)i, .inflight_depth_max = INFLIGHT_DEPTH};
        actor[i].port = embedded_table_port(&actor[i].slot);
        actor[i].random = rng_next(&seed);
        actor[i].begin = &begin;
        assert_int_equal(pthread_create(&thread[i], NULL, play, &actor[i]), 0);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_join(thread[i], NULL);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        if (actor[i].broken != NULL) {
            fail_msg("broken: %s", actor[i].broken);
        }
        notices += actor[i].notices;
    }
    assert_true(notices > 0);
    for (unsigned i = 0; i < KEYS * DEPTHS; i++) {
        assert_int_equal(nproc(&actor[0].port, i / DEPTHS, (uint8_t)(1 + i % DEPTHS)), 0);
    }
    assert_int_equal(embedded_inflight(table), 0);
    pthread_barrier_destroy(&begin);
    free(actor);
    embedded_close(&table);
}

static void nothing_is_in_flight_when_all_have_left(void **state)
{
    (void)state;
    play_together(1 << 20);
}

static void nothing_is_in_flight_when_all_have_left_one_bucket(void **state)
{
    (void)state;
    play_together(64);
}

/* ---- many threads in few nodes ---- */

struct visitor {
    struct embedded_port slot;
    struct table_port port;
    uint64_t random;
    atomic_uint *alone; /* by key: the thread that is alone in that node, from 1 */
    bool broken;
    pthread_t thread;
};

static void run_visitors(unsigned count, void *(*body)(void *))
{
    uint64_t random = tt_seed();
    struct embedded *table = open_table(1 << 20, count);
    struct visitor v[CROWD];
    atomic_uint alone[3] = {0, 0, 0};
    for (unsigned i = 0; i < count; i++) {
        v[i] = (struct visitor){.slot = {.table = table, .slot = (uint16_t)i},
                                .random = rng_next(&random),
                                .alone = alone};
        v[i].port = embedded_table_port(&v[i].slot);
    }
    for (unsigned i = 0; i < count; i++) {
        assert_int_equal(pthread_create(&v[i].thread, NULL, body, &v[i]), 0);
    }
    for (unsigned i = 0; i < count; i++) {
        pthread_join(v[i].thread, NULL);
    }
    for (unsigned i = 0; i < count; i++) {
        assert_false(v[i].broken);
    }
    assert_int_equal(embedded_inflight(table), 0);
    embedded_close(&table);
}

static void *visit_alone(void *context)
{
    struct visitor *v = context;
    for (unsigned i = 0; i < VISITS; i++) {
        unsigned key = rng_below(&v->random, 3);
        struct tt_answer answer;
        if (enter(&v->port, v->slot.slot, key, 4, TT_EXCLUSIVE, &answer) == TT_BUSY) {
            v->broken |= answer.nproc < 1;
            continue;
        }
        v->broken |= answer.nproc != 1;
        v->broken |= atomic_exchange(&v->alone[key], v->slot.slot + 1u) != 0;
        v->broken |= atomic_exchange(&v->alone[key], 0) != v->slot.slot + 1u;
        let_go(&v->port, v->slot.slot, key, 4);
    }
    return NULL;
}

static void an_exclusive_visitor_is_alone(void **state)
{
    (void)state;
    run_visitors(THREADS, visit_alone);
}

static void *visit_with_others(void *context)
{
    struct visitor *v = context;
    for (unsigned i = 0; i < VISITS / 10; i++) {
        struct tt_answer answer;
        v->broken |= enter(&v->port, v->slot.slot, 1, 4, 0, &answer) != TT_OPEN;
        v->broken |= answer.nproc < 1 || answer.nproc > CROWD;
        unsigned n = nproc(&v->port, 1, 4);
        v->broken |= n < 1 || n > CROWD;
        let_go(&v->port, v->slot.slot, 1, 4);
        v->broken |= nproc(&v->port, 1, 4) >= CROWD;
    }
    return NULL;
}

static void many_threads_enter_and_leave_one_node(void **state)
{
    (void)state;
    run_visitors(CROWD, visit_with_others);
}

static void there_is_room_for_all_slots_in_the_same_nodes(void **state)
{
    (void)state;
    struct embedded *table = open_table(64, EMBEDDED_SLOTS_MAX);
    struct embedded_port slot = {.table = table};
    struct table_port port = embedded_table_port(&slot);
    for (uint64_t key = 0; key < NODES_OF_ALL; key++) {
        for (uint16_t i = 0; i < EMBEDDED_SLOTS_MAX; i++) {
            struct tt_answer answer;
            assert_int_equal(enter(&port, i, key, 9, 0, &answer), TT_OPEN);
            assert_int_equal(answer.nproc, i + 1);
        }
    }
    assert_int_equal(embedded_inflight(table), NODES_OF_ALL * EMBEDDED_SLOTS_MAX);
    embedded_close(&table);
}

/* ---- completion notices ---- */

static void notices_go_to_the_holders_of_the_node_only(void **state)
{
    (void)state;
    struct embedded *table = open_table(1 << 20, THREADS);
    struct embedded_port slot[THREADS];
    struct table_port port[THREADS];
    struct tt_store notice[4];
    struct tt_answer answer;
    for (uint16_t i = 0; i < THREADS; i++) {
        slot[i] =
            (struct embedded_port){.table = table, .slot = i, .inflight_depth_max = INFLIGHT_DEPTH};
        port[i] = embedded_table_port(&slot[i]);
    }
    enter(&port[0], 0, 5, 7, 0, &answer);
    enter(&port[1], 1, 5, 7, 0, &answer);
    enter(&port[2], 2, 5, 6, 0, &answer); /* another depth */
    enter(&port[3], 3, 5, 7, 0, &answer);
    for (unsigned i = 0; i < THREADS; i++) {
        atomic_store(embedded_until_poll(&slot[i]), 100);
    }
    finish(&port[0], 0, tt_result(5, 7, TT_LOWER, 33, 9));
    for (unsigned i = 0; i < THREADS; i++) {
        bool is_holder = i == 1 || i == 3;
        assert_int_equal(atomic_load(embedded_until_poll(&slot[i])), is_holder ? 1 : 100);
        assert_int_equal(notices_take(embedded_notices(&slot[i]), notice, 4), is_holder);
        if (is_holder) {
            assert_true(notice[0].key == 5 && notice[0].depth == 7 && notice[0].score == 33);
            assert_true(notice[0].bound == TT_LOWER && notice[0].move == 9);
        }
        assert_int_equal(notices_take(embedded_notices(&slot[i]), notice, 4), 0); /* once */
    }
    finish(&port[1], 1, tt_result(5, 7, TT_UPPER, 33, 0));
    assert_int_equal(notices_take(embedded_notices(&slot[0]), notice, 4), 0);
    assert_int_equal(notices_take(embedded_notices(&slot[1]), notice, 4), 0);
    assert_int_equal(notices_take(embedded_notices(&slot[3]), notice, 4), 1);
    let_go(&port[2], 2, 5, 6);
    let_go(&port[3], 3, 5, 7);
    assert_int_equal(embedded_inflight(table), 0);
    embedded_close(&table);
}

static void a_full_list_of_notices_drops_and_a_new_search_empties_it(void **state)
{
    (void)state;
    struct embedded *table = open_table(1 << 20, 2);
    struct embedded_port slot[2] = {
        {.table = table, .slot = 0, .inflight_depth_max = INFLIGHT_DEPTH},
        {.table = table, .slot = 1, .inflight_depth_max = INFLIGHT_DEPTH}};
    struct table_port port[2] = {embedded_table_port(&slot[0]), embedded_table_port(&slot[1])};
    struct tt_store notice[200];
    struct tt_answer answer;
    for (unsigned round = 0; round < 3; round++) {
        enter(&port[0], 0, 5, 7, 0, &answer);
        for (unsigned i = 0; i < 100; i++) {
            finish(&port[1], 1, tt_result(5, 7, TT_LOWER, -50, 1));
        }
        if (round == 0) {
            assert_in_range(notices_take(embedded_notices(&slot[0]), notice, 200), 1, 99);
        } else if (round == 1) {
            assert_int_equal(notices_take(embedded_notices(&slot[0]), notice, 3), 3);
            assert_int_equal(notices_take(embedded_notices(&slot[0]), notice, 200),
                             0); /* the rest is gone */
        } else {
            (void)embedded_table_port(&slot[0]);
            assert_int_equal(notices_take(embedded_notices(&slot[0]), notice, 200), 0);
        }
    }
    let_go(&port[0], 0, 5, 7);
    embedded_close(&table);
}

/* ---- the rest of its contract ---- */

static void below_the_inflight_depth_nothing_is_registered(void **state)
{
    (void)state;
    struct embedded *table = open_table(1 << 20, 2);
    struct embedded_port slot[2] = {{.table = table, .slot = 0, .inflight_depth_max = 4},
                                    {.table = table, .slot = 1, .inflight_depth_max = 4}};
    struct table_port port[2] = {embedded_table_port(&slot[0]), embedded_table_port(&slot[1])};
    struct tt_answer answer;
    assert_int_equal(port[0].inflight_depth(port[0].self, 3, &(bool){false}), 4);
    assert_int_equal(enter(&port[0], 0, 5, 3, TT_EXCLUSIVE, &answer), TT_OPEN);
    assert_int_equal(enter(&port[1], 1, 5, 3, TT_EXCLUSIVE, &answer), TT_OPEN);
    assert_int_equal(answer.nproc, 0);
    assert_int_equal(embedded_inflight(table), 0);
    finish(&port[0], 0, tt_result(5, 3, TT_EXACT, 8, 1));
    assert_int_equal(enter(&port[1], 1, 5, 3, 0, &answer), TT_CUT); /* results are shared */
    assert_int_equal(enter(&port[0], 0, 5, 4, TT_EXCLUSIVE, &answer), TT_OPEN);
    assert_int_equal(enter(&port[1], 1, 5, 4, TT_EXCLUSIVE, &answer), TT_BUSY);
    let_go(&port[0], 0, 5, 4);
    embedded_close(&table);
}

/* The claim of a neighbour says nothing that its in-flight entry does not say. */
static void a_thread_of_a_host_table_is_counted_once(void **state)
{
    (void)state;
    struct embedded *table = NULL;
    struct tt_answer answer;
    assert_int_equal(open_embedded_when_room(&table, 1 << 20, 2, clock_unique() | 1), ERR_OK);
    assert_true(embedded_is_on_host(table));
    struct embedded_port slot[2] = {
        {.table = table, .slot = 0, .inflight_depth_max = 4, .place.name = 7},
        {.table = table, .slot = 1, .inflight_depth_max = 4, .place.name = 8}};
    struct table_port port[2] = {embedded_table_port(&slot[0]), embedded_table_port(&slot[1])};
    assert_int_equal(enter(&port[0], 0, 5, 4, 0, &answer), TT_OPEN);
    assert_int_equal(answer.nproc, 1);
    assert_int_equal(enter(&port[1], 1, 5, 4, TT_EXCLUSIVE, &answer), TT_BUSY);
    assert_int_equal(answer.nproc, 1);
    assert_int_equal(enter(&port[1], 1, 5, 4, 0, &answer), TT_OPEN);
    assert_int_equal(answer.nproc, 2);
    let_go(&port[0], 0, 5, 4);
    let_go(&port[1], 1, 5, 4);
    embedded_close(&table);
}

/* In a small iteration few nodes have the depth from which others register, or none. */
static void small_iterations_register_smaller_nodes(void **state)
{
    (void)state;
    struct embedded *table = open_table(1 << 20, 2);
    struct embedded_port slot[2];
    struct table_port port[2];
    for (uint16_t i = 0; i < 2; i++) {
        slot[i] = (struct embedded_port){
            .table = table, .slot = i, .inflight_depth_max = 4, .inflight_by_size = true};
        port[i] = embedded_table_port(&slot[i]);
    }
    struct tt_answer answer;
    for (unsigned iteration = 1; iteration < 20; iteration++) {
        unsigned least = iteration < 5 ? 1 : iteration < 8 ? iteration - 4 : 4;
        for (unsigned i = 0; i < 2; i++) {
            assert_int_equal(port[i].inflight_depth(port[i].self, iteration, &(bool){false}),
                             least);
        }
        for (uint8_t depth = 1; depth < 6; depth++) {
            bool counts = depth >= least;
            assert_int_equal(enter(&port[0], 0, 5, depth, TT_EXCLUSIVE, &answer), TT_OPEN);
            assert_int_equal(embedded_inflight(table), counts);
            assert_int_equal(enter(&port[1], 1, 5, depth, TT_EXCLUSIVE, &answer),
                             counts ? TT_BUSY : TT_OPEN);
            let_go(&port[0], 0, 5, depth);
            assert_int_equal(embedded_inflight(table), 0);
        }
    }
    slot[0].inflight_depth_max =
        2; /* never more than in a large one, and none where there are none */
    assert_int_equal(port[0].inflight_depth(port[0].self, 7, &(bool){false}), 2);
    assert_int_equal(port[0].inflight_depth(port[0].self, 4, &(bool){false}), 1);
    slot[0].inflight_depth_max = EMBEDDED_NEVER;
    (void)embedded_table_port(&slot[0]);
    assert_int_equal(enter(&port[0], 0, 6, 9, TT_EXCLUSIVE, &answer), TT_OPEN);
    assert_int_equal(embedded_inflight(table),
                     0); /* a search that registers nothing, after one that did */
    assert_int_equal(port[0].inflight_depth(port[0].self, 1, &(bool){false}), EMBEDDED_NEVER);
    embedded_close(&table);
}

static void find_and_put_register_nothing(void **state)
{
    (void)state;
    struct embedded *table = open_table(1 << 20, 1);
    struct embedded_port port = {.table = table};
    struct tt_ask ask = {.key = 5, .depth = 7, .alpha = -50, .beta = 50, .flags = TT_STRICT};
    struct tt_answer answer;
    struct tt_store store = tt_result(5, 7, TT_LOWER, 10, 3);
    assert_false(embedded_find(table, &ask, &answer));
    embedded_put(&port, &store);
    assert_false(embedded_find(table, &ask, &answer));
    assert_int_equal(answer.alpha, 10);
    assert_int_equal(answer.move, 3);
    store = tt_result(5, 7, TT_UPPER, 10, 0);
    embedded_put(&port, &store);
    assert_true(embedded_find(table, &ask, &answer));
    assert_int_equal(answer.score, 10);
    assert_int_equal(embedded_inflight(table), 0);
    assert_true(embedded_permille(table, 0) <= 1);
    embedded_clear(table);
    assert_false(embedded_find(table, &ask, &answer));
    embedded_close(&table);
}

/* A table of one bucket: jobs in another namespace, which fill it with shallow results. */
static void a_job_of_another_namespace_does_not_age_results_in_use(void **state)
{
    (void)state;
    struct embedded *table = open_table(64, 1);
    struct embedded_port own = {.table = table}, other = {.table = table};
    struct tt_ask ask = {.key = 5, .depth = 20, .alpha = -50, .beta = 50};
    struct tt_answer answer;
    struct tt_store deep = tt_result(5, 20, TT_EXACT, 7, 1);
    (void)embedded_table_port(&own);
    embedded_begin(&own, 1, 100);
    embedded_put(&own, &deep);
    for (uint64_t job = 2; job < 40; job++) {
        embedded_serve(&own, NULL); /* the search goes on: its namespace is in use */
        embedded_begin(&other, job, 200);
        for (uint64_t key = 1; key < 20; key++) {
            struct tt_store shallow = tt_result(rng_mix(job * 100 + key), 3, TT_EXACT, 7, 1);
            embedded_put(&other, &shallow);
        }
        assert_true(embedded_find(table, &ask, &answer));
    }
    for (uint64_t job = 40; job < 50; job++) { /* it has ended: its result ages, and goes */
        struct tt_store shallow = tt_result(rng_mix(job), 3, TT_EXACT, 7, 1);
        embedded_begin(&other, job, 200);
        embedded_put(&other, &shallow);
    }
    assert_false(embedded_find(table, &ask, &answer));
    embedded_close(&table);
}

static void generations_go_round_without_a_zero(void **state)
{
    (void)state;
    struct embedded *table = open_table(64, 1);
    struct embedded_port port = {.table = table};
    struct tt_ask ask = {.key = 5, .depth = 0, .alpha = -50, .beta = 50};
    struct tt_answer answer;
    struct tt_store store = tt_result(5, 0, TT_EXACT, 0, 0);
    for (unsigned i = 0; i < 600; i++) {
        embedded_begin(&port, 0, 0);
        embedded_put(&port, &store);
        assert_true(embedded_find(table, &ask, &answer)); /* an all-zero result is one too */
        assert_int_equal(embedded_permille(table, 0), 250);
    }
    embedded_close(&table);
}

static void slots_have_limits_and_close_may_come_twice(void **state)
{
    (void)state;
    struct embedded *table = NULL;
    assert_int_equal(embedded_open(&table, 64, 0), ERR_RANGE);
    assert_int_equal(embedded_open(&table, 64, EMBEDDED_SLOTS_MAX + 1), ERR_RANGE);
    assert_null(table);
    table = open_table(0, EMBEDDED_SLOTS_MAX);
    embedded_close(&table);
    assert_null(table);
    embedded_close(&table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_in_flight_when_all_have_left),
        cmocka_unit_test(nothing_is_in_flight_when_all_have_left_one_bucket),
        cmocka_unit_test(an_exclusive_visitor_is_alone),
        cmocka_unit_test(many_threads_enter_and_leave_one_node),
        cmocka_unit_test(there_is_room_for_all_slots_in_the_same_nodes),
        cmocka_unit_test(notices_go_to_the_holders_of_the_node_only),
        cmocka_unit_test(a_full_list_of_notices_drops_and_a_new_search_empties_it),
        cmocka_unit_test(below_the_inflight_depth_nothing_is_registered),
        cmocka_unit_test(small_iterations_register_smaller_nodes),
        cmocka_unit_test(find_and_put_register_nothing),
        cmocka_unit_test(a_thread_of_a_host_table_is_counted_once),
        cmocka_unit_test(a_job_of_another_namespace_does_not_age_results_in_use),
        cmocka_unit_test(generations_go_round_without_a_zero),
        cmocka_unit_test(slots_have_limits_and_close_may_come_twice),
    };
    return cmocka_run_group_tests_name("embedded_threads", tests, NULL, NULL);
}
