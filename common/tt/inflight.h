/* inflight: who is inside which (key, depth) now. nproc is the size of that set, and exact.
 *
 * A table of holds {key, depth, session, slot}, findable by node and by session. It is never
 * evicted by results; when it is full a join is refused and counted, and nothing else happens.
 * Joining twice and leaving what one is not in change nothing (design section 2). Threads: one at a
 * time (a shard's owner). Memory: allocates in open and limit only; of the pool nothing is touched
 * before it is needed. Every operation is O(1) but those that say otherwise. Time never runs
 * back. */
#ifndef COMMON_TT_INFLIGHT_H
#define COMMON_TT_INFLIGHT_H

#include "common/err.h"
#include "common/tt/tt.h"

enum { TT_INFLIGHT_LIST_BYTES = 32 };

struct tt_inflight {
    /* fixed after open and limit */
    struct tt_inflight_entry *hold; /* pool of `capacity`; index 0 is "none" */
    uint32_t *node_bucket, *who_bucket;
    unsigned shift; /* a hash >> shift is below the number of buckets */
    uint32_t capacity; /* holds */
    struct tt_session_entries *session; /* lists, by session & session_mask */
    uint32_t session_mask;
    uint32_t quota; /* of a list */
    /* statistics */
    uint64_t refused; /* joins that found the table full, within their quota */
    uint64_t over_quota; /* joins of a session that had its quota */
    /* state, that visits change */
    uint32_t first_free; /* of those used before */
    uint32_t used; /* 1..used were in use at some time */
    uint32_t entries;
    uint32_t helpers; /* holds that are not the first of their node */
};

/* Room for `capacity` holds, 1 to 2^24. ERR_NOMEM, ERR_RANGE. */
enum err tt_inflight_open(struct tt_inflight *inflight, uint32_t capacity);
/* At most `quota` holds (0: any number) for each session from now on, and a list for each of
 * 2^bits; for an empty table. No two sessions that hold anything at a time may agree in the low
 * `bits` of their numbers if there is a quota. ERR_NOMEM. */
enum err tt_inflight_limit(struct tt_inflight *inflight, uint32_t quota, unsigned bits);
/* Accepts a zeroed struct, and twice. */
void tt_inflight_close(struct tt_inflight *inflight);

/* That somebody is inside. */
static inline uint32_t tt_inflight_nodes(const struct tt_inflight *inflight)
{
    return inflight->entries - inflight->helpers;
}

/* Holders inside (key, depth), and whether `holder` is one of them. */
unsigned tt_inflight_count(const struct tt_inflight *inflight, uint64_t key, uint8_t depth,
                           struct tt_holder holder, bool *is_holder);

/* Adds `holder`; a repeated join renews its age. Returns the count after it, or 0 when the table is
 * full or the session has its quota. */
unsigned tt_inflight_join(struct tt_inflight *inflight, uint64_t key, uint8_t depth,
                          struct tt_holder holder, uint64_t now_us);

/* The two in one: unless `exclusive` and somebody else is inside (then *is_busy), adds `holder`.
 * Returns the count after it; of the others alone when it is refused. */
unsigned tt_inflight_visit(struct tt_inflight *inflight, uint64_t key, uint8_t depth,
                           struct tt_holder holder, bool exclusive, uint64_t now_us, bool *is_busy);

/* Fetches what the calls above and below look at first. */
void tt_inflight_prefetch(const struct tt_inflight *inflight, uint64_t key, uint8_t depth);

/* Removes `holder`; returns how many are left, and whether it was inside. */
unsigned tt_inflight_leave(struct tt_inflight *inflight, uint64_t key, uint8_t depth,
                           struct tt_holder holder, bool *was_holder);

/* Copies up to `room` holders of the node; returns how many it copied. O(copied). */
unsigned tt_inflight_holders(const struct tt_inflight *inflight, uint64_t key, uint8_t depth,
                             struct tt_holder *out, unsigned room);

/* How many holds a session has. O(holds of the sessions listed with it). */
unsigned tt_inflight_of_session(const struct tt_inflight *inflight, uint32_t session);

/* Removes every hold of a session; returns how many. O(holds of the sessions listed with it). */
unsigned tt_inflight_drop_session(struct tt_inflight *inflight, uint32_t session);

/* Removes holds joined or renewed at or before `before_us`; returns how many. O(lists + those). */
unsigned tt_inflight_expire(struct tt_inflight *inflight, uint64_t before_us);

#endif
