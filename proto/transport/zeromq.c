#include "proto/transport/zeromq.h"

#include "common/clock.h"
#include "common/log.h"
#include "proto/transport/handshake.h"
#include "proto/transport/shard_address.h"

#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>
#include <zmq.h>

enum {
    /* Messages between this thread and ZeroMQ's, each way. Beyond that, incoming messages stay in
     * the connection and then at the shard, outgoing ones are refused. More would be out of date,
     * and a SHARE has 13 KiB: with 4,096 a busy host's worker kept megabytes. */
    HIGH_WATER = 256,
    RECONNECT_MS = 50,
    RECONNECT_MAX_MS = 400,
    /* TCP waits twice as long after each loss: without these limits a cable that was out for
     * seconds costs as many seconds more. A connection whose bytes are not confirmed is given up
     * and made anew. */
    UNCONFIRMED_MAX_MS = 1500,
    CONNECT_MAX_MS = 1000,
    LINGER_MS = 200, /* for BYE to leave */
    /* libzmq gives up for good a shard that says that our key is not allowed, or that has keys when
     * we have none, or none when we have some; any of these may change. */
    RENEW_US = 5000000,
    SILENT_US = 500000, /* after which a name may be that of another address */
    REST_US = 250,
    SLEEP_MAX_MS = 3600000, /* who sleeps too short a time sleeps again */
    RECEIVE_MAX = 256, /* messages per round and shard: the search goes on in between */
    /* Descriptors: a connection and an event for each socket; a poll, an event, what it takes to
     * look up a name and two more sockets for each server; and the rest of the program's. */
    FILES_EACH_SOCKET = 2,
    FILES_EACH_SERVER = 8,
    FILES_ELSE = 64,
    FILES_CONTEXT = 8, /* the context's own */
    REFUSAL_MAX = 128, /* of a shard's words */
    SOCKETS_TO_WATCH = 2, /* of a lane that says what a shard refuses */
};

struct zeromq_shard {
    void *socket;
    char name[OPTIONS_HOST_MAX + 16]; /* as the user says it */
    char endpoint[SHARD_ADDRESS_ENDPOINT_MAX];
    unsigned endpoint_number; /* 0: not connected yet */
    uint64_t unsent_from_us; /* 0: the last message was sent */
    uint64_t renewed_us;
    bool is_drained; /* a read found nothing, and nothing was done with the socket since */
    struct handshake handshake; /* watched until something was said */
    const char *refusal; /* of our keys; NULL: none is known */
};

struct zeromq {
    struct zeromq_shard shard[CLIENT_SHARDS_MAX];
    unsigned servers;
    const char *program; /* NULL: says nothing */
    struct zeromq *first; /* of the process, or itself */
    struct shard_addresses *addresses; /* of `first` */
    _Atomic uint64_t said_refused; /* of `first`: bit i: that shard i refuses a HELLO was said */
    /* round of reading: shard that is read, messages it gave, when the round began */
    unsigned turn, received;
    uint64_t round_us;
    zmq_msg_t message; /* that the client was given last */
    zmq_msg_t early; /* read by the sleep that it ended */
    bool has_early;
};

/* Connections of their own for all threads: in searches of 8 threads one message in 70 leaves
 * within 50 us of another, so one connection between them would hardly save a message. */
static enum err raise_files(unsigned servers, unsigned lanes, char why[ZEROMQ_WHY_MAX])
{
    rlim_t want =
        (rlim_t)FILES_EACH_SOCKET * servers * lanes + FILES_EACH_SERVER * servers + FILES_ELSE;
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= want) {
        return ERR_OK;
    }
    if (limit.rlim_max >= want) {
        limit.rlim_cur = want;
        if (setrlimit(RLIMIT_NOFILE, &limit) == 0) {
            return ERR_OK;
        }
    }
    snprintf(why, ZEROMQ_WHY_MAX,
             "%u threads with %u shards need %llu open files and the limit is %llu: allow more "
             "(ulimit -Hn %llu; LimitNOFILE= of a service), or use fewer threads",
             lanes, servers, (unsigned long long)want, (unsigned long long)limit.rlim_max,
             (unsigned long long)want);
    return ERR_FULL;
}

/* libzmq ends the process where it gets no descriptor for a socket: all that may be needed are
 * taken, and given back. Other threads may take them in between; that is left to chance. */
