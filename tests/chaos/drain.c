#include "tests/chaos/drain.h"

#include "common/rng.h"
#include "tests/chaos/chaos_faults.h"
#include "tests/chaos/lab_dealer.h"
#include "tests/chaos/lab_service.h"
#include "worker/games/games.h"

#include <stdlib.h>
#include <string.h>

/* Stores and releases linger a millisecond in a client, and longer before its HELLO is answered. */
enum {
    MS = 1000000,
    LINGER_NS = 3 * MS,
    PROBE_DEPTH = 100,
    SETTLE_MOST = 32, /* heartbeats */
    POLLS_PER_HEARTBEAT = 8, /* here: sessions and reports go on */
    SLOW_POLL_US = 25000, /* ... at most */
    CLOSED_BEATS = 16, /* until a shard has closed what has no session any more */
};

static uint64_t heartbeats_ns(const struct lab *lab, unsigned count)
{
    return (uint64_t)lab->options.heartbeat_ms * count * MS;
}

/* Until a client has found a shard again. */
static uint64_t reconnect_ns(const struct lab *lab)
{
    const struct lab_net *net = lab_net_of(lab);
    uint64_t connect_ns = net != NULL ? net->unconfirmed_ns + 3 * net->reconnect_max_ns : 0;
    return connect_ns + UINT64_C(1000) * (3 * lab->options.rto_max_us + 2 * lab->options.probe_us);
}

/* ---- after a post ---- */

/* During this post it dropped a message of a job, as its queue was full. */
static bool has_dropped(const struct lab_worker *w, const struct lab_front *f)
{
    return program_of(w)->unsent_ns != 0 && program_of(w)->unsent_ns >= f->begin_ns;
}

/* The worker that reports under that alias still searches the job, or dropped what it said of it.
 * How soon workers leave is checked below. */
static bool is_excused(const struct lab *lab, const struct lab_front *f, uint64_t alias)
{
    bool is = false;
    for (unsigned i = lab->options.fronts; i < lab->machines; i++) {
        const struct lab_worker *w = &lab->worker[i];
        is = is || (w->alias == alias && (lab_searches(w) == f->job.id || has_dropped(w, f)));
    }
    return is;
}

static unsigned last_reports_missing(const struct lab *lab, const struct lab_front *f)
{
    unsigned missing = 0;
    for (unsigned i = 0; i < f->core.reports; i++) {
        const struct proto_job_report *last = &f->core.report[i].last;
        missing += last->state == PROTO_JOB_SEARCHING && !is_excused(lab, f, last->instance);
    }
    return missing;
}

/* What is said of hosts adds up to what all reported. */
static unsigned hosts_wrong(struct lab_worker *w)
{
    const struct lab_front *f = &w->front;
    struct front_host *host = calloc(FRONT_WORKERS_MAX, sizeof *host);
    unsigned searchers = 0, reporters = 0;
    uint64_t nodes = 0, reported = 0;
    CHECK(host != NULL);
    const unsigned hosts = front_core_hosts(&f->core, lab_worker_us(w->lab, w->index), host);
    for (unsigned i = 0; i < hosts; i++) {
        searchers += host[i].searchers;
        nodes += host[i].sum.nodes;
    }
    free(host);
    for (unsigned i = 0; i < f->core.reports; i++) {
        const struct proto_job_report *last = &f->core.report[i].last;
        reporters += last->state != PROTO_JOB_REFUSED;
        reported += last->state != PROTO_JOB_REFUSED ? last->nodes : 0;
    }
    return (searchers != reporters) + (nodes != reported);
}

/* Every report that was sent must have arrived. */
static bool is_undisturbed(const struct lab *lab, const struct lab_worker *front)
{
    uint64_t downs = 0;
    for (unsigned i = 0; i < lab->machines; i++) {
        const struct searcher *searcher = lab->worker[i].searcher;
        downs += searcher != NULL ? client_counters(remote_client(searcher->remote))->downs : 0;
    }
    /* Through a card that cannot keep up a report may come later than it is waited for. */
    return !has_dropped(front, &front->front) &&
           (lab->ended ||
            (chaos_of(lab)->options.faults == 0 && lab->options.loss_ppm == 0 &&
             chaos_of(lab)->options.lie_ns == 0 && lab->options.bandwidth == 0 && downs == 0));
}

