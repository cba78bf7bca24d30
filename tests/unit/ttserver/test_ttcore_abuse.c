/* Bad input, limits and random streams against the shard's core. A random test prints its seed;
 * SEED=n in the environment repeats it. */
#include "tests/support/test_ttcore.h"

#include "common/rng.h"
#include "ttserver/core/offender.h"
#include "ttserver/core/session_table.h"

#include <stdio.h>

/* ---- bad input ---- */

static void ask_list(struct bed *bed, const char *who, struct tt_ask *list, uint32_t count)
{
    struct proto_message m = {.type = PROTO_RETRIEVE_ASK};
    m.retrieve_ask.request = 3;
    m.retrieve_ask.list = (struct proto_asks){count, list};
    bed_say(bed, who, m);
}

static void one_bad_ask_refuses_the_batch(void **state)
{
    struct bed *bed = *state;
    const struct tt_ask bad[] = {
        {1, 5, 5, 4, 0, 0},    {1, 6, 5, 4, 0, 0},  {1, -5, 5, TT_DEPTH_MAX + 1, 0, 0},
        {1, -5, 5, 255, 0, 0}, {1, -5, 5, 4, 4, 0}, {1, INT16_MIN, 5, 4, 0, 0},
    };
    bed_hello(bed, "a", PROTO_CLIENT);
    for (unsigned i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct tt_ask list[] = {bed_wide(1, 4, 0, 0), bad[i], bed_wide(2, 4, 0, 0)};
        ask_list(bed, "a", list, 3);
        bed_expect_error(bed, "a", PROTO_ERR_RANGE);
        assert_int_equal(bed->seen.error.request, 3);
        assert_int_equal(bed_figures(bed).inflight_entries, 0);
    }
    assert_int_equal(bed_figures(bed).asks, 0);
    assert_int_equal(bed_figures(bed).refused, 6);
}

static void one_bad_store_refuses_the_batch(void **state)
{
    struct bed *bed = *state;
    const struct tt_store bad[] = {
        {2, 5, 4, 0, 0, 0},
        {2, 5, 4, 4, 0, 0},
        {2, 5, 251, TT_EXACT, 0, 0},
        {2, INT16_MIN, 4, TT_EXACT, 0, 0},
    };
    bed_hello(bed, "a", PROTO_CLIENT);
    bed_ask(bed, "a", bed_wide(1, 4, 0, 0));
    for (unsigned i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct tt_store list[] = {{1, 5, 4, TT_EXACT, 0, 0}, bad[i]};
        struct proto_message m = {.type = PROTO_STORE_HASH};
        m.store_hash.list = (struct proto_stores){2, list};
        bed_say(bed, "a", m);
        bed_expect_error(bed, "a", PROTO_ERR_RANGE);
        assert_int_equal(bed_peek(bed, "a", 1, 4).nproc, 1);
        assert_int_equal(bed_peek(bed, "a", 1, 4).lower, TT_SCORE_MIN);
    }
    bed_release(bed, "a", (struct tt_release){1, 251, 0});
    bed_expect_error(bed, "a", PROTO_ERR_RANGE);
    struct tt_peek peek = {1, 251};
    struct proto_message m = {.type = PROTO_PEEK, .peek = {8, {1, &peek}}};
    bed_say(bed, "a", m);
    bed_expect_error(bed, "a", PROTO_ERR_RANGE);
    assert_int_equal(bed->seen.error.request, 8);
}

static void batch_max_is_kept(void **state)
{
    struct ttcore_options options = bed_options();
    struct tt_ask list[3] = {bed_wide(1, 1, 0, 0), bed_wide(2, 1, 0, 0), bed_wide(3, 1, 0, 0)};
    (void)state;
    options.batch_max = 2;
    struct bed *bed = bed_open(&options);
    bed_hello(bed, "a", PROTO_CLIENT);
    ask_list(bed, "a", list, 3);
    bed_expect_error(bed, "a", PROTO_ERR_LIMIT);
    ask_list(bed, "a", list, 2);
    bed_seen(bed, "a", PROTO_RETRIEVE_ANSWER);
    bed_close(bed);
}

