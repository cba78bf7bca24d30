/* ttcore_scratch: the core's working space during one step; nothing in it outlives the step.
 * Threads: the core's. */
#ifndef TTSERVER_CORE_SCRATCH_H
#define TTSERVER_CORE_SCRATCH_H

#include "proto/codec.h"

enum {
    TTCORE_DONE_MAX = PROTO_BATCH_MAX, /* (session, node) pairs told of in one batch */
    TTCORE_TOLD_MAX = 64, /* sessions told in one batch */
    TTCORE_HOLDERS_MAX = 64, /* holders of one node looked at */
    TTCORE_DONE_BUCKETS = 1024, /* a power of two */
};

/* The result of a node, in the list of one of the sessions to be told. */
struct ttcore_done {
    struct tt_store result; /* the key as that session knows it, slot 0 */
    uint32_t session; /* slot */
    uint32_t next; /* of the session, index + 1; 0 ends the list */
    uint32_t chain; /* of the bucket, likewise */
};

struct ttcore_told {
    uint32_t session; /* slot */
    uint32_t first, last, count; /* of its list: index + 1 */
};

struct ttcore_scratch {
    struct proto_decoder decoder;
    struct tt_answer answer[PROTO_BATCH_MAX];
    struct tt_peeked peeked[PROTO_BATCH_MAX];
    struct ttcore_done done[TTCORE_DONE_MAX];
    uint32_t done_bucket[TTCORE_DONE_BUCKETS]; /* index + 1; valid if done_count > 0 */
    struct ttcore_told told[TTCORE_TOLD_MAX];
    struct tt_holder holder[TTCORE_HOLDERS_MAX];
    struct tt_store list[TTCORE_DONE_MAX];
    uint32_t done_count, told_count;
};

#endif
