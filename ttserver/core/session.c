#include "ttserver/core/session.h"

#include "common/rng.h"

#include <stdlib.h>
#include <string.h>

static uint32_t *home_of(const struct ttcore_sessions *s, const uint8_t *route, size_t length)
{
    return &s->bucket[ttcore_route_hash(s->seed, route, length) & s->mask];
}

enum err ttcore_sessions_open(struct ttcore_sessions *sessions, uint32_t max, uint64_t seed)
{
    struct ttcore_sessions fresh = {.max = max, .seed = rng_mix(seed)};
    uint32_t buckets = 4;
    while (buckets < 2 * max) {
        buckets *= 2;
    }
    while (UINT32_C(1) << fresh.slot_bits < max) {
        fresh.slot_bits++;
    }
    fresh.mask = buckets - 1;
    fresh.slot = calloc(max, sizeof *fresh.slot);
    fresh.bucket = calloc(buckets, sizeof *fresh.bucket);
    fresh.mail_bucket = calloc(buckets, sizeof *fresh.mail_bucket);
    fresh.worker_index = calloc(max, sizeof *fresh.worker_index);
    if (fresh.slot == NULL || fresh.bucket == NULL || fresh.mail_bucket == NULL ||
        fresh.worker_index == NULL) {
        ttcore_sessions_close(&fresh);
        return ERR_NOMEM;
    }
    for (uint32_t i = max; i >= 1; i--) {
        fresh.slot[i - 1].newer = fresh.first_free;
        fresh.first_free = i;
    }
    *sessions = fresh;
    return ERR_OK;
}

void ttcore_sessions_close(struct ttcore_sessions *sessions)
{
    free(sessions->slot);
    free(sessions->bucket);
    free(sessions->mail_bucket);
    free(sessions->worker_index);
    memset(sessions, 0, sizeof *sessions);
}

struct ttcore_session *ttcore_sessions_find(const struct ttcore_sessions *s, const uint8_t *route,
                                            size_t length)
{
    for (uint32_t at = *home_of(s, route, length); at != 0; at = s->slot[at - 1].chain) {
        struct ttcore_session *session = &s->slot[at - 1];
        if (session->route_length == length && memcmp(session->route, route, length) == 0) {
            return session;
        }
    }
    return NULL;
}

struct ttcore_session *ttcore_sessions_by_id(const struct ttcore_sessions *s, uint32_t id)
{
    uint32_t slot = id & ((UINT32_C(1) << s->slot_bits) - 1);
    return id != 0 && slot < s->max && s->slot[slot].id == id ? &s->slot[slot] : NULL;
}

static void age_append(struct ttcore_sessions *s, struct ttcore_session *session, uint64_t now_us)
{
    uint32_t self = ttcore_sessions_slot(s, session) + 1;
    session->last_seen_us = now_us;
    session->newer = 0;
    session->older = s->newest;
    *(s->newest ? &s->slot[s->newest - 1].newer : &s->oldest) = self;
    s->newest = self;
}

static void age_unlink(struct ttcore_sessions *s, const struct ttcore_session *session)
{
    *(session->older ? &s->slot[session->older - 1].newer : &s->oldest) = session->newer;
    *(session->newer ? &s->slot[session->newer - 1].older : &s->newest) = session->older;
}

static void check(const struct ttcore_sessions *s)
{
    uint32_t of_roles = 0;
    for (unsigned role = 0; role <= PROTO_MONITOR; role++) {
        of_roles += s->of_role[role];
    }
    CHECK_THAT(of_roles == s->live, "sessions: each has one role");
    CHECK_THAT((s->live > 0) == (s->oldest != 0) && (s->live > 0) == (s->newest != 0),
               "sessions: those alive are those listed by silence");
    CHECK_THAT((s->live < s->max) == (s->first_free != 0), "sessions: a slot is live or free");
}

