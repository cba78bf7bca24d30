/* Jobs, posted by a front-end, pushed to workers, dropped with their owner. */
#include "ttserver/core/call.h"

/* Every worker as a target, from `first`. */
static uint32_t target_workers(const struct ttcore *core, struct ttcore_actions *actions)
{
    uint32_t first = actions->targets;
    const struct ttcore_session *s = ttcore_sessions_oldest(&core->sessions);
    for (; s != NULL; s = ttcore_sessions_next(&core->sessions, s)) {
        if (s->role == PROTO_WORKER) {
            ttcore_actions_target(actions, s->route, s->route_length);
        }
    }
    return first;
}

static void send_stop(struct ttcore_actions *actions, uint64_t job, uint8_t reason, uint32_t first)
{
    struct proto_message stop = {.type = PROTO_JOB_STOP};
    stop.job_stop = (struct proto_job_stop){job, reason};
    ttcore_actions_send(actions, &stop, first, actions->targets - first);
}

/* A front-end whose connection broke comes back as another session of the same instance. */
static bool is_owner(const struct ttcore *core, const struct ttcore_job *job,
                     const struct ttcore_session *session)
{
    const struct ttcore_session *owner = ttcore_sessions_by_id(&core->sessions, job->owner);
    return owner != NULL && session->role == PROTO_FRONT &&
           (owner == session || owner->instance == session->instance);
}

static void give_job(struct ttcore *core, struct ttcore_job *job, struct ttcore_session *session)
{
    struct ttcore_session *owner = ttcore_sessions_by_id(&core->sessions, job->owner);
    CHECK(owner != NULL && owner->jobs > 0);
    owner->jobs--;
    session->jobs++;
    job->owner = session->id;
}

void ttcore_on_job_post(struct ttcore_call *call)
{
    struct ttcore *core = call->core;
    if (call->session->role != PROTO_FRONT) {
        ttcore_refuse(call, PROTO_ERR_ROLE, 0, "JOB_POST: for front-ends only");
        return;
    }
    if (call->message->job_post.job == 0) {
        ttcore_refuse(call, PROTO_ERR_RANGE, 0, "JOB_POST: a job has no id 0");
        return;
    }
    struct ttcore_job *job = ttcore_jobs_find(&core->jobs, call->message->job_post.job);
    if (job != NULL) {
        if (is_owner(core, job, call->session)) {
            give_job(core, job, call->session);
        }
        return;
    }
    job = ttcore_jobs_add(&core->jobs, call->message, call->session->id, core->now_us);
    if (job == NULL) {
        core->count.jobs_refused++;
        ttcore_refuse(call, PROTO_ERR_LIMIT, 0,
                      "JOB_POST: this shard has as many jobs as it may (--jobs)");
        return;
    }
    call->session->jobs++;
    tt_generations_advance(&core->generations, call->message->job_post.namespace_id);
    core->count.job_posts++;
    uint32_t first = target_workers(core, call->actions);
    ttcore_actions_send_bytes(call->actions, job->bytes, job->length, first,
                              call->actions->targets - first);
}

void ttcore_on_job_stop(struct ttcore_call *call)
{
    struct ttcore *core = call->core;
    uint64_t id = call->message->job_stop.job;
    struct ttcore_job *job = ttcore_jobs_find(&core->jobs, id);
    if (job == NULL) {
        return; /* a repeated or late message */
    }
    if (!is_owner(core, job, call->session)) {
        ttcore_refuse(call, PROTO_ERR_ROLE, 0, "JOB_STOP: for the job's owner only");
        return;
    }
    give_job(core, job, call->session);
    call->session->jobs--;
    ttcore_jobs_remove(&core->jobs, job);
    send_stop(call->actions, id, PROTO_STOP_OWNER, target_workers(core, call->actions));
}

static void pass_on(struct ttcore_call *call, const struct ttcore_session *owner)
{
    uint32_t first = ttcore_actions_target(call->actions, owner->route, owner->route_length);
    ttcore_actions_send(call->actions, call->message, first, 1);
}

/* A worker that got the stop reports what it did in all: the owner waits for that. */
static void pass_on_last_report(struct ttcore_call *call)
{
    uint32_t id = ttcore_jobs_stopped_owner(&call->core->jobs, call->message->job_report.job);
    const struct ttcore_session *owner =
        id == 0 ? NULL : ttcore_sessions_by_id(&call->core->sessions, id);
    if (owner != NULL && owner != call->session &&
        call->message->job_report.state == PROTO_JOB_ENDED) {
        pass_on(call, owner);
    }
}

void ttcore_on_job_report(struct ttcore_call *call)
{
    struct ttcore *core = call->core;
    uint64_t id = call->message->job_report.job;
    struct ttcore_job *job = ttcore_jobs_find(&core->jobs, id);
    if (call->session->role == PROTO_CLIENT) {
        ttcore_refuse(call, PROTO_ERR_ROLE, 0, "JOB_REPORT: for workers only");
        return;
    }
    bool searches = call->message->job_report.state == PROTO_JOB_SEARCHING && job != NULL;
    if (call->session->role == PROTO_WORKER && (searches || call->session->searches == id)) {
        call->session->searches = searches ? id : 0;
    }
    if (job == NULL) { /* the reporter missed the stop, or knows the job from other shards */
        core->count.reports_unknown_job++;
        send_stop(call->actions, id, PROTO_STOP_EXPIRED, 0);
        pass_on_last_report(call);
        return;
    }
    if (job->owner == call->session->id) {
        return; /* the owner's own part of the search */
    }
    const struct ttcore_session *owner = ttcore_sessions_by_id(&core->sessions, job->owner);
    CHECK(owner != NULL);
    core->count.job_reports++;
    if (call->message->job_report.depth > job->reached) {
        job->reached = call->message->job_report.depth;
    }
    pass_on(call, owner);
}

void ttcore_push_jobs(struct ttcore_call *call)
{
    const struct ttcore_jobs *jobs = &call->core->jobs;
    for (uint32_t i = 0; i < jobs->max && jobs->open > 0; i++) {
        const struct ttcore_job *job = &jobs->slot[i];
        if (job->length != 0) {
            ttcore_actions_send_bytes(call->actions, job->bytes, job->length, 0, 1);
        }
    }
}

void ttcore_orphan_jobs(struct ttcore *core, struct ttcore_session *session)
{
    struct ttcore_jobs *jobs = &core->jobs;
    for (uint32_t i = 0; session->jobs > 0; i++) {
        CHECK(i < jobs->max);
        if (jobs->slot[i].length != 0 && jobs->slot[i].owner == session->id) {
            jobs->slot[i].owner = 0;
            jobs->orphans++;
            session->jobs--;
        }
    }
}

void ttcore_drop_orphans(struct ttcore *core, struct ttcore_actions *actions)
{
    struct ttcore_jobs *jobs = &core->jobs;
    uint32_t first = jobs->orphans > 0 ? target_workers(core, actions) : actions->targets;
    for (uint32_t i = 0; jobs->orphans > 0; i++) {
        struct ttcore_job *job = &jobs->slot[i];
        CHECK(i < jobs->max);
        if (job->length != 0 && job->owner == 0) {
            ttcore_jobs_remove(jobs, job);
            jobs->orphans--;
            send_stop(actions, job->id, PROTO_STOP_EXPIRED, first);
        }
    }
}
