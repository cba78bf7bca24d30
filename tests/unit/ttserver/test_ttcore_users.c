/* What one user may have of a shard, and how often: quotas, budgets, and hashes of chosen keys. */
#include "tests/support/test_ttcore.h"

#include "common/rng.h"
#include "proto/alias.h"
#include "ttserver/core/share_relay.h"
#include "ttserver/core/user_table.h"

#include <stdio.h>

enum { MAY_ALL = 0xf };

static const struct ttcore_peer ann = {7, MAY_ALL, "ann"}, bob = {8, MAY_ALL, "bob"};

static void expect_error(struct bed *bed, const char *who, enum proto_error_code code,
                         uint32_t request)
{
    bed_expect_error(bed, who, code);
    assert_int_equal(bed->seen.error.request, request);
}

/* As one of that user, with an instance of its own. */
static void hello_of(struct bed *bed, const struct ttcore_peer *peer, const char *who,
                     enum proto_role role, uint64_t instance)
{
    bed->peer = peer;
    bed_hello_as(bed, who, (struct proto_hello){.role = (uint8_t)role, .instance = instance});
}

static void a_user_has_a_quarter_of_the_jobs(void **state)
{
    struct bed *bed = *state;
    hello_of(bed, &ann, "ann", PROTO_FRONT, 1);
    hello_of(bed, &ann, "ann2", PROTO_FRONT, 2);
    hello_of(bed, &bob, "bob", PROTO_FRONT, 3);
    hello_of(bed, &bob, "w", PROTO_WORKER, 4);
    for (uint64_t job = 1; job <= 4; job++) {
        bed_post(bed, job % 2 ? "ann" : "ann2", job);
        assert_int_equal(bed_seen(bed, "w", PROTO_JOB)->job.user, ann.user);
    }
    uint64_t more = UINT64_C(0x123456789abcdef0);
    bed_post(bed, "ann", more);
    expect_error(bed, "ann", PROTO_ERR_LIMIT, (uint32_t)more);
    bed_post(bed, "ann2", more);
    expect_error(bed, "ann2", PROTO_ERR_LIMIT, (uint32_t)more);
    bed_post(bed, "ann", 1); /* one of its own again: nothing */
    assert_int_equal(bed->actions.messages, 0);
    bed_post(bed, "bob", 5);
    assert_int_equal(bed_seen(bed, "w", PROTO_JOB)->job.user, bob.user);
    assert_int_equal(bed_figures(bed).jobs_over_quota, 2);
    bed_bye(bed, "ann2"); /* with its two */
    bed_post(bed, "ann", more);
    bed_seen(bed, "w", PROTO_JOB);
    assert_int_equal(bed_figures(bed).jobs, 4);
}

static void jobs_are_posted_at_a_bounded_rate(void **state)
{
    struct bed *bed = *state;
    hello_of(bed, &ann, "ann", PROTO_FRONT, 1);
    hello_of(bed, &bob, "bob", PROTO_FRONT, 3);
    uint64_t job = 1, posted = 0;
    for (unsigned i = 0; i < 10 * TTCORE_POSTS_BURST; i++) {
        bed_post(bed, "ann", job);
        bed_stop_job(bed, "ann", job++);
    }
    assert_int_equal(bed_figures(bed).job_posts, TTCORE_POSTS_BURST);
    assert_int_equal(bed_figures(bed).posts_too_fast, 9 * TTCORE_POSTS_BURST);
    bed_post(bed, "ann", 77);
    expect_error(bed, "ann", PROTO_ERR_LIMIT, 77);
    bed_bye(bed, "ann"); /* coming again brings nothing */
    hello_of(bed, &ann, "ann", PROTO_FRONT, 9);
    bed_post(bed, "ann", 77);
    expect_error(bed, "ann", PROTO_ERR_LIMIT, 77);
    bed_post(bed, "bob", 78);
    assert_int_equal(bed_figures(bed).jobs, 1);
    posted = bed_figures(bed).job_posts;
    bed->now_us += HEARTBEAT_US / TTCORE_POSTS;
    bed_post(bed, "ann", 77);
    assert_int_equal(bed_figures(bed).job_posts, posted + 1);
}

