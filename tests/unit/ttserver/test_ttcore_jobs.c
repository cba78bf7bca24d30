/* The life of a job in the shard's core. */
#include "tests/support/test_ttcore.h"

#include "ttserver/core/user_table.h"

#include <stdio.h>

static int setup(void **state)
{
    struct ttcore_options options = bed_options();
    struct bed *bed = bed_open(&options);
    bed_hello(bed, "front", PROTO_FRONT);
    bed_hello(bed, "w1", PROTO_WORKER);
    bed_hello(bed, "w2", PROTO_WORKER);
    *state = bed;
    return 0;
}

static void job_is_pushed_to_every_worker(void **state)
{
    struct bed *bed = *state;
    bed_hello(bed, "client", PROTO_CLIENT);
    uint64_t generation = bed_figures(bed).generation;
    bed_post(bed, "front", 5);
    assert_int_equal(bed->actions.messages, 1);
    bed_seen(bed, "w1", PROTO_JOB);
    const struct proto_job job = bed_seen(bed, "w2", PROTO_JOB)->job;
    assert_null(bed_nth(bed, "client", 0));
    assert_null(bed_nth(bed, "front", 0));
    assert_int_equal(job.job, 5);
    assert_int_equal(job.evaluation, 0xe7a1);
    assert_int_equal(job.depth, 12);
    assert_int_equal(job.nodes, UINT64_MAX);
    assert_int_equal(job.position.length, 8);
    assert_memory_equal(job.position.at, "startpos", 8);
    assert_int_equal(bed_figures(bed).jobs, 1);
    assert_int_equal(bed_figures(bed).generation, generation + 1);
}

/* All keys are in one bucket: the shard has no other. */
static void a_job_ages_the_results_of_its_namespace_alone(void **state)
{
    (void)state;
    struct ttcore_options options = bed_options();
    options.results_bytes = 64;
    struct bed *bed = bed_open(&options);
    struct proto_message post = {.type = PROTO_JOB_POST};
    bed_hello_as(bed, "front", (struct proto_hello){.role = PROTO_FRONT});
    bed_hello_as(bed, "a", (struct proto_hello){.role = PROTO_CLIENT, .namespace_id = 1});
    bed_hello_as(bed, "b", (struct proto_hello){.role = PROTO_CLIENT, .namespace_id = 2});
    for (uint64_t job = 1; job <= 2; job++) { /* one job in each */
        post.job.job = post.job.namespace_id = job;
        bed_say(bed, "front", post);
    }
    for (uint64_t key = 1; key <= 2; key++) {
        bed_store(bed, "a", (struct tt_store){key, 1, 20, TT_EXACT, 0, 0});
        bed_store(bed, "b", (struct tt_store){key + 2, 1, 10, TT_EXACT, 0, 0});
    }
    post.job.job = 3; /* another one in the namespace of b */
    bed_say(bed, "front", post);
    bed_store(bed, "a", (struct tt_store){1, 1, 3, TT_EXACT, 0, 0}); /* the deeper one stays */
    for (uint64_t key = 5; key <= 9; key++) {
        bed_store(bed, "b", (struct tt_store){key, 1, 3, TT_EXACT, 0, 0});
    }
    for (uint64_t key = 1; key <= 2; key++) {
        assert_int_equal(bed_peek(bed, "a", key, 3).depth, 20);
        assert_int_equal(bed_peek(bed, "b", key + 2, 3).depth, 0);
    }
    post.job.job = 4;
    post.job.namespace_id = 1;
    bed_say(bed, "front", post);
    bed_store(bed, "b", (struct tt_store){10, 1, 3, TT_EXACT, 0, 0});
    assert_int_equal(bed_peek(bed, "a", 1, 3).depth, 0); /* one of them is old now */
    bed_close(bed);
}

