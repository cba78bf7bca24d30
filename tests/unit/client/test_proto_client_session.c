/* How sessions end, change their namespace and are kept alive. */
#include "tests/support/test_proto_fake.h"

/* ---- sessions end ---- */

static void lost_session_is_greeted_at_once(void **state)
{
    struct fake *f = fake_open(1);
    struct tt_answer answer;
    uint32_t ticket;
    (void)state;
    uint32_t request = fake_ask(f, 1, &ticket);
    fake_error_of(f, 0, PROTO_ERR_SESSION, request);
    assert_int_equal(client_shard(f->client, 0).state, CLIENT_GREETING);
    assert_int_equal(client_answer(f->client, ticket, f->now, &answer), CLIENT_LOST);
    fake_expect(f, PROTO_HELLO);
    fake_error_of(f, 0, PROTO_ERR_SESSION, request + 1); /* of another message in flight */
    assert_null(fake_next(f));
    fake_welcome_as(f, 0, fake_boot(0), 8);
    assert_int_equal(client_shards_up(f->client), 1);
    assert_int_equal(client_counters(f->client)->refused, 2);
    assert_int_equal(f->hellos_refused, 0);
    fake_close(f);
}

static void refused_request_loses_its_ticket_alone(void **state)
{
    struct fake *f = fake_open(1);
    struct tt_answer answer;
    uint32_t one, two;
    (void)state;
    uint32_t request = fake_ask(f, 1, &one);
    fake_ask(f, 2, &two);
    fake_error_of(f, 0, PROTO_ERR_RANGE, request);
    fake_error_of(f, 0, PROTO_ERR_MALFORMED, 0);
    assert_int_equal(client_answer(f->client, one, f->now, &answer), CLIENT_LOST);
    assert_int_equal(client_answer(f->client, two, f->now, &answer), CLIENT_WAITING);
    assert_int_equal(client_shards_up(f->client), 1);
    assert_int_equal(client_counters(f->client)->refused, 2);
    fake_close(f);
}

/* A key without the role, a shard without room: said each time, and asked again in a while. */
static void a_refused_hello_is_said_and_repeated_every_second(void **state)
{
    static const unsigned code[] = {PROTO_ERR_LIMIT, PROTO_ERR_ROLE};
    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        struct fake *f = fake_open_with((struct client_options){.shards = 1});
        unsigned hellos = 0;
        client_tick(f->client, f->now);
        for (unsigned ms = 0; ms < 10000; ms++) {
            for (const struct proto_message *m; (m = fake_next(f));) {
                assert_int_equal(m->type, PROTO_HELLO);
                fake_error_of(f, 0, code[i], m->hello.request);
                hellos++;
            }
            fake_wait(f, 1000);
        }
        assert_in_range(hellos, 10, 11);
        assert_int_equal(f->hellos_refused, hellos);
        assert_int_equal(client_counters(f->client)->refused, hellos);
        fake_wait(f, 1000000);
        fake_welcome(f, 0); /* there is room again */
        assert_int_equal(client_shards_up(f->client), 1);
        fake_close(f);
    }
}

static void bye_takes_a_shard_out_until_it_answers_a_probe(void **state)
{
    struct fake *f = fake_open(1);
    struct proto_message bye = {.type = PROTO_BYE};
    (void)state;
    fake_say(f, 0, &bye);
    assert_int_equal(client_shard(f->client, 0).state, CLIENT_DOWN);
    fake_wait(f, 99999);
    assert_null(fake_next(f)); /* it is going: no hurry */
    fake_wait(f, 1);
    fake_expect(f, PROTO_HELLO);
    fake_welcome_as(f, 0, 99, 1);
    assert_int_equal(client_shards_up(f->client), 1);
    assert_int_equal(client_counters(f->client)->downs, 1);
    assert_int_equal(client_counters(f->client)->ups, 2);
    fake_close(f);
}

