/* struct ttcore: what a shard knows. The core's files alone include this; each of them that handles
 * messages is a module of its own above it. Threads: the core's owner. */
#ifndef TTSERVER_CORE_STATE_H
#define TTSERVER_CORE_STATE_H

#include "common/tt/ops.h"
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

#endif
