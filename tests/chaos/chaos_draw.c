#include "common/rng.h"
#include "tests/chaos/chaos.h"
#include "worker/games/games.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
    ENDING_LEAST = 8, /* moves before the end */
    ENDING_MOST = 14,
    MIDDLE_LEAST = 20,
    MIDDLE_MOST = 50,
    TREE_LEAVES_MAX = 2500, /* b to the power of half the depth: nodes of a perfect search */
    FAULTS_DRAWN_MAX = 12,
    HEARTBEAT_CARD_MS = 200, /* a slow card is busy with what all ask for longer than some beats */
    US = 1000,
    MS = 1000000,
};

static uint64_t between(uint64_t *state, uint64_t least, uint64_t most)
{
    return least + rng_next(state) % (most - least + 1);
}

static bool percent(uint64_t *state, unsigned chance)
{
    return rng_below(state, 100) < chance;
}

/* Each power of two as likely. */
static uint64_t log_between(uint64_t *state, uint64_t least, uint64_t most)
{
    unsigned doublings = 0;
    while (doublings < 63 && least << doublings < most) {
        doublings++;
    }
    uint64_t low = least << rng_below(state, doublings + 1);
    return between(state, low < most ? low : most, 2 * low < most ? 2 * low : most);
}

/* ---- kinds of trouble ---- */

bool chaos_has(uint64_t seed, unsigned kind)
{
    uint64_t swarm = rng_mix(seed ^ UINT64_C(0x5a93));
    return swarm % 5 == 0 || (rng_mix(swarm + kind) & 1) != 0;
}

const char *chaos_kind_name(unsigned kind)
{
    static const char *const names[CHAOS_KINDS] = {
        [LAB_KILL] = "kill",     [LAB_STALL] = "stall",         [LAB_CUT] = "cut",
        [LAB_DELAY] = "delay",   [LAB_LOSS] = "lossy link",     [LAB_UPGRADE] = "upgrade",
        [CHAOS_LOSS] = "loss",   [CHAOS_LIES] = "lies",         [CHAOS_NARROW] = "narrow",
        [CHAOS_WANT] = "want",   [CHAOS_WATCHERS] = "watchers", [LAB_SUSPEND] = "suspend",
        [LAB_JUMP] = "jump",     [LAB_RESET] = "reset",         [LAB_DEAF] = "deaf",
        [CHAOS_DISKS] = "disks", [LAB_HALF_OPEN] = "half-open", [CHAOS_DRIFT] = "drift",
    };
    return names[kind];
}

/* ---- the question ---- */

static const struct {
    const char *fen;
    unsigned depth;
} chess[] = {
    {"8/8/8/8/8/3k4/3p4/3K4 w - - 0 1", 6},
    {"8/8/1p6/pP6/P7/8/1k4K1/8 w - - 0 1", 6},
    {"8/k7/3p4/p2P1p2/P2P1P2/8/8/K7 w - - 0 1", 6},
    {"4k3/8/8/8/8/8/4P3/4K3 w - - 0 1", 5},
    {"6k1/5ppp/8/8/8/8/5PPP/3R2K1 w - - 0 1", 4},
    {"8/2p5/3p4/KP5r/1R3p1k/8/4P1P1/8 w - - 0 1", 4},
    {"1k1r4/pp1b1R2/3q2pp/4p3/2B5/4Q3/PPP2B2/2K5 b - -", 3},
    {"3r1k2/4npp1/1ppr3p/p6P/P2PPPP1/1NR5/5K2/2R5 w - -", 3},
    {"startpos", 3},
};

static const char *const shapes[] = {"uniform", "ranked", "varied"};
static const char *const edges[] = {"uniform", "bell", "tailed", "losses", "sharp"};

static unsigned draw_tree(uint64_t *state, char *text, size_t size)
{
    unsigned d = (unsigned)between(state, 4, 8), b = (unsigned)between(state, 3, 12), leaves = b;
    for (unsigned i = 2; i <= (d + 1) / 2; i++) {
        leaves *= b;
    }
    for (; leaves > TREE_LEAVES_MAX; leaves /= b) {
        d -= 2;
    }
    unsigned shape = percent(state, 60) ? 0 : rng_below(state, 3);
    unsigned edge = rng_below(state, 5);
    bool transposes = shape == 0 && edge < 4 && percent(state, 50);
    bool extends = percent(state, 20);
    snprintf(text, size,
             "tree:b=%u,d=%u,seed=%" PRIu32 ",shape=%s,edges=%s,range=%u,order=%u,t=%u,ends=%u,"
             "checks=%u",
             b, d, rng_below(state, UINT32_MAX), shapes[shape], edges[edge],
             percent(state, 50) ? 100 : 3, percent(state, 50) ? 100 : rng_below(state, 101),
             transposes ? 2 + rng_below(state, 3) : 1, percent(state, 25) ? 10 : 0,
             extends ? 20 : 0);
    return extends ? d - 1 : d;
}

