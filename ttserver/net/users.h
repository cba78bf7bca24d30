/* users: those who have several connections to a shard: who shares a turn, and what they take
 * together.
 *
 * Threads: the shard's. Memory: an entry lives as long as a connection, or a pin, has it. */
#ifndef TTSERVER_NET_USERS_H
#define TTSERVER_NET_USERS_H

#include "ttserver/net/connection.h"

enum { USERS_BUCKETS = 1024, USERS_DRAWN = 16 };

struct users_entry {
    struct turns_user turns;
    uint64_t number;
    uint32_t connections; /* and pins */
    uint32_t pending; /* its connections without a session */
    size_t held; /* bytes of its connections, while users_largest counts them */
    struct users_entry *chain;
};

struct users {
    uint64_t seed; /* secret of the hash */
    struct users_entry *bucket[USERS_BUCKETS];
    uint32_t pending; /* connections without a session that share no user: those of this machine */
};

/* The connection belongs to that user from now on; 0: stays with the one it has. Without memory it
 * is broken. */
void users_join(struct users *users, struct turns *turns, struct connection *c, uint64_t number);
void users_leave(struct users *users, struct turns *turns, struct connection *c);

/* Says that the connection has a session or has none. */
void users_set_pending(struct users *users, struct connection *c, bool is_pending);
/* Of USERS_DRAWN of connection[count], drawn at random (count > 0), one whose user has most without
 * a session: who has a large part of all is nearly always among them. */
struct connection *users_draw_pending(struct users *users, struct connection *const *connection,
                                      uint32_t count, uint64_t *rng);

/* Both accept a null. */
void users_pin(struct users_entry *entry);
void users_release(struct users *users, struct turns *turns, struct users_entry *entry);

/* Of the user whose connections hold most bytes, the one that holds most. At least one of
 * connection[count] is there. O(count). */
struct connection *users_largest(struct connection *const *connection, uint32_t count);

#endif
