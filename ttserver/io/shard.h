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

enum { SHARD_GONE_MAX = 64 };

struct shard_route {
    uint8_t length;
    uint8_t bytes[TTCORE_ROUTE_MAX];
};

struct shard_options {
    struct ttcore_options core;
    const char *endpoint; /* of ZeroMQ; read in open only */
    bool is_v6;
    unsigned io_thread; /* of the context, for this socket's connections */
    uv_async_t *ended; /* signalled when run is about to return */
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
    uv_timer_t rest; /* active while none but messages of ignored peers wait, as far as we know */
    uv_timer_t tick;
    uv_async_t stop;
    struct ttcore_actions actions;
    enum err outcome; /* why run returned */
    unsigned lost; /* routes found gone in this step; the rest are found at their next message */
    struct shard_route gone[SHARD_GONE_MAX];
    /* statistics: sent, unreachable (the peer was gone), queue_full (it does not read: its queue is
     * at the limit), multipart (messages of more frames than two), oversized */
    uint64_t received;
    struct ttcore_outside outside;
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

/* Closes every handle of a loop that does not run, then the loop. */
void shard_close_loop(uv_loop_t *loop);

#endif