/* `left` moves before the end at most, by random play from the first position. */
static enum err draw_position(uint64_t *state, const struct game *game, unsigned left,
                              struct job *job)
{
    char text[GAME_TEXT_MAX], why[128];
    unsigned moves = 0;
    enum err err = ERR_OK;
    while (moves == 0 && err == ERR_OK) { /* a game may be over sooner: then another */
        struct game_move list[GAME_MOVES_MAX];
        err = job_set_position(job, game, "startpos", why, sizeof why);
        if (err != ERR_OK) {
            return err;
        }
        moves = game->generate(job->position, list);
        while (moves > 0 && game->depth_left(job->position) > left) {
            game->make(job->position, list[rng_below(state, moves)].move);
            moves = game->generate(job->position, list);
        }
    }
    game->format(job->position, text);
    return job_set_position(job, game, text, why, sizeof why); /* without its history, as others */
}

/* Draws a position of a game that ends in so many moves. */
static enum err draw_stage(uint64_t *state, const struct game *game, bool is_ending,
                           struct job *job)
{
    unsigned left = (unsigned)(is_ending ? between(state, ENDING_LEAST, ENDING_MOST)
                                         : between(state, MIDDLE_LEAST, MIDDLE_MOST));
    job->depth = (uint8_t)(is_ending ? left : between(state, 3, 6));
    return draw_position(state, game, left, job);
}

/* `game` NULL: of trees and chess. */
static enum err draw_question(uint64_t *state, const struct game *game, struct job *job)
{
    char text[GAME_TEXT_MAX], why[128];
    if (game != NULL ? game == games_by_name("tree") : percent(state, 70)) {
        job->depth = (uint8_t)draw_tree(state, text, sizeof text);
        return job_set_position(job, games_by_name("tree"), text, why, sizeof why);
    }
    unsigned i = rng_below(state, sizeof chess / sizeof chess[0]);
    job->depth = (uint8_t)between(state, 3, chess[i].depth);
    return job_set_position(job, games_by_name("chess"), chess[i].fen, why, sizeof why);
}

static enum err draw_job(uint64_t *state, const struct chaos_wish *wish, bool is_first,
                         struct job *job)
{
    static const char *const algorithms[] = {"abdada", "abdada", "abdada-paper", "shared-table"};
    char why[128];
    enum err err;

    if (wish->job != NULL) {
        job->depth = wish->job->depth;
        err = job_set_position(job, wish->job->game, wish->job->text, why, sizeof why);
    } else {
        err = wish->game != NULL && wish->game->depth_left != NULL
                  ? draw_stage(state, wish->game, is_first || percent(state, 50), job)
                  : draw_question(state, wish->game, job);
    }
    job->algorithm = algorithm_by_name(algorithms[rng_below(state, 4)]);
    if (wish->algorithm != NULL) {
        job->algorithm = wish->algorithm;
    }
    job->strict = !percent(state, 10);
    job->full = !job->strict && percent(state, 50);
    job->waits = percent(state, 50);
    job->remote_depth =
        percent(state, 20) ? PROTO_REMOTE_DEPTH_AUTO : (uint8_t)between(state, 1, 4);
    if (err == ERR_OK) {
        job_set_repeatable_namespace(job, 0);
    }
    return err;
}

/* ---- front-ends and what they post ---- */

/* Too deep for an answer: it ends with its stop. */
static enum err draw_endless(uint64_t *state, struct job *job)
{
    char text[GAME_TEXT_MAX], why[128];
    snprintf(text, sizeof text, "tree:b=%u,d=100,seed=%" PRIu32, 3 + rng_below(state, 10),
             rng_below(state, UINT32_MAX));
    job->depth = SEARCH_DEPTH_MAX;
    return job_set_position(job, games_by_name("tree"), text, why, sizeof why);
}

