/* Whatever a shard says, the client survives, ends its tickets and sends what decodes. */
#include "common/rng.h"
#include "fuzz_driver.h"
#include "proto/client/client.h"

#include <string.h>

enum { SHARDS = 3, TICKETS = 8, JOB = 7 };

static struct proto_decoder decoder;
static uint32_t last_request[SHARDS]; /* that something may be answered */
static enum proto_type last_type[SHARDS];

static bool take(void *self, unsigned shard, const uint8_t *bytes, size_t length)
{
    struct proto_message m;
    (void)self;
    CHECK(proto_decode(&decoder, bytes, length, &m) == ERR_OK);
    last_type[shard] = m.type;
    last_request[shard] = m.type == PROTO_HELLO          ? m.hello.request
                          : m.type == PROTO_RETRIEVE_ASK ? m.retrieve_ask.request
                          : m.type == PROTO_PEEK         ? m.peek.request
                          : m.type == PROTO_STATS        ? m.stats.request
                          : m.type == PROTO_MEMBERS      ? m.members.request
                          : m.type == PROTO_JOBS         ? m.jobs.request
                          : m.type == PROTO_FLUSH        ? m.flush.request
                          : m.type == PROTO_SCAN         ? m.scan.request
                          : m.type == PROTO_MAIL_JOIN    ? m.mail_join.request
                          : m.type == PROTO_JOB_POST     ? (uint32_t)m.job.job
                                                         : last_request[shard];
    return true;
}

static void check_results(const struct proto_stores *list)
{
    for (uint32_t i = 0; i < list->count; i++) {
        const struct tt_store *result = &list->at[i];
        CHECK(result->depth <= TT_DEPTH_MAX && result->score >= TT_SCORE_MIN);
        CHECK(result->bound >= TT_LOWER && result->bound <= TT_EXACT);
    }
}

static void check_shared(const struct proto_stores *list)
{
    for (uint32_t i = 0; i < list->count; i++) {
        struct proto_stores one = {1, &list->at[i]};
        if (one.at->bound == TT_CLAIM) {
            CHECK(one.at->depth <= TT_DEPTH_MAX);
            CHECK(one.at->score == TT_CLAIM_BEGINS || one.at->score == TT_CLAIM_ENDS);
        } else {
            check_results(&one);
        }
    }
}

static void check_page(const struct proto_scanned *page)
{
    for (uint32_t i = 0; i < page->list.count; i++) {
        const struct tt_scanned *e = &page->list.at[i];
        CHECK(e->depth <= TT_DEPTH_MAX && e->lower >= TT_SCORE_MIN && e->lower <= e->upper);
    }
}

/* What is borrowed can be read. */
static void touch(const void *bytes, size_t length)
{
    static volatile uint8_t sum;
    for (size_t i = 0; i < length; i++) {
        sum ^= ((const uint8_t *)bytes)[i];
    }
}

/* `up`: bit i: shard i is up, as the events say. */
static void take_events(struct client *c)
{
    static uint64_t up;
    struct client_event e;
    while (client_next(c, &e)) {
        CHECK(e.shard < SHARDS);
        if (e.kind == CLIENT_SHARD_UP || e.kind == CLIENT_SHARD_DOWN) {
            CHECK((up >> e.shard & 1) == (e.kind == CLIENT_SHARD_DOWN));
            up ^= UINT64_C(1) << e.shard;
        } else if (e.kind == CLIENT_NODE_DONE) {
            check_results(&e.node_done->list);
        } else if (e.kind == CLIENT_SHARED) {
            check_shared(&e.shared->list);
        } else if (e.kind == CLIENT_SCANNED) {
            check_page(e.scanned);
        } else if (e.kind == CLIENT_JOB) {
            touch(e.job->position.at, e.job->position.length);
            touch(e.job->algorithm.at, e.job->algorithm.length);
        } else if (e.kind == CLIENT_JOB_REPORT) {
            touch(e.job_report->line.at, e.job_report->line.length);
        } else if (e.kind == CLIENT_MAIL) {
            touch(e.mail->body.at, e.mail->body.length);
        } else if (e.kind == CLIENT_CORRESPONDENTS) {
            touch(e.correspondents->list.at,
                  e.correspondents->list.count * sizeof *e.correspondents->list.at);
        } else if ((e.kind == CLIENT_FLUSHED || e.kind == CLIENT_JOB_REFUSED) &&
                   e.refused.why != NULL) {
            touch(e.refused.why->at, e.refused.why->length);
        }
    }
    for (unsigned i = 0; i < SHARDS; i++) {
        CHECK((up >> i & 1) == (client_shard(c, i).state == CLIENT_UP));
    }
}

