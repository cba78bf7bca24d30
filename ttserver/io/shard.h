/* shard: one core behind one ROUTER socket, served by one libuv loop in one thread.
 *
 * open and close belong to the main thread, before the thread starts and after it ended; run is the
 * thread; stop may be called from any thread. Memory: allocates in open only (ZeroMQ and libuv have
 * their own). Counters are read after run returned. */
#ifndef TTSERVER_IO_SHARD_H
#define TTSERVER_IO_SHARD_H

#include "ttserver/core/core.h"

#include <stdint.h>
#include <uv.h>

struct shard_options {
    struct ttcore_options core;
    const char *endpoint; /* of ZeroMQ; read in open only */
    bool is_v6;
    unsigned io_thread; /* of the context, for this socket's connections */
    uv_async_t *ended; /* told when run is about to return */
};

struct shard {
    /* fixed after open */
    struct ttcore *core;
    void *socket;
    uint16_t port;
    uv_async_t *ended;
    uint64_t tick_ms;
    /* the thread's */
    uv_loop_t loop;
    uv_poll_t poll;
    uv_idle_t more; /* active while messages wait that a turn had no time for */
    uv_timer_t tick;
    uv_async_t stop;
    struct ttcore_actions actions;
    enum err outcome; /* why run returned */
    /* statistics */
    uint64_t received, sent;
    uint64_t unreachable; /* the peer was gone */
    uint64_t full; /* the peer does not read: its queue is at the mark */
    uint64_t multipart; /* messages of more frames than two */
};

/* Binds and is ready to run. ERR_NOMEM, ERR_RANGE (core options), ERR_EXIST (address in use),
 * ERR_IO with errno of ZeroMQ. */
enum err shard_open(struct shard *shard, void *context, const struct shard_options *options);

/* Serves until shard_stop or an error of the socket (`outcome`). Blocks. */
void shard_run(struct shard *shard);

/* BYE to all sessions, then run returns. */
void shard_stop(struct shard *shard);

/* Accepts a zeroed struct, and twice. */
void shard_close(struct shard *shard);

#endif
