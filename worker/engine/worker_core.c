#include "worker/engine/worker_core.h"

#include "common/rng.h"

#include <string.h>

static uint32_t or_default(uint32_t value, uint32_t usual)
{
    return value != 0 ? value : usual;
}

void worker_core_open(struct worker_core *c, uint64_t instance,
                      const struct worker_patience *patience)
{
    memset(c, 0, sizeof *c);
    c->instance = instance;
    c->patience = (struct worker_patience){
        .report_ms = or_default(patience->report_ms, WORKER_REPORT_MS),
        .move_ms = or_default(patience->move_ms, WORKER_MOVE_MS),
        .repeat_ms = or_default(patience->repeat_ms, WORKER_REPEAT_MS),
        .orphan_ms = or_default(patience->orphan_ms, WORKER_ORPHAN_MS),
        .unknown_ms = or_default(patience->unknown_ms, WORKER_UNKNOWN_MS),
    };
}

static uint64_t after_ms(uint64_t now_us, uint32_t ms)
{
    return now_us + ms * UINT64_C(1000);
}

/* ---- open jobs ---- */

static struct worker_job *find(struct worker_core *c, uint64_t id)
{
    for (unsigned i = 0; i < c->jobs; i++) {
        if (c->job[i].offer.wire.job == id) {
            return &c->job[i];
        }
    }
    return NULL;
}

static void forget(struct worker_core *c, struct worker_job *job)
{
    *job = c->job[--c->jobs];
}

static void on_offer(struct worker_core *c, const struct job_event *e)
{
    struct worker_job *job = find(c, e->offer.wire.job);
    if (e->offer.wire.job == 0) { /* the id of no job */
        return;
    }
    if (job == NULL && c->jobs == WORKER_JOBS_MAX) {
        c->missed = true;
        return;
    }
    if (job == NULL) {
        job = &c->job[c->jobs++];
        *job = (struct worker_job){.offer = e->offer};
    }
    job->sources |= UINT64_C(1) << e->source;
    job->orphan_until_us = 0;
}

/* A source no longer vouches for a job; without any it is orphaned. The shortest patience stands,
 * however often a source repeats itself. */
static void withdraw_source(struct worker_job *job, unsigned source, uint64_t until_us)
{
    job->sources &= ~(UINT64_C(1) << source);
    if (job->sources == 0 && (job->orphan_until_us == 0 || until_us < job->orphan_until_us)) {
        job->orphan_until_us = until_us;
    }
}

/* The last source that vouched saw the owner go: the worker is free for other jobs. A source that
 * never vouched may have restarted, and the job may be posted to it again in a moment. */
static void on_stop(struct worker_core *c, const struct job_event *e, uint64_t now_us)
{
    struct worker_job *job = find(c, e->job);
    if (job != NULL) {
        bool vouched = job->sources >> e->source & 1;
        withdraw_source(job, e->source, after_ms(now_us, c->patience.unknown_ms));
        if (e->by_owner || (vouched && job->sources == 0)) {
            forget(c, job);
        }
    }
}

static void on_source_down(struct worker_core *c, unsigned source, uint64_t now_us)
{
    c->index[source].known = false;
    for (unsigned i = 0; i < c->jobs; i++) {
        withdraw_source(&c->job[i], source, after_ms(now_us, c->patience.orphan_ms));
    }
}

/* Its open jobs follow: an orphaned job that is not among them has probably been stopped. */
static void on_source_up(struct worker_core *c, unsigned source, uint64_t now_us)
{
    for (unsigned i = 0; i < c->jobs; i++) {
        if (c->job[i].orphan_until_us != 0) {
            withdraw_source(&c->job[i], source, after_ms(now_us, c->patience.unknown_ms));
        }
    }
}

void worker_core_event(struct worker_core *c, const struct job_event *e, uint64_t now_us)
{
    switch (e->kind) {
    case JOB_OFFERED:
        on_offer(c, e);
        break;
    case JOB_STOPPED:
        on_stop(c, e, now_us);
        break;
    case JOB_SOURCE_UP:
        on_source_up(c, e->source, now_us);
        break;
    case JOB_SOURCE_DOWN:
        on_source_down(c, e->source, now_us);
        break;
    case JOB_INDEX:
        c->index[e->source].known = true;
        c->index[e->source].number = e->worker_index;
        c->index[e->source].source_id = e->source_id;
        break;
    case JOB_MISSED:
        c->missed = true;
        break;
    case JOB_REPORTED: /* for front-ends */
        break;
    }
}

static void drop_orphans(struct worker_core *c, uint64_t now_us)
{
    for (unsigned i = c->jobs; i > 0; i--) {
        struct worker_job *job = &c->job[i - 1];
        if (job->orphan_until_us != 0 && now_us >= job->orphan_until_us) {
            forget(c, job);
        }
    }
}

/* ---- which job ---- */

unsigned worker_core_choose(const uint64_t *job, unsigned jobs, uint32_t worker_index)
{
    unsigned wanted = worker_index % jobs, chosen = 0;
    for (unsigned i = 0; i < jobs; i++) {
        unsigned rank = 0;
        for (unsigned k = 0; k < jobs; k++) {
            rank += job[k] < job[i];
        }
        chosen = rank == wanted ? i : chosen;
    }
    return chosen;
}

/* All workers go by the same source: of those that are up, the one of the smallest id. Before any
 * gave an index, chance decides. */
