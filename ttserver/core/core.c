#include "ttserver/core/core.h"

#include "common/rng.h"
#include "ttserver/core/core_state.h"

#include <stdlib.h>

enum { US_PER_MS = 1000 };

struct ttcore_options ttcore_defaults(void)
{
    return (struct ttcore_options){
        .sessions_max = 4096,
        .jobs_max = 64,
        .batch_max = PROTO_BATCH_MAX,
        .heartbeat_ms = 1000,
        .inflight_age_max_ms = 60000,
        .share_rate_max = TTCORE_SHARE_RATE,
    };
}

enum err ttcore_open(struct ttcore **out, const struct ttcore_options *options)
{
    const struct ttcore_options *o = options;
    bool is_valid = o->sessions_max >= 1 && o->sessions_max <= TTCORE_SESSIONS_MAX &&
                    o->jobs_max >= 1 && o->jobs_max <= TTCORE_JOBS_MAX && o->batch_max >= 1 &&
                    o->batch_max <= PROTO_BATCH_MAX && o->heartbeat_ms >= 1 &&
                    o->inflight_age_max_ms >= 1 && o->share_rate_max >= 1;
    struct ttcore *core = is_valid ? calloc(1, sizeof *core) : NULL;
    enum err err;
    if (core == NULL) {
        return is_valid ? ERR_NOMEM : ERR_RANGE;
    }
    core->options = *options;
    core->options.place = options->place != 0 ? options->place : options->boot;
    core->offenders.seed = rng_mix(~options->secret);
    core->now_us = core->last_tick_us = options->start_us;
    core->expiry_us = ttcore_heartbeat_us(core) * 7 / 2;
    tt_generations_init(&core->generations);
    err = ttcore_sessions_open(&core->sessions, options->sessions_max, options->secret);
    err = err ? err : ttcore_users_open(&core->users, options->sessions_max, options->secret);
    err = err ? err
              : tt_inflight_open(&core->inflight, options->inflight_max,
                                 options->session_inflight_max, core->sessions.slot_bits,
                                 options->secret);
    err = err ? err : ttcore_jobs_open(&core->jobs, options->jobs_max);
    err = err ? err : tt_results_open(&core->results, options->results_bytes, &core->generations);
    if (err != ERR_OK) {
        ttcore_close(&core);
        return err;
    }
    *out = core;
    return ERR_OK;
}

void ttcore_close(struct ttcore **core)
{
    struct ttcore *c = *core;
    if (c != NULL) {
        tt_results_close(&c->results);
        tt_inflight_close(&c->inflight);
        ttcore_sessions_close(&c->sessions);
        ttcore_users_close(&c->users);
        ttcore_jobs_close(&c->jobs);
        free(c);
        *core = NULL;
    }
}

bool ttcore_has_more(const struct ttcore *core)
{
    return core->flushes > 0;
}

struct tt_results *ttcore_results(struct ttcore *core)
{
    return &core->results;
}

bool ttcore_knows(const struct ttcore *core, const uint8_t *route, size_t length)
{
    return ttcore_sessions_find(&core->sessions, route, length) != NULL;
}

void ttcore_touch(struct ttcore *core, const uint8_t *route, size_t length, uint64_t now_us)
{
    struct ttcore_session *session = ttcore_sessions_find(&core->sessions, route, length);
    if (session != NULL && now_us >= core->now_us) {
        ttcore_sessions_touch(&core->sessions, session, now_us);
    }
}

unsigned ttcore_inflight_of(const struct ttcore *core, const uint8_t *route, size_t length)
{
    const struct ttcore_session *session = ttcore_sessions_find(&core->sessions, route, length);
    return session != NULL ? tt_inflight_of_session(&core->inflight, session->id) : 0;
}

/* Roles that may send it (enum ttcore_may); 0: a shard does not take it. */
static const uint32_t senders[] = {
#define HANDLER(TYPE, name, roles) [PROTO_##TYPE] = (roles),
    TTCORE_HANDLERS(HANDLER)
#undef HANDLER
};

