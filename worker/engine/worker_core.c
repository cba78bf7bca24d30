#include "worker/engine/worker_core.h"

#include "common/rng.h"

#include <stdio.h>
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

static bool is_named(const struct worker_job *job, struct worker_job_name name)
{
    return job->offer.wire.job == name.job && job->offer.wire.user == name.user;
}

static struct worker_job *find(struct worker_core *c, struct worker_job_name name)
{
    for (unsigned i = 0; i < c->jobs; i++) {
        if (is_named(&c->job[i], name)) {
            return &c->job[i];
        }
    }
    return NULL;
}

static void forget(struct worker_core *c, struct worker_job *job)
{
    CHECK_THAT(job >= c->job && job < c->job + c->jobs, "a job that is forgotten was known");
    *job = c->job[--c->jobs];
}

static unsigned jobs_of(const struct worker_core *c, uint64_t user)
{
    unsigned n = 0;
    for (unsigned i = 0; i < c->jobs; i++) {
        n += c->job[i].offer.wire.user == user;
    }
    return n;
}

/* Forgotten and offered again, it would be searched again, or its totals would begin anew, below
 * what its front-end was told. */
static bool has_begun(const struct worker_job *job)
{
    return job->finished || job->before.nodes > 0;
}

/* No user fills this memory: the one with most jobs here gives way to one with fewer, as far as
 * that makes them more equal. Better with a job that was not begun, if there is one. */
