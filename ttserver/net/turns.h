/* turns: which user is served next, so that none takes more than a share while others wait.
 *
 * Deficit round robin (Shreedhar, Varghese 1995) by user, over the time that serving took, with the
 * lists of fq_codel (RFC 8290): a user who starts to wait is served before those who always wait,
 * for one quantum. A lone ask therefore does not queue behind a flood, and a lone user gets all
 * turns. One turn in TURNS_OLD_EVERY is for users who always wait, and a user who was never served
 * starts among them, so a flood of new users does not keep the others out. A user's connections
 * take turns among themselves. Pure. Threads: one at a time. Memory: the caller's; users and
 * members are linked in place. All O(1). */
#ifndef TTSERVER_NET_TURNS_H
#define TTSERVER_NET_TURNS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

enum {
    TURNS_QUANTUM_NS = 50000, /* about a batch of a thousand operations */
    TURNS_DEBT_NS = 100 * TURNS_QUANTUM_NS, /* the most that a user can owe */
    TURNS_OLD_EVERY = 4,
};

struct turns_member {
    TAILQ_ENTRY(turns_member) link;
    struct turns_user *user;
    bool waits;
};

enum turns_list { TURNS_NONE, TURNS_NEW, TURNS_OLD };

struct turns_user {
    TAILQ_ENTRY(turns_user) link;
    TAILQ_HEAD(turns_members, turns_member) members; /* members that wait */
    int64_t credit_ns;
    enum turns_list list;
};

struct turns {
    TAILQ_HEAD(turns_users, turns_user) fresh, old;
    unsigned fresh_in_a_row; /* turns */
};

void turns_init(struct turns *turns);
void turns_user_init(struct turns_user *user);

/* Queues a member that has something to be served; a repeated call changes nothing. */
void turns_wait(struct turns *turns, struct turns_member *member);

/* Returns the member whose turn it is, which still waits; NULL when none waits. */
struct turns_member *turns_next(struct turns *turns);

/* Records that a member was served; `waits`: it has more to be served. */
void turns_served(struct turns *turns, struct turns_member *member, bool waits);

/* Records that the shard did this much for the user. */
void turns_charge(struct turns_user *user, uint64_t ns);

/* Takes a member out of the queue. */
void turns_leave(struct turns_member *member);

/* Call this before the memory of a user without members is reused. */
void turns_user_close(struct turns *turns, struct turns_user *user);

#endif
