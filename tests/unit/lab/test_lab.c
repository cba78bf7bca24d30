/* The virtual cluster: its clock, its network, its answers, and what each kind of fault does. */
#include "tests/support/test_lab.h"

#include "common/rng.h"
#include "worker/lab/event.h"

#include <string.h>

static const char tree[] = "tree:b=8,d=6,seed=3,order=80";

/* ---- events ---- */

static void events_come_by_time_then_in_order_of_coming(void **state)
{
    struct lab_heap heap = {0};
    struct lab_event e;
    uint64_t random = 7, time = 0, serial = 0;
    unsigned got = 0;
    (void)state;
    for (unsigned i = 0; i < 5000; i++) {
        lab_heap_push(&heap, (struct lab_event){.time_ns = rng_below(&random, 50), .who = i});
    }
    while (lab_heap_pop(&heap, &e)) {
        assert_true(e.time_ns > time || (e.time_ns == time && (got == 0 || e.serial > serial)));
        time = e.time_ns;
        serial = e.serial;
        got++;
    }
    assert_int_equal(got, 5000);
    lab_heap_close(&heap);
}

static void an_empty_heap_gives_nothing(void **state)
{
    struct lab_heap heap = {0};
    struct lab_event e;
    (void)state;
    assert_false(lab_heap_pop(&heap, &e));
    lab_heap_close(&heap);
    lab_heap_close(&heap);
}

/* ---- the network ---- */

/* Alone, without service time and messages for nothing, all it waits for is the way there and
 * back. */
static void every_wait_is_a_round_trip(void **state)
{
    static const unsigned rtt_us[] = {20, 100, 1000, 1700};
    struct job job = lab_job("tree", tree, "abdada", 6);
    (void)state;
    for (unsigned i = 0; i < 4; i++) {
        struct chaos_options options = lab_cluster(&job, 1, 1);
        options.lab.rtt_ns = rtt_us[i] * UINT64_C(1000);
        options.lab.inflight_age_max_ms = 60000; /* nothing is renewed, for which nobody waits */
        options.drain = false; /* its probe would be counted */
        struct chaos_result r = lab_do(&options);
        assert_true(r.lab.asks > 100);
        assert_int_equal(r.lab.sum.waited_us * 1000,
                         (r.lab.asks + r.lab.peeks) * options.lab.rtt_ns);
        assert_int_equal(r.lab.answer[0].time_ns,
                         r.lab.sum.waited_us * 1000 + r.lab.sum.nodes * options.lab.node_ns);
    }
    job_free(&job);
}

static void service_and_messages_cost_time(void **state)
{
    struct job job = lab_job("tree", tree, "abdada", 6);
    struct chaos_options options = lab_cluster(&job, 1, 1);
    (void)state;
    options.lab.service_ns = options.lab.service_operation_ns = 10 * TEST_US;
    options.drain = false;
    struct chaos_result r = lab_do(&options);
    assert_true(r.lab.sum.waited_us * 1000 >=
                (r.lab.asks + r.lab.peeks) * (options.lab.rtt_ns + 2 * options.lab.service_ns));
    options.lab.service_ns = options.lab.service_operation_ns = 0;
    options.lab.message_ns = 10 * TEST_US;
    struct chaos_result m = lab_do(&options);
    assert_true(m.lab.answer[0].time_ns >= m.lab.sum.waited_us * 1000 +
                                               m.lab.sum.nodes * options.lab.node_ns +
                                               m.lab.asks * 10 * TEST_US);
    job_free(&job);
}

/* The lab itself checks every pair's order as packets arrive (CHECK in lab_worker.c, shard.c). */
static void jitter_keeps_the_order_of_a_pair(void **state)
{
    struct job job = lab_job("tree", tree, "abdada", 6);
    struct chaos_options options = lab_cluster(&job, 4, 2);
    (void)state;
    job.waits = false;
    options.lab.jitter_ns = 3 * TEST_MS;
    struct chaos_result r = lab_do(&options);
    assert_true(r.lab.answer[0].answered);
    assert_int_equal(r.lab.answer[0].search.score, lab_sequential(&job));
    assert_nothing_left(&r);
    job_free(&job);
}

/* ---- answers ---- */

static const char ending[] = /* FFO #1: 14 empty squares */
    "--XXXXX--OOOXX-O-OOOXXOX-OXOXOXXOXXXOXXX--XOXOXX-XXXOOO--OOOOO-- X";

