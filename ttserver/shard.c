#include "ttserver/shard.h"

#include "common/clock.h"
#include "common/log.h"
#include "ttserver/net/socket_port.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    BACKLOG = 1024, /* a cluster starts at once */
};

/* ---- the kernel's sockets, as connections want them (socket_port.h) ---- */

/* A listener is the uv_poll_t of a listening socket. A `shard_socket` is freed by the loop after
 * its close; a listener, in `struct shard`, is not. */
struct shard_socket {
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
    struct shard_socket *s = calloc(1, sizeof *s);
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

static void on_event(uv_poll_t *poll, int status, int events)
{
    const struct shard_socket *s = poll->data;
    if (status < 0) {
        connections_failed(s->connection);
    } else {
        connections_ready(s->connection, (events & UV_READABLE ? SOCKET_READABLE : 0U) |
                                             (events & UV_WRITABLE ? SOCKET_WRITABLE : 0U));
    }
}

static bool watch(void *socket, struct connection *c, unsigned events)
{
    struct shard_socket *s = socket;
    int wanted =
        (events & SOCKET_READABLE ? UV_READABLE : 0) | (events & SOCKET_WRITABLE ? UV_WRITABLE : 0);
    s->connection = c;
    return wanted == 0 ? uv_poll_stop(&s->poll) == 0
                       : uv_poll_start(&s->poll, wanted, on_event) == 0;
}

/* Outcome of a call that returned no bytes. */
static ssize_t outcome(int err)
{
    return err == EAGAIN || err == EWOULDBLOCK ? SOCKET_LATER : SOCKET_ENDED;
}

static ssize_t read_some(void *socket, uint8_t *to, size_t room)
{
    const struct shard_socket *s = socket;
    ssize_t n = recv(s->fd, to, room, MSG_DONTWAIT);
    if (n < 0) {
        return errno == EINTR ? SOCKET_LATER : outcome(errno);
    }
    return n > 0 ? n : SOCKET_ENDED;
}

static ssize_t write_some(void *socket, const uint8_t *from, size_t length)
{
    const struct shard_socket *s = socket;
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
    struct shard_socket *s = socket;
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

static struct socket_port port_of(uv_loop_t *loop)
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

/* ---- callbacks of the loop ---- */

static void on_more(uv_idle_t *idle)
{
    (void)idle; /* after_poll serves */
}

static void after_poll(uv_check_t *check)
{
    struct shard *shard = check->data;
    if (connections_turn(&shard->peers)) {
        uv_idle_start(&shard->more, on_more);
    } else {
        uv_idle_stop(&shard->more);
    }
}

static void on_accept_again(uv_timer_t *timer);

static void on_accept(uv_poll_t *poll, int status, int events)
{
    struct shard *shard = poll->data;
    (void)status, (void)events;
    if (!connections_accept(&shard->peers, poll)) {
        for (unsigned i = 0; i < shard->listeners; i++) {
            uv_poll_stop(&shard->listener[i].accepting);
        }
        uv_timer_start(&shard->accept_again, on_accept_again, CONNECTIONS_ACCEPT_REST_MS, 0);
    }
}

static void on_accept_again(uv_timer_t *timer)
{
    struct shard *shard = timer->data;
    for (unsigned i = 0; i < shard->listeners; i++) {
        uv_poll_start(&shard->listener[i].accepting, UV_READABLE, on_accept);
    }
}

/* "2 workers joined (a, b)" */
static void name_changed(const struct ttcore_changed *changed, const char *verb, char *out,
                         size_t size)
{
    size_t used = 0;
    out[0] = '\0';
    if (changed->count == 0) {
        return;
    }
    used += (size_t)snprintf(out, size, "%u worker%s %s (", changed->count,
                             changed->count == 1 ? "" : "s", verb);
    for (unsigned i = 0; i < changed->count && i < TTCORE_CHANGED_NAMES; i++) {
        char name[TTCORE_NAME_MAX];
        proto_text_printable(proto_text_of(changed->name[i]), name, sizeof name);
        used += (size_t)snprintf(out + used, size - used, "%s%s", i > 0 ? ", " : "", name);
    }
    snprintf(out + used, size - used, "%s)", changed->count > TTCORE_CHANGED_NAMES ? ", ..." : "");
}

/* Not often, whatever a peer does. */
static void say_changes(struct shard *shard)
{
    enum { ROOM = 64 + TTCORE_CHANGED_NAMES * (TTCORE_NAME_MAX + 2) };
    char came[ROOM], went[ROOM];
    struct ttcore_changes changes = ttcore_take_changes(shard->peers.core);
    if (changes.came.count + changes.went.count > 0) {
        name_changed(&changes.came, "joined", came, sizeof came);
        name_changed(&changes.went, "left", went, sizeof went);
        log_line(shard->program, "port %u: %s%s%s; %u now", shard->port, came,
                 *came && *went ? ", " : "", went, changes.workers);
    }
}

static void on_tick(uv_timer_t *timer)
{
    struct shard *shard = timer->data;
    connections_tick(&shard->peers);
}

/* Not with the tick, which a long heartbeat makes rare. */
static void on_second(uv_timer_t *timer)
{
    struct shard *shard = timer->data;
    struct ttcore_figures figures;
    say_changes(shard);
    if (shard->metrics != NULL) {
        ttcore_figures(shard->peers.core, &figures);
        server_metrics_publish(shard->metrics, &figures);
    }
}

static void on_reread(uv_async_t *async)
{
    struct shard *shard = async->data;
    connections_reread(&shard->peers);
}

static void on_stop(uv_async_t *async)
{
    struct shard *shard = async->data;
    connections_dismiss(&shard->peers);
    uv_stop(&shard->loop);
}

/* ---- life ---- */

static enum err open_loop(struct shard *shard)
{
    if (uv_loop_init(&shard->loop) != 0) {
        return ERR_NOMEM;
    }
    shard->loop.data = shard; /* says that the loop is there to be closed */
    if (uv_idle_init(&shard->loop, &shard->more) != 0 ||
        uv_check_init(&shard->loop, &shard->after_poll) != 0 ||
        uv_timer_init(&shard->loop, &shard->tick) != 0 ||
        uv_timer_init(&shard->loop, &shard->second) != 0 ||
        uv_timer_init(&shard->loop, &shard->accept_again) != 0 ||
        uv_async_init(&shard->loop, &shard->stop, on_stop) != 0 ||
        uv_async_init(&shard->loop, &shard->reread, on_reread) != 0) {
        return ERR_IO;
    }
    for (unsigned i = 0; i < shard->listeners; i++) {
        struct shard_listener *l = &shard->listener[i];
        if (uv_poll_init(&shard->loop, &l->accepting, l->fd) != 0) {
            return ERR_IO;
        }
        l->accepting.data = shard;
    }
    shard->accept_again.data = shard->second.data = shard;
    shard->more.data = shard->after_poll.data = shard->tick.data = shard->stop.data =
        shard->reread.data = shard;
    return ERR_OK;
}

enum err shard_open(struct shard *shard, const struct shard_options *options)
{
    struct connections_options peers = options->peers;
    const uint32_t heartbeat_ms = peers.core.heartbeat_ms;
    int fd[LISTEN_ADDRESSES_MAX];
    unsigned fds = 0;
    memset(shard, 0, sizeof *shard);
    shard->program = peers.program;
    shard->ended = options->ended;
    shard->metrics = options->metrics;
    shard->sockets = port_of(&shard->loop);
    shard->tick_ms = heartbeat_ms >= 4 ? heartbeat_ms / 4 : 1;
    peers.port = &shard->sockets;
    peers.pending_ms = CONNECTIONS_PENDING_MS;
    enum err err = connections_open(&shard->peers, &peers);
    err = err ? err
              : listen_bind(options->address, options->addresses, options->port, BACKLOG, fd, &fds,
                            &shard->port);
    while (err == ERR_OK && shard->listeners < fds) {
        shard->listener[shard->listeners].fd = fd[shard->listeners];
        shard->listeners++;
    }
    err = err ? err : open_loop(shard);
    if (err != ERR_OK) {
        int saved = errno;
        shard_close(shard);
        errno = saved;
    }
    return err;
}

void shard_run(struct shard *shard)
{
    uv_timer_start(&shard->tick, on_tick, shard->tick_ms, shard->tick_ms);
    uv_timer_start(&shard->second, on_second, 0, SERVER_METRICS_EVERY_MS);
    uv_check_start(&shard->after_poll, after_poll);
    on_accept_again(&shard->accept_again);
    uv_run(&shard->loop, UV_RUN_DEFAULT);
    uv_async_send(shard->ended);
}

void shard_stop(struct shard *shard)
{
    uv_async_send(&shard->stop);
}

void shard_reread(struct shard *shard)
{
    uv_async_send(&shard->reread);
}

static void close_handle(uv_handle_t *handle, void *unused)
{
    (void)unused;
    if (!uv_is_closing(handle)) {
        uv_close(handle, NULL);
    }
}

void shard_close_loop(uv_loop_t *loop)
{
    uv_walk(loop, close_handle, NULL);
    uv_run(loop, UV_RUN_DEFAULT);
    uv_loop_close(loop);
}

void shard_close(struct shard *shard)
{
    connections_disconnect(&shard->peers);
    if (shard->loop.data != NULL) {
        shard_close_loop(&shard->loop);
        shard->loop.data = NULL;
    }
    while (shard->listeners > 0) {
        close(shard->listener[--shard->listeners].fd);
    }
    connections_close(&shard->peers);
}