static void noise_is_dropped_or_answered_once(void **state)
{
    struct bed *bed = *state;
    const uint8_t noise[] = {0xc1, 0xff, 0x00, 0x93};
    const uint8_t version[] = {0x92, 1, 9};
    const uint8_t type[] = {0x92, PROTO_VERSION, 99};
    bed_bytes(bed, "a", noise, sizeof noise);
    assert_int_equal(bed->actions.messages, 0);
    bed_bytes(bed, "a", NULL, 0);
    assert_int_equal(bed->actions.messages, 0);
    bed_bytes(bed, "a", type, sizeof type);
    assert_int_equal(bed->actions.messages, 0);
    bed_bytes(bed, "a", version, sizeof version);
    bed_expect_error(bed, "a", PROTO_ERR_VERSION);
    bed_hello(bed, "a", PROTO_CLIENT);
    bed_bytes(bed, "a", noise, sizeof noise);
    bed_expect_error(bed, "a", PROTO_ERR_MALFORMED);
    bed_bytes(bed, "a", NULL, 0);
    bed_expect_error(bed, "a", PROTO_ERR_MALFORMED);
    bed_bytes(bed, "a", type, sizeof type);
    bed_expect_error(bed, "a", PROTO_ERR_TYPE);
    bed_bytes(bed, "a", version, sizeof version);
    bed_expect_error(bed, "a", PROTO_ERR_VERSION);
    assert_int_equal(bed_figures(bed).malformed, 6);
    assert_int_equal(bed_figures(bed).versions_refused, 2);
    assert_int_equal(bed_figures(bed).ignored, 0);
}

/* Says so many messages of that version, which are answered all, and one more, which is not. */
static void expect_ignored_after(struct bed *bed, const char *who, const uint8_t *bytes,
                                 size_t length, unsigned count)
{
    uint64_t ignored = bed_figures(bed).ignored;
    for (unsigned i = 0; i < count; i++) {
        bed_bytes(bed, who, bytes, length);
        bed_expect_error(bed, who, PROTO_ERR_VERSION);
    }
    assert_int_equal(bed_figures(bed).ignored, ignored);
    bed_bytes(bed, who, bytes, length);
    assert_int_equal(bed->actions.messages, 0);
    assert_int_equal(bed_figures(bed).ignored, ignored + 1);
}

static void of_other_versions_a_peer_may_send_some(void **state)
{
    struct bed *bed = *state;
    uint8_t bytes[128] = {0x92, 0, PROTO_HEARTBEAT};
    struct proto_message hello = {.type = PROTO_HELLO, .hello = {.lowest = 77, .highest = 77}};
    bed->now_us = 5000000;
    bed_hello(bed, "in", PROTO_CLIENT);
    for (unsigned round = 0; round < 2; round++) {
        const char *who = round == 0 ? "in" : "out"; /* with a session, and without one */
        for (unsigned version = 0; version < 20; version++) {
            bytes[1] = (uint8_t)version;
            if (version != PROTO_VERSION) {
                expect_ignored_after(bed, who, bytes, 3, TTCORE_FAULTS_MAX);
                bed->now_us += TTCORE_IGNORE_US;
            }
        }
    }
    size_t length = proto_encode(&hello, bytes, sizeof bytes);
    bytes[1] = 77;
    expect_ignored_after(bed, "late", bytes, length, TTCORE_FAULTS_MAX);
    bed->now_us += TTCORE_IGNORE_US;
    bytes[1] = PROTO_VERSION; /* it says that it speaks another alone */
    expect_ignored_after(bed, "late", bytes, length, TTCORE_FAULTS_MAX);
}

static void routes_out_of_range_are_dropped(void **state)
{
    struct bed *bed = *state;
    char longest[TTCORE_ROUTE_MAX + 2];
    bed_heartbeat(bed, "");
    assert_int_equal(bed->actions.messages, 0);
    memset(longest, 'r', sizeof longest);
    longest[TTCORE_ROUTE_MAX + 1] = '\0';
    bed_heartbeat(bed, longest);
    assert_int_equal(bed->actions.messages, 0);
    longest[TTCORE_ROUTE_MAX] = '\0';
    bed_hello(bed, longest, PROTO_CLIENT);
    bed_ask(bed, longest, bed_wide(1, 4, 0, 0));
}

