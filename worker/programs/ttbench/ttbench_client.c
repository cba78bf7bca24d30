#include "worker/programs/ttbench/ttbench_client.h"

#include "common/clock.h"
#include "common/rng.h"
#include "proto/transport/handshake.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zmq.h>

enum {
    SLICE_MS = 100,
    SILENCE_MS = 2000, /* a message without an answer for so long is lost */
    LINGER_MS = 200, /* to send BYE */
    RECONNECT_MS = 50,
    RELEASES = PROTO_BATCH_MAX / 4, /* collected before they are sent */
};

/* One ask message. */
struct flight {
    uint32_t request; /* 0: free */
    uint32_t count;
    uint64_t sent_ns;
    uint32_t *visit;
    struct tt_ask *ask;
};

/* One shard. */
struct lane {
    void *socket;
    struct handshake handshake; /* of the first client, while it opens */
    uint64_t weight_key; /* of the boot id; decides which shard owns a key */
    bool is_up;
    uint32_t out; /* flights without an answer */
    uint64_t received_ns;
    struct flight *flight; /* window */
    struct flight *filling; /* not sent yet */
    struct tt_store *store;
    struct tt_release *release;
    uint32_t stores, releases;
};

struct ttbench_client {
    /* fixed after open */
    struct ttbench_plan plan;
    struct lane lane[OPTIONS_SERVERS_MAX];
    unsigned index;
    /* state */
    uint32_t next; /* visit */
    uint32_t requests;
    uint64_t lap_key, lap; /* lap_key: XORed into every key of the lap */
    uint64_t credit; /* stores due by the mix */
    struct proto_decoder decoder;
    uint8_t bytes[PROTO_MESSAGE_MAX];
    /* statistics */
    struct ttbench_counters count;
    struct histogram latency_ns;
};

/* ---- messages ---- */

static bool send_message(struct ttbench_client *c, struct lane *lane,
                         const struct proto_message *message)
{
    size_t length = proto_encode(message, c->bytes, sizeof c->bytes);
    CHECK(length > 0);
    if (zmq_send(lane->socket, c->bytes, length, ZMQ_DONTWAIT) < 0) {
        return false;
    }
    c->count.messages_out++;
    c->count.bytes_out += length;
    if (message->type == PROTO_RETRIEVE_ASK) {
        c->count.ask_messages++;
        c->count.ask_bytes += length;
    } else if (message->type == PROTO_STORE_HASH) {
        c->count.store_messages++;
        c->count.store_bytes += length;
    }
    return true;
}

static void say_hello(struct ttbench_client *c, struct lane *lane)
{
    struct proto_message message = {.type = PROTO_HELLO};
    message.hello = (struct proto_hello){
        .request = ++c->requests,
        .role = PROTO_CLIENT,
        .flags = PROTO_RELEASE_ALL,
        .namespace_id = c->plan.namespace_id,
        .instance = c->plan.namespace_id + c->index + 1,
        .name = proto_text_of("ttbench"),
    };
    send_message(c, lane, &message);
}

/* Counts every message without an answer as lost. */
static void give_up(struct ttbench_client *c, struct lane *lane)
{
    for (uint32_t i = 0; i < c->plan.window; i++) {
        if (lane->flight[i].request != 0) {
            c->count.lost += lane->flight[i].count;
        }
        lane->flight[i].request = 0;
        lane->flight[i].count = 0;
    }
    c->count.unsent += lane->stores + lane->releases;
    lane->out = lane->stores = lane->releases = 0;
    lane->filling = NULL;
    lane->is_up = false;
}

static void flush_stores(struct ttbench_client *c, struct lane *lane)
{
    struct proto_message message = {.type = PROTO_STORE_HASH};
    message.store_hash.list = (struct proto_stores){lane->stores, lane->store};
    if (lane->stores > 0) {
        bool sent = send_message(c, lane, &message);
        *(sent ? &c->count.stores : &c->count.unsent) += lane->stores;
        lane->stores = 0;
    }
}

