/* world: the state of a virtual cluster, shared by the files of this folder and by what
 * hooks itself into a cluster. Each of them needs only those before it in this order, with no
 * circle: lab.h, fiber, event, world.h, lab_link, lab_shard, lab_front, lab_worker, run.
 * Threads: one at a time. */
#ifndef WORKER_LAB_WORLD_H
#define WORKER_LAB_WORLD_H

#include "proto/lane/lane.h"
#include "ttserver/core/core.h"
#include "ttserver/core/figures.h"
#include "worker/engine/front_core.h"
#include "worker/engine/worker.h"
#include "worker/lab/event.h"
#include "worker/lab/fiber.h"
#include "worker/lab/lab.h"

struct lab;
struct lab_worker;

/* What else happens to a cluster, and who looks at it: each may be NULL. Programs are numbered:
 * front-ends, workers, guests, then shards. */
struct lab_hooks {
    /* Its programs are there, and none has started. */
    enum err (*open)(struct lab *lab);
    /* In place of lab_start, which it calls. */
    enum err (*start)(struct lab *lab, unsigned who);
    /* All have started, and nothing has happened. */
    void (*begin)(struct lab *lab);
    /* The posts have ended, or time is over. */
    void (*end)(struct lab *lab);
    /* Before everybody is killed. */
    void (*close)(struct lab *lab);
    /* An event is taken, one of the kinds from LAB_OTHER on or another; true: it is done with, and
     * its packet is freed or kept. */
    bool (*event)(struct lab *lab, const struct lab_event *event);
    /* Draws what else happens to a message that leaves now. False: it is lost; else it may come
     * later. */
    bool (*passes)(struct lab *lab, unsigned worker, unsigned shard, enum lab_way way,
                   uint64_t *delay_ns);
    /* In place of ttcore_open, for the core of lab->shard[shard]. */
    enum err (*open_core)(struct lab *lab, unsigned shard, struct ttcore_options *options);
    /* A shard sends this to a program, or to somebody who is none; true: nothing else is to be done
     * about it. */
    bool (*deliver)(struct lab *lab, unsigned shard, const struct ttcore_target *target,
                    const struct ttcore_message *message, uint64_t at_ns);
    /* A program starts: what its client needs of the world may be changed. A guest opens its client
     * and sets `run`. */
    enum err (*equip)(struct lab_worker *w, struct lane *lane);
    /* In place of fiber_resume. */
    void (*resume)(struct lab_worker *w);
    /* What the clock of a program's machine shows, in place of virtual time. */
    uint64_t (*clock_us)(const struct lab *lab, unsigned who, uint64_t time_ns);
    /* A front-end has done a post, in its fiber; ... has none to do, now and then. */
    void (*posted)(struct lab_worker *w);
    void (*idle)(struct lab_worker *w);
    /* What a front-end posts after those of the list, in its fiber; it may block the cluster.
     * False: nothing any more. */
    bool (*next)(struct lab_worker *w, struct lab_post *out);
    /* A front-end's search has a result of an iteration, in its fiber; ... polls: true ends it. */
    void (*iteration)(struct lab_worker *w, const struct search_result *result);
    bool (*is_over)(struct lab_worker *w, const struct search *search);
};

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
    bool is_stopped; /* set to stop the search when it next serves */
    bool done; /* all its posts were answered or stopped */
};

/* A host: the table of its threads, and its network card. */
struct lab_host {
    struct embedded *table; /* while a thread of it is alive */
    unsigned users; /* these threads */
    uint64_t out_free_ns, in_free_ns; /* when the card has done what it was given */
    uint64_t bytes; /* both ways */
};

/* A virtual worker: a fiber that runs the real worker (worker/engine/worker.h), a front-end, or a
 * guest. */
