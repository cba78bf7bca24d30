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
 * heartbeat, because what they sent meanwhile still waits to be read. */
#ifndef TTSERVER_CORE_CORE_H
#define TTSERVER_CORE_CORE_H

#include "common/err.h"
#include "ttserver/core/actions.h"

#include <stddef.h>
#include <stdint.h>

enum {
    TTCORE_SESSIONS_MAX = 1 << 20,
    TTCORE_JOBS_MAX = 1 << 12,
    TTCORE_HOLD_BYTES = 128, /* memory of one hold in the in-flight table, about */
};

struct ttcore_options {
    uint64_t boot; /* random per start: clients see a restart by it */
    uint64_t start_us; /* on the clock of the events */
    size_t results_bytes;
    uint32_t inflight_max; /* holds */
    uint32_t sessions_max; /* 1..TTCORE_SESSIONS_MAX */
    uint32_t jobs_max; /* 1..TTCORE_JOBS_MAX */
    uint32_t batch_max; /* operations in a message, 1..PROTO_BATCH_MAX */
    uint32_t heartbeat_ms; /* positive */
    uint32_t hold_max_ms; /* age limit of a hold, positive */
};

/* 4096 sessions, 64 jobs, whole batches, 1 s, 60 s; boot, start_us, results_bytes, inflight_max are
 * left to the caller. */
struct ttcore_options ttcore_defaults(void);

enum ttcore_event_kind {
    TTCORE_MESSAGE, /* `route` said `bytes`; length 0: said something that is no message at all */
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
    X(peeks) X(node_dones) X(job_posts) X(job_reports) X(reports_astray)             \
    X(holds_lapsed) X(sessions_opened) X(sessions_lapsed) X(malformed) X(no_session)    \
    X(refused) X(dropped)
#define TTCORE_GAUGES(X)                                                             \
    X(sessions) X(workers) X(fronts) X(jobs) X(inflight_nodes) X(inflight_holds)     \
    X(inflight_refused) X(results_permille) X(generation) X(uptime_ms)               \
    X(memory_bytes)
/* clang-format on */

struct ttcore_figures {
#define X(name) uint64_t name;
    TTCORE_COUNTERS(X) TTCORE_GAUGES(X)
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
unsigned ttcore_holds_of(const struct ttcore *core, const uint8_t *route, size_t length);

#endif
