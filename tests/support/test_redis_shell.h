/* test_redis_shell: clients on a real Redis, each with its shell, served by one thread. */
#ifndef TESTS_SUPPORT_TEST_REDIS_SHELL_H
#define TESTS_SUPPORT_TEST_REDIS_SHELL_H

#include "tests/support/test_redis.h"
#include "worker/redis/redis_shell.h"

enum {
    BENCH_PEERS = 4,
    BENCH_WAIT_US = 20000000, /* a slow machine's answers are no losses */
    BENCH_SERVE_US = 50000,
    BENCH_TEXTS = 128,
};

struct peer {
    struct redis_shell *shell;
    struct lane port;
    struct client *client;
    /* what came */
    unsigned jobs, stops, reports, indexes, dones, shares, refusals, members, job_rows;
    unsigned flushes, flushes_refused, pages, entries;
    uint64_t job, stopped;
    uint8_t stop_reason;
    char position[BENCH_TEXTS], line[BENCH_TEXTS], stats[4096];
    struct proto_job_row job_row;
    struct proto_job_report report;
    struct proto_worker_index index;
    struct tt_store done, shared;
    uint64_t shared_table;
    uint64_t next; /* page */
    struct tt_scanned entry;
};

struct redis_bed {
    struct redis_server server;
    char dir[128];
    struct redis_address address;
    struct peer peer[BENCH_PEERS];
    struct proto_job_row job_row;
    uint64_t table_id; /* of peers that are opened from now on */
    char line[64];
    uint64_t served_us;
};

/* ---- events ---- */

static inline void on_job(struct peer *p, const struct proto_job *job)
{
    p->jobs++;
    p->job = job->job;
    proto_text_copy(job->position, p->position, sizeof p->position);
}

static inline void on_shared(struct peer *p, const struct proto_share *share)
{
    assert_true(share->list.count > 0);
    p->shares += share->list.count;
    p->shared = share->list.at[0];
    p->shared_table = share->table_id;
}

static inline void on_stats(struct peer *p, const struct proto_stats_answer *answer)
{
    size_t n = 0;
    for (uint32_t i = 0; i < answer->list.count; i++) {
        const struct proto_figure *f = &answer->list.at[i];
        n += (size_t)snprintf(p->stats + n, sizeof p->stats - n, " %.*s=%llu;", (int)f->name.length,
                              f->name.at, (unsigned long long)f->value);
        assert_true(n < sizeof p->stats);
    }
}

static inline void on_jobs(struct peer *p, const struct proto_jobs_answer *answer)
{
    p->job_rows = answer->list.count;
    if (p->job_rows > 0) {
        p->job_row = answer->list.at[0]; /* its texts are borrowed, but for these */
        proto_text_copy(answer->list.at[0].position, p->position, sizeof p->position);
        proto_text_copy(answer->list.at[0].line, p->line, sizeof p->line);
    }
}

static inline void on_scanned(struct peer *p, const struct proto_scanned *answer)
{
    assert_true(answer->next == 0 || answer->next > p->next);
    p->pages++;
    p->next = answer->next;
    p->entries += answer->list.count;
    if (answer->list.count > 0) {
        p->entry = answer->list.at[0];
    }
}

static inline void peer_take(struct peer *p, const struct client_event *e)
{
    switch (e->kind) {
    case CLIENT_JOB:
        on_job(p, e->job);
        break;
    case CLIENT_JOB_STOP:
        p->stops++;
        p->stopped = e->job_stop->job;
        p->stop_reason = e->job_stop->reason;
        break;
    case CLIENT_JOB_REPORT:
        p->reports++;
        p->report = *e->job_report;
        break;
    case CLIENT_JOB_REFUSED:
        p->refusals++;
        break;
    case CLIENT_WORKER_INDEX:
        p->indexes++;
        p->index = *e->worker_index;
        break;
    case CLIENT_NODE_DONE:
        p->dones += e->node_done->list.count;
        p->done = e->node_done->list.at[e->node_done->list.count - 1];
        break;
    case CLIENT_SHARED:
        on_shared(p, e->shared);
        break;
    case CLIENT_STATS:
        on_stats(p, e->stats);
        break;
    case CLIENT_MEMBERS:
        p->members = e->members->list.count;
        break;
    case CLIENT_JOBS:
        on_jobs(p, e->jobs);
        break;
    case CLIENT_FLUSHED:
        p->flushes += e->refused.why == NULL;
        p->flushes_refused += e->refused.why != NULL;
        break;
    case CLIENT_SCANNED:
        on_scanned(p, e->scanned);
        break;
    default:
        break;
    }
}

