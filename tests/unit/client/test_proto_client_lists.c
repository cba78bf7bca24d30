/* Lists of asks through the client: which messages they make, and what is said of each ask. */
#include "tests/support/test_proto_fake.h"

enum { ASKS = 40 };

/* batch_max: of shard 0; the others take any list. */
static struct fake *fake_open_lists(unsigned shards, unsigned batch_max)
{
    struct client_options options = {.shards = shards, .ask_max = ASKS, .tickets = 4, .lists = 2};
    struct fake *f = fake_open_with(options);
    client_tick(f->client, f->now);
    for (unsigned s = 0; s < shards; s++) {
        struct proto_message m = {.type = PROTO_WELCOME};
        m.welcome = (struct proto_welcome){.request = f->hello[s],
                                           .heartbeat_ms = 1000,
                                           .batch_max = s == 0 ? batch_max : 1024,
                                           .boot = fake_boot(s),
                                           .place = fake_boot(s)};
        fake_say(f, s, &m);
    }
    fake_forget(f);
    return f;
}

static uint32_t ask_many(struct fake *f, uint8_t where[ASKS])
{
    struct tt_ask asks[ASKS];
    for (unsigned i = 0; i < ASKS; i++) {
        asks[i] = fake_ask_of(rng_mix(i));
    }
    return client_ask(f->client, asks, ASKS, f->now, where);
}

/* Answers the next message; returns how many asks it had. */
static unsigned answer_asks(struct fake *f)
{
    struct tt_answer list[ASKS];
    const struct proto_retrieve_ask *sent = &fake_expect(f, PROTO_RETRIEVE_ASK)->retrieve_ask;
    unsigned count = sent->list.count, shard = f->message_shard;
    for (unsigned i = 0; i < count; i++) {
        list[i] = (struct tt_answer){.verdict = TT_CUT, .move = (uint16_t)sent->list.at[i].key};
        assert_int_equal(client_owner(f->client, sent->list.at[i].key), shard);
    }
    struct proto_message m = {.type = PROTO_RETRIEVE_ANSWER};
    m.retrieve_answer.request = sent->request;
    m.retrieve_answer.list = (struct proto_answers){count, list};
    fake_say(f, shard, &m);
    return count;
}

static void a_list_of_asks_is_one_message_an_owner(void **state)
{
    struct fake *f = fake_open_lists(4, 1024);
    struct tt_answer out[ASKS];
    uint8_t where[ASKS];
    unsigned answered = 0;
    (void)state;
    uint32_t ticket = ask_many(f, where);
    assert_int_equal(f->tail - f->head, 4);
    for (unsigned s = 0; s < 4; s++) {
        assert_int_equal(client_answer(f->client, ticket, f->now, out), CLIENT_WAITING);
        answered += answer_asks(f);
    }
    assert_int_equal(answered, ASKS);
    assert_int_equal(client_counters(f->client)->asks, ASKS);
    assert_int_equal(client_answer(f->client, ticket, f->now, out), CLIENT_READY);
    for (unsigned i = 0; i < ASKS; i++) {
        assert_int_equal(out[i].move, rng_mix(i) & 0xffff);
        assert_int_equal(where[i], client_owner(f->client, rng_mix(i)));
    }
    assert_int_equal(client_outstanding(f->client), 0);
    fake_close(f);
}

static void a_list_of_asks_respects_the_batch_of_the_shard(void **state)
{
    struct fake *f = fake_open_lists(1, 16);
    struct tt_answer out[ASKS];
    uint8_t where[ASKS];
    (void)state;
    uint32_t ticket = ask_many(f, where);
    assert_int_equal(answer_asks(f), 16);
    assert_int_equal(answer_asks(f), 16);
    assert_int_equal(answer_asks(f), 8);
    assert_null(fake_next(f));
    assert_int_equal(client_answer(f->client, ticket, f->now, out), CLIENT_READY);
    for (unsigned i = 0; i < ASKS; i++) {
        assert_int_equal(out[i].move, rng_mix(i) & 0xffff);
    }
    fake_close(f);
}

static void a_shard_of_tiny_batches_leaves_the_others_their_share(void **state)
{
    enum { SHARE = 4 + 4 }; /* tickets, and four more */
    struct fake *f = fake_open_lists(2, 1);
    uint8_t where[ASKS];
    (void)state;
    for (unsigned list = 0; list < 2; list++) {
        unsigned asked[2] = {0}, owned[2] = {0};
        assert_int_not_equal(ask_many(f, where), 0);
        for (unsigned i = 0; i < ASKS; i++) {
            unsigned owner = client_owner(f->client, rng_mix(i));
            owned[owner]++;
            asked[owner] += where[i] == owner;
            assert_true(where[i] == owner || where[i] == CLIENT_NOWHERE);
        }
        assert_true(owned[0] > SHARE);
        assert_int_equal(asked[0], list == 0 ? SHARE : 0);
        assert_int_equal(asked[1], owned[1]);
    }
    assert_int_equal(client_outstanding(f->client), SHARE + 2);
    fake_forget(f);
    client_hello(f->client, PROTO_WORKER, 1, f->now);
    fake_expect(f, PROTO_HELLO);
    fake_expect(f, PROTO_HELLO);
    assert_null(fake_next(f));
    fake_close(f);
}

