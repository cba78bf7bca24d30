#include "tests/chaos/lab_dealer.h"

#include "common/rng.h"
#include "tests/chaos/chaos_link.h"
#include "tests/chaos/lab_watcher.h"

#include <stdlib.h>
#include <string.h>

enum {
    HIGH_WATER = 256, /* messages each way, as in proto/lane/zeromq.c */
    READ_BYTES = 4096,
};

/* ---- bytes ---- */

static uint8_t *reserve(struct lab_bytes *b, size_t more)
{
    if (b->begin == b->end) {
        b->begin = b->end = 0;
    }
    if (b->end + more > b->room && b->begin > 0) {
        memmove(b->at, b->at + b->begin, b->end - b->begin);
        b->end -= b->begin;
        b->begin = 0;
    }
    if (b->end + more > b->room) {
        b->room = 2 * (b->end + more);
        b->at = realloc(b->at, b->room);
        CHECK(b->at != NULL);
    }
    return b->at + b->end;
}

static void put(struct lab_bytes *b, const void *bytes, size_t length)
{
    memcpy(reserve(b, length), bytes, length);
    b->end += length;
}

static size_t waiting(const struct lab_bytes *b)
{
    return b->end - b->begin;
}

static void empty(struct lab_bytes *b)
{
    b->begin = b->end = 0;
}

/* ---- its connection ---- */

static struct lab_dealer *dealer_of(const struct lab_stream *s)
{
    return &chaos_of(s->lab)->program[s->worker].dealer[s->shard];
}

static void dial_at(struct lab_worker *w, unsigned shard, uint64_t at_ns)
{
    struct lab_dealer *d = &program_of(w)->dealer[shard];
    if (d->due_ns != 0 && d->due_ns <= at_ns) {
        return;
    }
    d->due_ns = at_ns;
    lab_heap_push(
        &w->lab->heap,
        (struct lab_event){.time_ns = at_ns, .kind = LAB_DIAL, .who = w->index, .epoch = shard});
}

/* The same at all shards: without keys a user is an address. On one machine all have 127.0.0.1. */
static struct in6_addr address_of(const struct lab_worker *w)
{
    struct in6_addr at = {.s6_addr = {[10] = 0xff, [11] = 0xff, [12] = 127, [15] = 1}};
    unsigned host = lab_place_of(w->lab, w->index) / w->lab->options.threads;
    if (!lab_net_of(w->lab)->is_one_machine) {
        at.s6_addr[12] = 10;
        at.s6_addr[14] = (uint8_t)(host >> 8);
        at.s6_addr[15] = (uint8_t)host;
    }
    return at;
}

static void connect_now(struct lab_worker *w, unsigned shard)
{
    struct lab_dealer *d = &program_of(w)->dealer[shard];
    d->state = LAB_CONNECTING;
    d->began_ns = w->lab->now_ns;
    d->stream = lab_stream_open(w->lab, w->index, shard, address_of(w), w->lab->now_ns);
    dial_at(w, shard, w->lab->now_ns + lab_net_of(w->lab)->unconfirmed_ns);
}

static void disconnect(struct lab_worker *w, unsigned shard, bool is_silent)
{
    struct lab_dealer *d = &program_of(w)->dealer[shard];
    struct lab_stream *s = d->stream;
    d->stream = NULL;
    d->state = LAB_IDLE;
    d->queued = 0;
    empty(&d->in);
    empty(&d->out);
    if (s != NULL) {
        lab_stream_close(s, LAB_CLIENT, is_silent);
    }
}

static void connect_again(struct lab_worker *w, unsigned shard)
{
    const struct lab_net *net = lab_net_of(w->lab);
    struct lab_dealer *d = &program_of(w)->dealer[shard];
    disconnect(w, shard, false);
    dial_at(w, shard, w->lab->now_ns + d->retry_ns);
    d->retry_ns = 2 * d->retry_ns < net->reconnect_max_ns ? 2 * d->retry_ns : net->reconnect_max_ns;
}

