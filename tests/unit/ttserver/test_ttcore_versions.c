/* Peers of several versions of the protocol at one shard: each is spoken to in the highest that
 * both speak, and what goes to all goes to each in its own. */
#include "tests/support/test_ttcore.h"

#include <stdio.h>

enum { OLD = PROTO_LOWEST, NEW = PROTO_VERSION, JOB = 5 };

static void say_as(struct bed *bed, uint32_t version, const char *who, struct proto_message m)
{
    size_t length = proto_encode_as(version, &m, bed->bytes, sizeof bed->bytes);
    assert_true(length > 0);
    bed_bytes(bed, who, bed->bytes, length);
}

static struct proto_message hello_of(const char *who, enum proto_role role, uint8_t lowest,
                                     uint8_t highest)
{
    struct proto_message m = {.type = PROTO_HELLO};
    m.hello = (struct proto_hello){.request = 3,
                                   .role = (uint8_t)role,
                                   .instance = (uint8_t)*who,
                                   .table_id = (uint8_t)*who,
                                   .flags = PROTO_WANTS_NODE_DONE | PROTO_WANTS_RESULTS,
                                   .name = proto_text_of(who),
                                   .lowest = lowest,
                                   .highest = highest,
                                   .release = proto_text_of("1.2.3")};
    return m;
}

/* Upper case: a program that speaks the oldest version alone. */
static void join(struct bed *bed, const char *who, enum proto_role role)
{
    bool is_old = *who >= 'A' && *who <= 'Z';
    say_as(bed, is_old ? OLD : NEW, who, hello_of(who, role, OLD, NEW));
    const struct proto_message *m = bed_nth(bed, who, 0);
    assert_non_null(m);
    assert_int_equal(m->type, PROTO_WELCOME);
    assert_int_equal(m->version, is_old ? OLD : NEW);
}

/* One message of that type has come to each, in its version. */
static void expect_each(struct bed *bed, const char *const *who, enum proto_type type)
{
    for (; *who != NULL; who++) {
        assert_int_equal(bed_seen(bed, *who, type)->version,
                         **who >= 'A' && **who <= 'Z' ? OLD : NEW);
    }
}

static void a_session_is_of_the_highest_version_that_both_speak(void **state)
{
    struct bed *bed = *state;
    join(bed, "A", PROTO_CLIENT);
    join(bed, "b", PROTO_CLIENT);
    say_as(bed, NEW, "c", hello_of("c", PROTO_CLIENT, OLD, OLD));
    assert_int_equal(bed_seen(bed, "c", PROTO_WELCOME)->version, OLD);
    bed_say(bed, "c",
            (struct proto_message){.type = PROTO_HEARTBEAT}); /* what it says may differ */
    assert_int_equal(bed_seen(bed, "c", PROTO_HEARTBEAT)->version, OLD);
    say_as(bed, OLD, "b", hello_of("b", PROTO_CLIENT, 0, 0)); /* another HELLO, another version */
    assert_int_equal(bed_seen(bed, "b", PROTO_WELCOME)->version, OLD);
    bed_heartbeat(bed, "b");
    assert_int_equal(bed_seen(bed, "b", PROTO_HEARTBEAT)->version, OLD);
}

static void who_has_no_session_is_answered_in_its_version(void **state)
{
    struct bed *bed = *state;
    say_as(bed, OLD, "A", (struct proto_message){.type = PROTO_HEARTBEAT});
    assert_int_equal(bed_seen(bed, "A", PROTO_ERROR)->version, OLD);
    say_as(bed, NEW, "A", (struct proto_message){.type = PROTO_HEARTBEAT});
    assert_int_equal(bed_seen(bed, "A", PROTO_ERROR)->version, NEW);
    struct proto_message hello = hello_of("A", PROTO_CLIENT, OLD, NEW);
    hello.hello.role = 9;
    say_as(bed, OLD, "A", hello);
    assert_int_equal(bed_seen(bed, "A", PROTO_ERROR)->version, OLD);
}

