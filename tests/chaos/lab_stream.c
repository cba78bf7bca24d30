#include "tests/chaos/lab_stream.h"

#include "common/rng.h"
#include "tests/chaos/chaos_link.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MS = 1000000,
    BACKLOG = 64,
    RETRANSMIT_NS = MS, /* what is lost comes so much later */
    QUEUE_BYTES = 256 * 200, /* of a client whose queue is full, about */
    PENDING_HEARTBEATS = 8,
};

/* What a segment is, in the place of the epoch of its packet. */
enum segment {
    DATA,
    CONNECT,
    CONNECTED,
    END,
    RESET,
    ROOM, /* the buffers have room again */
    AGAIN, /* what was kept back is sent again */
};

static bool percent(struct lab *lab, unsigned chance)
{
    return rng_below(&lab_net_of(lab)->random, 100) < chance;
}

uint32_t lab_net_below(struct lab *lab, uint32_t n)
{
    return rng_below(&lab_net_of(lab)->random, n);
}

/* ---- all streams ---- */

/* ---- keys ---- */

static int by_key(const void *a, const void *b)
{
    return memcmp(((const struct keys_user *)a)->public_key,
                  ((const struct keys_user *)b)->public_key, KEYS_BYTES);
}

static unsigned users(const struct lab *lab)
{
    return lab->hosts + lab->options.fronts + LAB_LIAR_SESSIONS + chaos_of(lab)->options.watchers;
}

/* Watchers have these keys in turn; in its HELLO each says that it is a client. */
static enum keys_role role_of(const struct lab *lab, unsigned user)
{
    static const enum keys_role watchers[] = {KEYS_ADMINISTRATOR, KEYS_FRONT, KEYS_WORKER};
    const unsigned liars = lab->hosts + lab->options.fronts;
    if (user >= liars + LAB_LIAR_SESSIONS) {
        return watchers[(user - liars - LAB_LIAR_SESSIONS) % (sizeof watchers / sizeof *watchers)];
    }
    bool is_worker = user < liars ? user < lab->hosts : lab_liar_role(user - liars) == PROTO_WORKER;
    return is_worker ? KEYS_WORKER : KEYS_FRONT;
}

static enum err make_keys(struct lab *lab)
{
    struct lab_net *net = lab_net_of(lab);
    uint64_t seed = rng_mix(lab->options.seed ^ UINT64_C(0x4e75));
    net->server = lab_curve_pair(seed);
    net->pair = calloc(users(lab), sizeof *net->pair);
    net->allowed.user = calloc(users(lab), sizeof *net->allowed.user);
    if (net->pair == NULL || net->allowed.user == NULL) {
        return ERR_NOMEM;
    }
    for (unsigned i = 0; i < users(lab); i++) {
        struct keys_user *user = &net->allowed.user[i];
        net->pair[i] = lab_curve_pair(rng_mix(seed + 1 + i));
        memcpy(user->public_key, net->pair[i].public_key, KEYS_BYTES);
        user->role = role_of(lab, i);
        snprintf(user->name, sizeof user->name, "user%u", i);
    }
    net->allowed.count = users(lab);
    net->allowed.holders = 1; /* the cluster, beside the shards */
    qsort(net->allowed.user, net->allowed.count, sizeof *net->allowed.user, by_key);
    return ERR_OK;
}

const struct keys_pair *lab_net_keys(const struct lab *lab, unsigned machine)
{
    const unsigned host = lab_place_of(lab, machine) / lab->options.threads;
    const unsigned watchers = lab->hosts + lab->options.fronts + LAB_LIAR_SESSIONS;
    return &lab_net_of(lab)->pair[machine >= lab->machines ? watchers + machine - lab->machines
                                  : machine < lab->options.fronts ? lab->hosts + machine
                                                                  : host];
}

const struct keys_pair *lab_net_keys_of_liar(const struct lab *lab, unsigned who)
{
    return &lab_net_of(lab)->pair[lab->hosts + lab->options.fronts + who];
}

