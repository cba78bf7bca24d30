/* Asks, peeks, stores, releases through the client, and what happens to their tickets. */
#include "tests/support/test_proto_fake.h"

/* ---- asks ---- */

static void an_ask_is_answered(void **state)
{
    struct fake *f = fake_open(3);
    struct tt_answer answer = {.score = 99};
    struct tt_ask ask = {.key = 77, .depth = 9, .alpha = -5, .beta = 6, .flags = 3, .slot = 12};
    uint8_t where;
    (void)state;
    uint32_t ticket = client_ask(f->client, &ask, 1, f->now, &where);
    const struct proto_retrieve_ask *sent = &fake_expect(f, PROTO_RETRIEVE_ASK)->retrieve_ask;
    assert_int_equal(f->message_shard, where);
    assert_int_equal(where, client_owner(f->client, 77));
    assert_int_equal(sent->list.count, 1);
    assert_true(sent->list.at[0].key == 77 && sent->list.at[0].depth == 9);
    assert_true(sent->list.at[0].alpha == -5 && sent->list.at[0].beta == 6);
    assert_true(sent->list.at[0].flags == 3 && sent->list.at[0].slot == 12);
    assert_int_equal(client_answer(f->client, ticket, f->now, &answer), CLIENT_WAITING);
    assert_int_equal(answer.score, 99);
    fake_answer(f, where, sent->request,
                (struct tt_answer){.verdict = TT_OPEN, .alpha = 0, .beta = 6, .nproc = 2});
    assert_int_equal(client_answer(f->client, ticket, f->now + 1000000, &answer), CLIENT_READY);
    assert_int_equal(answer.alpha, 0);
    assert_int_equal(answer.nproc, 2);
    assert_int_equal(client_outstanding(f->client), 0);
    fake_close(f);
}

static void absurd_answers_do_not_reach_the_search(void **state)
{
    static const struct tt_answer absurd[] = {
        {.verdict = 3},
        {.verdict = TT_BUSY}, /* to an ask that was not exclusive */
        {.verdict = TT_CUT, .score = -32768},
        {.verdict = TT_OPEN, .alpha = 5, .beta = 5},
        {.verdict = TT_OPEN, .alpha = -11, .beta = 10}, /* wider than asked */
        {.verdict = TT_OPEN, .alpha = -10, .beta = 11},
    };
    struct fake *f = fake_open(1);
    struct tt_answer answer;
    uint32_t ticket;
    (void)state;
    for (unsigned i = 0; i < sizeof absurd / sizeof *absurd; i++) {
        struct tt_ask ask = fake_ask_of(1);
        uint8_t where;
        ask.flags = 0;
        ticket = client_ask(f->client, &ask, 1, f->now, &where);
        uint32_t request = fake_expect(f, PROTO_RETRIEVE_ASK)->retrieve_ask.request;
        fake_answer(f, 0, request, absurd[i]);
        assert_int_equal(client_answer(f->client, ticket, f->now, &answer), CLIENT_LOST);
    }
    assert_int_equal(client_counters(f->client)->malformed, 6);
    struct proto_message none = {.type = PROTO_RETRIEVE_ANSWER};
    none.retrieve_answer.request = fake_ask(f, 1, &ticket);
    fake_say(f, 0, &none);
    assert_int_equal(client_answer(f->client, ticket, f->now, &answer), CLIENT_LOST);
    fake_close(f);
}

