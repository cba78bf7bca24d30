/* What a worker knows of jobs and decides: tables of events, and what must come of them. */
#include "worker/engine/worker_core.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum { MS = 1000 };

static struct worker_core core;
static struct worker_actions actions;
static uint64_t now;

static int start(void **state)
{
    (void)state;
    worker_core_open(&core, 77, &(struct worker_patience){0});
    now = 1000 * MS;
    return 0;
}

/* ---- events ---- */

static void receive(struct client_event event, uint64_t boot)
{
    worker_core_event(&core, &event, boot, now);
}

static void offer_with(uint64_t user, uint64_t job, unsigned source, uint64_t nodes)
{
    const struct proto_job message = {.job = job,
                                      .user = user,
                                      .nodes = nodes,
                                      .game = proto_text_of("chess"),
                                      .algorithm = proto_text_of("abdada"),
                                      .position = proto_text_of("startpos")};
    core.up |= UINT64_C(1) << source;
    receive((struct client_event){CLIENT_JOB, source, .job = &message}, 0);
}

static void offer_of(uint64_t user, uint64_t job, unsigned source)
{
    offer_with(user, job, source, 0);
}

static void offer(uint64_t job, unsigned source)
{
    offer_of(0, job, source);
}

static void stop(uint64_t job, unsigned source, bool by_owner)
{
    const struct proto_job_stop stop = {job, by_owner ? PROTO_STOP_OWNER : PROTO_STOP_EXPIRED};
    receive((struct client_event){CLIENT_JOB_STOP, source, .job_stop = &stop}, 0);
}

static void rise(unsigned source)
{
    receive((struct client_event){CLIENT_SHARD_UP, source}, 0);
}

static void fall(unsigned source)
{
    receive((struct client_event){CLIENT_SHARD_DOWN, source}, 0);
}

static void give_index(unsigned source, uint64_t source_id, uint32_t number)
{
    const struct proto_worker_index index = {.index = number};
    core.up |= UINT64_C(1) << source;
    receive((struct client_event){CLIENT_WORKER_INDEX, source, .worker_index = &index}, source_id);
}

/* `offer` names it so. */
static struct worker_job_name mine(uint64_t job)
{
    return (struct worker_job_name){job, 0};
}

/* The job it would begin now; 0: none. */
static uint64_t wants(void)
{
    worker_core_idle(&core, now, &actions);
    return actions.search != NULL ? actions.search->wire.job : 0;
}

static bool knows(uint64_t job)
{
    for (unsigned i = 0; i < core.jobs; i++) {
        if (core.job[i].offer.wire.job == job) {
            return true;
        }
    }
    return false;
}

static void begin(uint64_t job)
{
    assert_int_equal(wants(), job);
    worker_core_begin(&core, (struct worker_job_name){job, actions.search->wire.user}, 0, now);
}

static struct counters counted(uint64_t nodes)
{
    return (struct counters){.nodes = nodes,
                             .asks = nodes / 2,
                             .waited_us = nodes / 4,
                             .talked_us = nodes / 3,
                             .bytes_sent = nodes * 2,
                             .bytes_received = nodes * 5};
}

/* True: it goes on. */
static bool searches_on_at(uint64_t nodes, unsigned depth, const char *line)
{
    struct search_result result = {.depth = depth, .score = (int)depth * 10, .move = 7};
    struct worker_progress progress = {counted(nodes), &result, line};
    worker_core_poll(&core, &progress, now, &actions);
    return !actions.leave;
}

static bool searches_on(uint64_t nodes)
{
    return searches_on_at(nodes, 3, "c3");
}

static struct proto_job_report end(uint64_t nodes, bool done)
{
    struct search_result result = {.depth = 5, .score = 50, .move = 8};
    struct worker_progress progress = {counted(nodes), &result, "e5 d5"};
    worker_core_end(&core, &progress, done, &actions);
    assert_int_equal(actions.reports, 1);
    assert_int_equal(actions.report[0].state, PROTO_JOB_ENDED);
    return actions.report[0];
}