enum err lab_net_open(struct lab *lab)
{
    const struct lab_options *o = &lab->options;
    struct lab_net *net = calloc(1, sizeof *net);
    if (net == NULL) {
        return ERR_NOMEM;
    }
    chaos_of(lab)->net = net;
    net->random = rng_mix(o->seed ^ UINT64_C(0x7c9));
    net->intruder.random = rng_mix(o->seed ^ UINT64_C(0x1274));
    /* A full queue passes through it before what stands there is given up. */
    const size_t way_us = (o->rtt_ns + o->jitter_ns) / 1000, most_us = o->rto_max_us;
    const uint64_t least = most_us > 0 ? QUEUE_BYTES * way_us / most_us : 0;
    net->buffer_bytes = (size_t)1024 << lab_net_below(lab, 8);
    net->buffer_bytes = net->buffer_bytes > least ? net->buffer_bytes : least;
    net->held_max = (size_t)65536 << lab_net_below(lab, 5);
    net->pushed_at_once = 1 + lab_net_below(lab, 4);
    net->piece_percent = percent(lab, 50) ? lab_net_below(lab, 60) : 0;
    net->silent_percent = percent(lab, 50) ? lab_net_below(lab, 101) : 0;
    net->is_one_machine = percent(lab, 25);
    net->reconnect_ns = o->probe_us * UINT64_C(500);
    net->reconnect_max_ns = o->probe_us * UINT64_C(2000);
    net->unconfirmed_ns = o->probe_us * UINT64_C(5000);
    net->pending_ns = (uint64_t)o->heartbeat_ms * PENDING_HEARTBEATS * MS;
    net->has_keys = chaos_of(lab)->options.has_keys;
    return net->has_keys ? make_keys(lab) : ERR_OK;
}

void lab_net_close(struct lab *lab)
{
    if (lab_net_of(lab) != NULL) {
        CHECK_THAT(lab_net_of(lab)->open == 0, "lab: every stream was closed at both ends");
        free(lab_net_of(lab)->stream);
        free(lab_net_of(lab)->pair);
        free(lab_net_of(lab)->allowed.user);
        free(lab_net_of(lab));
        chaos_of(lab)->net = NULL;
    }
}

static uint32_t take_slot(struct lab_net *net)
{
    uint32_t slot = 0;
    while (slot < net->slots && net->stream[slot] != NULL) {
        slot++;
    }
    if (slot == net->slots) {
        net->slots = 2 * net->slots + 16;
        net->stream = realloc(net->stream, net->slots * sizeof *net->stream);
        CHECK(net->stream != NULL);
        memset(net->stream + slot, 0, (net->slots - slot) * sizeof *net->stream);
    }
    return slot;
}

static struct lab_service *service_of(const struct lab_stream *s)
{
    return chaos_of(s->lab)->shard[s->shard].service;
}

/* ---- queues of a shard ---- */

void lab_stream_leave_queue(struct lab_stream *s)
{
    if (s->queue != NULL) {
        TAILQ_REMOVE(s->queue, s, in_queue);
        s->queue = NULL;
    }
}

void lab_stream_enter_queue(struct lab_stream *s, struct lab_streams *queue)
{
    lab_stream_leave_queue(s);
    TAILQ_INSERT_TAIL(queue, s, in_queue);
    s->queue = queue;
}

static size_t room_to(const struct lab_stream *s, enum lab_end to)
{
    size_t used = s->half[to].under_way;
    return used < lab_net_of(s->lab)->buffer_bytes ? lab_net_of(s->lab)->buffer_bytes - used : 0;
}

unsigned lab_stream_events(const struct lab_stream *s)
{
    const struct lab_half *in = &s->half[LAB_SERVER];
    unsigned events = in->unread > 0 || in->is_ended ? SOCKET_READABLE : 0U;
    events |= room_to(s, LAB_CLIENT) > 0 || in->is_ended ? SOCKET_WRITABLE : 0U;
    return events & s->watched;
}

void lab_stream_notice(struct lab_stream *s)
{
    struct lab_service *service = service_of(s);
    if (s->connection != NULL && s->queue == NULL && lab_stream_events(s) != 0) {
        lab_stream_enter_queue(s, &service->ready);
    }
}

/* ---- segments ---- */