static void answers_match_by_request_and_shard(void **state)
{
    struct fake *f = fake_open(2);
    struct tt_answer answer, busy = {.verdict = TT_BUSY};
    uint32_t ticket;
    (void)state;
    uint32_t request = fake_ask(f, fake_key_of(f, 0), &ticket);
    fake_answer(f, 1, request, busy);
    fake_answer(f, 0, request + 1, busy);
    struct proto_message m = {.type = PROTO_PEEK_ANSWER};
    m.peek_answer.request = request;
    fake_say(f, 0, &m);
    assert_int_equal(client_counters(f->client)->late, 3);
    assert_int_equal(client_answer(f->client, ticket, f->now, &answer), CLIENT_WAITING);
    fake_answer(f, 0, request, busy);
    fake_answer(f, 0, request, busy); /* twice: late */
    assert_int_equal(client_counters(f->client)->late, 4);
    assert_int_equal(client_answer(f->client, ticket, f->now, &answer), CLIENT_READY);
    fake_close(f);
}

static void junk_is_counted_and_dropped(void **state)
{
    struct fake *f = fake_open(1);
    struct proto_message ask = {.type = PROTO_STATS};
    (void)state;
    client_receive(f->client, 0, (const uint8_t *)"junk", 4, f->now);
    client_receive(f->client, 0, (const uint8_t *)"", 0, f->now);
    fake_say(f, 0, &ask); /* shards do not ask */
    assert_int_equal(client_counters(f->client)->malformed, 2);
    assert_int_equal(client_counters(f->client)->unexpected, 1);
    assert_int_equal(client_shards_up(f->client), 1);
    fake_close(f);
}

static void tickets_are_bounded_and_come_back(void **state)
{
    struct fake *f = fake_open_with((struct client_options){.shards = 1, .tickets = 3});
    struct tt_answer answer;
    struct tt_ask ask = fake_ask_of(1);
    uint32_t tickets[3];
    uint8_t where;
    (void)state;
    client_tick(f->client, f->now);
    fake_welcome(f, 0);
    for (unsigned round = 0; round < 100; round++) {
        for (unsigned i = 0; i < 3; i++) {
            tickets[i] = client_ask(f->client, &ask, 1, f->now, &where);
            assert_int_not_equal(tickets[i], 0);
        }
        assert_int_equal(client_ask(f->client, &ask, 1, f->now, &where), 0);
        assert_int_equal(where, CLIENT_NOWHERE);
        for (unsigned i = 0; i < 3; i++) {
            struct proto_message m = *fake_next(f);
            m = m.type == PROTO_HELLO ? *fake_next(f) : m;
            fake_answer(f, 0, m.retrieve_ask.request, (struct tt_answer){.verdict = TT_BUSY});
        }
        for (unsigned i = 0; i < 3; i++) {
            assert_int_equal(client_answer(f->client, tickets[i], f->now, &answer), CLIENT_READY);
        }
    }
    assert_int_equal(client_counters(f->client)->exhausted, 100);
    fake_close(f);
}

static void a_cancelled_ask_gives_its_place_back(void **state)
{
    struct fake *f = fake_open(1);
    struct tt_peek peek = {1, 1};
    uint32_t ticket;
    (void)state;
    uint32_t request = fake_ask(f, 5, &ticket);
    client_cancel(f->client, ticket);
    assert_int_equal(client_outstanding(f->client), 0);
    fake_answer(f, 0, request, (struct tt_answer){.verdict = TT_OPEN, .beta = 1});
    client_flush(f->client, f->now);
    const struct proto_release *sent = &fake_expect(f, PROTO_RELEASE)->release;
    assert_true(sent->list.at[0].key == 5 && sent->list.at[0].depth == 5);
    request = fake_ask(f, 6, &ticket);
    fake_answer(f, 0, request, (struct tt_answer){.verdict = TT_BUSY});
    client_cancel(f->client, ticket); /* BUSY: was no holder */
    client_cancel(f->client, client_peek(f->client, &peek, 1, f->now));
    fake_expect(f, PROTO_PEEK);
    client_flush(f->client, f->now);
    assert_null(fake_next(f));
    fake_close(f);
}

