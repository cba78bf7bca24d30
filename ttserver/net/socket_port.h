/* socket_port: what the connections of a shard need of the world: sockets, and the time.
 *
 * Behind it are the kernel and libuv (ttserver/shard.c), or a model of both in the virtual
 * cluster (tests/chaos/lab_service.c). Threads: the shard's. Memory: a socket is the port's, from
 * accept to close. Nothing here blocks. */
#ifndef TTSERVER_NET_SOCKET_PORT_H
#define TTSERVER_NET_SOCKET_PORT_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct connection;

enum socket_events { SOCKET_READABLE = 1, SOCKET_WRITABLE = 2 };

/* In place of a number of bytes. */
enum socket_outcome { SOCKET_LATER = 0, SOCKET_ENDED = -1 };

enum socket_accepted {
    SOCKET_ACCEPTED,
    SOCKET_NOBODY, /* nobody waits to be accepted */
    SOCKET_NO_ROOM, /* there are no descriptors or no memory for one more */
    SOCKET_FAILED, /* the one that waited is gone; the next may do */
};

struct socket_port {
    void *self;
    /* Never goes back. */
    uint64_t (*now_ns)(void *self);
    /* CPU time that the shard has had so far. */
    uint64_t (*cpu_ns)(void *self);
    /* Accepts a connection that waits at the listener, with its address (IPv4 mapped into IPv6). */
    enum socket_accepted (*accept)(void *self, void *listener, void **socket,
                                   struct in6_addr *from);
    /* From now on connections_ready is called for `c` when any of these events comes, again and
     * again while it lasts; 0: never. False: it cannot be, and what was watched before still is. */
    bool (*watch)(void *socket, struct connection *c, unsigned events);
    /* Takes at most `room` bytes (positive) of those that came: how many, or an outcome. */
    ssize_t (*read)(void *socket, uint8_t *to, size_t room);
    /* Sends some of `length` bytes (positive): how many were taken, or an outcome. */
    ssize_t (*write)(void *socket, const uint8_t *from, size_t length);
    /* What was written is still delivered, where the peer reads. Frees the socket. */
    void (*close)(void *socket);
};

#endif