void chaos_check_post(struct lab_worker *w)
{
    struct chaos_world *c = chaos_of(w->lab);
    c->result.miscounted += c->options.drain ? hosts_wrong(w) : 0;
    c->result.reports_missing +=
        is_undisturbed(w->lab, w) ? last_reports_missing(w->lab, &w->front) : 0;
}

/* ---- quiet ---- */

static unsigned searching(const struct lab *lab)
{
    unsigned n = 0;
    for (unsigned i = 0; i < lab->machines; i++) {
        n += lab_searches(&lab->worker[i]) != 0;
    }
    return n;
}

/* When all that was sent will have arrived. */
static uint64_t quiet_ns(const struct lab *lab)
{
    uint64_t latest = lab->now_ns;
    for (unsigned s = 0; s < lab->options.shards; s++) {
        for (unsigned i = 0; i < lab->machines; i++) {
            uint64_t at = lab->worker[i].last_out_ns[s];
            latest = at > latest ? at : latest;
        }
        latest = lab->shard[s].free_ns > latest ? lab->shard[s].free_ns : latest;
    }
    return latest;
}

/* Every job is left, by a stop or as an orphan, in the time that takes at most; a shard that lost
 * the front-end notices after some heartbeats. Then the messages arrive. */
static void become_quiet(struct lab *lab)
{
    uint64_t from = lab->now_ns, step = 0;
    uint64_t patience_ms = lab->patience.orphan_ms + lab->patience.unknown_ms + lab->wait_ms;
    uint64_t most_ns = patience_ms * MS + heartbeats_ns(lab, 6) + reconnect_ns(lab);
    while (step * MS < most_ns && searching(lab) > 0) {
        lab_run_until(lab, from + ++step * MS, false);
    }
    lab->now_ns = from + step * MS;
    chaos_of(lab)->result.still_searching += searching(lab);
    atomic_store(&lab->halt, searching(lab) > 0);
    lab_run_until(lab, lab->now_ns + LINGER_NS + 2 * (lab->options.rtt_ns + lab->options.jitter_ns),
                  false);
    uint64_t quiet = quiet_ns(lab);
    lab_run_until(lab, quiet, false);
    lab->now_ns = quiet;
}

/* ---- what is left behind ---- */

static bool is_up(const struct lab_worker *w, unsigned shard)
{
    return client_shard(remote_client(w->searcher->remote), shard).state == CLIENT_UP;
}

/* In-flight entries of one worker at a shard. */
static unsigned inflight_of(const struct lab *lab, unsigned shard, const struct lab_worker *w)
{
    uint8_t route[LAB_ROUTE_BYTES];
    lab_route(w->index, w->incarnation, route);
    if (lab_net_of(lab) != NULL) {
        const struct connection *c = lab_dealer_connection(w, shard);
        if (c == NULL) {
            return 0;
        }
        memcpy(route, c->route, sizeof route);
    }
    return ttcore_inflight_of(lab->shard[shard].core, route, sizeof route);
}

/* In-flight entries of sessions in good order: nothing excuses these; nor those in a host's table
 * when none of its threads searches. */
static void check_when_quiet(struct lab *lab)
{
    for (unsigned i = 0; i < lab->machines; i++) {
        const struct lab_worker *w = &lab->worker[i];
        for (unsigned s = 0; s < lab->options.shards && w->alive && lab_searches(w) == 0; s++) {
            bool arrived = w->last_out_ns[s] <= lab->now_ns && /* else it has just come up again */
                           (lab_net_of(lab) == NULL || lab_dealer_is_through(w, s));
            bool excused =
                program_of(w)->lossy >> s & 1 || !lab->shard[s].alive || !is_up(w, s) || !arrived;
            chaos_of(lab)->result.inflight_kept += excused ? 0 : inflight_of(lab, s, w);
        }
    }
    for (unsigned h = 0; h < lab->hosts; h++) {
        unsigned users = 0;
        for (unsigned i = 0; i < lab->machines; i++) {
            users += lab->worker[i].host == &lab->host[h];
        }
        chaos_of(lab)->result.half_made += lab->host[h].users != users;
    }
    for (unsigned h = 0; h < lab->hosts && searching(lab) == 0; h++) {
        chaos_of(lab)->result.inflight_kept +=
            lab->host[h].users > 0 ? embedded_inflight(lab->host[h].table) : 0;
    }
}

