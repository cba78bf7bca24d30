/* What a front-end makes of reports: sums, who lives, whose last report it waits for. */
#include "proto/codec.h"
#include "worker/engine/front_core.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { MS = 1000, JOB = 5 };

static struct front_core core;
static uint64_t now;

static int start(void **state)
{
    (void)state;
    now = 1000 * MS;
    assert_int_equal(front_core_open(&core, 0), ERR_OK);
    front_core_begin(&core, JOB);
    return 0;
}

static int finish(void **state)
{
    (void)state;
    front_core_close(&core);
    front_core_close(&core);
    return 0;
}

static void say(unsigned shard, const struct proto_job_report *report)
{
    const struct client_event e = {CLIENT_JOB_REPORT, shard, .job_report = report};
    front_core_event(&core, &e, now);
}

static void report_as(const char *name, uint64_t job, uint64_t instance, uint64_t nodes,
                      enum proto_job_state is)
{
    const struct proto_job_report r = {.job = job,
                                       .instance = instance,
                                       .nodes = nodes,
                                       .busy = nodes / 10,
                                       .abandoned = nodes / 5,
                                       .waited_us = nodes * 3,
                                       .asks = nodes / 2,
                                       .talked_us = nodes * 5,
                                       .bytes_sent = nodes * 7,
                                       .bytes_received = nodes * 11,
                                       .state = (uint8_t)is,
                                       .name = proto_text_of(name)};
    say(0, &r);
}

static void report(uint64_t job, uint64_t instance, uint64_t nodes, enum proto_job_state is)
{
    report_as("", job, instance, nodes, is);
}

static struct front_sum sum(void)
{
    struct front_sum s;
    front_core_sum(&core, now, &s);
    return s;
}

static void reports_are_summed_over_workers(void **state)
{
    (void)state;
    assert_int_equal(sum().workers, 0);
    report(JOB, 1, 100, PROTO_JOB_SEARCHING);
    report(JOB, 2, 50, PROTO_JOB_SEARCHING);
    report(JOB, 1, 130, PROTO_JOB_SEARCHING);
    report(JOB, 2, 60, PROTO_JOB_ENDED);
    assert_int_equal(sum().workers, 2);
    assert_int_equal(sum().counters.nodes, 190);
    assert_int_equal(sum().counters.busy, 19);
    assert_int_equal(sum().counters.abandoned, 38);
    assert_int_equal(sum().counters.waited_us, 3 * 190);
    assert_int_equal(sum().counters.talked_us, 5 * 190);
    assert_int_equal(sum().counters.bytes_sent, 7 * 190);
    assert_int_equal(sum().counters.bytes_received, 11 * 190);
}

/* Between reports, the first of which comes when a worker begins; not while it is idle, or gone. */
static void the_time_that_workers_search_is_summed(void **state)
{
    (void)state;
    report(JOB, 1, 0, PROTO_JOB_SEARCHING);
    assert_int_equal(sum().searched_us, 0);
    now += 200 * MS;
    report(JOB, 1, 10, PROTO_JOB_SEARCHING);
    report(JOB, 1, 10, PROTO_JOB_SEARCHING); /* passed on by another source, too */
    report(JOB, 2, 0, PROTO_JOB_SEARCHING);
    assert_int_equal(sum().searched_us, 200 * MS);
    now += 100 * MS;
    report(JOB, 2, 5, PROTO_JOB_ENDED);
    report(JOB, 1, 20, PROTO_JOB_ENDED); /* it moves to another job */
    now += 1000 * MS;
    report(JOB, 1, 20, PROTO_JOB_ENDED);
    report(JOB, 1, 21, PROTO_JOB_SEARCHING); /* and returns */
    assert_int_equal(sum().searched_us, 400 * MS);
    now += 50 * MS;
    report(JOB, 1, 22, PROTO_JOB_SEARCHING);
    now += 5000 * MS;
    assert_int_equal(sum().searched_us, 450 * MS);
    front_core_begin(&core, JOB);
    report(JOB, 1, 1, PROTO_JOB_SEARCHING);
    assert_int_equal(sum().searched_us, 0);
}

