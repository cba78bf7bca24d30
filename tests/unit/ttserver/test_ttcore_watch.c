/* What a shard shows of its members and jobs, lost connections, and counters of
 * bounds. */
#include "tests/support/test_ttcore.h"

#include "common/rng.h"
#include "ttserver/core/job_table.h"

#include <stdio.h>

static void report(struct bed *bed, const char *who, uint64_t job, enum proto_job_state state,
                   uint8_t depth)
{
    struct proto_message m = {.type = PROTO_JOB_REPORT};
    m.job_report = (struct proto_job_report){.job = job, .state = (uint8_t)state, .depth = depth};
    bed_say(bed, who, m);
}

static const struct proto_jobs_answer *jobs(struct bed *bed, uint32_t from)
{
    struct proto_message m = {.type = PROTO_JOBS, .jobs = {.request = 3, .from = from}};
    bed_say(bed, "watch", m);
    const struct proto_message *answer = bed_seen(bed, "watch", PROTO_JOBS_ANSWER);
    assert_int_equal(answer->jobs_answer.request, 3);
    return &answer->jobs_answer;
}

static const struct proto_members_answer *members(struct bed *bed, uint32_t from)
{
    struct proto_message m = {.type = PROTO_MEMBERS, .members = {.request = 4, .from = from}};
    bed_say(bed, "watch", m);
    const struct proto_message *answer = bed_seen(bed, "watch", PROTO_MEMBERS_ANSWER);
    assert_int_equal(answer->members_answer.request, 4);
    return &answer->members_answer;
}

static bool text_is(struct proto_text text, const char *wanted)
{
    return text.length == strlen(wanted) && memcmp(text.at, wanted, text.length) == 0;
}

/* ---- what was found so far ---- */

static void say_found(struct bed *bed, const char *who, uint8_t depth, int16_t score,
                      uint64_t nodes, const char *line)
{
    struct proto_message m = {.type = PROTO_JOB_REPORT};
    m.job_report = (struct proto_job_report){.job = 5,
                                             .depth = depth,
                                             .score = score,
                                             .nodes = nodes,
                                             .waited_us = nodes / 2,
                                             .duplicated = nodes / 10,
                                             .abandoned = nodes / 5,
                                             .asks = nodes / 50,
                                             .talked_us = nodes,
                                             .bytes_sent = nodes,
                                             .bytes_received = 2 * nodes,
                                             .line = proto_text_of(line),
                                             .left_s = (uint32_t)nodes + 1};
    bed_say(bed, who, m);
}

static void row_is(struct bed *bed, uint8_t reached, int16_t score, uint64_t nodes,
                   const char *line)
{
    const struct proto_job_row *row = jobs(bed, 0)->list.at;
    assert_int_equal(row->reached, reached);
    assert_int_equal(row->score, score);
    assert_int_equal(row->nodes, nodes);
    assert_int_equal(row->duplicated, nodes / 10);
    assert_int_equal(row->abandoned, nodes / 5);
    assert_int_equal(row->bytes, 3 * nodes);
    assert_true(text_is(row->line, line));
}

static void a_job_shows_what_was_found(void **state)
{
    struct bed *bed = *state;
    bed_hello(bed, "watch", PROTO_MONITOR);
    bed_hello(bed, "front", PROTO_FRONT);
    bed_hello(bed, "other", PROTO_FRONT);
    bed_hello(bed, "w", PROTO_WORKER);
    bed_hello(bed, "v", PROTO_WORKER);
    bed_post(bed, "front", 5);
    row_is(bed, 0, 0, 0, "");
    say_found(bed, "w", 7, 30, 1000, "e2e4");
    row_is(bed, 7, 30, 1000, "e2e4");
    say_found(bed, "v", 6, 10, 500, "d2d4 d7d5"); /* less deep; its nodes count */
    row_is(bed, 7, 30, 1500, "e2e4");
    say_found(bed, "v", 7, 20, 600, "d2d4 d7d5"); /* as deep, but it knows more */
    row_is(bed, 7, 20, 1600, "d2d4 d7d5");
    say_found(bed, "other", 9, 99, 9999, "a2a3"); /* not the owner */
    row_is(bed, 7, 20, 1600, "d2d4 d7d5");
    assert_int_equal(jobs(bed, 0)->list.at[0].left_s, 0); /* only the owner's word counts */
    const struct proto_members_answer *all = members(bed, 0);
    for (uint32_t i = 0; i < all->list.count; i++) {
        const struct proto_member_row *row = &all->list.at[i];
        bool is_w = text_is(row->name, "w"), is_v = text_is(row->name, "v");
        assert_int_equal(row->nodes, is_w ? 1000 : is_v ? 600 : 0);
        assert_int_equal(row->waited_us, is_w ? 500 : is_v ? 300 : 0);
        assert_int_equal(row->duplicated, row->nodes / 10);
        assert_int_equal(row->abandoned, row->nodes / 5);
        assert_int_equal(row->asks, row->nodes / 50);
        assert_int_equal(row->talked_us, row->nodes);
        assert_int_equal(row->bytes_sent, row->nodes);
        assert_int_equal(row->bytes_received, 2 * row->nodes);
    }
    say_found(bed, "front", 6, 5, 2500, "c2c4"); /* what its user sees stands, deep or not */
    assert_int_equal(bed->actions.messages, 0);
    row_is(bed, 6, 5, 2500, "c2c4");
    assert_int_equal(jobs(bed, 0)->list.at[0].left_s, 2501);
    say_found(bed, "w", 8, 40, 3000, "e2e4 e7e5"); /* nodes: the front-end has not heard yet */
    row_is(bed, 6, 5, 3600, "c2c4");
    say_found(bed, "front", 0, 0, 4000, "");
    row_is(bed, 6, 5, 4000, "c2c4");
}

