/* feed: results that the searchers of a process find and tell others without being asked
 * (PROTOCOL.md, SHARE): the queue in which they wait, when it is sent, and how deep a result has to
 * be to enter it.
 *
 * The shallower the results that are sent, the less is searched twice, and the more there is to
 * send and to take: each ply less is four to five times as much. The least depth therefore moves,
 * in eighths of a ply: at 2 and 3/8 all results of depth 3 enter and, of depth 2, those whose key
 * falls into five of eight parts. Each process sets its own by the rate at which results come to
 * it, which is about the same for all, and by the load that the shards report.
 *
 * Threads: feed_wants, feed_put, feed_waiting and feed_is_due from any, without a lock; the others
 * from one at a time. Memory: the struct, zeroed at first. Never blocks. Pure. */
#ifndef PROTO_CLIENT_FEED_H
#define PROTO_CLIENT_FEED_H

#include "proto/client/client.h"

#include <stdatomic.h>

enum {
    FEED_STEPS = 8, /* steps of the least depth to a ply */
    FEED_MAX = CLIENT_SHARE_MAX, /* results that wait: one message */
    FEED_PAUSE_US = 2000, /* a message costs more than its results are worth in a millisecond ... */
    FEED_PROBE_US = 10000, /* ... and while nobody else may be there */
};

/* The least depth's bounds, in steps, and its first value; and how many results a process takes a
 * second before it rises. */
struct feed_limits {
    unsigned lowest, first, highest;
    uint64_t rate_max;
};

struct feed {
    /* of any thread; apart from what each feed_put writes */
    atomic_uint least;
    _Atomic uint64_t due_us;
    /* of one thread at a time */
    uint64_t window_us, window_received; /* since then, so many results came */
    uint8_t window_load; /* the highest load of a shard meanwhile */
    /* The places are filled and emptied in turns: at the n-th time round 2n is "empty", 2n + 1
     * "filled" (D. Vyukov's bounded queue, with one reader). */
    struct feed_place {
        _Atomic uint64_t turn;
        struct tt_store result;
    } place[FEED_MAX];
    _Atomic uint64_t head, tail; /* results taken out, and put in, so far */
};

/* A new search: the least depth is the first unless it lies within the limits. */
void feed_begin(struct feed *feed, const struct feed_limits *limits);
/* Whether results of that depth are sent, for this key. */
bool feed_wants(const struct feed *feed, uint64_t key, unsigned depth);
/* False: there is no room. */
bool feed_put(struct feed *feed, const struct tt_store *result);
unsigned feed_waiting(const struct feed *feed);
/* Whether the pause since the last message is over. */
bool feed_is_due(const struct feed *feed, uint64_t now_us);
/* Takes out all that waits, if it is due or there is no room left, and begins the next pause. 0:
 * nothing is to be sent. */
unsigned feed_take_due(struct feed *feed, uint64_t now_us, uint32_t pause_us,
                       struct tt_store out[FEED_MAX]);
void feed_clear(struct feed *feed);
/* A message with `count` results came, from a shard of that load. Moves the least depth by one step
 * at most, so that all processes come to the same one. Without a message (0, 0) when nobody else is
 * there: a process that tells nothing would never hear of others. */
void feed_received(struct feed *feed, const struct feed_limits *limits, unsigned count,
                   unsigned load, uint64_t now_us);

#endif