/* 0 for messages that have none; where it is, it is the first field. Of a JOB_POST a part of the
 * job's id. */
static uint32_t request_of(const struct proto_message *message)
{
    switch (message->type) {
    case PROTO_HELLO:
    case PROTO_RETRIEVE_ASK:
    case PROTO_PEEK:
    case PROTO_HEARTBEAT:
    case PROTO_STATS:
    case PROTO_MEMBERS:
    case PROTO_JOBS:
    case PROTO_FLUSH:
    case PROTO_SCAN:
    case PROTO_MAIL_JOIN:
        return message->heartbeat.request;
    case PROTO_JOB_POST:
        return (uint32_t)message->job.job;
    default:
        return 0;
    }
}

/* Decodes a message and hands it to its handler, or says why not. */
static void on_message(struct ttcore *core, const struct ttcore_event *event,
                       struct ttcore_actions *actions)
{
    static const struct ttcore_peer unknown = {.may = TTCORE_ANYBODY | TTCORE_MAY_FLUSH};
    static const uint8_t nothing[1];
    struct proto_message message = {.type = PROTO_ERROR};
    struct ttcore_call call = {core,  NULL,    &message,
                               event, actions, event->peer != NULL ? *event->peer : unknown};
    struct ttcore_figures *count = &core->count;
    const uint64_t faults = count->malformed + count->versions_refused;

    /* 1. Find the sender. One who said too much that is no message is not heard for a while. */
    count->messages++;
    if (event->route_length < 1 || event->route_length > TTCORE_ROUTE_MAX) {
        count->malformed++;
        return;
    }
    if (core->offenders.ignored > 0 &&
        ttcore_offenders_ignores(&core->offenders, event->route, event->route_length,
                                 core->now_us)) {
        count->ignored++;
        actions->ignored = core->offenders.ignored;
        return;
    }
    call.session = ttcore_sessions_find(&core->sessions, event->route, event->route_length);
    ttcore_actions_target(actions, event->route, (uint32_t)event->route_length);
    if (call.session != NULL) {
        ttcore_sessions_touch(&core->sessions, call.session, core->now_us);
    }

    /* 2. Is it a message, of a type that a shard takes, and of a session that may send it? The role
     * is that of the session, which its key must still allow. */
    enum err err =
        proto_decode(&actions->scratch->decoder, event->length > 0 ? event->bytes : nothing,
                     event->length, &message);
    const unsigned type = message.type;
    const bool is_taken = type < sizeof senders / sizeof senders[0] && senders[type] != 0;
    const uint32_t role = call.session != NULL ? UINT32_C(1) << call.session->role : 0;
    const uint32_t may = (role & call.peer.may) | (call.peer.may & TTCORE_MAY_STOP_ANY_JOB);
    if (err == ERR_VERSION) {
        ttcore_refuse_version(&call, 0);
    } else if (err != ERR_OK) {
        count->malformed++;
        if (call.session != NULL) { /* else it is noise, which is not answered */
            ttcore_error(&call, err == ERR_TYPE ? PROTO_ERR_TYPE : PROTO_ERR_MALFORMED, 0,
                         err == ERR_TYPE ? "unknown message type" : "malformed message");
        }
    } else if (type == PROTO_ERROR) {
        count->malformed++; /* never answer an error by an error: two peers would do so for ever */
    } else if (call.session == NULL && type != PROTO_HELLO) {
        count->no_session++;
        ttcore_error(&call, PROTO_ERR_SESSION, request_of(&message), "no session: say HELLO first");
    } else if (!is_taken) {
        count->malformed++;
        ttcore_error(&call, PROTO_ERR_TYPE, 0, "a shard does not take this type of message");
    } else if (type != PROTO_HELLO && !(senders[type] & may)) {
        count->role_refused++;
        ttcore_refuse(&call, PROTO_ERR_ROLE, request_of(&message),
                      "this role may not send this type of message");
    } else {
        switch (type) {
#define HANDLER(TYPE, name, roles) \
    case PROTO_##TYPE:             \
        ttcore_on_##name(&call);   \
        break;
            TTCORE_HANDLERS(HANDLER)
#undef HANDLER
        default:
            break;
        }
    }