static void counters_only_grow(void **state)
{
    (void)state;
    report(JOB, 1, 100, PROTO_JOB_SEARCHING);
    report(JOB, 1, 90, PROTO_JOB_SEARCHING); /* an older report, through a slower shard */
    assert_int_equal(sum().counters.nodes, 100);
    report(JOB, 1, 120, PROTO_JOB_ENDED);
    report(JOB, 1, 100, PROTO_JOB_SEARCHING);
    report(JOB, 1, 120, PROTO_JOB_SEARCHING);
    assert_int_equal(sum().counters.nodes, 120);
    front_core_stop(&core, 200, now);
    assert_false(front_core_waits(&core, 1, now)); /* its last report is not undone */
}

/* More would be refused as a fault, and the last report would stand. */
static void a_report_counts_no_more_than_shards_take(void **state)
{
    (void)state;
    const uint64_t most = (UINT64_C(1) << PROTO_COUNTER_BITS) - 1;
    struct proto_job_report r = {.job = JOB};
    struct counters c = {.nodes = most - 1, .asks = most, .busy = most + 1};
    c.waited_us = c.bytes_received = UINT64_MAX;
    job_report_set(&r, &c);
    assert_null(proto_report_fault(&r));
    c = job_report_counters(&r);
    assert_true(c.nodes == most - 1 && c.asks == most && c.busy == most);
    assert_true(c.waited_us == most && c.talked_us == 0 && c.bytes_received == most);
}

static void reports_on_other_jobs_are_passed_over(void **state)
{
    (void)state;
    report(JOB + 1, 1, 100, PROTO_JOB_SEARCHING);
    assert_int_equal(sum().workers, 0);
    front_core_begin(&core, JOB + 1);
    report(JOB, 1, 100, PROTO_JOB_SEARCHING);
    assert_int_equal(sum().counters.nodes, 0);
    front_core_begin(&core, 0);
    report(0, 1, 100, PROTO_JOB_SEARCHING);
    assert_int_equal(sum().counters.nodes, 0);
    const struct client_event other = {.kind = CLIENT_SHARD_DOWN};
    front_core_event(&core, &other, now);
}

/* A worker killed at 5 s is no longer counted at 8 s; what it did is. */
static void workers_counts_who_lives(void **state)
{
    (void)state;
    for (unsigned second = 0; second <= 20; second++) {
        report(JOB, 1, 100 * second, PROTO_JOB_SEARCHING);
        if (second <= 5) {
            report(JOB, 2, 10 * second, PROTO_JOB_SEARCHING);
        }
        assert_int_equal(sum().workers, second < 5 + FRONT_ALIVE_MS / 1000 ? 2 : 1);
        assert_int_equal(sum().counters.nodes, 100 * second + 10 * (second < 5 ? second : 5));
        now += 1000 * MS;
    }
    now += FRONT_ALIVE_MS * MS;
    assert_int_equal(sum().workers, 0);
    report(JOB, 2, 50, PROTO_JOB_ENDED); /* it was only asleep */
    assert_int_equal(sum().workers, 1);
}

static void last_reports_are_waited_for(void **state)
{
    static const struct {
        bool ended[2];
        unsigned later_ms, sources_up;
        bool waits;
    } row[] = {
        {{false, false}, 0, 1, true},    {{true, false}, 0, 1, true},
        {{true, true}, 0, 1, false},     {{false, false}, 199, 1, true},
        {{false, false}, 200, 1, false}, {{false, false}, 0, 0, false}, /* nobody to bring them */
    };
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        front_core_begin(&core, JOB);
        for (unsigned w = 0; w < 2; w++) {
            report(JOB, w + 1, 7, row[i].ended[w] ? PROTO_JOB_ENDED : PROTO_JOB_SEARCHING);
        }
        front_core_stop(&core, 200, now);
        assert_int_equal(front_core_waits(&core, row[i].sources_up, now + row[i].later_ms * MS),
                         row[i].waits);
    }
    (void)state;
}

