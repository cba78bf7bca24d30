#include "ttserver/io/shard.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zmq.h>

enum {
    TURN_MESSAGES = 256, /* in one turn of the loop, so that timers get theirs */
    REST_MS = 1, /* then the queues of ignored peers are read on */
    LINGER_MS = 200, /* for BYE */
    BACKLOG = 1024, /* a cluster starts at once */
    /* These limits are per peer. A client has a bounded number of requests out; what waits here
     * beyond it is pushed jobs and NODE_DONE. Beyond the receiving limit TCP slows the sender down.
     * Who reads nothing answers no ZMTP ping either, once his own queue is full: then the
     * connection ends. */
    SEND_QUEUE = 1024,
    RECEIVE_QUEUE = 256,
    /* A message above PROTO_MESSAGE_MAX is counted and refused; one above this ends the connection
     * before it is read. */
    MESSAGE_MAX = 2 * PROTO_MESSAGE_MAX,
    HANDSHAKE_MS = 5000, /* a peer that does not even speak ZMTP keeps a descriptor so long */
};

/* ---- socket ---- */

static bool set_int(void *socket, int option, int value)
{
    return zmq_setsockopt(socket, option, &value, sizeof value) == 0;
}

static bool configure(void *socket, const struct shard_options *options)
{
    uint64_t affinity = UINT64_C(1) << options->io_thread;
    int64_t message_max = MESSAGE_MAX;
    /* Silent connections are closed by ZMTP pings, so that half-open ones cannot pile up. */
    int alive_ms = (int)(options->core.heartbeat_ms < 100000 ? options->core.heartbeat_ms : 100000);
    return zmq_setsockopt(socket, ZMQ_AFFINITY, &affinity, sizeof affinity) == 0 &&
           zmq_setsockopt(socket, ZMQ_MAXMSGSIZE, &message_max, sizeof message_max) == 0 &&
           set_int(socket, ZMQ_ROUTER_MANDATORY, 1) && set_int(socket, ZMQ_LINGER, LINGER_MS) &&
           set_int(socket, ZMQ_SNDHWM, SEND_QUEUE) && set_int(socket, ZMQ_RCVHWM, RECEIVE_QUEUE) &&
           set_int(socket, ZMQ_BACKLOG, BACKLOG) &&
           set_int(socket, ZMQ_HANDSHAKE_IVL, HANDSHAKE_MS) &&
           set_int(socket, ZMQ_HEARTBEAT_IVL, 3 * alive_ms) &&
           set_int(socket, ZMQ_HEARTBEAT_TIMEOUT, 6 * alive_ms) &&
           set_int(socket, ZMQ_IPV6, options->is_v6);
}

static enum err bind_socket(struct shard *shard, void *context, const struct shard_options *options)
{
    char bound[256];
    size_t size = sizeof bound;
    shard->socket = zmq_socket(context, ZMQ_ROUTER);
    if (shard->socket == NULL || !configure(shard->socket, options)) {
        return ERR_IO;
    }
    if (zmq_bind(shard->socket, options->endpoint) != 0) {
        return errno == EADDRINUSE ? ERR_EXIST : ERR_IO;
    }
    if (zmq_getsockopt(shard->socket, ZMQ_LAST_ENDPOINT, bound, &size) != 0) {
        return ERR_IO;
    }
    const char *colon = strrchr(bound, ':');
    shard->port = colon != NULL ? (uint16_t)strtoul(colon + 1, NULL, 10) : 0;
    return ERR_OK;
}

/* ---- messages ---- */

/* Its session ends after this step; a reconnected peer is another route. */
static void note_gone(struct shard *shard, const struct ttcore_target *target)
{
    shard->outside.unreachable++;
    if (shard->lost < SHARD_GONE_MAX) {
        struct shard_route *route = &shard->gone[shard->lost++];
        route->length = (uint8_t)target->length;
        memcpy(route->bytes, target->route, target->length);
    }
}