static bool is_near(const struct lab_stream *s)
{
    return s->worker == LAB_NOBODY;
}

static enum lab_end other(enum lab_end end)
{
    return end == LAB_CLIENT ? LAB_SERVER : LAB_CLIENT;
}

static struct lab_packet *make_segment(enum lab_end to, enum segment what, const void *bytes,
                                       size_t length)
{
    struct lab_packet *packet = lab_packet_new(bytes, length);
    packet->from = to;
    packet->epoch = what;
    return packet;
}

static void push_event(const struct lab_stream *s, uint64_t at_ns, struct lab_packet *packet)
{
    packet->is_sealed = lab_net_of(s->lab)->has_keys;
    lab_heap_push(&s->lab->heap, (struct lab_event){.time_ns = at_ns,
                                                    .kind = LAB_STREAM,
                                                    .who = s->slot,
                                                    .epoch = s->serial,
                                                    .packet = packet});
}

static bool take_segment(struct lab_stream *s, struct lab_packet *packet);

static void send_segment(struct lab_stream *s, enum lab_end to, enum segment what,
                         const void *bytes, size_t length, uint64_t at_ns)
{
    struct lab_packet *packet = make_segment(to, what, bytes, length);
    struct lab_half *half = &s->half[to];
    enum lab_way way = to == LAB_SERVER ? LAB_TO_SHARDS : LAB_TO_WORKERS;
    uint64_t delay_ns;
    if (is_near(s)) {
        (void)take_segment(s, packet);
        return;
    }
    if (!lab_passes(s->lab, s->worker, s->shard, way, &delay_ns)) {
        delay_ns += RETRANSMIT_NS;
    }
    uint64_t arrives_ns = lab_arrives(s->lab, s->worker, s->shard, way, at_ns, delay_ns, length);
    half->last_ns = arrives_ns > half->last_ns ? arrives_ns : half->last_ns;
    half->sent_ns[half->sent++ % LAB_SEGMENTS] = at_ns;
    push_event(s, half->last_ns, packet);
}

/* ---- life ---- */

struct lab_stream *lab_stream_open(struct lab *lab, uint32_t worker, unsigned shard,
                                   struct in6_addr from, uint64_t at_ns)
{
    struct lab_net *net = lab_net_of(lab);
    struct lab_stream *s = calloc(1, sizeof *s);
    CHECK(s != NULL);
    s->lab = lab;
    s->slot = take_slot(net);
    s->serial = ++net->serial;
    s->worker = worker;
    s->shard = shard;
    s->from = from;
    s->half[LAB_CLIENT].is_open = true;
    net->stream[s->slot] = s;
    net->open++;
    send_segment(s, LAB_SERVER, CONNECT, NULL, 0, at_ns);
    return s;
}

static void discard(struct lab_half *half)
{
    lab_queue_free(&half->arrived);
    lab_queue_free(&half->held);
    half->offset = half->unread = half->under_way = 0;
}

/* The process at that end has it no more. */
static void let_go(struct lab_stream *s, enum lab_end end)
{
    struct lab_half *half = &s->half[end];
    if (end == LAB_SERVER && half->is_open) {
        struct lab_service *service = service_of(s);
        service->waiting -= s->queue == &service->backlog;
        service->open--;
        lab_stream_leave_queue(s);
        TAILQ_REMOVE(&service->all, s, of_shard);
        s->connection = NULL;
    }
    half->is_open = false;
    discard(half);
}

static void free_if_closed(struct lab_stream *s)
{
    if (!s->half[LAB_CLIENT].is_open && !s->half[LAB_SERVER].is_open) {
        discard(&s->half[LAB_CLIENT]);
        discard(&s->half[LAB_SERVER]);
        lab_net_of(s->lab)->stream[s->slot] = NULL;
        lab_net_of(s->lab)->open--;
        free(s);
    }
}

void lab_stream_close(struct lab_stream *s, enum lab_end by, bool is_silent)
{
    uint64_t at_ns = by == LAB_SERVER ? s->lab->shard[s->shard].free_ns : s->lab->now_ns;
    at_ns = at_ns > s->lab->now_ns ? at_ns : s->lab->now_ns;
    let_go(s, by);
    if (!is_silent && s->half[other(by)].is_open) {
        send_segment(s, other(by), END, NULL, 0, at_ns);
    }
    free_if_closed(s);
}

