/* A client and shards joined by a network that loses, delays, repeats and reorders, with shards
 * that fall silent, restart, in another version of the protocol, and leave. Whatever happens: every
 * ticket ends by its deadline, none leaks, every answer is for the key that was asked, whatever
 * HELLOs change meanwhile, and in a healed network all is well. TEST_SEED=n
 * test_proto_client_random repeats one run; ROUNDS=n makes more of them. */
#include "common/rng.h"
#include "proto/client/client.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { SHARDS = 4, FLYING = 4096, BYTES = 1200, TICKETS = 24, PEEKS = 20 };

struct flying {
    bool used, to_client;
    unsigned shard;
    uint64_t at_us, order;
    size_t length;
    uint8_t bytes[BYTES];
};

struct fake_shard {
    uint64_t boot, silent_until_us, last_arrival_us;
    uint32_t session; /* 0: none */
};

struct asked {
    uint32_t id;
    bool is_peek;
    unsigned count;
    uint64_t deadline_us, keys[PEEKS];
};

struct world {
    uint64_t rng, now_us, order;
    unsigned loss_permille, repeat_permille;
    uint32_t delay_us, sessions;
    struct client *client;
    struct fake_shard shards[SHARDS];
    struct flying flying[FLYING];
    struct asked asked[TICKETS];
    unsigned ready, lost;
    struct proto_decoder decoder;
};

static uint16_t move_of(uint64_t key)
{
    return (uint16_t)rng_mix(key);
}

static bool chance(struct world *w, unsigned permille)
{
    return rng_below(&w->rng, 1000) < permille;
}

/* ---- the network ---- */

static void fly(struct world *w, bool to_client, unsigned shard, const uint8_t *bytes,
                size_t length)
{
    struct fake_shard *s = &w->shards[shard];
    assert_true(length <= BYTES);
    for (unsigned i = 0; i < FLYING; i++) {
        struct flying *m = &w->flying[i];
        if (!m->used) {
            *m = (struct flying){true, to_client, shard, 0, w->order++, length, {0}};
            memcpy(m->bytes, bytes, length);
            m->at_us = w->now_us + w->delay_us / 2 + rng_below(&w->rng, w->delay_us + 1);
            if (!to_client) { /* in order towards the shard, as a connection is */
                m->at_us = m->at_us > s->last_arrival_us ? m->at_us : s->last_arrival_us;
                s->last_arrival_us = m->at_us;
            }
            return;
        }
    }
    fail_msg("the network is full: too much is outstanding");
}

static bool world_send(void *self, unsigned shard, const uint8_t *bytes, size_t length)
{
    struct world *w = self;
    if (chance(w, w->loss_permille / 4)) {
        return false;
    }
    if (!chance(w, w->loss_permille)) {
        fly(w, false, shard, bytes, length);
    }
    return true;
}

static void reply(struct world *w, unsigned shard, const struct proto_message *m)
{
    uint8_t bytes[BYTES];
    size_t length = proto_encode(m, bytes, sizeof bytes);
    assert_true(length > 0);
    for (unsigned n = 1 + chance(w, w->repeat_permille); n > 0; n--) {
        if (!chance(w, w->loss_permille)) {
            fly(w, true, shard, bytes, length);
        }
    }
}

/* ---- the shards ---- */

static void shard_welcome(struct world *w, unsigned shard, const struct proto_hello *hello)
{
    struct fake_shard *s = &w->shards[shard];
    s->session = s->session ? s->session : ++w->sessions;
    struct proto_message m = {.type = PROTO_WELCOME};
    m.welcome =
        (struct proto_welcome){hello->request, s->session, s->boot, 1000, 16, 0, 0, s->boot};
    reply(w, shard, &m);
}

static void shard_answer_ask(struct world *w, unsigned shard, const struct proto_retrieve_ask *ask)
{
    struct tt_answer list[PEEKS];
    for (uint32_t i = 0; i < ask->list.count; i++) {
        list[i] = (struct tt_answer){.verdict = TT_CUT, .move = move_of(ask->list.at[i].key)};
    }
    struct proto_message m = {.type = PROTO_RETRIEVE_ANSWER};
    m.retrieve_answer = (struct proto_retrieve_answer){ask->request, {ask->list.count, list}};
    reply(w, shard, &m);
}

static void shard_answer_peek(struct world *w, unsigned shard, const struct proto_peek *peek)
{
    struct tt_peeked list[PEEKS];
    for (uint32_t i = 0; i < peek->list.count; i++) {
        list[i] = (struct tt_peeked){.depth = 1};
        list[i].move = move_of(peek->list.at[i].key);
    }
    struct proto_message m = {.type = PROTO_PEEK_ANSWER};
    m.peek_answer = (struct proto_peek_answer){peek->request, {peek->list.count, list}};
    reply(w, shard, &m);
}

