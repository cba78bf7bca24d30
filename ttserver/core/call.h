/* ttcore_call: one message that is being handled, and the list of the handlers. Threads: the core's
 * owner. Memory: all is borrowed for one step. */
#ifndef TTSERVER_CORE_CALL_H
#define TTSERVER_CORE_CALL_H

#include "ttserver/core/actions.h"
#include "ttserver/core/state.h"

/* The sender is target 0 of the actions. */
struct ttcore_call {
    struct ttcore *core;
    struct ttcore_session *session; /* NULL in a first HELLO only */
    const struct proto_message *message;
    const struct ttcore_event *event;
    struct ttcore_actions *actions;
};

void ttcore_reply(struct ttcore_call *call, const struct proto_message *message);
/* Answers ERROR; `request` 0 when the message has none. */
void ttcore_error(struct ttcore_call *call, enum proto_error_code code, uint32_t request,
                  const char *text);
/* The same, counted in `refused`. */
void ttcore_refuse(struct ttcore_call *call, enum proto_error_code code, uint32_t request,
                   const char *text);

/* HANDLER(TYPE, name): what a shard understands; the rest of proto/messages.h goes the other way.
 * Each is in the on_*.c named above it. */
#define TTCORE_HANDLERS(HANDLER)                                                                 \
    /* on_session.c */ HANDLER(HELLO, hello) HANDLER(HEARTBEAT, heartbeat)                       \
        HANDLER(BYE, bye) /* on_table.c */ HANDLER(RETRIEVE_ASK, ask) HANDLER(STORE_HASH, store) \
            HANDLER(RELEASE, release)                                                            \
                HANDLER(PEEK, peek) /* on_job.c */ HANDLER(JOB_POST, job_post)                   \
                    HANDLER(JOB_STOP, job_stop)                                                  \
                        HANDLER(JOB_REPORT, job_report) /* on_history.c, on_share.c */ HANDLER(  \
                            HISTORY, history)                                                    \
                            HANDLER(SHARE, share) /* on_stats.c */ HANDLER(STATS, stats)         \
                                HANDLER(MEMBERS, members) HANDLER(JOBS, jobs)

#define HANDLER(TYPE, name) void ttcore_on_##name(struct ttcore_call *call);
TTCORE_HANDLERS(HANDLER)
#undef HANDLER

#endif
