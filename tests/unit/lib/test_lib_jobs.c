/* libabdada as a front-end: what comes of the reports of workers, here sessions that say what they
 * want to. */
#include "tests/support/test_lib.h"

#include "proto/lane/lane.h"
#include "worker/lane/lanes.h"

/* A session of role worker. */
struct mock {
    struct lanes *lanes;
    struct options_servers servers;
    struct lane lane;
    uint64_t job, evaluation, namespace_id; /* of the last JOB */
    char position[128];
    unsigned stops;
};

enum { SHARDS = 2 };

static struct server second;
static char both[128]; /* their addresses */
static struct abdada *front;
static struct mock worker[2];
static struct abdada_job_event event;

static void on_job(struct mock *m, const struct proto_job *job)
{
    m->job = job->job;
    m->evaluation = job->evaluation;
    m->namespace_id = job->namespace_id;
    (void)proto_text_copy(job->position, m->position, sizeof m->position);
}

static void serve(struct mock *m)
{
    struct client_event e;
    while (lane_next(&m->lane, &e)) {
        if (e.kind == CLIENT_JOB) {
            on_job(m, e.job);
        } else if (e.kind == CLIENT_JOB_STOP) {
            m->stops += e.job_stop->job == m->job;
        }
    }
    (void)lane_tick(&m->lane);
}

static void mock_open(struct mock *m)
{
    enum { RTO_US = 10000000 }; /* a pause of this process costs it no shard */
    char why[LANES_WHY_MAX];
    assert_int_equal(options_servers(both, &m->servers), ERR_OK);
    struct lanes_address address = {.server = m->servers.server, .servers = SHARDS};
    assert_int_equal(lanes_open(&m->lanes, &address, 1, NULL, why), ERR_OK);
    assert_int_equal(lanes_add(m->lanes, NULL, &m->lane), ERR_OK);
    struct client_options options = {.shards = SHARDS,
                                     .role = PROTO_WORKER,
                                     .instance = clock_unique(),
                                     .name = "mock",
                                     .rto_min_us = RTO_US,
                                     .rto_max_us = RTO_US};
    assert_int_equal(lane_open(&m->lane, &options), ERR_OK);
    WAIT_FOR((serve(m), client_shards_up(m->lane.client)) == SHARDS);
}

static void mock_close(struct mock *m)
{
    lane_close(&m->lane);
    lanes_close(&m->lanes);
}

static void front_open(void)
{
    struct abdada_options options = options_for(&server, 1);
    options.servers = both;
    options.role = ABDADA_FRONT_END;
    front = NULL;
    assert_int_equal(abdada_open(&front, &options), ABDADA_OK);
    WAIT_FOR(abdada_connected(front) == SHARDS);
}

static int start(void **state)
{
    (void)state;
    server_start(&server, "127.0.0.1:0", NULL);
    server_start(&second, "127.0.0.1:0", NULL);
    snprintf(both, sizeof both, "%s,%s", server.address, second.address);
    front_open();
    mock_open(&worker[0]);
    mock_open(&worker[1]);
    return 0;
}

static int finish(void **state)
{
    (void)state;
    mock_close(&worker[0]);
    mock_close(&worker[1]);
    abdada_close(front);
    server_end(&server, SIGTERM);
    server_end(&second, SIGTERM);
    return 0;
}

static void stop(uint64_t id)
{
    unsigned before = worker[0].stops;
    assert_int_equal(abdada_job_stop(front, id), ABDADA_OK);
    WAIT_FOR((abdada_serve(front), serve(&worker[0]), worker[0].stops) > before);
    while (abdada_job_next(front, 0, &event) == ABDADA_OK) {
    }
}

static struct proto_job_report report_of(const struct mock *m, uint8_t state, uint8_t depth,
                                         int16_t score, uint64_t nodes, const char *line)
{
    return (struct proto_job_report){
        .job = m->job,
        .instance = 5, /* the shard puts the session's own in its place */
        .state = state,
        .depth = depth,
        .score = score,
        .move = (uint16_t)(depth * 100),
        .nodes = nodes,
        .asks = nodes / 10,
        .line = proto_text_of(line),
    };
}