/* All from one connection, of which nothing else is known. */
static void another_instance_brings_no_new_budget(void **state)
{
    struct bed *bed = *state;
    uint64_t instance = 1, job = 1;
    for (unsigned i = 0; i < 10; i++) {
        bed_hello_as(bed, "x", (struct proto_hello){.role = PROTO_FRONT, .instance = instance++});
        for (unsigned n = 0; n < 2 * TTCORE_POSTS_BURST; n++) {
            bed_post(bed, "x", job);
            bed_stop_job(bed, "x", job++);
        }
        if (i % 2 == 0) {
            bed_bye(bed, "x");
        }
    }
    assert_int_equal(bed_figures(bed).job_posts, TTCORE_POSTS_BURST);
    bed_hello_as(bed, "x2", (struct proto_hello){.role = PROTO_FRONT, .instance = instance - 1});
    bed_hello_as(bed, "x", (struct proto_hello){.role = PROTO_FRONT, .instance = instance});
    bed_post(bed, "x", job); /* though its last instance is still here */
    bed_expect_error(bed, "x", PROTO_ERR_LIMIT);
    hello_of(bed, &ann, "ann", PROTO_FRONT, 7); /* of whom more is known */
    bed_post(bed, "ann", job);
    assert_int_equal(bed_figures(bed).job_posts, TTCORE_POSTS_BURST + 1);
    bed->peer = NULL;
    bed->now_us += TTCORE_POSTS_BURST * (HEARTBEAT_US / TTCORE_POSTS);
    bed_bye(bed, "x");
    bed_hello_as(bed, "x", (struct proto_hello){.role = PROTO_FRONT, .instance = instance + 1});
    for (unsigned n = 0; n < 2 * TTCORE_POSTS_BURST; n++) {
        bed_post(bed, "x", ++job);
        bed_stop_job(bed, "x", job);
    }
    assert_int_equal(bed_figures(bed).job_posts, 2 * TTCORE_POSTS_BURST + 1);
}

static void a_user_has_three_quarters_of_the_sessions(void **state)
{
    struct bed *bed = *state;
    char name[16];
    for (unsigned i = 0; i < 48; i++) {
        snprintf(name, sizeof name, "ann%u", i);
        hello_of(bed, &ann, name, PROTO_CLIENT, i);
        assert_int_equal(bed_figures(bed).sessions, i + 1);
    }
    hello_of(bed, &ann, "ann48", PROTO_CLIENT, 48);
    bed_expect_error(bed, "ann48", PROTO_ERR_LIMIT);
    hello_of(bed, &ann, "ann7", PROTO_FRONT, 7); /* has one */
    bed_seen(bed, "ann7", PROTO_WELCOME);
    hello_of(bed, &bob, "bob", PROTO_CLIENT, 1);
    bed_seen(bed, "bob", PROTO_WELCOME);
    assert_int_equal(bed_figures(bed).sessions_over_quota, 1);
    assert_int_equal(bed_figures(bed).users, 2);
}

static unsigned ask_many(struct bed *bed, const char *who, unsigned first, unsigned count)
{
    unsigned before = (unsigned)bed_figures(bed).inflight_entries;
    for (unsigned i = 0; i < count; i++) {
        bed_ask(bed, who, bed_wide(rng_mix(first + i + 1), 4, 0, 0));
    }
    return (unsigned)bed_figures(bed).inflight_entries - before;
}

