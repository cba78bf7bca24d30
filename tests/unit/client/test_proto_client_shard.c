/* The client and its shards: greeting, time-outs, timeouts_in_row, the map. */
#include "tests/support/test_proto_fake.h"

/* ---- greeting ---- */

static void first_tick_greets_every_shard(void **state)
{
    struct fake *f = fake_open_with((struct client_options){
        .shards = 2, .role = PROTO_FRONT, .namespace_id = 9, .hello_flags = PROTO_WANTS_NODE_DONE});
    (void)state;
    assert_null(fake_next(f));
    assert_int_equal(client_shard(f->client, 0).state, CLIENT_ABSENT);
    assert_int_equal(client_tick(f->client, f->now), f->now + 100000);
    const struct proto_hello *hello = &fake_expect(f, PROTO_HELLO)->hello;
    assert_int_equal(hello->role, PROTO_FRONT);
    assert_int_equal(hello->flags, PROTO_WANTS_NODE_DONE);
    assert_true(hello->namespace_id == 9 && hello->instance == 42);
    assert_memory_equal(hello->name.at, "test", 4);
    assert_int_equal(fake_expect(f, PROTO_HELLO)->hello.role, PROTO_FRONT);
    assert_int_equal(f->message_shard, 1);
    assert_int_equal(client_shard(f->client, 0).state, CLIENT_GREETING);
    fake_welcome(f, 0);
    assert_int_equal(client_shard(f->client, 0).state, CLIENT_UP);
    assert_int_equal(client_shards_up(f->client), 1);
    assert_int_equal(f->ups, 1);
    fake_close(f);
}

static void hello_is_repeated_until_welcomed(void **state)
{
    struct fake *f = fake_open_with((struct client_options){.shards = 1});
    (void)state;
    client_tick(f->client, f->now);
    for (unsigned i = 0; i < 20; i++) {
        fake_expect(f, PROTO_HELLO);
        assert_null(fake_next(f));
        fake_wait(f, 100000);
    }
    assert_int_equal(f->downs, 0);
    fake_welcome(f, 0);
    assert_int_equal(client_shards_up(f->client), 1);
    fake_close(f);
}

/* A connection that is being made takes nothing yet: tried again soon, then less and less often. */
static void hello_that_is_not_taken_is_tried_again_soon(void **state)
{
    struct fake *f = fake_open_with((struct client_options){.shards = 1});
    (void)state;
    uint64_t due = 0;
    f->refusing[0] = true;
    for (unsigned pause = 1000; pause < 100000; pause *= 2) {
        due = client_tick(f->client, f->now);
        assert_int_equal(due, f->now + pause);
        f->now = due;
    }
    for (unsigned i = 0; i < 3; i++) {
        due = client_tick(f->client, f->now);
        assert_int_equal(due, f->now + 100000);
        f->now = due;
    }
    f->refusing[0] = false;
    assert_int_equal(client_tick(f->client, f->now), f->now + 100000);
    fake_expect(f, PROTO_HELLO);
    f->refusing[0] = true;
    f->now += 100000;
    assert_int_equal(client_tick(f->client, f->now), f->now + 1000); /* it was taken meanwhile */
    fake_close(f);
}

static void welcome_that_comes_too_late_does_not_count(void **state)
{
    struct fake *f = fake_open_with((struct client_options){.shards = 1, .probe_us = 10000000});
    (void)state;
    client_tick(f->client, f->now);
    fake_wait(f, 250000);
    fake_welcome(f, 0);
    assert_int_equal(client_shards_up(f->client), 0);
    assert_int_equal(client_counters(f->client)->late, 1);
    fake_close(f);
}

static void absurd_welcome_is_dropped(void **state)
{
    struct fake *f = fake_open_with((struct client_options){.shards = 1});
    (void)state;
    client_tick(f->client, f->now);
    struct proto_message m = {.type = PROTO_WELCOME};
    m.welcome = (struct proto_welcome){.request = f->hello[0], .heartbeat_ms = 1000};
    fake_say(f, 0, &m);
    assert_int_equal(client_shards_up(f->client), 0);
    assert_int_equal(client_counters(f->client)->malformed, 1);
    fake_close(f);
}

/* The time-out of the next request. */
static uint64_t rto_us(struct fake *f)
{
    uint32_t ticket;
    fake_forget(f);
    fake_ask(f, 99, &ticket);
    uint64_t us = client_deadline(f->client, ticket) - f->now;
    client_forget(f->client, ticket);
    return us;
}

