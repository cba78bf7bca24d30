/* test_redis_bed: one Redis for all tests of a program, empty at the begin of each. */
#ifndef TESTS_SUPPORT_TEST_REDIS_BED_H
#define TESTS_SUPPORT_TEST_REDIS_BED_H

#include "tests/support/test_tt.h"

#include "tests/support/test_redis_shell.h"

enum { WINDOW = 100, NAMES_A = 7, NAMES_B = 8 };

static struct redis_bed bed;

/* Before and after all tests of the program. */
static inline int start_redis(void **state)
{
    (void)state;
    bed_start(&bed);
    return 0;
}

static inline int stop_redis(void **state)
{
    (void)state;
    bed_end(&bed);
    return 0;
}

static inline struct tt_ask wide(uint64_t key, uint8_t depth, uint8_t flags)
{
    return (struct tt_ask){
        .key = key, .depth = depth, .alpha = -WINDOW, .beta = WINDOW, .flags = flags};
}

static inline struct proto_job a_job(uint64_t id, const char *position)
{
    return (struct proto_job){
        .job = id,
        .game = proto_text_of("chess"),
        .position = proto_text_of(position),
        .namespace_id = NAMES_A,
        .algorithm = proto_text_of("abdada"),
        .depth = 9,
    };
}

static inline struct proto_job_report a_report(uint64_t job, enum proto_job_state state)
{
    return (struct proto_job_report){
        .job = job, .state = (uint8_t)state, .depth = 5, .nodes = 1000, .asks = 3};
}

static inline int fresh(void **state)
{
    (void)state;
    redis_expect(bed.server.port, "FLUSHALL", "OK");
    memset(bed.peer, 0, sizeof bed.peer);
    return 0;
}

static inline int closed(void **state)
{
    (void)state;
    for (unsigned i = 0; i < BENCH_PEERS; i++) {
        peer_close(&bed, i);
    }
    return 0;
}

static inline void post(unsigned index, uint64_t id, const char *position)
{
    struct proto_job job = a_job(id, position);
    assert_int_equal(client_job_post(bed.peer[index].client, &job, clock_us()), ERR_OK);
}

static inline void report(unsigned index, uint64_t id, enum proto_job_state state)
{
    struct proto_job_report r = a_report(id, state);
    client_job_report(bed.peer[index].client, &r, clock_us());
}

#endif