/* Whoever counts on a shard learns that it was away; one that did not know of it need not. */
static void what_happened_to_a_shard_meanwhile_comes_in_order(void **state)
{
    struct fake *f = fake_open(2);
    struct client_event e;
    struct proto_message bye = {.type = PROTO_BYE};
    (void)state;
    client_hello(f->client, PROTO_WORKER, 5, f->now);
    fake_say(f, 1, &bye);
    assert_int_equal(f->downs, 1);
    fake_wait(f, 100000);
    fake_welcome(f, 1);
    assert_int_equal(f->ups, 3);
    client_bye(f->client, f->now); /* both fall, and rise before anybody asks */
    client_hello(f->client, PROTO_WORKER, 5, f->now);
    fake_welcome_untaken(f, 0);
    fake_welcome_untaken(f, 1);
    static const struct client_event wanted[] = {
        {CLIENT_SHARD_DOWN, 0}, {CLIENT_SHARD_DOWN, 1}, {CLIENT_SHARD_UP, 0}, {CLIENT_SHARD_UP, 1}};
    for (unsigned i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        assert_true(client_next(f->client, &e));
        assert_int_equal(e.kind, wanted[i].kind);
        assert_int_equal(e.shard, wanted[i].shard);
    }
    client_bye(f->client, f->now);
    fake_take(f);
    client_hello(f->client, PROTO_WORKER, 5, f->now);
    fake_welcome_untaken(f, 0);
    client_bye(f->client, f->now);
    assert_false(client_next(f->client, &e)); /* it rose and fell */
    fake_close(f);
}

static void another_boot_id_is_another_shard(void **state)
{
    struct fake *f = fake_open(1);
    struct tt_answer answer;
    uint32_t ticket;
    (void)state;
    fake_ask(f, 1, &ticket);
    client_hello(f->client, PROTO_WORKER, 5, f->now);
    fake_welcome_as(f, 0, 12345, 1);
    assert_int_equal(client_answer(f->client, ticket, f->now, &answer), CLIENT_LOST);
    assert_int_equal(client_shards_up(f->client), 1);
    assert_int_equal(f->downs, 1);
    assert_int_equal(f->ups, 2);
    fake_close(f);
}

static void leaving_says_bye_and_forgets(void **state)
{
    struct fake *f = fake_open(2);
    struct tt_answer answer;
    uint32_t ticket;
    (void)state;
    fake_ask(f, 1, &ticket);
    client_bye(f->client, f->now);
    fake_expect(f, PROTO_BYE);
    fake_expect(f, PROTO_BYE);
    assert_int_equal(client_answer(f->client, ticket, f->now, &answer), CLIENT_LOST);
    assert_true(fake_wait(f, 10000000) == UINT64_MAX);
    assert_null(fake_next(f));
    fake_welcome(f, 0);
    assert_int_equal(client_shards_up(f->client), 0);
    client_hello(f->client, PROTO_WORKER, 1, f->now);
    fake_welcome(f, 0);
    assert_int_equal(client_shards_up(f->client), 1);
    fake_close(f);
}

/* ---- another namespace ---- */

static void nothing_waits_for_a_new_namespace(void **state)
{
    struct fake *f = fake_open(1);
    struct tt_answer answer;
    uint32_t before, after;
    (void)state;
    uint32_t request = fake_ask(f, 1, &before);
    client_hello(f->client, PROTO_WORKER, 77, f->now);
    assert_true(fake_expect(f, PROTO_HELLO)->hello.namespace_id == 77);
    fake_answer(f, 0, request, (struct tt_answer){.verdict = TT_BUSY});
    assert_int_equal(client_answer(f->client, before, f->now, &answer), CLIENT_READY);
    struct tt_store store = {.key = 1};
    client_store(f->client, 0, &store);
    client_flush(f->client, f->now);
    fake_expect(f, PROTO_STORE_HASH);
    request = fake_ask(f, 1, &after);
    fake_answer(f, 0, request, (struct tt_answer){.verdict = TT_BUSY});
    assert_int_equal(client_answer(f->client, after, f->now, &answer), CLIENT_READY);
    assert_int_equal(f->ups, 1);
    assert_int_equal(f->downs, 0);
    fake_close(f);
}