/* ---- open jobs, orphans ---- */

struct step {
    char what; /* o offer, s stop by owner, u not known (any more), d source down, p source up */
    unsigned source;
    uint32_t later_ms; /* before it */
};

/* After the steps: whether the job is known, now and after a while more, and would be begun. */
static void a_job_lives_while_a_source_vouches_for_it(void **state)
{
    static const struct {
        struct step step[6];
        bool known, begun;
        uint32_t lasts_ms; /* 0: for ever; else it is known that long and no longer */
    } row[] = {
        {{{'o', 0, 0}}, true, true, 0},
        {{{'o', 0, 0}, {'o', 0, 0}, {'o', 1, 0}}, true, true, 0},
        {{{'o', 0, 0}, {'s', 0, 0}}, false, false, 0},
        {{{'o', 0, 0}, {'o', 1, 0}, {'s', 1, 0}}, false, false, 0},
        {{{'o', 0, 0}, {'s', 3, 0}}, true, true, 0}, /* by the owner of another job of that id */
        {{{'o', 0, 0}, {'d', 0, 0}, {'s', 0, 0}}, true, false, WORKER_UNKNOWN_MS},
        {{{'o', 0, 0}, {'u', 0, 0}}, false, false, 0}, /* the only one saw the owner go */
        {{{'o', 0, 0}, {'o', 1, 0}, {'u', 1, 0}}, true, true, 0},
        {{{'o', 0, 0}, {'u', 1, 0}}, true, true, 0}, /* one that never vouched */
        {{{'o', 0, 0}, {'d', 0, 0}}, true, false, WORKER_ORPHAN_MS},
        {{{'o', 0, 0}, {'d', 0, 0}, {'d', 0, 5000}}, true, false, WORKER_ORPHAN_MS - 5000},
        {{{'o', 0, 0}, {'o', 1, 0}, {'d', 0, 0}}, true, true, 0},
        {{{'o', 0, 0}, {'o', 1, 0}, {'d', 0, 0}, {'d', 1, 0}}, true, false, WORKER_ORPHAN_MS},
        {{{'o', 0, 0}, {'d', 0, 0}, {'p', 0, 0}}, true, false, WORKER_UNKNOWN_MS},
        {{{'o', 0, 0}, {'d', 0, 0}, {'p', 1, 0}}, true, false, WORKER_UNKNOWN_MS},
        {{{'o', 0, 0}, {'d', 0, 0}, {'u', 1, 0}}, true, false, WORKER_UNKNOWN_MS},
        {{{'o', 0, 0}, {'d', 0, 0}, {'p', 0, 0}, {'p', 0, 1500}},
         true,
         false,
         WORKER_UNKNOWN_MS - 1500},
        {{{'o', 0, 0}, {'d', 0, 0}, {'p', 0, 0}, {'o', 0, 100}}, true, true, 0},
        {{{'o', 0, 0}, {'p', 1, 0}}, true, true, 0},
        {{{'s', 0, 0}, {'u', 1, 0}}, false, false, 0}, /* of a job it never heard of */
        {{{'o', 0, 0}, {'s', 0, 0}, {'o', 0, 10}}, true, true, 0}, /* offered again */
    };
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        start(state);
        for (const struct step *s = row[i].step; s->what != 0; s++) {
            now += s->later_ms * MS;
            if (s->what == 'o') {
                offer(9, s->source);
            } else if (s->what == 'd') {
                fall(s->source);
            } else if (s->what == 'p') {
                rise(s->source);
            } else {
                stop(9, s->source, s->what == 's');
            }
        }
        assert_int_equal(wants(), row[i].begun ? 9 : 0);
        assert_int_equal(knows(9), row[i].known);
        now += row[i].lasts_ms != 0 ? (row[i].lasts_ms - 1) * MS : 3600000 * (uint64_t)MS;
        (void)wants();
        assert_int_equal(knows(9), row[i].known);
        now += MS;
        (void)wants();
        assert_int_equal(knows(9), row[i].known && row[i].lasts_ms == 0);
    }
}