struct ttcore_session *ttcore_sessions_add(struct ttcore_sessions *s, const uint8_t *route,
                                           size_t length, uint64_t now_us)
{
    uint32_t self = s->first_free;
    CHECK(length >= 1 && length <= TTCORE_ROUTE_MAX);
    if (self == 0) {
        return NULL;
    }
    struct ttcore_session *session = &s->slot[self - 1];
    CHECK_THAT(session->id == 0, "sessions: a slot in the free list is free");
    uint32_t serial = (session->serial + 1) & (UINT32_MAX >> s->slot_bits);
    serial = serial != 0 ? serial : 1;
    s->first_free = session->newer;
    *session = (struct ttcore_session){
        .id = serial << s->slot_bits | (self - 1),
        .serial = serial,
        .role = PROTO_CLIENT,
        .route_length = (uint8_t)length,
    };
    memcpy(session->route, route, length);
    uint32_t *home = home_of(s, route, length);
    session->chain = *home;
    *home = self;
    age_append(s, session, now_us);
    s->of_role[PROTO_CLIENT]++;
    s->live++;
    check(s);
    return session;
}

/* ---- roles and worker indexes ---- */

static void sit(struct ttcore_sessions *s, uint32_t slot, uint32_t worker_index)
{
    s->worker_index[worker_index] = slot;
    s->slot[slot].worker_index = worker_index;
}

static struct ttcore_user *user_at(const struct ttcore_sessions *s, uint32_t worker_index)
{
    return s->slot[s->worker_index[worker_index]].user;
}

/* Each user's workers sit side by side. Room behind them is made by the first of each later user,
 * who becomes its last: so one of each moves, and no run of a user is torn apart. */
static void sit_down(struct ttcore_sessions *s, const struct ttcore_session *session)
{
    struct ttcore_user *user = session->user;
    uint32_t room = s->of_role[PROTO_WORKER];
    CHECK_THAT(room < s->live, "sessions: one more worker has a place");
    if (user->workers == 0) {
        user->first_worker = room;
    }
    while (room > user->first_worker + user->workers) {
        struct ttcore_user *last = user_at(s, room - 1);
        sit(s, s->worker_index[last->first_worker], room);
        room = last->first_worker++;
    }
    CHECK_THAT(room == user->first_worker + user->workers,
               "sessions: a user's workers sit side by side");
    sit(s, ttcore_sessions_slot(s, session), room);
    s->workers_counted += user->workers++ < TTCORE_POST_WORKERS;
}

/* `left`: workers without this one. A user that had but one leaves its place to the last user, if
 * that has but one too: then nobody else moves. */
static void stand_up(struct ttcore_sessions *s, const struct ttcore_session *session, uint32_t left)
{
    struct ttcore_user *user = session->user;
    CHECK_THAT(session->worker_index - user->first_worker < user->workers,
               "sessions: a worker sits among its user's");
    CHECK_THAT(s->worker_index[session->worker_index] == ttcore_sessions_slot(s, session),
               "sessions: a worker sits where it says");
    uint32_t gap = user->first_worker + --user->workers;
    s->workers_counted -= user->workers < TTCORE_POST_WORKERS;
    sit(s, s->worker_index[gap], session->worker_index);
    if (user->workers == 0 && gap < left && user_at(s, left)->workers == 1) {
        user_at(s, left)->first_worker = gap;
        sit(s, s->worker_index[left], gap);
        return;
    }
    while (gap < left) {
        struct ttcore_user *next = user_at(s, gap + 1);
        next->first_worker = gap;
        uint32_t last = gap + next->workers;
        sit(s, s->worker_index[last], gap);
        gap = last;
    }
}

static void role_take(struct ttcore_sessions *s, struct ttcore_session *session)
{
    CHECK_THAT(s->of_role[session->role] > 0, "sessions: its role counts it");
    uint32_t left = --s->of_role[session->role];
    if (session->role == PROTO_WORKER) {
        stand_up(s, session, left);
    }
}

static void role_give(struct ttcore_sessions *s, struct ttcore_session *session, uint8_t role)
{
    if (role == PROTO_WORKER) {
        sit_down(s, session);
    }
    session->role = role;
    s->of_role[role]++;
}

/* ---- who wants results ---- */

static unsigned wanting_bucket(const struct ttcore_sessions *s, uint64_t namespace_id)
{
    return rng_mix(namespace_id ^ s->seed) % TTCORE_NAMESPACE_BUCKETS;
}

static void want_append(struct ttcore_sessions *s, struct ttcore_session *session)
{
    unsigned b = wanting_bucket(s, session->namespace_id);
    uint32_t self = ttcore_sessions_slot(s, session) + 1, last = s->wanting[b].last;
    session->want_next = 0;
    session->want_prev = last;
    *(last ? &s->slot[last - 1].want_next : &s->wanting[b].first) = self;
    s->wanting[b].last = self;
}

