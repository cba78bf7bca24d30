#include "worker/programs/admin/watch.h"

#include "common/clock.h"
#include "proto/alias.h"
#include "proto/transport/lane.h"
#include "worker/engine/process.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    RTO_MAX_US = 1000000, /* longer than in a search: people wait */
    ASK_AGAIN_US = 400000,
    ANSWER_MS = 2000, /* most time for a shard that is up */
};

/* What a shard is asked next in this round. */
enum stage { STAGE_STATS, STAGE_MEMBERS, STAGE_JOBS, STAGE_DONE };

/* What rates are made of. */
struct totals {
    uint64_t boot, uptime_ms, ops, asks, messages;
};

struct asked {
    enum stage stage;
    uint32_t from; /* page */
    uint64_t asked_us; /* 0: not yet */
    struct totals before; /* when the shard last answered */
};

struct watch {
    /* fixed after open */
    struct transport *transport;
    struct client_lane lane;
    uint32_t instance_id; /* our own */
    /* state */
    struct watch_view view;
    struct watch_member *members_before; /* of the last round, in the same order */
    struct watch_job *jobs_before;
    unsigned before_members, before_jobs, before_members_room, before_jobs_room;
    struct process_thread *thread; /* for the list of hosts */
    unsigned threads_room, hosts_room;
    uint64_t round_us, before_us; /* when they ended */
    struct asked asked[OPTIONS_SERVERS_MAX];
    unsigned members_room, jobs_room;
    bool brief;
    void (*meanwhile)(void *self); /* NULL: nothing */
    void *meanwhile_self;
};

/* ---- what comes in ---- */

static void keep_text(struct proto_text text, char *out, size_t size)
{
    (void)proto_text_copy(text, out, size);
    for (char *c = out; *c; c++) {
        *c = *c < 0x20 || *c > 0x7e ? '?' : *c;
    }
}

uint64_t watch_figure(const struct watch_shard *shard, const char *name)
{
    for (unsigned i = 0; i < shard->figures; i++) {
        if (strcmp(shard->figure[i].name, name) == 0) {
            return shard->figure[i].value;
        }
    }
    return 0;
}

unsigned watch_protocol(const struct watch_shard *shard)
{
    unsigned protocol = (unsigned)watch_figure(shard, "protocol");
    return protocol != 0 ? protocol : PROTO_NEGOTIATES - 1; /* of that time it has no such figure */
}

static void keep_rates(struct watch_shard *s, struct totals *before)
{
    struct totals now = {s->boot, watch_figure(s, "uptime_ms"), 0, watch_figure(s, "asks"),
                         watch_figure(s, "messages")};
    now.ops = now.asks + watch_figure(s, "stores") + watch_figure(s, "releases") +
              watch_figure(s, "peeks");
    bool same = before->boot == now.boot && now.uptime_ms > before->uptime_ms;
    double per_s = same ? 1e3 / (double)(now.uptime_ms - before->uptime_ms) : 0;
    s->ops_per_s = (double)(now.ops - before->ops) * per_s;
    s->asks_per_s = (double)(now.asks - before->asks) * per_s;
    s->messages_per_s = (double)(now.messages - before->messages) * per_s;
    *before = now;
}

/* The next page of a stage, or the next stage when there is none: `next` is 0 then. */
static void proceed(struct asked *a, uint32_t next, enum stage then)
{
    a->stage = next == 0 ? then : a->stage;
    a->from = next;
    a->asked_us = 0;
}

static void take_stats(struct watch *w, unsigned shard, const struct proto_stats_answer *answer)
{
    struct watch_shard *s = &w->view.shard[shard];
    if (w->asked[shard].stage != STAGE_STATS) {
        return;
    }
    s->figures = 0;
    for (uint32_t i = 0; i < answer->list.count && s->figures < WATCH_FIGURES_MAX; i++) {
        struct watch_figure *figure = &s->figure[s->figures++];
        keep_text(answer->list.at[i].name, figure->name, sizeof figure->name);
        figure->value = answer->list.at[i].value;
    }
    s->up = true;
    s->boot = client_shard_boot(w->lane.client, shard);
    keep_rates(s, &w->asked[shard].before);
    proceed(&w->asked[shard], 0, w->brief ? STAGE_DONE : STAGE_MEMBERS);
}

/* Doubles an array when it is full; false: no memory. */
static bool grow(void **array, unsigned used, unsigned *room, size_t size)
{
    if (used < *room) {
        return true;
    }
    unsigned wanted = *room == 0 ? 64 : 2 * *room;
    void *more = realloc(*array, wanted * size);
    if (more != NULL) {
        *array = more;
        *room = wanted;
    }
    return more != NULL;
}

