/* ttcore: one shard of the table as a pure machine: an event in, messages out.
 *
 * It keeps the sessions, the open jobs, the results and the in-flight entries; it knows no socket,
 * no thread and no clock: time comes with the event. The same lines serve the libuv shell
 * (ttserver/net, ttserver/shard.h), the tests and the virtual cluster. Threads: one at a time per
 * core. Memory: allocates in open only; what it emits is borrowed (ttserver/core/actions.h). Never
 * blocks.
 *
 * A session expires after three and a half heartbeats of silence. Then its in-flight entries are
 * removed, its jobs are dropped and stopped at the workers. TICK must come at least once per
 * heartbeat: a longer gap means that the shard itself was asleep, and then every session gets one
 * more heartbeat, because what they sent meanwhile still waits to be read. A shell that finds out
 * earlier that a connection is gone says so (TTCORE_GONE). The order of the modules: docs/design.md
 * section 16. */
#ifndef TTSERVER_CORE_CORE_H
#define TTSERVER_CORE_CORE_H

#include "common/err.h"
#include "common/tt/results.h"
#include "ttserver/core/actions.h"
#include "ttserver/core/options.h"

#include <stddef.h>
#include <stdint.h>

/* 4096 sessions, 64 jobs, whole batches, 1 s, 60 s, no quota of in-flight entries;
 * boot, secret, start_us, results_bytes, inflight_max are left to the caller. */
struct ttcore_options ttcore_defaults(void);

/* ERR_NOMEM; ERR_RANGE for an option outside its limits. */
enum err ttcore_open(struct ttcore **out, const struct ttcore_options *options);
/* Frees and nulls; accepts a null. */
void ttcore_close(struct ttcore **core);

/* Whether something waits that takes long (a FLUSH): then MORE does a piece of it, some 100 us, as
 * often as the shell has time between messages. */
bool ttcore_has_more(const struct ttcore *core);

/* The table itself, for those who read or fill it beside the shard (common/tt/results.h says who
 * may). */
struct tt_results *ttcore_results(struct ttcore *core);

/* Takes one event. `actions` is emptied first; what it then holds is borrowed from the event, the
 * core and itself until the next step of any of them. Bad input never changes the table: it is
 * counted and answered by an ERROR, or by nothing when the sender has no session. */
void ttcore_step(struct ttcore *core, const struct ttcore_event *event,
                 struct ttcore_actions *actions);

/* Whether the peer behind a route has a session. */
bool ttcore_knows(const struct ttcore *core, const uint8_t *route, size_t length);

/* The peer has spoken, though its message is not taken yet: its session is not silent. */
void ttcore_touch(struct ttcore *core, const uint8_t *route, size_t length, uint64_t now_us);

/* In-flight entries of the session behind a route; 0 when there is none. O(those). */
unsigned ttcore_inflight_of(const struct ttcore *core, const uint8_t *route, size_t length);

#endif
