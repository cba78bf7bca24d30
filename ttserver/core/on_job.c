/* Jobs, posted by a front-end, pushed to workers, dropped with their owner. */
#include "ttserver/core/core_state.h"

/* Every worker as a target, from `first`. */
static uint32_t target_workers(const struct ttcore *core, struct ttcore_actions *actions)
{
    uint32_t first = actions->targets;
    for (uint32_t i = 0; i < core->sessions.of_role[PROTO_WORKER]; i++) {
        const struct ttcore_session *s = ttcore_sessions_worker_at(&core->sessions, i);
        (void)ttcore_target(actions, s);
    }
    return first;
}

/* Counts only a few of another user's workers in what a job costs its poster: a user with thousands
 * of them would otherwise keep everybody from posting. */
static uint32_t workers_counted(const struct ttcore *core, const struct ttcore_user *user)
{
    uint32_t own = user->workers < TTCORE_POST_WORKERS ? 0 : user->workers - TTCORE_POST_WORKERS;
    return core->sessions.workers_counted + own;
}

/* The messages from `from` on, one at most, are for all workers, and about a job of that user. */
static void address_to_all(const struct ttcore *core, struct ttcore_actions *actions, uint32_t from,
                           const struct ttcore_user *user)
{
    uint32_t paid = workers_counted(core, user);
    if (from < actions->messages) {
        struct ttcore_message *message = &actions->message[from];
        message->in_order = true;
        message->paid = paid < message->targets ? paid : message->targets;
    }
}

static void send_stop(struct ttcore_actions *actions, uint64_t job, uint8_t reason, uint32_t first)
{
    struct proto_message stop = {.type = PROTO_JOB_STOP};
    stop.job_stop = (struct proto_job_stop){job, reason};
    ttcore_actions_send(actions, &stop, first, actions->targets - first);
}

bool ttcore_owns_job(const struct ttcore *core, const struct ttcore_job *job,
                     const struct ttcore_session *session)
{
    const struct ttcore_session *owner = ttcore_sessions_by_id(&core->sessions, job->owner);
    return owner != NULL && session->role == PROTO_FRONT && owner->user == session->user &&
           (owner == session || owner->instance == session->instance);
}

static void give_job(struct ttcore *core, struct ttcore_job *job, struct ttcore_session *session)
{
    struct ttcore_session *owner = ttcore_sessions_by_id(&core->sessions, job->owner);
    CHECK_THAT(owner != NULL && owner->jobs > 0, "an open job has an owner, who counts it");
    CHECK_THAT(owner->user == session->user, "a job stays with its user");
    owner->jobs--;
    session->jobs++;
    job->owner = session->id;
}

/* Namespaces that sessions search in: others may post many jobs before the next result is stored.
 */
static void keep_namespaces(struct ttcore *core)
{
    const struct ttcore_session *s;
    uint64_t kept = 0;
    for (s = TAILQ_FIRST(&core->sessions.by_silence); s != NULL; s = TAILQ_NEXT(s, link)) {
        if (s->role != PROTO_MONITOR && s->namespace_id != kept) {
            tt_generations_keep(&core->generations, s->namespace_id);
            kept = s->namespace_id;
        }
    }
}

