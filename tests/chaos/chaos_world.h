/* chaos_world: what chaos adds to the state of a virtual cluster (world.h), shared by the files of
 * this folder alone. Each of them needs only those before it in this order, with no circle:
 *   lab_want, lab_disk, lab_clock, chaos_lab.h, chaos_world.h, chaos_link, chaos_planted,
 *   lab_zmtp, lab_stream, lab_dealer, lab_service, lab_watcher, lab_keep, lab_liar, lab_intruder,
 *   chaos_faults, drain, chaos_hooks, chaos_draw, chaos
 * Threads: one at a time. */
#ifndef TESTS_CHAOS_CHAOS_WORLD_H
#define TESTS_CHAOS_CHAOS_WORLD_H

#include "tests/chaos/chaos_lab.h"
#include "tests/chaos/lab_clock.h"
#include "tests/chaos/lab_disk.h"
#include "tests/chaos/lab_want.h"
#include "ttserver/keep/keep_file.h"
#include "worker/lab/world.h"

struct lab_net; /* lab_stream.h */
struct lab_dealer;
struct lab_service;
struct lab_visit; /* lab_service.h */
struct lab_watcher;

/* What happens, besides enum lab_event_kind. */
enum {
    LAB_FAULT = LAB_OTHER, /* fault number `who` begins */
    LAB_REPAIR, /* ... and ends */
    LAB_LIE, /* the liar speaks */
    LAB_AGAIN, /* program `who` tries to start, which could not */
    LAB_STREAM, /* a segment reaches an end of the stream in slot `who` */
    LAB_TURN, /* shard `who` has served what it had, and serves on */
    LAB_DIAL, /* it is time for the connection of worker `who` to shard `epoch` */
    LAB_KEEP, /* shard `who` writes some of its results to its disk */
};

/* Faults upon a worker or a shard now: they may overlap. */
struct lab_faults {
    unsigned kills, stalls;
};

/* State of a front-end, worker or watcher: all but `faults` begins anew with each start. */
struct chaos_program {
    struct lab_faults faults;
    bool is_put_off; /* it could not start, and is tried again */
    bool is_postponed; /* set when its wake came while it stood still */
    bool has_probed; /* set when it has posted the probe (drain.c) */
    uint64_t lossy; /* bit i: something for shard i was lost since both live */
    uint64_t unsent_ns; /* when it had last to drop a message of a job, as its queue was full; 0:
                           never */
    uint64_t indexed; /* bit i: shard i has given it a worker index; for a planted fault */
    struct lab_dealer *dealer; /* its connections, one for each shard, where they are simulated */
    struct lab_watcher *watcher; /* NULL: another */
};

enum { LAB_VERSIONS = 64 };

/* A snapshot that was written to the end. */
struct lab_version {
    uint64_t number; /* from 1; 0: none */
    uint64_t hash; /* of its bytes */
    uint64_t entries;
};

/* What a shard keeps (lab_keep.h). */
struct lab_keep {
    struct lab_disk *disk; /* NULL: nothing */
    struct keep_file file;
    struct ttcore_ledger ledger;
    uint64_t place;
    struct lab_version version[LAB_VERSIONS]; /* the last ones, by number */
    uint64_t versions, promised; /* last number; that which was said to be written, 0: none */
    /* as it was when the shard began */
    bool is_there, is_spoiled; /* there is a file; the disk has changed it */
    struct lab_version found; /* which it is */
    uint64_t errors; /* of the disk so far */
};

/* State of a shard. */
struct chaos_shard {
    struct lab_faults faults;
    struct lab_clock clock; /* of the machine it is on */
    bool is_put_off; /* it could not start, and is tried again */
    uint64_t memory_bytes; /* at its start */
    struct lab_queue backlog; /* came while it stood still */
    struct lab_keep keep;
    struct lab_service *service; /* its connections, where they are simulated */
};

enum { LAB_LIAR_SESSIONS = 6, LAB_LIAR_NODES = 128, LAB_LIAR_LIST = 24 };

/* The role of a liar's session. Sessions that post keep their role and instance, and so their user
 * and jobs. */