static void shard_receive(struct world *w, unsigned shard, const uint8_t *bytes, size_t length)
{
    struct fake_shard *s = &w->shards[shard];
    struct proto_message m;
    if (w->now_us < s->silent_until_us) {
        return;
    }
    assert_int_equal(proto_decode(&w->decoder, bytes, length, &m), ERR_OK);
    if (m.type != PROTO_HELLO && s->session == 0) {
        struct proto_message no = {.type = PROTO_ERROR};
        no.error = (struct proto_error){PROTO_ERR_SESSION, 0, proto_text_of("")};
        reply(w, shard, &no);
        return;
    }
    switch (m.type) {
    case PROTO_HELLO:
        shard_welcome(w, shard, &m.hello);
        break;
    case PROTO_RETRIEVE_ASK:
        shard_answer_ask(w, shard, &m.retrieve_ask);
        break;
    case PROTO_PEEK:
        shard_answer_peek(w, shard, &m.peek);
        break;
    case PROTO_HEARTBEAT:
        reply(w, shard, &m);
        break;
    case PROTO_STORE_HASH:
        assert_true(m.store_hash.list.count <= 16);
        for (uint32_t i = 0; i < m.store_hash.list.count; i++) {
            const struct tt_store *store = &m.store_hash.list.at[i];
            assert_int_equal(store->move, move_of(store->key));
        }
        break;
    default:
        assert_int_equal(m.type, PROTO_RELEASE);
        break;
    }
}

static void trouble(struct world *w)
{
    unsigned shard = rng_below(&w->rng, SHARDS);
    struct fake_shard *s = &w->shards[shard];
    struct proto_message bye = {.type = PROTO_BYE};
    switch (rng_below(&w->rng, 4)) {
    case 0: /* killed and started again */
        s->boot = rng_next(&w->rng);
        s->session = 0;
        break;
    case 1:
        s->silent_until_us = w->now_us + rng_below(&w->rng, 400000);
        break;
    case 2: /* the session expired */
        s->session = 0;
        break;
    default:
        reply(w, shard, &bye);
        s->session = 0;
        s->boot = rng_next(&w->rng);
        break;
    }
}

/* ---- the searcher ---- */

static void ask_something(struct world *w, struct asked *a)
{
    uint8_t where[PEEKS];
    a->is_peek = chance(w, 300);
    a->count = a->is_peek || chance(w, 300) ? 1 + rng_below(&w->rng, PEEKS) : 1;
    for (unsigned i = 0; i < a->count; i++) {
        a->keys[i] = rng_next(&w->rng);
    }
    if (a->is_peek) {
        struct tt_peek peeks[PEEKS];
        for (unsigned i = 0; i < a->count; i++) {
            peeks[i] = (struct tt_peek){a->keys[i], 4};
        }
        a->id = client_peek(w->client, peeks, a->count, w->now_us);
    } else {
        struct tt_ask asks[PEEKS];
        unsigned sent = 0;
        for (unsigned i = 0; i < a->count; i++) {
            asks[i] = (struct tt_ask){.key = a->keys[i], .alpha = -1, .beta = 1, .depth = 4};
        }
        a->id = client_ask(w->client, asks, a->count, w->now_us, where);
        for (unsigned i = 0; i < a->count; i++) {
            sent += where[i] != CLIENT_NOWHERE;
            struct tt_store store = {.key = a->keys[i], .move = move_of(a->keys[i])};
            client_store(w->client, where[i], &store);
            struct tt_release release = {.key = a->keys[i]};
            client_release(w->client, where[i], &release);
        }
        assert_int_equal(sent == 0, a->id == 0);
    }
    if (a->id != 0) {
        a->deadline_us = client_deadline(w->client, a->id);
        assert_true(a->deadline_us > w->now_us && a->deadline_us <= w->now_us + 250000);
    }
}

