/* Sessions over Redis: HELLO, their renewal, BYE. A session is a key that expires; who is not
 * renewed in time is in no node any more. */
#include "worker/redis/redis_shell_core.h"

#include "common/clock.h"
#include "common/rng.h"
#include "proto/alias.h"

#include <stdio.h>
#include <string.h>

enum { RECORD_MAX = REDIS_SESSION_BYTES + CLIENT_NAME_MAX };

static bool is_worker(const struct redis_shell *s)
{
    return s->role == PROTO_WORKER;
}

static uint32_t draw_session(struct redis_shell *s)
{
    uint32_t id = (uint32_t)(rng_next(&s->random) >> 32);
    return id != 0 ? id : 1;
}

/* redis_script.h says what is in it. */
static size_t write_record(const struct redis_shell *s, uint8_t out[RECORD_MAX])
{
    size_t name = strlen(s->client_name);
    memcpy(out, s->token, REDIS_TOKEN_BYTES);
    uint8_t *to = redis_put(out + REDIS_TOKEN_BYTES, s->flags, 1);
    to = redis_put(to, s->role, 1);
    to = redis_put(to, s->table_id, 8);
    to = redis_put(to, s->searches, 8);
    to = redis_put(to, (uint32_t)proto_alias(s->instance), 4);
    memcpy(to, s->client_name, name);
    return REDIS_SESSION_BYTES + name;
}

/* Calls of this shard that the server has not summed up yet. */
static void add_figures(struct redis_shell *s, unsigned shard)
{
    static const char *const name[] = {
#define X(figure) #figure,
        REDIS_FIGURES(X)
#undef X
    };
    uint32_t *figure = s->shard[shard].figure;
    for (unsigned i = 0; i < REDIS_FIGURE_COUNT; i++) {
        if (figure[i] > 0) {
            redis_shell_text(s, name[i]);
            redis_shell_number_arg(s, figure[i]);
        }
    }
}

/* The call of REDIS_SESSION: for a session, or the one that begins if there is none. */
static bool call_session(struct redis_shell *s, struct redis_pending *p)
{
    unsigned shard = p->shard;
    struct redis_shard *of = &s->shard[shard];
    uint8_t record[RECORD_MAX], fresh[4], boot[REDIS_BOOT_BYTES];
    uint32_t session = p->session != 0 ? p->session : p->fresh_session;
    uint64_t before = of->last_namespace;
    redis_put(fresh, p->fresh_session, sizeof fresh);
    redis_shell_begin(s, shard);
    redis_put((uint8_t *)s->key_bytes[1] + s->arg_length[1] - 4, session, 4);
    redis_shell_key(s, shard, "s:", fresh, sizeof fresh);
    redis_shell_named_key(s, shard, "m");
    redis_shell_named_key(s, shard, "w");
    redis_shell_number_key(s, shard, "n:", before);
    redis_shell_number_key(s, shard, "n:", s->namespace_id);
    redis_shell_named_key(s, shard, "jobs");
    redis_shell_named_key(s, shard, "jv");
    redis_shell_named_key(s, shard, "f");
    if (p->is_hello) {
        redis_put(boot, rng_next(&s->random), sizeof boot);
    } else {
        memcpy(boot, of->boot, sizeof boot);
    }
    redis_shell_arg(s, boot, sizeof boot);
    redis_shell_session_arg(s, session);
    redis_shell_arg(s, fresh, sizeof fresh);
    redis_shell_arg(s, record, write_record(s, record));
    redis_shell_number_arg(s, REDIS_SESSION_MS);
    redis_shell_text(s, is_worker(s) ? "w" : "-");
    redis_shell_text(s, p->is_hello ? "" : of->jobs_version);
    redis_shell_prefix_arg(s, shard, "j:");
    redis_shell_header_arg(s, shard);
    redis_shell_text(s, p->is_hello ? "1" : "0");
    redis_shell_text(s, s->flags & PROTO_WANTS_RESULTS ? "1" : "0");
    add_figures(s, shard);
    if (!redis_shell_call(s, p)) {
        return false;
    }
    memset(of->figure, 0, sizeof of->figure);
    of->renewed_us = clock_us();
    return true;
}

static bool end_session(struct redis_shell *s, unsigned shard, uint32_t session)
{
    uint8_t id[4];
    struct redis_pending p = redis_shell_pending(s, shard, REDIS_BYE, 0);
    redis_put(id, session, sizeof id);
    redis_shell_begin(s, shard);
    s->keys = s->args = 0;
    redis_shell_key(s, shard, "s:", id, sizeof id);
    redis_shell_named_key(s, shard, "m");
    redis_shell_named_key(s, shard, "w");
    redis_shell_number_key(s, shard, "n:", s->shard[shard].last_namespace);
    redis_shell_named_key(s, shard, "f");
    redis_shell_arg(s, id, sizeof id);
    add_figures(s, shard);
    if (!redis_shell_call(s, &p)) {
        return false;
    }
    memset(s->shard[shard].figure, 0, sizeof s->shard[shard].figure);
    return true;
}