static bool files_are_free(unsigned want)
{
    int *fd = calloc(want, sizeof *fd);
    unsigned n = 0;
    while (fd != NULL && n < want && (fd[n] = eventfd(0, EFD_CLOEXEC)) >= 0) {
        n++;
    }
    for (unsigned i = 0; i < n; i++) {
        close(fd[i]);
    }
    free(fd);
    return n == want;
}

static enum err check_files(unsigned servers, unsigned lanes, char why[ZEROMQ_WHY_MAX])
{
    unsigned want = (FILES_EACH_SOCKET * lanes + FILES_EACH_SERVER) * servers + FILES_CONTEXT;
    if (files_are_free(want)) {
        return ERR_OK;
    }
    snprintf(why, ZEROMQ_WHY_MAX,
             "%u shards need %u more open files than this process has: close some, or allow more "
             "(ulimit -n; LimitNOFILE= of a service)",
             servers, want);
    return ERR_FULL;
}

enum err zeromq_context(void **out, unsigned servers, unsigned lanes, bool is_guest,
                        char why[ZEROMQ_WHY_MAX])
{
    enum err err = is_guest ? ERR_OK : raise_files(servers, lanes, why);
    err = err == ERR_OK ? check_files(servers, lanes, why) : err;
    if (err != ERR_OK) {
        return err;
    }
    void *context = zmq_ctx_new();
    if (context == NULL) {
        snprintf(why, ZEROMQ_WHY_MAX, "%s", err_text(ERR_NOMEM));
        return ERR_NOMEM;
    }
    /* 1,023 unless set: too few for 128 threads with 8 shards. */
    if (zmq_ctx_set(context, ZMQ_MAX_SOCKETS, (int)(servers * (lanes + SOCKETS_TO_WATCH))) != 0) {
        snprintf(why, ZEROMQ_WHY_MAX,
                 "%u threads with %u shards are more connections than ZeroMQ has", lanes, servers);
        zmq_ctx_term(context);
        return ERR_FULL;
    }
    *out = context;
    return ERR_OK;
}

/* Each shard has a thread of ZeroMQ's, so that much to move, or to encrypt, for one does not hold
 * up the others' messages. */
static void use_own_io_thread(const struct zeromq *z, void *socket)
{
    uint64_t affinity = UINT64_C(1) << z->servers;
    zmq_setsockopt(socket, ZMQ_AFFINITY, &affinity, sizeof affinity);
}

/* To the address that is the present one, where it is another than before. */
static void follow_address(const struct zeromq *z, struct zeromq_shard *shard, bool is_silent)
{
    char endpoint[SHARD_ADDRESS_ENDPOINT_MAX];
    unsigned number = shard_addresses_get(z->first->addresses, (unsigned)(shard - z->shard),
                                          shard->endpoint_number, is_silent, endpoint);
    if (number == shard->endpoint_number) {
        return;
    }
    if (shard->endpoint_number != 0) {
        zmq_disconnect(shard->socket, shard->endpoint);
    }
    memcpy(shard->endpoint, endpoint, sizeof endpoint);
    shard->endpoint_number = number;
    shard->unsent_from_us = shard->renewed_us = 0;
    zmq_connect(shard->socket, shard->endpoint);
}

static enum err open_socket(struct zeromq *z, void *context, const struct options_host_port *server,
                            const struct keys_client *keys, unsigned flags)
{
    int linger = LINGER_MS, limit = flags & ZEROMQ_UNLIMITED ? 0 : HIGH_WATER, one = 1;
    int first = RECONNECT_MS, max = RECONNECT_MAX_MS;
    int unconfirmed = UNCONFIRMED_MAX_MS, connect = CONNECT_MAX_MS;
    int64_t largest = PROTO_MESSAGE_MAX;
    void *socket = zmq_socket(context, ZMQ_DEALER);
    if (socket == NULL) {
        return errno == ENOMEM ? ERR_NOMEM : ERR_IO;
    }
    use_own_io_thread(z, socket);
    struct zeromq_shard *shard = &z->shard[z->servers++];
    shard->socket = socket;
    zmq_setsockopt(socket, ZMQ_LINGER, &linger, sizeof linger);
    zmq_setsockopt(socket, ZMQ_SNDHWM, &limit, sizeof limit);
    zmq_setsockopt(socket, ZMQ_RCVHWM, &limit, sizeof limit);
    /* Nothing is queued for a shard that is not there: it would arrive long after it was lost. */
    zmq_setsockopt(socket, ZMQ_IMMEDIATE, &one, sizeof one);
    zmq_setsockopt(socket, ZMQ_RECONNECT_IVL, &first, sizeof first);
    zmq_setsockopt(socket, ZMQ_RECONNECT_IVL_MAX, &max, sizeof max);
    zmq_setsockopt(socket, ZMQ_TCP_MAXRT, &unconfirmed, sizeof unconfirmed);
    zmq_setsockopt(socket, ZMQ_CONNECT_TIMEOUT, &connect, sizeof connect);
    zmq_setsockopt(socket, ZMQ_MAXMSGSIZE, &largest, sizeof largest);
    zmq_setsockopt(socket, ZMQ_IPV6, &one, sizeof one);
    enum err err = handshake_keys(socket, keys);
    if (err == ERR_OK && z->first == z && (z->program != NULL || flags & ZEROMQ_WATCHES)) {
        err = handshake_watch(&shard->handshake, context, socket, keys != NULL);
    }
    if (err != ERR_OK) {
        return err;
    }
    options_host_port_text(server->host, server->port, shard->name, sizeof shard->name);
    follow_address(z, shard, false);
    return ERR_OK;
}