/* The first is the wish. Others are of the same kinds, or endless and stopped. */
static enum err draw_posts(uint64_t *state, const struct chaos_wish *wish, struct chaos_plan *plan)
{
    const struct chaos_wish others = {.algorithm = wish->algorithm, .game = wish->game};
    unsigned fronts = percent(state, 45) ? 1 : 2 + rng_below(state, 2);
    unsigned posts = fronts - 1 + (unsigned)between(state, 1, 3);
    enum err err = ERR_OK;
    plan->options.lab.fronts = fronts;
    for (unsigned i = 0; i < posts && err == ERR_OK; i++) {
        struct lab_post *post = &plan->post[i];
        struct job *job = &plan->job[plan->posts++];
        post->front = i < fronts ? i : rng_below(state, fronts);
        post->at_ns = percent(state, 50) ? 0 : rng_next(state) % (20 * MS);
        err = draw_job(state, i == 0 ? wish : &others, i == 0, job);
        if (err == ERR_OK && i > 0 && percent(state, 50)) {
            post->stop_ns = log_between(state, MS / 10, 20 * MS);
            err = draw_endless(state, job);
            if (err == ERR_OK) {
                job_set_repeatable_namespace(job, 0);
            }
        }
    }
    return err;
}

/* ---- the cluster ---- */

/* In most runs each worker is a host of its own. */
static void draw_hosts(uint64_t *state, struct lab_options *o)
{
    o->threads = percent(state, 40) ? (unsigned)between(state, 2, 4) : 1;
    o->bandwidth = percent(state, 50) ? log_between(state, 12500000, 1250000000) : 0;
    o->bandwidth = chaos_has(o->seed, CHAOS_NARROW) ? o->bandwidth : 0;
    o->operation_ns = percent(state, 50) ? o->message_ns / 20 : 0;
}

/* Each machine has a clock of its own. */
static void draw_clocks(uint64_t *state, struct chaos_options *o)
{
    o->drift_ppm = (uint32_t)log_between(state, 10, 10000);
    o->drift_ppm = chaos_has(o->lab.seed, CHAOS_DRIFT) ? o->drift_ppm : 0;
}

/* Shards keep their results. Of the faults of disks each is there in some. */
static void draw_disks(uint64_t *state, struct chaos_plan *plan)
{
    plan->options.keep_ns = log_between(state, MS / 4, 16 * MS);
    plan->options.keep_ns = chaos_has(plan->seed, CHAOS_DISKS) ? plan->options.keep_ns : 0;
    plan->disk = (struct lab_disk_faults){
        .short_ppm = percent(state, 50) ? (uint32_t)log_between(state, 1000, 400000) : 0,
        .full_ppm = percent(state, 30) ? (uint32_t)log_between(state, 1000, 200000) : 0,
        .error_ppm = percent(state, 40) ? (uint32_t)log_between(state, 500, 60000) : 0,
        .sync_ppm = percent(state, 40) ? (uint32_t)log_between(state, 10000, 500000) : 0,
        .power_ppm = percent(state, 80) ? (uint32_t)between(state, 200000, 1000000) : 0,
        .damage_ppm = percent(state, 30) ? (uint32_t)between(state, 100000, 1000000) : 0,
    };
}

