/* Jobs through the client: posted, repeated, stopped, pushed. */
#include "tests/support/test_proto_fake.h"

static struct proto_job post_of(uint64_t job)
{
    return (struct proto_job){.job = job,
                              .game = proto_text_of("chess"),
                              .position = proto_text_of("startpos"),
                              .evaluation = 0xe7a1,
                              .algorithm = proto_text_of("abdada"),
                              .depth = 8};
}

static void a_job_is_posted_to_all_and_to_those_that_come_later(void **state)
{
    struct fake *f = fake_open(3);
    struct proto_job post = post_of(9);
    char position[] = "startpos";
    (void)state;
    fake_silence(f, 2);
    post.position = proto_text_of(position);
    assert_int_equal(client_job_post(f->client, &post, f->now), ERR_OK);
    memset(position, 'x', 8); /* it has copied */
    fake_expect(f, PROTO_JOB_POST);
    fake_expect(f, PROTO_JOB_POST);
    assert_null(fake_next(f));
    fake_welcome(f, 2);
    const struct proto_job *late = &fake_expect(f, PROTO_JOB_POST)->job;
    assert_int_equal(f->message_shard, 2);
    assert_int_equal(late->job, 9);
    assert_int_equal(late->evaluation, 0xe7a1);
    assert_memory_equal(late->position.at, "startpos", 8);
    assert_int_equal(client_job_post(f->client, &post, f->now), ERR_EXIST);
    fake_close(f);
}

static void a_job_message_that_the_port_does_not_take_is_repeated_soon(void **state)
{
    struct fake *f = fake_open(1);
    struct proto_job post = post_of(9);
    (void)state;
    f->refusing[0] = true;
    client_job_post(f->client, &post, f->now);
    fake_wait(f, 5000);
    f->refusing[0] = false;
    fake_wait(f, 2000);
    assert_int_equal(fake_expect(f, PROTO_JOB_POST)->job.job, 9);
    f->refusing[0] = true;
    client_job_stop(f->client, 9, f->now);
    fake_wait(f, 5000);
    f->refusing[0] = false;
    fake_wait(f, 2000);
    assert_int_equal(fake_expect(f, PROTO_JOB_STOP)->job_stop.job, 9);
    fake_wait(f, 10000);
    assert_null(fake_next(f)); /* not time and again */
    fake_close(f);
}

/* The shard may have refused the first: it came before the HELLO, if that one was lost. */
static void a_job_is_posted_again_when_a_new_role_is_confirmed(void **state)
{
    struct fake *f = fake_open(1);
    struct proto_job post = post_of(9);
    (void)state;
    client_hello(f->client, PROTO_FRONT, 0, f->now);
    client_job_post(f->client, &post, f->now);
    fake_forget(f);
    fake_welcome(f, 0);
    assert_int_equal(fake_expect(f, PROTO_JOB_POST)->job.job, 9);
    fake_welcome(f, 0); /* late, or twice */
    assert_null(fake_next(f));
    fake_close(f);
}

static void a_lost_job_message_is_repeated(void **state)
{
    struct fake *f = fake_open(1);
    struct proto_job post = post_of(9);
    unsigned posts = 0, stops = 0;
    (void)state;
    client_job_post(f->client, &post, f->now);
    fake_forget(f);
    for (unsigned i = 0; i < 30; i++) {
        if (i == 15) {
            client_job_stop(f->client, 9, f->now);
            fake_expect(f, PROTO_JOB_STOP);
        }
        fake_wait(f, 200000);
        for (const struct proto_message *m; (m = fake_next(f));) {
            posts += m->type == PROTO_JOB_POST;
            stops += m->type == PROTO_JOB_STOP;
            if (m->type == PROTO_HEARTBEAT) {
                struct proto_message echo = *m;
                fake_say(f, 0, &echo);
            }
        }
    }
    assert_int_equal(posts, 3);
    assert_int_equal(stops, 3);
    for (unsigned i = 0; i < 100; i++) { /* and not for ever */
        fake_wait(f, 200000);
        for (const struct proto_message *m; (m = fake_next(f));) {
            stops += m->type == PROTO_JOB_STOP;
            if (m->type == PROTO_HEARTBEAT) {
                struct proto_message echo = *m;
                fake_say(f, 0, &echo);
            }
        }
    }
    assert_in_range(stops, 8, 10);
    fake_close(f);
}