static void an_orphaned_job_is_searched_on_for_a_while(void **state)
{
    (void)state;
    offer(9, 0);
    begin(9);
    assert_true(searches_on(10));
    fall(0);
    now += (WORKER_ORPHAN_MS - 1) * MS;
    assert_true(searches_on(20));
    now += MS;
    assert_false(searches_on(30));
    assert_int_equal(end(30, false).nodes, 30);
    assert_int_equal(wants(), 0);
}

static void a_stopped_job_is_left_at_the_next_poll(void **state)
{
    (void)state;
    offer(9, 0);
    begin(9);
    assert_true(searches_on(10));
    stop(9, 0, true);
    assert_false(searches_on(11));
    struct proto_job_report last = end(12, false);
    assert_int_equal(last.job, 9);
    assert_int_equal(last.instance, 77);
    assert_int_equal(last.nodes, 12);
    assert_int_equal(last.asks, 6);
    assert_int_equal(last.depth, 5);
}

static void jobs_beyond_its_room_are_asked_for_later(void **state)
{
    (void)state;
    for (unsigned i = 1; i <= WORKER_JOBS_MAX + 5; i++) {
        offer(i, 0);
    }
    assert_int_equal(core.jobs, WORKER_JOBS_MAX);
    for (unsigned i = 1; i <= WORKER_JOBS_MAX; i++) {
        worker_core_refuse(&core, mine(i), "", &actions);
    }
    assert_int_equal(wants(), 0);
    assert_false(actions.refresh); /* there is no room yet */
    stop(3, 0, true);
    assert_int_equal(wants(), 0);
    assert_true(actions.refresh);
    assert_int_equal(wants(), 0);
    assert_false(actions.refresh); /* once */
    offer(WORKER_JOBS_MAX + 1, 0);
    assert_int_equal(wants(), WORKER_JOBS_MAX + 1);
    offer(WORKER_JOBS_MAX + 2, 0);
    stop(WORKER_JOBS_MAX + 1, 0, true);
    now += WORKER_REPEAT_MS * MS;
    assert_int_equal(wants(), 0);
    assert_true(actions.refresh);
}

static bool knows_of(uint64_t user, uint64_t job)
{
    for (unsigned i = 0; i < core.jobs; i++) {
        if (core.job[i].offer.wire.job == job && core.job[i].offer.wire.user == user) {
            return true;
        }
    }
    return false;
}

/* Ids are no secret. The victim, user 7, is vouched for by source 0; the other posts at source 1.
 */
static void another_user_with_the_same_id_does_not_end_a_job(void **state)
{
    (void)state;
    offer_of(7, 9, 0);
    worker_core_begin(&core, (struct worker_job_name){9, 7}, 0, now);
    offer_of(8, 9, 1);
    assert_true(knows_of(7, 9) && knows_of(8, 9));
    stop(9, 1, true);
    assert_true(knows_of(7, 9) && !knows_of(8, 9));
    assert_true(searches_on(1));
    stop(9, 1, false);
    assert_true(searches_on(2));
    stop(9, 0, true);
    assert_false(searches_on(3));
}

/* Source 1 restarts, and another user is faster than the owner to post the id there. */
static void an_id_taken_at_a_source_that_restarted_is_not_the_owners(void **state)
{
    (void)state;
    for (unsigned restarts = 0; restarts < 2; restarts++) { /* it need not be seen */
        start(NULL);
        offer_of(7, 9, 0);
        offer_of(7, 9, 1);
        if (restarts) {
            fall(1);
            rise(1);
        }
        offer_of(8, 9, 1);
        stop(9, 1, true);
        assert_true(knows_of(7, 9) && !knows_of(8, 9));
        now += 2 * WORKER_ORPHAN_MS * MS;
        assert_int_equal(wants(), 9);
        stop(9, 0, true);
        assert_int_equal(core.jobs, 0);
    }
}

