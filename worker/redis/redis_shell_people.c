/* Over Redis: the sums of history tables, and what people watch: STATS, MEMBERS, JOBS. */
#include "worker/redis/redis_shell_core.h"

#include "common/rng.h"

#include <stdio.h>
#include <string.h>

enum {
    WEIGHT_BYTES = 6, /* index, weight */
    WAIT_MIN_MS = 20, /* between two HISTORYs of a client */
    WAIT_EACH_MS = 10, /* for each session: everybody reads what all have added */
    WAIT_ALONE_MS = 100,
    MEMBERS_PAGE = 256,
    JOBS_PAGE = 8,
};

/* ---- HISTORY ---- */

/* Redis keeps updates, and each client adds them up: a call then costs the server what it is long,
 * and the sums need no script. A client that comes late has what is left of the stream. */
static void begin_history(struct redis_shell *s, unsigned shard, uint64_t root_key)
{
    struct redis_history *h = &s->history;
    memset(h, 0, sizeof *h);
    h->root_key = root_key;
    h->shard = shard;
    h->epoch = (uint32_t)rng_next(&s->random) | 1;
    snprintf(h->last, sizeof h->last, "0-0");
}

bool redis_on_history(struct redis_shell *s, unsigned shard, const struct proto_message *m)
{
    const struct proto_history *asked = &m->history;
    struct redis_pending p = redis_shell_pending(s, shard, REDIS_HISTORY, asked->request);
    uint8_t root_key[8], *to = s->ops;
    if (s->history.root_key != asked->root_key || s->history.shard != shard ||
        s->history.epoch == 0) {
        begin_history(s, shard, asked->root_key);
    }
    p.id = asked->root_key;
    p.epoch = asked->epoch;
    p.cursor = asked->cursor;
    p.reads = s->history.reads;
    for (uint32_t i = 0; i < asked->list.count; i++) {
        to = redis_put(to, asked->list.at[i].index, 2);
        to = redis_put(to, asked->list.at[i].weight, 4);
    }
    s->shard[shard].figure[REDIS_FIGURE_history_published] += asked->list.count;
    redis_shell_begin(s, shard);
    redis_put(root_key, asked->root_key, sizeof root_key);
    redis_shell_key(s, shard, "h:", root_key, sizeof root_key);
    redis_shell_key(s, shard, "m", "", 0);
    redis_shell_begin_args(s, shard);
    redis_shell_text(s, s->history.last);
    redis_shell_arg(s, s->ops, (size_t)(to - s->ops));
    return redis_shell_call(s, &p);
}

static void add_weights(struct tt_history *sums, struct proto_text bytes)
{
    for (uint32_t at = 0; at + WEIGHT_BYTES <= bytes.length; at += WEIGHT_BYTES) {
        struct tt_weight one = {
            .index = (uint16_t)redis_get(bytes.at + at, 2),
            .weight = (uint32_t)redis_get(bytes.at + at + 2, 4),
        };
        if (one.index < TT_WEIGHTS) {
            tt_history_add(sums, &one, 1);
        }
    }
}

static uint32_t history_wait_ms(uint64_t sessions)
{
    uint64_t wait = sessions * WAIT_EACH_MS;
    return sessions <= 1 ? WAIT_ALONE_MS : wait < WAIT_MIN_MS ? WAIT_MIN_MS : (uint32_t)wait;
}

/* An answer that an earlier one has overtaken would be added twice. */
void redis_history_read(struct redis_shell *s, const struct redis_pending *p,
                        const struct redisReply *r)
{
    struct redis_history *h = &s->history;
    struct proto_message m = {.type = PROTO_HISTORY_ANSWER};
    struct proto_history_answer *answer = &m.history_answer;
    struct proto_text last, weights;
    bool is_next = h->root_key == p->id && h->shard == p->shard && h->reads == p->reads &&
                   redis_reply_text(redis_reply_at(r, 0), &last) &&
                   redis_reply_text(redis_reply_at(r, 1), &weights);
    *answer = (struct proto_history_answer){
        .request = p->request,
        .root_key = p->id,
        .epoch = p->epoch,
        .cursor = p->cursor,
        .now = p->cursor,
        .wait_ms = history_wait_ms(redis_reply_number_at(r, 2, UINT16_MAX)),
    };
    redis_shell_complain_of(s, r, 3);
    if (is_next) {
        snprintf(h->last, sizeof h->last, "%.*s", (int)(last.length < 31 ? last.length : 31),
                 last.at);
        h->reads++;
        add_weights(&h->sums, weights);
        answer->cursor = p->epoch == h->epoch ? p->cursor : 0;
        answer->list.at = s->answers.weights;
        answer->list.count =
            tt_history_read(&h->sums, answer->cursor, s->answers.weights, PROTO_BATCH_MAX);
        answer->epoch = h->epoch;
        answer->now = h->sums.now;
        answer->halvings = h->sums.halvings;
        s->shard[p->shard].figure[REDIS_FIGURE_history_sent] += answer->list.count;
    }
    redis_shell_give(s, p->shard, &m);
}

