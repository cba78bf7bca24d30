/* What a client says of versions, and what it does with a shard that does not speak its own. */
#include "tests/support/test_proto_fake.h"

enum { OURS = PROTO_VERSION, LATER = 77 };

static void say_as(struct fake *f, unsigned shard, uint32_t version, const struct proto_message *m)
{
    static uint8_t bytes[PROTO_MESSAGE_MAX];
    size_t length = proto_encode(m, bytes, sizeof bytes);
    assert_true(length > 0);
    bytes[1] = (uint8_t)version;
    client_receive(f->client, shard, bytes, length, f->now);
    fake_take(f);
}

static void refuse(struct fake *f, uint32_t version, uint32_t request)
{
    struct proto_message m = {.type = PROTO_ERROR};
    m.error = (struct proto_error){PROTO_ERR_VERSION, request, proto_text_of("another version")};
    say_as(f, 0, version, &m);
}

static struct fake *greeting(void)
{
    struct fake *f = fake_open_with((struct client_options){.shards = 1, .release = "1.2.3"});
    client_tick(f->client, f->now);
    return f;
}

/* Returns its request. */
static uint32_t expect_hello(struct fake *f)
{
    return fake_expect(f, PROTO_HELLO)->hello.request;
}

static void hello_names_the_range(void **state)
{
    struct fake *f = greeting();
    char release[8];
    (void)state;
    const struct proto_message *m = fake_expect(f, PROTO_HELLO);
    assert_int_equal(m->version, OURS);
    assert_int_equal(m->hello.lowest, OURS);
    assert_int_equal(m->hello.highest, OURS);
    assert_true(proto_text_copy(m->hello.release, release, sizeof release));
    assert_string_equal(release, "1.2.3");
    fake_close(f);
}

static void a_welcome_of_another_version_is_malformed(void **state)
{
    struct fake *f = greeting();
    struct proto_message m = fake_welcome_of(f, 0, 1, 1, 7);
    (void)state;
    for (uint32_t version = OURS - 1; version <= OURS + 1; version += 2) {
        say_as(f, 0, version, &m);
        assert_int_equal(client_shards_up(f->client), 0);
    }
    assert_int_equal(client_counters(f->client)->malformed, 2);
    fake_close(f);
}

/* Another program has the address of a shard that was up. */
static void a_shard_that_comes_back_in_another_version_is_found_out(void **state)
{
    struct fake *f = fake_open(1);
    struct tt_answer answer;
    uint32_t ticket;
    (void)state;
    fake_ask(f, 1, &ticket);
    refuse(f, LATER, 0);
    assert_int_equal(client_shard(f->client, 0).state, CLIENT_GREETING);
    assert_int_equal(client_answer(f->client, ticket, f->now, &answer), CLIENT_LOST);
    assert_int_equal(f->hellos_refused, 1);
    refuse(f, LATER, 0); /* of another ask */
    assert_null(fake_next(f));
    fake_wait(f, 1000000);
    expect_hello(f);
    fake_welcome_as(f, 0, 2, 8); /* it was put back */
    assert_int_equal(client_shard(f->client, 0).state, CLIENT_UP);
    fake_close(f);
}

static void an_error_2_of_our_version_ends_no_session(void **state)
{
    struct fake *f = fake_open(1);
    struct tt_answer answer;
    uint32_t ticket;
    (void)state;
    uint32_t request = fake_ask(f, 1, &ticket);
    refuse(f, OURS, 0);
    assert_int_equal(client_answer(f->client, ticket, f->now, &answer), CLIENT_WAITING);
    refuse(f, OURS, request);
    assert_int_equal(client_answer(f->client, ticket, f->now, &answer), CLIENT_LOST);
    assert_int_equal(client_shard(f->client, 0).state, CLIENT_UP);
    assert_int_equal(f->hellos_refused, 0);
    fake_close(f);
}

static void without_a_common_version_the_shard_refuses_us(void **state)
{
    struct fake *f = greeting();
    (void)state;
    for (unsigned second = 1; second <= 5; second++) {
        refuse(f, LATER, expect_hello(f));
        assert_int_equal(f->hellos_refused, second);
        fake_wait(f, 999999);
        assert_null(fake_next(f));
        fake_wait(f, 1);
    }
    expect_hello(f);
    refuse(f, 3, 0); /* a very old one, which cannot read a HELLO of ours */
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
    for (unsigned ms = 0; ms < 3000; ms++) {
        fake_wait(f, 1000);
        for (const struct proto_message *m; (m = fake_next(f)) != NULL; hellos++) {
            assert_int_equal(m->type, PROTO_HELLO);
            refuse(f, ms % 3 == 0 ? OURS : LATER, ms % 2 ? m->hello.request : 0);
            refuse(f, OURS, m->hello.request);
            refuse(f, OURS - 1, 0);
        }
    }
    assert_in_range(hellos, 1, 5);
    assert_int_equal(client_shards_up(f->client), 0);
    fake_close(f);
}

int main(void)
{
#define T(name) cmocka_unit_test(name)
    const struct CMUnitTest tests[] = {
        T(hello_names_the_range),
        T(a_welcome_of_another_version_is_malformed),
        T(a_shard_that_comes_back_in_another_version_is_found_out),
        T(an_error_2_of_our_version_ends_no_session),
        T(without_a_common_version_the_shard_refuses_us),
        T(a_shard_that_refuses_every_version_makes_no_storm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