/* ---- which job ---- */

/* User 7 posts 64 jobs, one posts one: of four workers two search it. */
static void a_user_with_many_jobs_has_no_more_workers(void **state)
{
    unsigned on_the_one = 0;
    (void)state;
    for (uint64_t job = 1; job < WORKER_JOBS_MAX; job++) {
        offer_of(7, job, 0);
    }
    offer_of(9, 1000, 0);
    for (uint32_t w = 0; w < 4; w++) {
        give_index(0, 1, w);
        on_the_one += wants() == 1000;
    }
    assert_int_equal(on_the_one, 2);
}

/* Whether they can be searched or not. */
static void a_flood_of_jobs_leaves_room_for_other_users(void **state)
{
    (void)state;
    for (unsigned refused = 0; refused < 2; refused++) {
        start(NULL);
        give_index(0, 1, 0);
        for (uint64_t job = 1; job <= 2 * WORKER_JOBS_MAX; job++) {
            offer_of(7, job, 0);
        }
        for (unsigned i = 0; refused && i < WORKER_JOBS_MAX; i++) {
            worker_core_refuse(&core, (struct worker_job_name){wants(), 7}, "", &actions);
        }
        for (uint64_t user = 10; user < 13; user++) {
            offer_of(user, 1000 + user, 0);
            offer_of(user, 2000 + user, 0);
            assert_true(knows(1000 + user) && knows(2000 + user));
        }
        for (uint64_t job = 1; job <= 2 * WORKER_JOBS_MAX; job++) {
            offer_of(7, job, 0); /* all once more */
        }
        for (uint64_t user = 10; user < 13; user++) {
            assert_true(knows(1000 + user) && knows(2000 + user));
        }
        assert_int_equal(core.jobs, WORKER_JOBS_MAX);
    }
}

/* All users have as many: nobody gives way. And never the job that is being searched. */
static void room_is_made_only_where_it_makes_users_more_equal(void **state)
{
    (void)state;
    for (uint64_t user = 1; user <= WORKER_JOBS_MAX; user++) {
        offer_of(user, user, 0);
    }
    offer_of(99, 99, 0);
    assert_false(knows(99));
    start(NULL);
    offer_of(1, 1, 0);
    begin(1);
    for (uint64_t user = 2; user < WORKER_JOBS_MAX; user++) {
        offer_of(user, user, 0);
    }
    offer_of(1, 1000, 0);
    offer_of(99, 99, 0); /* user 1 has two */
    assert_true(knows(1) && knows(99) && !knows(1000));
}

static void the_index_of_the_source_with_the_smallest_id_counts(void **state)
{
    (void)state;
    offer(10, 0);
    offer(20, 0);
    give_index(0, 500, 0);
    assert_int_equal(wants(), 10);
    give_index(1, 400, 1);
    assert_int_equal(wants(), 20);
    give_index(2, 450, 2);
    assert_int_equal(wants(), 20);
    give_index(1, 400, 4); /* renumbered */
    assert_int_equal(wants(), 10);
    give_index(1, 400, 3);
    fall(1);
    assert_int_equal(wants(), 10); /* source 2 */
}

