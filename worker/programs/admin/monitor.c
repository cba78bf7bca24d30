#include "worker/programs/admin/monitor.h"

#include "common/clock.h"
#include "proto/alias.h"
#include "worker/engine/process_name.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    ASK_AGAIN_US = 400000,
    ANSWER_MS = 2000, /* most time for a shard that is up */
};

/* The next question to a shard in this round. */
enum stage { STAGE_STATS, STAGE_MEMBERS, STAGE_JOBS, STAGE_DONE };

/* The values of a shard from which its rates are computed. */
struct totals {
    uint64_t boot, at_us, ops, asks, messages; /* at_us: our clock, 0: never */
};

struct asked {
    enum stage stage;
    uint32_t from; /* page */
    uint64_t asked_us; /* 0: not yet */
    struct totals before; /* when the shard last answered */
};

struct monitor {
    /* fixed after open */
    struct cli_session own; /* not opened where another's is borrowed */
    struct cli_session *session;
    uint32_t instance_id; /* instance of `own` */
    /* state */
    struct monitor_view view;
    struct process_thread *thread; /* for the list of hosts */
    uint32_t round; /* number of the last */
    uint64_t round_us; /* when it ended */
    struct asked asked[OPTIONS_SERVERS_MAX];
};

/* ---- what comes in ---- */

static const struct monitor_figure *find_figure(const struct monitor_shard *shard, const char *name)
{
    for (unsigned i = 0; i < shard->figures; i++) {
        if (strcmp(shard->figure[i].name, name) == 0) {
            return &shard->figure[i];
        }
    }
    return NULL;
}

uint64_t monitor_figure(const struct monitor_shard *shard, const char *name)
{
    const struct monitor_figure *figure = find_figure(shard, name);
    return figure != NULL ? figure->value : 0;
}

bool monitor_has(const struct monitor_shard *shard, const char *name)
{
    return find_figure(shard, name) != NULL;
}

/* Figures are keys beside these in the JSON of a shard: top_view.c, tt_all.c. */
static bool is_own_key(const char *name)
{
    static const char *const own[] = {"kind",       "address",        "state",  "boot",
                                      "place",      "twin",           "rtt_us", "ops_per_s",
                                      "asks_per_s", "messages_per_s", "shard",  "up"};
    unsigned i = 0;
    while (i < sizeof own / sizeof own[0] && strcmp(own[i], name) != 0) {
        i++;
    }
    return i < sizeof own / sizeof own[0];
}

/* Growth a second; 0 where a counter went backwards. */
static double per_s(uint64_t now, uint64_t before, uint64_t us)
{
    return now > before && us > 0 ? (double)(now - before) * 1e6 / (double)us : 0;
}

/* By our own clock: the uptime of a Redis has whole seconds. */
static void keep_rates(struct monitor_shard *s, struct totals *before)
{
    struct totals now = {s->boot, clock_us(), 0, monitor_figure(s, "asks"),
                         monitor_figure(s, "messages")};
    now.ops = now.asks + monitor_figure(s, "stores") + monitor_figure(s, "releases") +
              monitor_figure(s, "peeks");
    const bool is_same = before->at_us > 0 && before->boot == now.boot;
    const uint64_t us = is_same ? now.at_us - before->at_us : 0;
    s->ops_per_s = per_s(now.ops, before->ops, us);
    s->asks_per_s = per_s(now.asks, before->asks, us);
    s->messages_per_s = per_s(now.messages, before->messages, us);
    *before = now;
}

/* The next page of a stage, or the next stage when there is none: `next` is 0 then. */
static void proceed(struct asked *a, uint32_t next, enum stage then)
{
    a->stage = next == 0 ? then : a->stage;
    a->from = next;
    a->asked_us = 0;
}

const struct monitor_shard *monitor_twin(const struct monitor_view *v,
                                         const struct monitor_shard *shard)
{
    for (const struct monitor_shard *s = v->shard; s < v->shard + v->shards; s++) {
        if (s != shard && s->up && shard->up && s->place == shard->place) {
            return s;
        }
    }
    return NULL;
}