static void say(struct mock *m, uint8_t state, uint8_t depth, int16_t score, uint64_t nodes,
                const char *line)
{
    struct proto_job_report report = report_of(m, state, depth, score, nodes, line);
    client_job_report(m->lane.client, &report, lane_now(&m->lane));
}

/* As if only one of the shards knew the job by then. */
static void say_to(struct mock *m, unsigned shard, uint8_t depth, uint64_t nodes, const char *line)
{
    uint8_t bytes[512];
    struct proto_message message = {.type = PROTO_JOB_REPORT,
                                    .job_report =
                                        report_of(m, PROTO_JOB_SEARCHING, depth, 10, nodes, line)};
    size_t length = proto_encode(&message, bytes, sizeof bytes);
    assert_true(length > 0 && m->lane.send(m->lane.self, shard, bytes, length));
}

static void serve_all(void)
{
    (void)abdada_serve(front);
    serve(&worker[0]);
    serve(&worker[1]);
}

static bool is_peeked(struct mock *m, uint64_t key)
{
    const struct tt_peek peek = {.key = key, .depth = 1};
    struct tt_peeked peeked;
    enum client_result result = CLIENT_LOST;
    uint32_t ticket = client_peek(m->lane.client, &peek, 1, lane_now(&m->lane));
    if (ticket != 0) {
        WAIT_FOR((serve_all(), result = client_peeked(m->lane.client, ticket, lane_now(&m->lane),
                                                      &peeked)) != CLIENT_WAITING);
    }
    return result == CLIENT_READY;
}

/* Until the shards have read all that the worker said, and the front-end what they passed on: of
 * one connection the order is kept. On a busy machine an answer may come too late to count: then
 * another is asked for. */
static void settle(struct mock *m)
{
    enum { KEYS = 32 }; /* some of each shard */
    struct abdada_peeked taken;
    WAIT_FOR((serve_all(), client_shards_up(m->lane.client)) == SHARDS);
    WAIT_FOR((serve_all(), abdada_connected(front)) == SHARDS);
    WAIT_FOR((serve_all(), client_outstanding(m->lane.client)) == 0);
    for (unsigned i = 0; i < KEYS; i++) {
        WAIT_FOR((serve_all(), is_peeked(m, i)) && client_shards_up(m->lane.client) == SHARDS);
    }
    for (unsigned i = 0; i < KEYS; i++) {
        WAIT_FOR((serve_all(), abdada_connected(front)) == SHARDS &&
                 abdada_peek(front, i, 1, &taken) == ABDADA_OK);
    }
}

static uint64_t post(struct abdada_job job)
{
    uint64_t id = 0;
    job.struct_size = sizeof job;
    assert_int_equal(abdada_job_post(front, &job, &id), ABDADA_OK);
    for (unsigned i = 0; i < 2; i++) {
        WAIT_FOR((abdada_serve(front), serve(&worker[i]), worker[i].job) == id);
    }
    settle(&worker[0]); /* both shards know it */
    return id;
}

static void a_job_reaches_workers_as_it_was_posted(void **state)
{
    (void)state;
    uint64_t id = post((struct abdada_job){.position = "8/8/8/8/8/8/8/K1k5 w - -", .depth = 4});
    assert_string_equal(worker[0].position, "8/8/8/8/8/8/8/K1k5 w - -");
    assert_true(worker[0].evaluation == 0 && worker[0].namespace_id == 0);
    stop(id);
    id = post((struct abdada_job){.flags = ABDADA_JOB_FRESH | ABDADA_JOB_STRICT});
    assert_string_equal(worker[0].position, "startpos");
    assert_true(worker[0].namespace_id != 0 && (uint32_t)worker[0].namespace_id == 0);
    stop(id);
    id = post((struct abdada_job){.evaluation = 7, .namespace_id = 9});
    assert_true(worker[0].evaluation == 7 && worker[0].namespace_id == 9);
    stop(id);
}