static void what_is_lost_or_not_sent_of_a_list_is_said(void **state)
{
    struct fake *f = fake_open_lists(4, 1024);
    struct tt_answer out[ASKS];
    uint8_t where[ASKS];
    (void)state;
    f->refusing[2] = true;
    uint32_t ticket = ask_many(f, where);
    answer_asks(f);
    fake_expect(f, PROTO_RETRIEVE_ASK); /* shard 1 stays silent */
    answer_asks(f);
    assert_null(fake_next(f));
    f->now = client_deadline(f->client, ticket);
    assert_int_equal(client_answer(f->client, ticket, f->now, out), CLIENT_READY);
    for (unsigned i = 0; i < ASKS; i++) {
        unsigned owner = client_owner(f->client, rng_mix(i));
        assert_int_equal(where[i], owner == 2 ? CLIENT_NOWHERE : owner);
        assert_int_equal((int)out[i].verdict,
                         owner == 1 || owner == 2 ? (int)CLIENT_UNANSWERED : (int)TT_CUT);
    }
    ticket = ask_many(f, where);
    f->now = client_deadline(f->client, ticket);
    assert_int_equal(client_answer(f->client, ticket, f->now, out), CLIENT_LOST);
    f->refusing[0] = f->refusing[1] = f->refusing[3] = true;
    assert_int_equal(ask_many(f, where), 0);
    assert_int_equal(where[0], CLIENT_NOWHERE);
    assert_int_equal(client_outstanding(f->client), 0);
    fake_close(f);
}

static void lists_are_bounded_and_a_cancelled_one_is_released(void **state)
{
    struct fake *f = fake_open_lists(1, 1024);
    uint8_t where[ASKS];
    uint32_t single;
    (void)state;
    uint32_t one = ask_many(f, where), two = ask_many(f, where);
    assert_true(one != 0 && two != 0);
    assert_int_equal(ask_many(f, where), 0);
    answer_asks(f);
    fake_forget(f);
    (void)fake_ask(f, 7, &single); /* one ask needs no list */
    client_cancel(f->client, one); /* all CUT */
    client_cancel(f->client, two);
    client_flush(f->client, f->now);
    assert_int_equal(fake_expect(f, PROTO_RELEASE)->release.list.count, ASKS);
    assert_null(fake_next(f));
    assert_int_not_equal(ask_many(f, where), 0);
    fake_close(f);
}

static void an_absurd_answer_spoils_no_other_of_its_list(void **state)
{
    struct fake *f = fake_open_lists(1, 1024);
    struct tt_ask asks[2] = {fake_ask_of(1), fake_ask_of(2)};
    struct tt_answer list[2] = {{.verdict = 3}, {.verdict = TT_BUSY}}, out[2];
    uint8_t where[2];
    (void)state;
    struct proto_message m = {.type = PROTO_RETRIEVE_ANSWER};
    uint32_t ticket = client_ask(f->client, asks, 2, f->now, where);
    m.retrieve_answer.request = fake_expect(f, PROTO_RETRIEVE_ASK)->retrieve_ask.request;
    m.retrieve_answer.list = (struct proto_answers){2, list};
    fake_say(f, 0, &m);
    assert_int_equal(client_answer(f->client, ticket, f->now, out), CLIENT_READY);
    assert_true((int)out[0].verdict == CLIENT_UNANSWERED && out[1].verdict == TT_BUSY);
    assert_int_equal(client_counters(f->client)->malformed, 1);
    ticket = client_ask(f->client, asks, 2, f->now, where);
    m.retrieve_answer.request = fake_expect(f, PROTO_RETRIEVE_ASK)->retrieve_ask.request;
    m.retrieve_answer.list = (struct proto_answers){1, &list[1]};
    fake_say(f, 0, &m);
    assert_int_equal(client_answer(f->client, ticket, f->now, out), CLIENT_LOST);
    fake_close(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_list_of_asks_is_one_message_an_owner),
        cmocka_unit_test(a_list_of_asks_respects_the_batch_of_the_shard),
        cmocka_unit_test(a_shard_of_tiny_batches_leaves_the_others_their_share),
        cmocka_unit_test(what_is_lost_or_not_sent_of_a_list_is_said),
        cmocka_unit_test(lists_are_bounded_and_a_cancelled_one_is_released),
        cmocka_unit_test(an_absurd_answer_spoils_no_other_of_its_list),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