static void lost_hello_is_repeated_while_up(void **state)
{
    struct fake *f = fake_open(1);
    (void)state;
    client_hello(f->client, PROTO_WORKER, 77, f->now);
    uint32_t first = fake_expect(f, PROTO_HELLO)->hello.request;
    fake_wait(f, 100000);
    const struct proto_hello again = fake_expect(f, PROTO_HELLO)->hello;
    assert_true(again.request != first && again.namespace_id == 77);
    assert_int_equal(client_shards_up(f->client), 1);
    fake_welcome(f, 0);
    fake_wait(f, 100000);
    assert_null(fake_next(f));
    fake_close(f);
}

static void only_the_latest_hello_need_not_be_repeated(void **state)
{
    struct fake *f = fake_open_with((struct client_options){.shards = 1, .namespace_id = 1});
    (void)state;
    client_tick(f->client, f->now);
    uint32_t old = f->hello[0];
    client_hello(f->client, PROTO_WORKER, 2, f->now);
    f->hello[0] = old;
    fake_welcome(f, 0); /* the shard may not have seen the second */
    assert_int_equal(client_shards_up(f->client), 1);
    fake_forget(f);
    fake_wait(f, 100000);
    assert_true(fake_expect(f, PROTO_HELLO)->hello.namespace_id == 2);
    fake_welcome(f, 0);
    fake_wait(f, 100000);
    assert_null(fake_next(f));
    fake_close(f);
}

/* The answers come 150 ms late, and in order. */
static void a_long_round_trip_repeats_a_hello_once(void **state)
{
    struct fake *f = fake_open(1);
    (void)state;
    client_hello(f->client, PROTO_WORKER, 77, f->now);
    uint32_t first = fake_expect(f, PROTO_HELLO)->hello.request;
    fake_wait(f, 100000);
    uint32_t second = fake_expect(f, PROTO_HELLO)->hello.request;
    assert_true(second != first);
    fake_wait(f, 50000);
    f->hello[0] = first;
    fake_welcome(f, 0);
    fake_forget(f);
    fake_wait(f, 100000);
    f->hello[0] = second;
    fake_welcome(f, 0);
    for (unsigned ms = 0; ms < 300; ms += 100) {
        fake_wait(f, 100000);
        for (const struct proto_message *m = fake_next(f); m != NULL; m = fake_next(f)) {
            assert_true(m->type != PROTO_HELLO);
        }
    }
    fake_close(f);
}

static void hello_that_cannot_be_sent_is_sent_soon(void **state)
{
    struct fake *f = fake_open(1);
    (void)state;
    f->refusing[0] = true;
    client_hello(f->client, PROTO_WORKER, 2, f->now);
    assert_int_equal(client_shards_up(f->client), 1);
    f->refusing[0] = false;
    fake_wait(f, 1000);
    assert_true(fake_expect(f, PROTO_HELLO)->hello.namespace_id == 2);
    fake_close(f);
}

/* ---- what is in flight when a shard falls silent ---- */

/* A shard falls; then so many of its nodes are left. */
static void leave_in_silence(struct fake *f, unsigned nodes)
{
    fake_silence(f, 0);
    for (unsigned i = 0; i < nodes; i++) {
        struct tt_release release = {.key = i, .depth = 5, .slot = 3};
        client_release(f->client, 0, &release);
    }
    assert_null(fake_next(f));
}

static void releases_outlive_a_hello(void **state)
{
    struct fake *f = fake_open(1);
    (void)state;
    leave_in_silence(f, 5);
    client_hello(f->client, PROTO_WORKER, 0, f->now); /* the next job of the same game */
    fake_expect(f, PROTO_HELLO);
    fake_welcome(f, 0);
    assert_int_equal(fake_expect(f, PROTO_RELEASE)->release.list.count, 5);
    fake_close(f);
}

/* ---- heartbeats ---- */

static void heartbeat_when_nothing_else_was_asked(void **state)
{
    struct fake *f = fake_open(1);
    uint32_t ticket;
    struct tt_answer answer;
    (void)state;
    uint64_t due = client_tick(f->client, f->now);
    assert_int_equal(due, 1000000 + 333333);
    f->now = due - 1000;
    fake_answer(f, 0, fake_ask(f, 1, &ticket), (struct tt_answer){.verdict = TT_BUSY});
    assert_int_equal(client_answer(f->client, ticket, f->now, &answer), CLIENT_READY);
    due = client_tick(f->client, f->now);
    assert_int_equal(due, f->now + 333333);
    assert_null(fake_next(f));
    f->now = due;
    client_tick(f->client, f->now);
    struct proto_message echo = *fake_expect(f, PROTO_HEARTBEAT);
    f->now += 500;
    uint32_t before = client_shard(f->client, 0).rtt_us;
    fake_say(f, 0, &echo);
    assert_int_not_equal(client_shard(f->client, 0).rtt_us, before);
    assert_int_equal(client_outstanding(f->client), 0);
    fake_close(f);
}

