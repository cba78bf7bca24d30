#include "ttserver/core/actions.h"

#include "common/rng.h"

#include <stdlib.h>
#include <string.h>

/* The longest operations on the wire: an answer is a one-byte array head and 1 + 5 x 3 bytes, a
 * result 1 + 9 + 2 + 3 + 1 + 3 + 1, a message's head below 32. */
enum {
    HEAD_BYTES = 32,
    ANSWERS_BYTES = HEAD_BYTES + 17 * PROTO_BATCH_MAX,
    NOTICES_BYTES = TTCORE_NOTIFIED_MAX * HEAD_BYTES + 20 * TTCORE_NOTICES_MAX,
    FIXED_BYTES = ANSWERS_BYTES + NOTICES_BYTES + 4096, /* welcome, error, figures */
    SHARE_BYTES = HEAD_BYTES + PROTO_RESULT_BYTES * PROTO_BATCH_MAX,
    FIXED_MESSAGES = TTCORE_NOTIFIED_MAX + 8,
};
/* A page of entries is 1 + 9 + 2 + 3 x 3 each, and goes alone. */
_Static_assert(HEAD_BYTES + 21 * PROTO_BATCH_MAX <= FIXED_BYTES, "a page of entries fits");
_Static_assert((int)ANSWERS_BYTES <= (int)PROTO_MESSAGE_MAX,
               "the answer to a full batch is one message");

uint64_t ttcore_route_hash(uint64_t seed, const uint8_t *route, size_t length)
{
    uint64_t hash = seed ^ length;
    for (size_t i = 0; i < length; i += 8) {
        uint64_t word = 0;
        memcpy(&word, route + i, length - i < 8 ? length - i : 8);
        hash = rng_mix((hash ^ word) + UINT64_C(0x9e3779b97f4a7c15));
    }
    return hash;
}

enum err ttcore_actions_open(struct ttcore_actions *actions, uint32_t sessions_max,
                             uint32_t jobs_max)
{
    struct ttcore_actions fresh = {
        .messages_max = jobs_max + FIXED_MESSAGES,
        .targets_max = 2 * sessions_max + FIXED_MESSAGES,
        .bytes_max = FIXED_BYTES + 2 * SHARE_BYTES + jobs_max * HEAD_BYTES,
    };
    fresh.bytes = calloc(fresh.bytes_max, 1);
    fresh.message = calloc(fresh.messages_max, sizeof *fresh.message);
    fresh.target = calloc(fresh.targets_max, sizeof *fresh.target);
    fresh.scratch = calloc(1, sizeof *fresh.scratch);
    if (fresh.bytes == NULL || fresh.message == NULL || fresh.target == NULL ||
        fresh.scratch == NULL) {
        ttcore_actions_close(&fresh);
        return ERR_NOMEM;
    }
    *actions = fresh;
    return ERR_OK;
}

void ttcore_actions_close(struct ttcore_actions *actions)
{
    free(actions->bytes);
    free(actions->message);
    free(actions->target);
    free(actions->scratch);
    memset(actions, 0, sizeof *actions);
}

void ttcore_actions_reset(struct ttcore_actions *actions)
{
    actions->messages = 0;
    actions->targets = 0;
    actions->bytes_used = 0;
    actions->ignored = 0;
}

uint32_t ttcore_actions_target(struct ttcore_actions *actions, const uint8_t *route,
                               uint32_t length)
{
    uint32_t index = actions->targets;
    CHECK_THAT(length >= 1 && length <= TTCORE_ROUTE_MAX, "actions: a target has a route");
    if (index == actions->targets_max) {
        actions->dropped++;
        return index;
    }
    actions->target[actions->targets++] = (struct ttcore_target){route, length};
    return index;
}

void ttcore_actions_send_bytes(struct ttcore_actions *actions, const uint8_t *bytes,
                               uint32_t length, uint32_t first, uint32_t targets)
{
    /* Without those that were dropped and counted. */
    uint32_t there = first < actions->targets ? actions->targets - first : 0;
    targets = targets < there ? targets : there;
    if (targets == 0) {
        return;
    }
    if (actions->messages == actions->messages_max) {
        actions->dropped += targets;
        return;
    }
    CHECK_THAT(length > 0 && length <= PROTO_MESSAGE_MAX, "actions: one message can be sent");
    actions->message[actions->messages++] = (struct ttcore_message){
        .bytes = bytes, .length = length, .first = first, .targets = targets, .paid = targets};
}

void ttcore_actions_send(struct ttcore_actions *actions, const struct proto_message *message,
                         uint32_t first, uint32_t targets)
{
    uint8_t *at = actions->bytes + actions->bytes_used;
    const uint32_t there = first < actions->targets ? actions->targets - first : 0;
    targets = targets < there ? targets : there; /* without those that were dropped and counted */
    if (targets == 0) {
        return;
    }
    CHECK_THAT(actions->bytes_used <= actions->bytes_max, "actions: what is encoded has room");
    size_t length = proto_encode(message, at, actions->bytes_max - actions->bytes_used);
    if (length == 0) {
        actions->dropped += targets;
        return;
    }
    actions->bytes_used += (uint32_t)length;
    ttcore_actions_send_bytes(actions, at, (uint32_t)length, first, targets);
}