static void a_user_has_half_of_the_in_flight_entries(void **state)
{
    struct ttcore_options options = bed_options();
    options.inflight_max = 1000;
    options.session_inflight_max = 200;
    bed_close(*state);
    struct bed *bed = *state = bed_open(&options);
    char name[16];
    unsigned mine = 0;
    hello_of(bed, &ann, "ann0", PROTO_CLIENT, 0);
    assert_int_equal(ask_many(bed, "ann0", 0, 300), 200); /* the most of a session */
    bed_bye(bed, "ann0");
    for (unsigned i = 0; i < 10; i++) {
        snprintf(name, sizeof name, "ann%u", i);
        hello_of(bed, &ann, name, PROTO_CLIENT, i);
    }
    for (unsigned i = 0; i < 10; i++) {
        snprintf(name, sizeof name, "ann%u", i);
        mine += ask_many(bed, name, 1000 * i, 300);
    }
    assert_int_equal(mine, 500);
    hello_of(bed, &bob, "bob", PROTO_CLIENT, 1);
    assert_int_equal(ask_many(bed, "bob", 20000, 300), 200);
    assert_int_equal(bed_figures(bed).inflight_refused, 0);
}

/* Each session fills what it can before the next one comes. */
static void sessions_one_after_another_have_half_of_the_in_flight_entries(void **state)
{
    enum { ENTRIES = 1000, SESSIONS = 48, EACH = 100 };
    struct ttcore_options options = bed_options();
    options.inflight_max = ENTRIES;
    options.inflight_age_max_ms = 10000;
    bed_close(*state);
    struct bed *bed = *state = bed_open(&options);
    char name[16];
    for (unsigned i = 0; i < SESSIONS; i++) {
        snprintf(name, sizeof name, "ann%u", i);
        hello_of(bed, &ann, name, PROTO_CLIENT, i);
        ask_many(bed, name, 1000 * i, EACH);
        assert_in_range(bed_figures(bed).inflight_entries, i < 4 ? EACH : ENTRIES / 2, ENTRIES / 2);
    }
    hello_of(bed, &bob, "bob", PROTO_CLIENT, 1);
    assert_int_equal(ask_many(bed, "bob", 100000, ENTRIES), ENTRIES / 2);
    assert_int_equal(bed_figures(bed).inflight_refused, 0);
    /* What is left, in any way, may be taken again, and no more. */
    bed_store(bed, "ann0", (struct tt_store){rng_mix(1), 1, 4, TT_EXACT, 0, 0});
    bed_release(bed, "ann0", (struct tt_release){rng_mix(2), 4, 0});
    bed_release(bed, "ann0", (struct tt_release){rng_mix(2), 4, 0});
    assert_int_equal(ask_many(bed, "ann9", 200000, EACH), 2);
    bed_bye(bed, "ann1");
    assert_int_equal(ask_many(bed, "ann9", 201000, EACH + 1), EACH);
    bed_hello_as(bed, "ann2", (struct proto_hello){.instance = 2, .flags = PROTO_RELEASE_ALL});
    assert_int_equal(ask_many(bed, "ann9", 202000, EACH + 1), EACH);
    for (unsigned i = 0; i < 12; i++) { /* until all are too old */
        bed->now_us += HEARTBEAT_US;
        for (unsigned s = 0; s < SESSIONS; s++) {
            snprintf(name, sizeof name, "ann%u", s);
            bed_heartbeat(bed, name);
        }
        bed_heartbeat(bed, "bob");
        bed_event(bed, TTCORE_TICK);
    }
    assert_int_equal(bed_figures(bed).inflight_entries, 0);
    assert_int_equal(ask_many(bed, "ann9", 300000, ENTRIES), ENTRIES / 2);
}

static void a_job_belongs_to_its_user(void **state)
{
    struct bed *bed = *state;
    hello_of(bed, &ann, "ann", PROTO_FRONT, 5);
    bed_post(bed, "ann", 1);
    hello_of(bed, &bob, "bob", PROTO_FRONT, 5); /* that has heard the instance */
    bed_post(bed, "bob", 1);
    assert_non_null(strstr(bed_seen(bed, "bob", PROTO_ERROR)->error.text.at,
                           "earlier session of this front-end"));
    hello_of(bed, &bob, "bob2", PROTO_FRONT, 6);
    bed_post(bed, "bob2", 1);
    assert_non_null(strstr(bed_seen(bed, "bob2", PROTO_ERROR)->error.text.at, "another has"));
    bed_bye(bed, "bob2");
    bed_stop_job(bed, "bob", 1);
    bed_expect_error(bed, "bob", PROTO_ERR_ROLE);
    bed_bye(bed, "bob");
    assert_int_equal(bed_figures(bed).jobs, 1);
}