static void end_half(struct lab_half *half)
{
    discard(half);
    half->is_ended = true;
}

void lab_stream_reset(struct lab_stream *s)
{
    s->is_dead = true;
    end_half(&s->half[LAB_SERVER]);
    end_half(&s->half[LAB_CLIENT]);
    push_event(s, s->lab->now_ns, make_segment(LAB_CLIENT, RESET, NULL, 0));
    push_event(s, s->lab->now_ns, make_segment(LAB_SERVER, RESET, NULL, 0));
}

/* ---- bytes ---- */

/* A part of so many, now and then. */
static size_t piece_of(struct lab *lab, size_t length)
{
    return length > 1 && percent(lab, lab_net_of(lab)->piece_percent)
               ? 1 + lab_net_below(lab, (uint32_t)length - 1)
               : length;
}

size_t lab_stream_write(struct lab_stream *s, enum lab_end by, const uint8_t *bytes, size_t length,
                        uint64_t at_ns)
{
    enum lab_end to = other(by);
    size_t room = room_to(s, to), n = length < room ? length : room;
    n = piece_of(s->lab, n);
    s->half[to].wants_room = n < length;
    if (n > 0) {
        s->half[to].under_way += n;
        send_segment(s, to, DATA, bytes, n, at_ns);
    }
    return n;
}

/* The end that waits for room hears of it. */
static void report_room(struct lab_stream *s, enum lab_end reader)
{
    struct lab_half *in = &s->half[reader];
    if (!in->wants_room || room_to(s, reader) == 0) {
        return;
    }
    if (reader == LAB_CLIENT && s->half[LAB_SERVER].is_open) {
        in->wants_room = false;
        lab_stream_notice(s);
        if (!is_near(s)) { /* its shard may be idle */
            push_event(s, s->lab->now_ns, make_segment(LAB_SERVER, ROOM, NULL, 0));
        }
    } else if (reader == LAB_SERVER && !is_near(s)) {
        in->wants_room = false;
        push_event(s, s->lab->now_ns + s->lab->options.rtt_ns / 2,
                   make_segment(LAB_CLIENT, ROOM, NULL, 0));
    }
}

size_t lab_stream_read(struct lab_stream *s, enum lab_end by, uint8_t *to, size_t room)
{
    struct lab_half *in = &s->half[by];
    size_t got = 0, most = piece_of(s->lab, room);
    while (in->arrived.first != NULL && got < most) {
        struct lab_packet *packet = in->arrived.first;
        size_t n = packet->length - in->offset;
        n = n < most - got ? n : most - got;
        memcpy(to + got, packet->bytes + in->offset, n);
        got += n;
        in->offset += n;
        if (in->offset == packet->length) {
            in->offset = 0;
            free(lab_queue_take(&in->arrived));
        }
    }
    in->unread -= got;
    in->under_way -= got;
    report_room(s, by);
    return got;
}

/* ---- what arrives ---- */

static bool is_down(const struct lab_stream *s)
{
    return !s->lab->shard[s->shard].alive;
}

/* At a machine on which nobody has the connection. */
static void refuse(struct lab_stream *s, enum lab_end by)
{
    bool is_there = is_near(s) || by == LAB_SERVER || s->lab->worker[s->worker].alive;
    if (is_there && s->half[other(by)].is_open) {
        send_segment(s, other(by), RESET, NULL, 0, s->lab->now_ns);
    }
}

static bool take_connect(struct lab_stream *s)
{
    struct lab_service *service = service_of(s);
    if (is_down(s)) {
        refuse(s, LAB_SERVER);
        return false;
    }
    if (service->waiting >= BACKLOG) {
        return false; /* as if it never came */
    }
    s->half[LAB_SERVER].is_open = true;
    TAILQ_INSERT_TAIL(&service->all, s, of_shard);
    service->open++;
    service->waiting++;
    lab_stream_enter_queue(s, &service->backlog);
    send_segment(s, LAB_CLIENT, CONNECTED, NULL, 0, s->lab->now_ns);
    return true;
}