static void it_moves_to_its_own_job_after_a_while_and_returns(void **state)
{
    (void)state;
    give_index(0, 1, 1);
    offer(10, 0);
    begin(10);
    assert_true(searches_on(100));
    offer(20, 0); /* index 1 of two jobs: this one */
    now += WORKER_REPORT_MS * MS;
    assert_true(searches_on(200)); /* a short job moves nobody */
    now += WORKER_REPORT_MS * MS;
    assert_false(searches_on(300));
    assert_int_equal(end(310, false).nodes, 310);
    begin(20);
    assert_true(searches_on(5));
    stop(20, 0, true);
    assert_false(searches_on(6));
    assert_int_equal(end(6, false).nodes, 6);
    begin(10); /* what it did before still counts */
    assert_true(searches_on(1));
    assert_int_equal(actions.report[0].nodes, 311);
    assert_int_equal(actions.report[0].depth, 5);
    assert_int_equal(actions.report[0].score, 50); /* of depth 5, too */
    assert_int_equal(actions.report[0].move, 8);
    assert_int_equal(actions.report[0].line.length, strlen("e5 d5"));
    stop(10, 0, true); /* also when the job is gone */
    assert_int_equal(end(40, false).nodes, 350);
    assert_int_equal(actions.report[0].talked_us, 310 / 3 + 40 / 3);
    assert_int_equal(actions.report[0].bytes_sent, 2 * 350);
    assert_int_equal(actions.report[0].bytes_received, 5 * 350);
}

static void a_source_out_for_a_moment_moves_nobody(void **state)
{
    (void)state;
    give_index(0, 1, 0);
    give_index(1, 2, 1);
    offer(10, 1);
    offer(20, 1);
    begin(10);
    assert_true(searches_on(1));
    fall(0); /* index 1 now: job 20 */
    now += WORKER_REPORT_MS * MS;
    assert_true(searches_on(2));
    give_index(0, 1, 0);
    now += WORKER_REPORT_MS * MS;
    assert_true(searches_on(3));
    fall(0);
    now += WORKER_REPORT_MS * MS;
    assert_true(searches_on(4));
    now += WORKER_REPORT_MS * MS;
    assert_false(searches_on(5));
}

/* ---- reports, deadlines ---- */

static void it_reports_at_once_and_then_now_and_again(void **state)
{
    (void)state;
    offer(9, 0);
    begin(9);
    assert_true(searches_on(1));
    assert_int_equal(actions.reports, 1);
    assert_int_equal(actions.report[0].state, PROTO_JOB_SEARCHING);
    assert_true(searches_on(2));
    assert_int_equal(actions.reports, 0);
    now += (WORKER_REPORT_MS - 1) * MS;
    assert_true(searches_on(3));
    assert_int_equal(actions.reports, 0);
    now += MS;
    assert_true(searches_on(4));
    assert_int_equal(actions.reports, 1);
    assert_int_equal(actions.report[0].nodes, 4);
}

static void it_reports_when_it_has_searched_the_nodes_of_a_job(void **state)
{
    (void)state;
    offer_with(0, 9, 0, 1000);
    begin(9);
    assert_true(searches_on(1));
    assert_true(searches_on(999));
    assert_int_equal(actions.reports, 0);
    assert_true(searches_on(1000));
    assert_int_equal(actions.reports, 1);
    assert_int_equal(actions.report[0].nodes, 1000);
    assert_true(searches_on(2000)); /* the front-end says when it is over */
    assert_int_equal(actions.reports, 0);
    now += WORKER_REPORT_MS * MS;
    assert_true(searches_on(3000));
    assert_int_equal(actions.reports, 1);
    end(3000, false);
    stop(9, 0, true);
    offer_with(0, 8, 0, 500); /* the next one has a limit of its own */
    begin(8);
    assert_true(searches_on(1));
    assert_true(searches_on(501));
    assert_int_equal(actions.reports, 1);
}