static void check_one(struct world *w, struct asked *a)
{
    struct tt_answer answer[PEEKS];
    struct tt_peeked peeked[PEEKS];
    enum client_result result = a->is_peek ? client_peeked(w->client, a->id, w->now_us, peeked)
                                           : client_answer(w->client, a->id, w->now_us, answer);
    if (result == CLIENT_WAITING) {
        assert_true(w->now_us < a->deadline_us);
        return;
    }
    a->id = 0;
    w->ready += result == CLIENT_READY;
    w->lost += result == CLIENT_LOST;
    if (result == CLIENT_READY && !a->is_peek) {
        for (unsigned i = 0; i < a->count; i++) {
            bool lost = (int)answer[i].verdict == CLIENT_UNANSWERED;
            assert_true(a->count > 1 || !lost);
            assert_true(lost || answer[i].move == move_of(a->keys[i]));
        }
    } else if (result == CLIENT_READY) {
        for (unsigned i = 0; i < a->count; i++) {
            bool known = peeked[i].depth == 1;
            assert_int_equal(peeked[i].move, known ? move_of(a->keys[i]) : 0);
        }
    }
}

static void step(struct world *w, bool asks)
{
    uint64_t next = client_tick(w->client, w->now_us);
    struct flying *first = NULL;
    struct client_event event;
    assert_true(next > w->now_us);
    w->now_us += 1 + rng_below(&w->rng, 1000);
    /* Deliver what is due, oldest first. */
    for (;;) {
        first = NULL;
        for (unsigned i = 0; i < FLYING; i++) {
            struct flying *m = &w->flying[i];
            bool due = m->used && m->at_us <= w->now_us;
            if (due && (!first || m->at_us < first->at_us ||
                        (m->at_us == first->at_us && m->order < first->order))) {
                first = m;
            }
        }
        if (!first) {
            break;
        }
        struct flying m = *first;
        first->used = false;
        if (m.to_client) {
            client_receive(w->client, m.shard, m.bytes, m.length, w->now_us);
            while (client_next(w->client, &event)) {
            }
        } else {
            shard_receive(w, m.shard, m.bytes, m.length);
        }
    }
    for (unsigned i = 0; i < TICKETS; i++) {
        struct asked *a = &w->asked[i];
        if (a->id != 0 && chance(w, 5)) {
            client_cancel(w->client, a->id);
            a->id = 0;
        } else if (a->id != 0) {
            check_one(w, a);
        } else if (asks && chance(w, 300)) {
            ask_something(w, a);
        }
    }
}

static void heal(struct world *w)
{
    w->loss_permille = w->repeat_permille = 0;
    w->delay_us = 100;
    for (unsigned s = 0; s < SHARDS; s++) {
        w->shards[s].silent_until_us = 0;
    }
    for (unsigned i = 0; i < 3000; i++) {
        step(w, i < 2000);
    }
    assert_int_equal(client_shards_up(w->client), SHARDS);
    for (unsigned i = 0; i < TICKETS; i++) {
        assert_int_equal(w->asked[i].id, 0);
    }
    assert_true(client_outstanding(w->client) <= SHARDS); /* heartbeats */
    unsigned lost = w->lost, ready = w->ready;
    for (unsigned i = 0; i < 500; i++) {
        step(w, true);
    }
    assert_int_equal(w->lost, lost);
    assert_true(w->ready > ready + 1000);
}

static void run(uint64_t seed)
{
    struct world *w = calloc(1, sizeof *w);
    assert_non_null(w);
    w->rng = seed;
    w->now_us = 1 + rng_below(&w->rng, 1000000);
    w->loss_permille = rng_below(&w->rng, 4) * 50;
    w->repeat_permille = rng_below(&w->rng, 3) * 100;
    w->delay_us = 50 + rng_below(&w->rng, 3) * rng_below(&w->rng, 60000);
    struct client_options options = {
        .shards = SHARDS, .tickets = TICKETS, .ask_max = PEEKS, .peek_max = PEEKS};
    assert_int_equal(client_open(&options, world_send, w, &w->client), ERR_OK);
    for (unsigned s = 0; s < SHARDS; s++) {
        w->shards[s].boot = rng_next(&w->rng);
    }
    for (unsigned i = 0; i < 3000; i++) {
        step(w, true);
        if (chance(w, 3)) {
            trouble(w);
        }
        if (chance(w, 10)) {
            client_hello(w->client, PROTO_WORKER, rng_next(&w->rng), w->now_us);
        }
    }
    heal(w);
    client_free(&w->client);
    free(w);
}

static uint64_t given(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    return text ? strtoull(text, NULL, 0) : otherwise;
}

static void nothing_waits_for_ever_in_a_faulty_network(void **state)
{
    uint64_t seed = given("TEST_SEED", 0), rounds = given("ROUNDS", getenv("TEST_SEED") ? 1 : 12);
    (void)state;
    for (uint64_t i = 0; i < rounds; i++) {
        printf("TEST_SEED=%llu\n", (unsigned long long)(seed + i));
        run(seed + i);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_waits_for_ever_in_a_faulty_network),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
