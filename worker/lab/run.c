#include "worker/lab/lab.h"

#include "common/memory.h"
#include "common/rng.h"
#include "worker/lab/world.h"

#include <stdlib.h>

enum {
    HEARTBEAT_MS = 1000,
    INFLIGHT_AGE_MAX_MS = 60000,
    CONNECT_MS = 50,
    RTO_MIN_US = 2000, /* the client's own, as the next two: no machine is busy here */
    RTO_MAX_US = 250000,
    PROBE_US = 100000,
    POLL_EVERY_NS = 50000,
    TURN_NS = 3000, /* threads of a host take turns: how far one may be ahead of the others */
    WAITS_PER_POLL = 500, /* answers awaited between two polls, at most */
};

/* ---- options ---- */

static void set_default(uint32_t *value, uint32_t usual)
{
    *value = *value != 0 ? *value : usual;
}

/* The times of the programs, which go with heartbeats of a second, for these heartbeats. */
static uint32_t scaled(const struct lab *lab, uint32_t ms)
{
    uint64_t scaled_ms = (uint64_t)ms * lab->options.heartbeat_ms / HEARTBEAT_MS;
    return scaled_ms > 0 ? (uint32_t)scaled_ms : 1;
}

static enum err complete_options(struct lab *lab, const struct lab_options *options)
{
    static const struct lab_hooks none = {NULL};
    struct lab_options *o = &lab->options;
    *o = *options;
    o->hooks = o->hooks != NULL ? o->hooks : &none;
    set_default(&o->fronts, 1);
    set_default(&o->threads, 1);
    set_default(&o->heartbeat_ms, HEARTBEAT_MS);
    set_default(&o->inflight_age_max_ms, INFLIGHT_AGE_MAX_MS);
    set_default(&o->connect_ms, CONNECT_MS);
    set_default(&o->rto_min_us, RTO_MIN_US);
    set_default(&o->rto_max_us, RTO_MAX_US);
    set_default(&o->probe_us, PROBE_US);
    set_default(&o->poll_ns, POLL_EVERY_NS);
    lab->machines = o->workers + o->fronts - 1;
    lab->programs = lab->machines + o->guests;
    lab->hosts = (o->workers + o->threads - 1) / o->threads + o->fronts - 1;
    set_default(&o->inflight_max, 64 * lab->machines + 256);
    bool is_valid = o->workers >= 1 && o->workers <= LAB_WORKERS_MAX &&
                    lab->machines <= LAB_WORKERS_MAX && o->fronts <= LAB_FRONTS_MAX &&
                    o->shards >= 1 && o->shards <= LAB_SHARDS_MAX && o->node_ns >= 1 &&
                    o->posts <= LAB_POSTS_MAX && o->loss_ppm <= 1000000 &&
                    o->threads <= EMBEDDED_SLOTS_MAX;
    for (unsigned i = 0; is_valid && i < o->posts; i++) {
        is_valid = o->post[i].front < o->fronts;
    }
    if (!is_valid) {
        return ERR_RANGE;
    }
    if (o->posts == 0 && o->hooks->next == NULL) {
        lab->only.job = o->job;
        o->post = &lab->only;
        o->posts = 1;
    }
    lab->patience = (struct worker_patience){
        .report_ms = scaled(lab, WORKER_REPORT_MS),
        .move_ms = scaled(lab, WORKER_MOVE_MS),
        .repeat_ms = scaled(lab, WORKER_REPEAT_MS),
        .orphan_ms = scaled(lab, WORKER_ORPHAN_MS),
        .unknown_ms = scaled(lab, WORKER_UNKNOWN_MS),
    };
    /* A search that awaits every answer polls, and hears of its job, after so many round trips. */
    uint32_t wait_ms = (uint32_t)((o->rtt_ns + o->jitter_ns) / 1000 * WAITS_PER_POLL / 1000);
    lab->alive_ms = scaled(lab, FRONT_ALIVE_MS) + wait_ms;
    lab->wait_ms = FRONT_WAIT_MS + wait_ms;
    uint64_t poll = (o->threads > 1 ? TURN_NS : o->poll_ns) / o->node_ns;
    lab->poll_nodes = poll < 1 ? 1 : poll > SEARCH_POLL_NODES ? SEARCH_POLL_NODES : (unsigned)poll;
    lab->poll_ns = UINT64_MAX;
    lab->random = rng_mix(o->seed ^ UINT64_C(0x17e7));
    return ERR_OK;
}

/* ---- events ---- */

static void record(struct lab *lab, const struct lab_event *e)
{
    struct lab_result *r = &lab->result;
    uint64_t what = e->time_ns ^ (uint64_t)e->kind << 56 ^ (uint64_t)e->who << 32;
    if (e->packet != NULL && e->packet->is_sealed) {
        what ^= (uint64_t)e->packet->length << 24;
    } else if (e->packet != NULL) {
        for (uint32_t i = 0; i < e->packet->length; i++) {
            what = (what ^ e->packet->bytes[i]) * UINT64_C(0x100000001b3);
        }
    }
    r->trace = rng_mix(r->trace ^ what);
    r->events++;
}

