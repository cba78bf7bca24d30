/* turns: who is served next, so that no user takes more than a share while others wait.
 *
 * Deficit round robin (Shreedhar, Varghese 1995) by user, over the time that serving took, with the
 * lists of fq_codel (RFC 8290): a user who begins to wait is served before those who always wait,
 * for one quantum. So a lone ask does not queue behind a flood, and who is alone gets everything.
 * One turn in TURNS_OLD_EVERY is for those who always wait, and a user who was never served begins
 * among them: so a flood of new users does not keep the others out. A user's connections take turns
 * among themselves. Pure. Threads: one at a time. Memory: the caller's; users and members are
 * linked in place. All O(1). */
#ifndef TTSERVER_NET_TURNS_H
#define TTSERVER_NET_TURNS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

enum {
    TURNS_QUANTUM_NS = 50000, /* a batch of a thousand operations, about */
    TURNS_DEBT_NS = 100 * TURNS_QUANTUM_NS, /* most that a user can owe of the next turns */
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

/* The member has something to be served; a repeated call changes nothing. */
void turns_wait(struct turns *turns, struct turns_member *member);

/* Whose turn it is, still waiting; NULL when nobody waits. */
struct turns_member *turns_next(struct turns *turns);

/* It was served; `waits` says whether there is more to serve. */
void turns_served(struct turns *turns, struct turns_member *member, bool waits);

/* Records that the shard did this much for the user. */
void turns_charge(struct turns_user *user, uint64_t ns);

/* The member waits no more. */
void turns_leave(struct turns_member *member);

/* Before the memory of a user without members is reused. */
void turns_user_close(struct turns *turns, struct turns_user *user);

#endif
