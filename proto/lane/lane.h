/* lane: what carries the messages of one client to its shards and back, with the clock: to
 * ttservers (zeromq.h), into a Redis (redis_shell.h), or through the virtual cluster; and the loop
 * of all who hold sessions: take events until there are none, which reads what has arrived; poll
 * tickets; tick; sleep until the next tick is due.
 *
 * Threads: that of the client. Memory: that of the client, in open. Blocking: sleep alone. */
#ifndef PROTO_LANE_LANE_H
#define PROTO_LANE_LANE_H

#include "proto/client/client.h"

struct pollfd;

enum {
    LANE_ASK_US = 120, /* an ask and its store count as, over ttservers and over a Redis: 28 are the
                          sender's; where all CPUs of a host search and one is the shard's, 240 are
                          gone in all. Between the two, by what searches took
                          (docs/research/experiments.md) */
};

struct lane {
    struct client *client; /* lane_open */
    void *self;
    uint64_t (*now)(void *self); /* microseconds, monotonic */
    bool (*send)(void *self, unsigned shard, const uint8_t *bytes, size_t length); /* client.h */
    /* Gives the client one message that has arrived, whose bytes stay until the next call; false:
     * there is none, or this round had enough, and the next call begins another. Never waits. */
    bool (*receive)(void *self, struct client *client);
    /* A shard does not take us, and says why, again and again. NULL: nobody is told. */
    void (*refused)(void *self, unsigned shard, struct proto_text why);
    /* A shard that came up has the place of another one (client_twin), or is the same one. NULL:
     * nobody is told. */
    void (*met_twin)(void *self, unsigned shard, unsigned other, bool is_same);
    /* Waits until something arrives or `until_us`. */
    void (*sleep)(void *self, uint64_t until_us);
    /* For a caller that waits in a loop of its own: up to `room` descriptors to poll for; returns
     * how many were written. *due_us: when to read at the latest, whatever they say; 0: now
     * (ZeroMQ's tell of changes alone). They may be others after each call of the lane. `room` 0,
     * `out` NULL: *due_us alone. NULL: for nobody. */
    unsigned (*descriptors)(void *self, struct pollfd *out, unsigned room, uint64_t *due_us);
    bool are_descriptors_fixed; /* as long as the lane lives */
    /* NULL, or called first at each poll of a search: lets the time of others pass, which is all
     * there is to do until it is false. For the virtual cluster, whose threads of one host see each
     * other's table at a finer grain than they poll. */
    bool (*pass)(void *self);
    bool shares_reach_all; /* a SHARE goes to all other hosts, and soon: foreign claims are worth it
                            */
    uint32_t
        ask_cost_us; /* what an ask and its store count as in adapting the remote depth limit */
    uint32_t rest_us; /* between two reads while no answer is awaited; 0: every serve reads */
};

/* Puts a client on a lane whose other fields are set. As client_open, with the release of this
 * program. */
enum err lane_open(struct lane *lane, const struct client_options *options);
/* Says BYE. Accepts one that was not opened, and twice. */
void lane_close(struct lane *lane);

static inline uint64_t lane_now(const struct lane *lane)
{
    return lane->now(lane->self);
}

/* For who acts on each answer before it reads on: gives the client one message that has arrived,
 * and then its events, which are all taken; false: none is left, and the next call begins another
 * round. */
static inline bool lane_receive(const struct lane *lane)
{
    return lane->receive(lane->self, lane->client);
}

/* The lane is told what a shard refuses, and which shards have one place. */
bool lane_event(const struct lane *lane, struct client_event *out);
/* Both: the next event, of messages that have arrived, too; false: none is left, and the next call
 * begins another round. Borrowed until the next call. */
bool lane_next(const struct lane *lane, struct client_event *out);

/* Returns when it wants to be called again. */
static inline uint64_t lane_tick(const struct lane *lane)
{
    return client_tick(lane->client, lane_now(lane));
}

/* Waits until something arrives or `until_us`. */
static inline void lane_sleep(const struct lane *lane, uint64_t until_us)
{
    lane->sleep(lane->self, until_us);
}

#endif