/* What the shard said is no ZMTP: never the network's fault. */
static void break_off(struct lab_worker *w, unsigned shard)
{
    chaos_of(w->lab)->result.broken_streams++;
    connect_again(w, shard);
}

static void flush(struct lab_worker *w, unsigned shard, uint64_t at_ns)
{
    struct lab_dealer *d = &program_of(w)->dealer[shard];
    size_t n = 1;
    while (waiting(&d->out) > 0 && n > 0) {
        n = lab_stream_write(d->stream, LAB_CLIENT, d->out.at + d->out.begin, waiting(&d->out),
                             at_ns);
        d->out.begin += n;
    }
    d->queued = waiting(&d->out) == 0 ? 0 : d->queued;
    w->last_out_ns[shard] = d->stream->half[LAB_SERVER].last_ns;
    dial_at(w, shard, at_ns + lab_net_of(w->lab)->unconfirmed_ns);
}

static void put_frame(struct lab_worker *w, unsigned shard, uint8_t flags, const uint8_t *bytes,
                      size_t length)
{
    struct lab_dealer *d = &program_of(w)->dealer[shard];
    uint8_t *at = reserve(&d->out, length + LAB_CURVE_OVERHEAD);
    if (lab_net_of(w->lab)->has_keys) {
        d->out.end += lab_curve_seal(&d->curve, flags, bytes, length, at);
        return;
    }
    d->out.end += lab_zmtp_header(at, flags, length);
    put(&d->out, bytes, length);
}

static void note_unsent(struct lab_worker *w, const uint8_t *bytes, size_t length)
{
    struct proto_message m;
    CHECK(proto_decode(w->lab->decoder, bytes, length, &m) == ERR_OK);
    chaos_of(w->lab)->result.unsent++;
    if (m.type == PROTO_JOB_POST || m.type == PROTO_JOB_STOP || m.type == PROTO_JOB_REPORT) {
        program_of(w)->unsent_ns = w->lab->now_ns;
    }
}

bool lab_dealer_send(struct lab_worker *w, unsigned shard, uint64_t at_ns, const uint8_t *bytes,
                     size_t length)
{
    struct lab_dealer *d = &program_of(w)->dealer[shard];
    if (d->state != LAB_READY || d->queued >= HIGH_WATER) {
        if (d->state == LAB_READY) {
            note_unsent(w, bytes, length);
        }
        return false;
    }
    w->lab->result.messages++;
    w->lab->result.bytes += length;
    put_frame(w, shard, 0, bytes, length);
    d->queued++;
    flush(w, shard, at_ns);
    return true;
}

/* ---- what comes ---- */

static void give_to_worker(struct lab_worker *w, unsigned shard, const struct lab_frame *f)
{
    struct lab *lab = w->lab;
    uint8_t other[PROTO_MESSAGE_MAX];
    const uint8_t *bytes = f->body;
    size_t length = f->length;
    uint32_t who = w->index;
    if (lab_watcher_spoil(lab, f->body, f->length, &who, other, &length)) {
        bytes = other;
    }
    struct lab_packet *packet = lab_packet_new(bytes, length);
    packet->from = shard;
    packet->epoch = lab->worker[who].incarnation;
    packet->number = ++lab->packets;
    lab->result.messages++;
    lab->result.bytes += length;
    lab_heap_push(&lab->heap, (struct lab_event){.time_ns = lab->now_ns,
                                                 .kind = LAB_TO_WORKER,
                                                 .who = who,
                                                 .epoch = shard,
                                                 .packet = packet});
}

static bool is_named(const struct lab_frame *f, const char *name)
{
    size_t n = strlen(name);
    return f->length > n && f->body[0] == n && memcmp(f->body + 1, name, n) == 0;
}