static void take_hello(struct redis_shell *s, const struct proto_hello *hello)
{
    s->role = hello->role;
    s->flags = hello->flags & (PROTO_WANTS_NODE_DONE | PROTO_WANTS_RESULTS);
    s->namespace_id = hello->namespace_id;
    s->instance = hello->instance;
    s->table_id = hello->table_id;
    proto_text_copy(hello->name, s->client_name, sizeof s->client_name);
    if (is_worker(s) && !s->is_listening) {
        s->is_listening = redis_link_subscribe(s->link, "abdada:w");
    }
}

/* The end of a session takes all that it has in flight with it: so HELLO's flag "release all" is
 * another session. HELLOs that are said again, because the answer is late, all offer the same fresh
 * id: together they begin one session. */
bool redis_on_hello(struct redis_shell *s, unsigned shard, const struct proto_message *m)
{
    struct redis_shard *of = &s->shard[shard];
    take_hello(s, &m->hello);
    bool is_dropped = of->session != 0 && m->hello.flags & PROTO_RELEASE_ALL;
    if (is_dropped) {
        redis_shell_drop_session(s, shard);
    }
    if (of->dropped_session != 0 && end_session(s, shard, of->dropped_session)) {
        of->dropped_session = 0;
    }
    while (of->fresh_session == 0 || of->fresh_session == of->session) {
        of->fresh_session = draw_session(s); /* the one in use, should it have expired, is over */
    }
    struct redis_pending p = redis_shell_pending(s, shard, REDIS_SESSION, m->hello.request);
    p.is_hello = true;
    p.fresh_session = of->fresh_session;
    if (!call_session(s, &p)) {
        return false;
    }
    of->last_namespace = s->namespace_id;
    of->session = is_dropped ? p.fresh_session : of->session; /* it begins before the next call */
    return true;
}

static bool renew(struct redis_shell *s, unsigned shard, uint32_t request, bool is_silent)
{
    struct redis_pending p = redis_shell_pending(s, shard, REDIS_SESSION, request);
    p.is_silent = is_silent;
    p.fresh_session = p.session;
    return call_session(s, &p);
}

bool redis_on_heartbeat(struct redis_shell *s, unsigned shard, const struct proto_message *m)
{
    return renew(s, shard, m->heartbeat.request, false);
}

bool redis_renew(struct redis_shell *s, unsigned shard)
{
    return renew(s, shard, 0, true);
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

static void send_welcome(struct redis_shell *s, const struct redis_pending *p, size_t jobs)
{
    const struct redis_shard *of = &s->shard[p->shard];
    struct proto_message m = {.type = PROTO_WELCOME};
    m.welcome = (struct proto_welcome){
        .request = p->request,
        .session = of->session,
        .boot = redis_get((const char *)of->boot, REDIS_BOOT_BYTES),
        .heartbeat_ms = REDIS_HEARTBEAT_MS,
        .batch_max = PROTO_BATCH_MAX,
        .jobs = (uint32_t)jobs,
        .inflight_age_max_ms = REDIS_AGE_S * 1000,
        /* Always the same: all processes send a key to the same part, also after a restart. */
        .place = rng_mix(p->shard + 1),
    };
    redis_shell_give(s, p->shard, &m);
}

/* The jobs that are open now: the client is offered all of them, also those it knows,
 * and is told of those that are gone. */
static void take_jobs(struct redis_shell *s, const struct redis_pending *p,
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
static bool begin_session(struct redis_shell *s, const struct redis_pending *p,
                          struct proto_text boot, bool is_fresh)
{
    struct redis_shard *of = &s->shard[p->shard];
    uint32_t session = is_fresh || p->session == 0 ? p->fresh_session : p->session;
    if (session != of->session && session != of->fresh_session) {
        return false;
    }
    if (memcmp(of->boot, boot.at, REDIS_BOOT_BYTES) != 0) {
        of->jobs = 0;
    }
    memcpy(of->boot, boot.at, REDIS_BOOT_BYTES);
    of->session = session;
    return true;
}

/* Somebody else has that id: the next HELLO offers another. */
static void take_refusal(struct redis_shell *s, const struct redis_pending *p)
{
    struct redis_shard *of = &s->shard[p->shard];
    if (p->is_hello && of->fresh_session == p->fresh_session) {
        of->fresh_session = 0;
    }
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
        take_refusal(s, p);
        return;
    }
    if (!redis_reply_text(redis_reply_at(r, 0), &boot) || boot.length != REDIS_BOOT_BYTES ||
        !redis_reply_text(redis_reply_at(r, 4), &version)) {
        redis_shell_complain_of(s, r, 0);
        return;
    }
    redis_shell_complain_of(s, r, 9);
    if (p->is_hello) {
        if (!begin_session(s, p, boot, redis_reply_number_at(r, 1, 1) == 1)) {
            return;
        }
        judge_server(s, redis_reply_at(r, 8));
        send_welcome(s, p, redis_reply_count(jobs));
    } else if (!p->is_silent) {
        struct proto_message m = {.type = PROTO_HEARTBEAT};
        m.heartbeat.request = p->request;
        redis_shell_give(s, p->shard, &m);
    }
    if (is_worker(s) && redis_reply_number_at(r, 5, 1) == 1) {
        snprintf(of->jobs_version, sizeof of->jobs_version, "%.*s",
                 (int)(version.length < 20 ? version.length : 20), version.at);
        take_jobs(s, p, jobs);
    }
    if (is_worker(s)) {
        send_worker_index(s, p->shard, r);
    }
}