static void welcome_gives_the_first_sample(void **state)
{
    struct fake *f = fake_open(1);
    (void)state;
    assert_int_equal(client_shard(f->client, 0).rtt_us, 100);
    assert_int_equal(rto_us(f), 2000);
    fake_close(f);
}

/* ---- time-outs and timeouts_in_row ---- */

static void silence_takes_a_shard_out_after_three_time_outs(void **state)
{
    struct fake *f = fake_open(2);
    struct tt_answer answer;
    uint64_t key = fake_key_of(f, 1), began = f->now;
    (void)state;
    for (unsigned i = 0; i < 3; i++) {
        uint32_t ticket;
        assert_int_equal(client_shard(f->client, 1).state, CLIENT_UP);
        fake_ask(f, key, &ticket);
        assert_int_equal(client_deadline(f->client, ticket), f->now + (2000u << i));
        f->now = client_deadline(f->client, ticket) - 1;
        assert_int_equal(client_answer(f->client, ticket, f->now, &answer), CLIENT_WAITING);
        f->now++;
        assert_int_equal(client_answer(f->client, ticket, f->now, &answer), CLIENT_LOST);
    }
    assert_int_equal(f->now - began, 14000);
    assert_int_equal(client_shard(f->client, 1).state, CLIENT_DOWN);
    fake_take(f);
    assert_int_equal(f->downs, 1);
    assert_int_equal(client_counters(f->client)->timeouts, 3);
    assert_int_equal(client_owner(f->client, key), 0);
    fake_expect(f, PROTO_HELLO); /* greeted at once */
    fake_close(f);
}

static void one_hiccup_is_one_time_out_however_many_wait(void **state)
{
    struct fake *f = fake_open(1);
    uint32_t tickets[10];
    struct tt_answer answer;
    (void)state;
    for (unsigned i = 0; i < 10; i++) {
        fake_ask(f, i, &tickets[i]);
        f->now += 10;
    }
    fake_wait(f, 5000);
    for (unsigned i = 0; i < 10; i++) {
        assert_int_equal(client_answer(f->client, tickets[i], f->now, &answer), CLIENT_LOST);
    }
    assert_int_equal(client_shard(f->client, 0).state, CLIENT_UP);
    assert_int_equal(client_counters(f->client)->timeouts, 10);
    assert_int_equal(rto_us(f), 4000);
    fake_close(f);
}

static void an_answer_in_time_ends_the_time_outs(void **state)
{
    struct fake *f = fake_open(1);
    struct tt_answer answer;
    uint32_t ticket;
    (void)state;
    for (unsigned i = 0; i < 10; i++) {
        fake_ask(f, 5, &ticket);
        f->now = client_deadline(f->client, ticket);
        assert_int_equal(client_answer(f->client, ticket, f->now, &answer), CLIENT_LOST);
        uint32_t request = fake_ask(f, 5, &ticket);
        f->now += 100;
        fake_answer(f, 0, request, (struct tt_answer){.verdict = TT_BUSY});
        assert_int_equal(client_answer(f->client, ticket, f->now, &answer), CLIENT_READY);
    }
    assert_int_equal(client_shard(f->client, 0).state, CLIENT_UP);
    assert_int_equal(rto_us(f), 2000);
    fake_close(f);
}

/* While the wait can still grow, a late answer saves the shard; at the longest wait it does not. */
static void late_answers_save_a_shard_only_while_the_wait_can_grow(void **state)
{
    struct fake *f = fake_open(1);
    struct tt_answer answer;
    uint32_t ticket;
    unsigned asks = 0;
    (void)state;
    while (client_shard(f->client, 0).state == CLIENT_UP) {
        uint32_t request = fake_ask(f, 5, &ticket);
        f->now = client_deadline(f->client, ticket);
        assert_int_equal(client_answer(f->client, ticket, f->now, &answer), CLIENT_LOST);
        fake_answer(f, 0, request, (struct tt_answer){.verdict = TT_BUSY});
        assert_true(++asks < 20);
    }
    /* 2, 4, 8 ... 128 ms, then three at 250 ms less the one that got there. */
    assert_int_equal(asks, 7 + 2);
    assert_true(client_counters(f->client)->late >= asks - 1);
    fake_close(f);
}

static void a_slower_shard_comes_back_at_its_own_pace(void **state)
{
    struct fake *f = fake_open(1);
    (void)state;
    fake_silence(f, 0);
    f->now += 30000;
    fake_welcome(f, 0);
    assert_int_equal(client_shard(f->client, 0).state, CLIENT_UP);
    assert_int_equal(client_shard(f->client, 0).rtt_us, 30000);
    fake_close(f);
}