static void flush_releases(struct ttbench_client *c, struct lane *lane)
{
    struct proto_message message = {.type = PROTO_RELEASE};
    message.release.list = (struct proto_releases){lane->releases, lane->release};
    if (lane->releases > 0) {
        bool sent = send_message(c, lane, &message);
        *(sent ? &c->count.releases : &c->count.unsent) += lane->releases;
        lane->releases = 0;
    }
}

static void send_asks(struct ttbench_client *c, struct lane *lane)
{
    struct flight *flight = lane->filling;
    struct proto_message message = {.type = PROTO_RETRIEVE_ASK};
    c->requests = c->requests == UINT32_MAX ? 1 : c->requests + 1;
    message.retrieve_ask.request = c->requests;
    message.retrieve_ask.list = (struct proto_asks){flight->count, flight->ask};
    flush_stores(c, lane);
    lane->filling = NULL;
    flight->sent_ns = clock_ns();
    if (lane->out == 0) {
        lane->received_ns = flight->sent_ns; /* the shard owes an answer from now on */
    }
    if (send_message(c, lane, &message)) {
        flight->request = c->requests;
        lane->out++;
    } else {
        c->count.unsent += flight->count;
        give_up(c, lane);
    }
}

/* ---- what to ask ---- */

static struct lane *owner_of(struct ttbench_client *c, uint64_t key)
{
    struct lane *best = NULL;
    uint64_t most = 0;
    for (unsigned i = 0; i < c->plan.servers->count; i++) {
        uint64_t weight = rng_mix(key ^ c->lane[i].weight_key);
        if (c->lane[i].is_up && (best == NULL || weight > most)) {
            best = &c->lane[i];
            most = weight;
        }
    }
    return best;
}

static struct flight *free_flight(const struct ttbench_client *c, const struct lane *lane)
{
    for (uint32_t i = 0; i < c->plan.window; i++) {
        if (lane->flight[i].request == 0) {
            return &lane->flight[i];
        }
    }
    return NULL;
}

/* Asks for the next visit. False: the window of its shard is full, or no shard is up. */
static bool ask_next(struct ttbench_client *c)
{
    const struct ttbench_load *load = c->plan.load;
    const struct ttbench_visit *visit = &load->visit[c->next];
    uint64_t key = visit->ask.key ^ c->lap_key;
    struct lane *lane = owner_of(c, key);
    if (lane == NULL) {
        return false;
    }
    if (lane->filling == NULL) {
        lane->filling = free_flight(c, lane);
        if (lane->filling == NULL) {
            return false;
        }
        lane->filling->count = 0;
    }
    struct flight *flight = lane->filling;
    struct tt_ask *ask = &flight->ask[flight->count];
    *ask = visit->ask;
    ask->key = key;
    ask->slot = (uint16_t)(flight - lane->flight);
    flight->visit[flight->count++] = c->next;
    if (++c->next == load->count) {
        c->next = 0;
        c->lap_key = rng_mix(c->plan.namespace_id) ^ rng_mix(++c->lap);
    }
    if (flight->count == c->plan.batch) {
        send_asks(c, lane);
    }
    return true;
}

/* ---- what was answered ---- */

/* Ends a visit: each OPEN needs a store or a release. */
static void end_visit(struct ttbench_client *c, struct lane *lane, const struct tt_ask *ask,
                      const struct ttbench_visit *visit, bool is_open)
{
    const struct ttbench_mix *mix = &c->plan.mix;
    uint32_t stores = is_open && visit->is_stored;
    if (mix->asks != 0) {
        c->credit += mix->stores;
        stores = (uint32_t)(c->credit / mix->asks);
        c->credit %= mix->asks;
    }
    if (stores == 0 && is_open) {
        lane->release[lane->releases++] = (struct tt_release){ask->key, ask->depth, ask->slot};
        if (lane->releases == RELEASES) {
            flush_releases(c, lane);
        }
    }
    for (; stores > 0; stores--) {
        lane->store[lane->stores++] = (struct tt_store){
            .key = ask->key,
            .depth = ask->depth,
            .score = visit->score,
            .bound = visit->bound,
            .move = visit->move,
            .slot = ask->slot,
        };
        if (lane->stores == c->plan.batch) {
            flush_stores(c, lane);
        }
    }
}

