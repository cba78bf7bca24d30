/* A searcher's job client: what its queue keeps when more comes than it has room for. */
#include "worker/engine/job_client.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static struct job_client *client;

static int start(void **state)
{
    (void)state;
    assert_int_equal(job_client_open(&client, NULL), ERR_OK);
    return 0;
}

static int finish(void **state)
{
    (void)state;
    job_client_close(&client);
    job_client_close(&client);
    return 0;
}

static void say(struct client_event event)
{
    job_client_event(client, &event);
}

static void refuse(struct proto_text why)
{
    say((struct client_event){CLIENT_JOB_REFUSED, 7, .refused = {5, &why}});
}

static void report(uint64_t instance, uint64_t nodes, enum proto_job_state is, unsigned shard)
{
    struct proto_job_report r = {
        .job = 5, .instance = instance, .nodes = nodes, .state = (uint8_t)is};
    char line[] = "e2e4", name[] = "a b\x1b"; /* borrowed: gone when the event is taken */
    r.line = proto_text_of(line);
    r.name = proto_text_of(name);
    say((struct client_event){CLIENT_JOB_REPORT, shard, .job_report = &r});
}

/* Every shard passes a report on, and an older one may come later. */
static void of_a_workers_reports_the_newest_is_queued_once(void **state)
{
    (void)state;
    struct job_event e;
    report(1, 100, PROTO_JOB_SEARCHING, 0);
    report(1, 200, PROTO_JOB_ENDED, 0);
    report(2, 70, PROTO_JOB_SEARCHING, 1);
    report(1, 200, PROTO_JOB_SEARCHING, 1);
    report(1, 100, PROTO_JOB_SEARCHING, 2);
    assert_true(job_client_poll(client, &e));
    assert_int_equal(e.kind, JOB_REPORTED);
    assert_int_equal(e.report.nodes, 200);
    assert_int_equal(e.report.state, PROTO_JOB_ENDED);
    assert_true(e.sources == 7); /* all that passed it on */
    assert_int_equal(e.report.line.length, 0);
    assert_int_equal(e.report.name.length, 0);
    assert_string_equal(e.name, "a_b?"); /* a word for a screen */
    assert_true(job_client_poll(client, &e));
    assert_int_equal(e.report.instance, 2);
    assert_true(e.sources == 2);
    assert_false(job_client_poll(client, &e));
}

static void reports_of_many_workers_fit(void **state)
{
    (void)state;
    struct job_event e;
    unsigned got = 0;
    for (unsigned shard = 0; shard < 4; shard++) {
        for (unsigned i = 1; i <= 600; i++) {
            report(i, 10, PROTO_JOB_ENDED, shard);
        }
    }
    while (job_client_poll(client, &e)) {
        got += e.kind == JOB_REPORTED;
    }
    assert_int_equal(got, 600);
}

static void dropped_offers_are_said(void **state)
{
    (void)state;
    struct job_event e;
    bool is_missed = false;
    unsigned offers = 0;
    say((struct client_event){.kind = CLIENT_SHARD_UP});
    for (unsigned i = 1; i <= JOB_EVENTS_MAX + 10; i++) {
        struct proto_job job = {.job = i,
                                .game = proto_text_of("chess"),
                                .algorithm = proto_text_of("abdada"),
                                .position = proto_text_of("startpos")};
        say((struct client_event){CLIENT_JOB, 0, .job = &job});
    }
    while (!is_missed && job_client_poll(client, &e)) {
        is_missed = is_missed || e.kind == JOB_MISSED;
        offers += e.kind == JOB_OFFERED;
    }
    assert_true(is_missed);
    assert_int_equal(offers, JOB_EVENTS_MAX - 1);
}

/* What a shard says ends up on people's screens. */
static void a_refusal_is_cut_and_printable(void **state)
{
    (void)state;
    struct job_event e;
    char text[2 * JOB_WHY_MAX];
    memset(text, 'x', sizeof text);
    refuse(proto_text_of("no\n\033[2Jroom\303\244"));
    refuse((struct proto_text){text, sizeof text});
    assert_true(job_client_poll(client, &e));
    assert_int_equal(e.kind, JOB_REFUSED);
    assert_int_equal(e.job, 5);
    assert_int_equal(e.source, 7);
    assert_string_equal(e.why, "no??[2Jroom??");
    assert_true(job_client_poll(client, &e));
    assert_int_equal(strlen(e.why), JOB_WHY_MAX - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(of_a_workers_reports_the_newest_is_queued_once, start,
                                        finish),
        cmocka_unit_test_setup_teardown(reports_of_many_workers_fit, start, finish),
        cmocka_unit_test_setup_teardown(dropped_offers_are_said, start, finish),
        cmocka_unit_test_setup_teardown(a_refusal_is_cut_and_printable, start, finish),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
