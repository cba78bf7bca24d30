#include "ttserver/net/who.h"

#include "common/log.h"
#include "common/rng.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    LOG_EVERY_US = 10000000, /* refusals */
    MAY_ALL = TTCORE_MAY_WORK | TTCORE_MAY_POST | TTCORE_MAY_USE_TABLE | TTCORE_MAY_READ_STATISTICS,
};

/* ---- who may connect ---- */

static enum err read_list(const char *dir, struct who_list **out, unsigned *skipped,
                          char why[KEYS_WHY_MAX])
{
    struct who_list *list = calloc(1, sizeof *list);
    if (list == NULL) {
        memcpy(why, "out of memory", sizeof "out of memory");
        return ERR_NOMEM;
    }
    enum err err = keys_load_allowed(dir, &list->user, &list->count, skipped, why);
    if (err != ERR_OK) {
        free(list);
        return err;
    }
    list->holders = 1;
    *out = list;
    return ERR_OK;
}

enum err who_open(struct who *access, const char *dir, char why[KEYS_WHY_MAX])
{
    memset(access, 0, sizeof *access);
    pthread_mutex_init(&access->lock, NULL);
    if (dir == NULL) {
        return ERR_OK;
    }
    enum err err = keys_load_server(dir, &access->server, why);
    err = err ? err : read_list(dir, &access->now, NULL, why);
    access->dir = err == ERR_OK ? dir : NULL;
    return err;
}

void who_close(struct who *access)
{
    who_put(access, access->now);
    access->now = NULL;
    access->dir = NULL;
    keys_wipe(access->server.secret_key, sizeof access->server.secret_key);
}

enum err who_reread(struct who *access, unsigned *skipped, char why[KEYS_WHY_MAX])
{
    struct who_list *fresh, *old;
    enum err err = read_list(access->dir, &fresh, skipped, why);
    if (err == ERR_OK) {
        pthread_mutex_lock(&access->lock);
        old = access->now;
        access->now = fresh;
        pthread_mutex_unlock(&access->lock);
        who_put(access, old);
    }
    return err;
}

struct who_list *who_get(struct who *access)
{
    pthread_mutex_lock(&access->lock);
    struct who_list *list = access->now;
    if (list != NULL) {
        list->holders++;
    }
    pthread_mutex_unlock(&access->lock);
    return list;
}

void who_put(struct who *access, struct who_list *list)
{
    if (list == NULL) {
        return;
    }
    pthread_mutex_lock(&access->lock);
    bool is_last = --list->holders == 0;
    pthread_mutex_unlock(&access->lock);
    if (is_last) {
        free(list->user);
        free(list);
    }
}

/* ---- who it is ---- */

static const uint32_t may[KEYS_ROLES] = {
    [KEYS_WORKER] = TTCORE_MAY_WORK | TTCORE_MAY_USE_TABLE | TTCORE_MAY_READ_STATISTICS,
    [KEYS_FRONT] = TTCORE_MAY_POST | TTCORE_MAY_USE_TABLE | TTCORE_MAY_READ_STATISTICS,
    [KEYS_MONITOR] = TTCORE_MAY_READ_STATISTICS,
    [KEYS_ADMINISTRATOR] = MAY_ALL | TTCORE_MAY_STOP_ANY_JOB | TTCORE_MAY_FLUSH,
};

static uint64_t number_of(const void *bytes, size_t words)
{
    uint64_t number = 0;
    for (size_t i = 0; i < words; i++) {
        uint64_t word;
        memcpy(&word, (const uint8_t *)bytes + i * sizeof word, sizeof word);
        number = rng_mix(number ^ word);
    }
    return number | 1; /* 0 says "not known" */
}

uint64_t who_by_key(struct connection *c, const struct keys_user *user)
{
    c->has_key = true;
    memcpy(c->key, user->public_key, sizeof c->key);
    c->key_role = user->role;
    snprintf(c->name, sizeof c->name, "%s", user->name);
    c->peer = (struct ttcore_peer){.may = may[user->role], .name = c->name};
    return number_of(c->key, sizeof c->key / sizeof(uint64_t));
}

