/* core_state: what a shard knows, one message that is being handled, and the list of the handlers:
 * what the core's files share; nobody else includes it (tests look at its counters). Threads: the
 * core's owner. Memory: a call and all in it is borrowed for one step. */
#ifndef TTSERVER_CORE_STATE_H
#define TTSERVER_CORE_STATE_H

#include "common/tt/ops.h"
#include "ttserver/core/actions.h"
#include "ttserver/core/job_table.h"
#include "ttserver/core/offender.h"
#include "ttserver/core/options.h"
#include "ttserver/core/session_table.h"
#include "ttserver/core/share_relay.h"

/* A FLUSH under way. */
struct ttcore_flush {
    uint32_t session, request;
    uint64_t left; /* buckets to be cleared; 0: the place is free */
};

struct ttcore {
    /* fixed after open */
    struct ttcore_options options;
    uint64_t expiry_us; /* of silence */
    /* state */
    struct tt_results results;
    struct tt_inflight inflight;
    struct ttcore_sessions sessions;
    struct ttcore_users users;
    struct ttcore_jobs jobs;
    struct ttcore_offenders offenders;
    uint64_t now_us;
    uint64_t last_tick_us;
    uint64_t no_expiry_before_us;
    struct tt_generations generations;
    uint32_t next_worker_index; /* to be sent again */
    uint32_t next_owed; /* worker index: where the owed pushes go on */
    bool pushes_owed; /* of some session */
    struct ttcore_flush flush[TTCORE_FLUSHES_MAX];
    struct ttcore_share_relay share_relay;
    unsigned flushes; /* of them, under way */
    uint64_t next_cleared; /* bucket */
    struct ttcore_changes changes;
    /* statistics: the counters; gauges are filled in on reading */
    struct ttcore_figures count;
};

static inline uint64_t ttcore_heartbeat_us(const struct ttcore *core)
{
    return (uint64_t)core->options.heartbeat_ms * 1000;
}

/* The sender is target 0 of the actions. */
struct ttcore_call {
    struct ttcore *core;
    struct ttcore_session *session; /* NULL in a first HELLO only */
    const struct proto_message *message;
    const struct ttcore_event *event;
    struct ttcore_actions *actions;
    struct ttcore_peer peer; /* the sender */
};

/* Adds a session as a target; as ttcore_actions_target. */
static inline uint32_t ttcore_target(struct ttcore_actions *actions,
                                     const struct ttcore_session *session)
{
    return ttcore_actions_target(actions, session->route, session->route_length);
}

/* Sends to one session. */
static inline void ttcore_send(struct ttcore_actions *actions, const struct ttcore_session *session,
                               const struct proto_message *message)
{
    ttcore_actions_send(actions, message, ttcore_target(actions, session), 1);
}

static inline void ttcore_reply(struct ttcore_call *call, const struct proto_message *message)
{
    ttcore_actions_send(call->actions, message, 0, 1);
}

/* Answers ERROR; `request` 0 when the message has none. */
static inline void ttcore_error(struct ttcore_call *call, enum proto_error_code code,
                                uint32_t request, const char *text)
{
    struct proto_message answer = {.type = PROTO_ERROR};
    answer.error = (struct proto_error){(uint16_t)code, request, proto_text_of(text)};
    ttcore_reply(call, &answer);
}

/* The same, counted in `refused`. */
static inline void ttcore_refuse(struct ttcore_call *call, enum proto_error_code code,
                                 uint32_t request, const char *text)
{
    call->core->count.refused++;
    ttcore_error(call, code, request, text);
}

/* What a role may send. An administrator (TTCORE_MAY_STOP_ANY_JOB) may stop jobs in any. */
enum {
    TTCORE_SEARCHERS = TTCORE_MAY_WORK | TTCORE_MAY_POST | TTCORE_MAY_USE_TABLE,
    TTCORE_ANYBODY = TTCORE_SEARCHERS | TTCORE_MAY_READ_STATISTICS,
    TTCORE_REPORTERS = TTCORE_MAY_WORK | TTCORE_MAY_POST,
    TTCORE_FLUSHERS = TTCORE_MAY_POST | TTCORE_MAY_USE_TABLE,
    TTCORE_STOPPERS = TTCORE_MAY_POST | TTCORE_MAY_STOP_ANY_JOB,
};

/* How often something may be done, as one time: each use moves it on by one step or more, and it
 * may lie some `burst` steps ahead of now (the generic cell rate algorithm of ATM, ITU-T I.371).
 * Zero is unused. Whether it may be done once more now; counts it as `cost` steps if so. */