/* By now the dead are forgotten and the living have found each other again. */
static void check_when_expired(struct lab *lab)
{
    for (unsigned s = 0; s < lab->options.shards; s++) {
        struct ttcore_figures f = lab_shard_figures(lab, s);
        unsigned sessions = 0, excused = 0;
        for (unsigned i = 0; i < lab->machines && lab->shard[s].alive; i++) {
            const struct lab_worker *w = &lab->worker[i];
            chaos_of(lab)->result.unconnected += w->alive && !is_up(w, s);
            sessions += w->alive;
            excused += w->alive && program_of(w)->lossy >> s & 1 ? inflight_of(lab, s, w) : 0;
        }
        chaos_of(lab)->result.sessions_stale +=
            f.sessions > sessions ? (unsigned)f.sessions - sessions : 0;
        chaos_of(lab)->result.inflight_stale += (unsigned)f.inflight_entries - excused;
    }
}

static bool are_connected(const struct lab *lab)
{
    bool ok = true;
    for (unsigned i = 0; i < lab->machines; i++) {
        const struct lab_worker *w = &lab->worker[i];
        for (unsigned s = 0; s < lab->options.shards && w->alive; s++) {
            ok = ok && (!lab->shard[s].alive || is_up(w, s));
        }
    }
    return ok;
}

static void check_when_aged(struct lab *lab)
{
    for (unsigned s = 0; s < lab->options.shards; s++) {
        chaos_of(lab)->result.inflight_left += (unsigned)lab_shard_figures(lab, s).inflight_entries;
    }
    for (unsigned i = 0; i < lab->machines; i++) {
        const struct lab_worker *w = &lab->worker[i];
        chaos_of(lab)->result.requests_left +=
            w->alive ? client_overdue(remote_client(w->searcher->remote), lab_worker_us(lab, i))
                     : 0;
    }
}

/* Nothing is left of connections that were closed, or lost their peers. */
static void check_when_closed(struct lab *lab)
{
    for (unsigned s = 0; s < lab->options.shards; s++) {
        chaos_of(lab)->result.connections_left +=
            lab->shard[s].alive ? lab_service_left(lab, s) : 0;
    }
}

/* ---- the probe: every front-end posts a job, and the cluster serves them ---- */

static unsigned workers_on(const struct lab *lab, uint64_t job)
{
    unsigned n = 0;
    for (unsigned i = lab->options.fronts; i < lab->machines; i++) {
        n += lab_searches(&lab->worker[i]) == job;
    }
    return n;
}

struct service {
    unsigned miscounted, uneven;
};

static struct service service(struct lab *lab)
{
    struct service found = {0};
    unsigned least = UINT32_MAX, most = 0, served = 0, alive = 0;
    for (unsigned i = 0; i < lab->machines; i++) {
        const struct lab_worker *w = &lab->worker[i];
        if (lab_is_front(w) && w->alive) {
            struct front_sum sum;
            unsigned n = workers_on(lab, w->front.job.id);
            front_core_sum(&w->front.core, lab_worker_us(lab, i), &sum);
            found.miscounted += sum.workers > n ? sum.workers - n : n - sum.workers;
            least = n < least ? n : least;
            most = n > most ? n : most;
            served += n;
        }
        alive += !lab_is_front(w) && w->alive;
    }
    found.uneven = (most - least > 1 ? most - least - 1 : 0) + (alive - served);
    return found;
}

/* Every shard loses its power and begins again: it starts, with what it was said to have. */
static void check_what_is_kept(struct lab *lab)
{
    for (unsigned s = 0; s < lab->options.shards; s++) {
        if (lab->shard[s].alive && chaos_of(lab)->shard[s].keep.disk != NULL) {
            chaos_kill_shard(lab, s, true);
            CHECK(lab_shard_start(lab, s) == ERR_OK);
        }
    }
}

static unsigned not_started(const struct lab *lab)
{
    unsigned n = 0;
    for (unsigned s = 0; s < lab->options.shards; s++) {
        n += !lab->shard[s].alive && chaos_of(lab)->shard[s].faults.kills == 0;
    }
    return n;
}

static bool any_shard_lives(const struct lab *lab)
{
    bool any = false;
    for (unsigned s = 0; s < lab->options.shards; s++) {
        any = any || lab->shard[s].alive;
    }
    return any;
}

void chaos_probe(struct lab_worker *w)
{
    struct chaos_world *c = chaos_of(w->lab);
    struct lab_answer answer;
    if (c->probing && !program_of(w)->has_probed) {
        program_of(w)->has_probed = true;
        lab_front_post(w, &c->probe, UINT64_MAX, &answer);
    }
}