static struct watch_member *find_member(struct watch *w, const struct proto_member_row *row)
{
    for (unsigned i = 0; i < w->view.members; i++) {
        if (w->view.member[i].instance_id == row->instance_id &&
            w->view.member[i].role == row->role) {
            return &w->view.member[i];
        }
    }
    if (!grow((void **)&w->view.member, w->view.members, &w->members_room,
              sizeof *w->view.member)) {
        return NULL;
    }
    struct watch_member *m = &w->view.member[w->view.members++];
    *m = (struct watch_member){
        .instance_id = row->instance_id, .role = row->role, .silent_ms = UINT32_MAX};
    keep_text(row->name, m->name, sizeof m->name);
    keep_text(row->user, m->user, sizeof m->user);
    return m;
}

/* A shard of an earlier version says nothing of it. */
static void keep_version(struct watch_member *m, const struct proto_member_row *row)
{
    if (row->highest > m->protocol) {
        m->protocol = row->highest;
        keep_text(row->release, m->release, sizeof m->release);
    }
    if (row->refuses != 0) {
        m->refuses = row->refuses;
        keep_text(row->why, m->why, sizeof m->why);
    }
}

/* False for a page that was asked twice and came again. */
static bool is_page(const struct asked *a, enum stage stage, uint32_t next)
{
    return a->stage == stage && (next == 0 || next > a->from);
}

static void take_members(struct watch *w, unsigned shard, const struct proto_members_answer *answer)
{
    if (!is_page(&w->asked[shard], STAGE_MEMBERS, answer->next)) {
        return;
    }
    for (uint32_t i = 0; i < answer->list.count; i++) {
        const struct proto_member_row *row = &answer->list.at[i];
        struct watch_member *m = row->instance_id == w->instance_id ? NULL : find_member(w, row);
        if (m != NULL) {
            m->shards |= UINT64_C(1) << shard;
            keep_version(m, row);
            if (row->silent_ms <= m->silent_ms && row->job != 0) {
                m->job = row->job;
                m->waited_us = row->waited_us;
                m->talked_us = row->talked_us;
                m->work.nodes = row->nodes;
                m->work.duplicated = row->duplicated;
                m->work.abandoned = row->abandoned;
                m->work.bytes = row->bytes_sent + row->bytes_received;
                m->talk.asks = row->asks;
                m->talk.bytes_sent = row->bytes_sent;
                m->talk.bytes_received = row->bytes_received;
            }
            m->silent_ms = row->silent_ms < m->silent_ms ? row->silent_ms : m->silent_ms;
        }
    }
    proceed(&w->asked[shard], answer->next, STAGE_JOBS);
}

static struct watch_job *find_job(struct watch *w, const struct proto_job_row *row)
{
    for (unsigned i = 0; i < w->view.jobs; i++) {
        if (w->view.job[i].job == row->job) {
            return &w->view.job[i];
        }
    }
    if (!grow((void **)&w->view.job, w->view.jobs, &w->jobs_room, sizeof *w->view.job)) {
        return NULL;
    }
    struct watch_job *j = &w->view.job[w->view.jobs++];
    *j = (struct watch_job){.job = row->job, .depth = row->depth};
    keep_text(row->owner, j->owner, sizeof j->owner);
    keep_text(row->user, j->user, sizeof j->user);
    keep_text(row->game, j->game, sizeof j->game);
    keep_text(row->algorithm, j->algorithm, sizeof j->algorithm);
    keep_text(row->position, j->position, sizeof j->position);
    return j;
}

static void take_jobs(struct watch *w, unsigned shard, const struct proto_jobs_answer *answer)
{
    if (!is_page(&w->asked[shard], STAGE_JOBS, answer->next)) {
        return;
    }
    for (uint32_t i = 0; i < answer->list.count; i++) {
        const struct proto_job_row *row = &answer->list.at[i];
        struct watch_job *j = find_job(w, row);
        if (j != NULL) {
            j->shards |= UINT64_C(1) << shard;
            j->age_ms = row->age_ms > j->age_ms ? row->age_ms : j->age_ms;
            if (row->nodes > j->work.nodes) {
                j->work.nodes = row->nodes;
                j->work.duplicated = row->duplicated;
                j->work.abandoned = row->abandoned;
                j->work.bytes = row->bytes;
            }
            if (row->reached > j->reached) {
                j->reached = row->reached;
                j->score = row->score;
                keep_text(row->line, j->line, sizeof j->line);
            }
        }
    }
    proceed(&w->asked[shard], answer->next, STAGE_DONE);
}

