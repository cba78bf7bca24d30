#include "worker/lab/lab.h"

#include "common/memory.h"
#include "common/rng.h"
#include "worker/lab/lab_intruder.h"
#include "worker/lab/lab_keep.h"
#include "worker/lab/lab_liar.h"
#include "worker/lab/lab_service.h"
#include "worker/lab/lab_shard.h"
#include "worker/lab/lab_worker.h"
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
    POLLS_PER_HEARTBEAT = 8, /* after the end: sessions and reports go on */
    SLOW_POLL_US = 25000, /* ... at most */
    WAITS_PER_POLL = 500, /* answers awaited between two polls, at most */
};

/* ---- options ---- */

static bool is_valid(const struct lab_fault *f, const struct lab_options *o, unsigned machines)
{
    return (unsigned)f->kind < LAB_FAULT_KINDS && f->worker <= machines &&
           f->workers <= machines - f->worker && f->shard <= o->shards &&
           f->shards <= o->shards - f->shard;
}

static bool are_valid(const struct lab_options *o, unsigned machines)
{
    bool ok = o->workers >= 1 && machines <= LAB_WORKERS_MAX && o->fronts <= LAB_FRONTS_MAX &&
              o->shards >= 1 && o->shards <= LAB_SHARDS_MAX && o->node_ns >= 1 &&
              o->faults <= LAB_FAULTS_MAX && o->posts <= LAB_POSTS_MAX && o->loss_ppm <= 1000000 &&
              o->drift_ppm < 1000000 && o->threads <= EMBEDDED_SLOTS_MAX &&
              o->watchers <= LAB_WATCHERS_MAX;
    for (unsigned i = 0; ok && i < o->faults; i++) {
        ok = is_valid(&o->fault[i], o, machines + o->watchers);
    }
    for (unsigned i = 0; ok && i < o->posts; i++) {
        ok = o->post[i].front < o->fronts;
    }
    return ok;
}

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

static enum err take_options(struct lab *lab, const struct lab_options *options)
{
    struct lab_options *o = &lab->options;
    *o = *options;
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
    lab->programs = lab->machines + o->watchers;
    lab->hosts = (o->workers + o->threads - 1) / o->threads + o->fronts - 1;
    set_default(&o->inflight_max, 64 * lab->machines + 256);
    if (o->workers > LAB_WORKERS_MAX || !are_valid(o, lab->machines)) {
        return ERR_RANGE;
    }
    if (o->posts == 0) {
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
    uint64_t slow_poll_us = o->heartbeat_ms * UINT64_C(1000) / POLLS_PER_HEARTBEAT;
    slow_poll_us = slow_poll_us < SLOW_POLL_US ? slow_poll_us : SLOW_POLL_US;
    lab->node_ns = o->node_ns;
    lab->poll_ns = UINT64_MAX;
    lab->slow_ns = slow_poll_us * 1000 / lab->poll_nodes;
    lab->slow_ns = lab->slow_ns > o->node_ns ? lab->slow_ns : o->node_ns;
    lab->random = rng_mix(o->seed ^ UINT64_C(0x17e7));
    lab->want = (struct lab_want){rng_mix(o->seed ^ UINT64_C(0x3a27)), o->want_ppm, 0};
    lab->planted = rng_mix(o->seed ^ UINT64_C(0x91a27));
    return ERR_OK;
}

/* ---- build and tear down ---- */

/* That a host or shard of this number speaks at first. */
static uint32_t draw_version(const struct lab_options *o, uint64_t number)
{
    uint64_t state = rng_mix(o->seed ^ UINT64_C(0x7e55) ^ number << 32);
    return o->is_mixed ? PROTO_LOWEST + rng_below(&state, PROTO_VERSION - PROTO_LOWEST + 1)
                       : PROTO_VERSION;
}

static enum err build(struct lab *lab)
{
    const struct lab_options *o = &lab->options;
    lab->decoder = malloc(sizeof *lab->decoder);
    lab->worker = memory_lines(lab->programs * sizeof *lab->worker);
    lab->shard = calloc(o->shards, sizeof *lab->shard);
    lab->host = calloc(lab->hosts, sizeof *lab->host);
    if (lab->decoder == NULL || lab->worker == NULL || lab->shard == NULL || lab->host == NULL) {
        return ERR_NOMEM;
    }
    for (unsigned i = 0; i < lab->hosts; i++) {
        lab->host[i].version = draw_version(o, i);
        lab->host[i].clock = lab_clock_draw(o->seed ^ (uint64_t)i << 32, o->drift_ppm);
    }
    for (unsigned i = 0; i < o->shards; i++) {
        lab->shard[i].version = draw_version(o, LAB_WORKERS_MAX + i);
        lab->shard[i].clock =
            lab_clock_draw(o->seed ^ (uint64_t)(LAB_WORKERS_MAX + i) << 32, o->drift_ppm);
    }
    enum err err = ttcore_actions_open(&lab->actions, lab_shard_sessions(lab), LAB_SHARD_JOBS);
    if (err == ERR_OK && o->is_wired) {
        err = lab_net_open(lab);
    }
    for (unsigned i = 0; i < o->shards && err == ERR_OK; i++) {
        lab_keep_open(lab, i);
        err = lab_start(lab, lab->programs + i);
    }
    for (unsigned i = 0; i < lab->programs && err == ERR_OK; i++) {
        err = lab_start(lab, i);
    }
    return err;
}

static void tear_down(struct lab *lab)
{
    for (unsigned i = 0; lab->worker != NULL && i < lab->programs; i++) {
        if (lab->worker[i].lab != NULL) {
            lab_worker_kill(&lab->worker[i]);
        }
    }
    lab_intruder_close(lab);
    for (unsigned i = 0; lab->shard != NULL && i < lab->options.shards; i++) {
        for (unsigned who = 0; who < LAB_LIAR_SESSIONS; who++) {
            lab_shard_close_liar(lab, i, who);
        }
        lab_shard_kill(lab, i, false);
        lab_keep_close(lab, i);
        lab_service_free(lab, i);
    }
    lab_net_close(lab);
    lab->result.wants = lab->want.refused;
    for (unsigned i = 0; lab->host != NULL && i < lab->hosts; i++) {
        embedded_close(&lab->host[i].table); /* a planted fault leaves them open */
        uint64_t bytes = lab->host[i].bytes;
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

static void count_unanswered(struct lab *lab)
{
    for (unsigned i = 0; i < lab->options.posts; i++) {
        const struct lab_post *post = &lab->options.post[i];
        lab->result.unanswered +=
            lab->worker[post->front].alive && post->stop_ns == 0 && !lab->result.answer[i].answered;
    }
}

enum err lab_run(const struct lab_options *options, struct lab_result *out)
{
    struct lab *lab = calloc(1, sizeof *lab);
    if (lab == NULL) {
        return ERR_NOMEM;
    }
    enum err err = take_options(lab, options);
    if (err != ERR_OK) {
        free(lab);
        return err;
    }
    err = build(lab);
    if (err == ERR_OK) {
        lab_faults_schedule(lab);
        lab_liar_start(lab);
        lab_run_until(lab, options->limit_ns, true);
        count_unanswered(lab);
        lab->ended = true;
        if (options->drain) {
            lab_drain(lab);
        }
    }
    lab->result.simulated_ns = lab->now_ns;
    tear_down(lab); /* sums what the workers counted */
    if (err == ERR_OK) {
        *out = lab->result;
    }
    free(lab);
    return err;
}