/* A session names its namespace in HELLO; it may store nothing for long while others post. */
static void many_jobs_age_no_namespace_that_a_session_is_in(void **state)
{
    (void)state;
    struct ttcore_options options = bed_options();
    options.results_bytes = 64; /* one bucket of four */
    struct bed *bed = bed_open(&options);
    struct proto_message post = {.type = PROTO_JOB_POST};
    bed_hello_as(bed, "front", (struct proto_hello){.role = PROTO_FRONT, .namespace_id = 2});
    bed_hello_as(bed, "a", (struct proto_hello){.role = PROTO_CLIENT, .namespace_id = 1});
    bed_hello_as(bed, "b", (struct proto_hello){.role = PROTO_CLIENT, .namespace_id = 2});
    post.job.job = post.job.namespace_id = 1;
    bed_say(bed, "front", post);
    bed_store(bed, "a", (struct tt_store){1, 1, 20, TT_EXACT, 0, 0});
    bed_store(bed, "a", (struct tt_store){2, 1, 20, TT_EXACT, 0, 0});
    for (uint64_t job = 2; job <= 10; job++) { /* of another namespace, one soon after the other */
        post.job.job = job;
        post.job.namespace_id = 2;
        bed_say(bed, "front", post);
        bed_stop_job(bed, "front", job);
    }
    for (uint64_t key = 3; key <= 8; key++) {
        bed_store(bed, "b", (struct tt_store){key, 1, 3, TT_EXACT, 0, 0});
    }
    for (uint64_t key = 1; key <= 2; key++) { /* the shallowest give way, as all are present */
        assert_int_equal(bed_peek(bed, "a", key, 3).depth, 20);
    }
    bed_bye(bed, "a"); /* now nobody is in it */
    for (uint64_t job = 11; job <= 14; job++) {
        post.job.job = job;
        bed_say(bed, "front", post);
        bed_stop_job(bed, "front", job);
    }
    assert_int_equal(bed_figures(bed).job_posts, 14);
    for (uint64_t key = 3; key <= 8; key++) {
        bed_store(bed, "b", (struct tt_store){key, 1, 3, TT_EXACT, 0, 0});
    }
    for (uint64_t key = 1; key <= 2; key++) {
        assert_int_equal(bed_peek(bed, "b", key, 3).depth, 0);
    }
    bed_close(bed);
}

static void late_worker_gets_open_jobs(void **state)
{
    struct bed *bed = *state;
    bed_post(bed, "front", 5);
    bed_post(bed, "front", 6);
    bed_stop_job(bed, "front", 5);
    bed_post(bed, "front", 7);
    bed_hello(bed, "late", PROTO_WORKER);
    assert_int_equal(bed_nth(bed, "late", 0)->welcome.jobs, 2);
    uint64_t first = bed_nth(bed, "late", 1)->job.job, second = bed_nth(bed, "late", 2)->job.job;
    assert_int_equal(bed->seen.type, PROTO_JOB);
    assert_int_equal(first + second, 13);
    assert_null(bed_nth(bed, "late", 3));
    bed_hello(bed, "client", PROTO_CLIENT);
    assert_null(bed_nth(bed, "client", 1));
}

static void repeated_post_is_ignored(void **state)
{
    struct bed *bed = *state;
    bed_post(bed, "front", 5);
    uint64_t generation = bed_figures(bed).generation;
    bed_post(bed, "front", 5);
    assert_int_equal(bed->actions.messages, 0);
    assert_int_equal(bed_figures(bed).jobs, 1);
    assert_int_equal(bed_figures(bed).generation, generation);
}

static void owner_stops_its_job(void **state)
{
    struct bed *bed = *state;
    bed_post(bed, "front", 5);
    bed_stop_job(bed, "front", 5);
    const struct proto_job_stop stop = bed_seen(bed, "w1", PROTO_JOB_STOP)->job_stop;
    assert_int_equal(stop.job, 5);
    assert_int_equal(stop.reason, PROTO_STOP_OWNER);
    assert_int_equal(bed_figures(bed).jobs, 0);
    bed_stop_job(bed, "front", 5);
    assert_int_equal(bed->actions.messages, 0);
}

static void others_may_not_post_or_stop(void **state)
{
    struct bed *bed = *state;
    bed_hello(bed, "other", PROTO_FRONT);
    bed_post(bed, "front", 5);
    bed_stop_job(bed, "other", 5);
    bed_expect_error(bed, "other", PROTO_ERR_ROLE);
    bed_stop_job(bed, "w1", 5);
    bed_expect_error(bed, "w1", PROTO_ERR_ROLE);
    bed_post(bed, "w1", 6);
    bed_expect_error(bed, "w1", PROTO_ERR_ROLE);
    bed_bye(bed, "other");
    assert_int_equal(bed_figures(bed).jobs, 1);
}

