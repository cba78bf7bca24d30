/* Clocks of the virtual cluster: they drift, stand still and jump, and nothing lives by another's.
 */
#include "tests/chaos/lab_clock.h"
#include "tests/support/test_lab.h"

#include "common/rng.h"

static void a_clock_goes_forward_and_says_when(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 50; seed++) {
        struct lab_clock clock = lab_clock_draw(seed, 10000);
        uint64_t random = seed, time_ns = 0, last_us = lab_clock_us(&clock, 0);
        assert_in_range(clock.drift_ppm + 10000, 0, 20000);
        for (unsigned i = 0; i < 1000; i++) {
            time_ns += rng_below(&random, 3) == 0 ? rng_below(&random, 3000)
                                                  : rng_next(&random) % (60 * UINT64_C(1000000000));
            const uint64_t now_us = lab_clock_us(&clock, time_ns);
            const uint64_t wanted_us = now_us + rng_below(&random, 10000000);
            const uint64_t when_ns = lab_clock_when_ns(&clock, wanted_us);
            assert_true(now_us >= last_us);
            assert_true(lab_clock_us(&clock, when_ns) >= wanted_us);
            assert_true(lab_clock_us(&clock, when_ns) <= wanted_us + 2);
            last_us = now_us;
            if (rng_below(&random, 10) == 0) {
                lab_clock_suspend(&clock, time_ns);
                lab_clock_suspend(&clock, time_ns);
                time_ns += 1000000000;
                lab_clock_resume(&clock, time_ns);
                assert_int_equal(lab_clock_us(&clock, time_ns + 5000), now_us);
                lab_clock_resume(&clock, time_ns);
                assert_in_range(lab_clock_us(&clock, time_ns + 5000), now_us + 4, now_us + 6);
            }
        }
    }
}

static void a_clock_that_does_not_drift_shows_virtual_time(void **state)
{
    (void)state;
    const struct lab_clock clock = lab_clock_draw(7, 0);
    assert_int_equal(lab_clock_us(&clock, 123456789), 123456);
    assert_int_equal(lab_clock_when_ns(&clock, 123456), 123456000);
}

/* Over 2 shards, with a heartbeat of 20 ms, in clocks of their own. */
static struct chaos_options clocks(const struct job *job)
{
    struct chaos_options options = lab_cluster(job, 4, 2);
    options.drift_ppm = 10000;
    options.lab.inflight_age_max_ms = 2000;
    return options;
}

/* Its sessions expire, one a shard, and once each; then it goes on as if nothing had been. */
static void a_host_that_was_suspended_is_declared_dead_once(void **state)
{
    struct job job = lab_job("tree", "tree:b=12,d=6,seed=3,order=60", "abdada", 6);
    struct chaos_options options = clocks(&job);
    struct lab_fault fault = {
        .kind = LAB_SUSPEND, .worker = 2, .workers = 1, .lasts_ns = 1000 * UINT64_C(1000000)};
    (void)state;
    struct chaos_result sound = lab_do(&options);
    assert_nothing_left(&sound);
    assert_int_equal(sound.expired_sessions, 0);
    fault.at_ns = sound.lab.end_ns / 2;
    struct lab_post post[] = {{.job = &job}, {.job = &job, .at_ns = 2000 * UINT64_C(1000000)}};
    options.lab.post = post;
    options.lab.posts = 2; /* the second when it is back */
    struct chaos_result r = lab_faulted(options, fault);
    assert_nothing_left(&r);
    assert_int_equal(r.faults[LAB_SUSPEND], 1);
    assert_int_equal(r.expired_sessions, 2);
    assert_int_equal(r.lab.answer[1].search.score, lab_sequential(&job));
    job_free(&job);
}

/* For it no time has passed: it declares nobody dead. The others find it again. */
static void a_shard_that_was_suspended_declares_nobody_dead(void **state)
{
    struct job job = lab_job("tree", "tree:b=12,d=6,seed=3,order=60", "abdada", 6);
    struct chaos_options options = clocks(&job);
    struct lab_fault fault = {
        .kind = LAB_SUSPEND, .shard = 1, .shards = 1, .lasts_ns = 1000 * UINT64_C(1000000)};
    struct lab_post post[] = {{.job = &job}, {.job = &job, .at_ns = 2000 * UINT64_C(1000000)}};
    (void)state;
    options.lab.post = post;
    options.lab.posts = 2;
    fault.at_ns = 5 * TEST_MS;
    struct chaos_result r = lab_faulted(options, fault);
    assert_nothing_left(&r);
    assert_true(r.lab.downs >= 4);
    assert_int_equal(r.expired_sessions, 0);
    assert_int_equal(r.lab.answer[0].search.score, lab_sequential(&job));
    assert_int_equal(r.lab.answer[1].search.score, lab_sequential(&job));
    job_free(&job);
}

