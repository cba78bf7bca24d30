#include "worker/engine/job_client.h"

#include <stdlib.h>

struct job_client {
    struct remote *remote;
    uint64_t up; /* bit i: source i is up, as far as the receiver of the events knows */
    bool missed; /* an offer was dropped */
    unsigned first, count;
    struct job_event event[JOB_EVENTS_MAX]; /* from `first`, `count` of them */
};

enum err job_client_open(struct job_client **out, struct remote *remote)
{
    struct job_client *c = calloc(1, sizeof *c);
    if (c == NULL) {
        return ERR_NOMEM;
    }
    c->remote = remote;
    *out = c;
    return ERR_OK;
}

void job_client_close(struct job_client **client)
{
    free(*client);
    *client = NULL;
}

/* ---- while messages are read ---- */

/* Room for one event, or NULL. An emptied queue begins at its start again: only as much of it is
 * touched as was ever needed. */
static struct job_event *append(struct job_client *c, enum job_event_kind kind, unsigned source)
{
    if (c->count == 0) {
        c->first = 0;
    }
    if (c->first + c->count == JOB_EVENTS_MAX) {
        return NULL;
    }
    struct job_event *e = &c->event[c->first + c->count++];
    e->kind = kind;
    e->source = source;
    e->sources = 0;
    return e;
}

static bool is_up(const struct job_client *c, unsigned shard)
{
    return c->up >> shard & 1;
}

/* One that comes late, after its source fell silent, is dropped: the job would count on that source
 * for ever. When it is up again it offers what it has. */
static void take_job(struct job_client *c, const struct proto_job *job, unsigned shard)
{
    if (!is_up(c, shard)) {
        return;
    }
    struct job_event *e = append(c, JOB_OFFERED, shard);
    c->missed = c->missed || e == NULL;
    if (e != NULL && !job_offer_set(&e->offer, job)) {
        c->count--;
    }
}

static void take_stop(struct job_client *c, const struct proto_job_stop *stop, unsigned shard)
{
    struct job_event *e = append(c, JOB_STOPPED, shard);
    if (e != NULL) {
        e->job = stop->job;
        e->by_owner = stop->reason == PROTO_STOP_OWNER;
    }
}

static void take_refusal(struct job_client *c, uint64_t job, const struct proto_text *why,
                         unsigned shard)
{
    struct job_event *e = append(c, JOB_REFUSED, shard);
    if (e != NULL) {
        e->job = job;
        proto_text_printable(*why, e->why, sizeof e->why);
    }
}

/* Lines of words are printed with it: one word, never none. */
static void keep_name(struct proto_text name, char *out, size_t size)
{
    proto_text_printable(name.length > 0 ? name : proto_text_of("?"), out, size);
    for (char *at = out; *at != '\0'; at++) {
        *at = *at == ' ' ? '_' : *at;
    }
}

static void take_report(struct job_client *c, const struct proto_job_report *report, unsigned shard)
{
    struct job_event *e = NULL;
    /* Every source passes it on: of a worker's reports the one with most nodes is enough. */
    for (unsigned i = c->first; i < c->first + c->count && e == NULL; i++) {
        struct job_event *queued = &c->event[i];
        bool is_same = queued->kind == JOB_REPORTED && queued->report.job == report->job &&
                       queued->report.instance == report->instance;
        e = is_same ? queued : NULL;
    }
    bool is_older = e != NULL && !proto_report_is_newer(report, &e->report);
    e = e != NULL ? e : append(c, JOB_REPORTED, shard);
    if (e != NULL && !is_older) {
        e->report = *report;
        /* these are borrowed */
        e->report.line = e->report.name = e->report.why = proto_text_of("");
        keep_name(report->name, e->name, sizeof e->name);
    }
    if (e != NULL) {
        e->sources |= UINT64_C(1) << shard;
    }
}

static void take_index(struct job_client *c, uint32_t worker_index, unsigned shard)
{
    struct job_event *e = is_up(c, shard) ? append(c, JOB_INDEX, shard) : NULL;
    if (e != NULL) {
        e->worker_index = worker_index;
    }
}

void job_client_event(struct job_client *c, const struct client_event *e)
{
    const uint64_t bit = UINT64_C(1) << e->shard;
    switch (e->kind) {
    case CLIENT_SHARD_UP:
        c->up |= bit;
        (void)append(c, JOB_SOURCE_UP, e->shard); /* without room, orphans only wait longer */
        break;
    case CLIENT_SHARD_DOWN:
        c->up &= append(c, JOB_SOURCE_DOWN, e->shard) != NULL ? ~bit : UINT64_MAX;
        break;
    case CLIENT_JOB:
        take_job(c, e->job, e->shard);
        break;
    case CLIENT_JOB_STOP:
        take_stop(c, e->job_stop, e->shard);
        break;
    case CLIENT_JOB_REPORT:
        take_report(c, e->job_report, e->shard);
        break;
    case CLIENT_JOB_REFUSED:
        take_refusal(c, e->refused.job, e->refused.why, e->shard);
        break;
    case CLIENT_WORKER_INDEX:
        take_index(c, e->worker_index->index, e->shard);
        break;
    default:
        break;
    }
}

/* ---- for the searcher ---- */

static struct client *client_of(const struct job_client *c)
{
    return remote_client(c->remote);
}

enum err job_client_post(struct job_client *c, const struct job *job)
{
    struct proto_job_post wire = job_to_wire(job);
    return client_job_post(client_of(c), &wire, remote_now_us(c->remote));
}

void job_client_stop(struct job_client *c, uint64_t job)
{
    client_job_stop(client_of(c), job, remote_now_us(c->remote));
}

void job_client_report(struct job_client *c, const struct proto_job_report *report)
{
    client_job_report(client_of(c), report, remote_now_us(c->remote));
}

/* A source that fell silent while the queue was full: jobs must not count on it for ever. */
static bool find_silent(struct job_client *c, struct job_event *out)
{
    for (unsigned i = 0; c->up != 0 && i < JOB_SOURCES_MAX; i++) {
        if (c->up >> i & 1 && client_shard_state(client_of(c), i) != CLIENT_UP) {
            c->up &= ~(UINT64_C(1) << i);
            out->kind = JOB_SOURCE_DOWN;
            out->source = i;
            return true;
        }
    }
    return false;
}

bool job_client_poll(struct job_client *c, struct job_event *out)
{
    if (c->count == 0) {
        bool missed = c->missed;
        c->missed = false;
        *out = (struct job_event){.kind = JOB_MISSED};
        return missed || find_silent(c, out);
    }
    const struct job_event *e = &c->event[c->first++];
    c->count--;
    *out = *e;
    if (e->kind == JOB_INDEX) {
        out->source_id = client_shard_boot(client_of(c), e->source);
    }
    return true;
}

void job_client_refresh(struct job_client *c)
{
    remote_refresh(c->remote);
}

unsigned job_client_sources_up(const struct job_client *c)
{
    return client_shards_up(client_of(c));
}
