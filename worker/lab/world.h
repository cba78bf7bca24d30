/* world: the state of a virtual cluster, shared by the files of this folder alone. Each of them
 * needs only those before it in this order, with no circle:
 *   lab.h, event, lab_want, lab_disk, lab_clock, world.h, lab_link, lab_zmtp, lab_stream,
 *   lab_dealer, lab_keep, lab_service, lab_shard, lab_front, lab_watcher, lab_worker, lab_liar,
 *   lab_intruder, step, drain, run, chaos_draw, chaos
 * Pure. Threads: one at a time. */
#ifndef WORKER_LAB_WORLD_H
#define WORKER_LAB_WORLD_H

#include "ttserver/core/core.h"
#include "ttserver/core/figures.h"
#include "ttserver/keep/keep_file.h"
#include "worker/engine/front_core.h"
#include "worker/engine/worker.h"
#include "worker/lab/event.h"
#include "worker/lab/fiber.h"
#include "worker/lab/lab.h"
#include "worker/lab/lab_clock.h"
#include "worker/lab/lab_disk.h"
#include "worker/lab/lab_want.h"

struct lab;
struct lab_net; /* lab_stream.h */
struct lab_dealer;
struct lab_service;
struct lab_visit; /* lab_service.h */
struct lab_watcher;

/* A front-end: the engine's job logic over one searcher. */
struct lab_front {
    struct searcher searcher;
    struct front_core core;
    struct env_port env;
    struct peer_port peers;
    struct job job; /* posted last, with its id; borrows the position */
    struct lab_answer *answer; /* of the search under way */
    uint64_t begin_ns; /* when it was posted */
    uint64_t until_ns; /* when the search is stopped */
    uint32_t jobs; /* posted, of all incarnations: numbers their ids */
    bool searching;
    bool done; /* all its posts were answered or stopped */
    bool probed; /* set when it has posted the probe (drain.c) */
};

/* Faults upon a worker or a shard now: they may overlap. */
struct lab_faults {
    unsigned kills, stalls;
};

/* A host: the table of its threads, and its network card. */
struct lab_host {
    struct embedded *table; /* while a thread of it is alive */
    unsigned users; /* these threads */
    struct lab_clock clock;
    uint32_t version; /* highest version of the protocol that its programs speak */
    uint64_t out_free_ns, in_free_ns; /* when the card has done what it was given */
    uint64_t bytes; /* both ways */
};

/* A virtual worker: a fiber that runs the real worker (worker/engine/worker.h), or a front-end. */
struct lab_worker {
    /* fixed while alive */
    struct lab *lab;
    unsigned index;
    struct lab_host *host; /* NULL: dead */
    uint32_t incarnation;
    uint64_t alias; /* of its instance */
    struct fiber *fiber;
    struct worker *worker; /* NULL: a front-end, or a watcher */
    struct lab_watcher *watcher; /* NULL: another */
    struct lab_front front;
    struct searcher *searcher; /* searcher of the front-end or the worker */
    struct peers peers; /* what its search keeps of work handed over */
    /* state */
    bool alive, sleeping;
    bool is_put_off; /* it could not start, and is tried again (lab_start) */
    bool postponed; /* set when its wake came while it stood still */
    struct lab_faults faults;
    uint32_t epoch; /* epoch of its next wake */
    uint64_t base_ns, base_nodes; /* local time was base_ns when base_nodes were counted */
    uint64_t charged, charged_messages; /* operations, messages of results: in base_ns already */
    uint64_t serve_due_ns; /* time before which its search need not poll */
    struct lab_packet *inbox, **inbox_end;
    struct lab_packet *packet; /* that its client was given last */
    bool is_reading; /* set while messages of the inbox are given to the client */
    struct lab_packet *letters, **letters_end; /* messages of other workers */
    uint64_t last_out_ns[LAB_SHARDS_MAX], last_in_ns[LAB_SHARDS_MAX]; /* FIFO per pair and way */
    uint64_t last_out[LAB_SHARDS_MAX], last_in[LAB_SHARDS_MAX]; /* numbers that arrived: checked */
    uint64_t lossy; /* bit i: something for shard i was lost since both live */
    uint64_t unsent_ns; /* when it had last to drop a message of a job, as its queue was full; 0:
                           never */
    uint64_t indexed; /* bit i: shard i has given it a worker index; for a planted fault */
    struct lab_dealer *dealer; /* its connections, one for each shard, where they are simulated */
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

struct lab_shard {
    struct ttcore *core;
    bool alive;
    struct lab_keep keep;
    struct lab_clock clock; /* of the machine it is on */
    bool is_put_off; /* it could not start, and is tried again (lab_start) */
    struct lab_faults faults;
    struct ttcore_outside outside;
    uint32_t incarnation;
    uint32_t version; /* highest version of the protocol that it speaks */
    uint64_t free_ns; /* when it has done what reached it */
    uint64_t busy_ns;
    uint64_t memory_bytes; /* at its start */
    struct lab_packet *backlog, **backlog_end; /* came while it stood still */
    struct lab_service *service; /* its connections, where they are simulated */
};

enum { LAB_LIAR_SESSIONS = 6, LAB_LIAR_NODES = 128, LAB_LIAR_LIST = 24 };

/* Those sessions of the liar that post keep their role and instance, and so their user and jobs. */
static inline enum proto_role lab_liar_role(unsigned who)
{
    static const enum proto_role roles[LAB_LIAR_SESSIONS] = {
        PROTO_FRONT, PROTO_FRONT, PROTO_FRONT, PROTO_WORKER, PROTO_CLIENT, PROTO_WORKER};
    return roles[who];
}

/* What a liar remembers (lab_liar.h). Its sessions are numbered after the machines. */
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
        struct tt_weight weights[LAB_LIAR_LIST];
    } list;
};