static void messages_of_a_shard_are_refused(void **state)
{
    struct bed *bed = *state;
    const enum proto_type types[] = {PROTO_WELCOME, PROTO_RETRIEVE_ANSWER, PROTO_PEEK_ANSWER,
                                     PROTO_JOB,     PROTO_NODE_DONE,       PROTO_STATS_ANSWER};
    bed_hello(bed, "a", PROTO_CLIENT);
    for (unsigned i = 0; i < sizeof types / sizeof types[0]; i++) {
        struct proto_message m;
        memset(&m, 0, sizeof m);
        m.type = types[i];
        bed_say(bed, "a", m);
        bed_expect_error(bed, "a", PROTO_ERR_TYPE);
    }
    struct proto_message m = {.type = PROTO_ERROR};
    bed_say(bed, "a", m);
    assert_int_equal(bed->actions.messages, 0); /* or two peers would quarrel for ever */
    assert_int_equal(bed_figures(bed).malformed, 7);
}

static void unknown_roles_and_flags_are_refused(void **state)
{
    struct bed *bed = *state;
    bed_hello_as(bed, "a", (struct proto_hello){.role = PROTO_MONITOR + 1});
    bed_expect_error(bed, "a", PROTO_ERR_RANGE);
    bed_hello_as(bed, "a", (struct proto_hello){.flags = 8});
    bed_expect_error(bed, "a", PROTO_ERR_RANGE);
    assert_int_equal(bed_figures(bed).sessions, 0);
}

static void stats_are_answered(void **state)
{
    struct bed *bed = *state;
    bed_hello(bed, "a", PROTO_CLIENT);
    bed_ask(bed, "a", bed_wide(1, 4, 0, 0));
    bed->now_us = 2500000;
    bed_say(bed, "a", (struct proto_message){.type = PROTO_STATS, .stats = {6}});
    const struct proto_stats_answer answer = bed_seen(bed, "a", PROTO_STATS_ANSWER)->stats_answer;
    unsigned found = 0;
    assert_int_equal(answer.request, 6);
    for (uint32_t i = 0; i < answer.list.count; i++) {
        char name[32];
        assert_true(proto_text_copy(answer.list.at[i].name, name, sizeof name));
        uint64_t value = answer.list.at[i].value;
        found += (strcmp(name, "asks") == 0 && value == 1) ||
                 (strcmp(name, "sessions") == 0 && value == 1) ||
                 (strcmp(name, "inflight_entries") == 0 && value == 1) ||
                 (strcmp(name, "uptime_ms") == 0 && value == 2500) ||
                 (strcmp(name, "memory_bytes") == 0 && value > 65536);
    }
    assert_int_equal(found, 5);
}

/* ---- peers that are ignored ---- */

static void say_noise(struct bed *bed, const char *who, unsigned times)
{
    while (times-- > 0) {
        bed_bytes(bed, who, "\xc1", 1);
    }
}

static bool is_answered(struct bed *bed, const char *who)
{
    uint64_t before = bed_figures(bed).ignored;
    bed_heartbeat(bed, who);
    bool answered = bed_figures(bed).ignored == before;
    assert_int_equal(bed->actions.messages, answered);
    assert_int_equal(bed->actions.ignored > 0, !answered);
    return answered;
}