static void users_are_named_and_counted(void **state)
{
    struct bed *bed = *state;
    hello_of(bed, &ann, "a", PROTO_FRONT, 5);
    hello_of(bed, &ann, "b", PROTO_CLIENT, 6);
    bed_post(bed, "a", 1);
    bed_say(bed, "b", (struct proto_message){.type = PROTO_MEMBERS});
    const struct proto_members_answer *members =
        &bed_seen(bed, "b", PROTO_MEMBERS_ANSWER)->members_answer;
    assert_int_equal(members->list.count, 2);
    assert_int_equal(members->list.at[0].user.length, 3);
    assert_memory_equal(members->list.at[0].user.at, "ann", 3);
    bed_say(bed, "b", (struct proto_message){.type = PROTO_JOBS});
    const struct proto_jobs_answer *jobs = &bed_seen(bed, "b", PROTO_JOBS_ANSWER)->jobs_answer;
    assert_memory_equal(jobs->list.at[0].user.at, "ann", 3);
    assert_int_equal(bed_figures(bed).users, 1);
    bed->peer = NULL; /* each instance is a user, whose number does not tell the instance */
    bed_hello(bed, "w", PROTO_WORKER);
    bed_hello(bed, "x", PROTO_FRONT);
    bed_hello(bed, "x2", PROTO_FRONT);
    assert_int_equal(bed_figures(bed).users, 3);
    bed_post(bed, "x", 2);
    const struct proto_job *job = &bed_seen(bed, "w", PROTO_JOB)->job;
    assert_true(job->user == proto_alias('x')); /* of 64 bits: nobody finds another of that user */
}

/* ---- HELLO ---- */

static unsigned jobs_pushed(struct bed *bed, const char *who)
{
    unsigned n = 0;
    for (unsigned i = 0; bed_nth(bed, who, i) != NULL; i++) {
        n += bed->seen.type == PROTO_JOB;
    }
    return n;
}

static void a_repeated_hello_is_not_answered_by_all_jobs_each_time(void **state)
{
    struct bed *bed = *state;
    unsigned pushed = 0;
    bed_hello(bed, "front", PROTO_FRONT);
    bed_post(bed, "front", 1);
    bed_post(bed, "front", 2);
    for (unsigned i = 0; i < 1000; i++) { /* within a tenth of a heartbeat */
        bed->now_us += HEARTBEAT_US / 10000;
        bed_hello(bed, "w", PROTO_WORKER);
        assert_int_equal(bed_nth(bed, "w", 0)->welcome.jobs, 2);
        pushed += jobs_pushed(bed, "w");
    }
    assert_int_equal(pushed, 2);
    bed->now_us += HEARTBEAT_US / 4; /* what it was owed comes, once */
    bed_event(bed, TTCORE_TICK);
    assert_int_equal(jobs_pushed(bed, "w"), 2);
    bed->now_us += HEARTBEAT_US / 4;
    bed_event(bed, TTCORE_TICK);
    assert_int_equal(jobs_pushed(bed, "w"), 0);
    bed_hello(bed, "w", PROTO_WORKER);
    assert_int_equal(jobs_pushed(bed, "w"), 2);
}