static void a_node_of_a_games_solver_takes_a_node_of_time(void **state)
{
    struct job job = lab_job("othello", ending, "sequential", 14);
    struct chaos_options options = lab_cluster(&job, 1, 1);
    options.drain = false;
    (void)state;
    for (options.lab.node_ns = 28; options.lab.node_ns < 300; options.lab.node_ns *= 10) {
        struct chaos_result r = lab_do(&options);
        uint64_t ns = r.lab.sum.nodes * options.lab.node_ns;
        assert_int_equal(r.lab.answer[0].search.score, 18);
        assert_true(r.lab.sum.nodes > 10000);
        assert_in_range(r.lab.answer[0].time_ns, ns, ns + options.lab.rtt_ns);
    }
    job_free(&job);
}

/* The others have none of the solver's results, so a notice that the root is known ends theirs. */
static void who_solves_what_is_solved_stops(void **state)
{
    struct job job = lab_job("othello", ending, "abdada", 64);
    struct chaos_options options = lab_cluster(&job, 8, 2);
    (void)state;
    options.lab.node_ns = 28;
    struct chaos_result r = lab_do(&options);
    assert_true(r.lab.answer[0].answered);
    assert_int_equal(r.lab.answer[0].search.score, 18);
    assert_int_equal(r.lab.answer[0].search.depth, 14);
    assert_nothing_left(&r);
    job_free(&job);
}

static void every_algorithm_gives_the_sequential_score(void **state)
{
    static const struct {
        const char *game, *text;
        unsigned depth;
    } question[] = {
        {"tree", "tree:b=8,d=6,seed=3,order=80", 6},
        {"tree", "tree:b=4,d=8,seed=5,t=3,edges=bell", 8},
        {"tree", "tree:b=6,d=7,seed=9,shape=varied,checks=20,edges=sharp", 5},
        {"chess", "8/8/1p6/pP6/P7/8/1k4K1/8 w - - 0 1", 6},
        {"chess", "1k1r4/pp1b1R2/3q2pp/4p3/2B5/4Q3/PPP2B2/2K5 b - -", 3},
    };
    static const char *const algorithm[] = {"abdada", "abdada-paper", "shared-table"};
    static const unsigned workers[] = {1, 2, 5, 16};
    (void)state;
    for (unsigned q = 0; q < 5; q++) {
        struct job job = lab_job(question[q].game, question[q].text, "abdada", question[q].depth);
        int expected = lab_sequential(&job);
        for (unsigned i = 0; i < 3 * 4 * 2; i++) {
            if ((i + q + i / 12) % 2 != 0) {
                continue; /* the other half has other questions */
            }
            job.algorithm = algorithm_by_name(algorithm[i % 3]);
            job.waits = i / 12 == 0;
            job.remote_depth = i % 2 == 0 ? 1 : 3;
            struct chaos_options options = lab_cluster(&job, workers[i / 3 % 4], 1 + i % 3);
            struct chaos_result r = lab_do(&options);
            assert_true(r.lab.answer[0].answered);
            assert_int_equal(r.lab.answer[0].search.score, expected);
            assert_nothing_left(&r);
        }
        job_free(&job);
    }
}

static void the_same_seed_gives_the_same_trace(void **state)
{
    struct job job = lab_job("tree", tree, "abdada", 6);
    struct chaos_options options = lab_cluster(&job, 7, 3);
    (void)state;
    options.lab.jitter_ns = 50 * TEST_US;
    options.lab.loss_ppm = 5000;
    struct chaos_result one = lab_do(&options), two = lab_do(&options);
    assert_memory_equal(&one, &two, sizeof one);
    options.lab.seed = 2;
    struct chaos_result other = lab_do(&options);
    assert_true(other.lab.trace != one.lab.trace);
    assert_int_equal(other.lab.answer[0].search.score, one.lab.answer[0].search.score);
    job_free(&job);
}