static void a_port_that_takes_nothing_counts_as_silence(void **state)
{
    struct fake *f = fake_open(1);
    struct tt_ask ask = fake_ask_of(1);
    uint8_t where;
    (void)state;
    f->refusing[0] = true;
    for (unsigned i = 0; i < 100 && client_shards_up(f->client) > 0; i++, f->now += 1000) {
        assert_int_equal(client_ask(f->client, &ask, 1, f->now, &where), 0);
        assert_int_equal(where, CLIENT_NOWHERE);
    }
    assert_int_equal(client_shard(f->client, 0).state, CLIENT_DOWN);
    assert_in_range(f->now, 1000000 + 6000, 1000000 + 14000);
    assert_int_equal(client_outstanding(f->client), 0);
    fake_close(f);
}

static void what_is_outstanding_is_lost_when_the_shard_falls(void **state)
{
    struct fake *f = fake_open(2);
    struct tt_answer answer;
    uint32_t waiting, other;
    (void)state;
    uint64_t key = fake_key_of(f, 1);
    fake_ask(f, fake_key_of(f, 0), &other);
    fake_ask(f, key, &waiting);
    struct proto_message bye = {.type = PROTO_BYE};
    fake_say(f, 1, &bye);
    assert_int_equal(client_answer(f->client, waiting, f->now, &answer), CLIENT_LOST);
    assert_int_equal(client_answer(f->client, other, f->now, &answer), CLIENT_WAITING);
    fake_close(f);
}

/* ---- the map ---- */

static void few_keys_move_when_a_shard_dies_and_return_with_it(void **state)
{
    enum { N = 5, KEYS = 5000 };
    static unsigned before[KEYS], during[KEYS];
    unsigned owned[N] = {0}, moved = 0;
    struct fake *f = fake_open(N);
    (void)state;
    for (unsigned k = 0; k < KEYS; k++) {
        before[k] = client_owner(f->client, rng_mix(k));
        owned[before[k]]++;
    }
    for (unsigned s = 0; s < N; s++) {
        assert_in_range(owned[s], KEYS / N - 150, KEYS / N + 150);
    }
    fake_silence(f, 3);
    for (unsigned k = 0; k < KEYS; k++) {
        during[k] = client_owner(f->client, rng_mix(k));
        assert_int_not_equal(during[k], 3);
        assert_true(before[k] == 3 || before[k] == during[k]);
        moved += before[k] != during[k];
    }
    assert_int_equal(moved, owned[3]);
    fake_welcome(f, 3);
    for (unsigned k = 0; k < KEYS; k++) {
        assert_int_equal(client_owner(f->client, rng_mix(k)), before[k]);
    }
    fake_close(f);
}

/* Two clients that list the shards in another order agree. */
static void the_map_depends_on_boot_ids_alone(void **state)
{
    struct fake *f = fake_open(4), *g = fake_open_with((struct client_options){.shards = 4});
    (void)state;
    client_tick(g->client, g->now);
    for (unsigned s = 0; s < 4; s++) {
        fake_welcome_as(g, s, fake_boot(3 - s), 1);
    }
    for (unsigned k = 0; k < 1000; k++) {
        assert_int_equal(client_owner(f->client, rng_mix(k)),
                         3 - client_owner(g->client, rng_mix(k)));
    }
    fake_close(f);
    fake_close(g);
}

static void no_shard_owns_nothing(void **state)
{
    struct fake *f = fake_open_with((struct client_options){.shards = 1});
    struct tt_ask ask = fake_ask_of(1);
    struct tt_peek peek = {1, 2};
    struct tt_store store = {.key = 1};
    uint8_t where = 0;
    (void)state;
    assert_int_equal(client_owner(f->client, 1), CLIENT_NOWHERE);
    assert_int_equal(client_ask(f->client, &ask, 1, f->now, &where), 0);
    assert_int_equal(where, CLIENT_NOWHERE);
    assert_int_equal(client_peek(f->client, &peek, 1, f->now), 0);
    client_store(f->client, CLIENT_NOWHERE, &store);
    assert_int_equal(client_counters(f->client)->dropped, 1);
    fake_close(f);
}

/* ---- leaves that found no room ---- */