static void the_id_of_anothers_job_is_refused(void **state)
{
    struct bed *bed = *state;
    uint64_t id = UINT64_C(0x123456789abcdef0);
    bed_hello(bed, "other", PROTO_FRONT);
    bed_post(bed, "front", id);
    bed_post(bed, "other", id);
    bed_expect_error(bed, "other", PROTO_ERR_LIMIT);
    assert_int_equal(bed->seen.error.request, (uint32_t)id);
    bed_post(bed, "front", id);
    assert_int_equal(bed->actions.messages, 0);
    bed_stop_job(bed, "front", id);
    bed_post(bed, "other", id);
    bed_seen(bed, "w1", PROTO_JOB);
}

/* The owner whose job of that id was stopped last, not first, gets the last reports. */
static void a_last_report_goes_to_the_last_owner(void **state)
{
    struct bed *bed = *state;
    struct proto_message m = {.type = PROTO_JOB_REPORT,
                              .job_report = {.job = 5, .state = PROTO_JOB_ENDED, .nodes = 77}};
    bed_hello(bed, "other", PROTO_FRONT);
    bed_post(bed, "front", 5);
    bed_stop_job(bed, "front", 5);
    bed_post(bed, "other", 5);
    bed_stop_job(bed, "other", 5);
    bed_say(bed, "w1", m);
    bed_seen(bed, "other", PROTO_JOB_REPORT);
    assert_null(bed_nth(bed, "front", 0));
}

static void job_expires_with_its_front_end(void **state)
{
    struct bed *bed = *state;
    bed_post(bed, "front", 5);
    bed_post(bed, "front", 6);
    bed_wait(bed, EXPIRY_US - 100000);
    bed_heartbeat(bed, "w1");
    bed_wait(bed, 100000);
    assert_int_equal(bed_figures(bed).jobs, 0);
    assert_int_equal(bed_figures(bed).sessions, 1);
    assert_int_equal(bed_nth(bed, "w1", 0)->job_stop.job, 5);
    assert_int_equal(bed_nth(bed, "w1", 1)->job_stop.job, 6);
    assert_int_equal(bed->seen.job_stop.reason, PROTO_STOP_EXPIRED);
    assert_null(bed_nth(bed, "w2", 0)); /* expired in the same step */
}

static void job_ends_with_its_front_ends_bye(void **state)
{
    struct bed *bed = *state;
    bed_post(bed, "front", 5);
    bed_bye(bed, "front");
    assert_int_equal(bed_seen(bed, "w2", PROTO_JOB_STOP)->job_stop.reason, PROTO_STOP_EXPIRED);
    assert_int_equal(bed_figures(bed).jobs, 0);
}

static void job_ends_when_its_front_end_is_reborn(void **state)
{
    struct bed *bed = *state;
    bed_post(bed, "front", 5);
    bed_hello_as(bed, "front", (struct proto_hello){.role = PROTO_FRONT, .instance = 12345});
    assert_int_equal(bed_seen(bed, "w1", PROTO_JOB_STOP)->job_stop.job, 5);
    assert_int_equal(bed_seen(bed, "front", PROTO_WELCOME)->welcome.jobs, 0);
    bed_post(bed, "front", 6);
    bed_hello_as(bed, "front", (struct proto_hello){.role = PROTO_WORKER, .instance = 12345});
    assert_int_equal(bed_seen(bed, "w1", PROTO_JOB_STOP)->job_stop.job, 6);
    assert_null(bed_nth(bed, "front", 1));
}

static void job_survives_the_reconnection_of_its_front_end(void **state)
{
    struct bed *bed = *state;
    bed_post(bed, "front", 5);
    bed_wait(bed, 2 * HEARTBEAT_US);
    bed_hello(bed, "front2", PROTO_FRONT); /* the same instance on a new connection */
    bed_post(bed, "front2", 5);
    bed_wait(bed, 2 * HEARTBEAT_US);
    assert_int_equal(bed_figures(bed).sessions, 1);
    assert_int_equal(bed_figures(bed).jobs, 1);
    bed_hello(bed, "w1", PROTO_WORKER);
    bed_stop_job(bed, "front2", 5);
    bed_seen(bed, "w1", PROTO_JOB_STOP);
}