enum err chaos_draw(uint64_t seed, const struct chaos_wish *wish, struct chaos_plan *out)
{
    static const unsigned node_us[] = {1, 1, 5, 20, 50};
    uint64_t state = rng_mix(seed ^ UINT64_C(0xc4a05));
    struct chaos_plan plan = {.seed = seed, .faults = wish->faults};
    enum err err = draw_posts(&state, wish, &plan);
    if (err != ERR_OK) {
        chaos_free(&plan);
        return err;
    }
    struct lab_options *o = &plan.options.lab;
    o->seed = seed;
    o->workers = (unsigned)between(&state, 2, 8);
    o->shards = (unsigned)between(&state, 1, 4);
    o->workers = wish->workers != 0 ? wish->workers : o->workers;
    o->shards = wish->shards != 0 ? wish->shards : o->shards;
    o->node_ns = node_us[rng_below(&state, 5)] * UINT64_C(1000);
    o->rtt_ns = percent(&state, 10) ? 0 : log_between(&state, 10 * US, 2 * MS);
    o->jitter_ns = percent(&state, 50) ? 0 : rng_next(&state) % (o->rtt_ns + 1);
    o->service_ns = percent(&state, 50) ? 200 : 0;
    o->service_operation_ns = o->service_ns;
    o->message_ns = percent(&state, 50) ? 1000 : 0;
    const bool is_narrow = chaos_has(seed, CHAOS_NARROW);
    o->loss_ppm = percent(&state, 30) ? 0 : (uint32_t)log_between(&state, 100, 20000);
    o->loss_ppm = chaos_has(seed, CHAOS_LOSS) ? o->loss_ppm : 0;
    o->results_bytes = percent(&state, 35) && is_narrow ? 4096 : 1 << 20;
    o->inflight_max = percent(&state, 20) && is_narrow ? (uint32_t)between(&state, 1, 16) : 0;
    o->local_bytes = percent(&state, 35) && is_narrow ? 1024 : 64 << 10;
    /* Searches are short here: mostly patience is, too, so that sessions expire meanwhile. */
    if (percent(&state, 85)) {
        o->heartbeat_ms = (uint32_t)log_between(&state, 4, 40);
        o->inflight_age_max_ms = (uint32_t)log_between(&state, 20, 640);
        o->connect_ms = (uint32_t)between(&state, 1, 20);
        o->rto_min_us = (uint32_t)log_between(&state, 500, 4000);
        o->rto_max_us = (uint32_t)log_between(&state, 8000, 64000);
        o->probe_us = (uint32_t)log_between(&state, 2000, 32000);
    }
    o->share_depth = percent(&state, 50) ? (uint8_t)between(&state, 1, 3) : 0;
    /* A liar meddles, besides the faults. */
    plan.lie_ns = chaos_has(seed, CHAOS_LIES) ? log_between(&state, 50 * US, 5 * MS) : 0;
    draw_hosts(&state, o);
    if (o->bandwidth != 0 && o->heartbeat_ms != 0 && o->heartbeat_ms < HEARTBEAT_CARD_MS) {
        o->heartbeat_ms = HEARTBEAT_CARD_MS;
    }
    plan.want_ppm = chaos_has(seed, CHAOS_WANT) ? (uint32_t)log_between(&state, 1000, 64000) : 0;
    const uint64_t net = rng_mix(seed ^ UINT64_C(0x3172e));
    plan.options.is_wired = net % 2 == 0 || wish->is_wired;
    plan.options.has_keys = net % 8 == 0;
    plan.options.watchers = chaos_has(seed, CHAOS_WATCHERS) ? (unsigned)between(&state, 1, 3) : 0;
    plan.options.planted = wish->planted;
    draw_disks(&state, &plan);
    draw_clocks(&state, &plan.options);
    *out = plan;
    return ERR_OK;
}

/* ---- the faults ---- */

/* One, some, or all of `count`; never none. */
static void draw_set(uint64_t *state, unsigned count, unsigned *first, unsigned *many)
{
    unsigned kind = rng_below(state, 10);
    *first = kind < 3 ? 0 : rng_below(state, count);
    *many = kind < 3 ? count : kind < 8 ? 1 : 1 + rng_below(state, count - *first);
}

static uint64_t draw_length(uint64_t *state, const struct chaos_plan *plan, uint64_t within_ns)
{
    uint64_t heartbeat =
        plan->options.lab.heartbeat_ms != 0 ? plan->options.lab.heartbeat_ms : 1000;
    uint64_t expiry_ns = heartbeat * 5 * MS;
    switch (rng_below(state, 4)) {
    case 0: /* long enough to expire */
        return between(state, expiry_ns / 2, expiry_ns * 2);
    case 1:
        return between(state, MS / 10, 2 * MS);
    default:
        return log_between(state, MS, within_ns > 2 * MS ? within_ns : 2 * MS);
    }
}

/* Minutes, where heartbeats are a second apart. */
static uint64_t draw_suspend(uint64_t *state, const struct chaos_plan *plan)
{
    uint64_t heartbeat =
        plan->options.lab.heartbeat_ms != 0 ? plan->options.lab.heartbeat_ms : 1000;
    return log_between(state, heartbeat, 400 * heartbeat) * MS;
}

/* Seconds to days, forward or back. */
static uint64_t draw_jump(uint64_t *state)
{
    const uint64_t jump_ns = log_between(state, 1, 864000) * 1000 * MS;
    return percent(state, 50) ? jump_ns : -jump_ns;
}

static unsigned machines(const struct chaos_plan *plan)
{
    return plan->options.lab.fronts - 1 + plan->options.lab.workers;
}

