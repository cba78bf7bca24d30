#include "proto/client/client_state.h"

#include "common/rng.h"

enum {
    SLOW_MIN_US = 10000, /* a busy machine may keep a near shard from running that long */
    SLOW_TIMES = 8, /* as long as the nearest shard takes */
    HEARTBEAT_MIN_MS =
        4, /* whatever a shard says: below, heartbeats and jobs would be a load ... */
    HEARTBEAT_MAX_MS = 60000, /* ... above, its silence would not be noticed */
};

/* ---- states ----
 *
 *          tick, hello              WELCOME               time-outs, BYE
 *   ABSENT ------------> GREETING ------------>     UP ----------------> DOWN
 *                        ^ |      <------------     ^                     |
 *                        | |      session lost,     |       WELCOME       |
 *                  hello | |      other boot id     `---------------------'
 *                        | |
 *                       LEFT <-- bye, from everywhere     (GREETING -> DOWN: BYE)
 */
#define BIT(state) (1u << CLIENT_##state)
static const unsigned next_ok[] = {
    [CLIENT_ABSENT] = BIT(GREETING) | BIT(LEFT),
    [CLIENT_GREETING] = BIT(UP) | BIT(DOWN) | BIT(LEFT),
    [CLIENT_UP] = BIT(GREETING) | BIT(DOWN) | BIT(LEFT),
    [CLIENT_DOWN] = BIT(UP) | BIT(LEFT),
    [CLIENT_LEFT] = BIT(GREETING),
};

unsigned client_twin(const struct client *c, unsigned shard)
{
    const struct shard *s = &c->shards[shard];
    for (unsigned i = 0; i < c->options.shards && s->state == CLIENT_UP; i++) {
        if (i != shard && c->shards[i].state == CLIENT_UP && c->shards[i].place == s->place) {
            return i;
        }
    }
    return CLIENT_NOWHERE;
}

/* Gives the place of shards that began with copies of one file to the one of the greatest boot id,
 * while it is up; when it goes, the next one moves into its place. The others have the place of a
 * shard that began empty, so that all own keys. */
static uint64_t place_of(const struct client *c, unsigned shard)
{
    const struct shard *s = &c->shards[shard];
    for (unsigned i = 0; i < c->options.shards; i++) {
        const struct shard *other = &c->shards[i];
        if (other->state == CLIENT_UP && other->place == s->place && other->boot > s->boot) {
            return s->boot;
        }
    }
    return s->place;
}

static void map_add(struct client *c, bool is_slow)
{
    for (unsigned s = 0; s < c->options.shards; s++) {
        if (c->shards[s].state == CLIENT_UP && c->shards[s].is_slow == is_slow) {
            c->owners[c->up_count++] =
                (struct owner){.mixed_place = rng_mix(place_of(c, s)), .shard = (uint8_t)s};
        }
    }
}

/* Rendezvous hashing needs only the list of those that are up. When all are slow, all own keys. */
static void map_rebuild(struct client *c)
{
    c->up_count = 0;
    map_add(c, false);
    c->owner_count = c->up_count;
    map_add(c, true);
    c->owner_count = c->owner_count > 0 ? c->owner_count : c->up_count;
}

static void shard_move(struct client *c, unsigned shard, enum client_state state)
{
    struct shard *s = &c->shards[shard];
    CHECK(next_ok[s->state] & 1u << state);
    s->state = state;
    uint64_t bit = UINT64_C(1) << shard;
    c->up = state == CLIENT_UP ? c->up | bit : c->up & ~bit;
    map_rebuild(c);
}

unsigned client_shard_owning(const struct client *c, uint64_t key, unsigned among)
{
    unsigned best = CLIENT_NOWHERE;
    uint64_t best_weight = 0;
    if (among == 1) {
        return c->owners[0].shard;
    }
    for (unsigned i = 0; i < among; i++) {
        const struct owner *o = &c->owners[i];
        uint64_t weight = rng_mix(key ^ o->mixed_place);
        /* Equal weights mean one shard under two names: the first stands. */
        if (best == CLIENT_NOWHERE || weight > best_weight) {
            best = o->shard;
            best_weight = weight;
        }
    }
    return best;
}

