#include "ttserver/core/user_table.h"

#include "common/rng.h"

#include <stdlib.h>
#include <string.h>

static struct ttcore_user_chain *home_of(const struct ttcore_users *u, uint64_t id)
{
    return &u->bucket[rng_mix(id ^ u->seed) * u->seed >> 32 & u->mask];
}

enum err ttcore_users_open(struct ttcore_users *u, uint32_t sessions_max, uint64_t seed)
{
    const uint32_t max = sessions_max + 1;
    uint32_t buckets = 4;
    while (buckets < 2 * max) {
        buckets *= 2;
    }
    *u = (struct ttcore_users){.max = max, .mask = buckets - 1, .seed = rng_mix(seed) | 1};
    u->slot = calloc(max, sizeof *u->slot);
    u->bucket = calloc(buckets, sizeof *u->bucket);
    if (u->slot == NULL || u->bucket == NULL) {
        ttcore_users_close(u);
        return ERR_NOMEM;
    }
    TAILQ_INIT(&u->idle);
    for (uint32_t i = 0; i < max; i++) {
        TAILQ_INSERT_TAIL(&u->idle, &u->slot[i], by_idleness);
    }
    return ERR_OK;
}

void ttcore_users_close(struct ttcore_users *users)
{
    free(users->slot);
    free(users->bucket);
    memset(users, 0, sizeof *users);
}

struct ttcore_user *ttcore_users_of(struct ttcore_users *u, uint64_t id, bool is_instance)
{
    struct ttcore_user *user = LIST_FIRST(home_of(u, id));
    while (user != NULL && user->id != id) {
        user = LIST_NEXT(user, by_id);
    }
    if (user == NULL && (user = TAILQ_FIRST(&u->idle)) != NULL) {
        CHECK_THAT(user->sessions == 0 && user->workers == 0, "users: an idle one has no session");
        TAILQ_REMOVE(&u->idle, user, by_idleness);
        if (user->id != 0) { /* it is forgotten */
            LIST_REMOVE(user, by_id);
        }
        *user = (struct ttcore_user){.id = id, .is_instance = is_instance};
        LIST_INSERT_HEAD(home_of(u, id), user, by_id);
        TAILQ_INSERT_TAIL(&u->idle, user, by_idleness);
    }
    return user;
}

static void check(const struct ttcore_users *u)
{
    CHECK_THAT(u->live < u->max, "users: one more than there can be sessions");
    CHECK_THAT(!TAILQ_EMPTY(&u->idle), "users: who is not live is idle");
}

static void advance(uint64_t *time, uint64_t to)
{
    *time = *time > to ? *time : to;
}

void ttcore_users_join(struct ttcore_users *u, struct ttcore_user *user)
{
    if (user->is_instance) {
        advance(&user->posts_us, u->left_posts_us);
        advance(&user->pushes_us, u->left_pushes_us);
        advance(&user->shared_until_ns, u->left_shared_until_ns);
    }
    if (user->sessions++ == 0) {
        TAILQ_REMOVE(&u->idle, user, by_idleness);
        u->live++;
        check(u);
    }
}

void ttcore_users_leave(struct ttcore_users *u, struct ttcore_user *user)
{
    CHECK_THAT(user->sessions > 0 && u->live > 0, "users: who leaves was there");
    if (user->is_instance) {
        advance(&u->left_posts_us, user->posts_us);
        advance(&u->left_pushes_us, user->pushes_us);
        advance(&u->left_shared_until_ns, user->shared_until_ns);
    }
    if (--user->sessions == 0) {
        CHECK_THAT(user->jobs == 0, "users: no job outlives the sessions of its user");
        CHECK_THAT(user->inflight == 0, "users: nothing in flight outlives the sessions");
        TAILQ_INSERT_TAIL(&u->idle, user, by_idleness);
        u->live--;
        check(u);
    }
}