void ttcore_on_job_post(struct ttcore_call *call)
{
    struct ttcore *core = call->core;
    struct ttcore_session *session = call->session;
    struct ttcore_user *user = session->user;
    const uint64_t id = call->message->job.job;
    const char *fault = NULL;

    /* 1. A job that is open stays as it is; its owner may have come back as another session.
     * Without keys a front-end whose address changes is another user at first: an instance is too
     * little to take over a job with, as others may have heard it. */
    if (id == 0) {
        ttcore_refuse(call, PROTO_ERR_RANGE, 0, "JOB_POST: a job has no id 0");
        return;
    }
    struct ttcore_job *job = ttcore_jobs_find(&core->jobs, id);
    if (job != NULL && ttcore_owns_job(core, job, session)) {
        give_job(core, job, session);
        return;
    }
    if (job != NULL) {
        const struct ttcore_session *owner = ttcore_sessions_by_id(&core->sessions, job->owner);
        core->count.jobs_refused++;
        ttcore_refuse(call, PROTO_ERR_LIMIT, (uint32_t)id,
                      owner != NULL && owner->instance == session->instance
                          ? "JOB_POST: an earlier session of this front-end, of another address or "
                            "key, has this job until it expires"
                          : "JOB_POST: another has a job of this id open");
        return;
    }

    /* 2. May it be opened? It costs its user the more the more workers get it, and its stop. */
    if (ttcore_jobs_is_barred(&core->jobs, id)) {
        ttcore_refuse(call, PROTO_ERR_ROLE, (uint32_t)id,
                      "JOB_POST: an administrator has stopped this job");
        return;
    }
    if (core->jobs.open == core->jobs.max) {
        core->count.jobs_refused++;
        fault = "JOB_POST: this shard has as many jobs as it may (--jobs)";
    } else if (user->jobs >= (core->jobs.max >= 4 ? core->jobs.max / 4 : 1)) {
        core->count.jobs_over_quota++;
        fault = "JOB_POST: this user has a quarter of all jobs of this shard (--jobs) and may have "
                "no more";
    } else if (!ttcore_budget_take(&user->posts_us, core->now_us, TTCORE_POSTS_BURST,
                                   ttcore_heartbeat_us(core) / TTCORE_POSTS,
                                   1 + workers_counted(core, user) / TTCORE_POST_WORKERS)) {
        core->count.posts_too_fast++;
        fault = "JOB_POST: this user posts more jobs in a heartbeat than it may";
    }
    if (fault != NULL) {
        ttcore_refuse(call, PROTO_ERR_LIMIT, (uint32_t)id, fault);
        return;
    }

    /* 3. It is open, begins a generation of its namespace, and goes to all workers. */
    job = ttcore_jobs_add(&core->jobs, call->message, session->id, user->id, core->now_us);
    session->jobs++;
    user->jobs++;
    CHECK_THAT(user->jobs <= core->jobs.open, "a user's jobs are open");
    keep_namespaces(core);
    tt_generations_advance(&core->generations, call->message->job.namespace_id);
    core->count.job_posts++;
    uint32_t first = target_workers(core, call->actions), from = call->actions->messages;
    ttcore_actions_send_bytes(call->actions, job->bytes, job->length, first,
                              call->actions->targets - first);
    address_to_all(core, call->actions, from, user);
}

void ttcore_on_job_stop(struct ttcore_call *call)
{
    struct ttcore *core = call->core;
    uint64_t id = call->message->job_stop.job;

    /* 1. May the sender stop it? A repeated or late message is about no job. */
    struct ttcore_job *job = ttcore_jobs_find(&core->jobs, id);
    if (job == NULL) {
        return;
    }
    bool by_owner = ttcore_owns_job(core, job, call->session);
    if (!by_owner && !(call->peer.may & TTCORE_MAY_STOP_ANY_JOB)) {
        core->count.role_refused++;
        ttcore_refuse(call, PROTO_ERR_ROLE, 0, "JOB_STOP: for the job's owner only");
        return;
    }

    /* 2. The job is removed, and workers that still report on it are told so. An administrator's
     * stop keeps its front-end, which repeats the post, from opening it again. */
    if (by_owner) {
        give_job(core, job, call->session);
    }
    struct ttcore_session *owner = ttcore_sessions_by_id(&core->sessions, job->owner);
    CHECK(owner != NULL && owner->jobs > 0 && owner->user->jobs > 0);
    owner->jobs--;
    owner->user->jobs--;
    ttcore_jobs_remove(&core->jobs, job);
    if (!by_owner) {
        ttcore_jobs_bar(&core->jobs, id);
    }

    /* 3. JOB_STOP to all workers. */
    uint32_t from = call->actions->messages;
    send_stop(call->actions, id, PROTO_STOP_OWNER, target_workers(core, call->actions));
    address_to_all(core, call->actions, from, call->session->user);
}

/* In the sender's own name; but not more than an owner can be expected to read. */
static void pass_on(struct ttcore_call *call, const struct ttcore_session *owner)
{
    struct proto_message report = *call->message;
    if (!ttcore_budget_take(&call->session->reports_us, call->core->now_us, TTCORE_REPORTS_BURST,
                            ttcore_heartbeat_us(call->core) / TTCORE_REPORTS, 1)) {
        call->core->count.reports_too_fast++;
        return;
    }
    report.job_report.instance = call->session->alias; /* its instance is its secret */
    report.job_report.name = proto_text_of(call->session->name);
    ttcore_send(call->actions, owner, &report);
}

/* What this searcher has done for that job, for who watches. */
static void keep_totals(struct ttcore_session *session, const struct proto_job_report *report,
                        bool is_open)
{
    bool searches = report->state == PROTO_JOB_SEARCHING && is_open;
    if (searches || session->searches == report->job) {
        session->searches = searches ? report->job : 0;
        session->work = (struct ttcore_work){
            .nodes = report->nodes,
            .asks = report->asks,
            .waited_us = report->waited_us,
            .talked_us = report->talked_us,
            .duplicated = report->duplicated,
            .abandoned = report->abandoned,
            .bytes_sent = report->bytes_sent,
            .bytes_received = report->bytes_received,
        };
    }
}