static void send_one(struct shard *shard, const struct ttcore_target *target,
                     const struct ttcore_message *message)
{
    if (zmq_send(shard->socket, target->route, target->length, ZMQ_DONTWAIT | ZMQ_SNDMORE) >= 0 &&
        zmq_send(shard->socket, message->bytes, message->length, ZMQ_DONTWAIT) >= 0) {
        shard->outside.sent++;
    } else if (errno == EHOSTUNREACH) {
        note_gone(shard, target);
    } else if (errno == EAGAIN) {
        shard->outside.queue_full++;
    } else {
        shard->outcome = ERR_IO;
    }
}

static void step_once(struct shard *shard, struct ttcore_event *event)
{
    const struct ttcore_actions *actions = &shard->actions;
    event->now_us = uv_hrtime() / 1000;
    ttcore_step(shard->core, event, &shard->actions);
    for (uint32_t m = 0; m < actions->messages; m++) {
        const struct ttcore_message *message = &actions->message[m];
        for (uint32_t t = 0; t < message->targets; t++) {
            send_one(shard, &actions->target[message->first + t], message);
        }
    }
}

/* What one loss makes the core send may find the next: each ends a session, so this ends. */
static void step(struct shard *shard, struct ttcore_event *event)
{
    shard->lost = 0;
    step_once(shard, event);
    while (shard->lost > 0) {
        const struct shard_route route = shard->gone[--shard->lost];
        struct ttcore_event loss = {
            .kind = TTCORE_GONE, .route = route.bytes, .route_length = route.length};
        step_once(shard, &loss);
    }
}

/* Reads on to the end of a message of too many frames. */
static void skip_frames(struct shard *shard, zmq_msg_t *frame)
{
    shard->outside.multipart++;
    while (zmq_msg_more(frame) && zmq_msg_recv(frame, shard->socket, ZMQ_DONTWAIT) >= 0) {
    }
}

/* False when nothing waits. */
static bool serve_one(struct shard *shard, zmq_msg_t *route, zmq_msg_t *body)
{
    struct ttcore_event event = {.kind = TTCORE_MESSAGE};
    if (zmq_msg_recv(route, shard->socket, ZMQ_DONTWAIT) < 0) {
        if (errno != EAGAIN && errno != EINTR) {
            shard->outcome = ERR_IO;
        }
        return false;
    }
    shard->received++;
    event.route = zmq_msg_data(route);
    event.route_length = zmq_msg_size(route);
    if (zmq_msg_more(route) && zmq_msg_recv(body, shard->socket, ZMQ_DONTWAIT) >= 0) {
        if (zmq_msg_more(body)) {
            skip_frames(shard, body); /* the core sees an empty message: malformed */
        } else if (zmq_msg_size(body) > PROTO_MESSAGE_MAX) {
            shard->outside.oversized++; /* likewise */
        } else {
            event.bytes = zmq_msg_data(body);
            event.length = zmq_msg_size(body);
        }
    }
    step(shard, &event);
    return true;
}

static void on_more(uv_idle_t *idle);
static void on_rest(uv_timer_t *timer);

/* The queues of ignored peers are read slowly, so that TCP slows these peers down; ZeroMQ wakes us
 * for a peer whose queue was empty, but checks that now and then only while it has messages. */
static void check_others(struct shard *shard)
{
    int events;
    size_t size = sizeof events;
    if (uv_is_active((uv_handle_t *)&shard->rest)) {
        zmq_getsockopt(shard->socket, ZMQ_EVENTS, &events, &size);
    }
}

/* ZMQ_FD signals a change once: a turn must end with nothing waiting or with `more` or `rest`
 * active. Sends eat such a change too, so the last call on the socket is always a receive that
 * found nothing. Peers are read in turns: when more messages in a row are of ignored peers than
 * there are such peers, nobody else has any. */