static void a_report_has_score_move_and_line(void **state)
{
    (void)state;
    uint64_t id = post((struct abdada_job){.depth = 4});
    say(&worker[0], PROTO_JOB_SEARCHING, 3, -25, 1000, "e2e4 e7e5");
    assert_int_equal(abdada_job_next(front, PATIENCE_MS, &event), ABDADA_OK);
    assert_true(event.job == id && event.instance != 0 && event.instance != 5);
    assert_true(event.state == ABDADA_JOB_SEARCHING && event.depth == 3 && event.score == -25);
    assert_true(event.move == 300 && event.nodes == 1000 && event.asks == 100);
    assert_string_equal(event.text, "e2e4 e7e5");
    say(&worker[1], PROTO_JOB_REFUSED, 0, 0, 0, "");
    assert_int_equal(abdada_job_next(front, PATIENCE_MS, &event), ABDADA_OK);
    assert_int_equal(event.state, ABDADA_JOB_REFUSED);
    stop(id);
}

static void of_each_worker_the_newest_is_kept_with_its_line(void **state)
{
    (void)state;
    uint64_t id = post((struct abdada_job){.depth = 4}), first;
    say(&worker[0], PROTO_JOB_SEARCHING, 2, 10, 1000, "a2a3");
    say(&worker[0], PROTO_JOB_SEARCHING, 3, 20, 2000, "b2b3 b7b6");
    say(&worker[0], PROTO_JOB_SEARCHING, 3, 20, 3000, "");
    say(&worker[0], PROTO_JOB_SEARCHING, 2, 10, 1000, "a2a3"); /* by a longer way */
    settle(&worker[0]);
    say(&worker[1], PROTO_JOB_ENDED, 4, 30, 500, "c2c3");
    settle(&worker[1]);
    assert_int_equal(abdada_job_next(front, PATIENCE_MS, &event), ABDADA_OK);
    assert_true(event.depth == 3 && event.nodes == 3000 && event.score == 20);
    assert_string_equal(event.text, "b2b3 b7b6");
    first = event.instance;
    assert_int_equal(abdada_job_next(front, PATIENCE_MS, &event), ABDADA_OK);
    assert_true(event.depth == 4 && event.state == ABDADA_JOB_ENDED && event.instance != first);
    assert_int_equal(abdada_job_next(front, 0, &event), ABDADA_WAITING);
    stop(id);
}

/* Nothing else is left. */
static void next_is(uint8_t state, uint8_t depth, uint64_t nodes, const char *line)
{
    settle(&worker[0]);
    assert_int_equal(abdada_job_next(front, PATIENCE_MS, &event), ABDADA_OK);
    assert_true(event.state == state && event.depth == depth && event.nodes == nodes);
    assert_string_equal(event.text, line);
    assert_int_equal(abdada_job_next(front, 0, &event), ABDADA_WAITING);
}

/* Both shards pass each report on, and a worker may repeat its last one without the line. */
static void no_event_comes_twice_and_the_line_stays(void **state)
{
    (void)state;
    uint64_t id = post((struct abdada_job){.depth = 4});
    say(&worker[0], PROTO_JOB_SEARCHING, 2, 10, 1000, "a2a3 a7a6");
    next_is(ABDADA_JOB_SEARCHING, 2, 1000, "a2a3 a7a6");
    say(&worker[0], PROTO_JOB_SEARCHING, 2, 10, 1000, "");
    say(&worker[0], PROTO_JOB_SEARCHING, 2, 10, 2000, "");
    next_is(ABDADA_JOB_SEARCHING, 2, 2000, "a2a3 a7a6");
    say(&worker[0], PROTO_JOB_ENDED, 4, 30, 3000, "b2b3 b7b6");
    say(&worker[0], PROTO_JOB_ENDED, 4, 30, 3000, "");
    next_is(ABDADA_JOB_ENDED, 4, 3000, "b2b3 b7b6");
    say(&worker[0], PROTO_JOB_ENDED, 4, 30, 3000, "");
    say(&worker[0], PROTO_JOB_SEARCHING, 3, 20, 2500, "c2c3");
    settle(&worker[0]);
    assert_int_equal(abdada_job_next(front, 0, &event), ABDADA_WAITING);
    stop(id);
}