static void take_answers(struct ttbench_client *c, struct lane *lane, uint32_t request,
                         const struct proto_answers *list)
{
    struct flight *flight = lane->flight;
    while (flight < lane->flight + c->plan.window && flight->request != request) {
        flight++;
    }
    if (flight == lane->flight + c->plan.window) {
        return; /* too late: it was counted as lost */
    }
    lane->out--;
    flight->request = 0;
    if (list->count != flight->count) {
        c->count.malformed += flight->count;
        return;
    }
    histogram_add(&c->latency_ns, clock_ns() - flight->sent_ns);
    c->count.asks += list->count;
    for (uint32_t i = 0; i < list->count; i++) {
        bool is_open = list->at[i].verdict == TT_OPEN;
        c->count.opens += is_open;
        c->count.cuts += list->at[i].verdict == TT_CUT;
        c->count.busy += list->at[i].verdict == TT_BUSY;
        end_visit(c, lane, &flight->ask[i], &c->plan.load->visit[flight->visit[i]], is_open);
    }
}

static bool is_named(const struct proto_text *text, const char *name)
{
    return strlen(name) == text->length && memcmp(name, text->at, text->length) == 0;
}

static void add_figures(const struct proto_figures *list, struct ttbench_answers *sum, int sign)
{
    for (uint32_t i = 0; i < list->count; i++) {
        const struct proto_figure *figure = &list->at[i];
#define X(field) sum->field += is_named(&figure->name, #field) ? (uint64_t)sign * figure->value : 0;
        TTBENCH_ANSWERS(X)
#undef X
    }
}

static void take_message(struct ttbench_client *c, struct lane *lane,
                         const struct proto_message *message, int sign)
{
    switch (message->type) {
    case PROTO_RETRIEVE_ANSWER:
        take_answers(c, lane, message->retrieve_answer.request, &message->retrieve_answer.list);
        break;
    case PROTO_WELCOME:
        lane->is_up = true;
        lane->weight_key = rng_mix(message->welcome.place);
        break;
    case PROTO_STATS_ANSWER:
        add_figures(&message->stats_answer.list, c->plan.shards, sign);
        break;
    case PROTO_ERROR:
        c->count.refused++;
        give_up(c, lane);
        break;
    case PROTO_BYE:
        give_up(c, lane);
        break;
    default:
        break; /* heartbeats, hints */
    }
}

/* Takes one message and returns its type; 0: there is none. */
static unsigned receive(struct ttbench_client *c, struct lane *lane, int flags, int sign)
{
    zmq_msg_t frame;
    struct proto_message message = {.type = PROTO_ERROR};
    zmq_msg_init(&frame);
    if (zmq_msg_recv(&frame, lane->socket, flags) < 0) {
        zmq_msg_close(&frame);
        return 0;
    }
    lane->received_ns = clock_ns();
    c->count.messages_in++;
    c->count.bytes_in += zmq_msg_size(&frame);
    if (proto_decode(&c->decoder, zmq_msg_data(&frame), zmq_msg_size(&frame), &message) == ERR_OK) {
        take_message(c, lane, &message, sign);
    } else {
        c->count.malformed++;
    }
    zmq_msg_close(&frame);
    return message.type;
}

/* Waits for messages, SLICE_MS at most. */
static void receive_some(struct ttbench_client *c)
{
    zmq_pollitem_t item[OPTIONS_SERVERS_MAX];
    uint64_t begin_ns = clock_ns();
    if (c->plan.servers->count == 1) {
        bool any = receive(c, &c->lane[0], 0, 0) != 0;
        c->count.waited_ns += (any ? c->lane[0].received_ns : clock_ns()) - begin_ns;
        return;
    }
    for (unsigned i = 0; i < c->plan.servers->count; i++) {
        item[i] = (zmq_pollitem_t){.socket = c->lane[i].socket, .events = ZMQ_POLLIN};
    }
    bool any = zmq_poll(item, (int)c->plan.servers->count, SLICE_MS) > 0;
    c->count.waited_ns += clock_ns() - begin_ns;
    if (any) {
        for (unsigned i = 0; i < c->plan.servers->count; i++) {
            while (receive(c, &c->lane[i], ZMQ_DONTWAIT, 0) != 0) {
            }
        }
    }
}