static void expect_other_version(struct bed *bed, const char *who, uint32_t version,
                                 uint32_t request)
{
    bed_expect_error(bed, who, PROTO_ERR_VERSION);
    assert_int_equal(bed->seen.version, version);
    assert_int_equal(bed->seen.error.request, request);
}

static void a_hello_of_tomorrow_finds_the_common_version(void **state)
{
    struct bed *bed = *state;
    uint8_t bytes[128];
    struct proto_message m = hello_of("t", PROTO_CLIENT, NEW, NEW + 1);
    size_t length = proto_encode(&m, bytes, sizeof bytes);
    assert_int_equal(bytes[0], 0x9c);
    bytes[0]++; /* it has a field more */
    bytes[1] = NEW + 1;
    bytes[length++] = 0xc3;
    bed_bytes(bed, "t", bytes, length);
    assert_int_equal(bed_seen(bed, "t", PROTO_WELCOME)->version, NEW);
    m = hello_of("u", PROTO_CLIENT, NEW + 1, NEW + 2);
    length = proto_encode(&m, bytes, sizeof bytes);
    bytes[1] = NEW + 2;
    bed_bytes(bed, "u", bytes, length);
    expect_other_version(bed, "u", NEW, 3);
    assert_int_equal(bed_figures(bed).sessions, 1);
    assert_int_equal(bed_figures(bed).versions_refused, 1);
    bytes[2] = PROTO_STATS; /* anything else of a later version */
    bed_bytes(bed, "u", bytes, length);
    expect_other_version(bed, "u", NEW, 0);
    m = (struct proto_message){.type = PROTO_ERROR, .error = {.code = PROTO_ERR_VERSION}};
    length = proto_encode(&m, bytes, sizeof bytes);
    bytes[1] = NEW + 2;
    bed_bytes(bed, "u", bytes, length);
    bed_bytes(bed, "t", bytes, length);
    assert_int_equal(bed->actions.messages, 0); /* or two peers would do so for ever */
}

/* As the shards of the version before the first that negotiates: they read nothing of a HELLO in a
 * later one, and say which they speak. */
static void a_shard_of_the_oldest_version_says_so(void **state)
{
    struct ttcore_options options = bed_options();
    (void)state;
    options.version = OLD;
    struct bed *bed = bed_open(&options);
    say_as(bed, NEW, "b", hello_of("b", PROTO_CLIENT, OLD, NEW));
    expect_other_version(bed, "b", OLD, 0);
    assert_int_equal(bed_figures(bed).sessions, 0);
    say_as(bed, OLD, "b", hello_of("b", PROTO_CLIENT, 0, 0));
    assert_int_equal(bed_seen(bed, "b", PROTO_WELCOME)->version, OLD);
    say_as(bed, NEW, "b", (struct proto_message){.type = PROTO_HEARTBEAT});
    expect_other_version(bed, "b", OLD, 0);
    assert_int_equal(bed_figures(bed).sessions, 1);
    bed_close(bed);
    options.version = NEW + 1;
    assert_int_equal(ttcore_open(&bed->core, &options), ERR_RANGE);
}

static void jobs_reach_workers_of_all_versions_once(void **state)
{
    static const char *const workers[] = {"a", "B", "c", "D", "E", "f", NULL};
    struct bed *bed = *state;
    for (unsigned i = 0; workers[i] != NULL; i++) {
        join(bed, workers[i], PROTO_WORKER);
    }
    join(bed, "Post", PROTO_FRONT);
    for (unsigned round = 0; round < 2; round++) { /* targets that were put in order stay so */
        bed_post(bed, "Post", JOB + round);
        expect_each(bed, workers, PROTO_JOB);
        assert_int_equal(bed->actions.messages, 2);
        uint32_t paid = 0;
        for (uint32_t i = 0; i < bed->actions.messages; i++) {
            assert_true(bed->actions.message[i].in_order);
            paid += bed->actions.message[i].paid;
        }
        assert_int_equal(paid, 6);
    }
    join(bed, "G", PROTO_WORKER); /* who comes late gets both */
    assert_int_equal(bed_nth(bed, "G", 1)->version, OLD);
    assert_int_equal(bed_nth(bed, "G", 2)->type, PROTO_JOB);
    bed_stop_job(bed, "Post", JOB);
    expect_each(bed, workers, PROTO_JOB_STOP);
    bed_bye(bed, "Post");
    expect_each(bed, workers, PROTO_JOB_STOP);
    bed_event(bed, TTCORE_STOP);
    expect_each(bed, workers, PROTO_BYE);
}