static const struct proto_member_row *row_of(struct bed *bed, const char *name)
{
    const struct proto_members_answer *all = members(bed, 0);
    for (uint32_t i = 0; i < all->list.count; i++) {
        if (text_is(all->list.at[i].name, name)) {
            return &all->list.at[i];
        }
    }
    fail();
    return NULL;
}

static void a_front_end_that_searches_too_has_totals_of_its_own(void **state)
{
    struct bed *bed = *state;
    bed_hello(bed, "watch", PROTO_MONITOR);
    bed_hello(bed, "front", PROTO_FRONT);
    bed_hello(bed, "other", PROTO_FRONT);
    bed_hello(bed, "w", PROTO_WORKER);
    bed_post(bed, "front", 5);
    say_found(bed, "w", 7, 30, 1000, "e2e4");
    say_found(bed, "front", 7, 30, 1800, "e2e4");
    struct proto_message m = {.type = PROTO_JOB_REPORT};
    m.job_report = (struct proto_job_report){
        .job = 5, .instance = 9, .nodes = 800, .waited_us = 7, .talked_us = 8, .bytes_sent = 3};
    bed_say(bed, "front", m);
    assert_int_equal(bed->actions.messages, 0);
    bed_say(bed, "other", m); /* about a job that is not its own */
    row_is(bed, 7, 30, 1800, "e2e4");
    const struct proto_member_row *row = row_of(bed, "front");
    assert_int_equal(row->job, 5);
    assert_int_equal(row->nodes, 800);
    assert_int_equal(row->waited_us, 7);
    assert_int_equal(row->talked_us, 8);
    assert_int_equal(row->bytes_sent, 3);
    assert_int_equal(row_of(bed, "other")->job, 0);
    assert_int_equal(jobs(bed, 0)->list.at[0].workers, 1);
    m = (struct proto_message){.type = PROTO_JOB_STOP, .job_stop = {.job = 5}};
    bed_say(bed, "front", m);
    row = row_of(bed, "front");
    assert_int_equal(row->job, 0);
    assert_int_equal(row->nodes, 0);
}

static void a_long_line_is_cut_between_words(void **state)
{
    struct bed *bed = *state;
    char text[PROTO_TEXT_MAX + 1];
    bed_hello(bed, "watch", PROTO_MONITOR);
    bed_hello(bed, "front", PROTO_FRONT);
    bed_post(bed, "front", 5);
    for (unsigned i = 0; i < PROTO_TEXT_MAX; i++) {
        text[i] = i % 5 == 4 ? ' ' : 'a';
    }
    text[PROTO_TEXT_MAX] = '\0';
    say_found(bed, "front", 3, 1, 1, text);
    text[TTCORE_LINE_MAX / 5 * 5 - 1] = '\0';
    row_is(bed, 3, 1, 1, text);
    memset(text, 'a', PROTO_TEXT_MAX); /* one word */
    say_found(bed, "front", 3, 1, 1, text);
    row_is(bed, 3, 1, 1, "");
}

/* ---- workers that come and go, for the log ---- */