/* A script of the test's own; its answer is a number. */
static inline long bed_eval(struct redis_bed *b, const char *lua)
{
    char line[1024], answer[REDIS_REPLY_TEXT];
    snprintf(line, sizeof line, "EVAL \"%s\" 0", lua);
    assert_true(redis_ask(b->server.port, line, answer, sizeof answer));
    if (answer[0] != ':') {
        fail_msg("%s: %s", line, answer);
    }
    return strtol(answer + 1, NULL, 10);
}

/* ---- clients ---- */

static inline void peer_serve(struct peer *p)
{
    struct client_event e;
    if (p->client != NULL) {
        while (p->port.receive(p->port.self, p->client)) {
            while (client_next(p->client, &e)) {
                peer_take(p, &e);
            }
        }
        (void)client_tick(p->client, clock_us());
    }
}

/* Waits a moment for one, and serves all now and then. */
static inline void bed_serve(struct redis_bed *b, struct peer *p)
{
    uint64_t now_us = clock_us();
    p->port.sleep(p->port.self, now_us + BENCH_SERVE_US / 10);
    peer_serve(p);
    if (now_us - b->served_us >= BENCH_SERVE_US) {
        b->served_us = now_us;
        for (unsigned i = 0; i < BENCH_PEERS; i++) {
            peer_serve(&b->peer[i]);
        }
    }
}

/* Serves everybody until it is so. */
#define BED_UNTIL(b, condition)                                                \
    do {                                                                       \
        uint64_t until_us = clock_us() + REDIS_PATIENCE_S * UINT64_C(1000000); \
        for (unsigned turn = 0; !(condition); turn++) {                        \
            assert_true(clock_us() < until_us);                                \
            bed_serve(b, &(b)->peer[bed_next(b, turn)]);                       \
        }                                                                      \
    } while (false)

static inline unsigned bed_next(const struct redis_bed *b, unsigned turn)
{
    unsigned i = turn % BENCH_PEERS;
    while (b->peer[i].client == NULL) {
        i = (i + 1) % BENCH_PEERS;
    }
    return i;
}

static inline void bed_serve_for(struct redis_bed *b, uint64_t us)
{
    for (uint64_t until_us = clock_us() + us; clock_us() < until_us;) {
        bed_serve(b, &b->peer[bed_next(b, 0)]);
    }
}

static inline void peer_open_as(struct redis_bed *b, unsigned index, enum proto_role role,
                                uint64_t namespace_id, uint32_t wait_us)
{
    struct peer *p = &b->peer[index];
    char name[8];
    memset(p, 0, sizeof *p);
    snprintf(name, sizeof name, "peer%u", index);
    assert_int_equal(redis_shell_open(&p->shell, &b->address, NULL, NULL), ERR_OK);
    p->port = redis_shell_lane(p->shell);
    struct client_options options = {
        .shards = redis_shell_shards(&b->address),
        .role = role,
        .hello_flags = PROTO_WANTS_NODE_DONE | PROTO_WANTS_RESULTS,
        .namespace_id = namespace_id,
        .instance = clock_unique(),
        .table_id = b->table_id,
        .name = name,
        .rto_min_us = wait_us,
        .rto_max_us = wait_us,
    };
    assert_int_equal(client_open(&options, p->port.send, p->port.self, &p->client), ERR_OK);
    unsigned open = 0;
    for (unsigned i = 0; i < BENCH_PEERS; i++) {
        open += b->peer[i].client != NULL;
    }
    /* What is published before is for nobody. */
    BED_UNTIL(b, client_shards_up(p->client) == options.shards);
    BED_UNTIL(b, b->address.is_cluster ||
                     bed_eval(b, "return #redis.call('PUBSUB', 'CHANNELS', 'abdada:c:*')") == open);
}

static inline void peer_open(struct redis_bed *b, unsigned index, enum proto_role role)
{
    peer_open_as(b, index, role, 7, BENCH_WAIT_US);
}

/* Without a word, as if it were killed. */
static inline void peer_die(struct redis_bed *b, unsigned index)
{
    client_free(&b->peer[index].client);
    redis_shell_close(&b->peer[index].shell);
}