static bool take_ready(struct lab_worker *w, unsigned shard, const struct lab_frame *f)
{
    struct lab_dealer *d = &program_of(w)->dealer[shard];
    if (!is_named(f, "READY") ||
        (lab_net_of(w->lab)->has_keys && !lab_curve_take_ready(&d->curve, f))) {
        return false;
    }
    d->state = LAB_READY;
    d->retry_ns = lab_net_of(w->lab)->reconnect_ns;
    program_of(w)->lossy &= ~(UINT64_C(1) << shard); /* a session begins anew */
    return true;
}

static bool take_welcome(struct lab_worker *w, unsigned shard, const struct lab_frame *f)
{
    struct lab_dealer *d = &program_of(w)->dealer[shard];
    if (!lab_curve_take_welcome(&d->curve, f)) {
        return false;
    }
    d->state = LAB_HANDSHAKE;
    d->out.end += lab_curve_initiate(&d->curve, reserve(&d->out, LAB_CURVE_COMMAND_BYTES));
    flush(w, shard, w->lab->now_ns);
    return true;
}

/* False: it is none that a shard may send now. */
static bool take_frame(struct lab_worker *w, unsigned shard, struct lab_frame *f)
{
    struct lab_dealer *d = &program_of(w)->dealer[shard];
    if (d->state != LAB_READY) {
        return f->flags & LAB_FRAME_COMMAND &&
               (d->state == LAB_WELCOME ? take_welcome(w, shard, f) : take_ready(w, shard, f));
    }
    if (lab_net_of(w->lab)->has_keys && !lab_curve_unseal(&d->curve, f)) {
        return false;
    }
    if (f->flags & (LAB_FRAME_COMMAND | LAB_FRAME_MORE) || f->length > PROTO_MESSAGE_MAX) {
        return false; /* a PING, too: what it can do to libzmq is in connections_tick */
    }
    give_to_worker(w, shard, f);
    return true;
}

static bool take_greeting(struct lab_worker *w, struct lab_dealer *d)
{
    const uint8_t *at = d->in.at + d->in.begin;
    bool has_keys = lab_net_of(w->lab)->has_keys;
    d->in.begin += LAB_GREETING_BYTES;
    d->state = has_keys ? LAB_WELCOME : LAB_HANDSHAKE;
    return lab_zmtp_is_greeting(at, has_keys);
}

/* Takes whole frames; false when one is wrong. */
static bool take_all(struct lab_worker *w, unsigned shard)
{
    struct lab_dealer *d = &program_of(w)->dealer[shard];
    struct lab_frame f;
    int found = 1;
    if (d->state == LAB_GREETING) {
        if (waiting(&d->in) < LAB_GREETING_BYTES) {
            return true;
        }
        if (!take_greeting(w, d)) {
            return false;
        }
    }
    while ((found = lab_zmtp_frame(d->in.at + d->in.begin, waiting(&d->in), &f)) > 0) {
        if (!take_frame(w, shard, &f)) {
            return false;
        }
        d->in.begin += f.used;
    }
    return found == 0;
}

static void read_all(struct lab_worker *w, unsigned shard)
{
    struct lab_dealer *d = &program_of(w)->dealer[shard];
    size_t n;
    do {
        n = lab_stream_read(d->stream, LAB_CLIENT, reserve(&d->in, READ_BYTES), READ_BYTES);
        d->in.end += n;
        if (n > 0 && !take_all(w, shard)) {
            break_off(w, shard);
            return;
        }
    } while (n > 0);
    if (d->stream->half[LAB_CLIENT].is_ended) {
        connect_again(w, shard);
    }
}

/* All that it can say before it hears anything. */
static void greet(struct lab_worker *w, struct lab_dealer *d)
{
    const struct lab_net *net = lab_net_of(w->lab);
    uint8_t *at = reserve(&d->out, LAB_GREETING_BYTES + LAB_CURVE_COMMAND_BYTES);
    if (!net->has_keys) {
        d->out.end += lab_zmtp_hello(at);
        return;
    }
    lab_curve_open(&d->curve, lab_net_keys(w->lab, w->index), net->server.public_key);
    d->out.end += lab_zmtp_greeting(at, true);
    d->out.end += lab_curve_hello(&d->curve, at + LAB_GREETING_BYTES);
}