/* Neither does it send without pause, nor fall silent, whatever a shard says. */
static void an_absurd_heartbeat_is_bounded(void **state)
{
    static const uint32_t absurd[] = {1, UINT32_MAX};
    struct fake *f = fake_open(1);
    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        struct proto_message m = {.type = PROTO_WELCOME};
        client_hello(f->client, PROTO_WORKER, i, f->now);
        m.welcome = (struct proto_welcome){.request = fake_expect(f, PROTO_HELLO)->hello.request,
                                           .session = 7,
                                           .boot = fake_boot(0),
                                           .heartbeat_ms = absurd[i],
                                           .batch_max = 1024};
        fake_say(f, 0, &m);
        uint64_t due = client_tick(f->client, f->now);
        assert_in_range(due - f->now, 1000, 20000000);
    }
    fake_close(f);
}

static void idle_client_notices_a_dead_shard_by_itself(void **state)
{
    struct fake *f = fake_open(1);
    uint64_t began = f->now;
    (void)state;
    for (uint64_t next = began; client_shards_up(f->client) > 0;) {
        f->now = next;
        next = client_tick(f->client, f->now);
        assert_true(next > f->now);
    }
    assert_in_range(f->now - began, 333333, 333333 + 30000);
    fake_close(f);
}

/* The HELLO is repeated more often than heartbeats are due. */
static void an_unconfirmed_hello_does_not_keep_a_dead_shard_up(void **state)
{
    struct fake *f = fake_open(1);
    uint64_t began = f->now;
    (void)state;
    client_hello(f->client, PROTO_WORKER, 77, f->now);
    for (uint64_t next = began; client_shards_up(f->client) > 0;) {
        f->now = next;
        next = client_tick(f->client, f->now);
        assert_true(next > f->now && f->now < began + 1000000);
        fake_forget(f);
    }
    assert_in_range(f->now - began, 333333, 333333 + 30000);
    fake_close(f);
}

/* What cannot be sent, tried more often than heartbeats are due must not keep them from being
 * missed. */
static void requests_that_cannot_be_sent_take_a_shard_out(void **state)
{
    (void)state;
    for (unsigned kind = 0; kind < 3; kind++) {
        struct fake *f = fake_open(1);
        uint64_t began = f->now;
        f->refusing[0] = true;
        while (client_shards_up(f->client) > 0) {
            f->now += 50000;
            client_tick(f->client, f->now);
            if (kind == 0) {
                (void)client_jobs(f->client, 0, 0, f->now);
            } else if (kind == 1) {
                client_stats(f->client, 0, f->now);
            } else {
                client_members(f->client, 0, 0, f->now);
            }
            assert_true(f->now - began < 1000000);
        }
        fake_close(f);
    }
}

static void figures_are_passed_on(void **state)
{
    struct fake *f = fake_open(1);
    struct proto_figure figures[2] = {{proto_text_of("a"), 1}, {proto_text_of("b"), 2}};
    (void)state;
    assert_true(client_stats(f->client, 0, f->now));
    struct proto_message m = {.type = PROTO_STATS_ANSWER};
    m.stats_answer.request = fake_expect(f, PROTO_STATS)->stats.request;
    m.stats_answer.list = (struct proto_figures){2, figures};
    fake_say(f, 0, &m);
    assert_int_equal(f->stats, 2);
    fake_say(f, 0, &m);
    assert_int_equal(f->stats, 2);
    fake_close(f);
}