static void drain(struct shard *shard)
{
    zmq_msg_t route, body;
    unsigned served = 0, ignored = 0;
    bool rests = false;
    zmq_msg_init(&route);
    zmq_msg_init(&body);
    check_others(shard);
    while (served < TURN_MESSAGES && !rests && serve_one(shard, &route, &body)) {
        served++;
        ignored = shard->actions.ignored > 0 ? ignored + 1 : 0;
        rests = ignored > shard->actions.ignored;
    }
    zmq_msg_close(&route);
    zmq_msg_close(&body);
    if (rests) {
        uv_timer_start(&shard->rest, on_rest, REST_MS, 0);
    } else {
        uv_timer_stop(&shard->rest);
    }
    if (shard->outcome != ERR_OK) {
        uv_stop(&shard->loop);
    } else if (served == TURN_MESSAGES && !rests) {
        uv_idle_start(&shard->more, on_more);
    } else {
        uv_idle_stop(&shard->more);
    }
}

/* ---- callbacks ---- */

static void on_more(uv_idle_t *idle)
{
    drain(idle->data);
}

static void on_rest(uv_timer_t *timer)
{
    drain(timer->data);
}

static void on_readable(uv_poll_t *poll, int status, int events)
{
    (void)status;
    (void)events;
    drain(poll->data);
}

static void on_tick(uv_timer_t *timer)
{
    struct shard *shard = timer->data;
    struct ttcore_event event = {.kind = TTCORE_TICK};
    step(shard, &event);
    drain(shard);
}

static void on_stop(uv_async_t *async)
{
    struct shard *shard = async->data;
    struct ttcore_event event = {.kind = TTCORE_STOP};
    step(shard, &event);
    uv_stop(&shard->loop);
}

/* ---- life ---- */

static enum err open_loop(struct shard *shard)
{
    int fd;
    size_t size = sizeof fd;
    if (zmq_getsockopt(shard->socket, ZMQ_FD, &fd, &size) != 0) {
        return ERR_IO;
    }
    if (uv_loop_init(&shard->loop) != 0) {
        return ERR_NOMEM;
    }
    shard->loop.data = shard; /* says that the loop is there to be closed */
    if (uv_idle_init(&shard->loop, &shard->more) != 0 ||
        uv_timer_init(&shard->loop, &shard->tick) != 0 ||
        uv_timer_init(&shard->loop, &shard->rest) != 0 ||
        uv_async_init(&shard->loop, &shard->stop, on_stop) != 0 ||
        uv_poll_init(&shard->loop, &shard->poll, fd) != 0) {
        return ERR_IO;
    }
    shard->more.data = shard->rest.data = shard->tick.data = shard->stop.data = shard->poll.data =
        shard;
    return ERR_OK;
}

enum err shard_open(struct shard *shard, void *context, const struct shard_options *options)
{
    struct ttcore_options core = options->core;
    memset(shard, 0, sizeof *shard);
    shard->ended = options->ended;
    shard->tick_ms = core.heartbeat_ms >= 4 ? core.heartbeat_ms / 4 : 1;
    core.outside = &shard->outside;
    enum err err = ttcore_open(&shard->core, &core);
    err = err ? err : ttcore_actions_open(&shard->actions, core.sessions_max, core.jobs_max);
    err = err ? err : bind_socket(shard, context, options);
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
    uv_poll_start(&shard->poll, UV_READABLE, on_readable);
    drain(shard);
    if (shard->outcome == ERR_OK) {
        uv_run(&shard->loop, UV_RUN_DEFAULT);
    }
    uv_async_send(shard->ended);
}

void shard_stop(struct shard *shard)
{
    uv_async_send(&shard->stop);
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
    if (shard->loop.data != NULL) {
        shard_close_loop(&shard->loop);
        shard->loop.data = NULL;
    }
    if (shard->socket != NULL) {
        zmq_close(shard->socket);
        shard->socket = NULL;
    }
    ttcore_actions_close(&shard->actions);
    ttcore_close(&shard->core);
}