static void a_forgotten_ask_is_left_by_the_caller_alone(void **state)
{
    struct fake *f = fake_open(1);
    uint32_t ticket;
    (void)state;
    uint32_t request = fake_ask(f, 5, &ticket);
    client_forget(f->client, ticket);
    assert_int_equal(client_outstanding(f->client), 0);
    client_store(f->client, 0, &(struct tt_store){.key = 5, .depth = 5, .bound = TT_EXACT});
    client_flush(f->client, f->now);
    assert_int_equal(fake_expect(f, PROTO_STORE_HASH)->store_hash.list.count, 1);
    assert_null(fake_next(f)); /* no RELEASE beside it */
    fake_answer(f, 0, request, (struct tt_answer){.verdict = TT_OPEN, .beta = 1});
    assert_int_equal(client_counters(f->client)->late, 1);
    fake_close(f);
}

/* Each once, whatever became of the others. */
static void deferred_asks_are_handed_over_when_they_are_answered(void **state)
{
    struct fake *f = fake_open(1);
    struct tt_answer answer;
    struct tt_ask ask;
    uint32_t ticket[4], request[4];
    (void)state;
    for (unsigned i = 0; i < 4; i++) {
        request[i] = fake_ask(f, 10 + i, &ticket[i]);
        assert_false(client_is_deferred(f->client, ticket[i]));
        client_defer(f->client, ticket[i]);
        assert_true(client_is_deferred(f->client, ticket[i]));
    }
    assert_int_equal(client_deferred(f->client), 4);
    assert_false(client_next_deferred(f->client, f->now, &ask, &answer));
    client_forget(f->client, ticket[0]);
    fake_answer(f, 0, request[2], (struct tt_answer){.verdict = TT_BUSY});
    assert_true(client_next_deferred(f->client, f->now, &ask, &answer));
    assert_true(ask.key == 12 && answer.verdict == TT_BUSY);
    assert_false(client_next_deferred(f->client, f->now, &ask, &answer));
    assert_false(client_is_deferred(f->client, ticket[0]));
    assert_false(client_is_deferred(f->client, ticket[2]));
    assert_int_equal(client_deferred(f->client), 2);
    f->now = client_deadline(f->client, ticket[1]);
    assert_false(client_next_deferred(f->client, f->now, &ask, &answer)); /* lost */
    assert_int_equal(client_deferred(f->client), 0);
    fake_close(f);
}

/* ---- peeks ---- */

/* Answers the peek just sent: nproc is made of the key, so that order can be checked. */
static unsigned answer_peek(struct fake *f)
{
    static struct tt_peeked list[1024];
    const struct proto_peek *sent = &fake_expect(f, PROTO_PEEK)->peek;
    unsigned count = sent->list.count, shard = f->message_shard;
    for (unsigned i = 0; i < count; i++) {
        list[i] = (struct tt_peeked){.lower = -5, .upper = 5};
        list[i].nproc = (uint16_t)sent->list.at[i].key;
        assert_int_equal(client_owner(f->client, sent->list.at[i].key), shard);
    }
    struct proto_message m = {.type = PROTO_PEEK_ANSWER};
    m.peek_answer.request = sent->request;
    m.peek_answer.list = (struct proto_peekeds){count, list};
    fake_say(f, shard, &m);
    return count;
}

enum { POSITIONS = 40 };

static uint32_t peek_at_many(struct fake *f)
{
    struct tt_peek peeks[POSITIONS];
    for (unsigned i = 0; i < POSITIONS; i++) {
        peeks[i] = (struct tt_peek){.key = rng_mix(i), .depth = 3};
    }
    uint32_t ticket = client_peek(f->client, peeks, POSITIONS, f->now);
    assert_int_not_equal(ticket, 0);
    return ticket;
}