static void a_shard_that_was_out_gets_the_stop(void **state)
{
    struct fake *f = fake_open(1);
    struct proto_job post = post_of(9);
    (void)state;
    client_job_post(f->client, &post, f->now);
    fake_forget(f);
    fake_silence(f, 0);
    client_job_stop(f->client, 9, f->now);
    assert_null(fake_next(f));
    fake_welcome(f, 0);
    assert_int_equal(fake_expect(f, PROTO_JOB_STOP)->job_stop.job, 9);
    assert_int_equal(client_job_post(f->client, &post, f->now), ERR_OK); /* the same id again */
    fake_expect(f, PROTO_JOB_POST);
    fake_wait(f, 1000000);
    for (const struct proto_message *m; (m = fake_next(f));) {
        assert_int_not_equal(m->type, PROTO_JOB_STOP);
    }
    fake_close(f);
}

static void jobs_are_bounded(void **state)
{
    struct fake *f = fake_open(1);
    static char text[PROTO_TEXT_MAX + 1];
    struct proto_job post = post_of(1);
    (void)state;
    assert_int_equal(client_job_post(f->client, &post, f->now), ERR_OK);
    post.job = 2;
    memset(text, 'a', sizeof text);
    post.game = (struct proto_text){text, PROTO_TEXT_MAX + 1};
    assert_int_equal(client_job_post(f->client, &post, f->now), ERR_RANGE);
    post.game.length = post.algorithm.length = post.position.length = PROTO_TEXT_MAX;
    post.algorithm.at = post.position.at = text;
    post.evaluation = post.namespace_id = post.nodes = UINT64_MAX;
    post.time_ms = UINT32_MAX;
    assert_int_equal(client_job_post(f->client, &post, f->now), ERR_OK);
    post.job = 3;
    assert_int_equal(client_job_post(f->client, &post, f->now), ERR_FULL);
    client_job_stop(f->client, 1, f->now);
    assert_int_equal(client_job_post(f->client, &post, f->now), ERR_OK);
    fake_close(f);
}

static void pushed_messages_are_events(void **state)
{
    struct fake *f = fake_open(1);
    struct tt_store done[2] = {{5, 30, 1, TT_LOWER, 9, 0}, {6, -40, 2, TT_UPPER, 0, 0}};
    (void)state;
    struct proto_message m = {.type = PROTO_JOB};
    m.job.job = 4;
    fake_say(f, 0, &m);
    assert_int_equal(f->last_job, 4);
    m = (struct proto_message){.type = PROTO_JOB_STOP};
    fake_say(f, 0, &m);
    m = (struct proto_message){.type = PROTO_JOB_REPORT};
    fake_say(f, 0, &m);
    m = (struct proto_message){.type = PROTO_NODE_DONE};
    m.node_done.list = (struct proto_stores){2, done};
    fake_say(f, 0, &m);
    assert_int_equal(f->dones, 2);
    assert_int_equal(f->last_done.key, 6);
    assert_int_equal(f->last_done.depth, 2);
    assert_int_equal(f->last_done.score, -40);
    assert_int_equal(f->last_done.bound, TT_UPPER);
    assert_int_equal(f->stops + f->reports + f->jobs, 3);
    static const struct proto_job_report wrong[] = {
        {.state = PROTO_JOB_REFUSED + 1},
        {.state = 200},
        {.score = -32768},
        {.depth = 251},
        {.abandoned = UINT64_C(1) << PROTO_COUNTER_BITS},
        {.talked_us = UINT64_C(1) << PROTO_COUNTER_BITS},
        {.bytes_sent = UINT64_C(1) << PROTO_COUNTER_BITS},
        {.bytes_received = UINT64_C(1) << PROTO_COUNTER_BITS}};
    for (unsigned i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        m = (struct proto_message){.type = PROTO_JOB_REPORT, .job_report = wrong[i]};
        fake_say(f, 0, &m);
        assert_int_equal(f->reports, 1);
        assert_int_equal(client_counters(f->client)->malformed, i + 1);
    }
    struct proto_job_report report = {.job = 4, .nodes = 10};
    client_job_report(f->client, &report, f->now);
    assert_int_equal(fake_expect(f, PROTO_JOB_REPORT)->job_report.nodes, 10);
    fake_close(f);
}

