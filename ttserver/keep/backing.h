/* backing: the results of each shard, of at least some depth, in a Redis: read at start, written
 * behind by a thread of its own.
 *
 * The shard only notes which buckets of its table have something new (ttserver/core/ledger.h);
 * the thread reads these buckets and writes them, some in a round trip, at low priority and a
 * twentieth of the time, in short turns. When Redis is gone nothing is lost and nobody waits: what
 * is unwritten stays noted, one line says so, and once it is back the whole table is written, as it
 * may have lost some. When Redis was not there at start and comes later, what it has is read then.
 *
 * Threads: all calls belong to the main thread; the thread has the link once it runs. Memory:
 * allocates in open and attach. open and attach block on the network: as long as Redis reads its
 * file, a minute at most, and as long as its answers take; signals may end the process meanwhile.
 * end blocks for BACKING_END_MS at most, or one time-out of connecting more. */
#ifndef TTSERVER_KEEP_BACKING_H
#define TTSERVER_KEEP_BACKING_H

#include "common/redis/redis_address.h"
#include "ttserver/core/ledger.h"
#include "ttserver/keep/backing_redis.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

enum { BACKING_END_MS = 10000 };

struct backing_options {
    const char *program; /* in the log; borrowed until end */
    const struct redis_address *address; /* borrowed until end; a single server without TLS */
    const char *host; /* host where the shards listen; shard i at port + i */
    uint16_t port; /* not 0 */
    unsigned shards;
    uint8_t depth_min; /* least depth of the results that are kept */
};

struct backing_shard {
    char name[BACKING_NAME_MAX];
    struct backing_record own; /* in Redis, or to be; `buckets` only grows */
    struct backing_record old; /* another place's, removed when all is written; or place 0 */
    struct tt_results *results; /* borrowed from attach to end */
    struct ttcore_ledger *ledger;
    uint64_t flushed; /* so many flushes of the ledger's are done in the Redis */
    bool is_read; /* what Redis had under the name when this process began */
};

struct backing {
    struct backing_options options;
    char where[REDIS_TEXT_MAX];
    struct backing_shard *shard; /* [shards] */
    struct backing_link *link; /* NULL: Redis is not there */
    bool is_down; /* set when that was said */
    pthread_t thread;
    bool is_running;
    _Atomic uint64_t end_by_us; /* 0: not asked for */
    pthread_mutex_t mutex;
    pthread_cond_t wake; /* end_by_us is set */
};

/* Finds what Redis has of each shard (`own`). ERR_NOMEM; ERR_IO, said in one line: this build has
 * no Redis (backing_none.c). */
enum err backing_open(struct backing *b, const struct backing_options *options);
/* Reads the results of a shard, which has `place`, into its table, before the shard runs.
 * ERR_NOMEM. */
enum err backing_attach(struct backing *b, unsigned shard, struct tt_results *results,
                        struct ttcore_ledger *ledger, uint64_t place);
/* Starts the thread. False: it could not be. */
bool backing_start(struct backing *b);
/* Writes what is not written, ends the thread: after the shards ended. Frees; accepts a zeroed
 * struct, and twice. */
void backing_end(struct backing *b);

#endif