static void changes_are(struct bed *bed, unsigned came, unsigned went, unsigned now)
{
    struct ttcore_changes c = ttcore_take_changes(bed->core);
    assert_int_equal(c.came.count, came);
    assert_int_equal(c.went.count, went);
    assert_int_equal(c.workers, now);
}

static void workers_that_come_and_go_are_noted(void **state)
{
    struct bed *bed = *state;
    bed_hello(bed, "front", PROTO_FRONT);
    changes_are(bed, 0, 0, 0);
    for (const char *name = "abcd"; *name; name++) {
        bed_hello(bed, (char[]){*name, '\0'}, PROTO_WORKER);
    }
    struct ttcore_changes c = ttcore_take_changes(bed->core);
    assert_int_equal(c.came.count, 4); /* three by name */
    assert_string_equal(c.came.name[0], "a");
    assert_string_equal(c.came.name[TTCORE_CHANGED_NAMES - 1], "c");
    bed_hello(bed, "a", PROTO_WORKER); /* again */
    changes_are(bed, 0, 0, 4);
    bed_hello_as(bed, "a", (struct proto_hello){.role = PROTO_WORKER, .instance = 77});
    changes_are(bed, 1, 1, 4); /* another one on the same connection */
    bed_hello(bed, "b", PROTO_CLIENT);
    bed_bye(bed, "c");
    bed_lose(bed, "d");
    changes_are(bed, 0, 3, 1);
    for (unsigned i = 0; i < 8; i++) { /* silence */
        bed->now_us += HEARTBEAT_US / 2;
        bed_event(bed, TTCORE_TICK);
    }
    changes_are(bed, 0, 1, 0);
}

/* ---- a lost connection ---- */

static void a_lost_connection_ends_its_session_at_once(void **state)
{
    struct bed *bed = *state;
    bed_hello(bed, "front", PROTO_FRONT);
    bed_hello(bed, "worker", PROTO_WORKER);
    bed_post(bed, "front", 5);
    bed_ask(bed, "worker", bed_wide(1, 4, 0, 0));
    bed_ask(bed, "front", bed_wide(2, 4, 0, 0));
    assert_int_equal(bed_figures(bed).inflight_entries, 2);
    bed_lose(bed, "front");
    assert_int_equal(bed_seen(bed, "worker", PROTO_JOB_STOP)->job_stop.reason, PROTO_STOP_EXPIRED);
    struct ttcore_figures f = bed_figures(bed);
    assert_int_equal(f.sessions, 1);
    assert_int_equal(f.jobs, 0);
    assert_int_equal(f.inflight_entries, 1);
    bed_lose(bed, "worker");
    f = bed_figures(bed);
    assert_int_equal(f.sessions + f.inflight_entries + f.workers, 0);
    assert_int_equal(f.sessions_gone, 2);
    bed_lose(bed, "worker"); /* nobody */
    bed_lose(bed, "never was here");
    assert_int_equal(bed_figures(bed).sessions_gone, 2);
    assert_int_equal(bed->actions.messages, 0);
}

static void a_hello_may_let_go_of_everything(void **state)
{
    struct bed *bed = *state;
    uint32_t session = bed_hello(bed, "worker", PROTO_WORKER);
    bed_hello(bed, "other", PROTO_WORKER);
    bed_ask(bed, "worker", bed_wide(1, 4, 0, 0));
    bed_ask(bed, "worker", bed_wide(2, 4, 0, 0));
    bed_ask(bed, "other", bed_wide(2, 4, 0, 0));
    bed_hello_as(bed, "worker",
                 (struct proto_hello){.role = PROTO_WORKER,
                                      .instance = 'w',
                                      .flags = PROTO_RELEASE_ALL | PROTO_WANTS_NODE_DONE});
    assert_int_equal(bed_nth(bed, "worker", 0)->welcome.session, session);
    assert_int_equal(bed_figures(bed).inflight_entries, 1);
    bed_ask(bed, "worker", bed_wide(1, 4, 0, 0));
    bed_hello(bed, "worker", PROTO_WORKER); /* the flag was for that once */
    assert_int_equal(bed_figures(bed).inflight_entries, 2);
}

/* ---- members and jobs ---- */

