/* test_ttcore: a core with its actions, and short ways to speak to it and read what it says.
 * Included by the test_ttcore*.c programs, each of which includes it once. */
#ifndef TESTS_SUPPORT_TEST_TTCORE_H
#define TESTS_SUPPORT_TEST_TTCORE_H

#include "tests/support/test_proto_names.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/tt/tt.h"
#include "proto/codec.h"
#include "ttserver/core/core.h"

#include <stdlib.h>
#include <string.h>

enum { HEARTBEAT_US = 1000 * 1000, EXPIRY_US = 3500 * 1000 };

struct bed {
    struct ttcore *core;
    struct ttcore_actions actions;
    uint64_t now_us;
    const struct ttcore_peer *peer; /* who speaks, as the shell would know; may be NULL */
    struct proto_decoder decoder;
    struct proto_message seen; /* by bed_seen */
    uint8_t bytes[PROTO_MESSAGE_MAX];
};

static inline struct ttcore_options bed_options(void)
{
    struct ttcore_options options = ttcore_defaults();
    options.boot = 77;
    options.results_bytes = 1 << 16;
    options.inflight_max = 4096;
    options.sessions_max = 64;
    options.jobs_max = 16;
    return options;
}

static inline struct bed *bed_open(const struct ttcore_options *options)
{
    struct bed *bed = calloc(1, sizeof *bed);
    assert_non_null(bed);
    assert_int_equal(ttcore_open(&bed->core, options), ERR_OK);
    assert_int_equal(ttcore_actions_open(&bed->actions, options->sessions_max, options->jobs_max),
                     ERR_OK);
    return bed;
}

static inline void bed_close(struct bed *bed)
{
    ttcore_close(&bed->core);
    ttcore_actions_close(&bed->actions);
    free(bed);
}

/* A fixture: a bed with the usual options. */
static inline int bed_setup(void **state)
{
    struct ttcore_options options = bed_options();
    *state = bed_open(&options);
    return 0;
}

static inline int bed_teardown(void **state)
{
    bed_close(*state);
    return 0;
}

static inline void bed_bytes(struct bed *bed, const char *who, const void *bytes, size_t length)
{
    struct ttcore_event event = {
        TTCORE_MESSAGE, bed->now_us, (const uint8_t *)who, strlen(who), bytes, length, bed->peer};
    ttcore_step(bed->core, &event, &bed->actions);
}

static inline void bed_say(struct bed *bed, const char *who, struct proto_message message)
{
    size_t length = proto_encode(&message, bed->bytes, sizeof bed->bytes);
    assert_true(length > 0);
    bed_bytes(bed, who, bed->bytes, length);
}

static inline void bed_event(struct bed *bed, enum ttcore_event_kind kind)
{
    struct ttcore_event event = {.kind = kind, .now_us = bed->now_us};
    ttcore_step(bed->core, &event, &bed->actions);
}

static inline bool bed_is_worker_index(const struct ttcore_message *m)
{
    return m->length > 2 && m->bytes[2] == PROTO_WORKER_INDEX;
}

/* Messages of the last step but WORKER_INDEXes, which ticks repeat. */
static inline unsigned bed_said(const struct bed *bed)
{
    unsigned n = 0;
    for (uint32_t i = 0; i < bed->actions.messages; i++) {
        n += !bed_is_worker_index(&bed->actions.message[i]);
    }
    return n;
}

/* Time goes by in ticks of a quarter of a heartbeat; stops after a tick that emitted something. */
static inline void bed_wait(struct bed *bed, uint64_t us)
{
    uint64_t end_us = bed->now_us + us;
    do {
        uint64_t left = end_us - bed->now_us;
        bed->now_us += left < HEARTBEAT_US / 4 ? left : HEARTBEAT_US / 4;
        bed_event(bed, TTCORE_TICK);
    } while (bed->now_us < end_us && bed_said(bed) == 0);
}

static inline bool bed_is_for(const struct bed *bed, const struct ttcore_message *m,
                              const char *who)
{
    for (uint32_t t = 0; t < m->targets; t++) {
        const struct ttcore_target *target = &bed->actions.target[m->first + t];
        if (target->length == strlen(who) && memcmp(target->route, who, target->length) == 0) {
            return true;
        }
    }
    return false;
}

/* The `nth` message (from 0) that the last step sent to `who`, WORKER_INDEXes apart; NULL when
 * there are fewer. */
static inline const struct proto_message *bed_nth(struct bed *bed, const char *who, unsigned nth)
{
    for (uint32_t i = 0; i < bed->actions.messages; i++) {
        const struct ttcore_message *m = &bed->actions.message[i];
        if (bed_is_for(bed, m, who) && !bed_is_worker_index(m) && nth-- == 0) {
            assert_int_equal(proto_decode(&bed->decoder, m->bytes, m->length, &bed->seen), ERR_OK);
            return &bed->seen;
        }
    }
    return NULL;
}

/* The worker_index that the last step sent to `who`; -1: none. */
static inline int bed_worker_index(struct bed *bed, const char *who)
{
    for (uint32_t i = 0; i < bed->actions.messages; i++) {
        const struct ttcore_message *m = &bed->actions.message[i];
        if (bed_is_for(bed, m, who) && bed_is_worker_index(m)) {
            assert_int_equal(proto_decode(&bed->decoder, m->bytes, m->length, &bed->seen), ERR_OK);
            return (int)bed->seen.worker_index.index;
        }
    }
    return -1;
}