static void options_out_of_range_are_refused(void **state)
{
    struct job job = lab_job("tree", tree, "abdada", 6);
    struct lab_fault fault = {.kind = LAB_KILL, .worker = 1, .workers = 2};
    struct chaos_options good = lab_cluster(&job, 2, 2);
    struct chaos_options bad[] = {good, good, good, good, good};
    struct chaos_result result;
    (void)state;
    bad[0].lab.workers = 0;
    bad[1].lab.shards = LAB_SHARDS_MAX + 1;
    bad[2].lab.node_ns = 0;
    bad[3].lab.loss_ppm = 1000001;
    bad[4].fault = &fault; /* there is no worker 2 */
    bad[4].faults = 1;
    for (unsigned i = 0; i < 5; i++) {
        assert_int_equal(chaos_lab_run(&bad[i], &result), ERR_RANGE);
    }
    job_free(&job);
}

static void no_answer_within_the_limit_is_none(void **state)
{
    struct job job = lab_job("tree", tree, "abdada", 6);
    struct chaos_options options = lab_cluster(&job, 2, 1);
    (void)state;
    options.lab.limit_ns = 2 * TEST_MS;
    struct chaos_result r = lab_do(&options);
    assert_false(r.lab.answer[0].answered);
    assert_nothing_left(&r);
    job_free(&job);
}

/* ---- faults, one at a time ---- */

struct trial {
    struct job job;
    struct chaos_options options;
    int score;
    uint64_t faultless_ns;
};

static int trial_open(void **state)
{
    static struct trial trial;
    trial.job = lab_job("tree", tree, "abdada", 6);
    trial.options = lab_cluster(&trial.job, 4, 2);
    trial.score = lab_sequential(&trial.job);
    trial.faultless_ns = lab_do(&trial.options).lab.end_ns;
    *state = &trial;
    return 0;
}

static int trial_close(void **state)
{
    struct trial *trial = *state;
    job_free(&trial->job);
    return 0;
}

static struct chaos_result trial_run(void **state, struct lab_fault fault)
{
    const struct trial *d = *state;
    fault.ways = fault.ways != 0 ? fault.ways : LAB_BOTH_WAYS;
    struct chaos_result r = lab_faulted(d->options, fault);
    assert_true(r.lab.answer[0].answered);
    assert_int_equal(r.lab.answer[0].search.score, d->score);
    assert_nothing_left(&r);
    return r;
}

static uint64_t halfway(void **state)
{
    return ((const struct trial *)*state)->faultless_ns / 2;
}

static void killed_workers_leave_nothing(void **state)
{
    struct chaos_result r = trial_run(state, (struct lab_fault){.kind = LAB_KILL,
                                                                .worker = 1,
                                                                .workers = 3,
                                                                .at_ns = halfway(state),
                                                                .lasts_ns = LAB_FOR_EVER});
    assert_int_equal(r.faults[LAB_KILL], 3);
    assert_int_equal(r.all_workers_dead, 1);
    assert_int_equal(r.restarts, 0);
    assert_int_equal(r.expired_sessions, 3 * 2); /* a session each on two shards */
}

static void the_front_end_is_not_killed(void **state)
{
    struct chaos_result r = trial_run(state, (struct lab_fault){.kind = LAB_KILL,
                                                                .workers = 4,
                                                                .at_ns = halfway(state),
                                                                .lasts_ns = 1 * TEST_MS});
    assert_int_equal(r.faults[LAB_KILL], 3);
    assert_int_equal(r.restarts, 3);
}

static void a_shard_that_dies_goes_down_and_comes_back(void **state)
{
    struct chaos_result r = trial_run(state, (struct lab_fault){.kind = LAB_KILL,
                                                                .shards = 1,
                                                                .at_ns = halfway(state),
                                                                .lasts_ns = 30 * TEST_MS});
    assert_int_equal(r.restarts, 1);
    assert_int_equal(r.lab.downs, 4);
}

static void without_any_shard_the_answer_comes(void **state)
{
    struct chaos_result r = trial_run(
        state, (struct lab_fault){.kind = LAB_KILL, .shards = 2, .lasts_ns = LAB_FOR_EVER});
    assert_int_equal(r.all_shards_dead, 1);
    assert_int_equal(r.lab.asks, 0); /* nobody ever saw one */
    assert_int_equal(r.lab.downs, 0);
}

static void shards_that_all_die_halfway_are_done_without(void **state)
{
    struct chaos_result r = trial_run(state, (struct lab_fault){.kind = LAB_KILL,
                                                                .shards = 2,
                                                                .at_ns = halfway(state),
                                                                .lasts_ns = LAB_FOR_EVER});
    assert_int_equal(r.all_shards_dead, 1);
    assert_int_equal(r.lab.downs, 2 * 4);
}