static void a_worker_that_comes_and_goes_is_not_answered_by_all_jobs_each_time(void **state)
{
    struct bed *bed = *state;
    unsigned pushed = 0;
    bed_hello(bed, "front", PROTO_FRONT);
    bed_post(bed, "front", 1);
    for (uint64_t i = 0; i < 10 * TTCORE_PUSHES_BURST; i++) { /* each time as another */
        bed_hello_as(bed, "w", (struct proto_hello){.role = PROTO_WORKER, .instance = 1000 + i});
        pushed += jobs_pushed(bed, "w");
        bed_bye(bed, "w");
    }
    assert_int_equal(pushed, TTCORE_PUSHES_BURST);
    bed_hello(bed, "w", PROTO_WORKER);
    hello_of(bed, &bob, "other", PROTO_WORKER, 1);
    assert_int_equal(jobs_pushed(bed, "other"), 1);
    bed->now_us += HEARTBEAT_US / 4;
    bed_event(bed, TTCORE_TICK);
    assert_int_equal(jobs_pushed(bed, "w"), 1);
    assert_int_equal(bed_figures(bed).dropped, 0);
}

static void what_workers_are_owed_comes_in_turns(void **state)
{
    enum { WORKERS = 150, PER_TICK = 64, TICKS = 3 };
    struct ttcore_options options = bed_options();
    options.sessions_max = 256;
    bed_close(*state);
    struct bed *bed = *state = bed_open(&options);
    char name[16];
    unsigned got[WORKERS] = {0};
    hello_of(bed, &bob, "front", PROTO_FRONT, 1);
    bed_post(bed, "front", 1);
    for (unsigned tick = 0; tick < TICKS; tick++) {
        for (unsigned i = 0; i < TTCORE_PUSHES_BURST; i++) { /* the user's budget is used up */
            hello_of(bed, &ann, "again", PROTO_WORKER, 999);
            bed_bye(bed, "again");
        }
        for (unsigned i = 0; i < WORKERS; i++) {
            snprintf(name, sizeof name, "w%u", i);
            hello_of(bed, &ann, name, PROTO_WORKER, i);
            assert_int_equal(jobs_pushed(bed, name), 0);
        }
        bed->now_us += HEARTBEAT_US / 4;
        bed_event(bed, TTCORE_TICK);
        unsigned now = 0;
        for (unsigned i = 0; i < WORKERS; i++) {
            snprintf(name, sizeof name, "w%u", i);
            unsigned pushed = jobs_pushed(bed, name);
            got[i] += pushed;
            now += pushed;
        }
        assert_int_equal(now, PER_TICK);
    }
    for (unsigned i = 0; i < WORKERS; i++) {
        assert_in_range(got[i], 1, 2);
    }
    assert_int_equal(bed_figures(bed).dropped, 0);
}

/* ---- reports ---- */

static void report(struct bed *bed, const char *who, struct proto_job_report r)
{
    bed_say(bed, who, (struct proto_message){.type = PROTO_JOB_REPORT, .job_report = r});
}

static void a_report_is_bounded_and_in_the_senders_name(void **state)
{
    struct bed *bed = *state;
    bed_hello(bed, "front", PROTO_FRONT);
    bed_hello(bed, "w", PROTO_WORKER);
    bed_post(bed, "front", 1);
    report(bed, "w", (struct proto_job_report){.job = 1, .instance = 99, .depth = 3});
    assert_true(bed_seen(bed, "front", PROTO_JOB_REPORT)->job_report.instance == proto_alias('w'));
    report(bed, "w", (struct proto_job_report){.job = 1, .depth = TT_DEPTH_MAX + 1});
    bed_expect_error(bed, "w", PROTO_ERR_RANGE);
    report(bed, "w", (struct proto_job_report){.job = 1, .state = PROTO_JOB_REFUSED + 1});
    bed_expect_error(bed, "w", PROTO_ERR_RANGE);
    report(bed, "w", (struct proto_job_report){.job = 1, .score = TT_SCORE_MIN - 1});
    bed_expect_error(bed, "w", PROTO_ERR_RANGE);
    unsigned passed_on = 1;
    for (unsigned i = 0; i < 10 * TTCORE_REPORTS_BURST; i++) {
        report(bed, "w", (struct proto_job_report){.job = 1, .depth = 3});
        passed_on += bed_nth(bed, "front", 0) != NULL;
    }
    assert_int_equal(passed_on, TTCORE_REPORTS_BURST);
    assert_int_equal(bed_figures(bed).reports_too_fast, 9 * TTCORE_REPORTS_BURST + 1);
}