static void draw_links(uint64_t *state, const struct chaos_plan *plan, struct lab_fault *f)
{
    draw_set(state, machines(plan) + plan->options.watchers, &f->worker, &f->workers);
    draw_set(state, plan->options.lab.shards, &f->shard, &f->shards);
    if (percent(state, 20)) { /* the front-end from everybody */
        f->worker = 0;
        f->workers = 1;
        f->shard = 0;
        f->shards = plan->options.lab.shards;
    }
    f->ways = percent(state, 60)   ? LAB_BOTH_WAYS
              : percent(state, 50) ? LAB_TO_SHARDS
                                   : LAB_TO_WORKERS;
    f->amount =
        f->kind == LAB_DELAY ? log_between(state, MS / 10, 20 * MS) : between(state, 10000, 500000);
}

static void draw_victims(uint64_t *state, const struct chaos_plan *plan, struct lab_fault *f)
{
    if (percent(state, 50)) {
        draw_set(state, plan->options.lab.shards, &f->shard, &f->shards);
    } else if ((f->kind == LAB_STALL || f->kind == LAB_SUSPEND) && percent(state, 30)) {
        f->workers = 1; /* the front-end */
    } else if (machines(plan) > 1) {
        draw_set(state, machines(plan) - 1, &f->worker, &f->workers);
        f->worker++;
    }
}

/* All hosts and shards one after the other: each is back before the next goes, or, where it is done
 * in a hurry, not. Returns how many faults that makes. */
static unsigned draw_rolling_upgrade(uint64_t *state, const struct chaos_plan *plan,
                                     uint64_t within_ns, struct lab_fault *fault)
{
    const unsigned threads = plan->options.lab.threads, shards = plan->options.lab.shards;
    const unsigned hosts =
        (plan->options.lab.workers + threads - 1) / threads - 1; /* but the first */
    const uint64_t each_ns = within_ns / (hosts + shards) + MS;
    bool is_hurried = percent(state, 25);
    unsigned count = 0;
    for (unsigned i = 0; i < hosts + shards; i++) {
        struct lab_fault *f = &fault[count++];
        *f = (struct lab_fault){.kind = LAB_UPGRADE};
        if (i < shards) {
            f->shard = i;
            f->shards = 1;
        } else {
            f->worker =
                plan->options.lab.fronts + (i - shards + 1) * threads - 1; /* its first thread */
            f->workers = 1;
        }
        f->at_ns = i * each_ns;
        f->at_ns = f->at_ns < within_ns ? f->at_ns : within_ns;
        f->lasts_ns = is_hurried ? 3 * each_ns : between(state, MS / 10, each_ns);
    }
    return count;
}

/* Takes the kinds of the list that the seed does not leave out; returns how many. */
static unsigned those_had(uint64_t seed, const enum lab_fault_kind *list, size_t count,
                          enum lab_fault_kind *out)
{
    unsigned had = 0;
    for (size_t i = 0; i < count; i++) {
        if (chaos_has(seed, list[i])) {
            out[had++] = list[i];
        }
    }
    return had;
}

unsigned chaos_draw_faults(const struct chaos_plan *plan, uint64_t within_ns,
                           struct lab_fault fault[LAB_FAULTS_MAX])
{
    static const enum lab_fault_kind all[] = {
        LAB_KILL, LAB_KILL,  LAB_KILL, LAB_STALL,   LAB_STALL,   LAB_CUT, LAB_CUT,
        LAB_CUT,  LAB_DELAY, LAB_LOSS, LAB_UPGRADE, LAB_SUSPEND, LAB_JUMP};
    static const enum lab_fault_kind of_connections[] = {LAB_RESET, LAB_HALF_OPEN, LAB_DEAF};
    uint64_t state = rng_mix(plan->seed ^ UINT64_C(0xfa17));
    unsigned drawn = 1 + rng_below(&state, FAULTS_DRAWN_MAX);
    unsigned count = plan->faults != 0 ? plan->faults : drawn;
    enum lab_fault_kind kind[sizeof all / sizeof *all];
    enum lab_fault_kind wire[sizeof of_connections / sizeof *of_connections];
    const unsigned kinds = those_had(plan->seed, all, sizeof all / sizeof *all, kind);
    const unsigned wired =
        plan->options.is_wired ? those_had(plan->seed, of_connections, 3, wire) : 0;
    count = kinds + wired > 0 ? count : 0;
    for (unsigned i = 0; i < count; i++) {
        struct lab_fault *f = &fault[i];
        bool is_wired = wired > 0 && (kinds == 0 || percent(&state, 25));
        *f = (struct lab_fault){.kind = is_wired ? wire[rng_below(&state, wired)]
                                                 : kind[rng_below(&state, kinds)]};
        if (f->kind == LAB_KILL || f->kind == LAB_STALL || f->kind == LAB_UPGRADE ||
            f->kind == LAB_SUSPEND) {
            draw_victims(&state, plan, f);
        } else if (f->kind == LAB_JUMP) {
            draw_victims(&state, plan, f);
            f->amount = draw_jump(&state);
        } else {
            draw_links(&state, plan, f);
        }
        /* Some begin before there is a session. */
        bool early = percent(&state, 10);
        f->at_ns = rng_next(&state) % ((early ? 2 * plan->options.lab.rtt_ns : within_ns) + 1);
        f->lasts_ns = draw_length(&state, plan, within_ns);
        if (f->kind == LAB_SUSPEND) {
            f->lasts_ns = draw_suspend(&state, plan);
        }
        if (percent(&state, 15) && (f->kind == LAB_KILL || f->kind == LAB_CUT)) {
            f->lasts_ns = LAB_FOR_EVER;
        }
    }
    if (plan->faults == 0 && percent(&state, 40) && chaos_has(plan->seed, LAB_UPGRADE)) {
        count += draw_rolling_upgrade(&state, plan, within_ns, &fault[count]);
    }
    return count;
}