static inline bool ttcore_budget_take(uint64_t *budget_us, uint64_t now_us, uint32_t burst,
                                      uint64_t step_us, uint32_t cost)
{
    uint64_t from_us = *budget_us > now_us ? *budget_us : now_us;
    if (from_us - now_us > (burst - 1) * step_us) {
        return false;
    }
    *budget_us = from_us + cost * step_us;
    return true;
}

/* HANDLER(TYPE, name, who may send it): what a shard understands; the rest of proto/messages.h goes
 * the other way. In on_session.c, on_table.c, on_job.c, on_share.c, on_mail.c,
 * on_watch.c, on_results.c, in this order. */
#define TTCORE_HANDLERS(HANDLER)                      \
    HANDLER(HELLO, hello, TTCORE_ANYBODY)             \
    HANDLER(HEARTBEAT, heartbeat, TTCORE_ANYBODY)     \
    HANDLER(BYE, bye, TTCORE_ANYBODY)                 \
    HANDLER(RETRIEVE_ASK, ask, TTCORE_SEARCHERS)      \
    HANDLER(STORE_HASH, store, TTCORE_SEARCHERS)      \
    HANDLER(RELEASE, release, TTCORE_SEARCHERS)       \
    HANDLER(PEEK, peek, TTCORE_SEARCHERS)             \
    HANDLER(JOB_POST, job_post, TTCORE_MAY_POST)      \
    HANDLER(JOB_STOP, job_stop, TTCORE_STOPPERS)      \
    HANDLER(JOB_REPORT, job_report, TTCORE_REPORTERS) \
    HANDLER(SHARE, share, TTCORE_SEARCHERS)           \
    HANDLER(MAIL_JOIN, mail_join, TTCORE_SEARCHERS)   \
    HANDLER(MAIL, mail, TTCORE_SEARCHERS)             \
    HANDLER(STATS, stats, TTCORE_ANYBODY)             \
    HANDLER(MEMBERS, members, TTCORE_ANYBODY)         \
    HANDLER(JOBS, jobs, TTCORE_ANYBODY)               \
    HANDLER(SCAN, scan, TTCORE_SEARCHERS)             \
    HANDLER(FLUSH, flush, TTCORE_FLUSHERS)

/* Each apart: all in one function share its registers, and a step takes 7% longer. */
#define HANDLER(TYPE, name, roles) \
    __attribute__((noinline)) void ttcore_on_##name(struct ttcore_call *call);
TTCORE_HANDLERS(HANDLER)
#undef HANDLER

/* ---- on_job.c ---- */

/* A front-end whose connection broke comes back as another session of the same instance. */
bool ttcore_owns_job(const struct ttcore *core, const struct ttcore_job *job,
                     const struct ttcore_session *session);
/* Pushes the open jobs from that slot on to a run of targets, as many as a connection's queue has
 * room for. Returns the slot to go on from, or 0 after the last. */
uint32_t ttcore_push_jobs(const struct ttcore *core, struct ttcore_actions *actions, uint32_t from,
                          uint32_t first, uint32_t targets);
/* The jobs of a session have no owner from now on ... */
void ttcore_orphan_jobs(struct ttcore *core, struct ttcore_session *session);
/* ... until this drops them and stops them at the workers, once for all sessions that ended. */
void ttcore_drop_orphans(struct ttcore *core, struct ttcore_actions *actions);

/* ---- on_results.c ---- */

/* Clears a piece of the results, if a FLUSH waits for it, and answers those that are done. */
void ttcore_flush_some(struct ttcore *core, struct ttcore_actions *actions);

/* ---- on_session.c ---- */

/* The sender does not speak our version. */
void ttcore_refuse_version(struct ttcore_call *call, uint32_t request);
/* A worker gets its worker_index at HELLO, and in turns at every tick, as a message may be lost. */
void ttcore_send_worker_indexes(struct ttcore *core, struct ttcore_actions *actions);
/* The open jobs, to workers whose HELLO was answered without them: to so many, in turns. */
void ttcore_push_owed(struct ttcore *core, struct ttcore_actions *actions);
/* The session's connection is gone. */
void ttcore_lose_session(struct ttcore *core, struct ttcore_session *session,
                         struct ttcore_actions *actions);
/* Ends the sessions that were silent for too long. */
void ttcore_expire_sessions(struct ttcore *core, struct ttcore_actions *actions);
/* Removes the in-flight entries made or renewed at or before `before_us`. */
void ttcore_expire_inflight(struct ttcore *core, uint64_t before_us);
/* Says BYE to all and ends them. */
void ttcore_dismiss_sessions(struct ttcore *core, struct ttcore_actions *actions);

#endif