/* Each message once, a post as well as a report; not what the port did not take. */
static void bytes_are_counted_both_ways(void **state)
{
    struct fake *f = fake_open(1);
    const struct client_counters *counters = client_counters(f->client);
    struct proto_job post = post_of(1);
    struct proto_job_report report = {.job = 4, .nodes = 10};
    struct proto_message m = {.type = PROTO_JOB_STOP};
    uint8_t bytes[64];
    uint64_t sent = counters->bytes_sent, received = counters->bytes_received;
    (void)state;
    fake_forget(f);
    assert_true(sent > 0 && received > 0); /* HELLO and WELCOME */
    assert_int_equal(client_job_post(f->client, &post, f->now), ERR_OK);
    client_job_report(f->client, &report, f->now);
    while (fake_next(f) != NULL) {
        sent += f->sent[(f->head - 1) % SENT_MAX].length;
    }
    assert_int_equal(counters->bytes_sent, sent);
    f->refusing[0] = true;
    client_job_report(f->client, &report, f->now);
    assert_int_equal(counters->bytes_sent, sent);
    fake_say(f, 0, &m);
    received += proto_encode(&m, bytes, sizeof bytes);
    client_receive(f->client, 0, (const uint8_t *)"junk", 4, f->now);
    assert_int_equal(counters->bytes_received, received + 4);
    fake_close(f);
}

static void say_done(struct fake *f, struct tt_store result)
{
    struct tt_store list[2] = {{5, 30, 1, TT_LOWER, 9, 0}, result};
    struct proto_message m = {.type = PROTO_NODE_DONE};
    m.node_done.list = (struct proto_stores){2, list};
    fake_say(f, 0, &m);
}

static void results_out_of_range_are_dropped(void **state)
{
    static const struct tt_store bad[] = {
        {6, INT16_MIN, 2, TT_UPPER, 0, 0},
        {6, 1, TT_DEPTH_MAX + 1, TT_UPPER, 0, 0},
        {6, 1, 2, 0, 0, 0},
        {6, 1, 2, 4, 0, 0},
    };
    struct fake *f = fake_open(1);
    (void)state;
    for (unsigned i = 0; i < sizeof bad / sizeof *bad; i++) {
        say_done(f, bad[i]);
        assert_int_equal(f->dones, 0);
        assert_int_equal(client_counters(f->client)->malformed, i + 1);
    }
    say_done(f, (struct tt_store){6, TT_SCORE_MIN, TT_DEPTH_MAX, TT_EXACT, 0, 0});
    assert_int_equal(f->dones, 2);
    fake_close(f);
}

static void options_are_checked(void **state)
{
    struct client *c = NULL;
    (void)state;
    static const struct client_options bad[] = {
        {.shards = 0},
        {.shards = 65},
        {.shards = 1, .rto_min_us = 10, .rto_max_us = 5},
        {.shards = 1, .tickets = 1025},
        {.shards = 1, .peek_max = 1025},
        {.shards = 1, .queue = 1025},
        {.shards = 1, .jobs = 65},
    };
    for (unsigned i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(client_open(&bad[i], fake_send, NULL, &c), ERR_RANGE);
    }
    assert_null(c);
    client_free(&c);
    struct client_options largest = {.shards = 64, .tickets = 1024, .peek_max = 1024};
    assert_int_equal(client_open(&largest, fake_send, NULL, &c), ERR_OK);
    client_free(&c);
}

