#include "worker/lab/world.h"

/* Stores and releases linger a millisecond in a client; asks are awaited a quarter of a second. */
enum { STEP_NS = 1000000, STOP_STEPS = 2000, LINGER_NS = 3 * STEP_NS, QUIET_STEPS = 2000 };

static bool is_searching(const struct lab *lab)
{
    for (unsigned i = 0; i < lab->options.workers; i++) {
        if (lab->processor[i].alive && lab->processor[i].searching) {
            return true;
        }
    }
    return false;
}

/* When all that was said will have been heard. */
static uint64_t quiet_ns(const struct lab *lab)
{
    uint64_t latest = lab->now_ns;
    for (unsigned s = 0; s < lab->options.shards; s++) {
        for (unsigned i = 0; i < lab->options.workers; i++) {
            uint64_t at = lab->processor[i].last_out_ns[s];
            latest = at > latest ? at : latest;
        }
        latest = lab->shard[s].free_ns > latest ? lab->shard[s].free_ns : latest;
    }
    return latest;
}

/* Every search stops, lets go of what it held, and the messages arrive. */
static void become_quiet(struct lab *lab)
{
    uint64_t from = lab->now_ns;
    unsigned step = 0;
    while (step < STOP_STEPS && is_searching(lab)) {
        lab_run_until(lab, from + (uint64_t)++step * STEP_NS, false);
    }
    lab->now_ns = from + (uint64_t)step * STEP_NS;
    lab_run_until(lab, lab->now_ns + LINGER_NS, false);
    uint64_t quiet = quiet_ns(lab);
    lab_run_until(lab, quiet, false);
    lab->now_ns = quiet;
}

static unsigned holds_of(const struct lab *lab, const struct lab_worker *p, unsigned shard)
{
    uint8_t route[LAB_ROUTE_BYTES];
    lab_route(p->index, p->incarnation, route);
    return ttcore_inflight_of(lab->shard[shard].core, route, sizeof route);
}

static struct ttcore_figures figures_of(const struct lab *lab, unsigned shard)
{
    struct ttcore_figures f = {0};
    if (lab->shard[shard].alive) {
        ttcore_figures(lab->shard[shard].core, &f);
    }
    return f;
}

static bool is_up(const struct lab_worker *p, unsigned shard)
{
    return client_shard_state(remote_client(p->remote), shard) == CLIENT_UP;
}

/* Holds of sessions in good order: nothing excuses these. */
static void look_when_quiet(struct lab *lab)
{
    for (unsigned i = 0; i < lab->options.workers; i++) {
        const struct lab_worker *p = &lab->processor[i];
        lab->result.still_searching += p->alive && p->searching;
        for (unsigned s = 0; s < lab->options.shards && p->alive && !p->searching; s++) {
            bool told = p->last_out_ns[s] <= lab->now_ns; /* else it has just come up again */
            bool excused = p->lossy >> s & 1 || !lab->shard[s].alive || !is_up(p, s) || !told;
            lab->result.inflight_kept += excused ? 0 : holds_of(lab, p, s);
        }
    }
}

/* By now the dead are forgotten and the living have found each other again. */
static void look_when_lapsed(struct lab *lab)
{
    for (unsigned s = 0; s < lab->options.shards; s++) {
        struct ttcore_figures f = figures_of(lab, s);
        unsigned sessions = 0, excused = 0;
        for (unsigned i = 0; i < lab->options.workers && lab->shard[s].alive; i++) {
            const struct lab_worker *p = &lab->processor[i];
            lab->result.unconnected += p->alive && !is_up(p, s);
            sessions += p->alive;
            excused += p->alive && p->lossy >> s & 1 ? holds_of(lab, p, s) : 0;
        }
        lab->result.sessions_stale += f.sessions > sessions ? (unsigned)f.sessions - sessions : 0;
        lab->result.inflight_stale += (unsigned)f.inflight_entries - excused;
    }
}

static void look_at_the_end(struct lab *lab)
{
    for (unsigned s = 0; s < lab->options.shards; s++) {
        lab->result.inflight_left += (unsigned)figures_of(lab, s).inflight_entries;
    }
    for (unsigned i = 0; i < lab->options.workers; i++) {
        const struct lab_worker *p = &lab->processor[i];
        lab->result.requests_left +=
            p->alive ? client_overdue(remote_client(p->remote), lab->now_ns / 1000) : 0;
    }
}

static uint64_t or_default(uint32_t value, uint32_t usual)
{
    return value != 0 ? value : usual;
}

void lab_drain(struct lab *lab)
{
    const struct lab_options *o = &lab->options;
    uint64_t heartbeat_ns = (uint64_t)o->heartbeat_ms * 1000000;
    uint64_t client_ns =
        1000 * (3 * or_default(o->rto_max_us, 250000) + 2 * or_default(o->probe_us, 100000));
    lab_faults_heal(lab);
    become_quiet(lab);
    look_when_quiet(lab);
    uint64_t from = lab->now_ns;
    /* Three and a half heartbeats, one more where the shard itself was asleep, and its ticks. */
    lab_run_until(lab, from + 6 * heartbeat_ns + client_ns, false);
    look_when_lapsed(lab);
    lab_run_until(lab,
                  from + 8 * heartbeat_ns + client_ns + (uint64_t)o->inflight_age_max_ms * 1000000,
                  false);
    look_at_the_end(lab);
}