/* A shard knows a job later than another does, and what it was told before it does not pass on. */
static void a_line_that_one_shard_missed_comes_by_the_other(void **state)
{
    (void)state;
    uint64_t id = post((struct abdada_job){.depth = 4});
    say_to(&worker[0], 1, 3, 2000, "");
    settle(&worker[0]);
    say_to(&worker[0], 0, 3, 1000, "b2b3 b7b6");
    say_to(&worker[0], 0, 2, 500, "a2a3"); /* of another depth */
    next_is(ABDADA_JOB_SEARCHING, 3, 2000, "b2b3 b7b6");
    say_to(&worker[0], 1, 4, 3000, "");
    settle(&worker[0]);
    say_to(&worker[0], 0, 3, 2500, "b2b3 b7b6 c2c3");
    next_is(ABDADA_JOB_SEARCHING, 4, 3000, "");
    stop(id);
}

/* What a shard passes on late, after the other's was taken, is old. */
static void events_do_not_go_back(void **state)
{
    (void)state;
    uint64_t id = post((struct abdada_job){.depth = 4});
    settle(&worker[0]);
    kill(second.process, SIGSTOP);
    say(&worker[0], PROTO_JOB_SEARCHING, 2, 10, 1000, "a2a3");
    WAIT_FOR((serve(&worker[0]), abdada_job_next(front, 0, &event)) == ABDADA_OK);
    assert_true(event.depth == 2 && event.nodes == 1000);
    say(&worker[0], PROTO_JOB_SEARCHING, 3, 20, 2000, "b2b3");
    WAIT_FOR((serve(&worker[0]), abdada_job_next(front, 0, &event)) == ABDADA_OK);
    assert_true(event.depth == 3 && event.nodes == 2000);
    kill(second.process, SIGCONT);
    settle(&worker[0]);
    assert_int_equal(abdada_job_next(front, 0, &event), ABDADA_WAITING);
    stop(id);
}

static void what_a_worker_writes_is_printable(void **state)
{
    (void)state;
    uint64_t id = post((struct abdada_job){.depth = 4});
    say(&worker[0], PROTO_JOB_SEARCHING, 3, 0, 10, "e2e4\x1b[2J\n\xff");
    assert_int_equal(abdada_job_next(front, PATIENCE_MS, &event), ABDADA_OK);
    for (const char *c = event.text; *c != '\0'; c++) {
        assert_in_range(*c, ' ', '~');
    }
    stop(id);
}

static void a_close_ends_the_job(void **state)
{
    (void)state;
    uint64_t id = post((struct abdada_job){.depth = 4});
    unsigned before = worker[1].stops;
    assert_true(id == worker[1].job);
    assert_int_equal(abdada_close(front), ABDADA_OK);
    WAIT_FOR((serve(&worker[1]), worker[1].stops) > before);
    front_open();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_job_reaches_workers_as_it_was_posted),
        cmocka_unit_test(a_report_has_score_move_and_line),
        cmocka_unit_test(of_each_worker_the_newest_is_kept_with_its_line),
        cmocka_unit_test(no_event_comes_twice_and_the_line_stays),
        cmocka_unit_test(a_line_that_one_shard_missed_comes_by_the_other),
        cmocka_unit_test(events_do_not_go_back),
        cmocka_unit_test(what_a_worker_writes_is_printable),
        cmocka_unit_test(a_close_ends_the_job),
    };
    return cmocka_run_group_tests(tests, start, finish);
}
