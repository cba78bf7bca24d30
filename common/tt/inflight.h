/* inflight: which searchers search which (key, depth) now: the holders of a node. nproc is their
 * number, and exact.
 *
 * A table of entries {key, depth, session, slot}, found by node and by session. Results never evict
 * it; when it is full a visit is counted as refused, and nothing else happens. Visiting twice and
 * leaving a node that one does not hold change nothing. Pure. Threads: one at a time (a shard's
 * owner). Memory: allocates in open only; of the pool nothing is touched before it is
 * needed. Every operation is O(1) but those that say otherwise. Time never runs back. */
#ifndef COMMON_TT_INFLIGHT_H
#define COMMON_TT_INFLIGHT_H

#include "common/err.h"
#include "common/tt/tt.h"

enum { TT_INFLIGHT_LIST_BYTES = 32 };

struct tt_inflight {
    /* fixed after open */
    struct tt_inflight_entry *entry; /* pool of `capacity`; index 0 is "none" */
    uint32_t *node_bucket, *holder_bucket;
    unsigned shift; /* a hash >> shift is below the number of buckets */
    uint32_t capacity; /* entries */
    uint64_t secret; /* secret of the hashes; odd */
    struct tt_session_entries *session; /* lists, by session & session_mask */
    uint32_t session_mask;
    uint32_t quota; /* most entries in a list; may be set for the visits that follow */
    /* statistics */
    uint64_t refused; /* visits that found the table full, within their quota */
    /* state, that visits change */
    uint32_t first_free; /* first entry of those that were used before */
    uint32_t used; /* 1..used were in use at some time */
    uint32_t entries;
    uint32_t helpers; /* entries that are not the first of their node */
    uint64_t over_quota; /* statistics: visits of a session that had its quota */
};

/* Room for `capacity` entries, 1 to 2^24; at most `quota` for each session (0: any number), and a
 * list for each of 2^bits sessions. If there is a quota, no two sessions that have entries at a
 * time may agree in the low `bits` of their numbers. Who does not know `secret` cannot choose keys
 * that share a bucket; a constant will do where all visitors are trusted. ERR_NOMEM, ERR_RANGE. */
enum err tt_inflight_open(struct tt_inflight *inflight, uint32_t capacity, uint32_t quota,
                          unsigned bits, uint64_t secret);
/* Accepts a zeroed struct, and twice. */
void tt_inflight_close(struct tt_inflight *inflight);

/* Nodes that have a holder. */
static inline uint32_t tt_inflight_nodes(const struct tt_inflight *inflight)
{
    return inflight->entries - inflight->helpers;
}

/* How many holders (key, depth) has. */
unsigned tt_inflight_count(const struct tt_inflight *inflight, uint64_t key, uint8_t depth);

/* Adds `holder`, or renews its entry; but not if `exclusive` and the node has another holder: then
 * *is_busy. Returns the number of holders after it; of the others alone when `holder` was not
 * added, because of them or because the table is full or the session has its quota. */
unsigned tt_inflight_visit(struct tt_inflight *inflight, uint64_t key, uint8_t depth,
                           struct tt_holder holder, bool exclusive, uint64_t now_us, bool *is_busy);

/* Fetches into the cache what the other calls read first. */
void tt_inflight_prefetch(const struct tt_inflight *inflight, uint64_t key, uint8_t depth);

/* Removes `holder` if it is one; returns how many are left. */
unsigned tt_inflight_leave(struct tt_inflight *inflight, uint64_t key, uint8_t depth,
                           struct tt_holder holder);

/* Copies up to `room` holders of the node; returns how many it copied. O(copied). */
unsigned tt_inflight_holders(const struct tt_inflight *inflight, uint64_t key, uint8_t depth,
                             struct tt_holder *out, unsigned room);

/* How many entries a session has. O(entries of the sessions listed with it). */
unsigned tt_inflight_of_session(const struct tt_inflight *inflight, uint32_t session);

/* How many entries the sessions listed with it have, itself among them. */
unsigned tt_inflight_listed(const struct tt_inflight *inflight, uint32_t session);

/* Removes every entry of a session; returns how many. O(entries of the sessions listed with it). */
unsigned tt_inflight_drop_session(struct tt_inflight *inflight, uint32_t session);

/* Removes entries made or renewed at or before `before_us`; returns how many. O(lists + those). */
unsigned tt_inflight_expire(struct tt_inflight *inflight, uint64_t before_us);

#endif