static void want_remove(struct ttcore_sessions *s, const struct ttcore_session *session)
{
    unsigned b = wanting_bucket(s, session->namespace_id);
    uint32_t next = session->want_next, prev = session->want_prev;
    *(prev ? &s->slot[prev - 1].want_next : &s->wanting[b].first) = next;
    *(next ? &s->slot[next - 1].want_prev : &s->wanting[b].last) = prev;
}

void ttcore_sessions_want(struct ttcore_sessions *s, struct ttcore_session *session, bool wants)
{
    if (session->is_wanting) {
        want_remove(s, session);
    }
    if (wants) {
        want_append(s, session);
    }
    session->is_wanting = wants;
}

struct ttcore_session *ttcore_sessions_next_wanting(struct ttcore_sessions *s,
                                                    uint64_t namespace_id)
{
    uint32_t first = s->wanting[wanting_bucket(s, namespace_id)].first;
    struct ttcore_session *session = first != 0 ? &s->slot[first - 1] : NULL;
    if (session != NULL) {
        want_remove(s, session);
        want_append(s, session);
    }
    return session;
}

/* ---- who gets letters ---- */

static uint32_t *mail_home(const struct ttcore_sessions *s, uint64_t job, uint64_t alias)
{
    return &s->mail_bucket[rng_mix(rng_mix(job ^ s->seed) ^ alias) & s->mask];
}

void ttcore_sessions_set_mail(struct ttcore_sessions *s, struct ttcore_session *session,
                              uint64_t job)
{
    uint32_t self = ttcore_sessions_slot(s, session) + 1;
    if (session->mail_job == job) {
        return;
    }
    if (session->mail_job != 0) {
        uint32_t *link = mail_home(s, session->mail_job, session->alias);
        while (*link != self) {
            CHECK(*link != 0);
            link = &s->slot[*link - 1].mail_next;
        }
        *link = session->mail_next;
    }
    session->mail_job = job;
    if (job != 0) {
        uint32_t *home = mail_home(s, job, session->alias);
        session->mail_next = *home;
        *home = self;
    }
}

struct ttcore_session *ttcore_sessions_find_mail(const struct ttcore_sessions *s, uint64_t job,
                                                 uint64_t alias)
{
    uint32_t at = *mail_home(s, job, alias);
    while (at != 0 && (s->slot[at - 1].mail_job != job || s->slot[at - 1].alias != alias)) {
        at = s->slot[at - 1].mail_next;
    }
    return at != 0 ? &s->slot[at - 1] : NULL;
}

void ttcore_sessions_remove(struct ttcore_sessions *s, struct ttcore_session *session)
{
    uint32_t self = ttcore_sessions_slot(s, session) + 1;
    uint32_t *link = home_of(s, session->route, session->route_length);
    CHECK(session->id != 0);
    while (*link != self) {
        CHECK(*link != 0);
        link = &s->slot[*link - 1].chain;
    }
    *link = session->chain;
    ttcore_sessions_want(s, session, false);
    ttcore_sessions_set_mail(s, session, 0);
    age_unlink(s, session);
    role_take(s, session);
    s->live--;
    session->id = 0;
    session->newer = s->first_free;
    s->first_free = self;
    check(s);
}

void ttcore_sessions_set_role(struct ttcore_sessions *s, struct ttcore_session *session,
                              uint8_t role)
{
    CHECK(role <= PROTO_MONITOR);
    if (session->role != role) {
        role_take(s, session);
        role_give(s, session, role);
        check(s);
    }
}

void ttcore_sessions_set_user(struct ttcore_sessions *s, struct ttcore_session *session,
                              struct ttcore_user *user)
{
    uint8_t role = session->role;
    role_take(s, session);
    session->user = user;
    role_give(s, session, role);
}

void ttcore_sessions_touch(struct ttcore_sessions *s, struct ttcore_session *session,
                           uint64_t now_us)
{
    age_unlink(s, session);
    age_append(s, session, now_us);
}

struct ttcore_session *ttcore_sessions_oldest(const struct ttcore_sessions *s)
{
    return s->oldest != 0 ? &s->slot[s->oldest - 1] : NULL;
}

struct ttcore_session *ttcore_sessions_next(const struct ttcore_sessions *s,
                                            const struct ttcore_session *session)
{
    return session->newer != 0 ? &s->slot[session->newer - 1] : NULL;
}
