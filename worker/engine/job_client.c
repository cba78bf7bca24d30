#include "worker/engine/job_client.h"

#include <stdlib.h>

struct job_client {
    struct remote *remote;
    uint64_t up; /* bit i: source i is up, as far as the receiver of the events knows */
    bool missed; /* an offer was dropped */
    unsigned first, count;
    struct job_event event[JOB_EVENTS_MAX]; /* from `first`, `count` of them */
};

enum err job_client_open(struct job_client **out)
{
    *out = calloc(1, sizeof **out);
    return *out != NULL ? ERR_OK : ERR_NOMEM;
}

void job_client_close(struct job_client **client)
{
    free(*client);
    *client = NULL;
}

/* ---- the sink: while messages are read ---- */

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
static void take_job(void *self, const struct proto_job *job, unsigned shard)
{
    struct job_client *c = self;
    if (!is_up(c, shard)) {
        return;
    }
    struct job_event *e = append(c, JOB_OFFERED, shard);
    c->missed = c->missed || e == NULL;
    if (e != NULL && !job_offer_set(&e->offer, job)) {
        c->count--;
    }
}

static void take_stop(void *self, uint64_t job, uint8_t reason, unsigned shard)
{
    struct job_event *e = append(self, JOB_STOPPED, shard);
    if (e != NULL) {
        e->job = job;
        e->by_owner = reason == PROTO_STOP_OWNER;
    }
}

static void take_refusal(void *self, uint64_t job, struct proto_text why, unsigned shard)
{
    struct job_event *e = append(self, JOB_REFUSED, shard);
    if (e != NULL) {
        e->job = job;
        proto_text_printable(why, e->why, sizeof e->why);
    }
}

static void take_report(void *self, const struct proto_job_report *report, unsigned shard)
{
    struct job_client *c = self;
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
        e->report.line = proto_text_of(""); /* that is borrowed */
    }
    if (e != NULL) {
        e->sources |= UINT64_C(1) << shard;
    }
}

static void take_index(void *self, unsigned shard, uint32_t worker_index, uint32_t workers)
{
    struct job_client *c = self;
    (void)workers;
    if (!is_up(c, shard)) {
        return;
    }
    struct job_event *e = append(c, JOB_INDEX, shard);
    if (e != NULL) {
        e->worker_index = worker_index;
    }
}

static void take_up(void *self, unsigned shard)
{
    struct job_client *c = self;
    c->up |= UINT64_C(1) << shard;
    (void)append(c, JOB_SOURCE_UP, shard); /* without room, orphans only wait longer */
}

static void take_down(void *self, unsigned shard)
{
    struct job_client *c = self;
    if (append(c, JOB_SOURCE_DOWN, shard) != NULL) {
        c->up &= ~(UINT64_C(1) << shard);
    }
}

struct client_sink job_client_sink(struct job_client *client)
{
    return (struct client_sink){
        .self = client,
        .job = take_job,
        .job_stop = take_stop,
        .job_report = take_report,
        .job_refused = take_refusal,
        .worker_index = take_index,
        .shard_up = take_up,
        .shard_down = take_down,
    };
}

/* ---- the port ---- */

static struct client *client_of(void *self)
{
    return remote_client(((struct job_client *)self)->remote);
}

static uint64_t now_us(void *self)
{
    return remote_now_us(((struct job_client *)self)->remote);
}

static enum err port_post(void *self, const struct job *job)
{
    struct proto_job_post wire = job_to_wire(job);
    return client_job_post(client_of(self), &wire, now_us(self));
}

static void port_stop(void *self, uint64_t job)
{
    client_job_stop(client_of(self), job, now_us(self));
}

static void port_report(void *self, const struct proto_job_report *report)
{
    client_job_report(client_of(self), report, now_us(self));
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

static bool port_poll(void *self, struct job_event *out)
{
    struct job_client *c = self;
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

static void port_refresh(void *self)
{
    remote_refresh(((struct job_client *)self)->remote);
}

static unsigned port_sources_up(void *self)
{
    return client_shards_up(client_of(self));
}

struct job_port job_client_port(struct job_client *client, struct remote *remote)
{
    client->remote = remote;
    return (struct job_port){
        .self = client,
        .post = port_post,
        .stop = port_stop,
        .report = port_report,
        .poll = port_poll,
        .refresh = port_refresh,
        .sources_up = port_sources_up,
    };
}