static void on_stats(struct monitor *mon, unsigned shard, const struct proto_stats_answer *answer)
{
    struct monitor_shard *s = &mon->view.shard[shard];
    if (mon->asked[shard].stage != STAGE_STATS) {
        return;
    }
    s->figures = 0;
    for (uint32_t i = 0; i < answer->list.count && s->figures < MONITOR_FIGURES_MAX; i++) {
        struct monitor_figure *figure = &s->figure[s->figures];
        proto_text_printable(answer->list.at[i].name, figure->name, sizeof figure->name);
        figure->value = answer->list.at[i].value;
        s->figures += !is_own_key(figure->name) && find_figure(s, figure->name) == NULL;
    }
    s->up = true;
    s->boot = client_shard(mon->session->lane.client, shard).boot;
    s->place = client_shard(mon->session->lane.client, shard).place;
    keep_rates(s, &mon->asked[shard].before);
    proceed(&mon->asked[shard], 0, STAGE_MEMBERS);
}

/* Room for one more than `used`: 64, then twice as many whenever they are full. False: no memory.
 */
static bool grow(void **array, unsigned used, size_t size)
{
    if (used % 64 != 0 || (used & (used - 1)) != 0) {
        return true;
    }
    void *more = realloc(*array, (used == 0 ? 64 : 2 * used) * size);
    if (more != NULL) {
        *array = more;
    }
    return more != NULL;
}

static struct monitor_member *find_member(struct monitor *mon, const struct proto_member_row *row)
{
    struct monitor_view *v = &mon->view;
    unsigned i = 0;
    while (i < v->members &&
           (v->member[i].instance_id != row->instance_id || v->member[i].role != row->role)) {
        i++;
    }
    if (i == v->members) {
        if (!grow((void **)&v->member, v->members, sizeof *v->member)) {
            return NULL;
        }
        v->member[v->members++] = (struct monitor_member){.job = 0};
    }
    struct monitor_member *m = &v->member[i];
    if (m->past.round != mon->round) {
        *m = (struct monitor_member){.instance_id = row->instance_id,
                                     .role = row->role,
                                     .silent_ms = UINT32_MAX,
                                     .past = {mon->round, m->job, m->work.count}};
        proto_text_printable(row->name, m->name, sizeof m->name);
        proto_text_printable(row->user, m->user, sizeof m->user);
    }
    return m;
}

/* False for a page that was asked twice and came again. */
static bool is_page(const struct asked *a, enum stage stage, uint32_t next)
{
    return a->stage == stage && (next == 0 || next > a->from);
}

static void on_members(struct monitor *mon, unsigned shard,
                       const struct proto_members_answer *answer)
{
    if (!is_page(&mon->asked[shard], STAGE_MEMBERS, answer->next)) {
        return;
    }
    for (uint32_t i = 0; i < answer->list.count; i++) {
        const struct proto_member_row *row = &answer->list.at[i];
        struct monitor_member *m =
            row->instance_id == mon->instance_id ? NULL : find_member(mon, row);
        if (m != NULL) {
            m->shards |= UINT64_C(1) << shard;
            if (row->highest > m->protocol) {
                m->protocol = row->highest;
                proto_text_printable(row->release, m->release, sizeof m->release);
            }
            if (row->refuses != 0) {
                m->refuses = row->refuses;
                proto_text_printable(row->why, m->why, sizeof m->why);
            }
            if (row->silent_ms <= m->silent_ms && row->job != 0) {
                m->job = row->job;
                m->work.count = (struct counters){
                    .nodes = row->nodes,
                    .asks = row->asks,
                    .duplicated = row->duplicated,
                    .abandoned = row->abandoned,
                    .waited_us = row->waited_us,
                    .talked_us = row->talked_us,
                    .bytes_sent = row->bytes_sent,
                    .bytes_received = row->bytes_received,
                };
            }
            m->silent_ms = row->silent_ms < m->silent_ms ? row->silent_ms : m->silent_ms;
        }
    }
    proceed(&mon->asked[shard], answer->next, STAGE_JOBS);
}