struct lab_worker {
    /* fixed while alive */
    struct lab *lab;
    unsigned index;
    struct lab_host *host; /* NULL: dead, or a guest */
    uint32_t incarnation;
    uint64_t alias; /* of its instance */
    struct fiber *fiber;
    void (*run)(struct lab_worker *w); /* in its fiber; does not return */
    struct worker *worker; /* NULL: a front-end, or a guest */
    struct lab_front front;
    struct searcher *searcher; /* searcher of the front-end or the worker; NULL: a guest, or dead */
    struct peers peers; /* what its search keeps of work handed over */
    /* state */
    bool alive, sleeping;
    uint32_t epoch; /* epoch of its next wake */
    uint64_t base_ns, base_nodes; /* local time was base_ns when base_nodes were counted */
    uint64_t charged, charged_messages; /* operations, messages of results: in base_ns already */
    uint64_t serve_due_ns; /* time before which its search need not poll */
    struct lab_queue inbox, letters; /* messages of shards; of other workers */
    struct lab_packet *packet; /* that its client was given last */
    bool is_reading; /* set while messages of the inbox are given to the client */
    uint64_t last_out_ns[LAB_SHARDS_MAX], last_in_ns[LAB_SHARDS_MAX]; /* FIFO per pair and way */
    uint64_t last_out[LAB_SHARDS_MAX], last_in[LAB_SHARDS_MAX]; /* numbers that arrived: checked */
};

struct lab_shard {
    struct ttcore *core;
    bool alive;
    struct ttcore_outside outside;
    uint32_t incarnation;
    uint64_t free_ns; /* when it has done what reached it */
    uint64_t busy_ns;
};

struct lab {
    /* fixed after open */
    struct lab_options options;
    struct lab_post only; /* where the options have no list of posts */
    unsigned machines; /* front-ends, then workers */
    unsigned programs; /* these, then guests: the last have no number in `host` */
    unsigned hosts;
    struct worker_patience patience;
    uint32_t alive_ms, wait_ms; /* as FRONT_ALIVE_MS, FRONT_WAIT_MS */
    unsigned poll_nodes; /* between two polls of a search */
    /* state */
    struct lab_heap heap;
    uint64_t now_ns;
    uint64_t poll_ns; /* most that nodes between two polls take in games with a solver, however many
                         a game's own solver counts at once */
    uint64_t random; /* state of the network's draws */
    uint64_t packets;
    struct proto_decoder *decoder;
    struct ttcore_actions actions;
    struct lab_worker *worker;
    struct lab_shard *shard;
    struct lab_host *host;
    bool ended; /* every front-end that lives has done its posts, or time is over */
    atomic_bool halt; /* workers return */
    struct lab_result result;
};

static inline bool lab_is_front(const struct lab_worker *w)
{
    return w->index < w->lab->options.fronts;
}

/* Where a front-end or worker is: its place among the threads of all hosts, host by host. The first
 * front-end and the workers fill them one after the other, each other front-end has one to itself,
 * guests are with the first. */
static inline unsigned lab_place_of(const struct lab *lab, unsigned worker)
{
    const struct lab_options *o = &lab->options;
    return worker == 0 || worker >= lab->machines ? 0
           : worker >= o->fronts                  ? worker - o->fronts + 1
                                                  : (lab->hosts - worker) * o->threads;
}

static inline struct lab_host *lab_host_of(const struct lab *lab, unsigned worker)
{
    return &lab->host[lab_place_of(lab, worker) / lab->options.threads];
}

/* What the clock of program `who` shows then, also while it is dead. */
static inline uint64_t lab_us(const struct lab *lab, unsigned who, uint64_t time_ns)
{
    const struct lab_hooks *hooks = lab->options.hooks;
    return hooks->clock_us != NULL ? hooks->clock_us(lab, who, time_ns) : time_ns / 1000;
}

/* ---- lab_link.c: latency, jitter, loss, the cards of both hosts, and what hooks make of it ----
 */

/* A message of that incarnation of a worker, or to it, leaves at `at_ns`. False: it gets lost. */
bool lab_send(struct lab *lab, unsigned worker, uint32_t incarnation, unsigned shard,
              enum lab_way way, uint64_t at_ns, const void *bytes, size_t length);
/* The two parts of that, for what is more than messages: whether what leaves now passes, and what
 * it is late by; when it arrives. */
bool lab_passes(struct lab *lab, unsigned worker, unsigned shard, enum lab_way way,
                uint64_t *delay_ns);
uint64_t lab_arrives(struct lab *lab, unsigned worker, unsigned shard, enum lab_way way,
                     uint64_t at_ns, uint64_t delay_ns, size_t length);
/* A message between two workers: latency, cards and loss as above, but no hook. */
void lab_send_to_peer(struct lab *lab, unsigned from, unsigned to, uint64_t at_ns,
                      const void *bytes, size_t length);