unsigned client_owner(const struct client *c, uint64_t key)
{
    return client_shard_owning(c, key, c->owner_count);
}

/* ---- falling ---- */

void client_shard_fall(struct client *c, unsigned shard, enum client_state state)
{
    struct shard *s = &c->shards[shard];
    bool was_up = s->state == CLIENT_UP;
    if (s->state != state) {
        shard_move(c, shard, state);
    }
    s->timeouts_in_row = 0;
    s->flush_request = 0;
    client_part_lose_all_of(c, shard);
    client_queue_abandon_stores(c, shard);
    if (was_up) {
        c->counters.downs++;
        c->fell |= UINT64_C(1) << shard;
    }
}

/* ---- greeting ---- */

static void shard_greet(struct client *c, unsigned shard)
{
    struct shard *s = &c->shards[shard];
    struct part *part = NULL;
    if (s->state == CLIENT_ABSENT || s->state == CLIENT_LEFT) {
        shard_move(c, shard, CLIENT_GREETING);
    }
    s->hello_due_us = c->now_us + c->options.probe_us;
    if (s->hellos < HELLOS_MAX) {
        part = client_part_open(c, PART_HELLO, shard);
    }
    if (!part) {
        return;
    }
    part->deadline_us = c->now_us + c->options.rto_max_us; /* a repeat is on its way before */
    struct proto_message m = {.type = PROTO_HELLO};
    m.hello.request = part->request;
    m.hello.role = (uint8_t)c->options.role;
    m.hello.flags = (uint8_t)(c->options.hello_flags | (s->leaked ? PROTO_RELEASE_ALL : 0));
    s->hello_request = s->hello_request == 0 ? part->request : s->hello_request;
    m.hello.namespace_id = c->options.namespace_id;
    m.hello.instance = c->options.instance;
    m.hello.name = proto_text_of(c->name);
    m.hello.table_id = c->options.table_id;
    m.hello.lowest = m.hello.highest = PROTO_VERSION;
    m.hello.release = proto_text_of(c->options.release != NULL ? c->options.release : "");
    if (client_send(c, shard, &m)) {
        s->unsent_pause_us = 0;
        return;
    }
    /* Most often a connection that is being made, in a millisecond or less. */
    uint32_t pause = s->unsent_pause_us > 0 ? 2 * s->unsent_pause_us : UNSENT_PAUSE_MIN_US;
    s->unsent_pause_us = pause < c->options.probe_us ? pause : c->options.probe_us;
    s->hello_due_us = c->now_us + s->unsent_pause_us;
    client_part_close(c, part);
}

/* ---- time-outs ---- */

/* Several requests outstanding when one of them times out prove one silence, not several: only a
 * request that began after the last counted time-out makes the next. So `timeouts_in_row` spans 1 +
 * 2 + 4 ... time-outs, and a single hiccup under a full window takes nobody out. A shard that fell
 * is greeted at once: one that is merely slower than before comes back with its first WELCOME,
 * which is also its first sample. True: that took the shard out. */
static bool shard_timed_out(struct client *c, unsigned shard, uint64_t began_us)
{
    struct shard *s = &c->shards[shard];
    if (s->state != CLIENT_UP || (s->timeouts_in_row > 0 && began_us < s->timed_out_us)) {
        return false;
    }
    s->timeouts_in_row++;
    s->timed_out_us = c->now_us;
    rtt_back_off(&s->rtt);
    if (s->timeouts_in_row < c->options.timeouts_in_row) {
        return false;
    }
    client_shard_fall(c, shard, CLIENT_DOWN);
    shard_greet(c, shard);
    return true;
}

