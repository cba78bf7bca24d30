#include "proto/lane/zeromq.h"

#include "common/clock.h"
#include "common/log.h"
#include "proto/lane/handshake.h"
#include "proto/lane/shard_resolver.h"

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
    /* Descriptors: a connection and an event for each socket; a poll, an event, a port that is
     * held, what it takes to look up a name and two more sockets for each server; and the rest of
     * the program's. */
    FILES_EACH_SOCKET = 2,
    FILES_EACH_SERVER = 9,
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

struct zeromq_lane {
    struct zeromq *zeromq;
    struct zeromq_shard shard[CLIENT_SHARDS_MAX];
    unsigned sockets;
    /* round of reading: shard that is read, messages it gave, when the round began */
    unsigned turn, received;
    uint64_t round_us;
    zmq_msg_t message; /* that the client was given last */
    zmq_msg_t early; /* read by the sleep that it ended */
    bool has_early;
};

struct zeromq {
    /* fixed after open */
    const struct options_host_port *server;
    unsigned servers, lanes, flags;
    const char *program; /* NULL: says nothing */
    void *context;
    struct shard_resolver *addresses;
    /* state */
    unsigned opened;
    _Atomic uint64_t said_refused; /* bit i: that shard i refuses a HELLO ... */
    _Atomic uint64_t said_twin; /* ... or has the place of another one, was said */
    struct zeromq_lane lane[]; /* the first one watches */
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
    const rlim_t most = limit.rlim_max;
    limit.rlim_cur = want;
    if (most >= want && setrlimit(RLIMIT_NOFILE, &limit) == 0) {
        return ERR_OK;
    }
    snprintf(why, ZEROMQ_WHY_MAX,
             "%u threads with %u shards need %llu open files and the limit is %llu: allow more "
             "(ulimit -Hn %llu; LimitNOFILE= of a service), or use fewer threads",
             lanes, servers, (unsigned long long)want, (unsigned long long)most,
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

static enum err open_context(struct zeromq *z, char why[ZEROMQ_WHY_MAX])
{
    const unsigned servers = z->servers, lanes = z->lanes;
    const unsigned files =
        (FILES_EACH_SOCKET * lanes + FILES_EACH_SERVER) * servers + FILES_CONTEXT;
    enum err err = z->flags & ZEROMQ_IS_GUEST ? ERR_OK : raise_files(servers, lanes, why);
    if (err != ERR_OK) {
        return err;
    }
    if (!files_are_free(files)) {
        snprintf(why, ZEROMQ_WHY_MAX,
                 "%u shards need %u more open files than this process has: close some, or allow "
                 "more (ulimit -n; LimitNOFILE= of a service)",
                 servers, files);
        return ERR_FULL;
    }
    z->context = zmq_ctx_new();
    if (z->context == NULL) {
        return ERR_NOMEM;
    }
    zmq_ctx_set(z->context, ZMQ_IO_THREADS, (int)servers);
    /* 1,023 unless set: too few for 128 threads with 8 shards. */
    if (zmq_ctx_set(z->context, ZMQ_MAX_SOCKETS, (int)(servers * (lanes + SOCKETS_TO_WATCH))) !=
        0) {
        snprintf(why, ZEROMQ_WHY_MAX,
                 "%u threads with %u shards are more connections than ZeroMQ has", lanes, servers);
        return ERR_FULL;
    }
    return ERR_OK;
}

enum err zeromq_open(struct zeromq **out, const struct options_host_port *server, unsigned servers,
                     unsigned lanes, const char *program, unsigned flags, char why[ZEROMQ_WHY_MAX])
{
    struct zeromq *z = calloc(1, sizeof *z + lanes * sizeof *z->lane);
    enum err err = z == NULL ? ERR_NOMEM : servers > CLIENT_SHARDS_MAX ? ERR_RANGE : ERR_OK;
    why[0] = '\0';
    if (err == ERR_OK) {
        z->server = server;
        z->servers = servers;
        z->lanes = lanes;
        z->program = program;
        z->flags = flags;
        err = open_context(z, why);
    }
    err = err ? err : shard_resolver_open(&z->addresses, server, servers, program);
    if (err != ERR_OK) {
        if (why[0] == '\0') {
            snprintf(why, ZEROMQ_WHY_MAX, "%s", err_text(err));
        }
        zeromq_close(&z);
        return err;
    }
    *out = z;
    return ERR_OK;
}

/* To the address that is the present one, where it is another than before. */
static void follow_address(const struct zeromq_lane *lane, struct zeromq_shard *shard,
                           bool is_silent)
{
    char endpoint[SHARD_ADDRESS_ENDPOINT_MAX];
    unsigned number = shard_resolver_get(lane->zeromq->addresses, (unsigned)(shard - lane->shard),
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

static enum err open_socket(struct zeromq_lane *lane, const struct keys_client *keys)
{
    const struct zeromq *z = lane->zeromq;
    const struct options_host_port *server = &z->server[lane->sockets];
    const int limit = z->flags & ZEROMQ_UNLIMITED ? 0 : HIGH_WATER;
    const struct {
        int option, value;
    } set[] = {{ZMQ_LINGER, LINGER_MS},
               {ZMQ_SNDHWM, limit},
               {ZMQ_RCVHWM, limit},
               /* Nothing is queued for a shard that is not there: it would arrive long after it was
                * lost. */
               {ZMQ_IMMEDIATE, 1},
               {ZMQ_RECONNECT_IVL, RECONNECT_MS},
               {ZMQ_RECONNECT_IVL_MAX, RECONNECT_MAX_MS},
               {ZMQ_TCP_MAXRT, UNCONFIRMED_MAX_MS},
               {ZMQ_CONNECT_TIMEOUT, CONNECT_MAX_MS},
               {ZMQ_IPV6, 1}};
    const int64_t largest = PROTO_MESSAGE_MAX;
    /* Each shard has a thread of ZeroMQ's, so that much to move, or to encrypt, for one does not
     * hold up the others' messages. */
    const uint64_t affinity = UINT64_C(1) << lane->sockets;
    void *socket = zmq_socket(z->context, ZMQ_DEALER);
    if (socket == NULL) {
        return errno == ENOMEM ? ERR_NOMEM : ERR_IO;
    }
    struct zeromq_shard *shard = &lane->shard[lane->sockets++];
    shard->socket = socket;
    zmq_setsockopt(socket, ZMQ_AFFINITY, &affinity, sizeof affinity);
    zmq_setsockopt(socket, ZMQ_MAXMSGSIZE, &largest, sizeof largest);
    for (unsigned i = 0; i < sizeof set / sizeof *set; i++) {
        zmq_setsockopt(socket, set[i].option, &set[i].value, sizeof set[i].value);
    }
    enum err err = handshake_keys(socket, keys);
    if (err == ERR_OK && lane == z->lane && (z->program != NULL || z->flags & ZEROMQ_WATCHES)) {
        err = handshake_watch(&shard->handshake, z->context, socket, keys != NULL);
    }
    if (err != ERR_OK) {
        return err;
    }
    options_host_port_text(server->host, server->port, shard->name, sizeof shard->name);
    follow_address(lane, shard, false);
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
    struct zeromq_shard *of = &z->lane[0].shard[shard];
    take_refusal(z, of);
    *is_final = of->handshake.is_final;
    return of->refusal;
}

void zeromq_close(struct zeromq **zeromq)
{
    struct zeromq *z = *zeromq;
    if (z == NULL) {
        return;
    }
    for (struct zeromq_lane *lane = z->lane; lane < z->lane + z->opened; lane++) {
        for (unsigned i = 0; i < lane->sockets; i++) {
            struct zeromq_shard *shard = &lane->shard[i];
            take_refusal(z, shard);
            handshake_close(&shard->handshake, shard->socket);
            zmq_close(shard->socket);
        }
        zmq_msg_close(&lane->message);
        zmq_msg_close(&lane->early);
    }
    shard_resolver_close(&z->addresses);
    while (z->context != NULL && zmq_ctx_term(z->context) != 0 && errno == EINTR) {
    }
    free(z);
    *zeromq = NULL;
}

static bool say_once(_Atomic uint64_t *said, unsigned shard)
{
    uint64_t bit = UINT64_C(1) << shard;
    return !(atomic_fetch_or(said, bit) & bit);
}

/* Threads may be refused apart from each other, by a shard that has no room: one line for all. */
static void hello_refused(void *self, unsigned shard, struct proto_text why)
{
    const struct zeromq_lane *lane = self;
    struct zeromq *z = lane->zeromq;
    char words[REFUSAL_MAX];
    if (z->program != NULL && say_once(&z->said_refused, shard)) {
        proto_text_printable(why, words, sizeof words);
        log_line(z->program, "shard %s refused us: %s", lane->shard[shard].name, words);
    }
}

static void met_twin(void *self, unsigned shard, unsigned other, bool is_same)
{
    const struct zeromq_lane *lane = self;
    struct zeromq *z = lane->zeromq;
    if (z->program != NULL && say_once(&z->said_twin, shard)) {
        log_line(z->program,
                 is_same ? "shards %s and %s are the same one, or one is a clone made while it "
                           "ran: name it once, or restart the clone"
                         : "shards %s and %s have one place in the ring, as both started with the "
                           "same snapshot: restart one without it",
                 lane->shard[other].name, lane->shard[shard].name);
    }
}

/* No connection, or one whose peer does not read. */
static void take_unsent(const struct zeromq_lane *lane, struct zeromq_shard *shard)
{
    uint64_t now_us = clock_us();
    take_refusal(lane->zeromq, shard);
    if (shard->unsent_from_us == 0) {
        shard->unsent_from_us = shard->renewed_us = now_us;
    }
    follow_address(lane, shard, now_us - shard->unsent_from_us >= SILENT_US);
    if (shard->endpoint_number != 0 && shard->unsent_from_us != 0 &&
        now_us - shard->renewed_us >= RENEW_US) {
        handshake_renew(shard->socket, shard->endpoint);
        shard->renewed_us = now_us;
    }
}

static bool send_bytes(void *self, unsigned shard, const uint8_t *bytes, size_t length)
{
    struct zeromq_lane *lane = self;
    struct zeromq_shard *to = &lane->shard[shard];
    to->is_drained = false;
    if (zmq_send(to->socket, bytes, length, ZMQ_DONTWAIT) < 0) {
        take_unsent(lane, to);
        return false;
    }
    to->unsent_from_us = 0;
    return true;
}

static bool receive(void *self, struct client *client)
{
    struct zeromq_lane *lane = self;
    if (lane->turn == 0 && lane->received == 0) {
        lane->round_us = clock_us();
    }
    for (; lane->turn < lane->sockets; lane->turn++, lane->received = 0) {
        struct zeromq_shard *from = &lane->shard[lane->turn];
        if (lane->received == RECEIVE_MAX) {
            continue;
        }
        bool any = lane->has_early ? zmq_msg_move(&lane->message, &lane->early) == 0
                                   : zmq_msg_recv(&lane->message, from->socket, ZMQ_DONTWAIT) >= 0;
        lane->has_early = false;
        from->is_drained = !any && errno == EAGAIN;
        if (!any) {
            continue;
        }
        const uint8_t *bytes = zmq_msg_data(&lane->message);
        const size_t length = zmq_msg_size(&lane->message);
        /* Clients alone say HELLO: TCP connected this one to itself, where nobody listened. */
        if (length > 2 && (bytes[0] & 0xf0) == 0x90 && bytes[2] == PROTO_HELLO) {
            shard_resolver_met_itself(lane->zeromq->addresses, lane->turn);
            handshake_renew(from->socket, from->endpoint);
        }
        client_receive(client, lane->turn, bytes, length, lane->round_us);
        lane->received++;
        return true;
    }
    lane->turn = 0;
    return false;
}

static void sleep_until(void *self, uint64_t until_us)
{
    struct zeromq_lane *lane = self;
    zmq_pollitem_t item[CLIENT_SHARDS_MAX];
    uint64_t now_us = clock_us();
    long ms = until_us <= now_us ? 0 : (long)((until_us - now_us + 999) / 1000);
    /* A lone shard is waited for by reading: zmq_poll takes two more system calls a round trip. */
    if (lane->sockets == 1 && !lane->has_early) {
        int limit = ms < SLEEP_MAX_MS ? (int)ms : SLEEP_MAX_MS;
        zmq_setsockopt(lane->shard[0].socket, ZMQ_RCVTIMEO, &limit, sizeof limit);
        lane->has_early = zmq_msg_recv(&lane->early, lane->shard[0].socket, 0) >= 0;
        lane->shard[0].is_drained = false;
    }
    if (lane->sockets == 1) {
        return;
    }
    for (unsigned i = 0; i < lane->sockets; i++) {
        item[i] = (zmq_pollitem_t){.socket = lane->shard[i].socket, .events = ZMQ_POLLIN};
    }
    zmq_poll(item, (int)lane->sockets, ms);
}

/* A descriptor tells of all that comes after a read that found nothing; but sending takes in what
 * it tells of, too. */
static unsigned descriptors(void *self, struct pollfd *out, unsigned room, uint64_t *due_us)
{
    struct zeromq_lane *lane = self;
    unsigned n = 0;
    *due_us = lane->has_early ? 0 : UINT64_MAX;
    for (unsigned i = 0; i < lane->sockets; i++) {
        struct zeromq_shard *shard = &lane->shard[i];
        int events = 0;
        size_t fd_size = sizeof out->fd, events_size = sizeof events;
        if (n < room) {
            out[n] = (struct pollfd){.events = POLLIN};
            n += zmq_getsockopt(shard->socket, ZMQ_FD, &out[n].fd, &fd_size) == 0;
        }
        if (!shard->is_drained) {
            (void)zmq_getsockopt(shard->socket, ZMQ_EVENTS, &events, &events_size);
            shard->is_drained = (events & ZMQ_POLLIN) == 0;
        }
        *due_us = shard->is_drained ? *due_us : 0;
    }
    return n;
}

enum err zeromq_lane(struct zeromq *z, const struct keys_client *keys, struct lane *out)
{
    CHECK_THAT(z->opened < z->lanes, "zeromq: no more lanes than it was opened for");
    struct zeromq_lane *lane = &z->lane[z->opened++];
    enum err err = ERR_OK;
    lane->zeromq = z;
    zmq_msg_init(&lane->message);
    zmq_msg_init(&lane->early);
    for (unsigned i = 0; i < z->servers && err == ERR_OK; i++) {
        err = open_socket(lane, keys);
    }
    if (err != ERR_OK) {
        return err;
    }
    *out = (struct lane){
        .self = lane,
        .now = clock_port_us,
        .send = send_bytes,
        .receive = receive,
        .refused = hello_refused,
        .met_twin = met_twin,
        .sleep = sleep_until,
        .descriptors = descriptors,
        .are_descriptors_fixed = true,
        .shares_reach_all = true,
        .ask_cost_us = LANE_ASK_US,
        .rest_us = REST_US,
    };
    return ERR_OK;
}