/* ---- a round ---- */

static void ask(struct watch *w, unsigned shard, uint64_t now)
{
    struct asked *a = &w->asked[shard];
    if (a->asked_us != 0 && now - a->asked_us < ASK_AGAIN_US) {
        return;
    }
    switch (a->stage) {
    case STAGE_STATS:
        client_stats(w->lane.client, shard, now);
        break;
    case STAGE_MEMBERS:
        client_members(w->lane.client, shard, a->from, now);
        break;
    case STAGE_JOBS:
        client_jobs(w->lane.client, shard, a->from, now);
        break;
    case STAGE_DONE:
        break;
    }
    a->asked_us = now;
}

/* Asks the shards that are up; true while an answer may still come. */
static bool ask_all(struct watch *w, bool wait_for_all)
{
    bool waiting = false;
    for (unsigned i = 0; i < w->view.shards; i++) {
        bool up = client_shard_state(w->lane.client, i) == CLIENT_UP;
        bool done = w->asked[i].stage == STAGE_DONE;
        if (up && !done) {
            ask(w, i, clock_us());
        }
        waiting = waiting || (!done && (up || wait_for_all));
    }
    return waiting;
}

static void take_events(struct watch *w)
{
    struct client_event e;
    while (lane_next(&w->lane, &e)) {
        if (e.kind == CLIENT_STATS) {
            take_stats(w, e.shard, e.stats);
        } else if (e.kind == CLIENT_MEMBERS) {
            take_members(w, e.shard, e.members);
        } else if (e.kind == CLIENT_JOBS) {
            take_jobs(w, e.shard, e.jobs);
        }
    }
}

static void serve(struct watch *w, uint64_t until)
{
    take_events(w);
    uint64_t tick = lane_tick(&w->lane);
    lane_sleep(&w->lane, tick < until ? tick : until);
    take_events(w);
}

static int by_role_and_name(const void *a, const void *b)
{
    const struct watch_member *x = a, *y = b;
    if (x->role != y->role) {
        return x->role < y->role ? -1 : 1;
    }
    int names = strcmp(x->name, y->name);
    return names != 0 ? names
                      : (x->instance_id > y->instance_id) - (x->instance_id < y->instance_id);
}

static int by_age(const void *a, const void *b)
{
    const struct watch_job *x = a, *y = b;
    return (x->age_ms < y->age_ms) - (x->age_ms > y->age_ms);
}

/* Of a figure that only grows while the job is the same; else 0. */
static double growth(uint64_t now, uint64_t before, uint64_t us)
{
    return now > before && us > 0 ? (double)(now - before) * 1e6 / (double)us : 0;
}

static void keep_work_growth(struct watch_work *now, const struct watch_work *before, uint64_t us)
{
    now->nodes_per_s = growth(now->nodes, before->nodes, us);
    now->bytes_per_s = growth(now->bytes, before->bytes, us);
}

static void keep_talk_growth(struct watch_member *now, const struct watch_member *before,
                             uint64_t us)
{
    now->talk.asks_per_s = growth(now->talk.asks, before->talk.asks, us);
    now->talk.sent_per_s = growth(now->talk.bytes_sent, before->talk.bytes_sent, us);
    now->talk.received_per_s = growth(now->talk.bytes_received, before->talk.bytes_received, us);
    now->talk.talking = growth(now->talked_us, before->talked_us, us) / 1e6;
}

/* The mean of the workers that search the job; of any job if it is 0. */
static double waiting_for(const struct watch_view *v, uint64_t job)
{
    double sum = 0;
    unsigned searching = 0;
    for (unsigned i = 0; i < v->members; i++) {
        const struct watch_member *m = &v->member[i];
        if (m->role == PROTO_WORKER && m->job != 0 && (job == 0 || m->job == job)) {
            sum += m->work.waiting;
            searching++;
        }
    }
    return searching > 0 ? sum / searching : 0;
}

