/* The version that a client speaks with each shard: the highest that both do, found out by HELLO,
 * also where the shard is of a version that cannot read ours, or another program comes in its
 * place.
 */
#include "tests/support/test_proto_fake.h"

enum { OLD = PROTO_LOWEST, NEW = PROTO_VERSION, LATER = 77 };

static void say_as(struct fake *f, unsigned shard, uint32_t version, const struct proto_message *m)
{
    static uint8_t bytes[PROTO_MESSAGE_MAX];
    bool is_spoken = version >= OLD && version <= NEW;
    size_t length = proto_encode_as(is_spoken ? version : NEW, m, bytes, sizeof bytes);
    assert_true(length > 0);
    bytes[1] = (uint8_t)version;
    client_receive(f->client, shard, bytes, length, f->now);
    fake_take(f);
}

/* As a shard that cannot read what was sent: it names no request. */
static void refuse(struct fake *f, uint32_t version, uint32_t request)
{
    struct proto_message m = {.type = PROTO_ERROR};
    m.error = (struct proto_error){PROTO_ERR_VERSION, request, proto_text_of("another version")};
    say_as(f, 0, version, &m);
}

static void welcome(struct fake *f, uint32_t version, uint64_t boot)
{
    struct proto_message m = fake_welcome_of(f, 0, boot, boot, 7);
    say_as(f, 0, version, &m);
}

static struct fake *greeting(void)
{
    struct fake *f = fake_open_with((struct client_options){.shards = 1, .release = "1.2.3"});
    client_tick(f->client, f->now);
    return f;
}

/* The next message is a HELLO of that version. Returns its request. */
static uint32_t expect_hello(struct fake *f, uint32_t version)
{
    const struct proto_message *m = fake_expect(f, PROTO_HELLO);
    assert_int_equal(m->version, version);
    return m->hello.request;
}

static bool is_up(const struct fake *f, uint32_t version)
{
    return client_shard_state(f->client, 0) == CLIENT_UP &&
           client_shard_version(f->client, 0) == version;
}

static struct fake *with_an_old_shard(void)
{
    struct fake *f = greeting();
    expect_hello(f, NEW);
    refuse(f, OLD, 0);
    expect_hello(f, OLD);
    welcome(f, OLD, 1);
    assert_true(is_up(f, OLD));
    assert_int_equal(client_counters(f->client)->malformed, 0);
    return f;
}

static void hello_names_the_range(void **state)
{
    struct fake *f = greeting();
    char release[8];
    (void)state;
    const struct proto_message *m = fake_expect(f, PROTO_HELLO);
    assert_int_equal(m->version, NEW);
    assert_int_equal(m->hello.lowest, OLD);
    assert_int_equal(m->hello.highest, NEW);
    assert_true(proto_text_copy(m->hello.release, release, sizeof release));
    assert_string_equal(release, "1.2.3");
    welcome(f, NEW, 1);
    assert_true(is_up(f, NEW));
    client_hello(f->client, PROTO_WORKER, 5, f->now);
    expect_hello(f, NEW);
    welcome(f, OLD, 1); /* it is the shard's to say */
    assert_true(is_up(f, OLD));
    fake_close(f);
}

static void an_old_shard_is_spoken_to_in_its_version(void **state)
{
    struct fake *f = with_an_old_shard();
    struct proto_job_post job = {.job = 1, .game = proto_text_of("chess")};
    uint32_t ticket;
    (void)state;
    uint8_t where;
    struct tt_ask ask = fake_ask_of(1);
    ticket = client_ask(f->client, &ask, 1, f->now, &where);
    assert_int_not_equal(ticket, 0);
    assert_int_equal(fake_expect(f, PROTO_RETRIEVE_ASK)->version, OLD);
    assert_int_equal(client_job_post(f->client, &job, f->now), ERR_OK);
    assert_int_equal(fake_expect(f, PROTO_JOB_POST)->version, OLD);
    client_job_report(f->client, &(struct proto_job_report){.job = 1}, f->now);
    assert_int_equal(fake_expect(f, PROTO_JOB_REPORT)->version, OLD);
    client_hello(f->client, PROTO_FRONT, 5, f->now); /* of the session: no detour */
    expect_hello(f, OLD);
    client_bye(f->client, f->now);
    assert_int_equal(fake_expect(f, PROTO_BYE)->version, OLD);
    assert_int_equal(f->hellos_refused, 0);
    fake_close(f);
}

/* A HELLO of the oldest version names no other. */
static void a_welcome_of_a_version_that_was_not_offered_is_malformed(void **state)
{
    struct fake *f = greeting();
    (void)state;
    expect_hello(f, NEW);
    refuse(f, OLD, 0);
    expect_hello(f, OLD);
    welcome(f, NEW, 1);
    assert_int_equal(client_counters(f->client)->malformed, 1);
    assert_int_equal(client_shards_up(f->client), 0);
    fake_wait(f, 100000);
    expect_hello(f, NEW);
    welcome(f, NEW, 1);
    assert_true(is_up(f, NEW));
    fake_close(f);
}

/* The way is long: several HELLOs are under way before the first refusal comes. */
static void refusals_that_come_late_do_no_harm(void **state)
{
    struct fake *f = greeting();
    unsigned old = 0, newer = 0;
    (void)state;
    fake_wait(f, 100000);
    fake_wait(f, 100000);
    for (unsigned i = 0; i < 3; i++) {
        expect_hello(f, NEW);
        assert_true(i < 3);
    }
    refuse(f, OLD, 0);
    uint32_t first = expect_hello(f, OLD);
    assert_int_equal(f->hello[0], first);
    fake_wait(f, 30000);
    refuse(f, OLD, 0);
    welcome(f, OLD, 1);
    assert_true(is_up(f, OLD));
    refuse(f, OLD, 0); /* of the third */
    refuse(f, OLD, 0);
    assert_true(is_up(f, OLD));
    assert_int_equal(client_counters(f->client)->downs, 0);
    for (const struct proto_message *m; (m = fake_next(f)) != NULL;) {
        old += m->type == PROTO_HELLO && m->version == OLD;
        newer += m->type == PROTO_HELLO && m->version == NEW;
    }
    assert_in_range(old, 0, 1);
    assert_int_equal(newer, 0);
    fake_close(f);
}