static void who_sends_noise_is_ignored_for_a_second(void **state)
{
    struct bed *bed = *state;
    bed->now_us = 5000000;
    bed_hello(bed, "bad", PROTO_CLIENT);
    bed_hello(bed, "ba", PROTO_CLIENT);
    bed_ask(bed, "bad", bed_wide(1, 4, 0, 0));
    say_noise(bed, "bad", TTCORE_FAULTS_MAX - 1);
    assert_true(is_answered(bed, "bad"));
    say_noise(bed, "bad", 1);
    bed_expect_error(bed, "bad", PROTO_ERR_MALFORMED);
    assert_false(is_answered(bed, "bad"));
    assert_true(is_answered(bed, "ba"));
    say_noise(bed, "bad", 1000);
    assert_int_equal(bed_figures(bed).malformed, TTCORE_FAULTS_MAX);
    assert_int_equal(bed_figures(bed).ignored, 1001);
    assert_int_equal(bed_figures(bed).inflight_entries, 1);
    bed->now_us += TTCORE_IGNORE_US - 1;
    assert_false(is_answered(bed, "bad"));
    bed->now_us++;
    assert_true(is_answered(bed, "bad")); /* its session is still there */
    say_noise(bed, "bad", TTCORE_FAULTS_MAX - 1);
    assert_true(is_answered(bed, "bad"));
}

static void noise_now_and_then_is_forgiven(void **state)
{
    struct bed *bed = *state;
    bed_hello(bed, "poor", PROTO_CLIENT);
    for (unsigned i = 0; i < 10; i++) {
        say_noise(bed, "poor", TTCORE_FAULTS_MAX - 1);
        bed->now_us += TTCORE_FAULTS_US;
        assert_true(is_answered(bed, "poor"));
    }
    assert_int_equal(bed_figures(bed).malformed, 10 * (TTCORE_FAULTS_MAX - 1));
}

static void a_peer_without_a_session_that_sends_noise_is_ignored_too(void **state)
{
    struct bed *bed = *state;
    say_noise(bed, "x", TTCORE_FAULTS_MAX);
    bed_hello_as(bed, "x", (struct proto_hello){.role = PROTO_CLIENT});
    assert_int_equal(bed->actions.messages, 0);
    bed->now_us += TTCORE_IGNORE_US;
    bed_hello(bed, "x", PROTO_CLIENT);
}

/* Refused, or of no session: that is how a good peer finds out that it expired, or about a limit.
 */
static void only_what_is_no_message_is_held_against_a_peer(void **state)
{
    struct bed *bed = *state;
    for (unsigned i = 0; i < 10 * TTCORE_FAULTS_MAX; i++) {
        bed_heartbeat(bed, "expired");
        bed_expect_error(bed, "expired", PROTO_ERR_SESSION);
    }
    bed_hello(bed, "expired", PROTO_CLIENT);
    for (unsigned i = 0; i < 10 * TTCORE_FAULTS_MAX; i++) {
        bed_release(bed, "expired", (struct tt_release){1, 251, 0});
        bed_expect_error(bed, "expired", PROTO_ERR_RANGE);
    }
    assert_true(is_answered(bed, "expired"));
}

static void any_number_of_noisy_peers_harms_no_other(void **state)
{
    enum { NOISY = 4 * TTCORE_OFFENDER_SETS * TTCORE_OFFENDER_WAYS };
    struct bed *bed = *state;
    char name[16];
    unsigned ignored = 0;
    bed_hello(bed, "good", PROTO_CLIENT);
    for (unsigned i = 0; i < NOISY; i++) {
        snprintf(name, sizeof name, "n%u", i);
        say_noise(bed, name, 2 * TTCORE_FAULTS_MAX);
        ignored += bed->actions.ignored > 0;
        assert_true(is_answered(bed, "good"));
    }
    assert_in_range(ignored, NOISY / 8, TTCORE_OFFENDER_SETS * TTCORE_OFFENDER_WAYS);
    bed->now_us += TTCORE_IGNORE_US;
    bed_event(bed, TTCORE_TICK);
    assert_int_equal(bed_figures(bed).sessions, 1);
    say_noise(bed, name, TTCORE_FAULTS_MAX + 1);
    assert_int_equal(bed->actions.ignored, 1); /* the others are forgotten */
}

/* ---- limits ---- */

