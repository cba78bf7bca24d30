/* ttcore_event, ttcore_actions: what goes into a step of the core, and what it wants sent, in a
 * buffer bounded at start.
 *
 * A message is encoded once and may go to many targets (a job to all workers). One actions object
 * per thread serves any number of cores whose options are no larger than those it was opened with.
 * Threads: one at a time. Memory: allocates in open only. What does not fit is counted in
 * `dropped`, per target; with fitting options nothing ever is. */
#ifndef TTSERVER_CORE_ACTIONS_H
#define TTSERVER_CORE_ACTIONS_H

#include "common/err.h"
#include "proto/codec.h"

#include <stddef.h>
#include <stdint.h>

enum { TTCORE_ROUTE_MAX = 255 };

enum ttcore_event_kind {
    TTCORE_MESSAGE, /* `bytes` came from `route`; length 0: something that is no message at all */
    TTCORE_GONE, /* the connection of `route` is no more: its session ends */
    TTCORE_TICK, /* time went by */
    TTCORE_STOP, /* BYE to all; every session ends */
    TTCORE_MORE, /* there is time for a piece of what takes long (ttcore_has_more) */
};

/* What a peer's key lets it do: a bit for each role that it may take in HELLO, and one more. */
enum ttcore_may {
    TTCORE_MAY_WORK = 1 << PROTO_WORKER,
    TTCORE_MAY_POST = 1 << PROTO_FRONT,
    TTCORE_MAY_USE_TABLE = 1 << PROTO_CLIENT,
    TTCORE_MAY_READ_STATISTICS = 1 << PROTO_MONITOR,
    TTCORE_MAY_STOP_ANY_JOB = 1 << 8,
    TTCORE_MAY_FLUSH = 1 << 9, /* as a client or front-end */
};

/* The user behind a connection, as its shell knows. Quotas and fairness go by user. */
struct ttcore_peer {
    uint64_t user; /* 0: not known; then each instance (HELLO) is a user of its own */
    uint32_t may; /* enum ttcore_may */
    const char *name; /* of the user, for people */
};

struct ttcore_event {
    enum ttcore_event_kind kind;
    uint64_t now_us; /* a step back counts as no time */
    const uint8_t *route; /* of the peer's connection, 1..TTCORE_ROUTE_MAX bytes */
    size_t route_length;
    const uint8_t *bytes;
    size_t length;
    const struct ttcore_peer *peer; /* of a MESSAGE; NULL: not known, may all but stop any job */
};

/* A hash of a route that peers cannot foresee without the seed. */
uint64_t ttcore_route_hash(uint64_t seed, const uint8_t *route, size_t length);

struct ttcore_target {
    const uint8_t *route;
    uint32_t length;
};

/* Goes to target[first] .. target[first + targets - 1]. */
struct ttcore_message {
    const uint8_t *bytes;
    uint32_t length;
    uint32_t first, targets;
    bool may_drop; /* a hint: not for who has not read what was sent before */
    bool in_order; /* about a job, for all workers: a shell that sends such messages bit by bit must
                      not let one overtake another */
    uint32_t paid; /* targets for which the sender of the event pays, where time has a price */
};

struct ttcore_scratch;

struct ttcore_actions {
    /* fixed after open */
    uint32_t messages_max, targets_max, bytes_max;
    uint8_t *bytes;
    struct ttcore_scratch *scratch; /* the core's working space during a step */
    /* the step's outcome */
    struct ttcore_message *message;
    struct ttcore_target *target;
    uint32_t messages, targets, bytes_used;
    uint32_t ignored; /* ignored peers, when the message came from one of them; else 0 */
    /* statistics */
    uint64_t dropped;
};

/* Room for what cores with these limits can emit in one step. ERR_NOMEM. */
enum err ttcore_actions_open(struct ttcore_actions *actions, uint32_t sessions_max,
                             uint32_t jobs_max);
/* Accepts a zeroed struct, and twice. */
void ttcore_actions_close(struct ttcore_actions *actions);

/* ---- for the core ---- */

enum {
    TTCORE_NOTICES_MAX = PROTO_BATCH_MAX, /* (session, node) pairs in one batch */
    TTCORE_NOTIFIED_MAX = 64, /* sessions in one batch */
    TTCORE_HOLDERS_MAX = 64, /* of one node */
    TTCORE_NOTICE_BUCKETS = 1024, /* a power of two */
};

/* A completion notice: the result of a node, for one of its holders. */
struct ttcore_notice {
    struct tt_store result; /* slot 0 */
    uint32_t session; /* slot */
    uint32_t chain; /* of the bucket: index + 1; 0 ends it */
};

/* The core's working space during a step; nothing in it outlives the step. */
struct ttcore_scratch {
    struct proto_decoder decoder;
    struct tt_answer answer[PROTO_BATCH_MAX];
    struct tt_peeked peeked[PROTO_BATCH_MAX];
    struct tt_scanned scanned[PROTO_BATCH_MAX];
    struct proto_correspondent correspondent[PROTO_BATCH_MAX];
    struct ttcore_notice notice[TTCORE_NOTICES_MAX];
    uint32_t notice_bucket[TTCORE_NOTICE_BUCKETS]; /* index + 1; valid if notice_count > 0 */
    struct tt_holder holder[TTCORE_HOLDERS_MAX];
    struct tt_store list[TTCORE_NOTICES_MAX];
    uint32_t notice_count;
    uint64_t seed; /* of the buckets; odd */
};

void ttcore_actions_reset(struct ttcore_actions *actions);
/* Adds a target and returns its index; one that does not fit is dropped and counted. */
uint32_t ttcore_actions_target(struct ttcore_actions *actions, const uint8_t *route,
                               uint32_t length);
/* Encodes `message` for a run of targets. */
void ttcore_actions_send(struct ttcore_actions *actions, const struct proto_message *message,
                         uint32_t first, uint32_t targets);

/* Sends a message that is encoded already and stays where it is. */
void ttcore_actions_send_bytes(struct ttcore_actions *actions, const uint8_t *bytes,
                               uint32_t length, uint32_t first, uint32_t targets);

#endif