/* ---- SHARE ---- */

static void silent_sessions_do_not_stop_results(void **state)
{
    struct ttcore_options options = bed_options();
    options.sessions_max = 512;
    bed_close(*state);
    struct bed *bed = *state = bed_open(&options);
    struct tt_store result = {5, 30, 1, TT_LOWER, 9, 0};
    struct proto_message share = {.type = PROTO_SHARE, .share = {9, {1, &result}, 0}};
    char name[16];
    for (unsigned i = 0; i < 300; i++) { /* of other namespaces, or that want nothing */
        snprintf(name, sizeof name, "silent%u", i);
        bed_hello_as(bed, name,
                     (struct proto_hello){.namespace_id = 2 + i,
                                          .instance = i,
                                          .flags = i % 2 ? PROTO_WANTS_RESULTS : 0});
    }
    bed_hello_as(bed, "a", (struct proto_hello){.namespace_id = 1, .flags = PROTO_WANTS_RESULTS});
    bed_hello_as(bed, "b", (struct proto_hello){.namespace_id = 1, .flags = PROTO_WANTS_RESULTS});
    bed_say(bed, "a", share);
    bed_seen(bed, "b", PROTO_SHARE);
    assert_int_equal(bed->actions.message[0].targets, 1);
}

static void sessions_of_the_same_table_do_not_stop_results(void **state)
{
    enum { SAME = 1500 };
    struct ttcore_options options = bed_options();
    struct tt_store result = {5, 30, 1, TT_LOWER, 9, 0};
    struct proto_message share = {.type = PROTO_SHARE, .share = {9, {1, &result}, 0}};
    struct proto_hello hello = {
        .role = PROTO_CLIENT, .namespace_id = 1, .flags = PROTO_WANTS_RESULTS, .table_id = 9};
    char name[16];
    unsigned got = 0;
    options.sessions_max = 2048;
    bed_close(*state);
    struct bed *bed = *state = bed_open(&options);
    for (unsigned i = 0; i < SAME; i++) {
        snprintf(name, sizeof name, "same%u", i);
        hello.instance = i;
        bed_hello_as(bed, name, hello);
    }
    hello.table_id = 10;
    bed_hello_as(bed, "other", hello);
    for (unsigned i = 0; i < 16; i++) { /* 1,024 of 1,501 are looked at each time */
        bed_say(bed, "same0", share);
        got += bed_nth(bed, "other", 0) != NULL;
    }
    assert_in_range(got, 10, 16);
}

/* Hosts that one user invents cost it its budget and turns (io); who is honest still hears all,
 * if late. */
static void many_tables_do_not_stop_results(void **state)
{
    enum { INVENTED = 1500 };
    struct ttcore_options options = bed_options();
    struct tt_store result = {5, 30, 1, TT_LOWER, 9, 0};
    struct proto_message share = {.type = PROTO_SHARE, .share = {9, {1, &result}, 0}};
    struct proto_hello hello = {
        .role = PROTO_CLIENT, .namespace_id = 1, .flags = PROTO_WANTS_RESULTS};
    char name[16];
    unsigned got = 0;
    options.sessions_max = 2048;
    bed_close(*state);
    struct bed *bed = *state = bed_open(&options);
    for (unsigned i = 0; i < INVENTED; i++) {
        snprintf(name, sizeof name, "many%u", i);
        hello.instance = hello.table_id = 100 + i;
        bed_hello_as(bed, name, hello);
    }
    hello.table_id = 10;
    bed_hello_as(bed, "other", hello);
    for (unsigned i = 0; i < 16; i++) {
        bed_say(bed, "many0", share);
        got += bed_nth(bed, "other", 0) != NULL;
        bed->now_us += TTCORE_SHARE_LATE_US;
        bed_event(bed, TTCORE_TICK);
        got += bed_nth(bed, "other", 0) != NULL;
        assert_int_equal(bed->actions.dropped, 0);
    }
    assert_in_range(got, 5, 6); /* 512 of 1,501 each time */
}