/* Whether the end has anything new to see. */
static bool take_segment(struct lab_stream *s, struct lab_packet *packet)
{
    enum lab_end to = packet->from;
    struct lab_half *in = &s->half[to];
    enum segment what = packet->epoch;
    if (what == DATA && in->is_open) {
        lab_queue_put(&in->arrived, packet);
        in->unread += packet->length;
        if (to == LAB_SERVER) {
            lab_stream_notice(s);
        }
        return true;
    }
    free(packet);
    if (what == CONNECT) {
        return take_connect(s);
    }
    if (!in->is_open) {
        if (what == DATA) {
            refuse(s, to);
        }
        return false;
    }
    if (what == CONNECTED) {
        s->is_connected = true;
    } else if (what == END) {
        in->is_ended = true;
    } else if (what == RESET) {
        end_half(in);
    }
    if (to == LAB_SERVER) {
        lab_stream_notice(s);
    }
    return true;
}

static bool is_cut(const struct lab_stream *s, enum lab_end to)
{
    return lab_is_cut(s->lab, s->worker, s->shard,
                      to == LAB_SERVER ? LAB_TO_SHARDS : LAB_TO_WORKERS);
}

/* While the two are cut off, segments are sent again and again. */
static void keep_for_later(struct lab_stream *s, struct lab_packet *packet)
{
    struct lab_half *in = &s->half[packet->from];
    bool is_first = in->held.first == NULL;
    lab_queue_put(&in->held, packet);
    if (is_first) {
        push_event(s, s->lab->now_ns + RETRANSMIT_NS, make_segment(packet->from, AGAIN, NULL, 0));
    }
}

/* Delivers what was held back, in order. */
static bool take_held(struct lab_stream *s, enum lab_end to)
{
    struct lab_half *in = &s->half[to];
    struct lab_queue held = in->held;
    bool any = false;
    in->held = (struct lab_queue){NULL};
    for (struct lab_packet *packet; (packet = lab_queue_take(&held)) != NULL;) {
        in->taken++;
        any = take_segment(s, packet) || any;
    }
    return any;
}

/* A machine that died without a word answers nothing. */
static bool is_gone(const struct lab_stream *s, enum lab_end to)
{
    return to == LAB_SERVER && is_down(s) && service_of(s) != NULL && service_of(s)->is_silent;
}

bool lab_stream_is_unconfirmed(const struct lab_stream *s, enum lab_end to, bool has_more,
                               uint64_t *sent_at_ns)
{
    const struct lab_half *half = &s->half[to];
    const bool all_arrived = half->taken == half->sent;
    CHECK_THAT(half->sent > 0, "a stream begins with a segment");
    *sent_at_ns = half->sent_ns[(all_arrived ? half->sent - 1 : half->taken) % LAB_SEGMENTS];
    return !all_arrived || (has_more && (s->is_dead || !half->is_open));
}

struct lab_stream *lab_stream_arrive(struct lab *lab, const struct lab_event *e, enum lab_end *at)
{
    const struct lab_net *net = lab_net_of(lab);
    struct lab_packet *packet = e->packet;
    enum segment what = packet->epoch;
    struct lab_stream *s = e->who < net->slots ? net->stream[e->who] : NULL;
    *at = packet->from;
    if (s == NULL || s->serial != e->epoch || is_gone(s, *at) || (s->is_dead && what != RESET)) {
        free(packet);
        return NULL;
    }
    struct lab_half *in = &s->half[*at];
    if (what == RESET || what == ROOM) {
        return take_segment(s, packet) ? s : NULL;
    }
    if (what == AGAIN && is_cut(s, *at)) {
        push_event(s, lab->now_ns + RETRANSMIT_NS, packet);
        return NULL;
    }
    if (what != AGAIN && (in->held.first != NULL || is_cut(s, *at))) {
        keep_for_later(s, packet);
        return NULL;
    }
    if (what == AGAIN) {
        free(packet);
        return take_held(s, *at) ? s : NULL;
    }
    in->taken++;
    return take_segment(s, packet) ? s : NULL;
}