static void it_reports_the_last_finished_iteration(void **state)
{
    (void)state;
    offer(9, 0);
    begin(9);
    assert_true(searches_on_at(1, 0, "")); /* none yet: a move of no iteration says nothing */
    assert_int_equal(actions.report[0].depth + actions.report[0].move, 0);
    now += WORKER_REPORT_MS * MS;
    assert_true(searches_on_at(20, 2, "b2 b3"));
    assert_int_equal(actions.report[0].score, 20);
    assert_int_equal(actions.report[0].move, 7);
    assert_memory_equal(actions.report[0].line.at, "b2 b3", actions.report[0].line.length);
    assert_int_equal(end(50, true).line.length, strlen("e5 d5"));
    now += WORKER_REPEAT_MS * MS;
    assert_int_equal(wants(), 0);
    assert_int_equal(actions.report[0].score, 50); /* repeated, with its line */
    assert_int_equal(actions.report[0].line.length, strlen("e5 d5"));
    assert_memory_equal(actions.report[0].line.at, "e5 d5", strlen("e5 d5"));
}

static void a_finished_job_is_not_begun_again_and_its_report_is_repeated(void **state)
{
    (void)state;
    offer(9, 0);
    begin(9);
    (void)searches_on(10);
    (void)end(50, true);
    offer(9, 0);
    now += WORKER_REPEAT_MS * MS;
    assert_int_equal(wants(), 0);
    assert_int_equal(actions.reports, 1);
    assert_int_equal(actions.report[0].nodes, 50);
    assert_int_equal(actions.report[0].state, PROTO_JOB_ENDED);
    assert_int_equal(wants(), 0);
    assert_int_equal(actions.reports, 0);
    stop(9, 0, false); /* the answer of a source that knows it no more */
    now += WORKER_REPEAT_MS * MS;
    assert_int_equal(wants(), 0);
    assert_int_equal(actions.reports, 0);
}

static void a_job_that_was_not_understood_is_refused_and_reported(void **state)
{
    (void)state;
    offer(9, 0);
    assert_int_equal(wants(), 9);
    worker_core_refuse(&core, mine(9), "unknown game", &actions);
    assert_int_equal(actions.reports, 1); /* at once */
    assert_int_equal(actions.report[0].state, PROTO_JOB_REFUSED);
    now += WORKER_REPEAT_MS * MS;
    assert_int_equal(wants(), 0);
    assert_int_equal(actions.reports, 1);
    assert_int_equal(actions.report[0].job, 9);
    assert_int_equal(actions.report[0].state, PROTO_JOB_REFUSED);
    assert_int_equal(actions.report[0].nodes, 0);
    offer(9, 1);
    assert_int_equal(wants(), 0);
}

/* The time of a job runs from its first begin on, also while the worker is elsewhere. */
static void a_job_with_a_time_limit_is_left_in_time(void **state)
{
    (void)state;
    give_index(0, 1, 1);
    offer(10, 0);
    assert_int_equal(wants(), 10);
    worker_core_begin(&core, mine(10), 1000, now);
    assert_true(searches_on(1));
    offer(20, 0);
    now += 400 * MS;
    assert_true(searches_on(1));
    now += 400 * MS;
    assert_false(searches_on(1)); /* it moves */
    (void)end(1, false);
    begin(20);
    stop(20, 0, true);
    (void)end(1, false);
    assert_int_equal(wants(), 10);
    worker_core_begin(&core, mine(10), 1000, now);
    now += 199 * MS;
    assert_true(searches_on(1));
    now += MS;
    assert_false(searches_on(1));
    (void)end(1, false);
    assert_int_equal(wants(), 0);
}

static void patience_is_an_option(void **state)
{
    (void)state;
    worker_core_open(&core, 1, &(struct worker_patience){.orphan_ms = 7});
    assert_int_equal(core.patience.report_ms, WORKER_REPORT_MS);
    offer(9, 0);
    fall(0);
    now += 6 * MS;
    (void)wants();
    assert_true(knows(9));
    now += MS;
    (void)wants();
    assert_false(knows(9));
}