/* Gives up silent lanes and greets them again; returns the number of flights without an answer. */
static uint32_t tend_lanes(struct ttbench_client *c)
{
    uint32_t out = 0;
    for (unsigned i = 0; i < c->plan.servers->count; i++) {
        struct lane *lane = &c->lane[i];
        uint64_t now_ns = clock_ns();
        uint64_t silence_ms =
            now_ns > lane->received_ns ? (now_ns - lane->received_ns) / 1000000 : 0;
        if (lane->out > 0 && silence_ms >= SILENCE_MS) {
            give_up(c, lane);
        }
        if (!lane->is_up && silence_ms >= SLICE_MS) {
            lane->received_ns = now_ns; /* the next HELLO SLICE_MS later */
            say_hello(c, lane);
        }
        out += lane->out;
    }
    return out;
}

void *ttbench_client_run(void *client)
{
    struct ttbench_client *c = client;
    const struct ttbench_plan *plan = &c->plan;
    bool stops = false;
    uint32_t out = 0; /* flights without an answer */
    while (!stops || out > 0) {
        while (!stops && ask_next(c)) {
            stops = atomic_load_explicit(plan->stop, memory_order_relaxed);
        }
        receive_some(c);
        stops = stops || atomic_load_explicit(plan->stop, memory_order_relaxed);
        out = tend_lanes(c);
    }
    for (unsigned i = 0; i < plan->servers->count; i++) {
        flush_stores(c, &c->lane[i]);
        flush_releases(c, &c->lane[i]);
    }
    return NULL;
}

/* ---- life ---- */

static bool open_arrays(const struct ttbench_plan *plan, struct lane *lane)
{
    lane->store = calloc(plan->batch, sizeof *lane->store);
    lane->release = calloc(RELEASES, sizeof *lane->release);
    lane->flight = calloc(plan->window, sizeof *lane->flight);
    bool ok = lane->store != NULL && lane->release != NULL && lane->flight != NULL;
    for (uint32_t i = 0; i < plan->window && ok; i++) {
        lane->flight[i].visit = calloc(plan->batch, sizeof *lane->flight[i].visit);
        lane->flight[i].ask = calloc(plan->batch, sizeof *lane->flight[i].ask);
        ok = lane->flight[i].visit != NULL && lane->flight[i].ask != NULL;
    }
    return ok;
}

static enum err open_lane(struct ttbench_client *c, unsigned index)
{
    struct lane *lane = &c->lane[index];
    const struct options_host_port *at = &c->plan.servers->server[index];
    char address[OPTIONS_HOST_MAX + 16], endpoint[sizeof address + 8];
    int linger = LINGER_MS, none = 0, slice = SLICE_MS, first = RECONNECT_MS, one = 1;
    if (!open_arrays(&c->plan, lane)) {
        return ERR_NOMEM;
    }
    lane->socket = zmq_socket(c->plan.context, ZMQ_DEALER);
    if (lane->socket == NULL) {
        return ERR_IO;
    }
    /* No high-water marks: the window is the limit. */
    zmq_setsockopt(lane->socket, ZMQ_SNDHWM, &none, sizeof none);
    zmq_setsockopt(lane->socket, ZMQ_RCVHWM, &none, sizeof none);
    zmq_setsockopt(lane->socket, ZMQ_LINGER, &linger, sizeof linger);
    zmq_setsockopt(lane->socket, ZMQ_RCVTIMEO, &slice, sizeof slice);
    zmq_setsockopt(lane->socket, ZMQ_RECONNECT_IVL, &first, sizeof first);
    zmq_setsockopt(lane->socket, ZMQ_IMMEDIATE, &one, sizeof one);
    zmq_setsockopt(lane->socket, ZMQ_IPV6, &one, sizeof one);
    enum err err = handshake_keys(lane->socket, c->plan.keys);
    if (err == ERR_OK && c->index == 0) {
        err =
            handshake_watch(&lane->handshake, c->plan.context, lane->socket, c->plan.keys != NULL);
    }
    if (err != ERR_OK) {
        return err;
    }
    options_host_port_text(at->host, at->port, address, sizeof address);
    snprintf(endpoint, sizeof endpoint, "tcp://%s", address);
    return zmq_connect(lane->socket, endpoint) == 0 ? ERR_OK : ERR_IO;
}