static inline void peer_close(struct redis_bed *b, unsigned index)
{
    if (b->peer[index].client != NULL) {
        client_bye(b->peer[index].client, clock_us());
    }
    peer_die(b, index);
}

/* ---- operations, waited for ---- */

static inline struct tt_answer peer_ask(struct redis_bed *b, unsigned index, struct tt_ask ask)
{
    struct peer *p = &b->peer[index];
    struct tt_answer answer;
    uint8_t where;
    uint32_t ticket = client_ask(p->client, &ask, 1, clock_us(), &where);
    assert_int_not_equal(ticket, 0);
    for (;;) {
        enum client_result result = client_answer(p->client, ticket, clock_us(), &answer);
        assert_int_not_equal(result, CLIENT_LOST);
        if (result == CLIENT_READY) {
            return answer;
        }
        bed_serve(b, p);
    }
}

static inline struct tt_peeked peer_peek(struct redis_bed *b, unsigned index, uint64_t key,
                                         uint8_t depth)
{
    struct peer *p = &b->peer[index];
    struct tt_peek peek = {key, depth};
    struct tt_peeked peeked;
    uint32_t ticket = client_peek(p->client, &peek, 1, clock_us());
    assert_int_not_equal(ticket, 0);
    for (;;) {
        enum client_result result = client_peeked(p->client, ticket, clock_us(), &peeked);
        assert_int_not_equal(result, CLIENT_LOST);
        if (result == CLIENT_READY) {
            return peeked;
        }
        bed_serve(b, p);
    }
}

/* The same where it may be lost: then it is tried again. */
static inline struct tt_peeked peer_peek_well(struct redis_bed *b, unsigned index, uint64_t key,
                                              uint8_t depth)
{
    struct peer *p = &b->peer[index];
    struct tt_peek peek = {key, depth};
    struct tt_peeked peeked = {0};
    uint64_t end_us = clock_us() + REDIS_PATIENCE_S * UINT64_C(1000000);
    enum client_result result = CLIENT_LOST;
    uint32_t ticket = 0;
    while (result != CLIENT_READY) {
        assert_true(clock_us() < end_us);
        if (ticket == 0) {
            ticket = client_peek(p->client, &peek, 1, clock_us());
        }
        if (ticket != 0) {
            result = client_peeked(p->client, ticket, clock_us(), &peeked);
            ticket = result == CLIENT_LOST ? 0 : ticket;
        }
        if (result != CLIENT_READY) {
            bed_serve(b, p);
        }
    }
    return peeked;
}

/* What a client sends to a shard is done in its order: the peek's answer says that the rest is. */
static inline void peer_store(struct redis_bed *b, unsigned index, struct tt_store store)
{
    struct client *client = b->peer[index].client;
    client_store(client, client_owner(client, store.key), &store);
    client_flush(client, clock_us());
    (void)peer_peek(b, index, store.key, store.depth);
}

static inline void peer_release(struct redis_bed *b, unsigned index, struct tt_release release)
{
    struct client *client = b->peer[index].client;
    client_release(client, client_owner(client, release.key), &release);
    client_flush(client, clock_us());
    (void)peer_peek(b, index, release.key, release.depth);
}

static inline long bed_entries(struct redis_bed *b)
{
    return bed_eval(b, "local n = 0 for _, k in ipairs(redis.call('KEYS', 'abdada:*:i:*')) do "
                       "n = n + redis.call('STRLEN', k) / 10 end return n");
}

/* ---- the server ---- */

/* NULL: there is a Redis. */
static inline const char *bed_why_not(void)
{
    return redis_is_missing("redis-server") ? "no redis-server here" : NULL;
}

static inline void bed_start(struct redis_bed *b)
{
    char url[64], why[REDIS_WHY_MAX];
    redis_make_dir(b->dir);
    redis_start(&b->server, b->dir,
                (const char *const[]){"--enable-protected-configs", "local", NULL});
    snprintf(url, sizeof url, "redis://127.0.0.1:%u", b->server.port);
    assert_int_equal(redis_address_parse(&b->address, url, why), ERR_OK);
}

static inline void bed_end(struct redis_bed *b)
{
    for (unsigned i = 0; i < BENCH_PEERS; i++) {
        peer_close(b, i);
    }
    redis_kill(&b->server);
    redis_remove_dir(b->dir);
}

#endif