/* The job would count for ever on a source that fell silent. */
static void offers_of_a_source_that_is_not_up_are_dropped(void **state)
{
    (void)state;
    char text[2 * JOB_GAME_MAX] = "";
    struct proto_job message = {.job = 5,
                                .game = proto_text_of("chess"),
                                .algorithm = proto_text_of("abdada"),
                                .position = proto_text_of("startpos")};
    const struct client_event event = {CLIENT_JOB, 1, .job = &message};
    receive(event, 0);
    assert_int_equal(core.jobs, 0);
    rise(1);
    memset(text, 'x', sizeof text - 1);
    message.game = proto_text_of(text); /* that nobody knows here */
    receive(event, 0);
    assert_int_equal(core.jobs, 0);
    message.game = proto_text_of("chess");
    receive(event, 0);
    assert_int_equal(core.jobs, 1);
    assert_string_equal(core.job[0].offer.game, "chess");
    fall(1);
    message.job = 6;
    receive(event, 0);
    assert_int_equal(core.jobs, 1);
}

static void no_job_has_the_id_0(void **state)
{
    (void)state;
    offer(0, 1);
    assert_int_equal(wants(), 0);
    assert_int_equal(core.jobs, 0);
}

/* What had no room is asked for, idle or not, but not all the time. */
/* Fills its room with jobs that it cannot search, is offered one more, and has room again. */
static void miss_an_offer(uint64_t first)
{
    uint64_t id = first;
    while (core.jobs < WORKER_JOBS_MAX) {
        offer(++id, 0);
        worker_core_refuse(&core, mine(id), "", &actions);
    }
    offer(++id, 0);
    assert_true(core.missed);
    stop(first + 1, 0, true);
}

static void missed_offers_are_asked_for_now_and_then(void **state)
{
    (void)state;
    miss_an_offer(100);
    assert_int_equal(wants(), 0);
    assert_true(actions.refresh);
    miss_an_offer(200);
    assert_int_equal(wants(), 0);
    assert_false(actions.refresh);
    offer(5, 0);
    begin(5);
    offer(6, 0);
    assert_true(core.missed);
    stop(102, 0, true);
    now += WORKER_REPEAT_MS * MS;
    assert_true(searches_on(10));
    assert_true(actions.refresh);
    now += WORKER_REPORT_MS * MS;
    assert_true(searches_on(20));
    assert_false(actions.refresh);
}

int main(void)
{
#define TEST(test) cmocka_unit_test_setup(test, start)
    const struct CMUnitTest tests[] = {
        TEST(a_job_lives_while_a_source_vouches_for_it),
        TEST(an_orphaned_job_is_searched_on_for_a_while),
        TEST(a_stopped_job_is_left_at_the_next_poll),
        TEST(jobs_beyond_its_room_are_asked_for_later),
        TEST(another_user_with_the_same_id_does_not_end_a_job),
        TEST(an_id_taken_at_a_source_that_restarted_is_not_the_owners),
        TEST(a_user_with_many_jobs_has_no_more_workers),
        TEST(a_flood_of_jobs_leaves_room_for_other_users),
        TEST(room_is_made_only_where_it_makes_users_more_equal),
        TEST(the_index_of_the_source_with_the_smallest_id_counts),
        TEST(it_moves_to_its_own_job_after_a_while_and_returns),
        TEST(a_source_out_for_a_moment_moves_nobody),
        TEST(it_reports_at_once_and_then_now_and_again),
        TEST(it_reports_when_it_has_searched_the_nodes_of_a_job),
        TEST(it_reports_the_last_finished_iteration),
        TEST(a_finished_job_is_not_begun_again_and_its_report_is_repeated),
        TEST(a_job_that_was_not_understood_is_refused_and_reported),
        TEST(a_job_with_a_time_limit_is_left_in_time),
        TEST(patience_is_an_option),
        TEST(missed_offers_are_asked_for_now_and_then),
        TEST(offers_of_a_source_that_is_not_up_are_dropped),
        TEST(no_job_has_the_id_0),
    };
    return cmocka_run_group_tests_name("worker core", tests, NULL, NULL);
}