/* ---- STATS ---- */

bool redis_on_stats(struct redis_shell *s, unsigned shard, const struct proto_message *m)
{
    struct redis_pending p = redis_shell_pending(s, shard, REDIS_STATS, m->stats.request);
    redis_shell_begin(s, shard);
    s->keys = s->args = 0;
    redis_shell_key(s, shard, "f", "", 0);
    redis_shell_key(s, shard, "m", "", 0);
    redis_shell_key(s, shard, "w", "", 0);
    redis_shell_key(s, shard, "jobs", "", 0);
    redis_shell_prefix_arg(s, shard, "s:");
    return redis_shell_call(s, &p);
}

void redis_stats_read(struct redis_shell *s, const struct redis_pending *p,
                      const struct redisReply *r)
{
    static const struct {
        const char *name;
        uint64_t value;
    } bounds[] = {
        {"jobs_max", REDIS_JOBS_MAX},
        {"batch_max", PROTO_BATCH_MAX},
        {"heartbeat_ms", REDIS_HEARTBEAT_MS},
        {"inflight_age_max_ms", REDIS_AGE_S * 1000},
    };
    const size_t bounds_count = sizeof bounds / sizeof *bounds;
    const struct redisReply *list = redis_reply_at(r, 1);
    struct proto_figure *figure = s->answers.figures;
    uint32_t count = 0;
    for (size_t i = 0; i + 1 < redis_reply_count(list); i += 2) {
        if (count + bounds_count < PROTO_BATCH_MAX &&
            redis_reply_text(redis_reply_at(list, i), &figure[count].name) &&
            figure[count].name.length <= PROTO_TEXT_MAX) {
            figure[count++].value = redis_reply_number_at(list, i + 1, UINT64_MAX);
        }
    }
    for (size_t i = 0; i < bounds_count; i++) {
        figure[count++] = (struct proto_figure){proto_text_of(bounds[i].name), bounds[i].value};
    }
    struct proto_message m = {.type = PROTO_STATS_ANSWER};
    m.stats_answer.request = p->request;
    m.stats_answer.list = (struct proto_figures){count, figure};
    redis_shell_give(s, p->shard, &m);
}

/* ---- MEMBERS ---- */

static void page_args(struct redis_shell *s, uint32_t from, unsigned page)
{
    redis_shell_number_arg(s, from);
    redis_shell_number_arg(s, (uint64_t)from + page - 1);
}

bool redis_on_members(struct redis_shell *s, unsigned shard, const struct proto_message *m)
{
    struct redis_pending p = redis_shell_pending(s, shard, REDIS_MEMBERS, m->members.request);
    p.id = m->members.from;
    redis_shell_begin(s, shard);
    s->keys = s->args = 0;
    redis_shell_key(s, shard, "m", "", 0);
    page_args(s, m->members.from, MEMBERS_PAGE);
    redis_shell_prefix_arg(s, shard, "s:");
    return redis_shell_call(s, &p);
}

static bool read_member(const struct redisReply *list, size_t at, struct proto_member_row *out)
{
    struct proto_text id, record;
    if (!redis_reply_text(redis_reply_at(list, at), &id) || id.length != 4 ||
        !redis_reply_text(redis_reply_at(list, at + 1), &record) ||
        record.length < REDIS_SESSION_BYTES ||
        record.length > REDIS_SESSION_BYTES + CLIENT_NAME_MAX) {
        return false;
    }
    uint64_t left_ms = redis_reply_number_at(list, at + 2, REDIS_SESSION_MS);
    *out = (struct proto_member_row){
        .session = (uint32_t)redis_get(id.at, 4),
        .role = (uint8_t)record.at[REDIS_TOKEN_BYTES + 1],
        .job = redis_get(record.at + REDIS_TOKEN_BYTES + 10, 8),
        .instance_id = (uint32_t)redis_get(record.at + REDIS_TOKEN_BYTES + 18, 4),
        .silent_ms = (uint32_t)(REDIS_SESSION_MS - left_ms),
        .name = {record.at + REDIS_SESSION_BYTES, record.length - REDIS_SESSION_BYTES},
        .user = proto_text_of(""),
    };
    return true;
}