enum err zeromq_open(struct zeromq **out, void *context, const struct options_host_port *server,
                     unsigned servers, const struct keys_client *keys, const char *program,
                     struct zeromq *first, unsigned flags)
{
    if (servers > CLIENT_SHARDS_MAX) {
        return ERR_RANGE;
    }
    struct zeromq *z = calloc(1, sizeof *z);
    enum err err = z == NULL ? ERR_NOMEM : ERR_OK;
    zmq_ctx_set(context, ZMQ_IO_THREADS, (int)servers);
    if (z != NULL) {
        zmq_msg_init(&z->message);
        zmq_msg_init(&z->early);
        z->program = program;
        z->first = first != NULL ? first : z;
        err =
            first == NULL ? shard_addresses_open(&z->addresses, server, servers, program) : ERR_OK;
    }
    for (unsigned i = 0; i < servers && err == ERR_OK; i++) {
        err = open_socket(z, context, &server[i], keys, flags);
    }
    if (err != ERR_OK) {
        zeromq_close(&z);
        return err;
    }
    *out = z;
    return ERR_OK;
}

/* Said once a shard. */
static void take_refusal(const struct zeromq *z, struct zeromq_shard *shard)
{
    const char *why = handshake_refusal(&shard->handshake);
    shard->refusal = why != NULL ? why : shard->refusal;
    if (why != NULL && z->program != NULL) {
        log_line(z->program, "shard %s %s", shard->name, why);
        handshake_close(&shard->handshake, shard->socket);
    }
}

const char *zeromq_refusal(struct zeromq *z, unsigned shard, bool *is_final)
{
    take_refusal(z, &z->shard[shard]);
    *is_final = z->shard[shard].handshake.is_final;
    return z->shard[shard].refusal;
}

void zeromq_close(struct zeromq **zeromq)
{
    for (unsigned i = 0; *zeromq != NULL && i < (*zeromq)->servers; i++) {
        struct zeromq_shard *shard = &(*zeromq)->shard[i];
        take_refusal(*zeromq, shard);
        handshake_close(&shard->handshake, shard->socket);
        zmq_close(shard->socket);
    }
    if (*zeromq != NULL) {
        zmq_msg_close(&(*zeromq)->message);
        zmq_msg_close(&(*zeromq)->early);
        shard_addresses_close(&(*zeromq)->addresses);
    }
    free(*zeromq);
    *zeromq = NULL;
}

static uint64_t now(void *self)
{
    (void)self;
    return clock_us();
}

/* Threads may be refused apart from each other, by a shard that has no room: one line for all. */
static void hello_refused(void *self, unsigned shard, struct proto_text why)
{
    struct zeromq *z = self;
    uint64_t bit = UINT64_C(1) << shard;
    char words[REFUSAL_MAX];
    if (z->program != NULL && !(atomic_fetch_or(&z->first->said_refused, bit) & bit)) {
        proto_text_printable(why, words, sizeof words);
        log_line(z->program, "shard %s refused us: %s", z->shard[shard].name, words);
    }
}

/* No connection, or one whose peer does not read. */
static void take_unsent(const struct zeromq *z, struct zeromq_shard *shard)
{
    uint64_t now_us = clock_us();
    take_refusal(z, shard);
    if (shard->unsent_from_us == 0) {
        shard->unsent_from_us = shard->renewed_us = now_us;
    }
    follow_address(z, shard, now_us - shard->unsent_from_us >= SILENT_US);
    if (shard->endpoint_number != 0 && shard->unsent_from_us != 0 &&
        now_us - shard->renewed_us >= RENEW_US) {
        handshake_renew(shard->socket, shard->endpoint);
        shard->renewed_us = now_us;
    }
}