/* ---- for people ---- */

void chaos_describe(const struct chaos_plan *plan, char *text, size_t size)
{
    const struct lab_options *o = &plan->options.lab;
    const struct chaos_options *all = &plan->options;
    const struct job *j = &plan->job[0];
    int used = snprintf(
        text, size,
        "%s %s depth %u, %s, %s, %s, remote depth %u, share %u; %u posts of %u front-ends, %u "
        "workers, %u threads a host, %u shards, %u watchers, bandwidth %" PRIu64
        " kB/s, a lie every %" PRIu64 " us, node "
        "%" PRIu64 " us%s, rtt %" PRIu64 " us, jitter %" PRIu64 " us, loss %" PRIu32
        " ppm; heartbeat %" PRIu32 " ms, age limit %" PRIu32 " ms, rto %" PRIu32 "-%" PRIu32
        " us, probe %" PRIu32 " us; clocks drift by up to %" PRIu32 " ppm; snapshots every %" PRIu64
        " us; of disks, ppm: short %" PRIu32 ", full %" PRIu32 ", errors %" PRIu32
        ", syncs %" PRIu32 ", power %" PRIu32 ", spoiled %" PRIu32 "; of memory refused %" PRIu32,
        j->game->name, j->text, j->depth, j->algorithm->name,
        j->strict ? "strict"
        : j->full ? "full"
                  : "loose",
        j->waits ? "waits" : "searches on", j->remote_depth, o->share_depth, plan->posts, o->fronts,
        o->workers, o->threads, o->shards, all->watchers, o->bandwidth / 1000, plan->lie_ns / 1000,
        o->node_ns / 1000,
        all->has_keys   ? ", wired with keys"
        : all->is_wired ? ", wired"
                        : "",
        o->rtt_ns / 1000, o->jitter_ns / 1000, o->loss_ppm, o->heartbeat_ms, o->inflight_age_max_ms,
        o->rto_min_us, o->rto_max_us, o->probe_us, all->drift_ppm, all->keep_ns / 1000,
        plan->disk.short_ppm, plan->disk.full_ppm, plan->disk.error_ppm, plan->disk.sync_ppm,
        plan->disk.power_ppm, plan->disk.damage_ppm, plan->want_ppm);
    const char *word = "; without ";
    for (unsigned i = 0; i < CHAOS_KINDS && used > 0 && (size_t)used < size; i++) {
        if (!chaos_has(plan->seed, i)) {
            used += snprintf(text + used, size - (size_t)used, "%s%s", word, chaos_kind_name(i));
            word = ", ";
        }
    }
}

void chaos_describe_fault(const struct lab_fault *f, char *text, size_t size)
{
    char lasts[32] = "for ever";
    if (f->lasts_ns < LAB_FOR_EVER) {
        snprintf(lasts, sizeof lasts, "for %.3f ms", (double)f->lasts_ns / MS);
    }
    snprintf(text, size, "%.3f ms: %s %s, workers %u+%u, shards %u+%u, ways %d, amount %" PRId64,
             (double)f->at_ns / MS, chaos_kind_name(f->kind), lasts, f->worker, f->workers,
             f->shard, f->shards, (int)f->ways, (int64_t)f->amount);
}
