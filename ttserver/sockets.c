#include "ttserver/sockets.h"

#include "common/clock.h"
#include "ttserver/net/connections.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct sockets_socket {
    uv_poll_t poll;
    int fd;
    struct connection *connection;
};

static uint64_t now_ns(void *self)
{
    (void)self;
    return clock_ns();
}

static uint64_t cpu_ns(void *self)
{
    (void)self;
    return clock_cpu_ns();
}

/* ---- accepting ---- */

/* As IPv6. */
static struct in6_addr address_of(const struct sockaddr_storage *from)
{
    struct in6_addr at = {0};
    if (from->ss_family == AF_INET6) {
        return ((const struct sockaddr_in6 *)(const void *)from)->sin6_addr;
    }
    at.s6_addr[10] = at.s6_addr[11] = 0xff; /* IPv4, mapped */
    memcpy(&at.s6_addr[12], &((const struct sockaddr_in *)(const void *)from)->sin_addr, 4);
    return at;
}

static enum socket_accepted accept_one(void *self, void *listener, void **socket,
                                       struct in6_addr *from)
{
    struct sockaddr_storage address = {0};
    socklen_t size = sizeof address;
    uv_os_fd_t listening = -1;
    int one = 1;
    (void)uv_fileno(listener, &listening);
    int fd = accept4(listening, (struct sockaddr *)&address, &size, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0) {
        bool is_want = errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM;
        return errno == EAGAIN || errno == EWOULDBLOCK ? SOCKET_NOBODY
               : is_want                               ? SOCKET_NO_ROOM
                                                       : SOCKET_FAILED;
    }
    struct sockets_socket *s = calloc(1, sizeof *s);
    if (s == NULL || uv_poll_init(self, &s->poll, fd) != 0) {
        free(s);
        close(fd);
        return SOCKET_FAILED;
    }
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    s->fd = fd;
    s->poll.data = s;
    *from = address_of(&address);
    *socket = s;
    return SOCKET_ACCEPTED;
}

/* ---- watching ---- */

static void on_event(uv_poll_t *poll, int status, int events)
{
    const struct sockets_socket *s = poll->data;
    if (status < 0) {
        connections_failed(s->connection);
    } else {
        connections_ready(s->connection, (events & UV_READABLE ? SOCKET_READABLE : 0U) |
                                             (events & UV_WRITABLE ? SOCKET_WRITABLE : 0U));
    }
}

static bool watch(void *socket, struct connection *c, unsigned events)
{
    struct sockets_socket *s = socket;
    int wanted =
        (events & SOCKET_READABLE ? UV_READABLE : 0) | (events & SOCKET_WRITABLE ? UV_WRITABLE : 0);
    s->connection = c;
    return wanted == 0 ? uv_poll_stop(&s->poll) == 0
                       : uv_poll_start(&s->poll, wanted, on_event) == 0;
}

/* ---- bytes ---- */

/* Outcome of a call that returned no bytes. */
static ssize_t outcome(int err)
{
    return err == EAGAIN || err == EWOULDBLOCK ? SOCKET_LATER : SOCKET_ENDED;
}

static ssize_t read_some(void *socket, uint8_t *to, size_t room)
{
    const struct sockets_socket *s = socket;
    ssize_t n = recv(s->fd, to, room, MSG_DONTWAIT);
    if (n < 0) {
        return errno == EINTR ? SOCKET_LATER : outcome(errno);
    }
    return n > 0 ? n : SOCKET_ENDED;
}

static ssize_t write_some(void *socket, const uint8_t *from, size_t length)
{
    const struct sockets_socket *s = socket;
    ssize_t n;
    do {
        n = send(s->fd, from, length, MSG_DONTWAIT | MSG_NOSIGNAL);
    } while (n < 0 && errno == EINTR);
    return n < 0 ? outcome(errno) : n;
}

static void on_closed(uv_handle_t *handle)
{
    free(handle->data);
}

static void close_socket(void *socket)
{
    struct sockets_socket *s = socket;
    uint8_t rest[512];
    /* First: it takes the descriptor out of the loop. */
    uv_close((uv_handle_t *)&s->poll, on_closed);
    /* Bytes that nobody read would make close() reset the connection, and the peer lose our last
     * words. */
    shutdown(s->fd, SHUT_WR);
    for (int i = 0; i < 16 && recv(s->fd, rest, sizeof rest, MSG_DONTWAIT) > 0; i++) {
    }
    close(s->fd);
}

struct socket_port sockets_port(uv_loop_t *loop)
{
    return (struct socket_port){.self = loop,
                                .now_ns = now_ns,
                                .cpu_ns = cpu_ns,
                                .accept = accept_one,
                                .watch = watch,
                                .read = read_some,
                                .write = write_some,
                                .close = close_socket};
}
