/* What people watch a shard by: STATS, MEMBERS, JOBS. They change nothing. */
#include "ttserver/core/core_state.h"

enum { US_PER_MS = 1000, SLOTS_PER_PAGE = 4096 /* gone through for MEMBERS: a step stays short */ };

/* The longest row: its head, seventeen numbers, four texts with their heads. */
enum {
    MEMBER_BYTES = 3 + 17 * 9 + 4 * 3 + 2 * TTCORE_NAME_MAX + TTCORE_RELEASE_MAX + TTCORE_WHY_MAX
};
_Static_assert(32 + MEMBER_BYTES * TTCORE_MEMBERS_PAGE <= PROTO_MESSAGE_MAX,
               "a page of members is one message");

void ttcore_figures(const struct ttcore *core, struct ttcore_figures *out)
{
    const struct ttcore_options *o = &core->options;
    *out = core->count;
    if (o->outside != NULL) {
#define X(name, help) out->name = o->outside->name;
        TTCORE_OUTSIDE(X, X)
#undef X
    }
    out->sessions = core->sessions.live;
    out->workers = core->sessions.of_role[PROTO_WORKER];
    out->fronts = core->sessions.of_role[PROTO_FRONT];
    out->monitors = core->sessions.of_role[PROTO_MONITOR];
    out->users = core->users.live;
    out->jobs = core->jobs.open;
    out->inflight_nodes = tt_inflight_nodes(&core->inflight);
    out->inflight_entries = core->inflight.entries;
    out->inflight_refused = core->inflight.refused;
    out->generation = core->generations.drawn;
    out->results_permille = tt_results_permille(&core->results, (uint8_t)out->generation);
    out->uptime_ms = (core->now_us - o->start_us) / US_PER_MS;
    out->memory_bytes =
        core->results.bytes + (uint64_t)o->inflight_max * TTCORE_INFLIGHT_ENTRY_BYTES +
        (uint64_t)o->sessions_max * (sizeof(struct ttcore_session) + sizeof(struct ttcore_user)) +
        ((uint64_t)TT_INFLIGHT_LIST_BYTES << core->sessions.slot_bits) +
        (uint64_t)o->jobs_max * sizeof(struct ttcore_job);
    out->sessions_max = o->sessions_max;
    out->jobs_max = o->jobs_max;
    out->inflight_max = o->inflight_max;
    out->batch_max = o->batch_max;
    out->protocol = PROTO_VERSION;
    out->heartbeat_ms = o->heartbeat_ms;
    out->inflight_age_max_ms = o->inflight_age_max_ms;
    out->inflight_over_quota = core->inflight.over_quota;
    out->session_inflight_max =
        o->session_inflight_max > 0 ? o->session_inflight_max : o->inflight_max;
    if (o->ledger != NULL) {
#define X(name) out->name = ttcore_ledger_read(&o->ledger->name);
        TTCORE_LEDGER(X)
#undef X
        out->backing_behind = ttcore_ledger_read(&o->ledger->deep) -
                              ttcore_ledger_read(&o->ledger->backed) +
                              ttcore_ledger_read(&o->ledger->again);
    }
}

void ttcore_on_stats(struct ttcore_call *call)
{
    struct proto_figure *figure = call->actions->scratch->decoder.figures;
    struct ttcore_figures now;
    uint32_t count = 0;
    ttcore_figures(call->core, &now);
#define X(name, help) figure[count++] = (struct proto_figure){proto_text_of(#name), now.name};
    TTCORE_COUNTERS(X, X)
    TTCORE_OUTSIDE(X, X)
    TTCORE_PARTS(X, X)
    TTCORE_GAUGES(X)
#undef X
    struct proto_message answer = {.type = PROTO_STATS_ANSWER};
    answer.stats_answer.request = call->message->stats.request;
    answer.stats_answer.list = (struct proto_figures){count, figure};
    ttcore_reply(call, &answer);
}

static uint32_t milliseconds(uint64_t us)
{
    return us / US_PER_MS < UINT32_MAX ? (uint32_t)(us / US_PER_MS) : UINT32_MAX;
}

