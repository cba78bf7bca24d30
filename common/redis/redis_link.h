/* redis_link: one thread's connections to a Redis, or to all nodes of a Redis Cluster. Calls are
 * pipelined and never wait; answers come by a callback. It keeps the map of slots, follows MOVED
 * and ASK, connects again by itself, logs in, and loads scripts again where a server forgot them.
 *
 * hiredis parses; sockets and TLS (OpenSSL) are this module's (redis_node.h, redis_tls.h), because
 * Debian's hiredis has no TLS and because nothing here may block.
 *
 * The calls of one slot are carried out in their order: one that has to be sent again, and would
 * come after a later one, is lost. A call is answered once, in good time: what cannot be sent again
 * within REDIS_LINK_AGAIN_US is lost, and so is what a node leaves unanswered that is silent for
 * REDIS_NODE_SILENCE_US.
 *
 * Threads: one. Memory: allocates; what waits for a connection that does not take it is bounded
 * (redis_node.h). Blocking: never. Another thread looks up a host's name (host_lookup.h), once for
 * each node and, at most every REDIS_NODE_LOOKUP_US, again while it cannot be reached. Time comes
 * with the calls (microseconds, monotonic). */
#ifndef COMMON_REDIS_REDIS_LINK_H
#define COMMON_REDIS_REDIS_LINK_H

#include "common/redis/redis_address.h"

#include <poll.h>
#include <stddef.h>
#include <stdint.h>

struct redis_link;
struct redisReply; /* hiredis */

enum {
    REDIS_CHANNELS_MAX = 16,
    REDIS_LINK_FDS_MAX = 128,
    REDIS_LINK_AGAIN_US = 1000000, /* a call that a cluster moves about is tried for so long */
};

struct redis_link_options {
    const struct redis_address *address; /* copied */
    const char *const *script; /* Lua sources, borrowed until close */
    unsigned scripts;
    void *self; /* of the callbacks, which are called from redis_link_drain and redis_link_tick
                   alone and may call redis_link_call */
    /* The answer to the call with that tag. NULL: lost (the connection broke, or the node did not
     * take it); it may have been carried out. An error reply of the server is handed on as it is,
     * after MOVED, ASK, TRYAGAIN, CLUSTERDOWN, LOADING, READONLY and NOSCRIPT were dealt with.
     * Borrowed until it returns. */
    void (*answered)(void *self, uint64_t tag, const struct redisReply *reply);
    /* A message of a channel that redis_link_subscribe named. */
    void (*message)(void *self, const char *channel, const char *bytes, size_t length);
    /* The node for a slot was reached or lost: `up` as redis_link_is_up. Once per change, and again
     * where it can be reached while it is lost, but refuses us. `why`, on loss: one line for people
     * that begins with the node's address (refused, wrong password, no TLS, ...). */
    void (*changed)(void *self, unsigned first_slot, unsigned last_slot, bool up, const char *why);
    /* The server does not take a subscription: its error, printable. NULL: nobody is told. */
    void (*denied)(void *self, const char *channel, const char *why);
};

/* Nothing is connected before the first redis_link_tick. ERR_NOMEM. */
enum err redis_link_open(struct redis_link **out, const struct redis_link_options *options);
/* Gives what is queued one chance to leave. Says of nodes that never answered, and were not given
 * up yet, that they are silent (`changed`). Accepts NULL; nulls. */
void redis_link_close(struct redis_link **link);

/* The slot of a key: CRC16 of it, or of the part in braces. */
unsigned redis_link_slot(const char *key, size_t length);

/* Is the node that serves the slot connected, logged in, and are the scripts loaded there? */
bool redis_link_is_up(const struct redis_link *link, unsigned slot);

/* Calls a script on the node that serves `slot` (of a single Redis: the one): EVALSHA with `keys`
 * keys, which are the first of `argc` arguments. Never waits. False: not up, or its queue is full.
 */
bool redis_link_call(struct redis_link *link, unsigned slot, unsigned script, unsigned keys,
                     unsigned argc, const char *const *argv, const size_t *length, uint64_t tag,
                     uint64_t now_us);
/* What it is connected to takes no writes, as a script's answer says: it is a replica, or has
 * become one. Of a cluster the map is asked for anew. Else the connection ends, which is said
 * (`changed`), and its name is resolved again, or another of its addresses is tried. True: the
 * connection ends.
 */
bool redis_link_leave_replica(struct redis_link *link);
/* From now on, also after connections anew, on a connection of its own (of a cluster: to any node,
 * since PUBLISH reaches all). What is published while that one is not connected never comes. False:
 * more than REDIS_CHANNELS_MAX, or no memory. A channel that is there is fine. */
bool redis_link_subscribe(struct redis_link *link, const char *channel);

/* Writes and reads what sockets take and have, calls the callbacks. True if anything came. */
bool redis_link_drain(struct redis_link *link, uint64_t now_us);
/* Connects, asks for the map of slots anew, gives up who is silent. Call it every 50 ms or so; the
 * first one begins to connect. */
void redis_link_tick(struct redis_link *link, uint64_t now_us);
/* What to poll for; returns how many. */
unsigned redis_link_fds(const struct redis_link *link, struct pollfd out[REDIS_LINK_FDS_MAX]);

#endif