static struct monitor_job *find_job(struct monitor *mon, const struct proto_job_row *row)
{
    struct monitor_view *v = &mon->view;
    unsigned i = 0;
    while (i < v->jobs && v->job[i].job != row->job) {
        i++;
    }
    if (i == v->jobs) {
        if (!grow((void **)&v->job, v->jobs, sizeof *v->job)) {
            return NULL;
        }
        v->job[v->jobs++] = (struct monitor_job){.job = 0};
    }
    struct monitor_job *j = &v->job[i];
    if (j->past.round != mon->round) {
        *j = (struct monitor_job){
            .job = row->job, .depth = row->depth, .past = {mon->round, j->job, j->work.count}};
        proto_text_printable(row->owner, j->owner, sizeof j->owner);
        proto_text_printable(row->user, j->user, sizeof j->user);
        proto_text_printable(row->game, j->game, sizeof j->game);
        proto_text_printable(row->algorithm, j->algorithm, sizeof j->algorithm);
        proto_text_printable(row->position, j->position, sizeof j->position);
    }
    return j;
}

static void on_jobs(struct monitor *mon, unsigned shard, const struct proto_jobs_answer *answer)
{
    if (!is_page(&mon->asked[shard], STAGE_JOBS, answer->next)) {
        return;
    }
    for (uint32_t i = 0; i < answer->list.count; i++) {
        const struct proto_job_row *row = &answer->list.at[i];
        struct monitor_job *j = find_job(mon, row);
        if (j != NULL) {
            j->shards |= UINT64_C(1) << shard;
            j->age_ms = row->age_ms > j->age_ms ? row->age_ms : j->age_ms;
            if (row->nodes > j->work.count.nodes) {
                j->work.count.nodes = row->nodes;
                j->work.count.duplicated = row->duplicated;
                j->work.count.abandoned = row->abandoned;
                j->work.count.bytes_sent = row->bytes;
                j->left_s = row->left_s; /* this is the newest row */
            }
            if (row->reached > j->reached) {
                j->reached = row->reached;
                j->score = row->score;
                proto_text_printable(row->line, j->line, sizeof j->line);
            }
        }
    }
    proceed(&mon->asked[shard], answer->next, STAGE_DONE);
}

/* ---- a round ---- */

/* Asks the shards that are up; true while an answer may still come. */
static bool ask_all(struct monitor *mon, bool wait_for_all)
{
    struct client *client = mon->session->lane.client;
    bool waiting = false;
    for (unsigned i = 0; i < mon->view.shards; i++) {
        struct asked *a = &mon->asked[i];
        const uint64_t now = clock_us();
        const bool up = client_shard(client, i).state == CLIENT_UP, done = a->stage == STAGE_DONE;
        if (up && !done && (a->asked_us == 0 || now - a->asked_us >= ASK_AGAIN_US)) {
            a->asked_us = now;
            (void)(a->stage == STAGE_STATS     ? client_stats(client, i, now)
                   : a->stage == STAGE_MEMBERS ? client_members(client, i, a->from, now)
                                               : client_jobs(client, i, a->from, now));
        }
        waiting = waiting || (!done && (up || wait_for_all));
    }
    return waiting;
}

static void read_events(struct monitor *mon)
{
    struct client_event e;
    while (lane_next(&mon->session->lane, &e)) {
        if (e.kind == CLIENT_STATS) {
            on_stats(mon, e.shard, e.stats);
        } else if (e.kind == CLIENT_MEMBERS) {
            on_members(mon, e.shard, e.members);
        } else if (e.kind == CLIENT_JOBS) {
            on_jobs(mon, e.shard, e.jobs);
        }
    }
}

static void serve(struct monitor *mon, uint64_t until)
{
    read_events(mon);
    uint64_t tick = lane_tick(&mon->session->lane);
    lane_sleep(&mon->session->lane, tick < until ? tick : until);
    read_events(mon);
}

static int by_role_and_name(const void *a, const void *b)
{
    const struct monitor_member *x = a, *y = b;
    if (x->role != y->role) {
        return x->role < y->role ? -1 : 1;
    }
    int names = strcmp(x->name, y->name);
    return names != 0 ? names
                      : (x->instance_id > y->instance_id) - (x->instance_id < y->instance_id);
}