static void members_and_jobs_are_passed_on_a_page_at_a_time(void **state)
{
    struct fake *f = fake_open(1);
    struct proto_member_row rows[3] = {{.session = 1}, {.session = 2}, {.session = 3}};
    struct proto_job_row jobs[2] = {{.job = 1}, {.job = 2}};
    struct proto_message m = {.type = PROTO_MEMBERS_ANSWER};
    (void)state;
    assert_true(client_members(f->client, 0, 17, f->now));
    m.members_answer.request = fake_expect(f, PROTO_MEMBERS)->members.request;
    assert_int_equal(f->message.members.from, 17);
    m.members_answer.list = (struct proto_member_rows){3, rows};
    fake_say(f, 0, &m);
    fake_say(f, 0, &m); /* late, or twice */
    assert_int_equal(f->members, 3);
    assert_true(client_jobs(f->client, 0, 8, f->now));
    uint32_t request = fake_expect(f, PROTO_JOBS)->jobs.request;
    assert_int_equal(f->message.jobs.from, 8);
    m.members_answer.request = request; /* an answer of another kind ends nothing */
    fake_say(f, 0, &m);
    assert_int_equal(f->members, 3);
    m = (struct proto_message){.type = PROTO_JOBS_ANSWER};
    m.jobs_answer.request = request;
    m.jobs_answer.list = (struct proto_job_rows){2, jobs};
    fake_say(f, 0, &m);
    assert_int_equal(f->open_jobs, 2);
    assert_int_equal(client_outstanding(f->client), 0);
    f->refusing[0] = true;
    assert_false(client_members(f->client, 0, 0, f->now));
    assert_false(client_jobs(f->client, 0, 0, f->now));
    assert_int_equal(client_outstanding(f->client), 0);
    fake_close(f);
}

static void a_worker_index_is_passed_on(void **state)
{
    struct fake *f = fake_open(1);
    struct proto_message m = {.type = PROTO_WORKER_INDEX, .worker_index = {3, 8}};
    (void)state;
    fake_say(f, 0, &m);
    assert_int_equal(f->worker_index, 3);
    assert_int_equal(f->workers, 8);
    assert_int_equal(client_shard(f->client, 0).boot, fake_boot(0));
    fake_close(f);
}

/* The wait for an ask follows the round trips, here of no time; a page of results takes longer. */
static void a_page_that_takes_long_is_waited_for(void **state)
{
    struct fake *f = fake_open(1);
    struct tt_scanned entry = {5, -3, 3, 9, 4};
    struct proto_figure figure = {proto_text_of("a"), 1};
    struct proto_message m = {.type = PROTO_STATS_ANSWER};
    (void)state;
    for (unsigned i = 0; i < 20; i++) {
        assert_true(client_stats(f->client, 0, f->now));
        m.stats_answer.request = fake_expect(f, PROTO_STATS)->stats.request;
        m.stats_answer.list = (struct proto_figures){1, &figure};
        fake_say(f, 0, &m);
    }
    assert_true(client_scan(f->client, 0, 0, 0, f->now));
    m = (struct proto_message){.type = PROTO_SCANNED};
    m.scanned = (struct proto_scanned){fake_expect(f, PROTO_SCAN)->scan.request, 0, {1, &entry}};
    for (unsigned i = 0; i < 20; i++) {
        f->now += 10000;
        client_tick(f->client, f->now);
    }
    fake_say(f, 0, &m);
    assert_int_equal(f->scanned, 1);
    assert_int_equal(client_counters(f->client)->timeouts, 0);
    fake_close(f);
}

static void a_scan_comes_back_once_and_in_its_range(void **state)
{
    struct fake *f = fake_open(2);
    struct tt_scanned entries[2] = {{5, -3, 3, 9, 4}, {6, 1, 1, 0, 7}};
    (void)state;
    assert_true(client_scan(f->client, 1, 4096, 4, f->now));
    const struct proto_scan sent = fake_expect(f, PROTO_SCAN)->scan;
    assert_int_equal(f->message_shard, 1);
    assert_int_equal(sent.cursor, 4096);
    assert_int_equal(sent.depth, 4);
    struct proto_message m = {.type = PROTO_SCANNED};
    m.scanned = (struct proto_scanned){sent.request, 8192, {2, entries}};
    fake_say(f, 1, &m);
    fake_say(f, 1, &m); /* late, or twice */
    assert_int_equal(f->scanned, 2);
    assert_true(f->last_next == 8192);
    static const struct tt_scanned wrong[] = {
        {5, TT_SCORE_MIN - 1, 3, 0, 4}, {5, 4, 3, 0, 4}, {5, -3, 3, 0, TT_DEPTH_MAX + 1}};
    for (unsigned i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        assert_true(client_scan(f->client, 1, 0, 0, f->now));
        m.scanned.request = fake_expect(f, PROTO_SCAN)->scan.request;
        entries[1] = wrong[i];
        fake_say(f, 1, &m);
        assert_int_equal(f->scanned, 2);
    }
    assert_int_equal(client_counters(f->client)->malformed, 3);
    assert_int_equal(client_outstanding(f->client), 0);
    fake_close(f);
}

