/* who: who may connect, which user is behind a connection and what it may do, and what all
 * connections of one user take together.
 *
 * The server's key pair and its list of users are those of all shards of a process. The list is
 * replaced as a whole when it is read again; each shard takes the new one when it is told to.
 *
 * Threads: who_open, who_reread and who_close belong to the main thread; who_get and who_put may be
 * called from any; all else is the shard's. Memory: a list is freed when nobody has it any more; a
 * user lives as long as a connection, or a pin, has it. */
#ifndef TTSERVER_NET_WHO_H
#define TTSERVER_NET_WHO_H

#include "common/keys/keys.h"
#include "ttserver/net/connection.h"

#include <pthread.h>

/* ---- who may connect ---- */

struct who_list {
    unsigned holders; /* under the lock */
    size_t count;
    struct keys_user *user; /* sorted by key */
};

struct who {
    const char *dir; /* NULL: everybody may connect */
    struct keys_pair server;
    pthread_mutex_t lock;
    struct who_list *now; /* under the lock */
};

/* Reads the keys; with dir NULL there are none. The errors of keys_load_server, with why. */
enum err who_open(struct who *access, const char *dir, char why[KEYS_WHY_MAX]);
/* Accepts a zeroed struct. No shard runs. */
void who_close(struct who *access);

/* Reads the list again, without the files that are wrong: `skipped` of them, the last in why. When
 * the directory cannot be read the old list stays. */
enum err who_reread(struct who *access, unsigned *skipped, char why[KEYS_WHY_MAX]);

/* The present list, to be given back; NULL without keys. */
struct who_list *who_get(struct who *access);
/* Accepts a null. */
void who_put(struct who *access, struct who_list *list);

/* ---- who it is: its key says it, or else its address ---- */

/* Never 0. */
uint64_t who_by_key(struct connection *c, const struct keys_user *user);

/* Without keys everybody may do all but stop the jobs of others, and a user is who has an address.
 * 0 on this machine, where all have the same: each connection is a user of its own. The
 * connection's name becomes the address in numbers. */
uint64_t who_by_address(struct connection *c, const struct in6_addr *from);

/* ---- users: who shares a turn, and what they take together ---- */

enum { WHO_BUCKETS = 1024, WHO_DRAWN = 16 };

struct who_user {
    struct turns_user turns;
    uint64_t number;
    uint32_t connections; /* and pins: who counts one here releases it */
    uint32_t pending; /* of its connections, without a session */
    size_t held; /* bytes of its connections, while who_largest counts them */
    struct who_user *chain;
};

struct who_users {
    struct turns *turns;
    uint64_t seed; /* of the hash, secret */
    struct who_user *bucket[WHO_BUCKETS];
    uint32_t pending; /* connections without a session that share no user: those of this machine */
};

/* The connection belongs to that user from now on; 0: stays with the one it has. Without memory it
 * is broken. */
void who_join(struct who_users *users, struct connection *c, uint64_t number);
void who_leave(struct who_users *users, struct connection *c);

/* Says that the connection has a session or has none. */
void who_set_pending(struct who_users *users, struct connection *c, bool is_pending);
/* Draws WHO_DRAWN of connection[count] at random (count > 0) and returns one whose user has most
 * connections without a session: a user with a large part of all is nearly always among them. */
struct connection *who_draw_pending(struct who_users *users, struct connection *const *connection,
                                    uint32_t count, uint64_t *rng);

/* Ends a pin, or a connection. Accepts a null. */
void who_release(struct who_users *users, struct who_user *entry);

/* The largest connection of the user whose connections hold most bytes. At least one of
 * connection[count] is there. O(count). */
struct connection *who_largest(struct connection *const *connection, uint32_t count);

/* ---- handshakes that failed, for the log: an operator wants to know whose key is wrong, and an
 * attacker must not fill the log ---- */

struct who_refusals {
    uint64_t logged, logged_us;
    const char *why; /* of the last */
    char from[CONNECTION_NAME_MAX];
};

/* Records the refusal of a connection, just now; `why` is a constant. */
void who_refused(struct who_refusals *refusals, const struct connection *c, const char *why);

/* Says so, if there were more since the last line and that was long enough ago; `count`: so far. */
void who_log_refusals(struct who_refusals *refusals, const char *program, uint64_t count,
                      uint64_t now_us);

#endif
