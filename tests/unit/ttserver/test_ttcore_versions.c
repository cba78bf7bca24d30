/* Peers of other versions, and of other builds of ours: what a shard reads, answers and shows. */
#include "tests/support/test_ttcore.h"

#include <stdio.h>

enum { OURS = PROTO_VERSION, JOB = 5 };

static struct proto_message hello_of(const char *who, enum proto_role role, uint8_t lowest,
                                     uint8_t highest)
{
    struct proto_message m = {.type = PROTO_HELLO};
    m.hello = (struct proto_hello){.request = 3,
                                   .role = (uint8_t)role,
                                   .instance = (uint8_t)*who,
                                   .name = proto_text_of(who),
                                   .lowest = lowest,
                                   .highest = highest,
                                   .release = proto_text_of("1.2.3")};
    return m;
}

static void join(struct bed *bed, const char *who, enum proto_role role)
{
    bed_say(bed, who, hello_of(who, role, OURS, OURS));
    const struct proto_message *m = bed_nth(bed, who, 0);
    assert_non_null(m);
    assert_int_equal(m->type, PROTO_WELCOME);
    assert_int_equal(m->version, OURS);
}

static void a_hello_without_a_range_is_of_one_version(void **state)
{
    struct bed *bed = *state;
    bed_say(bed, "a", hello_of("a", PROTO_CLIENT, 0, 0));
    assert_int_equal(bed_seen(bed, "a", PROTO_WELCOME)->version, OURS);
    bed_say(bed, "b", hello_of("b", PROTO_CLIENT, OURS - 1, OURS - 1));
    bed_expect_error(bed, "b", PROTO_ERR_VERSION);
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
    struct proto_message m = hello_of("t", PROTO_CLIENT, OURS, OURS + 1);
    size_t length = proto_encode(&m, bytes, sizeof bytes);
    assert_int_equal(bytes[0], 0x9c);
    bytes[0]++; /* it has a field more */
    bytes[1] = OURS + 1;
    bytes[length++] = 0xc3;
    bed_bytes(bed, "t", bytes, length);
    assert_int_equal(bed_seen(bed, "t", PROTO_WELCOME)->version, OURS);
    m = hello_of("u", PROTO_CLIENT, OURS + 1, OURS + 2);
    length = proto_encode(&m, bytes, sizeof bytes);
    bytes[1] = OURS + 2;
    bed_bytes(bed, "u", bytes, length);
    expect_other_version(bed, "u", OURS, 3);
    assert_int_equal(bed_figures(bed).sessions, 1);
    assert_int_equal(bed_figures(bed).versions_refused, 1);
    bytes[2] = PROTO_STATS; /* anything else of a later version */
    bed_bytes(bed, "u", bytes, length);
    expect_other_version(bed, "u", OURS, 0);
    m = (struct proto_message){.type = PROTO_ERROR, .error = {.code = PROTO_ERR_VERSION}};
    length = proto_encode(&m, bytes, sizeof bytes);
    bytes[1] = OURS + 2;
    bed_bytes(bed, "u", bytes, length);
    bed_bytes(bed, "t", bytes, length);
    assert_int_equal(bed->actions.messages, 0); /* or two peers would do so for ever */
}

static void report(struct bed *bed, const char *who, uint64_t job, enum proto_job_state state,
                   const char *why)
{
    struct proto_message m = {.type = PROTO_JOB_REPORT};
    m.job_report =
        (struct proto_job_report){.job = job, .state = (uint8_t)state, .why = proto_text_of(why)};
    bed_say(bed, who, m);
}

static struct proto_member_row member(struct bed *bed, const char *asker, const char *who)
{
    bed_say(bed, asker, (struct proto_message){.type = PROTO_MEMBERS});
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
    bed_say(bed, "B", hello_of("B", PROTO_WORKER, OURS, OURS + 3)); /* a later build */
    struct proto_member_row row = member(bed, "post", "a");
    assert_int_equal(row.highest, OURS);
    expect_text(row.release, "1.2.3");
    row = member(bed, "post", "B");
    assert_int_equal(row.highest, OURS + 3);
    bed_post(bed, "post", JOB);
    report(bed, "a", JOB, PROTO_JOB_REFUSED, "unknown game");
    const struct proto_job_report *passed = &bed_seen(bed, "post", PROTO_JOB_REPORT)->job_report;
    expect_text(passed->why, "unknown game");
    row = member(bed, "post", "a");
    assert_true(row.refuses == JOB);
    expect_text(row.why, "unknown game");
    report(bed, "B", JOB, PROTO_JOB_REFUSED, "");
    row = member(bed, "post", "B");
    assert_true(row.refuses == JOB);
    expect_text(row.why, "");
    report(bed, "a", JOB, PROTO_JOB_REFUSED, long_reason);
    proto_text_copy(proto_text_of(long_reason), cut, sizeof cut);
    expect_text(member(bed, "post", "a").why, cut);
    report(bed, "a", JOB, PROTO_JOB_SEARCHING, ""); /* it has thought better of it */
    assert_true(member(bed, "post", "a").refuses == 0);
    bed_stop_job(bed, "post", JOB);
    assert_true(member(bed, "post", "B").refuses == 0);
    report(bed, "a", JOB, PROTO_JOB_REFUSED, "late");
    assert_true(member(bed, "post", "a").refuses == 0);
}