static void an_upgraded_shard_is_spoken_to_in_the_newer_version(void **state)
{
    struct fake *f = with_an_old_shard();
    struct proto_message error = {.type = PROTO_ERROR};
    struct proto_job_post job = {.job = 1};
    (void)state;
    assert_int_equal(client_job_post(f->client, &job, f->now), ERR_OK);
    assert_int_equal(fake_expect(f, PROTO_JOB_POST)->version, OLD);
    error.error.code = PROTO_ERR_SESSION; /* in the version of what it answers */
    say_as(f, 0, OLD, &error);
    expect_hello(f, NEW);
    welcome(f, NEW, 2);
    assert_true(is_up(f, NEW));
    assert_int_equal(fake_expect(f, PROTO_JOB_POST)->version, NEW); /* the open job again */
    fake_silence(f, 0);
    fake_wait(f, 100000);
    expect_hello(f, NEW); /* probes are of the highest, too */
    fake_close(f);
}

static void a_shard_that_is_put_back_to_an_older_version_is_found_out(void **state)
{
    struct fake *f = greeting();
    struct tt_answer answer;
    uint32_t ticket;
    (void)state;
    expect_hello(f, NEW);
    welcome(f, NEW, 1);
    fake_ask(f, 1, &ticket);
    refuse(f, OLD, 0);
    assert_int_equal(client_shard_state(f->client, 0), CLIENT_GREETING);
    assert_int_equal(client_answer(f->client, ticket, f->now, &answer), CLIENT_LOST);
    expect_hello(f, OLD);
    refuse(f, OLD, 0); /* of another ask */
    assert_null(fake_next(f));
    welcome(f, OLD, 2);
    assert_true(is_up(f, OLD));
    fake_close(f);
}

static void without_a_common_version_the_shard_refuses_us(void **state)
{
    struct fake *f = greeting();
    (void)state;
    for (unsigned second = 1; second <= 5; second++) {
        refuse(f, LATER, expect_hello(f, NEW));
        assert_int_equal(f->hellos_refused, second);
        fake_wait(f, 999999);
        assert_null(fake_next(f));
        fake_wait(f, 1);
    }
    expect_hello(f, NEW);
    refuse(f, 3, 0); /* a very old one */
    assert_int_equal(f->hellos_refused, 6);
    assert_int_equal(client_counters(f->client)->malformed, 0);
    struct proto_message other = {.type = PROTO_ERROR, .error = {.code = PROTO_ERR_LIMIT}};
    say_as(f, 0, LATER, &other); /* no other error is read of a version that we do not speak */
    assert_int_equal(client_counters(f->client)->malformed, 1);
    fake_close(f);
}

/* Whatever a shard says, it does not make us say HELLO as often as it likes. */
static void a_shard_that_refuses_every_version_makes_no_storm(void **state)
{
    struct fake *f = greeting();
    unsigned hellos = 0;
    (void)state;
    for (unsigned ms = 0; ms < 1000; ms++) {
        fake_wait(f, 1000);
        for (const struct proto_message *m; (m = fake_next(f)) != NULL; hellos++) {
            assert_int_equal(m->type, PROTO_HELLO);
            refuse(f, m->version == NEW ? OLD : NEW, ms % 2 ? m->hello.request : 0);
            refuse(f, m->version, m->hello.request);
            refuse(f, OLD, 0);
        }
    }
    assert_in_range(hellos, 1, 60);
    assert_false(is_up(f, NEW) || is_up(f, OLD));
    fake_close(f);
}

static void a_client_of_the_oldest_version_reads_no_other(void **state)
{
    struct fake *f = fake_open_with((struct client_options){.shards = 1, .version = OLD});
    struct client_options wrong = {.shards = 1, .version = NEW + 1};
    struct client_port port = {f, fake_send};
    struct client *none;
    (void)state;
    client_tick(f->client, f->now);
    assert_int_equal(fake_expect(f, PROTO_HELLO)->version, OLD);
    welcome(f, NEW, 1);
    assert_int_equal(client_shards_up(f->client), 0);
    assert_int_equal(client_counters(f->client)->malformed, 1);
    welcome(f, OLD, 1);
    assert_true(is_up(f, OLD));
    assert_int_equal(client_open(&wrong, &port, &none), ERR_RANGE);
    wrong.version = OLD - 1;
    assert_int_equal(client_open(&wrong, &port, &none), ERR_RANGE);
    fake_close(f);
}

int main(void)
{
#define T(name) cmocka_unit_test(name)
    const struct CMUnitTest tests[] = {
        T(hello_names_the_range),
        T(an_old_shard_is_spoken_to_in_its_version),
        T(a_welcome_of_a_version_that_was_not_offered_is_malformed),
        T(refusals_that_come_late_do_no_harm),
        T(an_upgraded_shard_is_spoken_to_in_the_newer_version),
        T(a_shard_that_is_put_back_to_an_older_version_is_found_out),
        T(without_a_common_version_the_shard_refuses_us),
        T(a_shard_that_refuses_every_version_makes_no_storm),
        T(a_client_of_the_oldest_version_reads_no_other),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