static enum err await_welcomes(struct ttbench_client *c, unsigned wait_ms, unsigned *shard,
                               const char **why)
{
    uint64_t end_ns = clock_ns() + wait_ms * UINT64_C(1000000);
    for (unsigned i = 0; i < c->plan.servers->count; i++) {
        struct lane *lane = &c->lane[i];
        while (!lane->is_up) {
            *why = handshake_refusal(&lane->handshake);
            if (*why != NULL || clock_ns() >= end_ns) {
                *shard = i;
                return ERR_DOWN;
            }
            say_hello(c, lane);
            receive(c, lane, 0, 0);
        }
        handshake_close(&lane->handshake, lane->socket);
    }
    return ERR_OK;
}

enum err ttbench_client_open(struct ttbench_client **out, const struct ttbench_plan *plan,
                             unsigned index, unsigned wait_ms, unsigned *shard, const char **why)
{
    struct ttbench_client *c = calloc(1, sizeof *c);
    enum err err = c == NULL ? ERR_NOMEM : ERR_OK;
    *shard = 0;
    *why = NULL;
    if (c != NULL) {
        c->plan = *plan;
        c->lap_key = rng_mix(plan->namespace_id);
        c->index = index;
        /* All begin in the same lap, near each other: results stored by one are found by the
         * others. */
        c->next = index * 997 % plan->load->count;
    }
    for (unsigned i = 0; i < plan->servers->count && err == ERR_OK; i++) {
        *shard = i;
        err = open_lane(c, i);
    }
    if (err == ERR_OK) {
        err = await_welcomes(c, wait_ms, shard, why);
    }
    if (err != ERR_OK) {
        ttbench_client_close(&c);
        return err;
    }
    memset(&c->count, 0, sizeof c->count);
    *out = c;
    return ERR_OK;
}

void ttbench_client_close(struct ttbench_client **client)
{
    struct ttbench_client *c = *client;
    struct proto_message bye = {.type = PROTO_BYE};
    for (unsigned i = 0; c != NULL && i < c->plan.servers->count; i++) {
        struct lane *lane = &c->lane[i];
        if (lane->socket != NULL) {
            send_message(c, lane, &bye);
            handshake_close(&lane->handshake, lane->socket);
            zmq_close(lane->socket);
        }
        for (uint32_t f = 0; lane->flight != NULL && f < c->plan.window; f++) {
            free(lane->flight[f].visit);
            free(lane->flight[f].ask);
        }
        free(lane->flight);
        free(lane->store);
        free(lane->release);
    }
    free(c);
    *client = NULL;
}

void ttbench_client_read(const struct ttbench_client *client, struct ttbench_counters *sum,
                         struct histogram *latency_ns)
{
#define X(name) sum->name += client->count.name;
    TTBENCH_COUNTERS(X)
#undef X
    histogram_merge(latency_ns, &client->latency_ns);
}

enum err ttbench_client_stats(struct ttbench_client *c, int sign)
{
    for (unsigned i = 0; i < c->plan.servers->count; i++) {
        uint64_t end_ns = clock_ns() + SILENCE_MS * UINT64_C(1000000);
        struct proto_message stats = {.type = PROTO_STATS};
        unsigned type = 0;
        stats.stats.request = ++c->requests;
        if (!send_message(c, &c->lane[i], &stats)) {
            return ERR_DOWN;
        }
        while (type != PROTO_STATS_ANSWER) {
            if (clock_ns() >= end_ns || !c->lane[i].is_up) {
                return ERR_DOWN;
            }
            type = receive(c, &c->lane[i], 0, sign);
        }
    }
    return ERR_OK;
}