/* The bytes of an array of one field less, or more, than the sender of a message would say. */
static size_t changed(const struct proto_message *m, int fields, uint8_t *bytes, size_t room)
{
    size_t length = proto_encode(m, bytes, room);
    assert_true(length > 0 && (bytes[0] & 0xf0) == 0x90);
    bytes[0] = (uint8_t)(bytes[0] + fields);
    if (fields > 0) {
        bytes[length++] = 0xa1; /* a text */
        bytes[length++] = '!';
    }
    return length;
}

/* They are read as far as they are known; what is missing is zero, and refused where zero is out of
 * range. */
static void clients_may_say_more_or_less(void **state)
{
    struct bed *bed = *state;
    uint8_t bytes[256];
    struct proto_message m = hello_of("m", PROTO_CLIENT, OURS, OURS);
    bed_bytes(bed, "m", bytes, changed(&m, 1, bytes, sizeof bytes));
    assert_int_equal(bed_seen(bed, "m", PROTO_WELCOME)->welcome.request, 3);
    m.hello.release = proto_text_of(""); /* the last field: one byte, which is left out */
    bed_bytes(bed, "f", bytes, changed(&m, -1, bytes, sizeof bytes) - 1);
    assert_int_equal(bed_seen(bed, "f", PROTO_WELCOME)->welcome.request, 3);
    m = (struct proto_message){.type = PROTO_HEARTBEAT, .heartbeat = {.request = 9}};
    bed_bytes(bed, "m", bytes, changed(&m, 1, bytes, sizeof bytes));
    assert_int_equal(bed_seen(bed, "m", PROTO_HEARTBEAT)->heartbeat.request, 9);
    static const uint8_t ask_nothing[] = {0x94, OURS, PROTO_RETRIEVE_ASK, 5, 0x91, 0x90};
    bed_bytes(bed, "m", ask_nothing, sizeof ask_nothing); /* alpha is not below beta */
    bed_expect_error(bed, "m", PROTO_ERR_RANGE);
    static const uint8_t store_nothing[] = {0x93, OURS, PROTO_STORE_HASH, 0x91, 0x90};
    bed_bytes(bed, "m", store_nothing, sizeof store_nothing);
    bed_expect_error(bed, "m", PROTO_ERR_RANGE);
    assert_int_equal(bed_figures(bed).malformed, 0);
    assert_int_equal(bed_figures(bed).stores, 0);
}

/* All jobs, and the largest SHAREs: nothing is dropped. */
static void there_is_room_for_all_that_a_step_sends(void **state)
{
    struct ttcore_options options = bed_options();
    static struct tt_store results[PROTO_BATCH_MAX];
    struct proto_message m = {.type = PROTO_SHARE};
    (void)state;
    options.jobs_max = 256; /* a user has a quarter */
    struct bed *bed = bed_open(&options);
    join(bed, "post", PROTO_FRONT);
    join(bed, "a", PROTO_WORKER);
    join(bed, "b", PROTO_WORKER);
    for (uint64_t job = 1; job <= 64; job++) {
        bed_post(bed, "post", job);
        assert_int_equal(bed->actions.messages, 1);
    }
    bed_bye(bed, "post");
    assert_int_equal(bed->actions.messages, 64); /* stops */
    for (unsigned i = 0; i < PROTO_BATCH_MAX; i++) {
        results[i] = (struct tt_store){.key = i, .depth = 4, .bound = TT_EXACT};
    }
    for (unsigned i = 0; i < 20; i++) { /* many receivers: they are collected */
        char who[] = {'f', (char)('a' + i), '\0'};
        struct proto_message hello = hello_of(who, PROTO_CLIENT, OURS, OURS);
        hello.hello.flags = PROTO_WANTS_RESULTS;
        hello.hello.table_id = 1000 + i;
        hello.hello.namespace_id = i % 3;
        bed_say(bed, who, hello);
    }
    for (unsigned i = 0; i < 40; i++) {
        char who[] = {'f', (char)('a' + i % 20), '\0'};
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
        T(a_hello_without_a_range_is_of_one_version),
        T(a_hello_of_tomorrow_finds_the_common_version),
        T(who_watches_sees_versions_and_why_a_worker_refuses),
        T(clients_may_say_more_or_less),
        cmocka_unit_test(there_is_room_for_all_that_a_step_sends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