static void a_split_peek_comes_back_in_order(void **state)
{
    struct fake *f = fake_open(4);
    struct tt_peeked out[POSITIONS];
    unsigned answered = 0;
    (void)state;
    uint32_t ticket = peek_at_many(f);
    for (unsigned s = 0; s < 4; s++) {
        assert_int_equal(client_peeked(f->client, ticket, f->now, out), CLIENT_WAITING);
        answered += answer_peek(f);
    }
    assert_null(fake_next(f));
    assert_int_equal(answered, POSITIONS);
    assert_int_equal(client_peeked(f->client, ticket, f->now, out), CLIENT_READY);
    for (unsigned i = 0; i < POSITIONS; i++) {
        assert_int_equal(out[i].nproc, rng_mix(i) & 0xffff);
    }
    fake_close(f);
}

static void a_lost_part_of_a_peek_is_unknown(void **state)
{
    struct fake *f = fake_open(4);
    struct tt_peeked out[POSITIONS];
    (void)state;
    uint32_t ticket = peek_at_many(f);
    answer_peek(f);
    fake_expect(f, PROTO_PEEK); /* shard 1 stays silent */
    answer_peek(f);
    answer_peek(f);
    f->now = client_deadline(f->client, ticket);
    assert_int_equal(client_peeked(f->client, ticket, f->now, out), CLIENT_READY);
    for (unsigned i = 0; i < POSITIONS; i++) {
        bool lost = client_owner(f->client, rng_mix(i)) == 1;
        assert_int_equal(out[i].nproc, lost ? 0 : rng_mix(i) & 0xffff);
        assert_int_equal(out[i].lower, lost ? TT_SCORE_MIN : -5);
        assert_int_equal(out[i].upper, lost ? TT_SCORE_MAX : 5);
    }
    fake_close(f);
}

static void a_peek_lost_everywhere_is_lost(void **state)
{
    struct fake *f = fake_open(2);
    struct tt_peeked out[POSITIONS];
    (void)state;
    uint32_t ticket = peek_at_many(f);
    f->now = client_deadline(f->client, ticket);
    assert_int_equal(client_peeked(f->client, ticket, f->now, out), CLIENT_LOST);
    f->refusing[0] = f->refusing[1] = true;
    struct tt_peek peek = {1, 1};
    assert_int_equal(client_peek(f->client, &peek, 1, f->now), 0);
    assert_int_equal(client_outstanding(f->client), 0);
    fake_close(f);
}

static void a_peek_answer_of_another_length_is_refused(void **state)
{
    struct fake *f = fake_open(1);
    struct tt_peek peek[2] = {{1, 1}, {2, 2}};
    struct tt_peeked out[2], one = {0, 0, 0, 0, 0}, low[2] = {{-32768, 0, 0, 0, 0}};
    (void)state;
    struct proto_message m = {.type = PROTO_PEEK_ANSWER};
    uint32_t ticket = client_peek(f->client, peek, 2, f->now);
    m.peek_answer.request = fake_expect(f, PROTO_PEEK)->peek.request;
    m.peek_answer.list = (struct proto_peekeds){1, &one};
    fake_say(f, 0, &m);
    assert_int_equal(client_peeked(f->client, ticket, f->now, out), CLIENT_LOST);
    ticket = client_peek(f->client, peek, 2, f->now);
    m.peek_answer.request = fake_expect(f, PROTO_PEEK)->peek.request;
    m.peek_answer.list = (struct proto_peekeds){2, low};
    fake_say(f, 0, &m);
    assert_int_equal(client_peeked(f->client, ticket, f->now, out), CLIENT_LOST);
    fake_close(f);
}

