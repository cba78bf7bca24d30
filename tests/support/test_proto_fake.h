/* A client whose port writes down what it sends, and whose events are counted: virtual time. */
#ifndef TESTS_SUPPORT_TEST_PROTO_FAKE_H
#define TESTS_SUPPORT_TEST_PROTO_FAKE_H

#include "common/rng.h"
#include "proto/client/client.h"
#include "tests/support/test_proto_names.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { SENT_MAX = 512, SENT_BYTES = 4096 };

struct sent {
    unsigned shard;
    size_t length;
    uint8_t bytes[SENT_BYTES];
};

struct fake {
    struct client *client;
    uint64_t now;
    bool refusing[CLIENT_SHARDS_MAX]; /* the port takes nothing */
    struct sent sent[SENT_MAX];
    unsigned head, tail; /* read, written */
    uint32_t hello[CLIENT_SHARDS_MAX]; /* request of the last HELLO sent */
    unsigned ups, downs, jobs, stops, reports, dones, hellos_refused, stats, members, open_jobs,
        shared, flushed, flushes_refused, scanned;
    uint64_t last_next;
    unsigned worker_index, workers;
    uint64_t last_job, last_table_id;
    uint8_t last_load;
    struct tt_store last_done;
    unsigned refusals;
    struct proto_decoder decoder;
    struct proto_message message;
    unsigned message_shard;
};

static bool fake_send(void *self, unsigned shard, const uint8_t *bytes, size_t length)
{
    struct fake *f = self;
    struct proto_message m;
    if (f->refusing[shard]) {
        return false;
    }
    struct sent *s = &f->sent[f->tail++ % SENT_MAX];
    assert_true(length <= SENT_BYTES && f->tail - f->head <= SENT_MAX);
    s->shard = shard;
    s->length = length;
    memcpy(s->bytes, bytes, length);
    assert_int_equal(proto_decode(&f->decoder, bytes, length, &m), ERR_OK);
    if (m.type == PROTO_HELLO) {
        f->hello[shard] = m.hello.request;
    }
    return true;
}

static void fake_apply(struct fake *f, const struct client_event *e)
{
    switch (e->kind) {
    case CLIENT_SHARD_UP:
        f->ups++;
        break;
    case CLIENT_SHARD_DOWN:
        f->downs++;
        break;
    case CLIENT_HELLO_REFUSED:
        f->hellos_refused++;
        break;
    case CLIENT_JOB:
        f->jobs++;
        f->last_job = e->job->job;
        break;
    case CLIENT_JOB_STOP:
        f->stops++;
        break;
    case CLIENT_JOB_REPORT:
        f->reports++;
        break;
    case CLIENT_JOB_REFUSED:
        f->refusals++;
        f->last_job = e->refused.job;
        break;
    case CLIENT_WORKER_INDEX:
        f->worker_index = e->worker_index->index;
        f->workers = e->worker_index->workers;
        break;
    case CLIENT_STATS:
        f->stats += e->stats->list.count;
        break;
    case CLIENT_MEMBERS:
        f->members += e->members->list.count;
        break;
    case CLIENT_JOBS:
        f->open_jobs += e->jobs->list.count;
        break;
    case CLIENT_FLUSHED:
        f->flushed += e->refused.why == NULL;
        f->flushes_refused += e->refused.why != NULL;
        break;
    case CLIENT_SCANNED:
        f->scanned += e->scanned->list.count;
        f->last_next = e->scanned->next;
        break;
    case CLIENT_NODE_DONE:
        f->dones += e->node_done->list.count;
        f->last_done = e->node_done->list.at[e->node_done->list.count - 1];
        break;
    case CLIENT_SHARED:
        f->shared += e->shared->list.count;
        f->last_table_id = e->shared->table_id;
        f->last_load = e->shared->load;
        f->last_done = e->shared->list.at[e->shared->list.count - 1];
        break;
    case CLIENT_CORRESPONDENTS:
    case CLIENT_MAIL:
        break;
    }
}

/* Takes the client's events. */
static void fake_take(struct fake *f)
{
    struct client_event e;
    while (client_next(f->client, &e)) {
        fake_apply(f, &e);
    }
}

/* The next message sent, decoded; NULL: none. */
static const struct proto_message *fake_next(struct fake *f)
{
    if (f->head == f->tail) {
        return NULL;
    }
    struct sent *s = &f->sent[f->head++ % SENT_MAX];
    f->message_shard = s->shard;
    assert_int_equal(proto_decode(&f->decoder, s->bytes, s->length, &f->message), ERR_OK);
    return &f->message;
}

/* The next must be of this type. */
static const struct proto_message *fake_expect(struct fake *f, enum proto_type type)
{
    const struct proto_message *m = fake_next(f);
    assert_non_null(m);
    assert_string_equal(proto_type_name(m->type), proto_type_name(type));
    return m;
}

static inline void fake_forget(struct fake *f)
{
    f->head = f->tail;
}

static void fake_receive(struct fake *f, unsigned shard, const struct proto_message *m)
{
    static uint8_t bytes[PROTO_MESSAGE_MAX];
    size_t length = proto_encode(m, bytes, sizeof bytes);
    assert_true(length > 0);
    client_receive(f->client, shard, bytes, length, f->now);
}