static uint8_t flags_of_next_hello(struct fake *f)
{
    const struct proto_message *m;
    while ((m = fake_next(f)) && m->type != PROTO_HELLO) {
    }
    assert_non_null(m);
    return m->hello.flags;
}

static void overflow_leaves(struct fake *f, unsigned shard)
{
    for (unsigned i = 0; i < 65; i++) { /* the queue has room for 64 */
        client_release(f->client, shard, &(struct tt_release){.key = i});
    }
}

static void lost_leaves_make_the_shard_let_go_of_all(void **state)
{
    struct fake *f = fake_open(1);
    (void)state;
    f->refusing[0] = true;
    overflow_leaves(f, 0);
    assert_int_equal(client_counters(f->client)->leaks, 1);
    fake_wait(f, 150000); /* a HELLO is not taken */
    f->refusing[0] = false;
    fake_forget(f);
    fake_wait(f, 1000);
    assert_int_equal(flags_of_next_hello(f), PROTO_RELEASE_ALL);
    assert_int_equal(client_shard(f->client, 0).state, CLIENT_UP);
    fake_welcome(f, 0);
    fake_forget(f);
    fake_wait(f, 150000);
    for (const struct proto_message *m; (m = fake_next(f));) {
        assert_int_not_equal(m->type, PROTO_HELLO); /* it knows */
    }
    fake_close(f);
}

static void a_leak_after_the_hello_needs_another(void **state)
{
    struct fake *f = fake_open(1);
    (void)state;
    f->refusing[0] = true;
    overflow_leaves(f, 0);
    f->refusing[0] = false;
    fake_forget(f);
    fake_wait(f, 150000);
    assert_int_equal(flags_of_next_hello(f), PROTO_RELEASE_ALL);
    f->refusing[0] = true;
    overflow_leaves(f, 0);
    f->refusing[0] = false;
    fake_welcome(f, 0); /* says nothing about what was lost since */
    fake_forget(f);
    fake_wait(f, 150000);
    assert_int_equal(flags_of_next_hello(f), PROTO_RELEASE_ALL);
    fake_close(f);
}

static void a_shard_that_returns_is_asked_to_release_all(void **state)
{
    struct fake *f = fake_open(2);
    (void)state;
    fake_silence(f, 1);
    overflow_leaves(f, 1);
    fake_forget(f);
    fake_wait(f, 150000);
    assert_int_equal(flags_of_next_hello(f), PROTO_RELEASE_ALL);
    fake_welcome(f, 1);
    fake_forget(f);
    client_hello(f->client, PROTO_CLIENT, 5, f->now);
    assert_int_equal(flags_of_next_hello(f), 0);
    fake_close(f);
}

/* ---- slow shards ---- */

/* Echoes a heartbeat of this shard so late. */
static void beat(struct fake *f, unsigned shard, uint64_t round_trip_us)
{
    const struct proto_message *m;
    uint64_t due = client_tick(f->client, f->now);
    for (;;) {
        while ((m = fake_next(f)) != NULL &&
               (m->type != PROTO_HEARTBEAT || f->message_shard != shard)) {
            if (m->type == PROTO_HEARTBEAT) { /* the other is near */
                struct proto_message echo = *m;
                unsigned from = f->message_shard;
                f->now += 100;
                fake_say(f, from, &echo);
            }
        }
        if (m != NULL) {
            break;
        }
        f->now = due;
        due = client_tick(f->client, f->now);
    }
    struct proto_message echo = *m;
    f->now += round_trip_us;
    fake_say(f, shard, &echo);
}

static unsigned owned_of_100(struct fake *f, unsigned shard)
{
    unsigned n = 0;
    for (uint64_t key = 1; key <= 100; key++) {
        n += client_owner(f->client, rng_mix(key)) == shard;
    }
    return n;
}

static void slow_shard_owns_nothing_until_it_is_fast(void **state)
{
    struct fake *f = fake_open(2);
    (void)state;
    assert_true(owned_of_100(f, 1) > 0);
    beat(f, 1, 100000);
    beat(f, 1, 100000);
    assert_true(owned_of_100(f, 1) > 0);
    beat(f, 1, 100000);
    assert_int_equal(owned_of_100(f, 1), 0);
    assert_int_equal(client_shards_up(f->client), 2); /* it gets jobs as before */
    uint64_t began = f->now;
    beat(f, 1, 1000);
    beat(f, 1, 100000); /* not three in a row */
    beat(f, 1, 1000);
    beat(f, 1, 1000);
    assert_int_equal(owned_of_100(f, 1), 0);
    beat(f, 1, 1000);
    assert_true(owned_of_100(f, 1) > 0);
    assert_true(f->now - began < 1000000);
    assert_int_equal(f->downs, 0);
    fake_close(f);
}

