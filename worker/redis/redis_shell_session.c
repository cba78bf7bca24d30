/* Sessions over Redis: HELLO, their renewal, BYE. A session is a key that expires; who is not
 * renewed in time is in no node any more. */
#include "worker/redis/redis_shell_state.h"

#include "common/clock.h"
#include "common/rng.h"
#include "proto/alias.h"

#include <stdio.h>
#include <string.h>

/* The call of REDIS_SESSION with its record (redis_script.h says what is in it): for a session, or
 * the one that begins if there is none. */
static bool call_session(struct redis_shell *s, const struct redis_pending *p)
{
    size_t name = strlen(s->client_name);
    memcpy(s->ops, s->token, REDIS_TOKEN_BYTES);
    uint8_t *to = redis_put(s->ops + REDIS_TOKEN_BYTES, s->flags, 1);
    to = redis_put(to, s->role, 1);
    to = redis_put(to, s->table_id, 8);
    to = redis_put(to, s->searches, 8);
    to = redis_put(to, (uint32_t)proto_alias(s->instance), 4);
    memcpy(to, s->client_name, name);
    s->body = s->ops;
    s->body_length = REDIS_SESSION_BYTES + name;
    if (!redis_shell_call(s, p)) {
        return false;
    }
    s->shard[p->shard].renewed_us = clock_us();
    return true;
}

static bool end_session(struct redis_shell *s, unsigned shard, uint32_t session)
{
    struct redis_pending p = redis_shell_pending(s, shard, REDIS_BYE, 0, 0);
    p.session = session;
    return redis_shell_call(s, &p);
}

/* The end of a session takes all that it has in flight with it: so HELLO's flag "release all" is
 * another session. HELLOs that are said again, because the answer is late, all offer the same fresh
 * id: together they begin one session. */
bool redis_on_hello(struct redis_shell *s, unsigned shard, const struct proto_message *m)
{
    struct redis_shard *of = &s->shard[shard];
    const struct proto_hello *hello = &m->hello;
    s->role = hello->role;
    s->flags = hello->flags & (PROTO_WANTS_NODE_DONE | PROTO_WANTS_RESULTS);
    s->namespace_id = hello->namespace_id;
    s->instance = hello->instance;
    s->table_id = hello->table_id;
    proto_text_copy(hello->name, s->client_name, sizeof s->client_name);
    if (s->role == PROTO_WORKER && !s->is_listening) {
        s->is_listening = redis_link_subscribe(s->link, "abdada:w");
    }
    bool is_dropped = of->session != 0 && hello->flags & PROTO_RELEASE_ALL;
    if (is_dropped) {
        redis_shell_drop_session(s, shard);
    }
    if (of->dropped_session != 0 && end_session(s, shard, of->dropped_session)) {
        of->dropped_session = 0;
    }
    /* The one in use, should it have expired, is over. */
    while (of->fresh_session == 0 || of->fresh_session == of->session) {
        of->fresh_session = (uint32_t)(rng_next(&s->random) >> 32);
    }
    struct redis_pending p =
        redis_shell_pending(s, shard, REDIS_SESSION, hello->request, rng_next(&s->random));
    p.is_hello = true;
    p.fresh_session = of->fresh_session;
    if (!call_session(s, &p)) {
        return false;
    }
    of->last_namespace = s->namespace_id;
    of->session = is_dropped ? p.fresh_session : of->session; /* it begins before the next call */
    return true;
}

bool redis_renew(struct redis_shell *s, unsigned shard, uint32_t request, bool is_silent)
{
    struct redis_pending p = redis_shell_pending(s, shard, REDIS_SESSION, request, 0);
    p.is_silent = is_silent;
    p.fresh_session = p.session;
    return call_session(s, &p);
}

bool redis_on_heartbeat(struct redis_shell *s, unsigned shard, const struct proto_message *m)
{
    return redis_renew(s, shard, m->heartbeat.request, false);
}

bool redis_on_bye(struct redis_shell *s, unsigned shard, const struct proto_message *m)
{
    (void)m;
    struct redis_shard *of = &s->shard[shard];
    uint32_t session = of->session != 0 ? of->session : of->fresh_session; /* asked for at least */
    bool sent = session == 0 || end_session(s, shard, session);
    if (sent) {
        of->session = of->fresh_session = 0;
    }
    return sent;
}

/* ---- the answer ---- */

/* The place is always the same: all processes send a key to the same part, also after a restart. */
static void send_welcome(struct redis_shell *s, const struct redis_pending *p, size_t jobs)
{
    const struct redis_shard *of = &s->shard[p->shard];
    REDIS_GIVE_ANSWER(s, p, WELCOME, welcome, .session = of->session, .boot = of->boot,
                      .heartbeat_ms = REDIS_HEARTBEAT_MS, .batch_max = PROTO_BATCH_MAX,
                      .jobs = (uint32_t)jobs, .inflight_age_max_ms = REDIS_AGE_S * 1000,
                      .place = rng_mix(p->shard + 1));
}