static void options_out_of_range_are_refused(void **state)
{
    struct ttcore *core = NULL;
    struct ttcore_options options = bed_options();
    (void)state;
    options.sessions_max = 0;
    assert_int_equal(ttcore_open(&core, &options), ERR_RANGE);
    options = bed_options();
    options.batch_max = PROTO_BATCH_MAX + 1;
    assert_int_equal(ttcore_open(&core, &options), ERR_RANGE);
    options = bed_options();
    options.inflight_max = 0;
    assert_int_equal(ttcore_open(&core, &options), ERR_RANGE);
    options = bed_options();
    options.results_bytes = (size_t)1 << 60;
    assert_int_equal(ttcore_open(&core, &options), ERR_NOMEM);
    assert_null(core);
    ttcore_close(&core);
}

static void a_hello_without_an_instance_is_refused(void **state)
{
    static const uint8_t bare[] = {0x92, PROTO_VERSION, PROTO_HELLO};
    struct bed *bed = *state;
    bed_bytes(bed, "bare", bare, sizeof bare);
    bed_expect_error(bed, "bare", PROTO_ERR_RANGE);
    assert_int_equal(bed_figures(bed).sessions, 0);
}

static void sessions_are_bounded(void **state)
{
    struct bed *bed = *state;
    char name[16];
    for (unsigned i = 0; i < 64; i++) {
        snprintf(name, sizeof name, "peer%u", i);
        bed_hello_as(bed, name, (struct proto_hello){.role = PROTO_CLIENT, .instance = i + 1});
    }
    bed_hello_as(bed, "one more", (struct proto_hello){.role = PROTO_CLIENT});
    bed_expect_error(bed, "one more", PROTO_ERR_LIMIT);
    bed_bye(bed, "peer7");
    bed_hello(bed, "one more", PROTO_CLIENT);
    assert_int_equal(bed_figures(bed).sessions, 64);
}

static void output_never_passes_its_bound(void **state)
{
    struct bed *bed = *state;
    char name[16];
    ttcore_actions_close(&bed->actions);
    assert_int_equal(ttcore_actions_open(&bed->actions, 1, 1), ERR_OK);
    bed->actions.targets_max = 3;
    bed_hello(bed, "front", PROTO_FRONT);
    for (unsigned i = 0; i < 20; i++) {
        snprintf(name, sizeof name, "peer%u", i);
        bed_hello(bed, name, PROTO_WORKER);
    }
    bed_post(bed, "front", 1);
    assert_int_equal(bed->actions.messages, 1);
    assert_int_equal(bed->actions.targets, 3);
    assert_int_equal(bed->actions.dropped, 18); /* 20 workers, two places left */
    assert_int_equal(bed_figures(bed).dropped, 18);
    bed->actions.bytes_max = 10;
    bed_say(bed, "front", (struct proto_message){.type = PROTO_STATS});
    assert_int_equal(bed->actions.messages, 0);
    assert_int_equal(bed->actions.dropped, 19);
}

/* A batch of the longest results, of nodes that many other sessions hold, too. */
static void longest_results_fit(void **state)
{
    enum { SESSIONS = 40 };
    struct bed *bed = *state;
    static struct tt_store store[PROTO_BATCH_MAX];
    char name[16];
    bed_hello(bed, "storer", PROTO_CLIENT);
    for (unsigned i = 0; i < PROTO_BATCH_MAX; i++) {
        store[i] =
            (struct tt_store){UINT64_MAX - i, TT_SCORE_MIN, TT_DEPTH_MAX, TT_EXACT, 60000, 60000};
        snprintf(name, sizeof name, "peer%u", i % SESSIONS);
        if (i < SESSIONS) {
            bed_hello_as(bed, name, (struct proto_hello){.flags = PROTO_WANTS_NODE_DONE});
        }
        bed_ask(bed, name, bed_wide(store[i].key, TT_DEPTH_MAX, 0, 0));
    }
    struct proto_message m = {.type = PROTO_STORE_HASH};
    m.store_hash.list = (struct proto_stores){PROTO_BATCH_MAX, store};
    bed_say(bed, "storer", m);
    assert_int_equal(bed->actions.messages, SESSIONS);
    assert_int_equal(bed->actions.dropped, 0);
    assert_int_equal(bed_figures(bed).node_dones, PROTO_BATCH_MAX);
}

/* ---- random ---- */