/* ---- keys chosen by the public mixing ---- */

/* Nodes of one holder whose completion notices would share a bucket of the step's hash. */
static void notices_of_chosen_keys_do_not_share_a_bucket(void **state)
{
    enum { NODES = 512 };
    struct bed *bed = *state;
    static struct tt_store store[NODES];
    bed_hello(bed, "a", PROTO_CLIENT);
    bed_hello_as(bed, "b", (struct proto_hello){.flags = PROTO_WANTS_NODE_DONE, .instance = 'b'});
    uint64_t key = 1;
    for (unsigned i = 0; i < NODES; key++) { /* b has slot 1 of the sessions */
        if ((rng_mix(key + (1 << 8 | 4)) & (TTCORE_NOTICE_BUCKETS - 1)) == 7) {
            bed_ask(bed, "b", bed_wide(key, 4, 0, 0));
            store[i++] = (struct tt_store){key, 1, 4, TT_EXACT, 0, 0};
        }
    }
    struct proto_message m = {.type = PROTO_STORE_HASH};
    m.store_hash.list = (struct proto_stores){NODES, store};
    bed_say(bed, "a", m);
    assert_int_equal(bed_seen(bed, "b", PROTO_NODE_DONE)->node_done.list.count, NODES);
    unsigned used = 0;
    for (unsigned i = 0; i < TTCORE_NOTICE_BUCKETS; i++) {
        used += bed->actions.scratch->notice_bucket[i] != 0;
    }
    assert_in_range(used, NODES / 2, NODES);
}

/* ---- the table of users ---- */

static void users_come_and_go_as_in_their_model(void **state)
{
    enum { MAX = 8, IDS = 40 };
    struct ttcore_users users = {0};
    unsigned sessions[IDS + 1] = {0}, live = 0;
    const char *text = getenv("SEED");
    uint64_t rng = text != NULL ? strtoull(text, NULL, 10) : 18;
    (void)state;
    printf("# SEED=%llu\n", (unsigned long long)rng);
    assert_int_equal(ttcore_users_open(&users, MAX, 3), ERR_OK);
    for (unsigned i = 0; i < 100000; i++) {
        uint64_t id = 1 + rng_below(&rng, IDS);
        struct ttcore_user *user = ttcore_users_of(&users, id, false);
        assert_int_equal(user->id, id);
        assert_int_equal(user->sessions, sessions[id]);
        if (sessions[id] > 0 && rng_below(&rng, 2) == 0) {
            ttcore_users_leave(&users, user);
            sessions[id]--;
            live--;
        } else if (live < MAX) {
            ttcore_users_join(&users, user);
            sessions[id]++;
            live++;
        }
    }
    ttcore_users_close(&users);
    ttcore_users_close(&users);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, bed_setup, bed_teardown)
    const struct CMUnitTest tests[] = {
        T(a_user_has_a_quarter_of_the_jobs),
        T(jobs_are_posted_at_a_bounded_rate),
        T(another_instance_brings_no_new_budget),
        T(a_user_has_three_quarters_of_the_sessions),
        T(a_user_has_half_of_the_in_flight_entries),
        T(sessions_one_after_another_have_half_of_the_in_flight_entries),
        T(a_job_belongs_to_its_user),
        T(users_are_named_and_counted),
        T(a_repeated_hello_is_not_answered_by_all_jobs_each_time),
        T(a_worker_that_comes_and_goes_is_not_answered_by_all_jobs_each_time),
        T(what_workers_are_owed_comes_in_turns),
        T(a_report_is_bounded_and_in_the_senders_name),
        T(silent_sessions_do_not_stop_results),
        T(sessions_of_the_same_table_do_not_stop_results),
        T(many_tables_do_not_stop_results),
        T(notices_of_chosen_keys_do_not_share_a_bucket),
        cmocka_unit_test(users_come_and_go_as_in_their_model),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