/* The jobs that are open now: the client is offered all of them, also those it knows,
 * and is told of those that are gone. */
static void on_jobs(struct redis_shell *s, const struct redis_pending *p,
                    const struct redisReply *jobs)
{
    struct redis_shard *of = &s->shard[p->shard];
    uint64_t before[REDIS_JOBS_MAX];
    unsigned known = of->jobs;
    size_t count = redis_reply_count(jobs);
    memcpy(before, of->job, known * sizeof *before);
    of->jobs = 0;
    for (size_t i = 0; i < count && i < REDIS_JOBS_MAX; i++) {
        struct proto_text bytes;
        if (redis_reply_text(redis_reply_at(jobs, i), &bytes)) {
            redis_shell_offer_job(s, p->shard, (const uint8_t *)bytes.at, bytes.length);
        }
    }
    for (unsigned i = 0; i < known; i++) {
        if (!redis_shell_knows_job(s, p->shard, before[i])) {
            redis_shell_stop_job(s, p->shard, before[i], PROTO_STOP_EXPIRED);
        }
    }
}

static void send_worker_index(struct redis_shell *s, unsigned shard, const struct redisReply *r)
{
    struct proto_message m = {.type = PROTO_WORKER_INDEX};
    m.worker_index.index = (uint32_t)redis_reply_number_at(r, 2, UINT32_MAX);
    m.worker_index.workers = (uint32_t)redis_reply_number_at(r, 3, UINT32_MAX);
    if (m.worker_index.index < m.worker_index.workers) {
        redis_shell_give(s, shard, &m);
    }
}

/* Another life, or another session than it was: the jobs of the old one are not known. False: it
 * was ended while the answer was under way. */
static bool begin_session(struct redis_shell *s, const struct redis_pending *p, uint64_t boot,
                          bool is_fresh)
{
    struct redis_shard *of = &s->shard[p->shard];
    uint32_t session = is_fresh || p->session == 0 ? p->fresh_session : p->session;
    if (session != of->session && session != of->fresh_session) {
        return false;
    }
    of->jobs = of->boot == boot ? of->jobs : 0;
    of->boot = boot;
    of->session = session;
    return true;
}

/* Says what does not suit us: "7.0 noeviction". */
static void judge_server(struct redis_shell *s, const struct redisReply *r)
{
    struct proto_text about;
    char text[64], words[REDIS_TEXT_MAX + 160];
    unsigned major = 0, minor = 0;
    if (!redis_reply_text(r, &about) || about.length == 0) {
        return;
    }
    proto_text_printable(about, text, sizeof text);
    if (sscanf(text, "%4u.%4u", &major, &minor) == 2 && major > 0 &&
        (major < 6 || (major == 6 && minor < 2))) {
        snprintf(words, sizeof words, "%s: Redis %u.%u is too old: 6.2 or later is needed", s->name,
                 major, minor);
        redis_shell_say(s, "version", words);
    }
    if (strstr(text, " volatile-ttl") != NULL) {
        snprintf(words, sizeof words,
                 "%s: its maxmemory-policy volatile-ttl evicts our sessions first: set allkeys-lru "
                 "or volatile-lru",
                 s->name);
        redis_shell_say(s, "policy", words);
    }
}

void redis_greeted(struct redis_shell *s, const struct redis_pending *p, const struct redisReply *r)
{
    struct redis_shard *of = &s->shard[p->shard];
    const struct redisReply *jobs = redis_reply_at(r, 6);
    struct proto_text boot, version;
    uint64_t status;
    if (redis_reply_number(r, &status) && status == REDIS_TAKEN) {
        if (p->is_hello && of->fresh_session == p->fresh_session) {
            of->fresh_session = 0; /* another client has that id: the next HELLO offers another */
        }
        return;
    }
    if (!redis_reply_text(redis_reply_at(r, 0), &boot) || boot.length != REDIS_BOOT_BYTES ||
        !redis_reply_text(redis_reply_at(r, 4), &version)) {
        redis_shell_complain_of(s, r, 0);
        return;
    }
    redis_shell_complain_of(s, r, 9);
    if (p->is_hello) {
        if (!begin_session(s, p, redis_get(boot.at, REDIS_BOOT_BYTES),
                           redis_reply_number_at(r, 1, 1) == 1)) {
            return;
        }
        judge_server(s, redis_reply_at(r, 8));
        send_welcome(s, p, redis_reply_count(jobs));
    } else if (!p->is_silent) {
        REDIS_GIVE_ANSWER(s, p, HEARTBEAT, heartbeat, );
    }
    if (s->role == PROTO_WORKER && redis_reply_number_at(r, 5, 1) == 1) {
        snprintf(of->jobs_version, sizeof of->jobs_version, "%.*s",
                 (int)(version.length < 20 ? version.length : 20), version.at);
        on_jobs(s, p, jobs);
    }
    if (s->role == PROTO_WORKER) {
        send_worker_index(s, p->shard, r);
    }
}