static int by_age(const void *a, const void *b)
{
    const struct monitor_job *x = a, *y = b;
    return (x->age_ms < y->age_ms) - (x->age_ms > y->age_ms);
}

/* Growth a second of what only grows while the job is the same; else 0. */
static void keep_rates_of(struct monitor_work *w, uint64_t job, const struct monitor_past *past,
                          uint64_t us)
{
    for (unsigned i = 0; i < COUNTERS_ALL && job == past->job; i++) {
        w->per_s[i] = per_s(w->count.at[i], past->count.at[i], us);
    }
    /* Late reports come on top of those in time. */
    w->waiting = fmin(w->per_s[COUNTER_waited_us] / 1e6, 1);
    w->talking = fmin(w->per_s[COUNTER_talked_us] / 1e6, 1);
}

/* Adds all but the shares of time. */
static void add_work(struct monitor_work *sum, const struct monitor_work *w)
{
    counters_add(&sum->count, &w->count);
    for (unsigned i = 0; i < COUNTERS_ALL; i++) {
        sum->per_s[i] += w->per_s[i];
    }
}

/* Lists the hosts of a role that search a job, and of which a shard knows what they do. */
static void list_hosts(struct monitor *mon, uint8_t role)
{
    struct monitor_view *v = &mon->view;
    unsigned threads = 0;
    for (unsigned i = 0; i < v->members; i++) {
        const struct monitor_member *m = &v->member[i];
        if (m->role == role && m->job != 0 && m->work.count.nodes > 0 &&
            grow((void **)&mon->thread, threads, sizeof *mon->thread)) {
            mon->thread[threads++] = (struct process_thread){.name = m->name, .index = i};
        }
    }
    (void)process_name_group(mon->thread, threads);
    for (unsigned i = 0; i < threads; i++) {
        const struct process_thread *t = &mon->thread[i];
        if (i == 0 || t->process != t[-1].process) {
            if (!grow((void **)&v->host, v->hosts, sizeof *v->host)) {
                return;
            }
            v->host[v->hosts] = (struct monitor_host){.role = role};
            memcpy(v->host[v->hosts++].name, t->name, t->length);
        }
        struct monitor_host *h = &v->host[v->hosts - 1];
        const struct monitor_work *work = &v->member[t->index].work;
        h->sessions++;
        add_work(&h->work, work);
        h->work.waiting += (work->waiting - h->work.waiting) / h->sessions;
        h->work.talking += (work->talking - h->work.talking) / h->sessions;
    }
}

/* Drops the rows that no shard named in this round, and sorts the others. */
static void tidy(struct monitor *mon)
{
    struct monitor_view *v = &mon->view;
    unsigned members = 0, jobs = 0;
    for (unsigned i = 0; i < v->members; i++) {
        if (v->member[i].past.round == mon->round) {
            v->member[members++] = v->member[i];
        }
    }
    for (unsigned i = 0; i < v->jobs; i++) {
        if (v->job[i].past.round == mon->round) {
            v->job[jobs++] = v->job[i];
        }
    }
    v->members = members;
    v->jobs = jobs;
    if (members > 0) {
        qsort(v->member, members, sizeof *v->member, by_role_and_name);
    }
    if (jobs > 0) {
        qsort(v->job, jobs, sizeof *v->job, by_age);
    }
}

/* `us`: since the round before. Workers wait a share of their time: for a job the mean of those
 * that search it, in all the mean of those that search any. */
