#include "tests/chaos/lab_service.h"

#include "tests/chaos/lab_dealer.h"

#include <stdlib.h>
#include <string.h>

enum {
    MS = 1000000,
    CLOCK_NS = 20, /* what it takes to ask for the time */
    OPERATION_BYTES = 20, /* of an operation in a message, about */
    NO_DESCRIPTOR_PPM = 2000, /* of accepts */
    TURNS_AT_ONCE = 64, /* for somebody near */
    FOR_EVER_MS = UINT32_MAX / 8,
};

/* ---- its port ---- */

static uint64_t port_cpu_ns(void *self)
{
    const struct lab_service *service = self;
    struct lab_shard *shard = &service->lab->shard[service->shard];
    shard->free_ns += CLOCK_NS;
    return shard->free_ns;
}

/* By the clock of its machine. What it was at when that stood still it has done when that goes on:
 * it was told the time when it would have. */
static uint64_t port_now_ns(void *self)
{
    struct lab_service *service = self;
    const struct lab *lab = service->lab;
    uint64_t now_ns = lab_shard_ns(lab, service->shard, port_cpu_ns(service));
    if (now_ns > service->shown_ns || chaos_of(lab)->options.planted.wall_clock) {
        service->shown_ns = now_ns;
    }
    return service->shown_ns;
}

static enum socket_accepted port_accept(void *self, void *listener, void **socket,
                                        struct in6_addr *from)
{
    struct lab_service *service = listener;
    struct lab_stream *s = TAILQ_FIRST(&service->backlog);
    (void)self;
    if (s == NULL) {
        return SOCKET_NOBODY;
    }
    if (lab_net_below(service->lab, 1000000) < NO_DESCRIPTOR_PPM) {
        return SOCKET_NO_ROOM;
    }
    lab_stream_leave_queue(s);
    service->waiting--;
    *socket = s;
    *from = s->from;
    return SOCKET_ACCEPTED;
}

static bool port_watch(void *socket, struct connection *c, unsigned events)
{
    struct lab_stream *s = socket;
    s->connection = c;
    s->watched = events;
    lab_stream_notice(s);
    return true;
}

static ssize_t port_read(void *socket, uint8_t *to, size_t room)
{
    struct lab_stream *s = socket;
    struct lab *lab = s->lab;
    size_t n = lab_stream_read(s, LAB_SERVER, to, room);
    lab->shard[s->shard].free_ns +=
        n > 0 ? lab->options.service_ns + lab->options.service_operation_ns * (n / OPERATION_BYTES)
              : 0;
    lab_stream_notice(s);
    return n > 0 ? (ssize_t)n : s->half[LAB_SERVER].is_ended ? SOCKET_ENDED : SOCKET_LATER;
}

static ssize_t port_write(void *socket, const uint8_t *from, size_t length)
{
    struct lab_stream *s = socket;
    struct lab *lab = s->lab;
    if (s->half[LAB_SERVER].is_ended) {
        return SOCKET_ENDED;
    }
    if (lab_net_below(lab, 200) < lab_net_of(lab)->piece_percent) {
        return SOCKET_LATER; /* as if the kernel were out of buffers for a moment */
    }
    size_t n = lab_stream_write(s, LAB_SERVER, from, length, lab->shard[s->shard].free_ns);
    return chaos_of(lab)->options.planted.lose_rest ? (ssize_t)length : (ssize_t)n;
}

static void port_close(void *socket)
{
    struct lab_stream *s = socket;
    struct lab *lab = s->lab;
    struct lab_service *service = chaos_of(lab)->shard[s->shard].service;
    if (chaos_of(lab)->options.planted.lose_budget && s->connection != NULL) {
        service->peers.held += connection_held(s->connection);
    }
    lab_stream_close(s, LAB_SERVER, service->is_silent);
}

static struct socket_port port_of(struct lab_service *service)
{
    return (struct socket_port){.self = service,
                                .now_ns = port_now_ns,
                                .cpu_ns = port_cpu_ns,
                                .accept = port_accept,
                                .watch = port_watch,
                                .read = port_read,
                                .write = port_write,
                                .close = port_close};
}

/* ---- life ---- */

