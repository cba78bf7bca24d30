/* Jobs over Redis, and what clients publish to each other: jobs and their stops to all workers;
 * reports, completion notices and results of others to one client's channel. */
#include "worker/redis/redis_shell_core.h"

#include "proto/alias.h"

#include <string.h>

static void key_of_job(struct redis_shell *s, unsigned shard, const char *prefix, uint64_t job)
{
    uint8_t bytes[8];
    redis_put(bytes, job, sizeof bytes);
    redis_shell_key(s, shard, prefix, bytes, sizeof bytes);
}

static void job_key(struct redis_shell *s, unsigned shard, uint64_t job)
{
    key_of_job(s, shard, "j:", job);
}

static void u64_arg(struct redis_shell *s, uint64_t value)
{
    uint8_t bytes[8];
    redis_put(bytes, value, sizeof bytes);
    redis_shell_arg(s, bytes, sizeof bytes);
}

/* ---- JOB_POST, JOB_STOP ---- */

/* To every shard, because a job begins a generation of its namespace there; but only some offer it.
 */
bool redis_on_post(struct redis_shell *s, unsigned shard, const struct proto_message *m)
{
    const struct redis_shard *of = &s->shard[shard];
    struct redis_pending p = redis_shell_pending(s, shard, REDIS_POST, 0);
    struct proto_message job = {.type = PROTO_JOB};
    uint8_t namespace_id[8];
    p.id = m->job_post.job;
    _Static_assert(sizeof job.job == sizeof m->job_post, "JOB and JOB_POST have the same fields");
    memcpy(&job.job, &m->job_post, sizeof job.job);
    job.job.user = proto_alias(s->instance);
    size_t length = of->has_jobs ? proto_encode(&job, s->out, sizeof s->out) : 0;
    redis_shell_begin(s, shard);
    job_key(s, shard, p.id);
    redis_shell_key(s, shard, "jobs", "", 0);
    redis_shell_key(s, shard, "jv", "", 0);
    redis_put(namespace_id, m->job_post.namespace_id, sizeof namespace_id);
    redis_shell_key(s, shard, "g:", namespace_id, sizeof namespace_id);
    redis_shell_begin_args(s, shard);
    u64_arg(s, p.id);
    redis_shell_text(s, s->token);
    u64_arg(s, s->instance);
    redis_shell_text(s, s->client_name);
    redis_shell_arg(s, s->out, length);
    redis_shell_number_arg(s, REDIS_SESSION_MS);
    redis_shell_text(s, of->has_jobs ? "1" : "0");
    redis_shell_header_arg(s, shard);
    redis_shell_number_arg(s, REDIS_JOBS_MAX);
    return redis_shell_call(s, &p);
}

bool redis_on_stop(struct redis_shell *s, unsigned shard, const struct proto_message *m)
{
    struct redis_pending p = redis_shell_pending(s, shard, REDIS_STOP, 0);
    p.id = m->job_stop.job;
    redis_shell_begin(s, shard);
    job_key(s, shard, p.id);
    redis_shell_key(s, shard, "jobs", "", 0);
    redis_shell_key(s, shard, "jv", "", 0);
    redis_shell_begin_args(s, shard);
    u64_arg(s, p.id);
    u64_arg(s, s->instance);
    redis_shell_header_arg(s, shard);
    redis_shell_text(s, s->shard[shard].has_jobs ? "1" : "0");
    return redis_shell_call(s, &p);
}

void redis_posted(struct redis_shell *s, const struct redis_pending *p, const struct redisReply *r)
{
    uint64_t status = REDIS_DONE;
    uint32_t job = p->script == REDIS_POST ? (uint32_t)p->id : 0;
    redis_shell_complain_of(s, r, 1);
    if (!redis_reply_number(r, &status)) {
        s->shard[p->shard].figure[REDIS_FIGURE_job_posts] += p->script == REDIS_POST;
    } else if (status == REDIS_TAKEN && p->script == REDIS_POST) {
        redis_shell_refuse(s, p->shard, PROTO_ERR_LIMIT, job,
                           "JOB_POST: another has a job of this id open");
    } else if (status == REDIS_TAKEN) {
        redis_shell_refuse(s, p->shard, PROTO_ERR_ROLE, job, "JOB_STOP: for the job's owner only");
    } else if (status == REDIS_FULL) {
        redis_shell_refuse(s, p->shard, PROTO_ERR_LIMIT, job,
                           "JOB_POST: this Redis has as many jobs as it may (64)");
    }
}

/* ---- JOB_REPORT ---- */

bool redis_on_report(struct redis_shell *s, unsigned shard, const struct proto_message *m)
{
    const struct redis_shard *of = &s->shard[shard];
    struct redis_pending p = redis_shell_pending(s, shard, REDIS_REPORT, 0);
    struct proto_message report = *m;
    p.id = m->job_report.job;
    bool is_front = s->role == PROTO_FRONT;
    if (!is_front) {
        s->searches = m->job_report.state == PROTO_JOB_SEARCHING ? p.id : 0;
    }
    if (!of->has_jobs || (is_front && m->job_report.instance != 0)) {
        return true; /* nothing is kept of single searchers */
    }
    report.job_report.instance = proto_alias(s->instance);
    size_t length = proto_encode(&report, s->out, sizeof s->out);
    redis_shell_begin(s, shard);
    job_key(s, shard, p.id);
    key_of_job(s, shard, "p:", p.id);
    redis_shell_begin_args(s, shard);
    redis_shell_number_arg(s, m->job_report.depth);
    redis_shell_number_arg(s, m->job_report.state);
    redis_shell_header_arg(s, shard);
    redis_shell_arg(s, s->out, length);
    if (is_front) {
        u64_arg(s, s->instance);
    } else {
        redis_shell_text(s, "");
    }
    return redis_shell_call(s, &p);
}