static bool send_bytes(void *self, unsigned shard, const uint8_t *bytes, size_t length)
{
    struct zeromq *z = self;
    struct zeromq_shard *to = &z->shard[shard];
    to->is_drained = false;
    if (zmq_send(to->socket, bytes, length, ZMQ_DONTWAIT) < 0) {
        take_unsent(z, to);
        return false;
    }
    to->unsent_from_us = 0;
    return true;
}

static bool receive_from(struct zeromq *z, struct client *client, unsigned shard)
{
    struct zeromq_shard *from = &z->shard[shard];
    bool any = z->has_early ? zmq_msg_move(&z->message, &z->early) == 0
                            : zmq_msg_recv(&z->message, from->socket, ZMQ_DONTWAIT) >= 0;
    z->has_early = false;
    from->is_drained = !any && errno == EAGAIN;
    if (any) {
        client_receive(client, shard, zmq_msg_data(&z->message), zmq_msg_size(&z->message),
                       z->round_us);
    }
    return any;
}

static bool receive(void *self, struct client *client)
{
    struct zeromq *z = self;
    if (z->turn == 0 && z->received == 0) {
        z->round_us = clock_us();
    }
    for (; z->turn < z->servers; z->turn++, z->received = 0) {
        if (z->received < RECEIVE_MAX && receive_from(z, client, z->turn)) {
            z->received++;
            return true;
        }
    }
    z->turn = 0;
    return false;
}

/* A lone shard is waited for by reading: zmq_poll takes two more system calls a round trip. */
static void sleep_in_read(struct zeromq *z, long ms)
{
    int limit = ms < SLEEP_MAX_MS ? (int)ms : SLEEP_MAX_MS;
    if (!z->has_early) {
        zmq_setsockopt(z->shard[0].socket, ZMQ_RCVTIMEO, &limit, sizeof limit);
        z->has_early = zmq_msg_recv(&z->early, z->shard[0].socket, 0) >= 0;
        z->shard[0].is_drained = false;
    }
}

static void sleep_until(void *self, uint64_t until_us)
{
    struct zeromq *z = self;
    zmq_pollitem_t item[CLIENT_SHARDS_MAX];
    uint64_t now_us = clock_us();
    long ms = until_us <= now_us ? 0 : (long)((until_us - now_us + 999) / 1000);
    if (z->servers == 1) {
        sleep_in_read(z, ms);
        return;
    }
    for (unsigned i = 0; i < z->servers; i++) {
        item[i] = (zmq_pollitem_t){.socket = z->shard[i].socket, .events = ZMQ_POLLIN};
    }
    zmq_poll(item, (int)z->servers, ms);
}

/* Whether a message is there that the descriptor does not tell of. It does tell of all that comes
 * after a read that found none; but sending takes in what it tells of as well. */
static bool is_unread(struct zeromq_shard *shard)
{
    int events = 0;
    size_t size = sizeof events;
    if (!shard->is_drained) {
        (void)zmq_getsockopt(shard->socket, ZMQ_EVENTS, &events, &size);
        shard->is_drained = (events & ZMQ_POLLIN) == 0;
    }
    return !shard->is_drained;
}

static unsigned descriptors(void *self, struct pollfd *out, unsigned room, uint64_t *due_us)
{
    struct zeromq *z = self;
    unsigned n = 0;
    *due_us = z->has_early ? 0 : UINT64_MAX;
    for (unsigned i = 0; i < z->servers; i++) {
        size_t fd_size = sizeof out->fd;
        if (n < room) {
            out[n] = (struct pollfd){.events = POLLIN};
            n += zmq_getsockopt(z->shard[i].socket, ZMQ_FD, &out[n].fd, &fd_size) == 0;
        }
        *due_us = is_unread(&z->shard[i]) ? 0 : *due_us;
    }
    return n;
}

struct remote_shell zeromq_shell(struct zeromq *zeromq)
{
    return (struct remote_shell){
        .self = zeromq,
        .now = now,
        .send = send_bytes,
        .receive = receive,
        .refused = hello_refused,
        .sleep = sleep_until,
        .descriptors = descriptors,
        .are_descriptors_fixed = true,
        .shares_reach_all = true,
        .ask_cost_us = SHELL_ASK_US,
        .rest_us = REST_US,
    };
}
