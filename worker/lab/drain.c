#include "worker/lab/world.h"

#include "common/rng.h"
#include "worker/games/games.h"
#include "worker/lab/lab_dealer.h"
#include "worker/lab/lab_service.h"
#include "worker/lab/lab_shard.h"

/* Stores and releases linger a millisecond in a client, and longer before its HELLO is answered. */
enum {
    MS = 1000000,
    LINGER_NS = 3 * MS,
    PROBE_DEPTH = 100,
    SETTLE_MOST = 32, /* heartbeats */
    CLOSED_BEATS = 16, /* until a shard has closed what has no session any more */
    IGNORED_NS = 1100 * MS, /* a shard that stood still may have so many HELLOs of a version that it
                               does not speak to take that it ignores their sender for a second */
};

static uint64_t heartbeats_ns(const struct lab *lab, unsigned count)
{
    return (uint64_t)lab->options.heartbeat_ms * count * MS;
}

/* Until a client has found a shard again. */
static uint64_t reconnect_ns(const struct lab *lab)
{
    const struct lab_net *net = lab->net;
    uint64_t connect_ns = net != NULL ? net->unconfirmed_ns + 3 * net->reconnect_max_ns : 0;
    return connect_ns + UINT64_C(1000) * (3 * lab->options.rto_max_us + 2 * lab->options.probe_us);
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
    lab->result.still_searching += searching(lab);
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
    return client_shard_state(remote_client(w->searcher->remote), shard) == CLIENT_UP;
}

/* In-flight entries of sessions in good order: nothing excuses these; nor those in a host's table
 * when none of its threads searches. */
static void check_when_quiet(struct lab *lab)
{
    for (unsigned i = 0; i < lab->machines; i++) {
        const struct lab_worker *w = &lab->worker[i];
        for (unsigned s = 0; s < lab->options.shards && w->alive && lab_searches(w) == 0; s++) {
            bool arrived = w->last_out_ns[s] <= lab->now_ns && /* else it has just come up again */
                           (lab->net == NULL || lab_dealer_is_through(w, s));
            bool excused = w->lossy >> s & 1 || !lab->shard[s].alive || !is_up(w, s) || !arrived;
            lab->result.inflight_kept += excused ? 0 : lab_shard_inflight_of(lab, s, w);
        }
    }
    for (unsigned h = 0; h < lab->hosts; h++) {
        unsigned users = 0;
        for (unsigned i = 0; i < lab->machines; i++) {
            users += lab->worker[i].host == &lab->host[h];
        }
        lab->result.half_made += lab->host[h].users != users;
    }
    for (unsigned h = 0; h < lab->hosts && searching(lab) == 0; h++) {
        lab->result.inflight_kept +=
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
            lab->result.unconnected += w->alive && !is_up(w, s);
            sessions += w->alive;
            excused += w->alive && w->lossy >> s & 1 ? lab_shard_inflight_of(lab, s, w) : 0;
        }
        lab->result.sessions_stale += f.sessions > sessions ? (unsigned)f.sessions - sessions : 0;
        lab->result.inflight_stale += (unsigned)f.inflight_entries - excused;
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
        lab->result.inflight_left += (unsigned)lab_shard_figures(lab, s).inflight_entries;
    }
    for (unsigned i = 0; i < lab->machines; i++) {
        const struct lab_worker *w = &lab->worker[i];
        lab->result.requests_left +=
            w->alive ? client_overdue(remote_client(w->searcher->remote), lab_worker_us(lab, i))
                     : 0;
    }
}

/* Nothing is left of connections that were closed, or lost their peers. */
static void check_when_closed(struct lab *lab)
{
    for (unsigned s = 0; s < lab->options.shards; s++) {
        lab->result.connections_left += lab->shard[s].alive ? lab_service_left(lab, s) : 0;
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
        if (lab->shard[s].alive && lab->shard[s].keep.disk != NULL) {
            lab_shard_kill(lab, s, true);
            CHECK(lab_shard_start(lab, s) == ERR_OK);
        }
    }
}

static unsigned not_started(const struct lab *lab)
{
    unsigned n = 0;
    for (unsigned s = 0; s < lab->options.shards; s++) {
        n += !lab->shard[s].alive && lab->shard[s].faults.kills == 0;
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

static void probe(struct lab *lab)
{
    lab->probe = (struct job){
        .algorithm = algorithm_by_name("abdada"),
        .strict = true,
        .depth = PROBE_DEPTH,
        .remote_depth = PROTO_REMOTE_DEPTH_AUTO,
    };
    char why[128];
    uint64_t settle_ns = lab->alive_ms * (uint64_t)MS + heartbeats_ns(lab, 3) + 100 * (uint64_t)MS;
    CHECK(job_set_position(&lab->probe, games_by_name("tree"), "tree:b=9,d=100,seed=1", why,
                           sizeof why) == ERR_OK);
    job_set_repeatable_namespace(&lab->probe, (uint32_t)rng_mix(lab->now_ns));
    lab->probing = true;
    lab_run_until(lab, lab->now_ns + settle_ns, false);
    struct service found = service(lab);
    /* Who went to another job a moment ago still counts for the first one, for as long as it may
     * be silent: what is wrong for good stays wrong. */
    for (unsigned i = 0; i < SETTLE_MOST && found.miscounted + found.uneven > 0; i++) {
        lab_run_until(lab, lab->now_ns + heartbeats_ns(lab, 1), false);
        found = service(lab);
    }
    lab->result.miscounted += found.miscounted;
    lab->result.uneven += found.uneven;
    lab->probing = false;
    become_quiet(lab);
    job_free(&lab->probe);
}

void lab_drain(struct lab *lab)
{
    uint64_t age_ns = (uint64_t)lab->options.inflight_age_max_ms * MS;
    age_ns += 2 * age_ns * lab->options.drift_ppm / 1000000; /* by the slowest clock */
    lab->node_ns = lab->slow_ns;
    lab->poll_ns = lab->slow_ns * lab->poll_nodes;
    lab_faults_heal(lab);
    become_quiet(lab);
    check_when_quiet(lab);
    uint64_t from = lab->now_ns;
    /* Three and a half heartbeats, one more where the shard itself was asleep, and its ticks. */
    lab_run_until(lab, from + heartbeats_ns(lab, 6) + reconnect_ns(lab), false);
    from = lab->now_ns;
    while (!are_connected(lab) && lab->now_ns < from + IGNORED_NS + reconnect_ns(lab)) {
        lab_run_until(lab, lab->now_ns + heartbeats_ns(lab, 1), false);
    }
    check_when_expired(lab);
    from = lab->now_ns;
    lab_run_until(lab, from + heartbeats_ns(lab, 2) + age_ns, false);
    lab->now_ns = from + heartbeats_ns(lab, 2) + age_ns;
    check_when_aged(lab);
    if (lab->net != NULL) {
        lab_run_until(lab, lab->now_ns + heartbeats_ns(lab, CLOSED_BEATS), false);
        check_when_closed(lab);
    }
    if (any_shard_lives(lab) && lab->result.unconnected == 0 && !atomic_load(&lab->halt)) {
        probe(lab);
        check_when_quiet(lab);
    }
    check_what_is_kept(lab);
    lab->result.not_started = not_started(lab);
}
