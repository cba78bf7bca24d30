/* ttcore_users: who is behind the sessions of this shard, and what they have of it together.
 *
 * A user is its key, its address, or one instance when nothing else is known of it (ttcore_peer).
 * It is remembered after its last session until its place is needed, the one longest without a
 * session first, so reconnecting gives it no new budgets. A client without key or address could
 * reconnect as another instance, so a new user of that kind starts with the largest debt that such
 * a user left behind. Threads: the core's owner. Memory: allocates in open only. */
#ifndef TTSERVER_CORE_USER_TABLE_H
#define TTSERVER_CORE_USER_TABLE_H

#include "common/err.h"
#include "proto/codec.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

enum {
    TTCORE_USER_NAME_MAX = 32,
    TTCORE_POSTS_BURST = 64, /* jobs posted at once ... */
    TTCORE_POSTS = 100, /* ... and then in a heartbeat; each counts once ... */
    TTCORE_POST_WORKERS = 64, /* ... and once more for each 64 workers; of each other user at
                                 most 64 are counted */
    TTCORE_PUSHES_BURST = 256, /* HELLOs of workers answered by all open jobs at once ... */
    TTCORE_PUSHES = 100, /* ... and then in a heartbeat; the others get the jobs with a tick */
};

struct ttcore_user {
    uint64_t id; /* 0: nobody */
    bool is_instance; /* no key and no address is known */
    uint32_t sessions, jobs;
    uint32_t inflight; /* in-flight entries of its sessions */
    uint32_t workers, first_worker; /* sessions of that role, and the first one's worker index */
    LIST_ENTRY(ttcore_user) by_id; /* link of a bucket; unused while id is 0 */
    TAILQ_ENTRY(ttcore_user) by_idleness; /* link of `idle`, while it has no session */
    uint64_t posts_us, pushes_us; /* ttcore_budget */
    uint64_t shared_until_ns; /* time at which half of the rate has paid for its SHAREs */
    char name[TTCORE_USER_NAME_MAX]; /* for people */
};

LIST_HEAD(ttcore_user_chain, ttcore_user);

struct ttcore_users {
    /* fixed after open */
    struct ttcore_user *slot;
    struct ttcore_user_chain *bucket;
    uint32_t mask, max;
    uint64_t seed;
    /* state */
    TAILQ_HEAD(ttcore_user_queue, ttcore_user) idle; /* users without a session, longest first */
    uint32_t live; /* users with a session */
    uint64_t left_posts_us, left_pushes_us; /* largest debts that instances left behind */
    uint64_t left_shared_until_ns;
};

/* For `sessions_max` sessions. ERR_NOMEM. */
enum err ttcore_users_open(struct ttcore_users *users, uint32_t sessions_max, uint64_t seed);
/* Accepts a zeroed struct, and twice. */
void ttcore_users_close(struct ttcore_users *users);

/* `id` is positive; for an instance it is its alias. Never NULL while there are fewer sessions than
 * sessions_max. */
struct ttcore_user *ttcore_users_of(struct ttcore_users *users, uint64_t id, bool is_instance);
/* Records that a session of the user starts, ends. */
void ttcore_users_join(struct ttcore_users *users, struct ttcore_user *user);
void ttcore_users_leave(struct ttcore_users *users, struct ttcore_user *user);

#endif