static void fake_say(struct fake *f, unsigned shard, const struct proto_message *m)
{
    fake_receive(f, shard, m);
    fake_take(f);
}

static uint64_t fake_boot(unsigned shard)
{
    return UINT64_C(0x1000) + shard;
}

static struct proto_message fake_welcome_of(const struct fake *f, unsigned shard, uint64_t boot,
                                            uint64_t place, uint32_t session)
{
    struct proto_message m = {.type = PROTO_WELCOME};
    m.welcome = (struct proto_welcome){.request = f->hello[shard],
                                       .session = session,
                                       .boot = boot,
                                       .heartbeat_ms = 1000,
                                       .batch_max = 1024,
                                       .place = place};
    return m;
}

/* Answers the last HELLO. */
static void fake_welcome_at(struct fake *f, unsigned shard, uint64_t boot, uint64_t place,
                            uint32_t session)
{
    struct proto_message m = fake_welcome_of(f, shard, boot, place, session);
    fake_say(f, shard, &m);
}

static void fake_welcome_as(struct fake *f, unsigned shard, uint64_t boot, uint32_t session)
{
    fake_welcome_at(f, shard, boot, boot, session);
}

static void fake_welcome(struct fake *f, unsigned shard)
{
    fake_welcome_as(f, shard, fake_boot(shard), 7);
}

/* The same, and its events stay with the client. */
static inline void fake_welcome_untaken(struct fake *f, unsigned shard)
{
    struct proto_message m = fake_welcome_of(f, shard, fake_boot(shard), fake_boot(shard), 7);
    fake_receive(f, shard, &m);
}

static inline void fake_answer(struct fake *f, unsigned shard, uint32_t request,
                               struct tt_answer answer)
{
    struct proto_message m = {.type = PROTO_RETRIEVE_ANSWER};
    m.retrieve_answer.request = request;
    m.retrieve_answer.list = (struct proto_answers){1, &answer};
    fake_say(f, shard, &m);
}

static inline void fake_error_of(struct fake *f, unsigned shard, unsigned code, uint32_t request)
{
    struct proto_message m = {.type = PROTO_ERROR};
    m.error = (struct proto_error){(uint16_t)code, request, proto_text_of("no")};
    fake_say(f, shard, &m);
}

static struct fake *fake_open_with(struct client_options options)
{
    struct fake *f = calloc(1, sizeof *f);
    assert_non_null(f);
    options.name = "test";
    options.instance = 42;
    f->now = 1000000;
    assert_int_equal(client_open(&options, fake_send, f, &f->client), ERR_OK);
    return f;
}

/* A client to so many shards, all welcomed 100 us after its HELLO, nothing unread. */
static inline struct fake *fake_open(unsigned shards)
{
    struct fake *f = fake_open_with((struct client_options){.shards = shards});
    client_tick(f->client, f->now);
    f->now += 100;
    for (unsigned s = 0; s < shards; s++) {
        fake_welcome(f, s);
    }
    fake_forget(f);
    assert_int_equal(client_shards_up(f->client), shards);
    return f;
}

static void fake_close(struct fake *f)
{
    client_free(&f->client);
    client_free(&f->client);
    free(f);
}

static inline uint64_t fake_wait(struct fake *f, uint64_t us)
{
    f->now += us;
    uint64_t next = client_tick(f->client, f->now);
    fake_take(f);
    return next;
}

static inline struct tt_ask fake_ask_of(uint64_t key)
{
    return (struct tt_ask){
        .key = key, .depth = 5, .alpha = -10, .beta = 10, .flags = TT_EXCLUSIVE, .slot = 3};
}

/* Asks and expects the message to be sent; returns its request. */
static inline uint32_t fake_ask(struct fake *f, uint64_t key, uint32_t *ticket)
{
    uint8_t where;
    struct tt_ask ask = fake_ask_of(key);
    *ticket = client_ask(f->client, &ask, 1, f->now, &where);
    assert_int_not_equal(*ticket, 0);
    assert_int_equal(where, client_owner(f->client, key));
    return fake_expect(f, PROTO_RETRIEVE_ASK)->retrieve_ask.request;
}

/* A key that this shard owns. */
static inline uint64_t fake_key_of(struct fake *f, unsigned shard)
{
    for (uint64_t key = 1;; key++) {
        if (client_owner(f->client, rng_mix(key)) == shard) {
            return rng_mix(key);
        }
    }
}

/* Lets the shard's requests time out until it falls. */
static inline void fake_silence(struct fake *f, unsigned shard)
{
    struct tt_answer answer;
    while (client_shard(f->client, shard).state == CLIENT_UP) {
        uint8_t where;
        struct tt_ask ask = fake_ask_of(fake_key_of(f, shard));
        uint32_t ticket = client_ask(f->client, &ask, 1, f->now, &where);
        assert_int_equal(where, shard);
        f->now = client_deadline(f->client, ticket);
        assert_int_equal(client_answer(f->client, ticket, f->now, &answer), CLIENT_LOST);
    }
    fake_take(f);
    fake_forget(f);
}

#endif