static uint32_t index_of(const struct worker_core *c)
{
    uint32_t number = (uint32_t)rng_mix(c->instance);
    uint64_t smallest = UINT64_MAX;
    for (unsigned i = 0; i < JOB_SOURCES_MAX; i++) {
        if (c->index[i].known && c->index[i].source_id <= smallest) {
            smallest = c->index[i].source_id;
            number = c->index[i].number;
        }
    }
    return number;
}

/* Among those it has not finished and that a source vouches for. */
static struct worker_job *choose(struct worker_core *c)
{
    uint64_t id[WORKER_JOBS_MAX];
    unsigned ready = 0;
    for (unsigned i = 0; i < c->jobs; i++) {
        const struct worker_job *job = &c->job[i];
        bool wanted = !job->finished || job->offer.wire.job == c->running;
        if (wanted && job->orphan_until_us == 0) {
            id[ready++] = job->offer.wire.job;
        }
    }
    return ready == 0 ? NULL : find(c, id[worker_core_choose(id, ready, index_of(c))]);
}

/* A short job, or a source that was out for a moment, moves nobody. */
static bool belongs_elsewhere(struct worker_core *c, uint64_t now_us)
{
    const struct worker_job *job = c->jobs > 1 ? choose(c) : NULL;
    if (job == NULL || job->offer.wire.job == c->running) {
        c->reassigned_us = 0;
        return false;
    }
    c->reassigned_us = c->reassigned_us != 0 ? c->reassigned_us : now_us;
    return now_us >= after_ms(c->reassigned_us, c->patience.move_ms);
}

/* ---- between searches ---- */

static void clear(struct worker_actions *out)
{
    out->search = NULL;
    out->refresh = out->leave = false;
    out->reports = 0;
}

/* A stop that got lost is found out: a source answers a report on a job that it does not know. */
static void repeat_reports(struct worker_core *c, uint64_t now_us, struct worker_actions *out)
{
    if (now_us < c->next_report_us) {
        return;
    }
    c->next_report_us = after_ms(now_us, c->patience.repeat_ms);
    for (unsigned i = 0; i < c->jobs; i++) {
        if (c->job[i].last.job != 0) {
            out->report[out->reports++] = c->job[i].last;
        }
    }
}

/* Not at once again: what comes may be dropped like the last time. */
static void refresh(struct worker_core *c, uint64_t now_us, struct worker_actions *out)
{
    out->refresh = c->missed && c->jobs < WORKER_JOBS_MAX && now_us >= c->next_refresh_us;
    if (out->refresh) {
        c->missed = false;
        c->next_refresh_us = after_ms(now_us, c->patience.repeat_ms);
    }
}

void worker_core_idle(struct worker_core *c, uint64_t now_us, struct worker_actions *out)
{
    clear(out);
    drop_orphans(c, now_us);
    const struct worker_job *job = choose(c);
    if (job != NULL) {
        out->search = &job->offer;
        return;
    }
    refresh(c, now_us, out);
    repeat_reports(c, now_us, out);
}

void worker_core_refuse(struct worker_core *c, uint64_t id)
{
    struct worker_job *job = find(c, id);
    CHECK(job != NULL);
    job->finished = true;
    job->last =
        (struct proto_job_report){.job = id, .instance = c->instance, .state = PROTO_JOB_ENDED};
}

void worker_core_begin(struct worker_core *c, uint64_t id, uint32_t time_ms, uint64_t now_us)
{
    struct worker_job *job = find(c, id);
    CHECK(job != NULL && c->running == 0);
    job->finished = true; /* not begun again, unless it moves to another job meanwhile */
    if (time_ms != 0 && job->deadline_us == 0) {
        job->deadline_us = after_ms(now_us, time_ms);
    }
    c->running = id;
    c->before = job->before;
    c->deadline_us = job->deadline_us;
    c->next_report_us = now_us; /* at once: the front-end counts its workers */
    c->reassigned_us = 0;
    c->moving = false;
    c->missed = false; /* the search says HELLO with its namespace, and all open jobs follow */
}

/* ---- while it searches ---- */

static void report(struct worker_core *c, const struct search_counters *counters, unsigned depth,
                   enum proto_job_state state, struct worker_actions *out)
{
    struct worker_job *job = find(c, c->running);
    struct proto_job_report message = {
        .job = c->running,
        .instance = c->instance,
        .state = (uint8_t)state,
        .depth = depth > c->before.depth ? (uint8_t)depth : c->before.depth,
    };
#define X(name, json) message.name = c->before.name + counters->name;
    COUNTERS_REPORTED(X)
#undef X
    if (job != NULL) {
        job->last = message;
    }
    out->report[out->reports++] = message;
}

void worker_core_poll(struct worker_core *c, const struct search_counters *counters, unsigned depth,
                      uint64_t now_us, struct worker_actions *out)
{
    clear(out);
    drop_orphans(c, now_us);
    if (now_us >= c->next_report_us) {
        c->next_report_us = after_ms(now_us, c->patience.report_ms);
        report(c, counters, depth, PROTO_JOB_SEARCHING, out);
        c->moving = belongs_elsewhere(c, now_us);
        refresh(c, now_us, out);
    }
    out->leave = c->moving || find(c, c->running) == NULL ||
                 (c->deadline_us != 0 && now_us >= c->deadline_us);
}

void worker_core_end(struct worker_core *c, const struct search_counters *counters, unsigned depth,
                     bool done, struct worker_actions *out)
{
    struct worker_job *job = find(c, c->running);
    clear(out);
    report(c, counters, depth, PROTO_JOB_ENDED, out);
    if (job != NULL && c->moving && !done) {
        job->finished = false;
        job->before = job->last;
    }
    c->running = 0;
}