static uint64_t seed_of_test(void)
{
    const char *text = getenv("SEED");
    uint64_t seed = text != NULL ? strtoull(text, NULL, 10) : 20240607;
    printf("# SEED=%llu\n", (unsigned long long)seed);
    return seed;
}

static void random_message(struct bed *bed, const char *who, uint64_t *rng)
{
    uint64_t key = rng_mix(rng_below(rng, 50) + 1);
    uint8_t depth = (uint8_t)rng_below(rng, 3);
    uint16_t slot = (uint16_t)rng_below(rng, 4);
    switch (rng_below(rng, 8)) {
    case 0:
        bed_hello_as(bed, who,
                     (struct proto_hello){.role = (uint8_t)rng_below(rng, 3),
                                          .flags = (uint8_t)rng_below(rng, 2),
                                          .namespace_id = rng_below(rng, 2),
                                          .instance = 1 + rng_below(rng, 2)});
        break;
    case 1:
        bed_store(bed, who,
                  (struct tt_store){key, (int16_t)rng_below(rng, 300), depth,
                                    (uint8_t)(1 + rng_below(rng, 3)), 1, slot});
        break;
    case 2:
        bed_release(bed, who, (struct tt_release){key, depth, slot});
        break;
    case 3:
        if (rng_below(rng, 4) == 0) {
            struct proto_message m = {.type = PROTO_JOB_REPORT};
            m.job_report.job = rng_below(rng, 6);
            bed_say(bed, who, m);
        } else {
            bed_post(bed, who, rng_below(rng, 6));
        }
        break;
    case 4:
        if (rng_below(rng, 10) == 0) {
            bed_bye(bed, who);
        } else {
            bed_stop_job(bed, who, rng_below(rng, 6));
        }
        break;
    default: {
        struct tt_ask ask = bed_wide(key, depth, (uint8_t)rng_below(rng, 4), slot);
        ask_list(bed, who, &ask, 1);
    }
    }
}

static void nothing_is_left_when_all_sessions_expire(void **state)
{
    struct bed *bed = *state;
    uint64_t rng = seed_of_test();
    char name[16];
    for (unsigned i = 0; i < 200000; i++) {
        snprintf(name, sizeof name, "%c%u", 'a' + rng_below(&rng, 3), rng_below(&rng, 30));
        random_message(bed, name, &rng);
        assert_int_equal(bed->actions.dropped, 0);
        if (rng_below(&rng, 50) == 0) {
            bed->now_us += rng_below(&rng, HEARTBEAT_US);
            bed_event(bed, TTCORE_TICK);
        }
    }
    struct ttcore_figures busy = bed_figures(bed);
    assert_true(busy.sessions_expired > 10 && busy.busy > 100 && busy.cuts > 100 &&
                busy.node_dones > 100 && busy.job_posts > 100 && busy.job_reports > 100 &&
                busy.reports_unknown_job > 100);
    for (unsigned i = 0; i < 20; i++) {
        bed->now_us += HEARTBEAT_US / 4;
        bed_event(bed, TTCORE_TICK);
    }
    struct ttcore_figures after = bed_figures(bed);
    assert_int_equal(after.sessions, 0);
    assert_int_equal(after.workers + after.fronts, 0);
    assert_int_equal(after.jobs, 0);
    assert_int_equal(after.inflight_entries, 0);
    assert_int_equal(after.inflight_nodes, 0);
}

/* Against a naive list of holders: every nproc must be exact. */
enum { MODEL_KEYS = 6, MODEL_PEERS = 4, MODEL_SLOTS = 2 };

