/* ttcore's inside: what the core's own files share, and nobody else includes. Threads: the core's.
 */
#ifndef TTSERVER_CORE_STATE_H
#define TTSERVER_CORE_STATE_H

#include "common/tt/ops.h"
#include "ttserver/core/core.h"
#include "ttserver/core/history.h"
#include "ttserver/core/job.h"
#include "ttserver/core/offender.h"
#include "ttserver/core/scratch.h"
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
    unsigned last_namespace; /* index of the one of the last JOB_POST */
    uint32_t next_worker_index; /* to be told again */
    /* statistics: the counters; gauges are filled in on reading */
    struct ttcore_figures count;
};

/* One message being answered. Its sender is target 0 of the actions. */
struct ttcore_call {
    struct ttcore *core;
    struct ttcore_session *session; /* NULL in a first HELLO only */
    const struct proto_message *message;
    const struct ttcore_event *event;
    struct ttcore_actions *actions;
};

void ttcore_reply(struct ttcore_call *call, const struct proto_message *message);
/* Answers ERROR; `request` 0 when the message has none. */
void ttcore_refuse(struct ttcore_call *call, enum proto_error_code code, uint32_t request,
                   const char *text);

/* Members (ttserver/core/member.c). */
void ttcore_on_hello(struct ttcore_call *call);
void ttcore_on_bye(struct ttcore_call *call);
void ttcore_on_heartbeat(struct ttcore_call *call);
/* A worker is told its worker_index: at HELLO, and in turns at every tick, so that a lost one is
 * mended. */
void ttcore_send_worker_indexes(struct ttcore *core, struct ttcore_actions *actions);
/* The session's connection is gone. */
void ttcore_lose_member(struct ttcore *core, struct ttcore_session *session,
                        struct ttcore_actions *actions);
void ttcore_expire_members(struct ttcore *core, struct ttcore_actions *actions);
void ttcore_dismiss_members(struct ttcore *core, struct ttcore_actions *actions);

/* Jobs (ttserver/core/work.c). */
void ttcore_on_job_post(struct ttcore_call *call);
void ttcore_on_job_stop(struct ttcore_call *call);
void ttcore_on_job_report(struct ttcore_call *call);
/* Pushes every open job to target 0. */
void ttcore_push_jobs(struct ttcore_call *call);
/* The jobs of a session have no owner from now on ... */
void ttcore_orphan_jobs(struct ttcore *core, struct ttcore_session *session);
/* ... until this drops them and tells the workers, once for all sessions that ended. */
void ttcore_drop_orphans(struct ttcore *core, struct ttcore_actions *actions);

/* For people (ttserver/core/watch.c). */
void ttcore_on_stats(struct ttcore_call *call);
void ttcore_on_members(struct ttcore_call *call);
void ttcore_on_jobs(struct ttcore_call *call);

/* What searchers learn together (ttserver/core/history.c). */
void ttcore_on_history(struct ttcore_call *call);
/* What they tell each other (ttserver/core/share.c). */
void ttcore_on_share(struct ttcore_call *call);

/* Operations (ttserver/core/batch.c). */
void ttcore_on_ask(struct ttcore_call *call);
void ttcore_on_store(struct ttcore_call *call);
void ttcore_on_release(struct ttcore_call *call);
void ttcore_on_peek(struct ttcore_call *call);

#endif
