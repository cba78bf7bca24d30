#include "ttserver/core/session_table.h"

#include "common/rng.h"

#include <stdlib.h>
#include <string.h>

static struct ttcore_session_chain *home_of(const struct ttcore_sessions *s, const uint8_t *route,
                                            size_t length)
{
    return &s->bucket[ttcore_route_hash(s->seed, route, length) & s->mask];
}

enum err ttcore_sessions_open(struct ttcore_sessions *s, uint32_t max, uint64_t seed)
{
    uint32_t buckets = 4;
    while (buckets < 2 * max) {
        buckets *= 2;
    }
    *s = (struct ttcore_sessions){.max = max, .mask = buckets - 1, .seed = rng_mix(seed)};
    while (UINT32_C(1) << s->slot_bits < max) {
        s->slot_bits++;
    }
    s->slot = calloc(max, sizeof *s->slot);
    s->bucket = calloc(buckets, sizeof *s->bucket);
    s->mail_bucket = calloc(buckets, sizeof *s->mail_bucket);
    s->worker_index = calloc(max, sizeof *s->worker_index);
    if (s->slot == NULL || s->bucket == NULL || s->mail_bucket == NULL || s->worker_index == NULL) {
        ttcore_sessions_close(s);
        return ERR_NOMEM;
    }
    TAILQ_INIT(&s->free);
    TAILQ_INIT(&s->by_silence);
    for (uint32_t i = 0; i < max; i++) {
        TAILQ_INSERT_TAIL(&s->free, &s->slot[i], link);
    }
    for (uint32_t i = 0; i < TTCORE_NAMESPACE_BUCKETS; i++) {
        TAILQ_INIT(&s->wanting[i]);
    }
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
    struct ttcore_session *session = LIST_FIRST(home_of(s, route, length));
    while (session != NULL &&
           (session->route_length != length || memcmp(session->route, route, length) != 0)) {
        session = LIST_NEXT(session, by_route);
    }
    return session;
}

struct ttcore_session *ttcore_sessions_by_id(const struct ttcore_sessions *s, uint32_t id)
{
    uint32_t slot = id & ((UINT32_C(1) << s->slot_bits) - 1);
    return id != 0 && slot < s->max && s->slot[slot].id == id ? &s->slot[slot] : NULL;
}

static void check(const struct ttcore_sessions *s)
{
    uint32_t of_roles = 0;
    for (unsigned role = 0; role <= PROTO_MONITOR; role++) {
        of_roles += s->of_role[role];
    }
    CHECK_THAT(of_roles == s->live, "sessions: each has one role");
    CHECK_THAT((s->live == 0) == TAILQ_EMPTY(&s->by_silence),
               "sessions: those alive are those listed by silence");
    CHECK_THAT((s->live == s->max) == TAILQ_EMPTY(&s->free), "sessions: a slot is live or free");
}

struct ttcore_session *ttcore_sessions_add(struct ttcore_sessions *s, const uint8_t *route,
                                           size_t length, uint64_t now_us)
{
    struct ttcore_session *session = TAILQ_FIRST(&s->free);
    CHECK(length >= 1 && length <= TTCORE_ROUTE_MAX);
    if (session == NULL) {
        return NULL;
    }
    CHECK_THAT(session->id == 0, "sessions: a slot in the free list is free");
    uint32_t serial = (session->serial + 1) & (UINT32_MAX >> s->slot_bits);
    serial = serial != 0 ? serial : 1;
    TAILQ_REMOVE(&s->free, session, link);
    *session = (struct ttcore_session){
        .id = serial << s->slot_bits | ttcore_sessions_slot(s, session),
        .serial = serial,
        .role = PROTO_CLIENT,
        .last_seen_us = now_us,
        .route_length = (uint8_t)length,
    };
    memcpy(session->route, route, length);
    LIST_INSERT_HEAD(home_of(s, route, length), session, by_route);
    TAILQ_INSERT_TAIL(&s->by_silence, session, link);
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

static struct ttcore_session_queue *wanting(struct ttcore_sessions *s, uint64_t namespace_id)
{
    return &s->wanting[rng_mix(namespace_id ^ s->seed) % TTCORE_NAMESPACE_BUCKETS];
}

void ttcore_sessions_want(struct ttcore_sessions *s, struct ttcore_session *session, bool wants)
{
    struct ttcore_session_queue *queue = wanting(s, session->namespace_id);
    if (session->is_wanting) {
        TAILQ_REMOVE(queue, session, by_want);
    }
    if (wants) {
        TAILQ_INSERT_TAIL(queue, session, by_want);
    }
    session->is_wanting = wants;
}

struct ttcore_session *ttcore_sessions_next_wanting(struct ttcore_sessions *s,
                                                    uint64_t namespace_id)
{
    struct ttcore_session *session = TAILQ_FIRST(wanting(s, namespace_id));
    if (session != NULL) {
        ttcore_sessions_want(s, session, true);
    }
    return session;
}

/* ---- who gets letters ---- */

static struct ttcore_session_chain *mail_home(const struct ttcore_sessions *s, uint64_t job,
                                              uint64_t alias)
{
    return &s->mail_bucket[rng_mix(rng_mix(job ^ s->seed) ^ alias) & s->mask];
}

void ttcore_sessions_set_mail(struct ttcore_sessions *s, struct ttcore_session *session,
                              uint64_t job)
{
    if (session->mail_job == job) {
        return;
    }
    if (session->mail_job != 0) {
        LIST_REMOVE(session, by_mail);
    }
    session->mail_job = job;
    if (job != 0) {
        LIST_INSERT_HEAD(mail_home(s, job, session->alias), session, by_mail);
    }
}

struct ttcore_session *ttcore_sessions_find_mail(const struct ttcore_sessions *s, uint64_t job,
                                                 uint64_t alias)
{
    struct ttcore_session *session = LIST_FIRST(mail_home(s, job, alias));
    while (session != NULL && (session->mail_job != job || session->alias != alias)) {
        session = LIST_NEXT(session, by_mail);
    }
    return session;
}

void ttcore_sessions_remove(struct ttcore_sessions *s, struct ttcore_session *session)
{
    CHECK(session->id != 0);
    ttcore_sessions_want(s, session, false);
    ttcore_sessions_set_mail(s, session, 0);
    LIST_REMOVE(session, by_route);
    TAILQ_REMOVE(&s->by_silence, session, link);
    TAILQ_INSERT_HEAD(&s->free, session, link);
    role_take(s, session);
    s->live--;
    session->id = 0;
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
    TAILQ_REMOVE(&s->by_silence, session, link);
    TAILQ_INSERT_TAIL(&s->by_silence, session, link);
    session->last_seen_us = now_us;
}
