/* ttcore: one shard of the table as a pure machine: an event in, messages out.
 *
 * It keeps the sessions, the open jobs, the results and the in-flight sets; it knows no socket, no
 * thread and no clock: time enters with the event. The same lines serve the libuv shell
 * (ttserver/io), the tests and the virtual cluster. Threads: one at a time per core. Memory:
 * allocates in open only; what it emits is borrowed (ttserver/core/actions.h). Never blocks.
 *
 * A session lapses after three and a half heartbeats of silence. Its holds leave the in-flight
 * sets, its jobs are dropped and the workers told. TICK must come at least once per heartbeat: a
 * longer gap means that the shard itself was asleep, and then every session gets one more
 * heartbeat, because what they sent meanwhile still waits to be read. The shell that learns earlier
 * that a connection is gone says so (TTCORE_GONE). */
#ifndef TTSERVER_CORE_CORE_H
#define TTSERVER_CORE_CORE_H

#include "common/err.h"
#include "ttserver/core/actions.h"

#include <stddef.h>
#include <stdint.h>

enum {
    TTCORE_SESSIONS_MAX = 1 << 20,
    TTCORE_JOBS_MAX = 1 << 12,
    TTCORE_INFLIGHT_ENTRY_BYTES = 80, /* memory of one hold in the in-flight table, about */
    TTCORE_MEMBERS_PAGE = 256, /* sessions in one MEMBERS_ANSWER, at most */
    TTCORE_JOBS_PAGE = 8, /* jobs in one JOBS_ANSWER, at most */
    TTCORE_INDEXES_PER_TICK = 64, /* workers told their worker_index again in one tick */
    TTCORE_HISTORIES_MAX = 1 << 12,
    TTCORE_HISTORY_SENT = PROTO_BATCH_MAX, /* weights in one HISTORY_ANSWER, at most */
    TTCORE_HISTORY_WAIT_MS = 10, /* between a searcher's HISTORYs, or half a ms per session */
    TTCORE_HISTORY_ALONE_MS = 100, /* when there is nobody to learn from */
};

/* What the shell counts and STATS answers, too. */
#define TTCORE_OUTSIDE(X) X(sent) X(unreachable) X(queue_full) X(multipart) X(oversized)

struct ttcore_outside {
#define X(name) uint64_t name;
    TTCORE_OUTSIDE(X)
#undef X
};

struct ttcore_options {
    uint64_t boot; /* random per start: clients see a restart by it */
    uint64_t secret; /* random, told to nobody: seeds the hashes of what peers choose */
    uint64_t start_us; /* on the clock of the events */
    size_t results_bytes;
    uint32_t inflight_max; /* holds */
    uint32_t session_inflight_max; /* of one session; 0: inflight_max */
    uint32_t sessions_max; /* 1..TTCORE_SESSIONS_MAX */
    uint32_t jobs_max; /* 1..TTCORE_JOBS_MAX */
    uint32_t histories_max; /* root keys, 1..TTCORE_HISTORIES_MAX */
    uint32_t batch_max; /* operations in a message, 1..PROTO_BATCH_MAX */
    uint32_t heartbeat_ms; /* positive */
    uint32_t inflight_age_max_ms; /* age limit of a hold, positive */
    const struct ttcore_outside *outside; /* borrowed until close; may be NULL */
};

/* 4096 sessions, 64 jobs, 64 root keys, whole batches, 1 s, 60 s, no quota of holds; boot, secret,
 * start_us, results_bytes, inflight_max are left to the caller. */
struct ttcore_options ttcore_defaults(void);

enum ttcore_event_kind {
    TTCORE_MESSAGE, /* `route` said `bytes`; length 0: said something that is no message at all */
    TTCORE_GONE, /* the connection of `route` is no more: its session ends */
    TTCORE_TICK, /* time went by */
    TTCORE_STOP, /* BYE to all; every session ends */
};

struct ttcore_event {
    enum ttcore_event_kind kind;
    uint64_t now_us; /* steps back are taken for no time at all */
    const uint8_t *route; /* the peer's ROUTER id, 1..TTCORE_ROUTE_MAX bytes */
    size_t route_length;
    const uint8_t *bytes;
    size_t length;
};

/* What STATS answers, in this order. Operations count one by one, not by message. */
/* clang-format off */
#define TTCORE_COUNTERS(X)                                                           \
    X(messages) X(batches) X(asks) X(cuts) X(busy) X(opens) X(stores) X(releases)    \
    X(peeks) X(node_dones) X(job_posts) X(job_reports) X(reports_unknown_job)             \
    X(inflight_expired) X(sessions_opened) X(sessions_expired) X(sessions_gone)           \
    X(sessions_refused) X(history_published) X(history_sent) X(history_refused) X(shared)  \
    X(jobs_refused) X(batches_refused) X(malformed) X(no_session) X(refused) X(ignored) \
    X(dropped)
#define TTCORE_GAUGES(X)                                                             \
    X(sessions) X(workers) X(fronts) X(jobs) X(inflight_nodes) X(inflight_entries)     \
    X(inflight_refused) X(results_permille) X(generation) X(uptime_ms)               \
    X(memory_bytes) X(sessions_max) X(jobs_max) X(histories_max) X(inflight_max)     \
    X(batch_max) X(heartbeat_ms) X(inflight_age_max_ms) X(inflight_over_quota) X(session_inflight_max)
/* clang-format on */

struct ttcore_figures {
#define X(name) uint64_t name;
    TTCORE_COUNTERS(X) TTCORE_OUTSIDE(X) TTCORE_GAUGES(X)
#undef X
};

struct ttcore;

/* ERR_NOMEM; ERR_RANGE for an option outside its limits. */
enum err ttcore_open(struct ttcore **out, const struct ttcore_options *options);
/* Frees and nulls; accepts a null. */
void ttcore_close(struct ttcore **core);

/* Takes one event. `actions` is emptied first; what it then holds is borrowed from the event, the
 * core and itself until the next step of any of them. Bad input never changes the table: it is
 * counted and answered by an ERROR, or by nothing when no session stands behind it. */
void ttcore_step(struct ttcore *core, const struct ttcore_event *event,
                 struct ttcore_actions *actions);

void ttcore_figures(const struct ttcore *core, struct ttcore_figures *out);
/* Holds of the session behind a route; 0 when there is none. For tests: O(its holds). */
unsigned ttcore_inflight_of(const struct ttcore *core, const uint8_t *route, size_t length);

#endif