/* An administrator has stopped it there, for as long as the shard remembers. */
static void a_barred_job_is_said_and_not_posted_again_in_that_session(void **state)
{
    (void)state;
    struct fake *f = fake_open(2);
    struct proto_job post = post_of(9);
    unsigned posts[2] = {0};
    assert_int_equal(client_job_post(f->client, &post, f->now), ERR_OK);
    fake_error_of(f, 1, PROTO_ERR_ROLE, 9);
    assert_int_equal(f->refusals, 1);
    assert_true(f->last_job == 9);
    fake_forget(f);
    for (unsigned i = 0; i < 30; i++) {
        fake_wait(f, 200000);
        for (const struct proto_message *m; (m = fake_next(f));) {
            posts[f->message_shard] += m->type == PROTO_JOB_POST;
            if (m->type == PROTO_HEARTBEAT) {
                struct proto_message echo = *m;
                fake_say(f, f->message_shard, &echo);
            }
        }
    }
    assert_in_range(posts[0], 4, 7);
    assert_int_equal(posts[1], 0);
    fake_silence(f, 1);
    fake_welcome(f, 1);
    assert_int_equal(fake_expect(f, PROTO_JOB_POST)->job.job, 9);
    assert_int_equal(f->message_shard, 1);
    fake_close(f);
}

/* The POST was before the HELLO that says a role that may post. */
static void a_job_posted_too_early_is_not_barred(void **state)
{
    (void)state;
    struct fake *f = fake_open(1);
    struct proto_job post = post_of(9);
    client_hello(f->client, PROTO_FRONT, 0, f->now);
    client_job_post(f->client, &post, f->now);
    fake_forget(f);
    fake_error_of(f, 0, PROTO_ERR_ROLE, 9);
    assert_int_equal(f->refusals, 0);
    fake_welcome(f, 0);
    assert_int_equal(fake_expect(f, PROTO_JOB_POST)->job.job, 9);
    fake_close(f);
}

/* An ERROR to a JOB_POST has the low 32 bits of the job's id in place of a request. */
static void a_refused_post_is_said_of_its_job(void **state)
{
    (void)state;
    struct fake *f = fake_open(2);
    uint64_t id = UINT64_C(0x1234567800000009) << 4;
    struct proto_job post = post_of(id), other = post_of(id + 1);
    assert_int_equal(client_job_post(f->client, &post, f->now), ERR_OK);
    assert_int_equal(client_job_post(f->client, &other, f->now), ERR_OK);
    fake_error_of(f, 1, PROTO_ERR_LIMIT, (uint32_t)id);
    assert_int_equal(f->refusals, 1);
    assert_true(f->last_job == id);
    fake_error_of(f, 0, PROTO_ERR_LIMIT, (uint32_t)id + 1);
    assert_int_equal(f->refusals, 2);
    assert_true(f->last_job == id + 1);
    fake_error_of(f, 1, PROTO_ERR_LIMIT, 0);
    fake_error_of(f, 1, PROTO_ERR_LIMIT, (uint32_t)id + 2);
    client_job_stop(f->client, id, f->now);
    fake_error_of(f, 1, PROTO_ERR_LIMIT, (uint32_t)id);
    assert_int_equal(f->refusals, 2);
    fake_close(f);
}

#define T(name) cmocka_unit_test(name)
int main(void)
{
    const struct CMUnitTest tests[] = {
        T(a_job_is_posted_to_all_and_to_those_that_come_later),
        T(a_job_message_that_the_port_does_not_take_is_repeated_soon),
        T(a_job_is_posted_again_when_a_new_role_is_confirmed),
        T(a_lost_job_message_is_repeated),
        T(a_shard_that_was_out_gets_the_stop),
        T(jobs_are_bounded),
        T(a_refused_post_is_said_of_its_job),
        T(a_barred_job_is_said_and_not_posted_again_in_that_session),
        T(a_job_posted_too_early_is_not_barred),
        T(pushed_messages_are_events),
        T(bytes_are_counted_both_ways),
        T(results_out_of_range_are_dropped),
        T(options_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