/* The only message that the last step sent to `who`, of this type. */
static inline const struct proto_message *bed_seen(struct bed *bed, const char *who,
                                                   enum proto_type type)
{
    assert_null(bed_nth(bed, who, 1));
    const struct proto_message *message = bed_nth(bed, who, 0);
    assert_non_null(message);
    assert_string_equal(proto_type_name(message->type), proto_type_name(type));
    return message;
}

static inline void bed_expect_error(struct bed *bed, const char *who, enum proto_error_code code)
{
    assert_int_equal(bed_seen(bed, who, PROTO_ERROR)->error.code, code);
    assert_int_equal(bed->actions.messages, 1);
}

static inline struct ttcore_figures bed_figures(const struct bed *bed)
{
    struct ttcore_figures figures;
    ttcore_figures(bed->core, &figures);
    return figures;
}

/* ---- messages ---- */

/* All who name no instance have one. */
static inline void bed_hello_as(struct bed *bed, const char *who, struct proto_hello hello)
{
    struct proto_message m = {.type = PROTO_HELLO, .hello = hello};
    m.hello.instance = hello.instance != 0 ? hello.instance : 1000;
    m.hello.name = proto_text_of(who);
    bed_say(bed, who, m);
}

/* Its instance is its name's first letter. */
static inline uint32_t bed_hello(struct bed *bed, const char *who, enum proto_role role)
{
    bed_hello_as(bed, who, (struct proto_hello){.role = (uint8_t)role, .instance = (uint8_t)*who});
    const struct proto_message *welcome = bed_nth(bed, who, 0);
    assert_non_null(welcome);
    assert_int_equal(welcome->type, PROTO_WELCOME);
    return welcome->welcome.session;
}

static inline struct tt_answer bed_ask(struct bed *bed, const char *who, struct tt_ask ask)
{
    struct proto_message m = {.type = PROTO_RETRIEVE_ASK};
    m.retrieve_ask.request = 9;
    m.retrieve_ask.list = (struct proto_asks){1, &ask};
    bed_say(bed, who, m);
    const struct proto_message *answer = bed_seen(bed, who, PROTO_RETRIEVE_ANSWER);
    assert_int_equal(answer->retrieve_answer.request, 9);
    assert_int_equal(answer->retrieve_answer.list.count, 1);
    return answer->retrieve_answer.list.at[0];
}

static inline struct tt_ask bed_wide(uint64_t key, uint8_t depth, uint8_t flags, uint16_t slot)
{
    return (struct tt_ask){key, -100, 100, depth, flags, slot};
}

static inline void bed_store(struct bed *bed, const char *who, struct tt_store store)
{
    struct proto_message m = {.type = PROTO_STORE_HASH};
    m.store_hash.list = (struct proto_stores){1, &store};
    bed_say(bed, who, m);
}

static inline void bed_release(struct bed *bed, const char *who, struct tt_release release)
{
    struct proto_message m = {.type = PROTO_RELEASE};
    m.release.list = (struct proto_releases){1, &release};
    bed_say(bed, who, m);
}

static inline struct tt_peeked bed_peek(struct bed *bed, const char *who, uint64_t key,
                                        uint8_t depth)
{
    struct tt_peek peek = {key, depth};
    struct proto_message m = {.type = PROTO_PEEK};
    m.peek.request = 5;
    m.peek.list = (struct proto_peeks){1, &peek};
    bed_say(bed, who, m);
    const struct proto_message *answer = bed_seen(bed, who, PROTO_PEEK_ANSWER);
    assert_int_equal(answer->peek_answer.request, 5);
    return answer->peek_answer.list.at[0];
}

static inline void bed_heartbeat(struct bed *bed, const char *who)
{
    struct proto_message m = {.type = PROTO_HEARTBEAT};
    bed_say(bed, who, m);
}

static inline void bed_bye(struct bed *bed, const char *who)
{
    struct proto_message m = {.type = PROTO_BYE};
    bed_say(bed, who, m);
}

static inline void bed_post_with(struct bed *bed, const char *who, uint64_t job, uint8_t flags)
{
    struct proto_message m = {.type = PROTO_JOB_POST};
    m.job.job = job;
    m.job.flags = flags;
    m.job.game = proto_text_of("chess");
    m.job.position = proto_text_of("startpos");
    m.job.evaluation = 0xe7a1;
    m.job.algorithm = proto_text_of("abdada");
    m.job.depth = 12;
    m.job.nodes = UINT64_MAX;
    bed_say(bed, who, m);
}

static inline void bed_post(struct bed *bed, const char *who, uint64_t job)
{
    bed_post_with(bed, who, job, 0);
}

static inline void bed_stop_job(struct bed *bed, const char *who, uint64_t job)
{
    struct proto_message m = {.type = PROTO_JOB_STOP, .job_stop = {job, PROTO_STOP_OWNER}};
    bed_say(bed, who, m);
}

/* Its connection is gone. */
static inline void bed_lose(struct bed *bed, const char *who)
{
    struct ttcore_event event = {.kind = TTCORE_GONE,
                                 .now_us = bed->now_us,
                                 .route = (const uint8_t *)who,
                                 .route_length = strlen(who)};
    ttcore_step(bed->core, &event, &bed->actions);
}

#endif
