/* on_session: sessions come, stay and end: HELLO, HEARTBEAT, worker indexes, BYE, silence. Threads:
 * the core's owner. */
#ifndef TTSERVER_CORE_ON_SESSION_H
#define TTSERVER_CORE_ON_SESSION_H

#include "ttserver/core/call.h"

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