static void probe(struct lab *lab)
{
    chaos_of(lab)->probe = (struct job){
        .algorithm = algorithm_by_name("abdada"),
        .strict = true,
        .depth = PROBE_DEPTH,
        .remote_depth = PROTO_REMOTE_DEPTH_AUTO,
    };
    char why[128];
    uint64_t settle_ns = lab->alive_ms * (uint64_t)MS + heartbeats_ns(lab, 3) + 100 * (uint64_t)MS;
    CHECK(job_set_position(&chaos_of(lab)->probe, games_by_name("tree"), "tree:b=9,d=100,seed=1",
                           why, sizeof why) == ERR_OK);
    job_set_repeatable_namespace(&chaos_of(lab)->probe, (uint32_t)rng_mix(lab->now_ns));
    chaos_of(lab)->probing = true;
    lab_run_until(lab, lab->now_ns + settle_ns, false);
    struct service found = service(lab);
    /* A worker that went to another job a moment ago still counts for the first one, for as long as
     * it may be silent: what is wrong for good stays wrong. */
    for (unsigned i = 0; i < SETTLE_MOST && found.miscounted + found.uneven > 0; i++) {
        lab_run_until(lab, lab->now_ns + heartbeats_ns(lab, 1), false);
        found = service(lab);
    }
    chaos_of(lab)->result.miscounted += found.miscounted;
    chaos_of(lab)->result.uneven += found.uneven;
    chaos_of(lab)->probing = false;
    lab_fronts_stop(lab);
    become_quiet(lab);
    job_free(&chaos_of(lab)->probe);
}

/* Few nodes, but polls in time for every patience. */
static void slow_down(struct lab *lab)
{
    struct lab_options *o = &lab->options;
    uint64_t poll_us = o->heartbeat_ms * UINT64_C(1000) / POLLS_PER_HEARTBEAT;
    poll_us = poll_us < SLOW_POLL_US ? poll_us : SLOW_POLL_US;
    const uint64_t slow_ns = poll_us * 1000 / lab->poll_nodes;
    o->node_ns = slow_ns > o->node_ns ? slow_ns : o->node_ns;
    lab->poll_ns = o->node_ns * lab->poll_nodes;
}

/* ---- all of it ---- */

static void count_unanswered(struct lab *lab)
{
    for (unsigned i = 0; i < lab->options.posts; i++) {
        const struct lab_post *post = &lab->options.post[i];
        chaos_of(lab)->result.unanswered +=
            lab->worker[post->front].alive && post->stop_ns == 0 && !lab->result.answer[i].answered;
    }
}

void chaos_drain(struct lab *lab)
{
    uint64_t age_ns = (uint64_t)lab->options.inflight_age_max_ms * MS;
    age_ns += 2 * age_ns * chaos_of(lab)->options.drift_ppm / 1000000; /* by the slowest clock */
    count_unanswered(lab);
    if (!chaos_of(lab)->options.drain) {
        return;
    }
    slow_down(lab);
    chaos_heal(lab);
    become_quiet(lab);
    check_when_quiet(lab);
    uint64_t from = lab->now_ns;
    /* Three and a half heartbeats, one more where the shard itself was asleep, and its ticks. */
    lab_run_until(lab, from + heartbeats_ns(lab, 6) + reconnect_ns(lab), false);
    from = lab->now_ns;
    while (!are_connected(lab) && lab->now_ns < from + reconnect_ns(lab)) {
        lab_run_until(lab, lab->now_ns + heartbeats_ns(lab, 1), false);
    }
    check_when_expired(lab);
    from = lab->now_ns;
    lab_run_until(lab, from + heartbeats_ns(lab, 2) + age_ns, false);
    lab->now_ns = from + heartbeats_ns(lab, 2) + age_ns;
    check_when_aged(lab);
    if (lab_net_of(lab) != NULL) {
        lab_run_until(lab, lab->now_ns + heartbeats_ns(lab, CLOSED_BEATS), false);
        check_when_closed(lab);
    }
    if (any_shard_lives(lab) && chaos_of(lab)->result.unconnected == 0 &&
        !atomic_load(&lab->halt)) {
        probe(lab);
        check_when_quiet(lab);
    }
    check_what_is_kept(lab);
    chaos_of(lab)->result.not_started = not_started(lab);
}