struct lab {
    /* fixed after open */
    struct lab_options options;
    struct lab_post only; /* where the options have no list of posts */
    unsigned machines; /* front-ends, then workers */
    unsigned programs; /* these, then watchers: the last have no number in `host` */
    unsigned hosts;
    struct worker_patience patience;
    uint32_t alive_ms, wait_ms; /* as FRONT_ALIVE_MS, FRONT_WAIT_MS */
    unsigned poll_nodes; /* between two polls of a search */
    uint64_t slow_ns; /* of a node after the end: few nodes, but polls in time for every patience */
    /* state */
    struct lab_heap heap;
    struct lab_net *net; /* NULL: connections are not simulated, messages go to the shards' cores */
    uint64_t now_ns;
    uint64_t node_ns; /* the option, then slow_ns */
    uint64_t
        poll_ns; /* after the end, in games with a solver: nodes between two polls take no longer,
                    however many a game's own solver counts at once; before it no bound */
    uint64_t random; /* state of the network's draws */
    uint64_t planted; /* random: of planted faults */
    uint64_t packets;
    struct proto_decoder *decoder;
    struct ttcore_actions actions;
    struct lab_worker *worker;
    struct lab_shard *shard;
    struct lab_host *host;
    bool active[LAB_FAULTS_MAX]; /* faults under way */
    unsigned links; /* of them those between pairs */
    struct lab_liar liar;
    struct lab_want want;
    bool ended; /* every front-end that lives has done its posts, or time is over */
    bool probing; /* after the end, every front-end has a job that only its stop ends (drain.c) */
    struct job probe; /* that job */
    atomic_bool halt; /* workers return */
    struct lab_result result;
};

static inline bool lab_is_front(const struct lab_worker *w)
{
    return w->index < w->lab->options.fronts;
}

/* Where a front-end or worker is: its place among the threads of all hosts, host by host. The first
 * front-end and the workers fill them one after the other, each other front-end has one to itself,
 * watchers are with the first. */
static inline unsigned lab_place_of(const struct lab *lab, unsigned worker)
{
    const struct lab_options *o = &lab->options;
    return worker == 0 || worker >= lab->machines ? 0
           : worker >= o->fronts                  ? worker - o->fronts + 1
                                                  : (lab->hosts - worker) * o->threads;
}

static inline struct lab_host *lab_host_of(struct lab *lab, unsigned worker)
{
    return &lab->host[lab_place_of(lab, worker) / lab->options.threads];
}

/* What the clock of its host shows now, also while it is dead. */
static inline uint64_t lab_worker_us(struct lab *lab, unsigned worker)
{
    return lab_clock_us(&lab_host_of(lab, worker)->clock, lab->now_ns);
}

/* What the clock of a shard's machine shows then, in nanoseconds, and microseconds. */
static inline uint64_t lab_shard_ns(const struct lab *lab, unsigned shard, uint64_t time_ns)
{
    const struct lab_clock *clock = &lab->shard[shard].clock;
    return lab->options.planted.wall_clock ? lab_clock_wall_ns(clock, time_ns)
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

/* ---- step.c: takes events in order of virtual time, and does to workers and shards what faults
 * do; what faults between a worker and a shard do is in lab_link.h ---- */

/* Everything up to `until_ns` happens, or, with `to_end`, up to the end of all posts. */
void lab_run_until(struct lab *lab, uint64_t until_ns, bool to_end);

/* Before the first event. */
void lab_faults_schedule(struct lab *lab);
/* Starts machine `who`: a worker, or after them a shard. Without memory, or what is on
 * its disk, it is tried again some time later; ERR_NOMEM: the cluster itself has none. */
enum err lab_start(struct lab *lab, unsigned who);
/* Ends all but kills for ever. */
void lab_faults_heal(struct lab *lab);

/* ---- drain.c ---- */

/* After the end: what is left behind, and whether the healed cluster serves jobs as it should, the
 * second half of lab_result. */
void lab_drain(struct lab *lab);

#endif