static void nproc_is_exact(void **state)
{
    struct bed *bed = *state;
    bool is_holder[MODEL_KEYS][MODEL_PEERS][MODEL_SLOTS] = {{{false}}};
    static const char *const peer[MODEL_PEERS] = {"a", "b", "c", "d"};
    uint64_t rng = seed_of_test();
    for (unsigned p = 0; p < MODEL_PEERS; p++) {
        bed_hello(bed, peer[p], PROTO_CLIENT);
    }
    for (unsigned i = 0; i < 50000; i++) {
        unsigned k = rng_below(&rng, MODEL_KEYS), p = rng_below(&rng, MODEL_PEERS);
        uint16_t s = (uint16_t)rng_below(&rng, MODEL_SLOTS);
        unsigned others = 0;
        for (unsigned j = 0; j < MODEL_PEERS * MODEL_SLOTS; j++) {
            others += is_holder[k][j / MODEL_SLOTS][j % MODEL_SLOTS];
        }
        others -= is_holder[k][p][s];
        if (rng_below(&rng, 100) == 0) {
            bed_bye(bed, peer[p]);
            bed_hello(bed, peer[p], PROTO_CLIENT);
            for (unsigned j = 0; j < MODEL_KEYS; j++) {
                memset(is_holder[j][p], 0, sizeof is_holder[j][p]);
            }
        } else if (rng_below(&rng, 2) == 0) {
            uint8_t flags = rng_below(&rng, 2) ? TT_EXCLUSIVE : 0;
            struct tt_answer answer = bed_ask(bed, peer[p], bed_wide(k, 4, flags, s));
            bool is_busy = flags && others > 0;
            assert_int_equal(answer.verdict, is_busy ? TT_BUSY : TT_OPEN);
            is_holder[k][p][s] = is_holder[k][p][s] || !is_busy;
            assert_int_equal(answer.nproc, others + is_holder[k][p][s]);
        } else {
            bed_release(bed, peer[p], (struct tt_release){k, 4, s});
            is_holder[k][p][s] = false;
            assert_int_equal(bed_peek(bed, peer[p], k, 4).nproc, others);
        }
    }
}

static void sessions_are_found_by_route_whatever_was_removed(void **state)
{
    enum { PEERS = 200, MAX = 96 };
    struct ttcore_sessions sessions = {0};
    uint32_t id[PEERS] = {0};
    uint64_t rng = seed_of_test();
    (void)state;
    assert_int_equal(ttcore_sessions_open(&sessions, MAX, 1), ERR_OK);
    for (unsigned i = 0; i < 100000; i++) {
        uint8_t p = (uint8_t)rng_below(&rng, PEERS);
        uint8_t route[5] = {0, p, (uint8_t)(p * 7), 1, 2};
        struct ttcore_session *found = ttcore_sessions_find(&sessions, route, sizeof route);
        assert_int_equal(found != NULL ? found->id : 0, id[p]);
        assert_ptr_equal(ttcore_sessions_by_id(&sessions, id[p]), found);
        if (found != NULL) {
            ttcore_sessions_remove(&sessions, found);
            id[p] = 0;
        } else if ((found = ttcore_sessions_add(&sessions, route, sizeof route, i)) != NULL) {
            id[p] = found->id;
        } else {
            assert_int_equal(sessions.live, MAX);
        }
    }
    ttcore_sessions_close(&sessions);
    ttcore_sessions_close(&sessions);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, bed_setup, bed_teardown)
    const struct CMUnitTest tests[] = {
        T(one_bad_ask_refuses_the_batch),
        T(one_bad_store_refuses_the_batch),
        T(batch_max_is_kept),
        T(noise_is_dropped_or_answered_once),
        T(of_other_versions_a_peer_may_send_some),
        T(routes_out_of_range_are_dropped),
        T(messages_of_a_shard_are_refused),
        T(unknown_roles_and_flags_are_refused),
        T(stats_are_answered),
        T(who_sends_noise_is_ignored_for_a_second),
        T(noise_now_and_then_is_forgiven),
        T(a_peer_without_a_session_that_sends_noise_is_ignored_too),
        T(only_what_is_no_message_is_held_against_a_peer),
        T(any_number_of_noisy_peers_harms_no_other),
        T(options_out_of_range_are_refused),
        T(a_hello_without_an_instance_is_refused),
        T(sessions_are_bounded),
        T(output_never_passes_its_bound),
        T(longest_results_fit),
        T(nothing_is_left_when_all_sessions_expire),
        T(nproc_is_exact),
        T(sessions_are_found_by_route_whatever_was_removed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