static void a_peek_respects_the_batch_of_the_shard(void **state)
{
    struct fake *f = fake_open_with((struct client_options){.shards = 1});
    struct tt_peeked out[POSITIONS];
    (void)state;
    client_tick(f->client, f->now);
    struct proto_message m = {.type = PROTO_WELCOME};
    m.welcome = (struct proto_welcome){
        .request = f->hello[0], .heartbeat_ms = 1000, .batch_max = 16, .boot = 1};
    fake_say(f, 0, &m);
    fake_forget(f);
    uint32_t ticket = peek_at_many(f);
    assert_int_equal(answer_peek(f), 16);
    assert_int_equal(answer_peek(f), 16);
    assert_int_equal(answer_peek(f), 8);
    assert_int_equal(client_peeked(f->client, ticket, f->now, out), CLIENT_READY);
    for (unsigned i = 0; i < POSITIONS; i++) {
        assert_int_equal(out[i].nproc, rng_mix(i) & 0xffff);
    }
    for (unsigned i = 0; i < 20; i++) {
        client_store(f->client, 0, &(struct tt_store){.key = i});
    }
    client_flush(f->client, f->now);
    assert_int_equal(fake_expect(f, PROTO_STORE_HASH)->store_hash.list.count, 16);
    const struct proto_store_hash *rest = &fake_expect(f, PROTO_STORE_HASH)->store_hash;
    assert_int_equal(rest->list.count, 4);
    assert_int_equal(rest->list.at[0].key, 16);
    fake_close(f);
}

/* ---- stores and releases ---- */

static void stores_wait_and_go_before_the_next_ask(void **state)
{
    struct fake *f = fake_open(1);
    uint32_t ticket;
    (void)state;
    client_store(f->client, 0, &(struct tt_store){.key = 1, .score = 5, .depth = 2});
    client_release(f->client, 0, &(struct tt_release){.key = 2});
    client_store(f->client, 0, &(struct tt_store){.key = 3});
    assert_null(fake_next(f));
    struct tt_ask ask = fake_ask_of(4);
    uint8_t where;
    ticket = client_ask(f->client, &ask, 1, f->now, &where);
    const struct proto_message *m = fake_expect(f, PROTO_STORE_HASH);
    assert_int_equal(m->store_hash.list.count, 2);
    assert_int_equal(m->store_hash.list.at[0].score, 5);
    assert_int_equal(m->store_hash.list.at[1].key, 3);
    assert_int_equal(fake_expect(f, PROTO_RELEASE)->release.list.at[0].key, 2);
    fake_expect(f, PROTO_RETRIEVE_ASK);
    assert_int_equal(client_counters(f->client)->stores, 2);
    client_release(f->client, 0, &(struct tt_release){.key = 9});
    client_cancel(f->client, ticket);
    struct tt_peek peek = {1, 1};
    client_peek(f->client, &peek, 1, f->now);
    assert_int_equal(fake_expect(f, PROTO_RELEASE)->release.list.count, 2);
    fake_expect(f, PROTO_PEEK);
    fake_close(f);
}

static void a_full_queue_and_time_send_stores(void **state)
{
    struct fake *f = fake_open(1);
    (void)state;
    for (unsigned i = 0; i < 64; i++) {
        assert_null(fake_next(f));
        client_store(f->client, 0, &(struct tt_store){.key = i});
    }
    assert_int_equal(fake_expect(f, PROTO_STORE_HASH)->store_hash.list.count, 64);
    client_tick(f->client, f->now);
    client_release(f->client, CLIENT_NOWHERE, &(struct tt_release){.key = 1});
    client_release(f->client, 0, &(struct tt_release){.key = 1});
    assert_int_equal(client_tick(f->client, f->now), f->now + 1000);
    fake_wait(f, 999);
    assert_null(fake_next(f));
    fake_wait(f, 1);
    assert_int_equal(fake_expect(f, PROTO_RELEASE)->release.list.count, 1);
    fake_close(f);
}

static void stores_the_port_refuses_are_kept_while_there_is_room(void **state)
{
    struct fake *f = fake_open(1);
    (void)state;
    f->refusing[0] = true;
    for (unsigned i = 0; i < 100; i++) {
        client_store(f->client, 0, &(struct tt_store){.key = i});
    }
    assert_int_equal(client_counters(f->client)->dropped, 36);
    assert_true(client_tick(f->client, f->now + 5000) > f->now + 5000);
    f->refusing[0] = false;
    client_flush(f->client, f->now);
    const struct proto_store_hash *sent = &fake_expect(f, PROTO_STORE_HASH)->store_hash;
    assert_int_equal(sent->list.count, 64);
    assert_int_equal(sent->list.at[0].key, 0);
    fake_close(f);
}