static struct lab_service *make(struct lab *lab, unsigned shard)
{
    struct lab_service *service = calloc(1, sizeof *service);
    CHECK(service != NULL);
    service->lab = lab;
    service->shard = shard;
    service->port = port_of(service);
    TAILQ_INIT(&service->all);
    TAILQ_INIT(&service->backlog);
    TAILQ_INIT(&service->ready);
    TAILQ_INIT(&service->notified);
    return service;
}

static void close_all(struct lab_service *service)
{
    connections_close(&service->peers);
    service->access.now = NULL; /* it stays the cluster's */
    who_close(&service->access);
}

enum err lab_service_open(struct lab *lab, unsigned shard, const struct ttcore_options *core)
{
    char why[KEYS_WHY_MAX];
    struct lab_service *service = chaos_of(lab)->shard[shard].service;
    if (service == NULL) {
        service = chaos_of(lab)->shard[shard].service = make(lab, shard);
    }
    service->turn_ns = service->rest_ns = service->shown_ns = 0;
    service->is_silent = false;
    const struct connections_options options = {
        .core = *core,
        .connections_max = UINT32_MAX,
        .access = &service->access,
        .port = &service->port,
        .pending_ms = chaos_of(lab)->options.planted.keep_half_open
                          ? FOR_EVER_MS
                          : (uint32_t)(lab_net_of(lab)->pending_ns / MS),
        .held_max = lab_net_of(lab)->held_max,
        .pushed_at_once = lab_net_of(lab)->pushed_at_once,
    };
    enum err err = who_open(&service->access, NULL, why);
    if (err != ERR_OK) {
        return err;
    }
    if (lab_net_of(lab)->has_keys) {
        service->access.dir = "lab";
        service->access.server = lab_net_of(lab)->server;
        service->access.now = &lab_net_of(lab)->allowed;
    }
    struct lab_want *outer = lab_want_set(lab->ended ? NULL : &chaos_of(lab)->want);
    err = connections_open(&service->peers, &options);
    (void)lab_want_set(outer);
    if (err != ERR_OK) {
        close_all(service);
        return err;
    }
    lab->shard[shard].core = service->peers.core;
    return ERR_OK;
}

void lab_service_close(struct lab *lab, unsigned shard)
{
    struct lab_shard *s = &lab->shard[shard];
    struct lab_service *service = chaos_of(lab)->shard[shard].service;
    if (service == NULL || s->core == NULL) {
        return;
    }
    service->is_silent = lab_net_below(lab, 100) < lab_net_of(lab)->silent_percent;
    connections_disconnect(&service->peers);
    while (!TAILQ_EMPTY(&service->all)) {
        lab_stream_close(TAILQ_FIRST(&service->all), LAB_SERVER, service->is_silent);
    }
    close_all(service);
    s->core = NULL;
}

void lab_service_free(struct lab *lab, unsigned shard)
{
    free(chaos_of(lab)->shard[shard].service);
    chaos_of(lab)->shard[shard].service = NULL;
}

/* ---- serving ---- */

static void turn_at(struct lab_service *service, uint64_t at_ns)
{
    struct lab *lab = service->lab;
    if (service->turn_ns != 0 && service->turn_ns <= at_ns) {
        return;
    }
    service->turn_ns = at_ns;
    lab_heap_push(&lab->heap, (struct lab_event){.time_ns = at_ns,
                                                 .kind = LAB_TURN,
                                                 .who = service->shard,
                                                 .epoch = lab->shard[service->shard].incarnation});
}

/* What must hold whenever a shard has served. */
static void check_budget(struct lab_service *service)
{
    const struct shard_connections *p = &service->peers;
    size_t most = p->options.held_max + (size_t)(p->open - p->pending) * CONNECTIONS_HELD_EACH;
    chaos_of(service->lab)->result.over_budget += p->held > most;
}

static void notify(struct lab_service *service)
{
    struct lab_stream *s;
    while ((s = TAILQ_FIRST(&service->ready)) != NULL) {
        unsigned events = lab_stream_events(s);
        lab_stream_enter_queue(s, &service->notified);
        if (events != 0) {
            connections_ready(s->connection, events);
        }
    }
}

static void accept_some(struct lab_service *service)
{
    const struct lab_shard *shard = &service->lab->shard[service->shard];
    if (!TAILQ_EMPTY(&service->backlog) && shard->free_ns >= service->rest_ns &&
        !connections_accept(&service->peers, service)) {
        service->rest_ns = shard->free_ns + CONNECTIONS_ACCEPT_REST_MS * MS;
    }
}