static void results_are_shared_among_all_versions(void **state)
{
    static const char *const others[] = {"B", "c", "D", NULL};
    struct bed *bed = *state;
    struct tt_store result = {.key = 1, .depth = 4, .bound = TT_EXACT, .score = 7};
    struct proto_message m = {.type = PROTO_SHARE};
    join(bed, "a", PROTO_CLIENT);
    for (unsigned i = 0; others[i] != NULL; i++) {
        join(bed, others[i], PROTO_CLIENT);
    }
    m.share.table_id = 'a';
    m.share.list = (struct proto_stores){1, &result};
    bed_say(bed, "a", m);
    expect_each(bed, others, PROTO_SHARE);
    for (uint32_t i = 0; i < bed->actions.messages; i++) {
        assert_true(bed->actions.message[i].may_drop);
    }
    /* One is in a node, one finishes it: the notice comes in the holder's version. */
    (void)bed_ask(bed, "B", bed_wide(9, 5, 0, 0));
    (void)bed_ask(bed, "c", bed_wide(9, 5, 0, 0));
    bed_store(bed, "a", (struct tt_store){.key = 9, .depth = 5, .bound = TT_EXACT, .score = 1});
    assert_int_equal(bed_seen(bed, "B", PROTO_NODE_DONE)->version, OLD);
    assert_int_equal(bed_seen(bed, "c", PROTO_NODE_DONE)->version, NEW);
    assert_int_equal(bed_ask(bed, "D", bed_wide(9, 5, 0, 0)).verdict, TT_CUT);
}

static void report(struct bed *bed, uint32_t version, const char *who, uint64_t job,
                   enum proto_job_state state, const char *why)
{
    struct proto_message m = {.type = PROTO_JOB_REPORT};
    m.job_report =
        (struct proto_job_report){.job = job, .state = (uint8_t)state, .why = proto_text_of(why)};
    say_as(bed, version, who, m);
}

static struct proto_member_row member(struct bed *bed, uint32_t version, const char *asker,
                                      const char *who)
{
    say_as(bed, version, asker, (struct proto_message){.type = PROTO_MEMBERS});
    const struct proto_members_answer *answer =
        &bed_seen(bed, asker, PROTO_MEMBERS_ANSWER)->members_answer;
    for (uint32_t i = 0; i < answer->list.count; i++) {
        const struct proto_member_row *row = &answer->list.at[i];
        if (row->name.length == strlen(who) && memcmp(row->name.at, who, strlen(who)) == 0) {
            return *row;
        }
    }
    fail_msg("no member %s", who);
    return (struct proto_member_row){0};
}

static void expect_text(struct proto_text text, const char *wanted)
{
    char found[128];
    assert_true(proto_text_copy(text, found, sizeof found));
    assert_string_equal(found, wanted);
}