static void report_is_forwarded_to_the_owner(void **state)
{
    struct bed *bed = *state;
    struct proto_message m = {.type = PROTO_JOB_REPORT};
    m.job_report = (struct proto_job_report){.job = 5,
                                             .instance = 9,
                                             .state = PROTO_JOB_SEARCHING,
                                             .depth = 7,
                                             .score = -31000,
                                             .move = 1804,
                                             .nodes = 1000,
                                             .duplicated = 4,
                                             .abandoned = 9,
                                             .talked_us = 60,
                                             .bytes_sent = 700,
                                             .bytes_received = 800,
                                             .line = proto_text_of("e2e4 e7e5"),
                                             .name = proto_text_of("a lie")};
    bed_post(bed, "front", 5);
    bed_say(bed, "w1", m);
    const struct proto_job_report report = bed_seen(bed, "front", PROTO_JOB_REPORT)->job_report;
    assert_int_equal(bed->actions.messages, 1);
    assert_int_equal(report.nodes, 1000);
    assert_int_equal(report.duplicated, 4);
    assert_int_equal(report.abandoned, 9);
    assert_int_equal(report.talked_us, 60);
    assert_int_equal(report.bytes_sent, 700);
    assert_int_equal(report.bytes_received, 800);
    assert_int_equal(report.name.length, strlen("w1")); /* what the session said, as ever */
    assert_memory_equal(report.name.at, "w1", strlen("w1"));
    assert_int_equal(report.score, -31000);
    assert_int_equal(report.move, 1804);
    assert_int_equal(report.line.length, strlen("e2e4 e7e5"));
    assert_memory_equal(report.line.at, "e2e4 e7e5", report.line.length);
    bed_hello(bed, "client", PROTO_CLIENT);
    bed_say(bed, "client", m);
    bed_expect_error(bed, "client", PROTO_ERR_ROLE);
}

static void report_on_an_unknown_job_is_answered_by_a_stop(void **state)
{
    struct bed *bed = *state;
    struct proto_message m = {.type = PROTO_JOB_REPORT, .job_report = {.job = 5, .instance = 9}};
    bed_post(bed, "front", 5);
    bed_post(bed, "front", 6);
    bed_stop_job(bed, "front", 5);
    for (unsigned i = 1; i <= 2; i++) { /* every time: the answer may be lost */
        bed_say(bed, "w1", m);
        const struct proto_job_stop stop = bed_seen(bed, "w1", PROTO_JOB_STOP)->job_stop;
        assert_int_equal(stop.job, 5);
        assert_int_equal(stop.reason, PROTO_STOP_EXPIRED);
        assert_int_equal(bed->actions.messages, 1); /* nobody else is concerned */
        assert_int_equal(bed->actions.message[0].targets, 1);
        assert_int_equal(bed_figures(bed).reports_unknown_job, i);
    }
    bed_bye(bed, "front");
    m.job_report.job = 6;
    bed_say(bed, "w2", m);
    assert_int_equal(bed_seen(bed, "w2", PROTO_JOB_STOP)->job_stop.job, 6);
    bed_hello(bed, "client", PROTO_CLIENT);
    bed_say(bed, "client", m);
    bed_expect_error(bed, "client", PROTO_ERR_ROLE);
    assert_int_equal(bed_figures(bed).job_reports, 0);
    assert_int_equal(bed_figures(bed).reports_unknown_job, 3);
}

static void a_last_report_comes_after_the_stop(void **state)
{
    struct bed *bed = *state;
    struct proto_message m = {
        .type = PROTO_JOB_REPORT,
        .job_report = {.job = 5, .instance = 9, .state = PROTO_JOB_ENDED, .nodes = 77}};
    bed_post(bed, "front", 5);
    bed_stop_job(bed, "front", 5);
    bed_say(bed, "w1", m);
    assert_int_equal(bed_seen(bed, "front", PROTO_JOB_REPORT)->job_report.nodes, 77);
    bed_bye(bed, "front");
    bed_say(bed, "w1", m);
    assert_int_equal(bed->actions.messages, 1); /* nobody is there to get it */
}