static void the_dead_are_not_waited_for(void **state)
{
    (void)state;
    report(JOB, 1, 7, PROTO_JOB_SEARCHING);
    now += FRONT_ALIVE_MS * MS;
    report(JOB, 2, 7, PROTO_JOB_ENDED);
    front_core_stop(&core, 200, now);
    assert_false(front_core_waits(&core, 1, now));
}

static bool is_kept(uint64_t instance)
{
    for (unsigned i = 0; i < core.reports; i++) {
        if (core.report[i].last.instance == instance) {
            return true;
        }
    }
    return false;
}

/* Invented workers came first, and fill the room. */
static void beyond_its_room_the_one_silent_longest_makes_room(void **state)
{
    (void)state;
    for (unsigned i = 1; i <= FRONT_WORKERS_MAX; i++) {
        report(JOB, i, 1, PROTO_JOB_ENDED);
    }
    now += MS;
    for (unsigned i = 1; i <= FRONT_WORKERS_MAX; i++) {
        if (i != 77) {
            report(JOB, i, 1, PROTO_JOB_ENDED);
        }
    }
    report(JOB, 100000, 5, PROTO_JOB_SEARCHING);
    assert_true(is_kept(100000) && !is_kept(77));
    assert_int_equal(sum().workers, FRONT_WORKERS_MAX);
    assert_int_equal(sum().counters.nodes, FRONT_WORKERS_MAX + 4);
    now += MS;
    report(JOB, 100000, 4, PROTO_JOB_SEARCHING); /* older, but it lives */
    report(JOB, 100001, 1, PROTO_JOB_ENDED);
    assert_true(is_kept(100000) && is_kept(100001));
    assert_int_equal(core.reports, FRONT_WORKERS_MAX);
}

/* A worker that refused the job is no help, and no search counts so far. */
static void workers_that_refuse_or_invent_do_not_count(void **state)
{
    (void)state;
    report(JOB, 1, 100, PROTO_JOB_SEARCHING);
    report(JOB, 2, 0, PROTO_JOB_REFUSED);
    report(JOB, 3, UINT64_MAX, PROTO_JOB_SEARCHING);
    report(JOB, 4, 0, PROTO_JOB_ENDED); /* it had no time for it */
    assert_int_equal(sum().workers, 2);
    assert_int_equal(sum().refused, 1);
    report(JOB, 2, 0, PROTO_JOB_SEARCHING); /* an older report, through a slower shard */
    assert_int_equal(sum().refused, 1);
    front_core_stop(&core, 1000, now);
    assert_true(front_core_waits(&core, 1, now));
    report(JOB, 1, 100, PROTO_JOB_ENDED);
    assert_false(front_core_waits(&core, 1, now)); /* who refused sends no last report */
    assert_int_equal(sum().counters.nodes, 100);
}

static void refuse(uint64_t job, unsigned source, const char *why)
{
    const struct proto_text text = proto_text_of(why);
    const struct client_event e = {CLIENT_JOB_REFUSED, source, .refused = {job, &text}};
    front_core_event(&core, &e, now);
}

static void refusals_are_kept_by_source_until_the_next_job(void **state)
{
    (void)state;
    refuse(JOB, 3, "full");
    refuse(JOB, 3, "full");
    refuse(JOB, CLIENT_SHARDS_MAX - 1, "your share is used up");
    refuse(JOB + 1, 5, "another job");
    assert_true(core.refused == (UINT64_C(1) << 3 | UINT64_C(1) << (CLIENT_SHARDS_MAX - 1)));
    assert_string_equal(core.why[3], "full");
    assert_string_equal(core.why[CLIENT_SHARDS_MAX - 1], "your share is used up");
    front_core_begin(&core, JOB + 1);
    assert_true(core.refused == 0);
    front_core_begin(&core, 0);
    refuse(0, 1, "none is posted");
    assert_true(core.refused == 0);
}