void redis_reported(struct redis_shell *s, const struct redis_pending *p,
                    const struct redisReply *r)
{
    uint64_t status = REDIS_DONE;
    bool is_unknown = redis_reply_number(r, &status) && status == REDIS_UNKNOWN;
    uint32_t *figure = s->shard[p->shard].figure;
    figure[is_unknown ? REDIS_FIGURE_reports_unknown_job : REDIS_FIGURE_job_reports]++;
    redis_shell_complain_of(s, r, 1);
    if (is_unknown) { /* it missed the stop, or knows the job from other shards */
        redis_shell_stop_job(s, p->shard, p->id, PROTO_STOP_EXPIRED);
    }
}

/* ---- SHARE ---- */

bool redis_on_share(struct redis_shell *s, unsigned shard, const struct proto_message *m)
{
    struct redis_pending p = redis_shell_pending(s, shard, REDIS_SHARE, 0);
    uint8_t namespace_id[8];
    if (m->share.list.count == 0) {
        return true;
    }
    if (s->table_id != m->share.table_id) {
        s->table_id = m->share.table_id;
        for (unsigned i = 0; i < s->shards; i++) {
            s->shard[i].renewed_us = 0; /* due now: others choose receivers by the table_id */
        }
        (void)redis_renew(s, shard, NULL);
    }
    p.count = (uint16_t)m->share.list.count;
    size_t length = proto_encode(m, s->out, sizeof s->out);
    redis_shell_begin(s, shard);
    redis_put(namespace_id, s->namespace_id, sizeof namespace_id);
    redis_shell_key(s, shard, "n:", namespace_id, sizeof namespace_id);
    redis_shell_begin_args(s, shard);
    redis_shell_session_arg(s, s->shard[shard].session);
    u64_arg(s, s->table_id);
    redis_shell_prefix_arg(s, shard, "s:");
    redis_shell_header_arg(s, shard);
    redis_shell_arg(s, s->out, length);
    return redis_shell_call(s, &p);
}

/* ---- what was published ---- */

static void take_notices(struct redis_shell *s, unsigned shard, const char *bytes, size_t length)
{
    struct tt_store *list = s->answers.stores;
    size_t count = length / REDIS_NOTICE_BYTES;
    if (count == 0 || count > PROTO_BATCH_MAX || length % REDIS_NOTICE_BYTES != 0) {
        return;
    }
    for (size_t i = 0; i < count; i++) {
        const char *at = bytes + i * REDIS_NOTICE_BYTES;
        list[i] = (struct tt_store){
            .key = redis_get(at, 8),
            .depth = (uint8_t)at[8],
            .score = (int16_t)redis_get(at + 9, 2),
            .bound = (uint8_t)at[11],
            .move = (uint16_t)redis_get(at + 12, 2),
        };
    }
    struct proto_message m = {.type = PROTO_NODE_DONE};
    m.node_done.list = (struct proto_stores){(uint32_t)count, list};
    redis_shell_give(s, shard, &m);
}

static void take_stop(struct redis_shell *s, unsigned shard, const char *bytes, size_t length)
{
    if (length == 9 && (uint8_t)bytes[0] <= PROTO_STOP_EXPIRED) {
        redis_shell_stop_job(s, shard, redis_get(bytes + 1, 8), (uint8_t)bytes[0]);
    }
}

static void take_message(struct redis_shell *s, unsigned shard, enum proto_type type,
                         const char *bytes, size_t length)
{
    struct proto_message m;
    const uint8_t *message = (const uint8_t *)bytes;
    if (proto_decode(&s->decoder, message, length, &m) == ERR_OK && m.type == type) {
        redis_shell_give_bytes(s, shard, message, length);
    }
}

/* Gives the client messages of the few kinds that are published; drops anything else. */
void redis_published(struct redis_shell *s, bool is_ours, const char *bytes, size_t length)
{
    unsigned shard = length > REDIS_HEADER_BYTES ? (uint8_t)bytes[0] : REDIS_SHELL_SHARDS;
    if (shard >= s->shards || s->shard[shard].session == 0 ||
        memcmp(bytes + 1, s->shard[shard].boot, REDIS_BOOT_BYTES) != 0) {
        return;
    }
    char kind = bytes[REDIS_HEADER_BYTES];
    bytes += REDIS_HEADER_BYTES + 1;
    length -= REDIS_HEADER_BYTES + 1;
    if (!is_ours && s->role == PROTO_WORKER && kind == 'j') {
        redis_shell_offer_job(s, shard, (const uint8_t *)bytes, length);
    } else if (!is_ours && s->role == PROTO_WORKER && kind == 's') {
        take_stop(s, shard, bytes, length);
    } else if (is_ours && kind == 'n') {
        take_notices(s, shard, bytes, length);
    } else if (is_ours && kind == 'r') {
        take_message(s, shard, PROTO_JOB_REPORT, bytes, length);
    } else if (is_ours && kind == 'h') {
        take_message(s, shard, PROTO_SHARE, bytes, length);
    }
}