static void jobs_name_how_many_search_them(void **state)
{
    struct bed *bed = *state;
    bed_hello(bed, "watch", PROTO_CLIENT);
    bed_hello(bed, "front", PROTO_FRONT);
    bed_hello(bed, "w1", PROTO_WORKER);
    bed_hello(bed, "w2", PROTO_WORKER);
    assert_int_equal(jobs(bed, 0)->list.count, 0);
    bed_post(bed, "front", 5);
    bed->now_us += 1500 * 1000;
    report(bed, "w1", 5, PROTO_JOB_SEARCHING, 3);
    report(bed, "w2", 5, PROTO_JOB_SEARCHING, 2);
    const struct proto_jobs_answer *answer = jobs(bed, 0);
    assert_int_equal(answer->list.count, 1);
    assert_int_equal(answer->next, 0);
    const struct proto_job_row row = answer->list.at[0];
    assert_int_equal(row.job, 5);
    assert_int_equal(row.workers, 2);
    assert_int_equal(row.age_ms, 1500);
    assert_int_equal(row.depth, 12);
    assert_int_equal(row.reached, 3);
    assert_true(text_is(row.owner, "front") && text_is(row.game, "chess"));
    assert_true(text_is(row.position, "startpos") && text_is(row.algorithm, "abdada"));
    report(bed, "w2", 5, PROTO_JOB_ENDED, 2);
    assert_int_equal(jobs(bed, 0)->list.at[0].workers, 1);
    report(bed, "w2", 77, PROTO_JOB_SEARCHING, 2); /* no such job here */
    report(bed, "front", 5, PROTO_JOB_SEARCHING, 2);
    assert_int_equal(jobs(bed, 0)->list.at[0].workers, 1);
    bed_hello(bed, "w1", PROTO_WORKER);
    assert_int_equal(jobs(bed, 0)->list.at[0].workers, 0);
}

static void members_report_their_names_and_jobs(void **state)
{
    struct bed *bed = *state;
    uint32_t session = bed_hello(bed, "worker", PROTO_WORKER);
    bed_hello(bed, "front", PROTO_FRONT);
    bed_hello(bed, "watch", PROTO_CLIENT);
    bed_post(bed, "front", 5);
    report(bed, "worker", 5, PROTO_JOB_SEARCHING, 3);
    bed->now_us += 70 * 1000;
    const struct proto_members_answer *answer = members(bed, 0);
    assert_int_equal(answer->list.count, 3);
    assert_int_equal(answer->next, 0);
    const struct proto_member_row row = answer->list.at[0];
    assert_int_equal(row.session, session);
    assert_int_equal(row.role, PROTO_WORKER);
    assert_int_equal(row.job, 5);
    assert_int_equal(row.silent_ms, 70);
    assert_true(text_is(row.name, "worker"));
    uint32_t instance_id = row.instance_id;
    assert_int_not_equal(instance_id, 'w'); /* its instance stays its own */
    bed_stop_job(bed, "front", 5);
    answer = members(bed, 0);
    assert_int_equal(answer->list.at[0].job, 0);
    bed_bye(bed, "worker");
    bed_hello(bed, "we return", PROTO_WORKER);
    assert_int_equal(members(bed, 0)->list.at[0].instance_id,
                     instance_id); /* of the same instance */
}

static void long_lists_come_in_pages(void **state)
{
    enum { SESSIONS = 700, JOBS = 20 };
    struct ttcore_options options = bed_options();
    options.sessions_max = 10000;
    options.jobs_max = 100;
    bed_close(*state);
    struct bed *bed = *state = bed_open(&options);
    char name[40];
    bed_hello(bed, "watch", PROTO_CLIENT);
    bed_hello(bed, "front", PROTO_FRONT);
    for (unsigned i = 2; i < SESSIONS; i++) {
        snprintf(name, sizeof name, "a name that is as long as may be %u", i);
        bed_hello(bed, name, PROTO_CLIENT);
    }
    unsigned seen = 0, pages = 0;
    uint32_t from = 0;
    do {
        const struct proto_members_answer *answer = members(bed, from);
        seen += answer->list.count;
        from = answer->next;
        pages++;
    } while (from != 0);
    assert_int_equal(seen, SESSIONS);
    assert_in_range(pages, 3, 8);
    for (unsigned i = 1; i <= JOBS; i++) {
        bed_post(bed, "front", i);
    }
    seen = pages = 0;
    do {
        const struct proto_jobs_answer *answer = jobs(bed, from);
        seen += answer->list.count;
        from = answer->next;
        pages++;
    } while (from != 0);
    assert_int_equal(seen, JOBS);
    assert_int_equal(pages, 3);
    assert_int_equal(members(bed, UINT32_MAX)->list.count, 0);
    assert_int_equal(jobs(bed, UINT32_MAX)->list.count, 0);
    assert_int_equal(bed_figures(bed).dropped, 0);
}