static void sum_up(struct monitor_view *v, uint64_t us)
{
    struct monitor_totals *total = &v->total;
    unsigned searching = 0;
    double waiting = 0;
    *total = (struct monitor_totals){0};
    for (unsigned i = 0; i < v->shards; i++) {
        const struct monitor_shard *s = &v->shard[i];
        if (s->up) {
            total->up++;
            total->has_entries = total->has_entries || monitor_has(s, "inflight_entries");
            total->entries += monitor_figure(s, "inflight_entries");
            total->nodes += monitor_figure(s, "inflight_nodes");
            total->ops_per_s += s->ops_per_s;
        }
    }
    for (unsigned i = 0; i < v->jobs; i++) {
        keep_rates_of(&v->job[i].work, v->job[i].job, &v->job[i].past, us);
    }
    for (unsigned i = 0; i < v->members; i++) {
        struct monitor_member *m = &v->member[i];
        const bool is_searching = m->role == PROTO_WORKER && m->job != 0;
        keep_rates_of(&m->work, m->job, &m->past, us);
        if (m->role <= PROTO_MONITOR) {
            total->members[m->role]++;
        }
        searching += is_searching;
        waiting += is_searching ? m->work.waiting : 0;
        for (unsigned k = 0; k < v->jobs && is_searching; k++) {
            if (m->job == v->job[k].job) {
                v->job[k].workers++;
                v->job[k].work.waiting += m->work.waiting;
            }
        }
    }
    for (unsigned i = 0; i < v->jobs; i++) {
        struct monitor_job *j = &v->job[i];
        j->work.waiting /= j->workers > 0 ? j->workers : 1;
        add_work(&total->work, &j->work);
    }
    total->work.waiting = searching > 0 ? waiting / searching : 0;
}

void monitor_round(struct monitor *mon, unsigned wait_ms, const atomic_bool *stop)
{
    const uint64_t begin = clock_us(), before = mon->round_us;
    const uint64_t patience = begin + wait_ms * UINT64_C(1000);
    const uint64_t end = begin + (wait_ms > ANSWER_MS ? wait_ms : ANSWER_MS) * UINT64_C(1000);
    mon->round++;
    for (unsigned i = 0; i < mon->view.shards; i++) {
        proceed(&mon->asked[i], 0, STAGE_STATS);
        mon->view.shard[i].up = false;
    }
    while (!atomic_load(stop) && clock_us() < end) {
        uint64_t now = clock_us();
        if (!ask_all(mon, now < patience)) {
            break;
        }
        serve(mon, now + 20000);
    }
    for (unsigned i = 0; i < mon->view.shards; i++) {
        mon->view.shard[i].rtt_us = client_shard(mon->session->lane.client, i).rtt_us;
    }
    mon->round_us = clock_us();
    tidy(mon);
    sum_up(&mon->view, mon->round_us - before);
    mon->view.hosts = 0;
    list_hosts(mon, PROTO_FRONT);
    list_hosts(mon, PROTO_WORKER);
}

void monitor_idle(struct monitor *mon, unsigned wait_ms)
{
    uint64_t until = clock_us() + wait_ms * UINT64_C(1000);
    do {
        serve(mon, until);
    } while (clock_us() < until);
}

/* ---- life ---- */

enum err monitor_open(struct monitor **out, struct cli_session *session,
                      const struct cli_table *table, const char *program, char why[LANES_WHY_MAX])
{
    const struct client_options options = {.role = PROTO_MONITOR, .instance = clock_unique()};
    struct monitor *mon = calloc(1, sizeof *mon);
    if (mon == NULL) {
        return err_say(ERR_NOMEM, why, LANES_WHY_MAX, "%s", err_text(ERR_NOMEM));
    }
    mon->session = session != NULL ? session : &mon->own;
    mon->instance_id = (uint32_t)proto_alias(options.instance);
    enum err err = session != NULL ? ERR_OK
                                   : cli_session_open(&mon->own, table, KEYS_MONITOR, program,
                                                      "top", options, why);
    if (err != ERR_OK) {
        monitor_close(&mon);
        return err;
    }
    mon->view.shards = mon->session->shards;
    for (unsigned i = 0; i < mon->view.shards; i++) {
        lanes_shard_name(mon->session->lanes, i, mon->view.shard[i].address);
    }
    *out = mon;
    return ERR_OK;
}

void monitor_close(struct monitor **monitor)
{
    struct monitor *mon = *monitor;
    if (mon == NULL) {
        return;
    }
    cli_session_close(&mon->own);
    free(mon->view.member);
    free(mon->view.host);
    free(mon->view.job);
    free(mon->thread);
    free(mon);
    *monitor = NULL;
}

const struct monitor_view *monitor_view(const struct monitor *mon)
{
    return &mon->view;
}

const char *monitor_role(unsigned role)
{
    static const char *const name[] = {"worker", "front", "client", "monitor"};
    return role <= PROTO_MONITOR ? name[role] : "?";
}