static void receive(struct client *c, unsigned shard, const uint8_t *bytes, size_t length,
                    uint64_t now)
{
    client_receive(c, shard, bytes, length, now);
    take_events(c);
}

/* Puts the request the client awaits into the input, so that it is accepted. */
static void aim(struct client *c, unsigned shard, const uint8_t *bytes, size_t length, uint64_t now)
{
    static struct proto_decoder room;
    static uint8_t aimed[PROTO_MESSAGE_MAX];
    struct proto_message m;
    receive(c, shard, bytes, length, now);
    if (proto_decode(&room, bytes, length, &m) != ERR_OK) {
        return;
    }
    switch (m.type) {
    case PROTO_WELCOME:
        m.welcome.request = last_request[shard];
        break;
    case PROTO_RETRIEVE_ANSWER:
        m.retrieve_answer.request = last_request[shard];
        break;
    case PROTO_PEEK_ANSWER:
        m.peek_answer.request = last_request[shard];
        break;
    case PROTO_STATS_ANSWER:
        m.stats_answer.request = last_request[shard];
        break;
    case PROTO_MEMBERS_ANSWER:
        m.members_answer.request = last_request[shard];
        break;
    case PROTO_JOBS_ANSWER:
        m.jobs_answer.request = last_request[shard];
        break;
    case PROTO_SCANNED:
        m.scanned.request = last_request[shard];
        break;
    case PROTO_FLUSHED:
        m.flushed.request = last_request[shard];
        break;
    case PROTO_MAIL_LIST:
        m.mail_list.request = last_request[shard];
        break;
    case PROTO_ERROR:
        m.error.request = last_request[shard];
        break;
    default:
        return;
    }
    size_t n = proto_encode(&m, aimed, sizeof aimed);
    receive(c, shard, aimed, n, now);
}

static void search(struct client *c, uint32_t *tickets, bool *peeks, uint64_t *rng, uint64_t now)
{
    unsigned t = rng_below(rng, TICKETS);
    struct tt_answer answer[2];
    struct tt_peeked peeked[2];
    uint8_t where[2];
    if (tickets[t] != 0) {
        enum client_result r = peeks[t] ? client_peeked(c, tickets[t], now, peeked)
                                        : client_answer(c, tickets[t], now, answer);
        CHECK(r != CLIENT_WAITING || now < client_deadline(c, tickets[t]));
        tickets[t] = r == CLIENT_WAITING ? tickets[t] : 0;
        return;
    }
    peeks[t] = rng_below(rng, 2);
    if (peeks[t]) {
        struct tt_peek peek[2] = {{rng_next(rng), 3}, {rng_next(rng), 4}};
        tickets[t] = client_peek(c, peek, 2, now);
    } else {
        struct tt_ask ask[2] = {{.key = rng_next(rng), .alpha = -50, .beta = 50, .depth = 9},
                                {.key = rng_next(rng), .alpha = -50, .beta = 50, .depth = 9}};
        tickets[t] = client_ask(c, ask, 1 + rng_below(rng, 2), now, where);
        client_store(c, where[0], &(struct tt_store){.key = ask[0].key});
    }
}

static void watch(struct client *c, uint64_t *rng, uint64_t now)
{
    unsigned shard = rng_below(rng, SHARDS);
    switch (rng_below(rng, 16)) {
    case 0:
        client_stats(c, shard, now);
        break;
    case 1:
        client_members(c, shard, 0, now);
        break;
    case 2:
        client_jobs(c, shard, 0, now);
        break;
    case 3:
        client_scan(c, shard, rng_next(rng), 3, now);
        break;
    case 4:
        client_flush_table(c, shard, now);
        break;
    case 5:
    case 6:
        client_mail_join(c, JOB, rng_below(rng, 4), now);
        break;
    case 7:
        (void)client_job_post(c, &(struct proto_job){.job = JOB}, now);
        break;
    case 8:
        client_job_stop(c, JOB, now);
        break;
    default:
        break;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    static struct client *c;
    static uint64_t now = 1, rng = 1;
    static uint32_t tickets[TICKETS];
    static bool peeks[TICKETS];
    if (!c) {
        struct client_options options = {
            .shards = SHARDS, .tickets = TICKETS, .ask_max = 2, .peek_max = 2};
        CHECK(client_open(&options, take, NULL, &c) == ERR_OK);
    }
    now += rng_below(&rng, 2000);
    CHECK(client_tick(c, now) > now);
    search(c, tickets, peeks, &rng, now);
    watch(c, &rng, now);
    aim(c, rng_below(&rng, SHARDS), bytes, length, now);
    return 0;
}