/* What a shard says ends up on people's screens. */
static void a_refusal_is_cut_and_printable(void **state)
{
    (void)state;
    char text[2 * FRONT_WHY_MAX] = "";
    refuse(JOB, 7, "no\n\033[2Jroom\303\244");
    assert_string_equal(core.why[7], "no??[2Jroom??");
    memset(text, 'x', sizeof text - 1);
    refuse(JOB, 7, text);
    assert_int_equal(strlen(core.why[7]), FRONT_WHY_MAX - 1);
}

static void a_report_is_kept_without_what_is_borrowed(void **state)
{
    (void)state;
    char line[] = "e2e4", name[] = "a b\x1b";
    const struct proto_job_report r = {.job = JOB,
                                       .instance = 2,
                                       .nodes = 200,
                                       .line = proto_text_of(line),
                                       .name = proto_text_of(name)};
    say(3, &r);
    assert_int_equal(core.report[0].last.nodes, 200);
    assert_int_equal(core.report[0].last.line.length, 0);
    assert_int_equal(core.report[0].last.name.length, 0);
    assert_string_equal(core.report[0].name, "a_b?"); /* a word for a screen */
}

static void who_passes_on_reports_refuses_no_longer(void **state)
{
    (void)state;
    refuse(JOB, 3, "full");
    refuse(JOB, 4, "full");
    struct proto_job_report r = {.job = JOB + 1, .instance = 1, .nodes = 9};
    say(3, &r);
    assert_true(core.refused == (UINT64_C(1) << 3 | UINT64_C(1) << 4));
    r.job = JOB;
    say(3, &r);
    assert_true(core.refused == UINT64_C(1) << 4);
}

/* ---- hosts ---- */

static struct front_host host[FRONT_WORKERS_MAX];

static void hosts_are(const char *names)
{
    char text[256] = "";
    unsigned hosts = front_core_hosts(&core, now, host);
    for (unsigned i = 0; i < hosts; i++) {
        size_t used = strlen(text);
        snprintf(text + used, sizeof text - used, "%s%s/%u%s", i > 0 ? " " : "", host[i].name,
                 host[i].searchers, host[i].is_gone ? "/gone" : "");
    }
    assert_string_equal(text, names);
}

static void threads_of_a_process_are_one_host(void **state)
{
    (void)state;
    hosts_are("");
    report_as("b:7.1", JOB, 1, 0, PROTO_JOB_SEARCHING);
    report_as("b:7.0", JOB, 2, 0, PROTO_JOB_SEARCHING);
    report_as("b:7.10", JOB, 3, 0, PROTO_JOB_SEARCHING);
    report_as("b:71", JOB, 4, 0, PROTO_JOB_SEARCHING);
    report_as("10.0.0.7", JOB, 5, 0, PROTO_JOB_SEARCHING); /* a name like an address */
    report_as("10.0.0.8", JOB, 6, 0, PROTO_JOB_SEARCHING);
    report_as("", JOB, 7, 0, PROTO_JOB_SEARCHING);
    report_as("of another build", JOB, 8, 0, PROTO_JOB_REFUSED);
    now += 100 * MS;
    report_as("b:7.1", JOB, 1, 10, PROTO_JOB_SEARCHING);
    report_as("b:7.0", JOB, 2, 20, PROTO_JOB_ENDED);
    report_as("b:7.10", JOB, 3, 30, PROTO_JOB_SEARCHING);
    report_as("b:71", JOB, 4, 200, PROTO_JOB_SEARCHING);
    hosts_are("b:71/1 b:7/3 10.0.0.7/1 10.0.0.8/1 ?/1"); /* by nodes */
    assert_int_equal(host[1].sum.nodes, 60);
    assert_int_equal(host[1].sum.asks, 30);
    assert_int_equal(host[1].sum.waited_us, 180);
    assert_int_equal(host[1].sum.talked_us, 300);
    assert_int_equal(host[1].sum.bytes_sent, 420);
    assert_int_equal(host[1].sum.bytes_received, 660);
    assert_int_equal(host[1].searched_us, 300 * MS);
    assert_true(front_host_talking(&host[1]) == 300. / (300 * MS));
    assert_true(front_host_talking(&host[2]) < 0); /* who reported once */
    host[1].sum.talked_us = 301 * MS;
    assert_true(front_host_talking(&host[1]) == 1);
}