uint64_t who_by_address(struct connection *c, const struct in6_addr *from)
{
    bool is_v4 = IN6_IS_ADDR_V4MAPPED(from);
    c->peer = (struct ttcore_peer){.may = MAY_ALL | TTCORE_MAY_FLUSH, .name = c->name};
    inet_ntop(is_v4 ? AF_INET : AF_INET6, is_v4 ? &from->s6_addr[12] : &from->s6_addr[0], c->name,
              sizeof c->name);
    if (IN6_IS_ADDR_LOOPBACK(from) || (is_v4 && from->s6_addr[12] == 127)) {
        return 0;
    }
    /* A machine may take any address of its IPv6 network. */
    return number_of(from, is_v4 ? 2 : 1);
}

/* ---- users ---- */

static struct who_user **bucket_of(struct who_users *users, uint64_t number)
{
    return &users->bucket[rng_mix(number ^ users->seed) % WHO_BUCKETS];
}

void who_release(struct who_users *users, struct who_user *entry)
{
    if (entry == NULL || --entry->connections > 0) {
        return;
    }
    struct who_user **link = bucket_of(users, entry->number);
    while (*link != entry) {
        link = &(*link)->chain;
    }
    *link = entry->chain;
    turns_user_close(users->turns, &entry->turns);
    free(entry);
}

static uint32_t *pending_of(struct who_users *users, const struct connection *c)
{
    return c->shared != NULL ? &c->shared->pending : &users->pending;
}

void who_set_pending(struct who_users *users, struct connection *c, bool is_pending)
{
    *pending_of(users, c) -= c->is_pending;
    *pending_of(users, c) += is_pending;
    c->is_pending = is_pending;
}

struct connection *who_draw_pending(struct who_users *users, struct connection *const *connection,
                                    uint32_t count, uint64_t *rng)
{
    struct connection *drawn = connection[rng_below(rng, count)];
    for (unsigned i = 1; i < WHO_DRAWN; i++) {
        struct connection *c = connection[rng_below(rng, count)];
        drawn = *pending_of(users, c) > *pending_of(users, drawn) ? c : drawn;
    }
    return drawn;
}

void who_join(struct who_users *users, struct connection *c, uint64_t number)
{
    if (number == 0) {
        return;
    }
    struct who_user **bucket = bucket_of(users, number), *entry = *bucket, *last = c->shared;
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
    who_release(users, last);
}

void who_leave(struct who_users *users, struct connection *c)
{
    who_set_pending(users, c, false);
    turns_leave(&c->turn);
    turns_user_close(users->turns, &c->own);
    who_release(users, c->shared);
    c->shared = NULL;
}

static size_t held_by_user(const struct connection *c)
{
    return c->shared != NULL ? c->shared->held : connection_held(c);
}

struct connection *who_largest(struct connection *const *connection, uint32_t count)
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
        size_t most = largest != NULL ? held_by_user(largest) : 0;
        if (c != NULL &&
            (largest == NULL || held_by_user(c) > most ||
             (held_by_user(c) == most && connection_held(c) > connection_held(largest)))) {
            largest = c;
        }
    }
    return largest;
}

/* ---- handshakes that failed ---- */

void who_refused(struct who_refusals *r, const struct connection *c, const char *why)
{
    memcpy(r->from, c->name, sizeof r->from);
    r->why = why;
}

void who_log_refusals(struct who_refusals *r, const char *program, uint64_t count, uint64_t now_us)
{
    uint64_t more = count - r->logged;
    if (program != NULL && more > 0 && (r->logged == 0 || now_us - r->logged_us >= LOG_EVERY_US)) {
        log_line(program, "%" PRIu64 " connection%s refused, the last from %s: %s", more,
                 more == 1 ? "" : "s", r->from, r->why);
        r->logged = count;
        r->logged_us = now_us;
    }
}