    /* 3. What was no message, or of another version, is a fault. */
    if (count->malformed + count->versions_refused != faults) {
        ttcore_offenders_note(&core->offenders, event->route, event->route_length, core->now_us);
    }
}

static void on_tick(struct ttcore *core, struct ttcore_actions *actions)
{
    uint64_t heartbeat_us = ttcore_heartbeat_us(core);
    uint64_t inflight_age_max_us = (uint64_t)core->options.inflight_age_max_ms * US_PER_MS;
    if (core->now_us - core->last_tick_us > heartbeat_us) {
        core->no_expiry_before_us = core->now_us + heartbeat_us;
    }
    core->last_tick_us = core->now_us;
    if (core->now_us >= core->no_expiry_before_us) {
        ttcore_expire_sessions(core, actions);
        if (core->now_us >= inflight_age_max_us) {
            ttcore_expire_inflight(core, core->now_us - inflight_age_max_us);
        }
    }
    ttcore_offenders_expire(&core->offenders, core->now_us);
    ttcore_send_worker_indexes(core, actions);
    ttcore_push_owed(core, actions);
    ttcore_share_tick(core, actions);
}

/* What must hold between two steps. O(1). */
static void check_step(const struct ttcore *core, const struct ttcore_actions *actions)
{
    const struct ttcore_share_relay *relay = &core->share_relay;
    CHECK_THAT(core->jobs.orphans == 0, "a step drops the jobs that it orphaned");
    CHECK_THAT(core->jobs.open <= core->jobs.max, "no more jobs are open than may be");
    CHECK_THAT(core->users.live <= core->sessions.live, "each user has a session");
    CHECK_THAT(core->sessions.live > 0 || core->inflight.entries == 0,
               "what is in flight has a session");
    CHECK_THAT(core->sessions.live > 0 || core->jobs.open == 0, "a job has a session");
    CHECK_THAT(core->inflight.helpers <= core->inflight.entries, "a node has a first holder");
    CHECK_THAT(core->flushes <= TTCORE_FLUSHES_MAX && core->next_cleared < core->results.buckets,
               "a flush has a place, and clears buckets that there are");
    CHECK_THAT(relay->count <= PROTO_BATCH_MAX && relay->payers <= TTCORE_SHARE_PAYERS,
               "results that wait to be passed on fit into a message");
    CHECK_THAT(relay->count == 0 || relay->payers > 0, "who shares results pays for them");
    CHECK_THAT(actions->messages <= actions->messages_max &&
                   actions->targets <= actions->targets_max,
               "what a step sends has room");
}

void ttcore_step(struct ttcore *core, const struct ttcore_event *event,
                 struct ttcore_actions *actions)
{
    struct ttcore_session *session;
    uint64_t dropped = actions->dropped;
    ttcore_actions_reset(actions);
    if (event->now_us > core->now_us) {
        core->now_us = event->now_us;
    }
    switch (event->kind) {
    case TTCORE_MESSAGE:
        on_message(core, event, actions);
        break;
    case TTCORE_GONE:
        session = ttcore_sessions_find(&core->sessions, event->route, event->route_length);
        if (session != NULL) {
            ttcore_lose_session(core, session, actions);
        }
        break;
    case TTCORE_TICK:
        on_tick(core, actions);
        break;
    case TTCORE_STOP:
        ttcore_dismiss_sessions(core, actions);
        break;
    case TTCORE_MORE:
        ttcore_flush_some(core, actions);
        break;
    }
    core->count.dropped += actions->dropped - dropped;
    check_step(core, actions);
}