static void jobs_are_bounded(void **state)
{
    struct bed *bed = *state;
    for (uint64_t job = 1; job <= 4; job++) {
        bed_post(bed, "front", job);
        bed_seen(bed, "w1", PROTO_JOB);
    }
    bed_post(bed, "front", 5);
    bed_expect_error(bed, "front", PROTO_ERR_LIMIT);
    bed_stop_job(bed, "front", 2);
    bed_post(bed, "front", 5);
    bed_seen(bed, "w1", PROTO_JOB);
}

static void hello_of(struct bed *bed, const struct ttcore_peer *peer, const char *who,
                     enum proto_role role, uint64_t instance)
{
    bed->peer = peer;
    bed_hello_as(bed, who, (struct proto_hello){.role = (uint8_t)role, .instance = instance});
}

/* A bit for each job from 1 to 64 that the last step sent to `who`, in no more bytes than its
 * connection takes while others wait there (connection.h). */
static uint64_t jobs_sent_to(struct bed *bed, const char *who)
{
    enum { PART_MAX = 60000 };
    const struct proto_message *m;
    uint64_t jobs = 0;
    uint32_t bytes = 0;
    for (uint32_t i = 0; i < bed->actions.messages; i++) {
        bytes +=
            bed_is_for(bed, &bed->actions.message[i], who) ? bed->actions.message[i].length : 0;
    }
    assert_in_range(bytes, 0, PART_MAX);
    for (unsigned i = 0; (m = bed_nth(bed, who, i)) != NULL; i++) {
        jobs |= m->type == PROTO_JOB ? UINT64_C(1) << (m->job.job - 1) : 0;
    }
    return jobs;
}

static void open_jobs_of_many_bytes_reach_a_worker_in_parts(void **state)
{
    enum { JOBS = 64 };
    struct ttcore_options options = bed_options();
    struct proto_message post = {.type = PROTO_JOB_POST};
    char text[PROTO_TEXT_MAX], name[16];
    bed_close(*state);
    options.jobs_max = JOBS;
    options.sessions_max = 2 * JOBS;
    struct bed *bed = *state = bed_open(&options);
    memset(text, 'x', sizeof text);
    post.job.game = post.job.position = post.job.algorithm = (struct proto_text){text, sizeof text};
    for (unsigned i = 0; i < JOBS; i++) {
        snprintf(name, sizeof name, "front%u", i);
        hello_of(bed, NULL, name, PROTO_FRONT, 1 + i);
        post.job.job = 1 + i;
        bed_say(bed, name, post);
    }
    assert_int_equal(bed_figures(bed).jobs, JOBS);
    hello_of(bed, NULL, "early", PROTO_WORKER, 100);
    uint64_t early = jobs_sent_to(bed, "early"), late = 0;
    assert_true(early != 0 && early != UINT64_MAX);
    for (unsigned tick = 0; tick < 2 * JOBS && (early & late) != UINT64_MAX; tick++) {
        if (tick == 1) { /* in the middle of it */
            hello_of(bed, NULL, "late", PROTO_WORKER, 101);
            late |= jobs_sent_to(bed, "late");
        }
        bed->now_us += HEARTBEAT_US / 4;
        bed_event(bed, TTCORE_TICK);
        early |= jobs_sent_to(bed, "early");
        late |= jobs_sent_to(bed, "late");
    }
    assert_int_equal(early, UINT64_MAX);
    assert_int_equal(late, UINT64_MAX);
    bed->now_us += HEARTBEAT_US / 4;
    bed_event(bed, TTCORE_TICK);
    assert_int_equal(jobs_sent_to(bed, "early") | jobs_sent_to(bed, "late"), 0);
}

static const struct ttcore_peer ann = {7, 0xf, "ann"};

/* Ann posts as many jobs as she may at once. */
static void ann_has_posted(struct bed *bed, uint64_t wanted)
{
    uint64_t posted = bed_figures(bed).job_posts;
    hello_of(bed, &ann, "ann", PROTO_FRONT, 1);
    bed->now_us += 10 * HEARTBEAT_US / 4;
    for (uint64_t job = 1; job <= 200; job++) {
        bed_post(bed, "ann", job);
        bed_stop_job(bed, "ann", job);
    }
    assert_int_equal(bed_figures(bed).job_posts - posted, wanted);
}

