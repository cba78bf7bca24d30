/* shell: what a client of the table needs of the world: sockets and a clock. Those of ttservers
 * (zeromq.h), of a Redis (redis_shell.h), or of the virtual cluster.
 *
 * Threads: that of the client. Memory: the shell's. Blocking: sleep alone. */
#ifndef PROTO_TRANSPORT_SHELL_H
#define PROTO_TRANSPORT_SHELL_H

#include "proto/client/client.h"

struct pollfd;

enum {
    SHELL_ASK_US = 120, /* an ask and its store count as, over ttservers and over a Redis: 28 are
                           the sender's; where all CPUs of a host search and one is the shard's, 240
                           are gone in all. Between the two, by what searches took
                           (docs/experiments.md) */
};

struct remote_shell {
    void *self;
    uint64_t (*now)(void *self); /* microseconds, monotonic */
    bool (*send)(void *self, unsigned shard, const uint8_t *bytes, size_t length); /* client_port */
    /* Gives the client one message that has arrived, whose bytes stay until the next call; false:
     * there is none, or this round had enough, and the next call begins another. Never waits. */
    bool (*receive)(void *self, struct client *client);
    /* A shard does not take us, and says why, again and again. NULL: nobody is told. */
    void (*refused)(void *self, unsigned shard, struct proto_text why);
    /* Waits until something arrives or `until_us`. */
    void (*sleep)(void *self, uint64_t until_us);
    /* For a caller that waits in a loop of its own: up to `room` descriptors to poll for; returns
     * how many were written. *due_us: when to read at the latest, whatever they say; 0: now
     * (ZeroMQ's tell of changes alone). They may be others after each call of the shell. `room` 0,
     * `out` NULL: *due_us alone. NULL: for nobody. */
    unsigned (*descriptors)(void *self, struct pollfd *out, unsigned room, uint64_t *due_us);
    bool are_descriptors_fixed; /* as long as the shell lives */
    /* NULL, or called first at each poll of a search: lets the time of others pass, which is all
     * there is to do until it is false. For the virtual cluster, whose threads of one host see each
     * other's table at a finer grain than they poll. */
    bool (*pass)(void *self);
    bool shares_reach_all; /* a SHARE goes to all other hosts, and soon: foreign claims are worth it
                            */
    uint32_t
        ask_cost_us; /* what an ask and its store count as in adapting the remote depth limit */
    uint32_t version; /* the highest of the protocol that the client speaks; 0: as
                         lane_highest_version says */
    uint32_t rest_us; /* between two reads while no answer is awaited; 0: every serve reads */
};

#endif
