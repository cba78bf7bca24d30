#include "ttserver/net/users.h"

#include "common/rng.h"

#include <stdlib.h>

static struct users_entry **bucket_of(struct users *users, uint64_t number)
{
    return &users->bucket[rng_mix(number ^ users->seed) % USERS_BUCKETS];
}

void users_pin(struct users_entry *entry)
{
    if (entry != NULL) {
        entry->connections++;
    }
}

void users_release(struct users *users, struct turns *turns, struct users_entry *entry)
{
    if (entry == NULL || --entry->connections > 0) {
        return;
    }
    struct users_entry **link = bucket_of(users, entry->number);
    while (*link != entry) {
        link = &(*link)->chain;
    }
    *link = entry->chain;
    turns_user_close(turns, &entry->turns);
    free(entry);
}

static uint32_t *pending_of(struct users *users, const struct connection *c)
{
    return c->shared != NULL ? &c->shared->pending : &users->pending;
}

void users_set_pending(struct users *users, struct connection *c, bool is_pending)
{
    *pending_of(users, c) -= c->is_pending;
    *pending_of(users, c) += is_pending;
    c->is_pending = is_pending;
}

struct connection *users_draw_pending(struct users *users, struct connection *const *connection,
                                      uint32_t count, uint64_t *rng)
{
    struct connection *drawn = connection[rng_below(rng, count)];
    for (unsigned i = 1; i < USERS_DRAWN; i++) {
        struct connection *c = connection[rng_below(rng, count)];
        drawn = *pending_of(users, c) > *pending_of(users, drawn) ? c : drawn;
    }
    return drawn;
}

void users_join(struct users *users, struct turns *turns, struct connection *c, uint64_t number)
{
    if (number == 0) {
        return;
    }
    struct users_entry **bucket = bucket_of(users, number), *entry = *bucket, *last = c->shared;
    while (entry != NULL && entry->number != number) {
        entry = entry->chain;
    }
    if (entry == NULL) {
        entry = calloc(1, sizeof *entry);
        if (entry == NULL) {
            c->is_broken = true;
            return;
        }
        turns_user_init(&entry->turns);
        entry->number = number;
        entry->chain = *bucket;
        *bucket = entry;
    }
    entry->connections++;
    turns_leave(&c->turn);
    c->turn.user = &entry->turns;
    *pending_of(users, c) -= c->is_pending;
    c->shared = entry;
    *pending_of(users, c) += c->is_pending;
    c->peer.user = number;
    users_release(users, turns, last);
}

void users_leave(struct users *users, struct turns *turns, struct connection *c)
{
    users_set_pending(users, c, false);
    turns_leave(&c->turn);
    turns_user_close(turns, &c->own);
    users_release(users, turns, c->shared);
    c->shared = NULL;
}

static size_t held_by_user(const struct connection *c)
{
    return c->shared != NULL ? c->shared->held : connection_held(c);
}

static bool is_larger(const struct connection *c, const struct connection *than)
{
    size_t of_user = held_by_user(c), of_other = held_by_user(than);
    return of_user != of_other ? of_user > of_other : connection_held(c) > connection_held(than);
}

struct connection *users_largest(struct connection *const *connection, uint32_t count)
{
    struct connection *largest = NULL;
    for (uint32_t i = 0; i < count; i++) {
        if (connection[i] != NULL && connection[i]->shared != NULL) {
            connection[i]->shared->held = 0;
        }
    }
    for (uint32_t i = 0; i < count; i++) {
        if (connection[i] != NULL && connection[i]->shared != NULL) {
            connection[i]->shared->held += connection_held(connection[i]);
        }
    }
    for (uint32_t i = 0; i < count; i++) {
        struct connection *c = connection[i];
        if (c != NULL && (largest == NULL || is_larger(c, largest))) {
            largest = c;
        }
    }
    return largest;
}
