/* test_lab: a question and a small virtual cluster to ask it on. Run from the root. */
#ifndef TESTS_SUPPORT_TEST_LAB_H
#define TESTS_SUPPORT_TEST_LAB_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/chaos/chaos.h"
#include "worker/games/games.h"

enum { TEST_US = 1000, TEST_MS = 1000000 };

static inline struct job lab_job(const char *game, const char *text, const char *algorithm,
                                 unsigned depth)
{
    char why[128] = "";
    struct job job = {
        .algorithm = algorithm_by_name(algorithm),
        .strict = true,
        .waits = true,
        .depth = (uint8_t)depth,
        .remote_depth = 2,
    };
    if (job_set_position(&job, games_by_name(game), text, why, sizeof why) != ERR_OK) {
        fail_msg("%s: %s", text, why);
    }
    job_set_namespace(&job, 0);
    return job;
}

/* No noise, no faults. */
static inline struct chaos_options lab_cluster(const struct job *job, unsigned workers,
                                               unsigned shards)
{
    return (struct chaos_options){
        .lab =
            {
                .job = job,
                .workers = workers,
                .shards = shards,
                .seed = 1,
                .node_ns = 1000,
                .rtt_ns = 100 * TEST_US,
                .results_bytes = 1 << 20,
                .local_bytes = 1 << 20,
                .limit_ns = UINT64_C(1000) * 1000 * TEST_MS,
                .heartbeat_ms = 20,
                .inflight_age_max_ms = 200,
                .rto_max_us = 20000,
                .probe_us = 5000,
            },
        .drain = true,
    };
}

static inline struct chaos_result lab_do(const struct chaos_options *options)
{
    struct chaos_result result;
    assert_int_equal(chaos_lab_run(options, &result), ERR_OK);
    return result;
}

static inline struct chaos_result lab_faulted(struct chaos_options options, struct lab_fault fault)
{
    options.fault = &fault;
    options.faults = 1;
    return lab_do(&options);
}

static inline int lab_sequential(const struct job *job)
{
    struct job alone = *job;
    struct chaos_options options = lab_cluster(&alone, 1, 1);
    alone.algorithm = algorithm_by_name("sequential");
    return lab_do(&options).lab.answer[0].search.score;
}

static inline void assert_nothing_left(const struct chaos_result *r)
{
    assert_int_equal(r->inflight_kept, 0);
    assert_int_equal(r->inflight_stale, 0);
    assert_int_equal(r->inflight_left, 0);
    assert_int_equal(r->sessions_stale, 0);
    assert_int_equal(r->unconnected, 0);
    assert_int_equal(r->still_searching, 0);
    assert_int_equal(r->uneven, 0);
    assert_int_equal(r->miscounted, 0);
    assert_int_equal(r->reports_missing, 0);
    assert_int_equal(r->requests_left, 0);
    assert_int_equal(r->grown, 0);
    assert_int_equal(r->broken_streams, 0);
    assert_int_equal(r->over_budget, 0);
    assert_int_equal(r->connections_left, 0);
}

#endif
