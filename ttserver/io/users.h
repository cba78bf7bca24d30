/* users: those who have several connections to a shard: who shares a turn, and what they take
 * together.
 *
 * Threads: the shard's. Memory: an entry lives as long as a connection, or a pin, has it. */
#ifndef TTSERVER_IO_USERS_H
#define TTSERVER_IO_USERS_H

#include "ttserver/io/connection.h"

enum { USERS_BUCKETS = 1024 };

struct users_entry {
    struct turns_user turns;
    uint64_t number;
    uint32_t connections; /* and pins */
    size_t held; /* bytes of its connections, while users_largest counts them */
    struct users_entry *chain;
};

struct users {
    uint64_t seed; /* of the hash, secret */
    struct users_entry *bucket[USERS_BUCKETS];
};

/* The connection belongs to that user from now on; 0: stays with the one it has. Without memory it
 * is broken. */
void users_join(struct users *users, struct turns *turns, struct connection *c, uint64_t number);
void users_leave(struct users *users, struct turns *turns, struct connection *c);

/* Both accept a null. */
void users_pin(struct users_entry *entry);
void users_release(struct users *users, struct turns *turns, struct users_entry *entry);

/* Of the user whose connections hold most bytes, the one that holds most. At least one of
 * connection[count] is there. O(count). */
struct connection *users_largest(struct connection *const *connection, uint32_t count);

#endif
