/* server: all shards of one process, their threads, and the signals that end them.
 *
 * SIGHUP opens the log anew (log.h) and, with keys, reads the list of users again; SIGUSR1 writes
 * snapshots at once. Threads: the main one. May block; returns when the server has ended. */
#ifndef TTSERVER_SERVER_H
#define TTSERVER_SERVER_H

#include "common/listen.h"
#include "common/redis/redis_address.h"
#include "ttserver/core/core.h"

enum { SERVER_SHARDS_MAX = 256 };

/* Where results outlive the shards: in files (keep_files.h), or in a Redis (backing.h), or not at
 * all. */
struct server_keep {
    const char *snapshot; /* path; NULL: no snapshots */
    uint32_t snapshot_every_s;
    const struct redis_address *backing; /* borrowed; NULL: none, as with a snapshot */
    uint32_t backing_depth;
};

struct server_options {
    const char *program; /* in messages */
    struct options_host_port listen; /* shard i takes port + i; port 0: the first any free one */
    struct listen_address address[LISTEN_ADDRESSES_MAX]; /* addresses of listen.host */
    unsigned addresses;
    const char *keys_dir; /* NULL: no keys */
    unsigned shards; /* 1..SERVER_SHARDS_MAX */
    struct ttcore_options core; /* options of each shard; boot and start_us are set here */
    struct server_keep keep;
    const struct options_host_port *metrics; /* NULL: none */
    const char *log; /* file, from "ready" on; NULL: standard error */
};

/* Prints "ready HOST:PORT" per shard on stdout once all serve; runs until SIGINT or SIGTERM (a
 * second one ends the process at once). Returns the exit code; a failure was said in one line. */
int server_run(const struct server_options *options);

#endif
