/* ttcore_call: what a shard knows, one message that is being handled, and the list of the handlers:
 * what the core's files share; nobody else includes it. Threads: the core's owner. Memory: a call
 * and all in it is borrowed for one step. */
#ifndef TTSERVER_CORE_CALL_H
#define TTSERVER_CORE_CALL_H

#include "common/tt/ops.h"
#include "ttserver/core/actions.h"
#include "ttserver/core/history_tables.h"
#include "ttserver/core/job_table.h"
#include "ttserver/core/offender.h"
#include "ttserver/core/options.h"
#include "ttserver/core/session.h"

struct ttcore {
    /* fixed after open */
    struct ttcore_options options;
    uint64_t expiry_us; /* of silence */
    /* state */
    struct tt_results results;
    struct tt_inflight inflight;
    struct ttcore_sessions sessions;
    struct ttcore_jobs jobs;
    struct ttcore_histories histories;
    struct ttcore_offenders offenders;
    uint64_t now_us;
    uint64_t last_tick_us;
    uint64_t no_expiry_before_us;
    struct tt_generations generations;
    uint32_t next_worker_index; /* to be sent again */
    /* statistics: the counters; gauges are filled in on reading */
    struct ttcore_figures count;
};

/* The sender is target 0 of the actions. */
struct ttcore_call {
    struct ttcore *core;
    struct ttcore_session *session; /* NULL in a first HELLO only */
    const struct proto_message *message;
    const struct ttcore_event *event;
    struct ttcore_actions *actions;
};

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

/* HANDLER(TYPE, name): what a shard understands; the rest of proto/messages.h goes the other way.
 * In on_session.c, on_table.c, on_job.c, on_history.c and on_share.c, on_stats.c, in this order. */
#define TTCORE_HANDLERS(HANDLER)    \
    HANDLER(HELLO, hello)           \
    HANDLER(HEARTBEAT, heartbeat)   \
    HANDLER(BYE, bye)               \
    HANDLER(RETRIEVE_ASK, ask)      \
    HANDLER(STORE_HASH, store)      \
    HANDLER(RELEASE, release)       \
    HANDLER(PEEK, peek)             \
    HANDLER(JOB_POST, job_post)     \
    HANDLER(JOB_STOP, job_stop)     \
    HANDLER(JOB_REPORT, job_report) \
    HANDLER(HISTORY, history)       \
    HANDLER(SHARE, share)           \
    HANDLER(STATS, stats)           \
    HANDLER(MEMBERS, members)       \
    HANDLER(JOBS, jobs)

#define HANDLER(TYPE, name) void ttcore_on_##name(struct ttcore_call *call);
TTCORE_HANDLERS(HANDLER)
#undef HANDLER

/* ---- on_job.c ---- */

/* Pushes every open job to target 0. */
void ttcore_push_jobs(struct ttcore_call *call);
/* The jobs of a session have no owner from now on ... */
void ttcore_orphan_jobs(struct ttcore *core, struct ttcore_session *session);
/* ... until this drops them and stops them at the workers, once for all sessions that ended. */
void ttcore_drop_orphans(struct ttcore *core, struct ttcore_actions *actions);

/* ---- on_session.c ---- */

/* A worker gets its worker_index at HELLO, and in turns at every tick, as a message may be lost. */
void ttcore_send_worker_indexes(struct ttcore *core, struct ttcore_actions *actions);
/* The session's connection is gone. */
void ttcore_lose_session(struct ttcore *core, struct ttcore_session *session,
                         struct ttcore_actions *actions);
/* Ends the sessions that were silent for too long. */
void ttcore_expire_sessions(struct ttcore *core, struct ttcore_actions *actions);
/* Says BYE to all and ends them. */
void ttcore_dismiss_sessions(struct ttcore *core, struct ttcore_actions *actions);

#endif