/* Once around the loop, as libuv goes; returns whether somebody can be served at once. */
static bool loop_once(struct lab_service *service)
{
    struct lab_shard *shard = &service->lab->shard[service->shard];
    struct lab_stream *s;
    uint64_t begin_ns = shard->free_ns;
    notify(service);
    accept_some(service);
    bool more = connections_turn(&service->peers);
    while ((s = TAILQ_FIRST(&service->notified)) != NULL) {
        lab_stream_leave_queue(s);
        lab_stream_notice(s);
    }
    shard->busy_ns += shard->free_ns - begin_ns;
    check_budget(service);
    return more || !TAILQ_EMPTY(&service->ready);
}

static void go_on(struct lab_service *service, bool more)
{
    uint64_t free_ns = service->lab->shard[service->shard].free_ns;
    if (more) {
        turn_at(service, free_ns);
    } else if (!TAILQ_EMPTY(&service->backlog)) {
        turn_at(service, free_ns > service->rest_ns ? free_ns : service->rest_ns);
    }
}

static bool is_awake(const struct lab *lab, unsigned shard)
{
    return lab->shard[shard].alive && chaos_of(lab)->shard[shard].faults.stalls == 0;
}

void lab_service_turn(struct lab *lab, unsigned shard)
{
    struct lab_shard *s = &lab->shard[shard];
    struct lab_service *service = chaos_of(lab)->shard[shard].service;
    if (!is_awake(lab, shard)) {
        return;
    }
    service->turn_ns = service->turn_ns <= lab->now_ns ? 0 : service->turn_ns;
    if (s->free_ns > lab->now_ns) {
        turn_at(service, s->free_ns);
        return;
    }
    s->free_ns = lab->now_ns;
    go_on(service, loop_once(service));
}

void lab_service_dismiss(struct lab *lab, unsigned shard)
{
    if (is_awake(lab, shard)) {
        lab_shard_catch_up(lab, shard);
        connections_dismiss(&chaos_of(lab)->shard[shard].service->peers);
    }
}

/* Now and then, as it takes as long as there are connections. */
static void check_sum(struct lab_service *service)
{
    const struct shard_connections *p = &service->peers;
    size_t held = 0;
    for (uint32_t i = 0; i < p->connections_max; i++) {
        held += p->connection[i] != NULL ? connection_held(p->connection[i]) : 0;
    }
    chaos_of(service->lab)->result.over_budget += held != p->held;
}

void lab_service_tick(struct lab *lab, unsigned shard)
{
    struct lab_shard *s = &lab->shard[shard];
    struct lab_service *service = chaos_of(lab)->shard[shard].service;
    if (!is_awake(lab, shard)) {
        return;
    }
    lab_shard_catch_up(lab, shard);
    uint64_t begin_ns = s->free_ns;
    connections_tick(&service->peers);
    s->busy_ns += s->free_ns - begin_ns;
    check_budget(service);
    check_sum(service);
    go_on(service, true);
}

/* ---- somebody near ---- */

static void serve_now(struct lab_service *service)
{
    bool more = true;
    lab_shard_catch_up(service->lab, service->shard);
    for (unsigned i = 0; more && i < TURNS_AT_ONCE; i++) {
        more = loop_once(service);
    }
    go_on(service, more);
}

bool lab_service_say(struct lab_stream *s, const uint8_t *bytes, size_t length)
{
    struct lab_service *service = chaos_of(s->lab)->shard[s->shard].service;
    size_t n = 1;
    while (length > 0 && n > 0 && !s->half[LAB_CLIENT].is_ended) {
        n = lab_stream_write(s, LAB_CLIENT, bytes, length, s->lab->now_ns);
        bytes += n;
        length -= n;
        if (is_awake(s->lab, s->shard)) {
            serve_now(service);
        }
    }
    return length == 0 && !s->half[LAB_CLIENT].is_ended;
}

struct lab_stream *lab_service_meet(struct lab *lab, unsigned shard, struct in6_addr from)
{
    struct lab_stream *s = lab_stream_open(lab, LAB_NOBODY, shard, from, lab->now_ns);
    if (!s->is_connected) {
        lab_stream_close(s, LAB_CLIENT, true);
        return NULL;
    }
    serve_now(chaos_of(lab)->shard[shard].service);
    return s;
}