/* Its last figures count. */
static void who_says_nothing_any_more_is_gone(void **state)
{
    (void)state;
    report_as("a.0", JOB, 1, 10, PROTO_JOB_SEARCHING);
    report_as("a.1", JOB, 2, 10, PROTO_JOB_SEARCHING);
    report_as("b", JOB, 3, 15, PROTO_JOB_SEARCHING);
    report_as("c", JOB, 4, 12, PROTO_JOB_ENDED);
    now += (FRONT_SILENT_MS - 1) * MS;
    hosts_are("a/2 b/1 c/1");
    report_as("a.1", JOB, 2, 11, PROTO_JOB_SEARCHING);
    now += MS;
    hosts_are("a/2 b/1/gone c/1"); /* idle ones report every second */
    assert_int_equal(host[0].silent_us, MS);
    assert_int_equal(host[1].sum.nodes, 15);
    assert_int_equal(host[1].silent_us, FRONT_SILENT_MS * MS);
    now += FRONT_ALIVE_MS * MS;
    hosts_are("a/2/gone b/1/gone c/1/gone");
}

static void who_sends_no_last_report_in_time_is_gone(void **state)
{
    (void)state;
    report_as("a", JOB, 1, 10, PROTO_JOB_SEARCHING);
    report_as("b", JOB, 2, 20, PROTO_JOB_SEARCHING);
    front_core_stop(&core, FRONT_WAIT_TIMED_MS, now); /* a clock is running: too short to say */
    now += FRONT_WAIT_TIMED_MS * MS;
    hosts_are("b/1 a/1");
    front_core_stop(&core, FRONT_WAIT_MS, now);
    report_as("a", JOB, 1, 30, PROTO_JOB_ENDED);
    hosts_are("a/1 b/1");
    now += FRONT_WAIT_MS * MS;
    hosts_are("a/1 b/1/gone");
    front_core_begin(&core, JOB);
    hosts_are("");
}

int main(void)
{
#define TEST(test) cmocka_unit_test_setup_teardown(test, start, finish)
    const struct CMUnitTest tests[] = {
        TEST(reports_are_summed_over_workers),
        TEST(the_time_that_workers_search_is_summed),
        TEST(counters_only_grow),
        TEST(a_report_counts_no_more_than_shards_take),
        TEST(reports_on_other_jobs_are_passed_over),
        TEST(workers_counts_who_lives),
        TEST(last_reports_are_waited_for),
        TEST(the_dead_are_not_waited_for),
        TEST(beyond_its_room_the_one_silent_longest_makes_room),
        TEST(who_passes_on_reports_refuses_no_longer),
        TEST(workers_that_refuse_or_invent_do_not_count),
        TEST(refusals_are_kept_by_source_until_the_next_job),
        TEST(a_refusal_is_cut_and_printable),
        TEST(a_report_is_kept_without_what_is_borrowed),
        TEST(threads_of_a_process_are_one_host),
        TEST(who_says_nothing_any_more_is_gone),
        TEST(who_sends_no_last_report_in_time_is_gone),
    };
    return cmocka_run_group_tests_name("front core", tests, NULL, NULL);
}