struct part *client_shard_query(struct client *c, unsigned shard, enum part_kind kind,
                                struct proto_message *m)
{
    CHECK(shard < c->options.shards);
    struct part *part =
        c->shards[shard].state == CLIENT_UP ? client_part_open(c, kind, shard) : NULL;
    if (!part) {
        return NULL;
    }
    m->heartbeat.request = part->request; /* the first field of all these messages */
    if (client_send(c, shard, m)) {
        return part;
    }
    client_part_close(c, part);
    (void)shard_timed_out(c, shard, c->now_us - c->shards[shard].rtt.timeout_us);
    return NULL;
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

void client_part_expire(struct client *c)
{
    if (c->now_us < c->next_expiry_us) {
        return;
    }
    struct part *part, *next;
    for (part = TAILQ_FIRST(&c->outstanding); part != NULL; part = next) {
        const struct part late = *part;
        next = TAILQ_NEXT(part, in_order);
        if (late.deadline_us > c->now_us) {
            continue;
        }
        c->counters.timeouts++;
        client_part_lose(c, part);
        /* A HELLO that is not answered in time counts against nobody: heartbeats do. */
        if (late.kind != PART_HELLO && shard_timed_out(c, late.shard, late.sent_us)) {
            next = TAILQ_FIRST(&c->outstanding); /* the shard fell and took others with it */
        }
    }
    c->next_expiry_us = UINT64_MAX;
    TAILQ_FOREACH(part, &c->outstanding, in_order)
    {
        c->next_expiry_us = earlier(c->next_expiry_us, part->deadline_us);
    }
}

/* ---- slow shards ----
 *
 * A peek at all children of a node waits for the slowest of their shards: one that is slow costs
 * its round trip every time and saves less. While faster shards are up it owns no keys, as if it
 * were down; jobs and heartbeats go on, and the heartbeats show when it is fast again. Each opinion
 * takes `timeouts_in_row` round trips in a row, one begun after the other.
 */
static void shard_judge(struct client *c, unsigned shard, uint64_t began_us, unsigned wanted)
{
    struct shard *s = &c->shards[shard];
    uint32_t nearest = UINT32_MAX; /* of the others that are up */
    if (c->options.keeps_slow) {
        return;
    }
    for (unsigned i = 0; i < c->options.shards; i++) {
        const struct shard *other = &c->shards[i];
        if (i != shard && other->state == CLIENT_UP && other->rtt.sampled) {
            uint32_t us = rtt_smoothed_us(&other->rtt);
            nearest = us < nearest ? us : nearest;
        }
    }
    uint64_t round_trip_us = c->now_us - began_us, line = (uint64_t)SLOW_TIMES * nearest;
    line = line > SLOW_MIN_US ? line : SLOW_MIN_US;
    bool is_other = nearest == UINT32_MAX ? s->is_slow
                    : s->is_slow          ? round_trip_us <= line / 2
                                          : round_trip_us > line;
    if (!is_other) {
        s->verdicts = 0;
        return;
    }
    if (s->verdicts > 0 && began_us < s->judged_us) {
        return;
    }
    s->judged_us = c->now_us;
    if (++s->verdicts >= wanted) {
        s->is_slow = !s->is_slow;
        s->verdicts = 0;
        map_rebuild(c);
    }
}

/* ---- being answered ---- */

/* It lives: the count of time-outs begins anew. It needs a longer wait, which backing off provides.
 * But not when we already wait the longest we may: then late is as good as never, and a shard that
 * stays in the map by its late answers would cost rto_max for every ask. Out of the map, only a
 * WELCOME in time counts, for the same reason. */
static void shard_late(struct client *c, unsigned shard)
{
    struct shard *s = &c->shards[shard];
    c->counters.late++;
    if (s->state == CLIENT_UP && s->rtt.timeout_us < c->options.rto_max_us) {
        s->timeouts_in_row = 0;
    }
}

struct part *client_shard_answered(struct client *c, unsigned shard, enum part_kind kind,
                                   uint32_t request)
{
    struct shard *s = &c->shards[shard];
    struct part *part = client_part_find(c, request, shard);
    if (!part || part->kind != kind) {
        shard_late(c, shard);
        return NULL;
    }
    s->timeouts_in_row = 0;
    rtt_sample(&s->rtt, c->now_us - part->sent_us);
    shard_judge(c, shard, part->sent_us, c->options.timeouts_in_row);
    return part;
}

/* ---- hello, bye ---- */

void client_hello(struct client *c, enum proto_role role, uint64_t namespace_id, uint64_t now_us)
{
    const bool moves = namespace_id != c->options.namespace_id;
    client_advance(c, now_us);
    c->options.role = role;
    c->options.namespace_id = namespace_id;
    for (unsigned s = 0; s < c->options.shards; s++) {
        c->shards[s].is_elsewhere = c->shards[s].is_elsewhere || moves;
        c->shards[s].hello_owed = true;
        c->shards[s].hello_request = 0;
        shard_greet(c, s);
    }
}

void client_bye(struct client *c, uint64_t now_us)
{
    client_advance(c, now_us);
    for (unsigned s = 0; s < c->options.shards; s++) {
        struct shard *shard = &c->shards[s];
        bool said = false;
        if (shard->known && shard->state != CLIENT_LEFT) {
            struct proto_message m = {.type = PROTO_BYE};
            if (shard->state == CLIENT_UP) {
                (void)client_queue_flush(c, s);
            }
            said = client_send(c, s, &m);
        }
        client_shard_fall(c, s, CLIENT_LEFT);
        c->counters.dropped += shard->queue.release_count;
        shard->queue.release_count = 0;
        if (shard->known && !said) {
            client_queue_leak(c, s); /* should we revive */
        }
    }
}

/* ---- a WELCOME ---- */

/* Queued releases stay even when the session is new to us: with several HELLOs under way it may be
 * the one that took our last asks. To release what one has not in flight is no error. */
static void shard_adopt(struct client *c, unsigned shard, const struct proto_welcome *m)
{
    struct shard *s = &c->shards[shard];
    s->known = true;
    s->boot = m->boot;
    s->place = m->place;
    s->session = m->session;
    s->heartbeat_ms = m->heartbeat_ms < HEARTBEAT_MIN_MS   ? HEARTBEAT_MIN_MS
                      : m->heartbeat_ms > HEARTBEAT_MAX_MS ? HEARTBEAT_MAX_MS
                                                           : m->heartbeat_ms;
    s->batch_max = m->batch_max;
    s->inflight_age_max_ms = m->inflight_age_max_ms;
    s->timeouts_in_row = 0;
}

void client_shard_on_welcome(struct client *c, unsigned shard, const struct proto_welcome *m)
{
    struct shard *s = &c->shards[shard];
    struct part *part = client_part_find(c, m->request, shard);
    if (!part || part->kind != PART_HELLO) {
        shard_late(c, shard);
        return;
    }
    uint64_t sent_us = part->sent_us;
    s->request_us = sent_us > s->request_us ? sent_us : s->request_us;
    client_part_close(c, part);
    if (m->heartbeat_ms == 0 || m->batch_max == 0) {
        c->counters.malformed++;
        return;
    }
    /* The first HELLO since the change, or a later one: with a long round trip several are under
     * way. */
    bool is_answer = s->hello_request != 0 && (int32_t)(m->request - s->hello_request) >= 0;
    bool confirms = s->hello_owed && is_answer; /* a role that may post, perhaps */
    s->leaked = s->leaked && !is_answer;
    s->hello_owed = s->hello_owed && !is_answer;
    s->is_elsewhere = s->is_elsewhere && !is_answer;
    s->hello_request = is_answer ? 0 : s->hello_request;
    if (s->state == CLIENT_UP && (s->boot != m->boot || s->place != m->place)) {
        client_shard_fall(c, shard, CLIENT_GREETING); /* it restarted unseen */
    }
    bool was_slow = s->is_slow;
    if (s->state != CLIENT_UP) {
        shard_adopt(c, shard, m);
        rtt_reset(&s->rtt, c->options.rto_min_us, c->options.rto_max_us);
        s->is_slow = false;
        s->verdicts = 0;
        shard_move(c, shard, CLIENT_UP);
        c->counters.ups++;
        client_job_send_all(c, shard);
        (void)client_queue_flush(c, shard);
    } else {
        bool is_other_session = s->session != m->session;
        shard_adopt(c, shard, m);
        if (is_other_session || confirms) {
            client_job_send_all(c, shard);
        }
    }
    rtt_sample(&s->rtt, c->now_us - sent_us);
    shard_judge(c, shard, sent_us, was_slow && !s->is_slow ? 1 : c->options.timeouts_in_row);
}

/* ---- an ERROR, and the answer that may be one ---- */

bool client_shard_on_flushed(struct client *c, unsigned shard, uint32_t request,
                             const struct proto_text *refused)
{
    struct shard *s = &c->shards[shard];
    if (request == 0 || request != s->flush_request) {
        return false;
    }
    s->flush_request = 0;
    event_put(c, (struct client_event){
                     .kind = CLIENT_FLUSHED, .shard = shard, .refused = {.why = refused}});
    return true;
}

static void say_refused(struct client *c, unsigned shard, const struct proto_error *m)
{
    c->shards[shard].hello_due_us = c->now_us + REFUSED_PAUSE_US;
    event_put(c, (struct client_event){
                     .kind = CLIENT_HELLO_REFUSED, .shard = shard, .refused = {.why = &m->text}});
}

void client_shard_on_error(struct client *c, unsigned shard, const struct proto_error *m)
{
    struct shard *s = &c->shards[shard];
    c->counters.refused++;
    /* A shard that speaks our version cannot mean our session. */
    bool is_ours = c->message.version == PROTO_VERSION && s->state == CLIENT_UP;
    if (m->code == PROTO_ERR_VERSION && !is_ours) {
        struct part *hello = client_part_find(c, m->request, shard);
        if (hello != NULL) {
            client_part_lose(c, hello);
        }
        if (s->state == CLIENT_UP) { /* it had another program until now */
            client_shard_fall(c, shard, CLIENT_GREETING);
        }
        say_refused(c, shard, m);
        return;
    }
    if (m->code == PROTO_ERR_SESSION) {
        /* Several requests may be refused before the HELLO arrives: only the first acts. */
        if (s->state == CLIENT_UP) {
            client_shard_fall(c, shard, CLIENT_GREETING);
            shard_greet(c, shard);
        }
        return;
    }
    if (client_shard_on_flushed(c, shard, m->request, &m->text)) {
        return;
    }
    struct part *part = client_part_find(c, m->request, shard);
    if (!part) { /* about a message without a request, or too late to matter */
        client_job_on_error(c, shard, m);
        return;
    }
    if (part->kind == PART_HELLO && (m->code == PROTO_ERR_LIMIT || m->code == PROTO_ERR_ROLE)) {
        say_refused(c, shard, m);
    }
    s->timeouts_in_row = 0;
    client_part_lose(c, part);
}

/* ---- time ---- */

static uint64_t heartbeat_due(const struct client *c, const struct shard *s)
{
    uint64_t due = s->request_us + (uint64_t)s->heartbeat_ms * 1000 / 3;
    /* After a time-out, with nothing asked: find out soon rather than at the next ask. */
    uint64_t soon = s->request_us + s->rtt.timeout_us;
    bool is_idle = s->outstanding == s->hellos;
    if (s->is_slow && is_idle && s->request_us + c->options.probe_us < due) {
        due = s->request_us + c->options.probe_us;
    }
    return s->timeouts_in_row > 0 && is_idle && soon < due ? soon : due;
}

static uint64_t queue_due(const struct client *c, const struct shard *s)
{
    bool waiting = s->queue.store_count + s->queue.release_count > 0;
    return waiting ? s->queue.oldest_us + c->options.linger_us : UINT64_MAX;
}

uint64_t client_shard_tick(struct client *c, unsigned shard)
{
    struct shard *s = &c->shards[shard];
    uint64_t due = UINT64_MAX;
    if (s->state == CLIENT_LEFT) {
        return due;
    }
    if (s->state == CLIENT_UP) {
        if (c->now_us >= queue_due(c, s) && !client_queue_flush(c, shard)) {
            s->queue.oldest_us = c->now_us; /* not taken: try again after as long */
        }
        due = client_job_tick(c, shard);
        if (c->now_us >= heartbeat_due(c, s)) {
            struct proto_message m = {.type = PROTO_HEARTBEAT};
            s->request_us = c->now_us; /* sent or not: not at once again */
            (void)client_shard_query(c, shard, PART_HEARTBEAT, &m);
        }
    }
    bool greets = s->state != CLIENT_UP || s->hello_owed;
    if (greets && c->now_us >= s->hello_due_us) {
        shard_greet(c, shard);
    }
    if (s->state != CLIENT_UP) {
        return s->hello_due_us;
    }
    due = earlier(due, s->hello_owed ? s->hello_due_us : UINT64_MAX);
    return earlier(due, earlier(heartbeat_due(c, s), queue_due(c, s)));
}
