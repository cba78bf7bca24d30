/* pushes: messages for many connections (a job, for all workers), which go out a piece at a time,
 * so that who asks meanwhile does not wait until the last is sealed.
 *
 * Two queues, each in order: what must come, and hints. While more than half of what may wait does,
 * a connection that adds to it is not served. Threads: the shard's. Memory: an entry for each
 * message, with a copy of it and of whom it is for, within the bounds below. Never blocks. */
#ifndef TTSERVER_NET_PUSHES_H
#define TTSERVER_NET_PUSHES_H

#include "ttserver/core/actions.h"
#include "ttserver/net/connection.h"

#include <sys/queue.h>

enum {
    PUSHES_AT_ONCE = 16, /* `at_once` of a shard */
    PUSHES_SLICE_NS = 50000, /* time for each queue, between turns */
    PUSHES_FLUSH_NS = 5000, /* what it costs to send to a connection, later, about */
    PUSHES_HINTS_HELD = 256 * 1024, /* bytes; beyond it, a hint is late and is dropped */
    PUSHES_HELD = 1024 * 1024, /* bytes of messages that must come ... */
    PUSHES_HELD_EACH = 1024, /* ... and for each session; beyond it, what waits longest leaves */
};

struct push;

struct push_queue {
    TAILQ_HEAD(push_list, push) list;
    size_t held, held_max; /* bytes */
};

struct pushes {
    /* fixed after open: how a message leaves, and who pays: `cause` is the route of the peer whose
     * message made the shard send it */
    void (*send)(void *self, const uint8_t *route, const struct ttcore_message *message);
    void (*charge)(void *self, const uint8_t *cause, uint64_t ns);
    uint64_t (*now_ns)(void *self);
    void *self;
    uint64_t *hints_dropped; /* a counter: for each target */
    uint32_t at_once; /* for so many, a message need not wait */
    /* state */
    struct push_queue must, hints;
    struct connections held_back;
};

/* What is fixed is set by the caller, before. */
void pushes_init(struct pushes *pushes, uint32_t sessions_max);
/* Accepts a zeroed struct, and twice. */
void pushes_close(struct pushes *pushes);

/* True: the message is for many, or behind others that wait, and will go out by and by; it and its
 * targets are copied. False: it is for the caller to send now. `cause` may be NULL. */
bool pushes_take(struct pushes *pushes, const struct ttcore_message *message,
                 const struct ttcore_target *target, const uint8_t *cause);

/* Sends of what waits for PUSHES_SLICE_NS from each queue, or all of what must come. */
void pushes_some(struct pushes *pushes);
void pushes_all(struct pushes *pushes);
bool pushes_wait(const struct pushes *pushes);

/* Pauses a connection that made the shard push while much waits. */
void pushes_keep_back(struct pushes *pushes, struct connection *c);
/* Returns a push that need not wait any more, or NULL, and unpauses it. */
struct connection *pushes_let_go(struct pushes *pushes);
/* Before the connection ends. */
void pushes_forget(struct pushes *pushes, struct connection *c);

#endif