void redis_members_read(struct redis_shell *s, const struct redis_pending *p,
                        const struct redisReply *r)
{
    struct proto_member_row *row = s->answers.member_rows;
    const struct redisReply *list = redis_reply_at(r, 1);
    uint32_t count = 0, got = (uint32_t)redis_reply_number_at(r, 0, MEMBERS_PAGE);
    for (size_t i = 0; i < got; i++) {
        count += read_member(list, 3 * i, &row[count]);
    }
    struct proto_message m = {.type = PROTO_MEMBERS_ANSWER};
    m.members_answer.request = p->request;
    m.members_answer.next = got == MEMBERS_PAGE ? (uint32_t)p->id + got : 0;
    m.members_answer.list = (struct proto_member_rows){count, row};
    redis_shell_give(s, p->shard, &m);
}

/* ---- JOBS ---- */

bool redis_on_jobs(struct redis_shell *s, unsigned shard, const struct proto_message *m)
{
    struct redis_pending p = redis_shell_pending(s, shard, REDIS_JOBS, m->jobs.request);
    p.id = m->jobs.from;
    redis_shell_begin(s, shard);
    s->keys = s->args = 0;
    redis_shell_key(s, shard, "jobs", "", 0);
    redis_shell_key(s, shard, "w", "", 0);
    page_args(s, m->jobs.from, JOBS_PAGE);
    redis_shell_prefix_arg(s, shard, "j:");
    redis_shell_prefix_arg(s, shard, "s:");
    redis_shell_prefix_arg(s, shard, "p:");
    return redis_shell_call(s, &p);
}

/* Its texts borrow from the reply, as those of the row do. */
static void read_progress(struct redis_shell *s, const struct redisReply *list, size_t at,
                          struct proto_job_row *row)
{
    struct proto_text text;
    struct proto_message m;
    if (redis_reply_text(redis_reply_at(list, at), &text) && text.length > 1 &&
        proto_decode(&s->decoder, (const uint8_t *)text.at + 1, text.length - 1, &m) == ERR_OK &&
        m.type == PROTO_JOB_REPORT && proto_report_fault(&m.job_report) == NULL) {
        row->reached = m.job_report.depth;
        row->score = m.job_report.score;
        row->move = m.job_report.move;
        row->nodes = m.job_report.nodes;
        row->duplicated = m.job_report.duplicated;
        row->abandoned = m.job_report.abandoned;
        row->bytes = m.job_report.bytes;
        row->line = m.job_report.line;
    }
}

static bool read_job(struct redis_shell *s, const struct redisReply *list, size_t at,
                     struct proto_job_row *out)
{
    struct proto_text record;
    struct proto_message m;
    if (!redis_reply_text(redis_reply_at(list, at), &record) ||
        record.length <= REDIS_JOB_HEAD_BYTES) {
        return false;
    }
    uint8_t name = (uint8_t)record.at[REDIS_JOB_HEAD_BYTES - 1];
    uint32_t head = REDIS_JOB_HEAD_BYTES + name;
    if (record.length <= head || name > CLIENT_NAME_MAX ||
        proto_decode(&s->decoder, (const uint8_t *)record.at + head, record.length - head, &m) !=
            ERR_OK ||
        m.type != PROTO_JOB) {
        return false;
    }
    *out = (struct proto_job_row){
        .job = m.job.job,
        .workers = (uint32_t)redis_reply_number_at(list, at + 2, UINT32_MAX),
        .age_ms = (uint32_t)redis_reply_number_at(list, at + 1, UINT32_MAX),
        .depth = m.job.depth,
        .owner = {record.at + REDIS_JOB_HEAD_BYTES, name},
        .game = m.job.game,
        .algorithm = m.job.algorithm,
        .position = m.job.position,
        .user = proto_text_of(""),
    };
    read_progress(s, list, at + 3, out);
    return true;
}

void redis_jobs_read(struct redis_shell *s, const struct redis_pending *p,
                     const struct redisReply *r)
{
    struct proto_job_row row[JOBS_PAGE];
    const struct redisReply *list = redis_reply_at(r, 1);
    uint32_t count = 0, got = (uint32_t)redis_reply_number_at(r, 0, JOBS_PAGE);
    for (size_t i = 0; i < got; i++) {
        count += read_job(s, list, 4 * i, &row[count]);
    }
    struct proto_message m = {.type = PROTO_JOBS_ANSWER};
    m.jobs_answer.request = p->request;
    m.jobs_answer.next = got == JOBS_PAGE ? (uint32_t)p->id + got : 0;
    m.jobs_answer.list = (struct proto_job_rows){count, row};
    redis_shell_give(s, p->shard, &m);
}
