/* share_relay: what a shard passes on of the result broadcast (PROTOCOL.md, SHARE).
 *
 * Every host gets what all others find, so a shard sends out many times what comes in. Two things
 * bound that. Where there are many receivers the results of several senders are collected, until
 * one comes TTCORE_SHARE_LATE_US after the first or with the next tick, and leave as one message:
 * what a host receives in messages does not grow with the number of hosts. Foreign claims come many
 * times as often, and are of no use when they are late: they are collected for more than a few
 * receivers, with the results beside them, but not for long. And no more than a given
 * number of results a second leaves, each counted for each receiver, and no more than half of that
 * for one user; senders learn by the `load` of what they receive that they should send less, well
 * before something is dropped. Pure. Threads: the core's owner. Memory: none beyond the struct. */
#ifndef TTSERVER_CORE_SHARE_RELAY_H
#define TTSERVER_CORE_SHARE_RELAY_H

#include "proto/codec.h"

struct ttcore;
struct ttcore_actions;
struct ttcore_user;

enum {
    TTCORE_SHARE_FEW = 16, /* receivers: so many get each message at once */
    TTCORE_SHARE_LATE_US = 2000,
    TTCORE_SHARE_CLAIMS_FEW = 4, /* the same where foreign claims are among them */
    TTCORE_SHARE_CLAIMS_LATE_US =
        100, /* ... for each TTCORE_SHARE_FEW receivers, no later than results */
    TTCORE_SHARE_TO = 512, /* receivers of a message, at most */
    TTCORE_SHARE_TRIES = 1024, /* sessions looked at for it */
    TTCORE_SHARE_BURST_US = 20000, /* of the rate: may leave at once */
    TTCORE_SHARE_CHECK_US = 5000, /* how many hints went to slow readers */
    TTCORE_SHARE_SLOW_US = 20000, /* so long it counts */
    TTCORE_SHARE_PAYERS = 64, /* users whose results wait together */
};

struct ttcore_share_payer {
    struct ttcore_user *user;
    uint64_t id; /* the user's: it may have left */
    uint32_t results;
};

struct ttcore_share_relay {
    uint64_t namespace_id, table_id; /* of those that wait; table_id 0: of several tables */
    uint64_t from_us; /* the oldest */
    uint32_t count, receivers; /* receivers: of the last message */
    bool has_claims; /* among those that wait */
    uint64_t messages; /* so far */
    uint64_t paid_until_ns; /* what has left is paid for by time until then */
    /* Hints since `checked_us`, that left and that slow readers did not get; slow_until_us: more
     * than half of them were of these, so that less is to be sent until then. */
    uint64_t checked_us, hints, hints_dropped, slow_until_us;
    uint32_t payers;
    struct ttcore_share_payer payer[TTCORE_SHARE_PAYERS];
    struct tt_store list[PROTO_BATCH_MAX];
};

/* Sends what waits, if it has waited long enough. From each tick. */
void ttcore_share_tick(struct ttcore *core, struct ttcore_actions *actions);

#endif
