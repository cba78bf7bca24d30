/* The virtual cluster with the connections of its shards: ZMTP, turns and budgets under what a
 * network does to streams, and beside who is no client at all. */
#include "tests/support/test_lab.h"

#include "tests/chaos/lab_dealer.h"

#include <string.h>

static const char tree[] = "tree:b=12,d=6,seed=3,order=60";

enum { SEEDS = 5 };

static struct chaos_options wired(const struct job *job, uint64_t seed)
{
    struct chaos_options options = lab_cluster(job, 4, 2);
    options.is_wired = true;
    options.has_keys = seed % 4 == 0;
    options.lab.seed = seed;
    return options;
}

/* ---- what a client says ---- */

static void a_frame_is_read_as_it_was_written(void **state)
{
    static uint8_t bytes[LAB_FRAME_OVERHEAD + 70000];
    static const size_t lengths[] = {0, 1, 255, 256, 65535, 65536, 70000};
    (void)state;
    for (unsigned i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        struct lab_frame f;
        size_t n = lab_zmtp_header(bytes, LAB_FRAME_MORE, lengths[i]) + lengths[i];
        assert_int_equal(lab_zmtp_frame(bytes, n - 1, &f), 0);
        assert_int_equal(lab_zmtp_frame(bytes, n, &f), 1);
        assert_int_equal(f.length, lengths[i]);
        assert_int_equal(f.used, n);
        assert_int_equal(f.flags & LAB_FRAME_MORE, LAB_FRAME_MORE);
    }
    assert_int_equal(lab_zmtp_frame((uint8_t[]){8, 0}, 2, &(struct lab_frame){0}), -1);
    assert_int_equal(lab_zmtp_frame((uint8_t[]){5, 0}, 2, &(struct lab_frame){0}), -1);
}

/* ---- without faults ---- */

static void scores_pass_through_connections(void **state)
{
    struct job job = lab_job("tree", tree, "abdada", 6);
    int score = lab_sequential(&job);
    (void)state;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct chaos_options options = wired(&job, seed);
        struct chaos_result r = lab_do(&options);
        assert_true(r.lab.answer[0].answered);
        assert_int_equal(r.lab.answer[0].search.score, score);
        assert_true(r.lab.asks > 100);
        assert_int_equal(r.lab.downs, 0);
        assert_nothing_left(&r);
    }
    job_free(&job);
}

static void the_same_seed_gives_the_same_trace(void **state)
{
    struct job job = lab_job("tree", tree, "abdada", 6);
    (void)state;
    for (uint64_t seed = 3; seed <= 4; seed++) { /* without keys, with keys */
        struct chaos_options options = wired(&job, seed);
        options.lab.loss_ppm = 5000;
        options.lie_ns = TEST_MS / 10;
        struct chaos_result one = lab_do(&options), two = lab_do(&options);
        assert_memory_equal(&one, &two, sizeof one);
        options.lab.seed += 4;
        assert_true(lab_do(&options).lab.trace != one.lab.trace);
    }
    job_free(&job);
}

/* ---- with one ---- */

static struct chaos_result with_fault(uint64_t seed, const struct job *job, int score,
                                      struct lab_fault fault)
{
    struct chaos_options options = wired(job, seed);
    fault.ways = LAB_BOTH_WAYS;
    fault.at_ns = fault.at_ns != 0 ? fault.at_ns : lab_do(&options).lab.end_ns / 2;
    struct chaos_result r = lab_faulted(options, fault);
    assert_true(r.lab.answer[0].answered);
    assert_int_equal(r.lab.answer[0].search.score, score);
    assert_nothing_left(&r);
    return r;
}

static void a_fault_of_connections_changes_no_score(void **state)
{
    struct job job = lab_job("tree", tree, "abdada", 6);
    int score = lab_sequential(&job);
    static const enum lab_fault_kind kinds[] = {LAB_RESET, LAB_HALF_OPEN, LAB_DEAF, LAB_CUT};
    unsigned downs[4] = {0};
    (void)state;
    for (unsigned k = 0; k < 4; k++) {
        for (uint64_t seed = 1; seed <= SEEDS; seed++) {
            downs[k] += with_fault(seed, &job, score,
                                   (struct lab_fault){.kind = kinds[k],
                                                      .workers = 3,
                                                      .shards = 2,
                                                      .lasts_ns = 10 * TEST_MS})
                            .lab.downs;
        }
    }
    assert_true(downs[0] > 0 && downs[1] > 0);
    job_free(&job);
}