/* All that there is to be read; returns how much of it found room. */
static size_t read_all(struct lab_stream *s, uint8_t *to, size_t room)
{
    uint8_t rest[4096];
    size_t got = 0, n;
    while (got < room && (n = lab_stream_read(s, LAB_CLIENT, to + got, room - got)) > 0) {
        got += n;
    }
    while (lab_stream_read(s, LAB_CLIENT, rest, sizeof rest) > 0) {
    }
    return got;
}

/* Whether the shard answers a HELLO by the right WELCOME. */
static bool shake_hands(struct lab_visit *visit)
{
    uint8_t out[LAB_GREETING_BYTES + LAB_CURVE_COMMAND_BYTES];
    uint8_t in[LAB_GREETING_BYTES + LAB_CURVE_COMMAND_BYTES];
    struct lab_frame welcome;
    size_t n = lab_zmtp_greeting(out, true);
    n += lab_curve_hello(&visit->curve, out + n);
    if (!lab_service_say(visit->stream, out, n)) {
        return false;
    }
    n = read_all(visit->stream, in, sizeof in);
    if (n <= LAB_GREETING_BYTES ||
        lab_zmtp_frame(in + LAB_GREETING_BYTES, n - LAB_GREETING_BYTES, &welcome) != 1 ||
        !lab_curve_take_welcome(&visit->curve, &welcome)) {
        return false;
    }
    return lab_service_say(visit->stream, out, lab_curve_initiate(&visit->curve, out));
}

struct lab_visit *lab_visit_begin(struct lab *lab, unsigned shard, struct in6_addr from,
                                  const struct keys_pair *own)
{
    uint8_t hello[LAB_HELLO_BYTES];
    struct lab_visit *visit = calloc(1, sizeof *visit);
    CHECK(visit != NULL);
    visit->stream = lab_service_meet(lab, shard, from);
    bool ok = visit->stream != NULL;
    if (ok && own != NULL) {
        lab_curve_open(&visit->curve, own, lab_net_of(lab)->server.public_key);
        ok = shake_hands(visit);
    } else if (ok) {
        ok = lab_service_say(visit->stream, hello, lab_zmtp_hello(hello));
    }
    if (!ok || visit->stream->connection == NULL || !visit->stream->connection->is_ready) {
        lab_visit_end(&visit);
    }
    return visit;
}

bool lab_visit_say(struct lab_visit *visit, const uint8_t *message, size_t length)
{
    uint8_t frame[LAB_CURVE_OVERHEAD + PROTO_JOB_BYTES];
    CHECK(length <= PROTO_JOB_BYTES);
    (void)read_all(visit->stream, frame, 0);
    if (visit->curve.own != NULL) {
        return lab_service_say(visit->stream, frame,
                               lab_curve_seal(&visit->curve, 0, message, length, frame));
    }
    size_t n = lab_zmtp_header(frame, 0, length);
    memcpy(frame + n, message, length);
    return lab_service_say(visit->stream, frame, n + length);
}

void lab_visit_end(struct lab_visit **visit)
{
    if (*visit != NULL && (*visit)->stream != NULL) {
        lab_stream_close((*visit)->stream, LAB_CLIENT, true);
    }
    free(*visit);
    *visit = NULL;
}

/* ---- what is left ---- */

static bool is_of_a_living_worker(const struct lab_stream *s)
{
    const struct lab *lab = s->lab;
    const struct lab_worker *w = s->worker != LAB_NOBODY ? &lab->worker[s->worker] : NULL;
    return w != NULL && w->alive && program_of(w)->dealer[s->shard].stream == s;
}

unsigned lab_service_left(struct lab *lab, unsigned shard)
{
    const struct lab_service *service = chaos_of(lab)->shard[shard].service;
    const struct shard_connections *p = &service->peers;
    struct lab_stream *s;
    unsigned left = 0, users = 0;
    TAILQ_FOREACH(s, &service->all, of_shard)
    {
        left += !is_of_a_living_worker(s);
    }
    for (unsigned i = 0; i < WHO_BUCKETS; i++) {
        for (const struct who_user *user = p->users.bucket[i]; user != NULL; user = user->chain) {
            users += user->connections;
        }
    }
    left += service->open != p->open + service->waiting;
    left += users > p->open;
    return left;
}