void ttcore_on_job_report(struct ttcore_call *call)
{
    struct ttcore *core = call->core;
    struct ttcore_session *session = call->session;
    const struct proto_job_report *report = &call->message->job_report;
    const char *fault = proto_report_fault(report);
    if (fault != NULL) {
        ttcore_refuse(call, PROTO_ERR_RANGE, 0, fault);
        return;
    }
    struct ttcore_job *job = ttcore_jobs_find(&core->jobs, report->job);

    /* 1. From a front-end about a job of its own: of itself, or of all who search it. */
    if (session->role == PROTO_FRONT) {
        if (job != NULL && ttcore_owns_job(core, job, session)) {
            core->count.job_reports++;
            if (report->instance != 0) {
                keep_totals(session, report, true);
            } else {
                ttcore_jobs_take_report(job, report, true);
            }
        }
        return;
    }

    /* 2. From a worker, for who watches: what it has done, and why it does not search. */
    keep_totals(session, report, job != NULL);
    if (report->state == PROTO_JOB_REFUSED && job != NULL) {
        session->refuses = report->job;
        (void)proto_text_copy(report->why, session->why, sizeof session->why);
    } else if (session->refuses == report->job) {
        session->refuses = 0;
    }

    /* 3. It is passed on to the job's owner. A worker that does not know that the job was stopped,
     * or knows it from other shards, is told; but its last report says what it did in all, for
     * which the owner waits. */
    if (job != NULL) {
        const struct ttcore_session *owner = ttcore_sessions_by_id(&core->sessions, job->owner);
        CHECK(owner != NULL);
        core->count.job_reports++;
        ttcore_jobs_take_report(job, report, false);
        pass_on(call, owner);
        return;
    }
    core->count.reports_unknown_job++;
    send_stop(call->actions, report->job, PROTO_STOP_EXPIRED, 0);
    const struct ttcore_stopped *stopped = ttcore_jobs_stopped(&core->jobs, report->job);
    const struct ttcore_session *owner =
        stopped == NULL ? NULL : ttcore_sessions_by_id(&core->sessions, stopped->owner);
    if (owner != NULL && report->state != PROTO_JOB_SEARCHING) {
        pass_on(call, owner);
    }
}

uint32_t ttcore_push_jobs(const struct ttcore *core, struct ttcore_actions *actions, uint32_t from,
                          uint32_t first, uint32_t targets)
{
    const struct ttcore_jobs *jobs = &core->jobs;
    uint32_t bytes = 0;
    for (uint32_t i = from; i < jobs->max && jobs->open > 0; i++) {
        const struct ttcore_job *job = &jobs->slot[i];
        bytes += job->is_open ? job->length : 0;
        if (bytes > TTCORE_PUSH_BYTES) {
            return i;
        }
        if (job->is_open) {
            ttcore_actions_send_bytes(actions, job->bytes, job->length, first, targets);
        }
    }
    return 0;
}

void ttcore_orphan_jobs(struct ttcore *core, struct ttcore_session *session)
{
    struct ttcore_jobs *jobs = &core->jobs;
    for (uint32_t i = 0; session->jobs > 0; i++) {
        CHECK(i < jobs->max);
        if (jobs->slot[i].is_open && jobs->slot[i].owner == session->id) {
            jobs->slot[i].owner = 0;
            jobs->orphans++;
            CHECK_THAT(session->user->jobs > 0, "a user has the jobs of its sessions");
            session->jobs--;
            session->user->jobs--;
        }
    }
}

void ttcore_drop_orphans(struct ttcore *core, struct ttcore_actions *actions)
{
    struct ttcore_jobs *jobs = &core->jobs;
    uint32_t from = actions->messages;
    uint32_t first = jobs->orphans > 0 ? target_workers(core, actions) : actions->targets;
    for (uint32_t i = 0; jobs->orphans > 0; i++) {
        struct ttcore_job *job = &jobs->slot[i];
        CHECK(i < jobs->max);
        if (job->is_open && job->owner == 0) {
            ttcore_jobs_remove(jobs, job);
            jobs->orphans--;
            send_stop(actions, job->id, PROTO_STOP_EXPIRED, first);
        }
    }
    for (; from < actions->messages; from++) {
        actions->message[from].in_order = true;
    }
}
