#include "ttserver/core/user_table.h"

#include "common/rng.h"

#include <stdlib.h>
#include <string.h>

static uint32_t *home_of(const struct ttcore_users *u, uint64_t id)
{
    return &u->bucket[rng_mix(id ^ u->seed) * u->seed >> 32 & u->mask];
}

static uint32_t number_of(const struct ttcore_users *u, const struct ttcore_user *user)
{
    return (uint32_t)(user - u->slot) + 1;
}

static void idle_append(struct ttcore_users *u, struct ttcore_user *user)
{
    uint32_t self = number_of(u, user);
    user->newer = 0;
    user->older = u->idle_newest;
    *(u->idle_newest ? &u->slot[u->idle_newest - 1].newer : &u->idle_oldest) = self;
    u->idle_newest = self;
}

static void idle_remove(struct ttcore_users *u, const struct ttcore_user *user)
{
    *(user->older ? &u->slot[user->older - 1].newer : &u->idle_oldest) = user->newer;
    *(user->newer ? &u->slot[user->newer - 1].older : &u->idle_newest) = user->older;
}

enum err ttcore_users_open(struct ttcore_users *users, uint32_t sessions_max, uint64_t seed)
{
    struct ttcore_users fresh = {.max = sessions_max + 1, .seed = rng_mix(seed) | 1};
    uint32_t buckets = 4;
    while (buckets < 2 * fresh.max) {
        buckets *= 2;
    }
    fresh.mask = buckets - 1;
    fresh.slot = calloc(fresh.max, sizeof *fresh.slot);
    fresh.bucket = calloc(buckets, sizeof *fresh.bucket);
    if (fresh.slot == NULL || fresh.bucket == NULL) {
        ttcore_users_close(&fresh);
        return ERR_NOMEM;
    }
    for (uint32_t i = 0; i < fresh.max; i++) {
        idle_append(&fresh, &fresh.slot[i]);
    }
    *users = fresh;
    return ERR_OK;
}

void ttcore_users_close(struct ttcore_users *users)
{
    free(users->slot);
    free(users->bucket);
    memset(users, 0, sizeof *users);
}

static void forget(struct ttcore_users *u, struct ttcore_user *user)
{
    uint32_t *link = home_of(u, user->id), self = number_of(u, user);
    while (*link != self) {
        CHECK(*link != 0);
        link = &u->slot[*link - 1].chain;
    }
    *link = user->chain;
}

struct ttcore_user *ttcore_users_of(struct ttcore_users *u, uint64_t id, bool is_instance)
{
    uint32_t *home = home_of(u, id);
    for (uint32_t at = *home; at != 0; at = u->slot[at - 1].chain) {
        if (u->slot[at - 1].id == id) {
            return &u->slot[at - 1];
        }
    }
    struct ttcore_user *user = u->idle_oldest != 0 ? &u->slot[u->idle_oldest - 1] : NULL;
    if (user != NULL) {
        CHECK_THAT(user->sessions == 0 && user->workers == 0, "users: an idle one has no session");
        if (user->id != 0) {
            forget(u, user);
        }
        idle_remove(u, user);
        *user = (struct ttcore_user){.id = id, .is_instance = is_instance, .chain = *home};
        *home = number_of(u, user);
        idle_append(u, user);
    }
    return user;
}

static void check(const struct ttcore_users *u)
{
    CHECK_THAT(u->live < u->max, "users: one more than there can be sessions");
    CHECK_THAT(u->idle_oldest != 0 && u->idle_newest != 0, "users: who is not live is idle");
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
        idle_remove(u, user);
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
        idle_append(u, user);
        u->live--;
        check(u);
    }
}