static void the_longest_page_of_jobs_fits(void **state)
{
    struct ttcore_options options = bed_options();
    static char text[PROTO_TEXT_MAX];
    struct proto_text longest = {text, sizeof text};
    options.jobs_max = 4 * 2 * TTCORE_JOBS_PAGE;
    bed_close(*state);
    struct bed *bed = *state = bed_open(&options);
    memset(text, 'x', sizeof text);
    bed_hello(bed, "front", PROTO_FRONT);
    bed_hello(bed, "watch", PROTO_CLIENT);
    for (unsigned i = 0; i < 2 * TTCORE_JOBS_PAGE; i++) {
        struct proto_message m = {.type = PROTO_JOB_POST};
        m.job = (struct proto_job){
            UINT64_MAX - i, UINT64_MAX, longest,   longest,   UINT64_MAX, UINT64_MAX,
            longest,        UINT8_MAX,  UINT8_MAX, UINT8_MAX, UINT32_MAX, UINT64_MAX,
        };
        bed_say(bed, "front", m);
    }
    const struct proto_jobs_answer *answer = jobs(bed, 0);
    assert_int_equal(answer->list.count, TTCORE_JOBS_PAGE);
    assert_int_equal(answer->list.at[0].position.length, PROTO_TEXT_MAX);
    assert_int_equal(bed_figures(bed).dropped, 0);
}

/* ---- bounds ---- */

static void every_bound_has_its_counter(void **state)
{
    struct ttcore_outside outside = {
        .sent = 7, .queue_full = 3, .hints_dropped = 4, .oversized = 2};
    struct ttcore_options options = bed_options();
    struct tt_ask ask[3] = {bed_wide(1, 4, 0, 0), bed_wide(2, 4, 0, 0), bed_wide(3, 4, 0, 0)};
    struct proto_message m = {.type = PROTO_RETRIEVE_ASK};
    options.sessions_max = 2;
    options.jobs_max = 1;
    options.batch_max = 2;
    options.inflight_max = 1;
    options.outside = &outside;
    bed_close(*state);
    struct bed *bed = *state = bed_open(&options);
    bed_hello(bed, "front", PROTO_FRONT);
    bed_hello(bed, "second", PROTO_CLIENT);
    bed_hello_as(bed, "third", (struct proto_hello){.role = PROTO_CLIENT});
    bed_expect_error(bed, "third", PROTO_ERR_LIMIT);
    bed_post(bed, "front", 1);
    bed_post(bed, "front", 2);
    bed_expect_error(bed, "front", PROTO_ERR_LIMIT);
    m.retrieve_ask.list = (struct proto_asks){3, ask};
    bed_say(bed, "second", m);
    bed_expect_error(bed, "second", PROTO_ERR_LIMIT);
    m.retrieve_ask.list = (struct proto_asks){2, ask};
    bed_say(bed, "second", m);
    bed_seen(bed, "second", PROTO_RETRIEVE_ANSWER);
    bed_ask(bed, "front", bed_wide(4, 4, 0, 0)); /* another user */
    struct ttcore_figures f = bed_figures(bed);
    assert_int_equal(f.sessions_refused, 1);
    assert_int_equal(f.jobs_refused, 1);
    assert_int_equal(f.batches_refused, 1);
    assert_int_equal(f.inflight_refused, 1);
    assert_int_equal(f.inflight_over_quota, 1);
    assert_int_equal(f.refused, 3);
    assert_int_equal(f.sent, 7);
    assert_int_equal(f.queue_full, 3);
    assert_int_equal(f.hints_dropped, 4);
    assert_int_equal(f.oversized, 2);
    assert_int_equal(f.sessions_max, 2);
    assert_int_equal(f.inflight_max, 1);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, bed_setup, bed_teardown)
    const struct CMUnitTest tests[] = {
        T(a_job_shows_what_was_found),
        T(a_front_end_that_searches_too_has_totals_of_its_own),
        T(a_long_line_is_cut_between_words),
        T(workers_that_come_and_go_are_noted),
        T(a_lost_connection_ends_its_session_at_once),
        T(a_hello_may_let_go_of_everything),
        T(jobs_name_how_many_search_them),
        T(members_report_their_names_and_jobs),
        T(long_lists_come_in_pages),
        T(the_longest_page_of_jobs_fits),
        T(every_bound_has_its_counter),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