static void who_watches_sees_versions_and_why_a_worker_refuses(void **state)
{
    static const char long_reason[] =
        "a reason of more than eighty bytes, of which the shard keeps "
        "as many as there is room for, and no more";
    struct bed *bed = *state;
    char cut[TTCORE_WHY_MAX];
    join(bed, "post", PROTO_FRONT);
    join(bed, "a", PROTO_WORKER);
    join(bed, "B", PROTO_WORKER);
    struct proto_member_row row = member(bed, NEW, "post", "a");
    assert_int_equal(row.highest, NEW);
    expect_text(row.release, "1.2.3");
    row = member(bed, NEW, "post", "B");
    assert_int_equal(row.highest, OLD);
    expect_text(row.release, "");
    bed_post(bed, "post", JOB);
    report(bed, NEW, "a", JOB, PROTO_JOB_REFUSED, "unknown game");
    const struct proto_job_report *passed = &bed_seen(bed, "post", PROTO_JOB_REPORT)->job_report;
    expect_text(passed->why, "unknown game");
    row = member(bed, NEW, "post", "a");
    assert_true(row.refuses == JOB);
    expect_text(row.why, "unknown game");
    assert_true(member(bed, OLD, "B", "a").refuses == 0); /* not in its version */
    report(bed, OLD, "B", JOB, PROTO_JOB_REFUSED, "");
    row = member(bed, NEW, "post", "B");
    assert_true(row.refuses == JOB);
    expect_text(row.why, "");
    report(bed, NEW, "a", JOB, PROTO_JOB_REFUSED, long_reason);
    proto_text_copy(proto_text_of(long_reason), cut, sizeof cut);
    expect_text(member(bed, NEW, "post", "a").why, cut);
    report(bed, NEW, "a", JOB, PROTO_JOB_SEARCHING, ""); /* it has thought better of it */
    assert_true(member(bed, NEW, "post", "a").refuses == 0);
    bed_stop_job(bed, "post", JOB);
    assert_true(member(bed, NEW, "post", "B").refuses == 0);
    report(bed, NEW, "a", JOB, PROTO_JOB_REFUSED, "late");
    assert_true(member(bed, NEW, "post", "a").refuses == 0);
}

/* All jobs, for a worker of each version, and the largest SHAREs: nothing is dropped. */
static void there_is_room_for_every_version(void **state)
{
    struct ttcore_options options = bed_options();
    static struct tt_store results[PROTO_BATCH_MAX];
    struct proto_message m = {.type = PROTO_SHARE};
    (void)state;
    options.jobs_max = 256; /* a user has a quarter */
    struct bed *bed = bed_open(&options);
    join(bed, "post", PROTO_FRONT);
    join(bed, "A", PROTO_WORKER);
    join(bed, "b", PROTO_WORKER);
    for (uint64_t job = 1; job <= 64; job++) {
        bed_post(bed, "post", job);
        assert_int_equal(bed->actions.messages, 2);
    }
    bed_bye(bed, "post");
    assert_int_equal(bed->actions.messages, 128); /* stops */
    for (unsigned i = 0; i < PROTO_BATCH_MAX; i++) {
        results[i] = (struct tt_store){.key = i, .depth = 4, .bound = TT_EXACT};
    }
    for (unsigned i = 0; i < 20; i++) { /* many receivers: they are collected */
        char who[] = {(char)(i % 2 == 0 ? 'F' : 'f'), (char)('a' + i), '\0'};
        struct proto_message hello = hello_of(who, PROTO_CLIENT, OLD, NEW);
        hello.hello.table_id = 1000 + i;
        hello.hello.namespace_id = i % 3;
        say_as(bed, i % 2 == 0 ? OLD : NEW, who, hello);
    }
    for (unsigned i = 0; i < 40; i++) {
        char who[] = {(char)(i % 2 == 0 ? 'F' : 'f'), (char)('a' + i % 20), '\0'};
        m.share.table_id = 1000 + i % 20;
        m.share.list = (struct proto_stores){600, results};
        bed->now_us += 100000;
        bed_say(bed, who, m);
    }
    assert_int_equal(bed_figures(bed).dropped, 0);
    assert_true(bed_figures(bed).shared > 0);
    bed_close(bed);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, bed_setup, bed_teardown)
    const struct CMUnitTest tests[] = {
        T(a_session_is_of_the_highest_version_that_both_speak),
        T(who_has_no_session_is_answered_in_its_version),
        T(a_hello_of_tomorrow_finds_the_common_version),
        cmocka_unit_test(a_shard_of_the_oldest_version_says_so),
        T(jobs_reach_workers_of_all_versions_once),
        T(results_are_shared_among_all_versions),
        T(who_watches_sees_versions_and_why_a_worker_refuses),
        cmocka_unit_test(there_is_room_for_every_version),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