static bool make_room(struct worker_core *c, uint64_t user)
{
    struct worker_job *victim = NULL;
    unsigned most = jobs_of(c, user) + 1;
    for (unsigned i = 0; i < c->jobs; i++) {
        struct worker_job *job = &c->job[i];
        unsigned n = jobs_of(c, job->offer.wire.user);
        bool is_better = victim != NULL && n == most && has_begun(victim) && !has_begun(job);
        if (!is_named(job, c->running) && (n > most || is_better)) {
            most = n;
            victim = job;
        }
    }
    if (victim != NULL) {
        forget(c, victim);
    }
    return victim != NULL;
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

static bool vouches(const struct worker_job *job, unsigned source)
{
    return job->sources >> source & 1;
}

static void on_offer(struct worker_core *c, const struct client_event *e, uint64_t now_us)
{
    const struct worker_job_name name = {e->job->job, e->job->user};
    struct job_offer offer;
    /* The job would count on a source that fell silent before, for ever: when that is up again it
     * offers what it has. Job 0 is the id of no job. */
    if (!(c->up >> e->shard & 1) || name.job == 0 || !job_offer_set(&offer, e->job)) {
        return;
    }
    /* A source has one job of an id: its stop of that one must not end another user's, who has the
     * same id open elsewhere. */
    for (unsigned i = 0; i < c->jobs; i++) {
        struct worker_job *job = &c->job[i];
        if (job->offer.wire.job == name.job && vouches(job, e->shard) &&
            job->offer.wire.user != name.user) {
            withdraw_source(job, e->shard, after_ms(now_us, c->patience.unknown_ms));
        }
    }
    struct worker_job *job = find(c, name);
    if (job == NULL && c->jobs == WORKER_JOBS_MAX) {
        c->missed = true;
        if (!make_room(c, name.user)) {
            return;
        }
    }
    if (job == NULL) {
        job = &c->job[c->jobs++];
        *job = (struct worker_job){.offer = offer};
    }
    job->sources |= UINT64_C(1) << e->shard;
    job->orphan_until_us = 0;
    CHECK_THAT(c->jobs <= WORKER_JOBS_MAX, "open jobs have room");
}

/* A stop names no user: it is meant for the job that the source offered. The last source that
 * vouched saw the owner go: the worker is free for other jobs. A source that does not vouch may
 * have restarted, and the job may be posted to it again in a moment. */
static void on_stop(struct worker_core *c, const struct client_event *e, uint64_t now_us)
{
    for (unsigned i = c->jobs; i > 0; i--) {
        struct worker_job *job = &c->job[i - 1];
        if (job->offer.wire.job == e->job_stop->job) {
            bool vouched = vouches(job, e->shard);
            withdraw_source(job, e->shard, after_ms(now_us, c->patience.unknown_ms));
            const bool by_owner = e->job_stop->reason == PROTO_STOP_OWNER;
            if (vouched && (by_owner || job->sources == 0)) {
                forget(c, job);
            }
        }
    }
}

void worker_core_event(struct worker_core *c, const struct client_event *e, uint64_t boot,
                       uint64_t now_us)
{
    CHECK_THAT(e->shard < CLIENT_SHARDS_MAX, "each source has a bit");
    const uint64_t bit = UINT64_C(1) << e->shard;
    switch (e->kind) {
    case CLIENT_JOB:
        on_offer(c, e, now_us);
        break;
    case CLIENT_JOB_STOP:
        on_stop(c, e, now_us);
        break;
    case CLIENT_SHARD_UP:
        c->up |= bit;
        /* Its open jobs follow: an orphaned one that is not among them has probably been stopped.
         */
        for (unsigned i = 0; i < c->jobs; i++) {
            if (c->job[i].orphan_until_us != 0) {
                withdraw_source(&c->job[i], e->shard, after_ms(now_us, c->patience.unknown_ms));
            }
        }
        break;
    case CLIENT_SHARD_DOWN:
        c->up &= ~bit;
        c->index[e->shard].known = false;
        for (unsigned i = 0; i < c->jobs; i++) {
            withdraw_source(&c->job[i], e->shard, after_ms(now_us, c->patience.orphan_ms));
        }
        break;
    case CLIENT_WORKER_INDEX:
        if (c->up & bit) {
            c->index[e->shard] = (struct worker_index){true, e->worker_index->index, boot};
        }
        break;
    default: /* for front-ends */
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

/* Whether an earlier choice is of the same user. */
static bool is_repeated_user(const struct worker_job_name *choice, unsigned at)
{
    unsigned i = 0;
    while (choice[i].user != choice[at].user) {
        i++;
    }
    return i < at;
}

unsigned worker_core_choose(const struct worker_job_name *choice, unsigned choices,
                            uint32_t worker_index, uint64_t source_id)
{
    unsigned users = 0, chosen = 0;
    for (unsigned i = 0; i < choices; i++) {
        users += !is_repeated_user(choice, i);
    }
    for (unsigned i = 0; i < choices; i++) {
        unsigned user_rank = 0, rank = 0, jobs = 0;
        for (unsigned k = 0; k < choices; k++) {
            bool is_same = choice[k].user == choice[i].user;
            bool is_before =
                rng_mix(choice[k].user ^ source_id) < rng_mix(choice[i].user ^ source_id);
            user_rank += is_before && !is_repeated_user(choice, k);
            rank += is_same && choice[k].job < choice[i].job;
            jobs += is_same;
        }
        bool is_wanted = worker_index % users == user_rank && worker_index / users % jobs == rank;
        chosen = is_wanted ? i : chosen;
    }
    return chosen;
}

/* Among those it has not finished and that a source vouches for. */
static struct worker_job *choose(struct worker_core *c)
{
    struct worker_job_name choice[WORKER_JOBS_MAX];
    unsigned ready = 0;
    for (unsigned i = 0; i < c->jobs; i++) {
        const struct worker_job *job = &c->job[i];
        CHECK_THAT((job->sources == 0) == (job->orphan_until_us != 0),
                   "a job that no source vouches for is orphaned, and no other");
        bool wanted = !job->finished || is_named(job, c->running);
        if (wanted && job->orphan_until_us == 0) {
            choice[ready++] = (struct worker_job_name){job->offer.wire.job, job->offer.wire.user};
        }
    }
    if (ready == 0) {
        return NULL;
    }
    /* All workers go by the same source: of those that are up, the one of the smallest id. Before
     * any gave an index, chance decides. */
    struct worker_index index = {.number = (uint32_t)rng_mix(c->instance), .source_id = UINT64_MAX};
    for (unsigned i = 0; i < CLIENT_SHARDS_MAX; i++) {
        if (c->index[i].known && c->index[i].source_id <= index.source_id) {
            index = c->index[i];
        }
    }
    return find(c, choice[worker_core_choose(choice, ready, index.number, index.source_id)]);
}

/* A short job, or a source that was out for a moment, moves nobody. */
static bool belongs_elsewhere(struct worker_core *c, uint64_t now_us)
{
    const struct worker_job *job = c->jobs > 1 ? choose(c) : NULL;
    if (job == NULL || is_named(job, c->running)) {
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

static void set_text(struct worker_job *job)
{
    bool is_refused = job->last.state == PROTO_JOB_REFUSED;
    job->last.line = proto_text_of(is_refused ? "" : job->line);
    job->last.why = proto_text_of(is_refused ? job->line : "");
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
            set_text(&c->job[i]); /* jobs move in the array */
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
    CHECK_THAT(c->running.job == 0, "who is idle searches no job");
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

void worker_core_refuse(struct worker_core *c, struct worker_job_name name, const char *why,
                        struct worker_actions *out)
{
    struct worker_job *job = find(c, name);
    CHECK(job != NULL);
    clear(out);
    job->finished = true;
    job->last = (struct proto_job_report){
        .job = name.job, .instance = c->instance, .state = PROTO_JOB_REFUSED};
    snprintf(job->line, sizeof job->line, "%s", why);
    set_text(job);
    out->report[out->reports++] = job->last;
}

void worker_core_begin(struct worker_core *c, struct worker_job_name name, uint32_t time_ms,
                       uint64_t now_us)
{
    struct worker_job *job = find(c, name);
    CHECK(job != NULL && c->running.job == 0);
    job->finished = true; /* not begun again, unless it moves to another job meanwhile */
    if (time_ms != 0 && job->deadline_us == 0) {
        job->deadline_us = after_ms(now_us, time_ms);
    }
    c->running = name;
    c->before = job->before;
    c->deadline_us = job->deadline_us;
    c->next_report_us = now_us; /* at once: the front-end counts its workers */
    c->reassigned_us = 0;
    c->moving = false;
    c->missed = false; /* the search says HELLO with its namespace, and all open jobs follow */
}

/* ---- while it searches ---- */

/* A worker that returns to a job is soon as deep as it was: until then what it found before stands.
 */
static void report(struct worker_core *c, const struct worker_progress *p,
                   enum proto_job_state state, struct worker_actions *out)
{
    CHECK_THAT(c->running.job != 0, "what is searched is a job");
    struct worker_job *job = find(c, c->running);
    struct proto_job_report message = c->before;
    struct counters counters = job_report_counters(&c->before);
    counters_add(&counters, &p->counters);
    job_report_set(&message, &counters);
    message.job = c->running.job;
    message.instance = c->instance;
    message.state = (uint8_t)state;
    bool is_newest = p->result->depth > 0 && p->result->depth >= c->before.depth;
    if (is_newest) {
        message.depth = (uint8_t)p->result->depth;
        message.score = (int16_t)p->result->score;
        message.move = p->result->move;
    }
    message.line = proto_text_of(is_newest ? p->line : job != NULL ? job->line : "");
    CHECK_THAT(message.nodes >= c->before.nodes, "what is reported of a job only grows");
    if (job != NULL) {
        job->last = message;
    }
    if (job != NULL && is_newest) {
        snprintf(job->line, sizeof job->line, "%s", p->line);
    }
    out->report[out->reports++] = message;
}

/* Whether it has just searched as many nodes as all together were to: its front-end stops the job
 * when it hears so. */
static bool is_spent(const struct worker_core *c, const struct worker_job *job,
                     const struct worker_progress *p)
{
    const uint64_t limit = job->offer.wire.nodes;
    return limit > 0 && job->last.nodes < limit && c->before.nodes + p->counters.nodes >= limit;
}

void worker_core_poll(struct worker_core *c, const struct worker_progress *progress,
                      uint64_t now_us, struct worker_actions *out)
{
    clear(out);
    drop_orphans(c, now_us);
    const struct worker_job *job = find(c, c->running);
    if (now_us >= c->next_report_us || (job != NULL && is_spent(c, job, progress))) {
        c->next_report_us = after_ms(now_us, c->patience.report_ms);
        report(c, progress, PROTO_JOB_SEARCHING, out);
        c->moving = belongs_elsewhere(c, now_us);
        refresh(c, now_us, out);
    }
    out->leave = c->moving || job == NULL || (c->deadline_us != 0 && now_us >= c->deadline_us);
}

void worker_core_end(struct worker_core *c, const struct worker_progress *progress, bool done,
                     struct worker_actions *out)
{
    struct worker_job *job = find(c, c->running);
    clear(out);
    report(c, progress, PROTO_JOB_ENDED, out);
    if (job != NULL && c->moving && !done) {
        job->finished = false;
        job->before = job->last;
    }
    c->running = (struct worker_job_name){.job = 0};
}