void ttcore_on_members(struct ttcore_call *call)
{
    const struct ttcore *core = call->core;
    struct proto_member_row *row = call->actions->scratch->decoder.member_rows;
    const struct proto_members asked = call->message->members;
    uint32_t at = asked.from, count = 0;
    uint32_t end = core->sessions.max;
    end = at < end && end - at > SLOTS_PER_PAGE ? at + SLOTS_PER_PAGE : end;
    for (; at < end && count < TTCORE_MEMBERS_PAGE; at++) {
        const struct ttcore_session *session = &core->sessions.slot[at];
        if (session->id == 0) {
            continue;
        }
        const bool searches =
            session->searches != 0 && ttcore_jobs_find(&core->jobs, session->searches);
        const bool refuses =
            session->refuses != 0 && ttcore_jobs_find(&core->jobs, session->refuses);
        const struct ttcore_work work = searches ? session->work : (struct ttcore_work){0};
        row[count++] = (struct proto_member_row){
            .session = session->id,
            .instance_id = (uint32_t)session->alias,
            .role = session->role,
            .job = searches ? session->searches : 0,
            .silent_ms = milliseconds(core->now_us - session->last_seen_us),
            .name = proto_text_of(session->name),
            .user = proto_text_of(session->user->name),
            .nodes = work.nodes,
            .asks = work.asks,
            .waited_us = work.waited_us,
            .talked_us = work.talked_us,
            .duplicated = work.duplicated,
            .abandoned = work.abandoned,
            .bytes_sent = work.bytes_sent,
            .bytes_received = work.bytes_received,
            .highest = (uint8_t)session->highest,
            .release = proto_text_of(session->release),
            .refuses = refuses ? session->refuses : 0,
            .why = proto_text_of(refuses ? session->why : ""),
        };
    }
    struct proto_message answer = {.type = PROTO_MEMBERS_ANSWER};
    answer.members_answer.request = asked.request;
    answer.members_answer.next = at < core->sessions.max ? at : 0;
    answer.members_answer.list = (struct proto_member_rows){count, row};
    ttcore_reply(call, &answer);
}

/* Counts the workers of a job, and takes their sums where they are more than the owner, who need
 * not report, has said. */
static void count_workers(const struct ttcore *core, struct proto_job_row *row)
{
    struct proto_job_row sum = {.nodes = 0};
    for (uint32_t i = 0; i < core->sessions.of_role[PROTO_WORKER]; i++) {
        const struct ttcore_session *worker = ttcore_sessions_worker_at(&core->sessions, i);
        if (worker->searches == row->job) {
            row->workers++;
            sum.nodes += worker->work.nodes;
            sum.duplicated += worker->work.duplicated;
            sum.abandoned += worker->work.abandoned;
            sum.bytes += worker->work.bytes_sent + worker->work.bytes_received;
        }
    }
    if (sum.nodes > row->nodes) {
        row->nodes = sum.nodes;
        row->duplicated = sum.duplicated;
        row->abandoned = sum.abandoned;
        row->bytes = sum.bytes;
    }
}

void ttcore_on_jobs(struct ttcore_call *call)
{
    const struct ttcore *core = call->core;
    const struct ttcore_jobs *jobs = &core->jobs;
    struct proto_decoder *decoder = &call->actions->scratch->decoder;
    const struct proto_jobs asked = call->message->jobs;
    struct proto_job_row row[TTCORE_JOBS_PAGE];
    uint32_t at = asked.from, count = 0;
    for (; at < jobs->max && count < TTCORE_JOBS_PAGE; at++) {
        const struct ttcore_job *job = &jobs->slot[at];
        struct proto_message posted;
        if (!job->is_open) {
            continue;
        }
        enum err err = proto_decode(decoder, job->bytes, job->length, &posted);
        const struct ttcore_session *owner = ttcore_sessions_by_id(&core->sessions, job->owner);
        CHECK(err == ERR_OK && owner != NULL);
        row[count] = (struct proto_job_row){
            .job = job->id,
            .age_ms = milliseconds(core->now_us - job->posted_us),
            .depth = posted.job.depth,
            .reached = job->found.depth,
            .owner = proto_text_of(owner->name),
            .game = posted.job.game,
            .algorithm = posted.job.algorithm,
            .position = posted.job.position,
            .user = proto_text_of(owner->user->name),
            .score = job->found.score,
            .move = job->found.move,
            .nodes = job->found.nodes,
            .duplicated = job->found.duplicated,
            .abandoned = job->found.abandoned,
            .bytes = job->found.bytes,
            .line = {job->found.line, job->found.length},
            .left_s = job->found.left_s,
        };
        count_workers(core, &row[count++]);
    }
    struct proto_message answer = {.type = PROTO_JOBS_ANSWER};
    answer.jobs_answer.request = asked.request;
    answer.jobs_answer.next = at < jobs->max ? at : 0;
    answer.jobs_answer.list = (struct proto_job_rows){count, row};
    ttcore_reply(call, &answer);
}