static void keep_growth(struct watch *w)
{
    uint64_t us = w->round_us - w->before_us;
    struct watch_view *v = &w->view;
    for (unsigned i = 0; i < v->members; i++) {
        struct watch_member *m = &v->member[i];
        const struct watch_member *b = w->before_members == 0
                                           ? NULL
                                           : bsearch(m, w->members_before, w->before_members,
                                                     sizeof *w->members_before, by_role_and_name);
        if (b != NULL && b->job == m->job) {
            keep_work_growth(&m->work, &b->work, us);
            m->work.waiting = growth(m->waited_us, b->waited_us, us) / 1e6;
            keep_talk_growth(m, b, us);
        }
    }
    for (unsigned i = 0; i < v->jobs; i++) {
        struct watch_job *j = &v->job[i];
        for (unsigned k = 0; k < w->before_jobs; k++) {
            if (w->jobs_before[k].job == j->job) {
                keep_work_growth(&j->work, &w->jobs_before[k].work, us);
            }
        }
        j->work.waiting = waiting_for(v, j->job);
        v->total.work.nodes_per_s += j->work.nodes_per_s;
        v->total.work.bytes_per_s += j->work.bytes_per_s;
    }
    v->total.work.waiting = waiting_for(v, 0);
}

static void add_to_host(struct watch_host *h, const struct watch_member *m)
{
    h->sessions++;
    h->work.nodes += m->work.nodes;
    h->work.duplicated += m->work.duplicated;
    h->work.abandoned += m->work.abandoned;
    h->work.bytes += m->work.bytes;
    h->work.nodes_per_s += m->work.nodes_per_s;
    h->work.bytes_per_s += m->work.bytes_per_s;
    h->work.waiting += (m->work.waiting - h->work.waiting) / h->sessions;
    h->talk.asks += m->talk.asks;
    h->talk.bytes_sent += m->talk.bytes_sent;
    h->talk.bytes_received += m->talk.bytes_received;
    h->talk.asks_per_s += m->talk.asks_per_s;
    h->talk.sent_per_s += m->talk.sent_per_s;
    h->talk.received_per_s += m->talk.received_per_s;
    h->talk.talking += (m->talk.talking - h->talk.talking) / h->sessions;
}

/* Those of a role that search a job, and of which a shard knows what they do. */
static void list_hosts(struct watch *w, uint8_t role)
{
    struct watch_view *v = &w->view;
    unsigned threads = 0;
    for (unsigned i = 0; i < v->members; i++) {
        const struct watch_member *m = &v->member[i];
        if (m->role == role && m->job != 0 && m->work.nodes > 0 &&
            grow((void **)&w->thread, threads, &w->threads_room, sizeof *w->thread)) {
            w->thread[threads++] = (struct process_thread){.name = m->name, .index = i};
        }
    }
    (void)process_group(w->thread, threads);
    for (unsigned i = 0; i < threads; i++) {
        const struct process_thread *t = &w->thread[i];
        if (i == 0 || t->process != t[-1].process) {
            if (!grow((void **)&v->host, v->hosts, &w->hosts_room, sizeof *v->host)) {
                return;
            }
            struct watch_host *h = &v->host[v->hosts++];
            *h = (struct watch_host){.role = role};
            memcpy(h->name, t->name, t->length);
        }
        add_to_host(&v->host[v->hosts - 1], &v->member[t->index]);
    }
}

static void sum_up(struct watch_view *v)
{
    v->total = (struct watch_totals){0};
    for (unsigned i = 0; i < v->shards; i++) {
        const struct watch_shard *s = &v->shard[i];
        if (s->up) {
            v->total.up++;
            v->total.entries += watch_figure(s, "inflight_entries");
            v->total.nodes += watch_figure(s, "inflight_nodes");
            v->total.ops_per_s += s->ops_per_s;
        }
    }
    for (unsigned i = 0; i < v->jobs; i++) {
        const struct watch_work *work = &v->job[i].work;
        v->job[i].workers = 0;
        v->total.work.nodes += work->nodes;
        v->total.work.duplicated += work->duplicated;
        v->total.work.abandoned += work->abandoned;
        v->total.work.bytes += work->bytes;
    }
    for (unsigned i = 0; i < v->members; i++) {
        const struct watch_member *m = &v->member[i];
        if (m->role <= PROTO_MONITOR) {
            v->total.members[m->role]++;
        }
        for (unsigned k = 0; k < v->jobs && m->role == PROTO_WORKER; k++) {
            v->job[k].workers += m->job == v->job[k].job;
        }
    }
    if (v->members > 0) {
        qsort(v->member, v->members, sizeof *v->member, by_role_and_name);
    }
    if (v->jobs > 0) {
        qsort(v->job, v->jobs, sizeof *v->job, by_age);
    }
}

