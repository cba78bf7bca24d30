#include "worker/table/wire.h"

#include "common/clock.h"
#include "worker/table/remote_depth.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zmq.h>

enum {
    /* Messages between this thread and ZeroMQ's, each way. Beyond that, incoming messages stay in
     * the connection and then at the shard, outgoing ones are refused. More would be out of date,
     * and a SHARE has 8 KiB: with 4,096 a busy host's worker kept megabytes. */
    HIGH_WATER = 256,
    RECONNECT_MS = 50,
    RECONNECT_MAX_MS = 400,
    /* TCP waits twice as long after each loss: without these limits a cable that was out for
     * seconds costs as many seconds more. A connection whose bytes are not confirmed is given up
     * and made anew. */
    UNCONFIRMED_MAX_MS = 1500,
    CONNECT_MAX_MS = 1000,
    LINGER_MS = 200, /* for BYE to leave */
    REST_US = 250,
    DRAIN_MAX = 256, /* messages per wake and shard: the search goes on in between */
};

struct wire {
    void *socket[CLIENT_SHARDS_MAX];
    unsigned servers;
};

/* ZeroMQ resolves host names on the thread that also moves the messages. So that the name of a
 * shard that is gone does not hold up the other shards' messages, each socket has its own thread.
 */
static void use_own_io_thread(const struct wire *w, void *socket)
{
    uint64_t affinity = UINT64_C(1) << w->servers;
    zmq_setsockopt(socket, ZMQ_AFFINITY, &affinity, sizeof affinity);
}

static enum err open_socket(struct wire *w, void *context, const struct options_host_port *server)
{
    char at[OPTIONS_HOST_MAX + 16], endpoint[sizeof at + 16];
    int linger = LINGER_MS, limit = HIGH_WATER, one = 1;
    int first = RECONNECT_MS, max = RECONNECT_MAX_MS;
    int unconfirmed = UNCONFIRMED_MAX_MS, connect = CONNECT_MAX_MS;
    int64_t largest = PROTO_MESSAGE_MAX;
    void *socket = zmq_socket(context, ZMQ_DEALER);
    if (socket == NULL) {
        return errno == ENOMEM ? ERR_NOMEM : ERR_IO;
    }
    use_own_io_thread(w, socket);
    w->socket[w->servers++] = socket;
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
    options_host_port_text(server->host, server->port, at, sizeof at);
    snprintf(endpoint, sizeof endpoint, "tcp://%s", at);
    return zmq_connect(socket, endpoint) == 0 ? ERR_OK : ERR_IO;
}

enum err wire_open(struct wire **out, void *context, const struct options_host_port *server,
                   unsigned servers)
{
    if (servers > CLIENT_SHARDS_MAX) {
        return ERR_RANGE;
    }
    struct wire *w = calloc(1, sizeof *w);
    enum err err = w == NULL ? ERR_NOMEM : ERR_OK;
    zmq_ctx_set(context, ZMQ_IO_THREADS, (int)servers);
    for (unsigned i = 0; i < servers && err == ERR_OK; i++) {
        err = open_socket(w, context, &server[i]);
    }
    if (err != ERR_OK) {
        wire_close(&w);
        return err;
    }
    *out = w;
    return ERR_OK;
}

void wire_close(struct wire **wire)
{
    for (unsigned i = 0; *wire != NULL && i < (*wire)->servers; i++) {
        zmq_close((*wire)->socket[i]);
    }
    free(*wire);
    *wire = NULL;
}

static uint64_t now(void *self)
{
    (void)self;
    return clock_us();
}

static bool send_bytes(void *self, unsigned shard, const uint8_t *bytes, size_t length)
{
    const struct wire *w = self;
    return zmq_send(w->socket[shard], bytes, length, ZMQ_DONTWAIT) >= 0;
}

static bool drain_shard(struct wire *w, struct client *client, unsigned shard, uint64_t now_us)
{
    bool any = false;
    for (unsigned n = 0; n < DRAIN_MAX; n++) {
        zmq_msg_t message;
        zmq_msg_init(&message);
        if (zmq_msg_recv(&message, w->socket[shard], ZMQ_DONTWAIT) < 0) {
            zmq_msg_close(&message);
            break;
        }
        any = true;
        client_receive(client, shard, zmq_msg_data(&message), zmq_msg_size(&message), now_us);
        zmq_msg_close(&message);
    }
    return any;
}

static bool drain(void *self, struct client *client)
{
    struct wire *w = self;
    uint64_t now_us = clock_us();
    bool any = false;
    for (unsigned i = 0; i < w->servers; i++) {
        any = drain_shard(w, client, i, now_us) || any;
    }
    return any;
}

static void sleep_until(void *self, uint64_t until_us)
{
    struct wire *w = self;
    zmq_pollitem_t item[CLIENT_SHARDS_MAX];
    uint64_t now_us = clock_us();
    long ms = until_us <= now_us ? 0 : (long)((until_us - now_us + 999) / 1000);
    for (unsigned i = 0; i < w->servers; i++) {
        item[i] = (zmq_pollitem_t){.socket = w->socket[i], .events = ZMQ_POLLIN};
    }
    zmq_poll(item, (int)w->servers, ms);
}

struct remote_shell wire_shell(struct wire *wire)
{
    return (struct remote_shell){
        .self = wire,
        .now = now,
        .send = send_bytes,
        .drain = drain,
        .sleep = sleep_until,
        .ask_cost_us = REMOTE_DEPTH_ASK_US,
        .rest_us = REST_US,
    };
}