static void slow_shard_keeps_its_keys_where_that_is_wished(void **state)
{
    struct fake *f = fake_open_with((struct client_options){.shards = 2, .keeps_slow = true});
    (void)state;
    client_tick(f->client, f->now);
    f->now += 100;
    fake_forget(f);
    fake_welcome(f, 0);
    fake_welcome(f, 1);
    unsigned owned = owned_of_100(f, 1);
    for (unsigned i = 0; i < 6; i++) {
        beat(f, 1, 100000);
    }
    assert_true(owned > 0);
    assert_int_equal(owned_of_100(f, 1), owned);
    fake_close(f);
}

static void one_late_answer_makes_no_slow_shard(void **state)
{
    struct fake *f = fake_open(2);
    uint32_t ticket, request[8];
    (void)state;
    for (unsigned i = 0; i < 8; i++) { /* all begun before the first answer: one round trip */
        uint8_t where;
        struct tt_ask ask = fake_ask_of(fake_key_of(f, 1));
        ticket = client_ask(f->client, &ask, 1, f->now, &where);
        assert_int_not_equal(ticket, 0);
        request[i] = fake_expect(f, PROTO_RETRIEVE_ASK)->retrieve_ask.request;
    }
    f->now += 100000;
    for (unsigned i = 0; i < 8; i++) {
        fake_answer(f, 1, request[i], (struct tt_answer){.verdict = TT_BUSY});
    }
    assert_true(owned_of_100(f, 1) > 0);
    fake_close(f);
}

static void slow_shard_owns_all_when_the_fast_one_falls(void **state)
{
    struct fake *f = fake_open(2);
    (void)state;
    for (unsigned i = 0; i < 3; i++) {
        beat(f, 1, 100000);
    }
    assert_int_equal(owned_of_100(f, 1), 0);
    fake_forget(f);
    fake_silence(f, 0);
    assert_int_equal(owned_of_100(f, 1), 100);
    fake_welcome(f, 0);
    assert_int_equal(owned_of_100(f, 1), 0);
    fake_close(f);
}

static void all_shards_may_be_slow(void **state)
{
    struct fake *f = fake_open(2);
    (void)state;
    for (unsigned i = 0; i < 6; i++) {
        struct proto_message m[2];
        while (client_outstanding(f->client) < 2) {
            fake_wait(f, 50000);
        }
        m[0] = *fake_expect(f, PROTO_HEARTBEAT);
        m[1] = *fake_expect(f, PROTO_HEARTBEAT);
        f->now += 100000;
        fake_say(f, 0, &m[0]);
        fake_say(f, 1, &m[1]);
    }
    assert_true(owned_of_100(f, 0) > 0 && owned_of_100(f, 1) > 0);
    fake_close(f);
}

#define T(name) cmocka_unit_test(name)
int main(void)
{
    const struct CMUnitTest tests[] = {
        T(first_tick_greets_every_shard),
        T(hello_is_repeated_until_welcomed),
        T(hello_that_is_not_taken_is_tried_again_soon),
        T(welcome_that_comes_too_late_does_not_count),
        T(absurd_welcome_is_dropped),
        T(welcome_gives_the_first_sample),
        T(silence_takes_a_shard_out_after_three_time_outs),
        T(one_hiccup_is_one_time_out_however_many_wait),
        T(an_answer_in_time_ends_the_time_outs),
        T(late_answers_save_a_shard_only_while_the_wait_can_grow),
        T(a_slower_shard_comes_back_at_its_own_pace),
        T(a_port_that_takes_nothing_counts_as_silence),
        T(what_is_outstanding_is_lost_when_the_shard_falls),
        T(few_keys_move_when_a_shard_dies_and_return_with_it),
        T(the_map_depends_on_boot_ids_alone),
        T(no_shard_owns_nothing),
        T(lost_leaves_make_the_shard_let_go_of_all),
        T(a_leak_after_the_hello_needs_another),
        T(a_shard_that_returns_is_asked_to_release_all),
        T(slow_shard_owns_nothing_until_it_is_fast),
        T(slow_shard_keeps_its_keys_where_that_is_wished),
        T(one_late_answer_makes_no_slow_shard),
        T(slow_shard_owns_all_when_the_fast_one_falls),
        T(all_shards_may_be_slow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