/* Work of a card, from which on its host is to the shard on it as a peer that does not read: hints
 * are dropped. */
enum { LAB_CARD_WAIT_NS = 1000000 };
bool lab_card_is_full(const struct lab *lab, unsigned shard);

/* ---- lab_shard.c: a shard is the real core (ttserver/core), with a service time ---- */

enum {
    LAB_SHARD_JOBS = 96, /* open at a time */
    LAB_ROUTE_BYTES = 8,
};

static inline uint32_t lab_shard_sessions(const struct lab *lab)
{
    return 2 * lab->programs + 16;
}

/* Between two ticks. */
static inline uint64_t lab_shard_tick_ns(const struct lab *lab)
{
    return lab->options.heartbeat_ms * UINT64_C(250000);
}

/* The route of an incarnation of a program. */
void lab_route(uint32_t who, uint32_t incarnation, uint8_t route[LAB_ROUTE_BYTES]);

enum err lab_shard_start(struct lab *lab, unsigned index);
/* Nothing is sent any more. One that is dead may be killed. */
void lab_shard_kill(struct lab *lab, unsigned index);
/* A packet arrives at a shard that lives; takes it. */
void lab_shard_receive(struct lab *lab, unsigned index, struct lab_packet *packet);
/* The same for a packet that no program has sent. */
void lab_shard_serve(struct lab *lab, unsigned index, struct lab_packet *packet);
/* LAB_TICK. */
void lab_shard_tick(struct lab *lab, unsigned index, uint32_t incarnation);
/* Its core takes the event at `at_ns`. Returns when all that it sends has left. */
uint64_t lab_shard_step(struct lab *lab, unsigned index, const struct ttcore_event *event,
                        uint64_t at_ns);

/* ---- lab_front.c: a front-end, with the core of the engine ---- */

/* `searcher`: but for the role. */
enum err lab_front_open(struct lab_worker *w, const struct searcher_options *searcher);
void lab_front_close(struct lab_front *front);
/* Never returns. */
void lab_front_run(struct lab_worker *w);
/* In its fiber: serves the shards until then. */
void lab_front_idle(struct lab_worker *w, uint64_t until_ns);
/* In its fiber: posts a job, searches it until its last depth or `until_ns`, stops it, and waits
 * for the last reports. */
void lab_front_post(struct lab_worker *w, const struct job *job, uint64_t until_ns,
                    struct lab_answer *answer);
/* Notes the end of the cluster's jobs when no front-end that lives has any left. */
void lab_fronts_check(struct lab *lab);
/* What they search is stopped when they next serve; none of them posts another job by itself. */
void lab_fronts_stop(struct lab *lab);

/* ---- lab_worker.c: a fiber with a clock, an inbox, and the code of a real program ---- */

/* It runs from lab_worker_wake_at on. One that could not start is to be killed. */
enum err lab_worker_start(struct lab *lab, unsigned index);
/* As kill -9: nothing is sent any more. One that is dead may be killed. */
void lab_worker_kill(struct lab_worker *w);
/* Until then it sleeps. An alarm set earlier is off. */
void lab_worker_wake_at(struct lab_worker *w, uint64_t time_ns);
/* It goes on computing. */
void lab_worker_wake(struct lab_worker *w);
/* A packet arrives, of a shard or another worker; takes it. */
void lab_worker_receive(struct lab_worker *w, struct lab_packet *packet, bool is_letter);

/* Its own time, not behind the present. */
uint64_t lab_worker_ns(struct lab_worker *w);
/* Its own time is this now. */
void lab_worker_rebase(struct lab_worker *w, uint64_t now_ns);

/* ---- in its fiber ---- */

/* Lets everything that is earlier than its own time happen. */
void lab_worker_catch_up(struct lab_worker *w);
/* It sleeps, and may be woken sooner by what arrives. */
void lab_worker_sleep(struct lab_worker *w, uint64_t until_ns);

/* ---- run.c ---- */

/* Starts program `who`. ERR_NOMEM; the hooks' errors. */
enum err lab_start(struct lab *lab, unsigned who);
/* Everything up to `until_ns` happens, or, with `to_end`, up to the end of all posts. */
void lab_run_until(struct lab *lab, uint64_t until_ns, bool to_end);

#endif