static void a_flush_has_no_time_out(void **state)
{
    struct fake *f = fake_open(1);
    (void)state;
    assert_true(client_flush_table(f->client, 0, f->now));
    uint32_t request = fake_expect(f, PROTO_FLUSH)->flush.request;
    assert_int_equal(client_outstanding(f->client), 0);
    for (unsigned i = 0; i < 100; i++) { /* it is long at it, and answers what is asked meanwhile */
        fake_wait(f, 100000);
        const struct proto_message *sent = fake_next(f);
        if (sent != NULL) {
            struct proto_message beat = *sent;
            assert_int_equal(beat.type, PROTO_HEARTBEAT);
            fake_say(f, 0, &beat);
        }
    }
    assert_int_equal(client_shard(f->client, 0).state, CLIENT_UP);
    struct proto_message m = {.type = PROTO_FLUSHED, .flushed = {request + 1}};
    fake_say(f, 0, &m);
    assert_int_equal(f->flushed, 0);
    m.flushed.request = request;
    fake_say(f, 0, &m);
    fake_say(f, 0, &m);
    assert_int_equal(f->flushed, 1);
    assert_true(client_flush_table(f->client, 0, f->now));
    fake_error_of(f, 0, PROTO_ERR_ROLE, fake_expect(f, PROTO_FLUSH)->flush.request);
    assert_int_equal(f->flushed, 1);
    assert_int_equal(f->flushes_refused, 1);
    assert_true(client_flush_table(f->client, 0, f->now));
    request = fake_expect(f, PROTO_FLUSH)->flush.request;
    fake_silence(f, 0); /* what it was asked is lost with it */
    fake_welcome(f, 0);
    m.flushed.request = request;
    fake_say(f, 0, &m);
    assert_int_equal(f->flushed, 1);
    f->refusing[0] = true;
    assert_false(client_flush_table(f->client, 0, f->now));
    fake_close(f);
}

#define T(name) cmocka_unit_test(name)
int main(void)
{
    const struct CMUnitTest tests[] = {
        T(lost_session_is_greeted_at_once),
        T(refused_request_loses_its_ticket_alone),
        T(bye_takes_a_shard_out_until_it_answers_a_probe),
        T(a_refused_hello_is_said_and_repeated_every_second),
        T(another_boot_id_is_another_shard),
        T(what_happened_to_a_shard_meanwhile_comes_in_order),
        T(leaving_says_bye_and_forgets),
        T(nothing_waits_for_a_new_namespace),
        T(lost_hello_is_repeated_while_up),
        T(only_the_latest_hello_need_not_be_repeated),
        T(a_long_round_trip_repeats_a_hello_once),
        T(hello_that_cannot_be_sent_is_sent_soon),
        T(releases_outlive_a_hello),
        T(heartbeat_when_nothing_else_was_asked),
        T(an_absurd_heartbeat_is_bounded),
        T(idle_client_notices_a_dead_shard_by_itself),
        T(an_unconfirmed_hello_does_not_keep_a_dead_shard_up),
        T(requests_that_cannot_be_sent_take_a_shard_out),
        T(figures_are_passed_on),
        T(members_and_jobs_are_passed_on_a_page_at_a_time),
        T(a_worker_index_is_passed_on),
        T(a_page_that_takes_long_is_waited_for),
        T(a_scan_comes_back_once_and_in_its_range),
        T(a_flush_has_no_time_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