static void workers_of(struct bed *bed, const struct ttcore_peer *peer, unsigned workers)
{
    char name[16];
    for (unsigned i = 0; i < workers; i++) {
        snprintf(name, sizeof name, "w%u.%u", (unsigned)peer->user, i);
        hello_of(bed, peer, name, PROTO_WORKER, i);
    }
}

/* For each 64 workers a post is one step more of the budget. */
static void jobs_for_many_workers_are_posted_at_a_lower_rate(void **state)
{
    enum { WORKERS = 160, BURST = TTCORE_POSTS_BURST, COST = 3 };
    struct ttcore_options options = bed_options();
    options.sessions_max = 1024;
    bed_close(*state);
    struct bed *bed = *state = bed_open(&options);
    workers_of(bed, &ann, WORKERS); /* her own */
    ann_has_posted(bed, (BURST + COST - 1) / COST);
}

/* A user with hundreds of them counts as one with 64, whether they came before the others or after.
 */
static void another_users_many_workers_do_not_keep_jobs_from_being_posted(void **state)
{
    enum { MANY = 500, BURST = TTCORE_POSTS_BURST };
    static const struct ttcore_peer user[] = {{11, 0xf, "u1"}, {12, 0xf, "u2"}};
    struct ttcore_options options = bed_options();
    options.sessions_max = 1024;
    bed_close(*state);
    struct bed *bed = *state = bed_open(&options);
    ann_has_posted(bed, BURST);
    workers_of(bed, &user[0], MANY);
    ann_has_posted(bed, BURST / 2);
    workers_of(bed, &user[1], 60);
    ann_has_posted(bed, BURST / 2);
    workers_of(bed, &user[1], 64);
    ann_has_posted(bed, (BURST + 2) / 3);
    for (unsigned i = 0; i < MANY; i++) {
        char name[16];
        snprintf(name, sizeof name, "w11.%u", i);
        bed_bye(bed, name);
    }
    ann_has_posted(bed, BURST / 2);
}

static void longest_texts_fit(void **state)
{
    struct bed *bed = *state;
    static char text[PROTO_TEXT_MAX];
    struct proto_text longest = {text, sizeof text};
    memset(text, 'x', sizeof text);
    struct proto_message m = {.type = PROTO_JOB_POST};
    m.job = (struct proto_job){
        UINT64_MAX, UINT64_MAX, longest,   longest,   UINT64_MAX, UINT64_MAX,
        longest,    UINT8_MAX,  UINT8_MAX, UINT8_MAX, UINT32_MAX, UINT64_MAX,
    };
    bed_say(bed, "front", m);
    assert_int_equal(bed_seen(bed, "w1", PROTO_JOB)->job.algorithm.length, PROTO_TEXT_MAX);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, bed_teardown)
    const struct CMUnitTest tests[] = {
        T(job_is_pushed_to_every_worker),
        T(a_job_ages_the_results_of_its_namespace_alone),
        T(many_jobs_age_no_namespace_that_a_session_is_in),
        T(late_worker_gets_open_jobs),
        T(repeated_post_is_ignored),
        T(owner_stops_its_job),
        T(others_may_not_post_or_stop),
        T(the_id_of_anothers_job_is_refused),
        T(job_expires_with_its_front_end),
        T(job_ends_with_its_front_ends_bye),
        T(job_ends_when_its_front_end_is_reborn),
        T(job_survives_the_reconnection_of_its_front_end),
        T(report_is_forwarded_to_the_owner),
        T(report_on_an_unknown_job_is_answered_by_a_stop),
        T(a_last_report_comes_after_the_stop),
        T(a_last_report_goes_to_the_last_owner),
        T(jobs_are_bounded),
        T(open_jobs_of_many_bytes_reach_a_worker_in_parts),
        T(jobs_for_many_workers_are_posted_at_a_lower_rate),
        T(another_users_many_workers_do_not_keep_jobs_from_being_posted),
        T(longest_texts_fit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
