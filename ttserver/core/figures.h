/* figures: what a shard counts, listed once. The lists make struct ttcore_figures, STATS_ANSWER in
 * this order, the JSON of `abdada top`, and the metrics for Prometheus, whose help is `help`.
 * Operations count one by one, not by message. A name that ends in _ms, _bytes or _permille has
 * that unit; the others are numbers of things.
 *
 * X(name, help), and FAULT(name, help) of what somebody has to look at: `abdada top` shows these
 * where they are not 0, with the help, which says what to do. docs/reference/top.md says more. What
 * a cluster copes with is no FAULT. All are uint64_t. Pure. */
#ifndef TTSERVER_CORE_FIGURES_H
#define TTSERVER_CORE_FIGURES_H

#include <stdint.h>

/* clang-format off */
#define TTCORE_COUNTERS(X, FAULT) \
    X(messages, "Messages received") \
    X(batches, "Batches of operations received") \
    X(asks, "Nodes asked for (RetrieveAsk)") \
    X(cuts, "Asks answered by a result") \
    X(busy, "Asks answered BUSY: another searcher is in the node") \
    X(opens, "Asks answered OPEN: the asker searches the node") \
    X(stores, "Results stored (StoreHash)") \
    X(releases, "Nodes left without a result") \
    X(peeks, "Nodes asked about without entering them") \
    X(node_dones, "Completion notices sent") \
    X(job_posts, "Jobs posted") \
    X(job_reports, "Reports on jobs") \
    X(reports_unknown_job, "Reports on jobs that are not open here") \
    X(inflight_expired, "In-flight entries that ended by age or with a silent session") \
    X(sessions_opened, "Sessions opened") \
    FAULT(sessions_expired, "Sessions that ended by silence: check whether a program hangs or lost its network") \
    FAULT(sessions_gone, "Sessions that ended without BYE: a program crashed or was killed, see its log") \
    FAULT(sessions_refused, "Sessions refused because there were too many: raise --sessions") \
    X(shared, "Results passed on to other tables") \
    X(shared_dropped, "Results not passed on because there were too many") \
    X(letters, "Letters passed on between the searchers of a job (MAIL)") \
    X(letters_too_fast, "Letters and joins not taken because they came too fast") \
    X(letters_lost, "Letters for searchers that are not there") \
    FAULT(jobs_refused, "Jobs refused because there were too many, or of a taken id: raise --jobs") \
    FAULT(sessions_over_quota, "Sessions refused because the user had too many: ask that user") \
    FAULT(jobs_over_quota, "Jobs refused because the user had too many: ask that user") \
    FAULT(posts_too_fast, "Jobs refused because the user posted too fast: ask that user") \
    X(reports_too_fast, "Reports not passed on because they came too fast") \
    X(pushes_put_off, "Open jobs sent later because they were asked for too often") \
    FAULT(role_refused, "Messages that the sender's role or key does not allow: give it a key of the right role") \
    FAULT(batches_refused, "Batches refused because they were too long: find the sender") \
    FAULT(malformed, "Messages that could not be read: find the sender") \
    FAULT(versions_refused, "Messages of a version that is not spoken here: upgrade the sender") \
    X(no_session, "Messages of peers without a session") \
    X(refused, "Requests refused for any reason") \
    FAULT(ignored, "Messages of peers that are ignored for a while: find the sender") \
    FAULT(dropped, "Answers that found no room: check whether a program hangs") \
    X(scanned, "Results given to SCAN") \
    X(flushes, "Times that all results were forgotten")

/* What the shell counts. */
#define TTCORE_OUTSIDE(X, FAULT) \
    X(sent, "Messages sent") \
    X(unreachable, "Messages for connections that were gone") \
    FAULT(queue_full, "Messages for peers that did not read: check whether a program hangs") \
    X(hints_dropped, "Broadcast results for peers that did not read, in messages") \
    FAULT(multipart, "Messages in several parts, which were refused: find the sender") \
    FAULT(oversized, "Messages that were too long: find the sender") \
    FAULT(handshakes_failed, "Connections refused in the handshake: check keys, and who reaches the port") \
    FAULT(pending_closed, "Connections closed for want of a session: check keys, and who reaches the port") \
    FAULT(slow_closed, "Connections closed because they did not read: check whether a program hangs")

/* What other parts of the shard count. */
#define TTCORE_PARTS(X, FAULT) \
    FAULT(inflight_refused, "In-flight entries refused because there were too many: raise --memory, or add a shard") \
    FAULT(inflight_over_quota, "In-flight entries refused because the session or its user had too many: ask that user") \
    X(snapshots, "Snapshots written") \
    FAULT(snapshot_failures, "Snapshots that could not be written: check disk and rights, see the log") \
    X(backing_written, "Results written to the Redis behind") \
    FAULT(backing_lost, "Results that could not be written there: check that Redis")

/* These go up and down. */
#define TTCORE_GAUGES(X) \
    X(sessions, "Sessions now") \
    X(workers, "Sessions of workers now") \
    X(fronts, "Sessions of front-ends now") \
    X(monitors, "Sessions of monitors now") \
    X(users, "Users with a session now") \
    X(jobs, "Jobs open now") \
    X(inflight_nodes, "Nodes in which searchers are now") \
    X(inflight_entries, "In-flight entries now: a searcher in a node") \
    X(results_permille, "Part of the table that has results of the present generation") \
    X(generation, "Generation of the last job's namespace") \
    X(uptime_ms, "Time since the start") \
    X(memory_bytes, "Memory reserved for results, sessions, jobs and in-flight entries") \
    X(sessions_max, "Most sessions") \
    X(jobs_max, "Most open jobs") \
    X(inflight_max, "Most in-flight entries") \
    X(session_inflight_max, "Most in-flight entries of a session") \
    X(batch_max, "Most operations in a message") \
    X(protocol, "Version of the protocol that is spoken") \
    X(heartbeat_ms, "Time of a heartbeat") \
    X(inflight_age_max_ms, "Age at which in-flight entries expire") \
    X(restored, "Results read at the start") \
    X(snapshot_entries, "Results in the last snapshot") \
    X(backing_behind, "Results that are still to be written to the Redis behind")
/* clang-format on */

struct ttcore_outside {
#define X(name, help) uint64_t name;
    TTCORE_OUTSIDE(X, X)
#undef X
};

struct ttcore_figures {
#define X(name, help) uint64_t name;
    TTCORE_COUNTERS(X, X) TTCORE_OUTSIDE(X, X) TTCORE_PARTS(X, X) TTCORE_GAUGES(X)
#undef X
};

struct ttcore;

/* As they are now. By the thread that owns the core. */
void ttcore_figures(const struct ttcore *core, struct ttcore_figures *out);

#endif
