/* sockets: the kernel's sockets, watched by a libuv loop, for the connections of a shard
 * (ttserver/net/socket_port.h). A listener is the uv_poll_t of a listening socket.
 *
 * Threads: the loop's. Memory: a socket is freed by the loop after its close. Never blocks. */
#ifndef TTSERVER_SOCKETS_H
#define TTSERVER_SOCKETS_H

#include "ttserver/net/socket_port.h"

#include <uv.h>

/* The loop is borrowed, and has to run once more after the last close. */
struct socket_port sockets_port(uv_loop_t *loop);

#endif
