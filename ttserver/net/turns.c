#include "ttserver/net/turns.h"

#include "common/err.h"

#include <stddef.h>

void turns_init(struct turns *turns)
{
    TAILQ_INIT(&turns->fresh);
    TAILQ_INIT(&turns->old);
    turns->fresh_in_a_row = 0;
}

void turns_user_init(struct turns_user *user)
{
    *user = (struct turns_user){.credit_ns = 0};
    TAILQ_INIT(&user->members);
}

static void unlist(struct turns *turns, struct turns_user *user)
{
    if (user->list == TURNS_NEW) {
        TAILQ_REMOVE(&turns->fresh, user, link);
    } else if (user->list == TURNS_OLD) {
        TAILQ_REMOVE(&turns->old, user, link);
    }
    user->list = TURNS_NONE;
}

static void to_old(struct turns *turns, struct turns_user *user)
{
    unlist(turns, user);
    TAILQ_INSERT_TAIL(&turns->old, user, link);
    user->list = TURNS_OLD;
}

void turns_wait(struct turns *turns, struct turns_member *member)
{
    struct turns_user *user = member->user;
    if (member->waits) {
        return;
    }
    member->waits = true;
    TAILQ_INSERT_TAIL(&user->members, member, link);
    if (user->list == TURNS_NONE) {
        TAILQ_INSERT_TAIL(&turns->fresh, user, link);
        user->list = TURNS_NEW;
    }
}

struct turns_member *turns_next(struct turns *turns)
{
    for (;;) {
        struct turns_user *fresh = TAILQ_FIRST(&turns->fresh), *old = TAILQ_FIRST(&turns->old);
        bool is_olds_turn = old != NULL && turns->fresh_in_a_row >= TURNS_OLD_EVERY - 1;
        struct turns_user *user = fresh == NULL || is_olds_turn ? old : fresh;
        if (user == NULL) {
            return NULL;
        }
        if (user->credit_ns <= 0) {
            user->credit_ns += TURNS_QUANTUM_NS;
            to_old(turns, user);
        } else if (!TAILQ_EMPTY(&user->members)) {
            CHECK_THAT(user->list != TURNS_NONE, "turns: who is served stands in a list");
            return TAILQ_FIRST(&user->members);
        } else if (user->list == TURNS_NEW) {
            to_old(turns, user); /* else it would be new again at once, and always first */
        } else {
            unlist(turns, user);
        }
    }
}

void turns_served(struct turns *turns, struct turns_member *member, bool waits)
{
    bool was_fresh = member->user->list == TURNS_NEW;
    turns->fresh_in_a_row = was_fresh ? turns->fresh_in_a_row + 1 : 0;
    turns_leave(member);
    if (waits) {
        turns_wait(turns, member); /* behind the user's others */
    }
}

void turns_charge(struct turns_user *user, uint64_t ns)
{
    user->credit_ns -= ns < 2 * TURNS_DEBT_NS ? (int64_t)ns : 2 * TURNS_DEBT_NS;
    if (user->credit_ns < -TURNS_DEBT_NS) {
        user->credit_ns = -TURNS_DEBT_NS;
    }
    CHECK_THAT(user->credit_ns <= TURNS_QUANTUM_NS, "turns: nobody saves turns up");
}

void turns_leave(struct turns_member *member)
{
    if (member->waits) {
        CHECK_THAT(!TAILQ_EMPTY(&member->user->members), "turns: who waits stands with its user");
        TAILQ_REMOVE(&member->user->members, member, link);
        member->waits = false;
    }
}

void turns_user_close(struct turns *turns, struct turns_user *user)
{
    CHECK_THAT(TAILQ_EMPTY(&user->members), "turns: who goes has nobody who waits");
    unlist(turns, user);
}
