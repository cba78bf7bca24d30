/* Over Redis: jobs, what clients publish to each other (jobs and their stops to all workers;
 * reports, completion notices and results of others to one client's channel), and what people
 * watch: STATS, MEMBERS, JOBS. */
#include "worker/redis/redis_shell_state.h"

#include "proto/alias.h"

enum { MEMBERS_PAGE = 256, JOBS_PAGE = 8 };

/* ---- JOB_POST, JOB_STOP ---- */

/* To every shard, because a job begins a generation of its namespace there; but only some offer it.
 */
bool redis_on_post(struct redis_shell *s, unsigned shard, const struct proto_message *m)
{
    const struct redis_shard *of = &s->shard[shard];
    struct redis_pending p = redis_shell_pending(s, shard, REDIS_POST, 0, m->job.job);
    struct proto_message job = *m;
    job.type = PROTO_JOB;
    job.job.user = proto_alias(s->instance);
    s->body = s->out;
    s->body_length = of->has_jobs ? proto_encode(&job, s->out, sizeof s->out) : 0;
    p.namespace_id = m->job.namespace_id;
    return redis_shell_call(s, &p);
}

bool redis_on_stop(struct redis_shell *s, unsigned shard, const struct proto_message *m)
{
    struct redis_pending p = redis_shell_pending(s, shard, REDIS_STOP, 0, m->job_stop.job);
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
    struct redis_pending p = redis_shell_pending(s, shard, REDIS_REPORT, 0, m->job_report.job);
    struct proto_message report = *m;
    bool is_front = s->role == PROTO_FRONT;
    if (!is_front) {
        s->searches = m->job_report.state == PROTO_JOB_SEARCHING ? p.id : 0;
    }
    if (!of->has_jobs || (is_front && m->job_report.instance != 0)) {
        return true; /* nothing is kept of single searchers */
    }
    report.job_report.instance = proto_alias(s->instance);
    report.job_report.name = proto_text_of(s->client_name);
    s->body = s->out;
    s->body_length = proto_encode(&report, s->out, sizeof s->out);
    p.count = m->job_report.depth;
    p.state = m->job_report.state;
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

/* ---- what was published ---- */

static void on_notices(struct redis_shell *s, unsigned shard, const char *bytes, size_t length)
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
            .bound = (uint8_t)at[11] & (uint8_t)~TT_BESIDE, /* it is the table's affair */
            .move = (uint16_t)redis_get(at + 12, 2),
        };
    }
    const struct proto_message m = {.type = PROTO_NODE_DONE,
                                    .node_done.list = {(uint32_t)count, list}};
    redis_shell_give(s, shard, &m);
}

static void on_message(struct redis_shell *s, unsigned shard, enum proto_type type,
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
        redis_get(bytes + 1, REDIS_BOOT_BYTES) != s->shard[shard].boot) {
        return;
    }
    char kind = bytes[REDIS_HEADER_BYTES];
    bytes += REDIS_HEADER_BYTES + 1;
    length -= REDIS_HEADER_BYTES + 1;
    if (!is_ours && s->role == PROTO_WORKER && kind == 'j') {
        redis_shell_offer_job(s, shard, (const uint8_t *)bytes, length);
    } else if (!is_ours && s->role == PROTO_WORKER && kind == 's' && length == 9 &&
               (uint8_t)bytes[0] <= PROTO_STOP_EXPIRED) {
        redis_shell_stop_job(s, shard, redis_get(bytes + 1, 8), (uint8_t)bytes[0]);
    } else if (is_ours && kind == 'n') {
        on_notices(s, shard, bytes, length);
    } else if (is_ours && kind == 'r') {
        on_message(s, shard, PROTO_JOB_REPORT, bytes, length);
    } else if (is_ours && kind == 'h') {
        on_message(s, shard, PROTO_SHARE, bytes, length);
    }
}

/* ---- STATS ---- */

bool redis_on_stats(struct redis_shell *s, unsigned shard, const struct proto_message *m)
{
    struct redis_pending p = redis_shell_pending(s, shard, REDIS_STATS, m->stats.request, 0);
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
    REDIS_GIVE_ANSWER(s, p, STATS_ANSWER, stats_answer, .list = {count, figure});
}

/* ---- MEMBERS ---- */

bool redis_on_members(struct redis_shell *s, unsigned shard, const struct proto_message *m)
{
    struct redis_pending p =
        redis_shell_pending(s, shard, REDIS_MEMBERS, m->members.request, m->members.from);
    p.count = MEMBERS_PAGE;
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
    REDIS_GIVE_ANSWER(s, p, MEMBERS_ANSWER, members_answer, .list = {count, row},
                      .next = got == MEMBERS_PAGE ? (uint32_t)p->id + got : 0);
}

/* ---- JOBS ---- */

bool redis_on_jobs(struct redis_shell *s, unsigned shard, const struct proto_message *m)
{
    struct redis_pending p =
        redis_shell_pending(s, shard, REDIS_JOBS, m->jobs.request, m->jobs.from);
    p.count = JOBS_PAGE;
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
        row->bytes = m.job_report.bytes_sent + m.job_report.bytes_received;
        row->line = m.job_report.line;
        row->left_s = text.at[0] == 'f' ? m.job_report.left_s : 0; /* from the owner alone */
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
    REDIS_GIVE_ANSWER(s, p, JOBS_ANSWER, jobs_answer, .list = {count, row},
                      .next = got == JOBS_PAGE ? (uint32_t)p->id + got : 0);
}

/* ---- SHARE ---- */

bool redis_on_share(struct redis_shell *s, unsigned shard, const struct proto_message *m)
{
    struct redis_pending p = redis_shell_pending(s, shard, REDIS_SHARE, 0, 0);
    if (m->share.list.count == 0) {
        return true;
    }
    if (s->table_id != m->share.table_id) {
        s->table_id = m->share.table_id;
        for (unsigned i = 0; i < s->shards; i++) {
            s->shard[i].renewed_us = 0; /* others choose by it to whom they send */
        }
        (void)redis_renew(s, shard, 0, true);
    }
    p.count = (uint16_t)m->share.list.count;
    s->body = s->out;
    s->body_length = proto_encode(m, s->out, sizeof s->out);
    return redis_shell_call(s, &p);
}

void redis_shared(struct redis_shell *s, const struct redis_pending *p, const struct redisReply *r)
{
    s->shard[p->shard].figure[REDIS_FIGURE_shared] +=
        redis_reply_number_at(r, 0, UINT16_MAX) > 0 ? p->count : 0;
}