static void a_key_that_moved_is_stored_here_and_released_there(void **state)
{
    struct fake *f = fake_open(2);
    struct tt_answer answer;
    uint32_t ticket;
    (void)state;
    uint64_t key = fake_key_of(f, 1);
    fake_silence(f, 1);
    fake_answer(f, 0, fake_ask(f, key, &ticket), (struct tt_answer){.beta = 1});
    assert_int_equal(client_answer(f->client, ticket, f->now, &answer), CLIENT_READY);
    fake_welcome(f, 1); /* and owns it again */
    client_store(f->client, 0, &(struct tt_store){.key = key, .depth = 4, .slot = 2});
    client_flush(f->client, f->now);
    struct proto_message m = *fake_expect(f, PROTO_RELEASE);
    assert_int_equal(f->message_shard, 0);
    assert_true(m.release.list.at[0].key == key && m.release.list.at[0].slot == 2);
    assert_int_equal(m.release.list.at[0].depth, 4);
    m = *fake_expect(f, PROTO_STORE_HASH);
    assert_int_equal(f->message_shard, 1);
    client_store(f->client, CLIENT_NOWHERE, &(struct tt_store){.key = key});
    client_flush(f->client, f->now);
    fake_expect(f, PROTO_STORE_HASH);
    assert_int_equal(f->message_shard, 1);
    assert_null(fake_next(f));
    fake_close(f);
}

static void releases_wait_for_a_shard_to_come_back(void **state)
{
    struct fake *f = fake_open(2);
    uint64_t key = fake_key_of(f, 1);
    (void)state;
    for (unsigned round = 0; round < 2; round++) {
        fake_silence(f, 1);
        client_store(f->client, 1, &(struct tt_store){.key = key});
        client_flush(f->client, f->now);
        fake_expect(f, PROTO_STORE_HASH);
        assert_int_equal(f->message_shard, 0);
        fake_welcome_as(f, 1, fake_boot(1), 7 + round); /* then a new session: it may have it */
        assert_int_equal(fake_expect(f, PROTO_RELEASE)->release.list.at[0].key, key);
        assert_null(fake_next(f));
    }
    fake_close(f);
}

/* Found by chaos, seed 3538: the successor had the ask before the client read the BYE. */
static void releases_outlive_the_bye_of_a_shard(void **state)
{
    struct fake *f = fake_open(1);
    struct proto_message bye = {.type = PROTO_BYE};
    (void)state;
    client_release(f->client, 0, &(struct tt_release){.key = 1});
    client_store(f->client, 0, &(struct tt_store){.key = 2});
    fake_say(f, 0, &bye);
    fake_wait(f, 100000);
    fake_expect(f, PROTO_HELLO);
    fake_welcome_as(f, 0, fake_boot(0) + 1, 1);
    const struct proto_releases *sent = &fake_expect(f, PROTO_RELEASE)->release.list;
    assert_int_equal(sent->count, 2);
    assert_true(sent->at[0].key == 1 && sent->at[1].key == 2);
    assert_null(fake_next(f));
    fake_close(f);
}

