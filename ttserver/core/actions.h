/* ttcore_actions: what a step of the core wants sent, in a buffer bounded at start.
 *
 * A message is encoded once and may go to many targets (a job to all workers). One object per
 * thread serves any number of cores whose options are no larger than those it was opened with.
 * Threads: one at a time. Memory: allocates in open only. What does not fit is counted in
 * `dropped`, per target; with fitting options nothing ever is. */
#ifndef TTSERVER_CORE_ACTIONS_H
#define TTSERVER_CORE_ACTIONS_H

#include "common/err.h"
#include "proto/codec.h"

#include <stdint.h>

enum { TTCORE_ROUTE_MAX = 255 };

struct ttcore_target {
    const uint8_t *route;
    uint32_t length;
};

/* Goes to target[first] .. target[first + targets - 1]. */
struct ttcore_message {
    const uint8_t *bytes;
    uint32_t length;
    uint32_t first, targets;
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
    uint32_t ignored; /* peers that are, when the message that came is of one of them; else 0 */
    /* statistics */
    uint64_t dropped;
};

/* Room for what cores with these limits can emit in one step. ERR_NOMEM. */
enum err ttcore_actions_open(struct ttcore_actions *actions, uint32_t sessions_max,
                             uint32_t jobs_max);
/* Accepts a zeroed struct, and twice. */
void ttcore_actions_close(struct ttcore_actions *actions);

/* ---- for the core ---- */

void ttcore_actions_reset(struct ttcore_actions *actions);
/* Adds a target and returns its index; one that does not fit is dropped and counted. */
uint32_t ttcore_actions_target(struct ttcore_actions *actions, const uint8_t *route,
                               uint32_t length);
/* Encodes `message` for a run of targets. */
void ttcore_actions_send(struct ttcore_actions *actions, const struct proto_message *message,
                         uint32_t first, uint32_t targets);
/* The same for bytes that are encoded already and stay where they are. */
void ttcore_actions_send_bytes(struct ttcore_actions *actions, const uint8_t *bytes,
                               uint32_t length, uint32_t first, uint32_t targets);

#endif
