/* ttcore_options: the limits of a shard's core, what it is given at start, and what it counts.
 * Pure types. */
#ifndef TTSERVER_CORE_OPTIONS_H
#define TTSERVER_CORE_OPTIONS_H

#include "proto/codec.h"
#include "ttserver/core/survival.h"

#include <stddef.h>
#include <stdint.h>

enum {
    TTCORE_SESSIONS_MAX = 1 << 20,
    TTCORE_JOBS_MAX = 1 << 12,
    TTCORE_INFLIGHT_ENTRY_BYTES = 80, /* memory of one entry, about */
    TTCORE_MEMBERS_PAGE = 256, /* sessions in one MEMBERS_ANSWER, at most */
    TTCORE_JOBS_PAGE = 8, /* jobs in one JOBS_ANSWER, at most */
    TTCORE_INDEXES_PER_TICK = 64, /* worker indexes repeated in one tick */
    TTCORE_OWED_PER_TICK = 64, /* workers that get the jobs they are owed with one tick */
    TTCORE_HISTORIES_MAX = 1 << 12,
    TTCORE_REPORTS_BURST = 256, /* of a session, passed on at once ... */
    TTCORE_REPORTS = 200, /* ... and then in a heartbeat */
    TTCORE_HISTORY_SENT = PROTO_BATCH_MAX, /* weights in one HISTORY_ANSWER, at most */
    TTCORE_HISTORY_WAIT_MS = 10, /* between a searcher's HISTORYs, or half a ms per session */
    TTCORE_HISTORY_ALONE_MS = 100, /* when the session is the only one */
    TTCORE_SCAN_BUCKETS = 8192, /* gone through for one SCAN: 512 KiB, some 100 us */
    TTCORE_FLUSH_BUCKETS = 16384, /* cleared in one step: 1 MiB, some 100 us */
    TTCORE_FLUSHES_MAX = 16, /* FLUSHes not answered yet */
};

/* What the shell counts; STATS answers it, too. */
/* clang-format off */
#define TTCORE_OUTSIDE(X) X(sent) X(unreachable) X(queue_full) X(multipart) X(oversized) \
    X(handshakes_failed) X(pending_closed) X(silent_closed) X(slow_closed)
/* clang-format on */

struct ttcore_outside {
#define X(name) uint64_t name;
    TTCORE_OUTSIDE(X)
#undef X
};

struct ttcore_options {
    uint64_t boot; /* random per start: clients see a restart by it */
    uint64_t place; /* which keys are its own: 0: those of `boot`, or as once when it was filled
                       with the results that it, or another, had then */
    uint64_t secret; /* random, never sent: seeds the hashes of what peers choose */
    uint64_t start_us; /* on the clock of the events */
    size_t results_bytes;
    uint32_t inflight_max; /* entries */
    uint32_t session_inflight_max; /* of one session; 0: inflight_max */
    uint32_t sessions_max; /* 1..TTCORE_SESSIONS_MAX */
    uint32_t jobs_max; /* 1..TTCORE_JOBS_MAX */
    uint32_t histories_max; /* root keys, 1..TTCORE_HISTORIES_MAX */
    uint32_t batch_max; /* operations in a message, 1..PROTO_BATCH_MAX */
    uint32_t heartbeat_ms; /* positive */
    uint32_t inflight_age_max_ms; /* age limit of an in-flight entry, positive */
    const struct ttcore_outside *outside; /* borrowed until close; may be NULL */
    struct ttcore_survival *survival; /* borrowed until close; may be NULL */
};

/* What STATS answers, in this order. Operations count one by one, not by message. */
/* clang-format off */
#define TTCORE_COUNTERS(X)                                                           \
    X(messages) X(batches) X(asks) X(cuts) X(busy) X(opens) X(stores) X(releases)    \
    X(peeks) X(node_dones) X(job_posts) X(job_reports) X(reports_unknown_job)             \
    X(inflight_expired) X(sessions_opened) X(sessions_expired) X(sessions_gone)           \
    X(sessions_refused) X(history_published) X(history_sent) X(history_refused) X(shared)  \
    X(jobs_refused) X(sessions_over_quota) X(jobs_over_quota) X(posts_too_fast)           \
    X(reports_too_fast) X(pushes_put_off) X(role_refused) X(batches_refused) X(malformed) X(no_session) X(refused) X(ignored) \
    X(dropped) X(scanned) X(flushes)
#define TTCORE_GAUGES(X)                                                             \
    X(sessions) X(workers) X(fronts) X(monitors) X(users) X(jobs) X(inflight_nodes) X(inflight_entries)     \
    X(inflight_refused) X(results_permille) X(generation) X(uptime_ms)               \
    X(memory_bytes) X(sessions_max) X(jobs_max) X(histories_max) X(inflight_max)     \
    X(batch_max) X(heartbeat_ms) X(inflight_age_max_ms) X(inflight_over_quota) X(session_inflight_max) \
    X(restored) X(snapshots) X(snapshot_failures) X(snapshot_entries)                \
    X(backing_written) X(backing_lost) X(backing_behind)
/* clang-format on */

struct ttcore_figures {
#define X(name) uint64_t name;
    TTCORE_COUNTERS(X) TTCORE_OUTSIDE(X) TTCORE_GAUGES(X)
#undef X
};

struct ttcore;

void ttcore_figures(const struct ttcore *core, struct ttcore_figures *out);

#endif
