/* on_job: jobs, posted by a front-end, pushed to workers, dropped with their owner. Threads: the
 * core's owner. */
#ifndef TTSERVER_CORE_ON_JOB_H
#define TTSERVER_CORE_ON_JOB_H

#include "ttserver/core/call.h"

/* Pushes every open job to target 0. */
void ttcore_push_jobs(struct ttcore_call *call);
/* The jobs of a session have no owner from now on ... */
void ttcore_orphan_jobs(struct ttcore *core, struct ttcore_session *session);
/* ... until this drops them and stops them at the workers, once for all sessions that ended. */
void ttcore_drop_orphans(struct ttcore *core, struct ttcore_actions *actions);

#endif