static void serve(struct lab_worker *w, unsigned shard)
{
    struct lab_dealer *d = &program_of(w)->dealer[shard];
    if (d->stream == NULL || program_of(w)->faults.stalls > 0 ||
        lab_is_deaf(w->lab, w->index, shard)) {
        return;
    }
    if (d->state == LAB_CONNECTING && d->stream->is_connected) {
        d->state = LAB_GREETING;
        greet(w, d);
    }
    if (d->state != LAB_CONNECTING && waiting(&d->out) > 0) {
        flush(w, shard, w->lab->now_ns);
    }
    read_all(w, shard);
}

void lab_dealer_ready(struct lab *lab, struct lab_stream *s)
{
    if (dealer_of(s)->stream == s) {
        serve(&lab->worker[s->worker], s->shard);
    }
}

void lab_dealer_dial(struct lab_worker *w, unsigned shard)
{
    struct lab_dealer *d = program_of(w)->dealer != NULL ? &program_of(w)->dealer[shard] : NULL;
    const struct lab_net *net = lab_net_of(w->lab);
    uint64_t now_ns = w->lab->now_ns;
    if (d == NULL || d->due_ns != now_ns) {
        return;
    }
    d->due_ns = 0;
    if (program_of(w)->faults.stalls > 0) {
        dial_at(w, shard, now_ns + net->reconnect_ns);
        return;
    }
    if (d->stream == NULL) {
        connect_now(w, shard);
        return;
    }
    bool is_new = d->state < LAB_READY;
    uint64_t oldest_ns = d->began_ns;
    const bool has_more = waiting(&d->out) > 0;
    if (!is_new && !lab_stream_is_unconfirmed(d->stream, LAB_SERVER, has_more, &oldest_ns)) {
        if (has_more) {
            dial_at(w, shard, now_ns + net->unconfirmed_ns);
        }
        return;
    }
    if (now_ns >= oldest_ns + net->unconfirmed_ns) {
        connect_again(w, shard);
    } else {
        dial_at(w, shard, oldest_ns + net->unconfirmed_ns);
    }
}

/* ---- all of a worker ---- */

void lab_dealers_open(struct lab_worker *w)
{
    const unsigned shards = w->lab->options.shards;
    program_of(w)->dealer = calloc(shards, sizeof *program_of(w)->dealer);
    CHECK(program_of(w)->dealer != NULL);
    for (unsigned i = 0; i < shards; i++) {
        program_of(w)->dealer[i].retry_ns = lab_net_of(w->lab)->reconnect_ns;
        connect_now(w, i);
    }
}

void lab_dealers_close(struct lab_worker *w)
{
    bool is_silent = program_of(w)->dealer != NULL &&
                     lab_net_below(w->lab, 100) < lab_net_of(w->lab)->silent_percent;
    for (unsigned i = 0; program_of(w)->dealer != NULL && i < w->lab->options.shards; i++) {
        disconnect(w, i, is_silent);
        free(program_of(w)->dealer[i].in.at);
        free(program_of(w)->dealer[i].out.at);
    }
    free(program_of(w)->dealer);
    program_of(w)->dealer = NULL;
}

void lab_dealers_go_on(struct lab_worker *w)
{
    for (unsigned i = 0; program_of(w)->dealer != NULL && i < w->lab->options.shards; i++) {
        serve(w, i);
    }
}

bool lab_dealer_is_through(const struct lab_worker *w, unsigned shard)
{
    const struct lab_dealer *d = &program_of(w)->dealer[shard];
    const struct connection *c = lab_dealer_connection(w, shard);
    return d->state == LAB_READY && waiting(&d->out) == 0 &&
           d->stream->half[LAB_SERVER].under_way == 0 && c != NULL && c->in_used == 0;
}

const struct connection *lab_dealer_connection(const struct lab_worker *w, unsigned shard)
{
    const struct lab_stream *s = program_of(w)->dealer[shard].stream;
    return s != NULL ? s->connection : NULL;
}
