/* world: the inside of the virtual cluster, shared by the lab's files only. Threads: one at a time.
 */
#ifndef WORKER_LAB_WORLD_H
#define WORKER_LAB_WORLD_H

#include "common/fiber.h"
#include "ttserver/core/core.h"
#include "worker/lab/event.h"
#include "worker/lab/lab.h"
#include "worker/table/remote.h"

struct lab;

struct lab_worker {
    /* fixed while alive */
    struct lab *lab;
    unsigned index;
    uint32_t incarnation;
    struct fiber *fiber;
    struct embedded *table;
    struct embedded_port local;
    struct remote *remote;
    struct search *search;
    struct env_port env;
    /* state */
    bool alive, sleeping, searching;
    bool postponed; /* its wake came while it stood still */
    unsigned kills, stalls; /* faults upon it now */
    uint32_t epoch; /* of its next wake */
    uint64_t base_ns, base_nodes; /* local time was base_ns when base_nodes were counted */
    struct lab_packet *inbox, **inbox_end;
    uint64_t last_out_ns[LAB_SHARDS_MAX], last_in_ns[LAB_SHARDS_MAX]; /* FIFO per pair and way */
    uint64_t last_out[LAB_SHARDS_MAX], last_in[LAB_SHARDS_MAX]; /* numbers that arrived: checked */
    uint64_t lossy; /* bit i: something for shard i was lost since both live */
};

struct lab_shard {
    struct ttcore *core;
    bool alive;
    unsigned kills, stalls; /* faults upon it now */
    uint32_t incarnation;
    uint64_t free_ns; /* when it has done what reached it */
    uint64_t memory_bytes; /* at its start */
    struct lab_packet *backlog, **backlog_end; /* came while it stood still */
};

struct lab {
    struct lab_options options;
    struct lab_heap heap;
    uint64_t now_ns;
    uint64_t random; /* of the network */
    uint64_t planted; /* random: of planted faults */
    uint64_t packets;
    struct proto_decoder *decoder;
    struct ttcore_actions actions;
    struct lab_worker *processor;
    struct lab_shard *shard;
    bool active[LAB_FAULTS_MAX]; /* faults under way */
    unsigned links; /* of them those between pairs */
    uint64_t begin_ns;
    bool ended;
    struct lab_result result;
};

/* What one message meets on its way. */
struct lab_passage {
    bool lost;
    uint64_t delay_ns;
};

/* lab.c: everything up to `until_ns` happens, or up to the answer. */
void lab_run_until(struct lab *lab, uint64_t until_ns, bool to_answer);

/* drain.c */
void lab_drain(struct lab *lab);

/* processor.c */
enum err lab_worker_start(struct lab *lab, unsigned index);
void lab_worker_kill(struct lab_worker *p);
void lab_worker_wake(struct lab_worker *p);
/* It stands still no longer. */
void lab_worker_unstall(struct lab_worker *p);
void lab_worker_take(struct lab_worker *p, struct lab_packet *packet, unsigned shard);

/* shard.c */
enum err lab_shard_start(struct lab *lab, unsigned index);
void lab_shard_kill(struct lab *lab, unsigned index);
void lab_shard_take(struct lab *lab, unsigned index, struct lab_packet *packet);
void lab_shard_unstall(struct lab *lab, unsigned index);
void lab_shard_tick(struct lab *lab, unsigned index, uint32_t incarnation);
/* The ROUTER id of a processor's incarnation. */
enum { LAB_ROUTE_BYTES = 8 };
void lab_route(uint32_t who, uint32_t incarnation, uint8_t route[LAB_ROUTE_BYTES]);

/* fault.c */
void lab_faults_schedule(struct lab *lab);
void lab_fault_begin(struct lab *lab, unsigned number);
void lab_fault_end(struct lab *lab, unsigned number);
/* Ends all but kills for ever. */
void lab_faults_heal(struct lab *lab);
/* Draws what happens to a message that leaves now. */
struct lab_passage lab_pass(struct lab *lab, unsigned processor, unsigned shard, enum lab_way way);
/* Whether the two are cut off that way now. */
bool lab_is_cut(const struct lab *lab, unsigned processor, unsigned shard, enum lab_way way);

#endif