static void act(struct lab *lab, const struct lab_event *e)
{
    const struct lab_hooks *hooks = lab->options.hooks;
    if (hooks->event != NULL && hooks->event(lab, e)) {
        return;
    }
    switch (e->kind) {
    case LAB_WAKE:
        if (lab->worker[e->who].alive && lab->worker[e->who].epoch == e->epoch) {
            lab_worker_wake(&lab->worker[e->who]);
        }
        break;
    case LAB_TO_WORKER:
    case LAB_TO_PEER:
        lab_worker_receive(&lab->worker[e->who], e->packet, e->kind == LAB_TO_PEER);
        break;
    case LAB_TO_SHARD:
        if (lab->shard[e->who].alive && lab->shard[e->who].incarnation == e->epoch) {
            lab_shard_receive(lab, e->who, e->packet);
        } else {
            free(e->packet); /* its connection went with the shard that died */
        }
        break;
    case LAB_TICK:
        lab_shard_tick(lab, e->who, e->epoch);
        break;
    default:
        CHECK_THAT(false, "lab: an event of another kind is the hook's");
    }
}

void lab_run_until(struct lab *lab, uint64_t until_ns, bool to_end)
{
    struct lab_event e;
    while (!(to_end && lab->ended) && lab->heap.count > 0 && lab->heap.at[0].time_ns <= until_ns &&
           lab_heap_pop(&lab->heap, &e)) {
        CHECK_THAT(e.time_ns >= lab->now_ns, "lab: nothing happens in the past");
        lab->now_ns = e.time_ns;
        record(lab, &e);
        act(lab, &e);
    }
}

/* ---- build and tear down ---- */

enum err lab_start(struct lab *lab, unsigned who)
{
    if (who >= lab->programs) {
        return lab_shard_start(lab, who - lab->programs);
    }
    const enum err err = lab_worker_start(lab, who);
    if (err == ERR_OK) {
        lab_worker_wake_at(&lab->worker[who], lab->now_ns);
    }
    return err;
}

static enum err build(struct lab *lab)
{
    const struct lab_options *o = &lab->options;
    enum err (*const start)(struct lab *, unsigned) =
        o->hooks->start != NULL ? o->hooks->start : lab_start;
    lab->decoder = malloc(sizeof *lab->decoder);
    lab->worker = memory_lines(lab->programs * sizeof *lab->worker);
    lab->shard = calloc(o->shards, sizeof *lab->shard);
    lab->host = calloc(lab->hosts, sizeof *lab->host);
    if (lab->decoder == NULL || lab->worker == NULL || lab->shard == NULL || lab->host == NULL) {
        return ERR_NOMEM;
    }
    enum err err = ttcore_actions_open(&lab->actions, lab_shard_sessions(lab), LAB_SHARD_JOBS);
    if (err == ERR_OK && o->hooks->open != NULL) {
        err = o->hooks->open(lab);
    }
    for (unsigned i = 0; i < o->shards && err == ERR_OK; i++) {
        err = start(lab, lab->programs + i);
    }
    for (unsigned i = 0; i < lab->programs && err == ERR_OK; i++) {
        err = start(lab, i);
    }
    return err;
}

static void tear_down(struct lab *lab)
{
    if (lab->options.hooks->close != NULL) {
        lab->options.hooks->close(lab);
    }
    for (unsigned i = 0; lab->worker != NULL && i < lab->programs; i++) {
        if (lab->worker[i].lab != NULL) {
            lab_worker_kill(&lab->worker[i]);
        }
    }
    for (unsigned i = 0; lab->shard != NULL && i < lab->options.shards; i++) {
        lab_shard_kill(lab, i);
    }
    for (unsigned i = 0; lab->host != NULL && i < lab->hosts; i++) {
        const uint64_t bytes = lab->host[i].bytes;
        lab->result.card_bytes += bytes;
        if (bytes > lab->result.card_bytes_most) {
            lab->result.card_bytes_most = bytes;
        }
    }
    ttcore_actions_close(&lab->actions);
    lab_heap_close(&lab->heap);
    free(lab->decoder);
    free(lab->worker);
    free(lab->shard);
    free(lab->host);
}

enum err lab_run(const struct lab_options *options, struct lab_result *out)
{
    struct lab *lab = calloc(1, sizeof *lab);
    if (lab == NULL) {
        return ERR_NOMEM;
    }
    enum err err = complete_options(lab, options);
    if (err != ERR_OK) {
        free(lab);
        return err;
    }
    const struct lab_hooks *hooks = lab->options.hooks;
    err = build(lab);
    if (err == ERR_OK) {
        if (hooks->begin != NULL) {
            hooks->begin(lab);
        }
        lab_run_until(lab, options->limit_ns, true);
        lab_fronts_stop(lab);
        if (hooks->end != NULL) {
            hooks->end(lab);
        }
    }
    tear_down(lab); /* sums what the workers counted */
    if (err == ERR_OK) {
        *out = lab->result;
    }
    free(lab);
    return err;
}