/* The front-end itself, amid its search: the answer comes when it is back. */
static void a_front_end_that_was_suspended_answers(void **state)
{
    struct job job = lab_job("tree", "tree:b=12,d=6,seed=3,order=60", "abdada", 6);
    struct chaos_options options = clocks(&job);
    struct lab_fault fault = {
        .kind = LAB_SUSPEND, .workers = 1, .lasts_ns = 1000 * UINT64_C(1000000)};
    (void)state;
    fault.at_ns = lab_do(&options).lab.end_ns / 2;
    struct chaos_result r = lab_faulted(options, fault);
    assert_nothing_left(&r);
    assert_true(r.lab.end_ns > fault.lasts_ns);
    assert_int_equal(r.lab.answer[0].search.score, lab_sequential(&job));
    job_free(&job);
}

/* Killed and started again while its host stands still: the clock of its new life goes on from
 * there. */
static void a_front_end_started_on_a_suspended_host_answers(void **state)
{
    struct job job = lab_job("tree", "tree:b=12,d=6,seed=3,order=60", "abdada", 6);
    struct chaos_options options = clocks(&job);
    struct lab_post post[] = {{.job = &job}, {.front = 1, .job = &job, .at_ns = 5 * TEST_MS}};
    struct lab_fault fault[] = {
        {.kind = LAB_KILL, .shards = 2, .lasts_ns = LAB_FOR_EVER, .at_ns = 8 * TEST_MS},
        {.kind = LAB_SUSPEND, .worker = 1, .workers = 1, .lasts_ns = 1000 * UINT64_C(1000000)},
        {.kind = LAB_KILL, .worker = 1, .workers = 1, .lasts_ns = 5 * TEST_MS},
    };
    (void)state;
    options.lab.fronts = 2;
    options.lab.post = post;
    options.lab.posts = 2;
    options.fault = fault;
    options.faults = 3;
    fault[1].at_ns = 10 * TEST_MS;
    fault[2].at_ns = 15 * TEST_MS;
    struct chaos_result r = lab_do(&options);
    assert_int_equal(r.restarts, 1);
    assert_int_equal(r.unanswered, 0);
    assert_true(r.lab.answer[1].answered);
    assert_int_equal(r.lab.answer[1].search.score, lab_sequential(&job));
    job_free(&job);
}

/* All wall clocks go back a day amid the search: the run is the same, event for event. */
static void a_jump_of_the_wall_clock_is_not_noticed(void **state)
{
    struct job job = lab_job("tree", "tree:b=12,d=6,seed=3,order=60", "abdada", 6);
    struct chaos_options options = clocks(&job);
    struct lab_fault fault = {.kind = LAB_JUMP, .workers = 4, .shards = 2, .at_ns = 5 * TEST_MS};
    (void)state;
    fault.amount = -(UINT64_C(86400) * 1000000000);
    struct chaos_result back = lab_faulted(options, fault);
    fault.amount = 1;
    struct chaos_result forward = lab_faulted(options, fault);
    assert_nothing_left(&back);
    assert_int_equal(back.faults[LAB_JUMP], 4 + 2);
    assert_int_equal(back.lab.trace, forward.lab.trace);
    options.planted.wall_clock = true;
    fault.amount = -(UINT64_C(86400) * 1000000000);
    struct lab_fault kill = {.kind = LAB_KILL,
                             .worker = 1,
                             .workers = 3,
                             .lasts_ns = LAB_FOR_EVER,
                             .at_ns = 6 * TEST_MS};
    const struct lab_fault both[] = {fault, kill};
    options.fault = both;
    options.faults = 2;
    assert_true(lab_do(&options).sessions_stale > 0);
    options.planted.wall_clock = false;
    struct chaos_result sound = lab_do(&options);
    assert_nothing_left(&sound);
    job_free(&job);
}

static void clocks_that_are_compared_are_caught(void **state)
{
    struct job job = lab_job("tree", "tree:b=12,d=6,seed=3,order=60", "abdada", 6);
    struct chaos_options options = clocks(&job);
    (void)state;
    options.planted.compare_clocks = true;
    assert_true(lab_do(&options).unconnected > 0);
    job_free(&job);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_clock_goes_forward_and_says_when),
        cmocka_unit_test(a_clock_that_does_not_drift_shows_virtual_time),
        cmocka_unit_test(a_host_that_was_suspended_is_declared_dead_once),
        cmocka_unit_test(a_shard_that_was_suspended_declares_nobody_dead),
        cmocka_unit_test(a_front_end_that_was_suspended_answers),
        cmocka_unit_test(a_front_end_started_on_a_suspended_host_answers),
        cmocka_unit_test(a_jump_of_the_wall_clock_is_not_noticed),
        cmocka_unit_test(clocks_that_are_compared_are_caught),
    };
    return cmocka_run_group_tests_name("lab clock", tests, NULL, NULL);
}
