/* event: what will happen in the virtual cluster, in order of virtual time; ties in order of
 * coming.
 *
 * A binary heap. Pure. Threads: one. Memory: grows by doubling; a packet belongs to its event, then
 * to who takes the event. */
#ifndef WORKER_LAB_EVENT_H
#define WORKER_LAB_EVENT_H

#include "common/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum lab_event_kind {
    LAB_WAKE, /* worker `who` goes on, unless `epoch` is no longer its */
    LAB_TO_SHARD, /* a packet reaches shard `who` */
    LAB_TO_WORKER, /* a packet reaches worker `who` */
    LAB_TO_PEER, /* a message of another worker */
    LAB_TICK, /* time passes for shard `who` */
    LAB_OTHER, /* this and above: kinds of the hooks (world.h) */
};

struct lab_packet {
    struct lab_packet *next;
    uint32_t from;
    uint32_t epoch; /* incarnation of sender or receiver: packets of the dead are dropped */
    uint32_t length;
    bool is_sealed; /* its bytes are random: of them the trace has the length */
    uint64_t number; /* counts all packets, in order of sending */
    uint8_t bytes[];
};

struct lab_event {
    uint64_t time_ns;
    uint64_t serial;
    uint32_t kind; /* enum lab_event_kind, or above */
    uint32_t who;
    uint32_t epoch;
    struct lab_packet *packet;
};

struct lab_heap {
    struct lab_event *at;
    size_t count, room;
    uint64_t serial;
};

/* No memory is a CHECK, here and below: a simulation cannot go on with an event missing. */
void lab_heap_push(struct lab_heap *heap, struct lab_event event);
bool lab_heap_pop(struct lab_heap *heap, struct lab_event *out);
void lab_heap_close(struct lab_heap *heap);

/* A copy of the bytes; from 0, of epoch 0, without a number. */
struct lab_packet *lab_packet_new(const void *bytes, size_t length);

/* Packets in the order of their coming; empty when zeroed. */
struct lab_queue {
    struct lab_packet *first, *last;
};

void lab_queue_put(struct lab_queue *queue, struct lab_packet *packet);
/* NULL: it is empty. */
struct lab_packet *lab_queue_take(struct lab_queue *queue);
void lab_queue_free(struct lab_queue *queue);

#endif