/* Some without a word: their connections stay behind, half open. */
static void who_dies_leaves_no_connection(void **state)
{
    struct job job = lab_job("tree", tree, "abdada", 6);
    int score = lab_sequential(&job);
    unsigned expired = 0;
    (void)state;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct lab_fault fault = {
            .kind = LAB_KILL, .worker = 1, .workers = 3, .lasts_ns = LAB_FOR_EVER};
        expired += (unsigned)with_fault(seed, &job, score, fault).expired_sessions;
        fault.lasts_ns = 3 * TEST_MS;
        with_fault(seed, &job, score, fault);
        fault = (struct lab_fault){.kind = LAB_KILL, .shards = 2, .lasts_ns = 10 * TEST_MS};
        with_fault(seed, &job, score, fault);
    }
    assert_in_range(expired, 1, SEEDS * 3 * 2 - 1); /* of those who went without a word */
    job_free(&job);
}

/* ---- who is no client ---- */

static void good_clients_are_served_beside_intruders(void **state)
{
    struct job job = lab_job("tree", tree, "abdada", 6);
    int score = lab_sequential(&job);
    uint64_t intrusions = 0, storms = 0;
    (void)state;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct chaos_options options = wired(&job, seed);
        options.lie_ns = 50 * TEST_US;
        struct chaos_result r = lab_do(&options);
        assert_int_equal(r.lab.answer[0].search.score, score);
        assert_nothing_left(&r);
        assert_int_equal(r.lab.timeouts, 0); /* nobody waited long */
        assert_int_equal(r.lab.downs, 0);
        intrusions += r.intrusions;
        storms += r.storms;
    }
    assert_true(intrusions > 100 * SEEDS && storms > SEEDS);
    job_free(&job);
}

/* ---- planted faults ---- */

static unsigned caught(struct lab_planted planted, uint64_t lie_ns,
                       unsigned (*count)(const struct chaos_result *r))
{
    struct job job = lab_job("tree", tree, "abdada", 6);
    const struct lab_fault fault = {
        .kind = LAB_KILL, .worker = 1, .workers = 3, .lasts_ns = LAB_FOR_EVER, .at_ns = TEST_MS};
    unsigned seeds = 0;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct chaos_options options = wired(&job, seed);
        options.planted = planted;
        options.lie_ns = lie_ns;
        struct chaos_result r = lab_faulted(options, fault);
        seeds += count(&r) > 0;
    }
    job_free(&job);
    return seeds;
}

static unsigned broken(const struct chaos_result *r)
{
    return r->broken_streams;
}

static unsigned over(const struct chaos_result *r)
{
    return r->over_budget;
}

static unsigned left(const struct chaos_result *r)
{
    return r->connections_left;
}

static void planted_faults_of_connections_are_caught(void **state)
{
    (void)state;
    assert_true(caught((struct lab_planted){.lose_rest = true}, 0, broken) > 0);
    assert_true(caught((struct lab_planted){.lose_budget = true}, 50 * TEST_US, over) > 0);
    assert_true(caught((struct lab_planted){.keep_half_open = true}, 0, left) > 0);
    assert_int_equal(caught((struct lab_planted){.skip_stop = false}, 50 * TEST_US, broken), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_frame_is_read_as_it_was_written),
        cmocka_unit_test(scores_pass_through_connections),
        cmocka_unit_test(the_same_seed_gives_the_same_trace),
        cmocka_unit_test(a_fault_of_connections_changes_no_score),
        cmocka_unit_test(who_dies_leaves_no_connection),
        cmocka_unit_test(good_clients_are_served_beside_intruders),
        cmocka_unit_test(planted_faults_of_connections_are_caught),
    };
    return cmocka_run_group_tests_name("lab net", tests, NULL, NULL);
}