static void a_worker_that_stands_still_loses_its_session(void **state)
{
    struct chaos_result r = trial_run(state, (struct lab_fault){.kind = LAB_STALL,
                                                                .worker = 1,
                                                                .workers = 1,
                                                                .at_ns = halfway(state) / 8,
                                                                .lasts_ns = 200 * TEST_MS});
    const struct trial *d = *state;
    assert_int_equal(r.faults[LAB_STALL], 1);
    assert_true(r.expired_sessions == 2 || r.lab.end_ns < d->faultless_ns / 16 + 70 * TEST_MS);
}

static void the_front_end_answers_after_its_stall(void **state)
{
    struct chaos_result r = trial_run(state, (struct lab_fault){.kind = LAB_STALL,
                                                                .workers = 1,
                                                                .at_ns = halfway(state),
                                                                .lasts_ns = 300 * TEST_MS});
    assert_true(r.lab.end_ns >= halfway(state) + 300 * TEST_MS);
    assert_true(r.expired_sessions >= 2);
}

static void a_shard_that_stands_still_goes_down_and_keeps_its_sessions(void **state)
{
    struct chaos_result r = trial_run(state, (struct lab_fault){.kind = LAB_STALL,
                                                                .shards = 1,
                                                                .at_ns = halfway(state),
                                                                .lasts_ns = 60 * TEST_MS});
    assert_true(r.lab.downs >= 4);
    assert_int_equal(r.expired_sessions, 0);
}

static void a_cut_is_lived_with_whichever_way_it_goes(void **state)
{
    for (enum lab_way way = LAB_TO_SHARDS; way <= LAB_BOTH_WAYS; way++) {
        struct chaos_result r = trial_run(state, (struct lab_fault){.kind = LAB_CUT,
                                                                    .workers = 1,
                                                                    .shards = 2,
                                                                    .ways = way,
                                                                    .at_ns = halfway(state),
                                                                    .lasts_ns = LAB_FOR_EVER});
        assert_true(r.lab.lost > 0);
        assert_true(r.lab.downs >= 2);
    }
}

static void delay_and_loss_are_lived_with(void **state)
{
    struct lab_fault fault = {.kind = LAB_DELAY,
                              .workers = 4,
                              .shards = 2,
                              .at_ns = halfway(state) / 2,
                              .lasts_ns = 40 * TEST_MS,
                              .amount = 5 * TEST_MS};
    struct chaos_result r = trial_run(state, fault);
    assert_true(r.lab.timeouts > 0);
    fault.kind = LAB_LOSS;
    fault.amount = 300000;
    r = trial_run(state, fault);
    assert_true(r.lab.lost > 0);
    assert_true(r.lab.timeouts > 0);
}

int main(void)
{
#define FAULT(test) cmocka_unit_test_setup_teardown(test, trial_open, trial_close)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(events_come_by_time_then_in_order_of_coming),
        cmocka_unit_test(an_empty_heap_gives_nothing),
        cmocka_unit_test(every_wait_is_a_round_trip),
        cmocka_unit_test(service_and_messages_cost_time),
        cmocka_unit_test(jitter_keeps_the_order_of_a_pair),
        cmocka_unit_test(a_node_of_a_games_solver_takes_a_node_of_time),
        cmocka_unit_test(who_solves_what_is_solved_stops),
        cmocka_unit_test(every_algorithm_gives_the_sequential_score),
        cmocka_unit_test(the_same_seed_gives_the_same_trace),
        cmocka_unit_test(options_out_of_range_are_refused),
        cmocka_unit_test(no_answer_within_the_limit_is_none),
        FAULT(killed_workers_leave_nothing),
        FAULT(the_front_end_is_not_killed),
        FAULT(a_shard_that_dies_goes_down_and_comes_back),
        FAULT(without_any_shard_the_answer_comes),
        FAULT(shards_that_all_die_halfway_are_done_without),
        FAULT(a_worker_that_stands_still_loses_its_session),
        FAULT(the_front_end_answers_after_its_stall),
        FAULT(a_shard_that_stands_still_goes_down_and_keeps_its_sessions),
        FAULT(a_cut_is_lived_with_whichever_way_it_goes),
        FAULT(delay_and_loss_are_lived_with),
    };
    return cmocka_run_group_tests_name("lab", tests, NULL, NULL);
}