static inline enum proto_role lab_liar_role(unsigned who)
{
    static const enum proto_role roles[LAB_LIAR_SESSIONS] = {
        PROTO_FRONT, PROTO_FRONT, PROTO_FRONT, PROTO_WORKER, PROTO_CLIENT, PROTO_WORKER};
    return roles[who];
}

/* What a liar remembers (lab_liar.h). Its sessions are numbered after the programs. */
struct lab_liar {
    uint64_t random;
    struct tt_ask node[LAB_LIAR_NODES]; /* a ring: asked for lately */
    unsigned received;
    uint32_t connection[LAB_SHARDS_MAX][LAB_LIAR_SESSIONS]; /* counts up */
    struct lab_visit *visit[LAB_SHARDS_MAX][LAB_LIAR_SESSIONS]; /* where they are simulated */
    bool refused; /* set when its last message was refused */
    union { /* of the message that it makes */
        struct tt_store stores[LAB_LIAR_LIST];
        struct tt_ask asks[LAB_LIAR_LIST];
        struct tt_release releases[LAB_LIAR_LIST];
        struct tt_peek peeks[LAB_LIAR_LIST];
    } list;
};

struct chaos_world {
    struct chaos_options options;
    struct chaos_program *program;
    struct chaos_shard *shard;
    struct lab_clock *clock; /* of each host */
    struct lab_net *net; /* NULL: connections are not simulated, messages go to the shards' cores */
    struct lab_liar liar;
    struct lab_want want;
    uint64_t planted; /* random: of planted faults */
    bool active[LAB_FAULTS_MAX]; /* faults under way */
    unsigned links; /* of them those between pairs */
    bool probing; /* after the end, every front-end has a job that only its stop ends (drain.c) */
    struct job probe; /* that job */
    struct chaos_result result; /* but for `lab` */
};

static inline struct chaos_world *chaos_of(const struct lab *lab)
{
    return lab->options.context;
}

static inline struct lab_net *lab_net_of(const struct lab *lab)
{
    return chaos_of(lab)->net;
}

static inline struct chaos_program *program_of(const struct lab_worker *w)
{
    return &chaos_of(w->lab)->program[w->index];
}

static inline struct lab_clock *lab_clock_of(const struct lab *lab, unsigned worker)
{
    return &chaos_of(lab)->clock[lab_place_of(lab, worker) / lab->options.threads];
}

/* What the clock of its host shows now, also while it is dead. */
static inline uint64_t lab_worker_us(const struct lab *lab, unsigned worker)
{
    return lab_clock_us(lab_clock_of(lab, worker), lab->now_ns);
}

/* What the clock of a shard's machine shows then, in nanoseconds, and microseconds. */
static inline uint64_t lab_shard_ns(const struct lab *lab, unsigned shard, uint64_t time_ns)
{
    const struct lab_clock *clock = &chaos_of(lab)->shard[shard].clock;
    return chaos_of(lab)->options.planted.wall_clock ? lab_clock_wall_ns(clock, time_ns)
                                                     : lab_clock_ns(clock, time_ns);
}

static inline uint64_t lab_shard_us(const struct lab *lab, unsigned shard, uint64_t time_ns)
{
    return lab_shard_ns(lab, shard, time_ns) / 1000;
}

/* Its own time is not behind the present: before it does anything, and when its host goes on after
 * a suspend. */
static inline void lab_shard_catch_up(struct lab *lab, unsigned index)
{
    struct lab_shard *s = &lab->shard[index];
    s->free_ns = s->free_ns > lab->now_ns ? s->free_ns : lab->now_ns;
}

/* Zeroes for a dead one. */
static inline struct ttcore_figures lab_shard_figures(const struct lab *lab, unsigned index)
{
    struct ttcore_figures f = {0};
    if (lab->shard[index].alive) {
        ttcore_figures(lab->shard[index].core, &f);
    }
    return f;
}

/* The job this one searches, as an id; 0: none. */
static inline uint64_t lab_searches(const struct lab_worker *w)
{
    if (!w->alive) {
        return 0;
    }
    if (w->worker != NULL) {
        return worker_state(w->worker)->running.job;
    }
    return w->front.searching ? w->front.job.id : 0;
}

#endif