/* Found by chaos, seed 606: the shard kept counting us until the age limit. */
static void stores_queued_when_a_shard_falls_become_releases(void **state)
{
    struct fake *f = fake_open(2);
    struct tt_answer answer;
    uint64_t key = fake_key_of(f, 1);
    (void)state;
    while (client_shard(f->client, 1).state == CLIENT_UP) {
        uint8_t where;
        struct tt_ask ask = fake_ask_of(key);
        uint32_t ticket = client_ask(f->client, &ask, 1, f->now, &where);
        client_store(f->client, 1, &(struct tt_store){.key = key, .depth = 5, .slot = 3});
        f->now = client_deadline(f->client, ticket);
        assert_int_equal(client_answer(f->client, ticket, f->now, &answer), CLIENT_LOST);
    }
    fake_forget(f);
    fake_welcome(f, 1); /* with the session we had */
    const struct proto_release *sent = &fake_expect(f, PROTO_RELEASE)->release;
    assert_int_equal(f->message_shard, 1);
    assert_int_equal(sent->list.count, 1);
    assert_true(sent->list.at[0].key == key && sent->list.at[0].depth == 5);
    assert_int_equal(sent->list.at[0].slot, 3);
    assert_null(fake_next(f));
    fake_close(f);
}

/* Operations and messages that were sent, not those that the port did not take. */
static void operations_and_their_messages_are_counted(void **state)
{
    struct fake *f = fake_open(1);
    const struct client_counters *now = client_counters(f->client);
    const struct client_counters before = *now;
    struct tt_store store = {.key = 1, .depth = 5};
    struct tt_release release = {.key = 2, .depth = 5};
    size_t length[3]; /* of stores, releases, asks */
    uint32_t ticket;
    (void)state;
    for (unsigned i = 0; i < 3; i++) {
        client_store(f->client, 0, &store);
    }
    client_release(f->client, 0, &release);
    client_flush(f->client, f->now);
    for (unsigned i = 0; i < 2; i++) {
        fake_expect(f, i == 0 ? PROTO_STORE_HASH : PROTO_RELEASE);
        length[i] = f->sent[(f->head - 1) % SENT_MAX].length;
    }
    uint32_t request = fake_ask(f, 4, &ticket);
    length[2] = f->sent[(f->head - 1) % SENT_MAX].length;
    fake_answer(f, 0, request, (struct tt_answer){.verdict = TT_BUSY});
    f->refusing[0] = true;
    client_store(f->client, 0, &store);
    client_flush(f->client, f->now);
    assert_true(now->asks - before.asks == 1 && now->stores == 3 && now->releases == 1);
    assert_int_equal(now->messages_sent - before.messages_sent, 3);
    assert_int_equal(now->messages_received - before.messages_received, 1);
    assert_true(now->ask_messages == 1 && now->ask_bytes == length[2]);
    assert_true(now->store_messages == 1 && now->store_bytes == length[0]);
    assert_int_equal(now->bytes_sent - before.bytes_sent, length[0] + length[1] + length[2]);
    fake_close(f);
}

#define T(name) cmocka_unit_test(name)
int main(void)
{
    const struct CMUnitTest tests[] = {
        T(an_ask_is_answered),
        T(absurd_answers_do_not_reach_the_search),
        T(answers_match_by_request_and_shard),
        T(junk_is_counted_and_dropped),
        T(tickets_are_bounded_and_come_back),
        T(a_cancelled_ask_gives_its_place_back),
        T(a_forgotten_ask_is_left_by_the_caller_alone),
        T(deferred_asks_are_handed_over_when_they_are_answered),
        T(a_split_peek_comes_back_in_order),
        T(a_lost_part_of_a_peek_is_unknown),
        T(a_peek_lost_everywhere_is_lost),
        T(a_peek_answer_of_another_length_is_refused),
        T(a_peek_respects_the_batch_of_the_shard),
        T(stores_wait_and_go_before_the_next_ask),
        T(a_full_queue_and_time_send_stores),
        T(stores_the_port_refuses_are_kept_while_there_is_room),
        T(a_key_that_moved_is_stored_here_and_released_there),
        T(releases_wait_for_a_shard_to_come_back),
        T(releases_outlive_the_bye_of_a_shard),
        T(stores_queued_when_a_shard_falls_become_releases),
        T(operations_and_their_messages_are_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
