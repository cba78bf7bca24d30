/* redis_shell: a remote table's shell over Redis (worker/redis): each client's shards are made of
 * Redis. It takes the client's messages (proto/messages.h), does what they say by scripts that run
 * atomically on the server, and gives the client the messages that a shard would have answered. So
 * all that is above it, time-outs, recovery, deferred reads, jobs, is that of ttservers.
 *
 * A single Redis is one shard; a Redis Cluster is REDIS_SHELL_SHARDS shards, each in one slot, so
 * that an entry and its holders sit together and a batch is one call. Redis keeps: results,
 * in-flight entries with holders and their expiry, sessions with theirs, jobs with theirs, workers'
 * indexes.
 *
 * Threads: one for each shell, its client's; `first` may be another thread's and is closed last.
 * Memory: allocates in open, for batches under way, and for what one reading of the
 * sockets brings (some MiB a connection at most; given back when it was more than 256 KiB); the
 * link keeps its own. Blocking: never, except the lane's wait.
 */
#ifndef WORKER_REDIS_REDIS_SHELL_H
#define WORKER_REDIS_REDIS_SHELL_H

#include "common/redis/redis_address.h"
#include "proto/lane/lane.h"

struct redis_shell;

/* One for each client. `program` says on stderr, each kind once in ten minutes, what went wrong
 * with the Redis; NULL: silence. `first`: NULL, or another of the process: what it has said is not
 * said again. ERR_NOMEM, ERR_IO. */
enum err redis_shell_open(struct redis_shell **out, const struct redis_address *address,
                          const char *program, struct redis_shell *first);
/* After the client on it is closed. Accepts NULL; nulls. */
void redis_shell_close(struct redis_shell **shell);

/* 0: this build has no Redis (redis_shell_none.c). */
unsigned redis_shell_shards(const struct redis_address *address);
struct lane redis_shell_lane(struct redis_shell *shell);

#endif