/* The lists of the last round give way to empty ones. */
static void remember(struct watch *w)
{
    struct watch_view *v = &w->view;
    struct watch_member *member = w->members_before;
    struct watch_job *job = w->jobs_before;
    unsigned members_room = w->before_members_room, jobs_room = w->before_jobs_room;
    w->members_before = v->member;
    w->before_members = v->members;
    w->before_members_room = w->members_room;
    w->jobs_before = v->job;
    w->before_jobs = v->jobs;
    w->before_jobs_room = w->jobs_room;
    w->before_us = w->round_us;
    v->member = member;
    v->job = job;
    v->members = v->jobs = 0;
    w->members_room = members_room;
    w->jobs_room = jobs_room;
}

void watch_round(struct watch *w, unsigned wait_ms, bool brief, const atomic_bool *stop)
{
    uint64_t begin = clock_us(), patience = begin + wait_ms * UINT64_C(1000);
    uint64_t end = begin + (wait_ms > ANSWER_MS ? wait_ms : ANSWER_MS) * UINT64_C(1000);
    w->brief = brief;
    if (!brief) {
        remember(w);
    }
    for (unsigned i = 0; i < w->view.shards; i++) {
        proceed(&w->asked[i], 0, STAGE_STATS);
        w->view.shard[i].up = false;
    }
    while (!atomic_load(stop) && clock_us() < end) {
        uint64_t now = clock_us();
        if (!ask_all(w, now < patience)) {
            break;
        }
        serve(w, now + 20000);
        if (w->meanwhile != NULL) {
            w->meanwhile(w->meanwhile_self);
        }
    }
    for (unsigned i = 0; i < w->view.shards; i++) {
        w->view.shard[i].rtt_us = client_rtt_us(w->lane.client, i);
    }
    sum_up(&w->view);
    if (!brief) {
        w->round_us = clock_us();
        keep_growth(w);
        w->view.hosts = 0;
        list_hosts(w, PROTO_FRONT);
        list_hosts(w, PROTO_WORKER);
    }
}

void watch_meanwhile(struct watch *w, void (*serve_others)(void *self), void *self)
{
    w->meanwhile = serve_others;
    w->meanwhile_self = self;
}

void watch_idle(struct watch *w, unsigned wait_ms)
{
    uint64_t until = clock_us() + wait_ms * UINT64_C(1000);
    do {
        serve(w, until);
    } while (clock_us() < until);
}

/* ---- life ---- */

static enum err open_client(struct watch *w)
{
    char name[WATCH_NAME_MAX];
    uint64_t instance = clock_unique();
    snprintf(name, sizeof name, "top:%d", (int)getpid());
    w->instance_id = (uint32_t)proto_alias(instance);
    struct client_options options = {
        .shards = w->view.shards,
        .role = PROTO_MONITOR,
        .instance = instance,
        .name = name,
        .rto_max_us = RTO_MAX_US,
    };
    return lane_open(&w->lane, &options);
}

enum err watch_open(struct watch **out, const struct transport_address *address,
                    const char *program, char why[TRANSPORT_WHY_MAX])
{
    struct watch *w = calloc(1, sizeof *w);
    if (w == NULL) {
        snprintf(why, TRANSPORT_WHY_MAX, "%s", err_text(ERR_NOMEM));
        return ERR_NOMEM;
    }
    enum err err = transport_open(&w->transport, address, 1, program, why);
    if (err == ERR_OK) {
        err = transport_lane(w->transport, address->keys, &w->lane.shell);
        w->view.shards = transport_shards(w->transport);
    }
    for (unsigned i = 0; i < w->view.shards; i++) {
        transport_shard_name(w->transport, i, w->view.shard[i].address);
    }
    if (err == ERR_OK) {
        err = open_client(w);
    }
    if (err != ERR_OK) {
        if (why[0] == '\0') {
            snprintf(why, TRANSPORT_WHY_MAX, "%s", err_text(err));
        }
        watch_close(&w);
        return err;
    }
    *out = w;
    return ERR_OK;
}

void watch_close(struct watch **watch)
{
    struct watch *w = *watch;
    if (w == NULL) {
        return;
    }
    lane_close(&w->lane);
    transport_close(&w->transport);
    free(w->view.member);
    free(w->view.host);
    free(w->thread);
    free(w->view.job);
    free(w->members_before);
    free(w->jobs_before);
    free(w);
    *watch = NULL;
}

const struct watch_view *watch_view(const struct watch *w)
{
    return &w->view;
}

const char *watch_role(unsigned role)
{
    static const char *const name[] = {"worker", "front", "client", "monitor"};
    return role <= PROTO_MONITOR ? name[role] : "?";
}
