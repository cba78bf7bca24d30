/* shard: one core behind listening TCP sockets, one for each address of its name, served by one
 * libuv loop in one thread, which watches the kernel's sockets for its connections
 * (ttserver/net/socket_port.h).
 *
 * open and close belong to the main thread, before the thread starts and after it ended; run is the
 * thread; stop and reread may be called from any thread. Memory: ttserver/net/connections.h.
 * Counters are read after run returned. */
#ifndef TTSERVER_SHARD_H
#define TTSERVER_SHARD_H

#include "common/listen.h"
#include "ttserver/net/connections.h"
#include "ttserver/server_metrics.h"

#include <uv.h>

struct shard_options {
    struct connections_options peers; /* open sets `port` and `pending_ms` */
    const struct listen_address *address; /* read in open only */
    unsigned addresses;
    uint16_t port; /* 0: any */
    uv_async_t *ended; /* signalled when run is about to return */
    struct server_metrics_shard
        *metrics; /* gets its figures; borrowed until close; NULL: nobody does */
};

struct shard_listener {
    int fd;
    uv_poll_t accepting;
};

struct shard {
    /* fixed after open */
    const char *program;
    struct shard_listener listener[LISTEN_ADDRESSES_MAX];
    unsigned listeners;
    uint16_t port;
    uv_async_t *ended;
    struct server_metrics_shard *metrics;
    uint64_t tick_ms;
    /* the thread's */
    uv_loop_t loop;
    struct socket_port sockets;
    uv_check_t after_poll;
    uv_idle_t more; /* active while somebody waits for a turn: the loop polls without waiting */
    uv_timer_t tick;
    uv_timer_t second; /* for people: the log, the figures */
    uv_timer_t accept_again; /* active while nobody is accepted */
    uv_async_t stop, reread;
    struct shard_connections peers;
};

/* Listens and is ready to run. ERR_NOMEM, ERR_RANGE (core options), ERR_EXIST (address in use),
 * ERR_IO with errno. */
enum err shard_open(struct shard *shard, const struct shard_options *options);

/* Serves until shard_stop. Blocks. */
void shard_run(struct shard *shard);

/* BYE to all sessions, then run returns. */
void shard_stop(struct shard *shard);

/* Takes the present list of users; connections of those who are not in it end. */
void shard_reread(struct shard *shard);

/* Accepts a zeroed struct, and twice. */
void shard_close(struct shard *shard);

/* Closes every handle of a loop that does not run, then the loop. */
void shard_close_loop(uv_loop_t *loop);

#endif
