#include "tests/chaos/lab_intruder.h"

#include "common/rng.h"
#include "tests/chaos/lab_dealer.h"
#include "tests/chaos/lab_service.h"

#include <stdlib.h>
#include <string.h>

enum {
    ACTS_MAX = 4000, /* of a run: more would only take longer */
    ADDRESSES = 4,
    STORM_PERCENT = 1, /* of acts */
    STORM_MOST = 100, /* connections */
    SCRIPT_MAX = CONNECTION_MESSAGE_MAX + 512, /* bytes */
};

static uint32_t below(struct lab *lab, uint32_t n)
{
    return rng_below(&lab_net_of(lab)->intruder.random, n);
}

static bool percent(struct lab *lab, unsigned chance)
{
    return below(lab, 100) < chance;
}

/* ---- what it says ---- */

static void add(struct lab_intruding *i, const void *bytes, size_t length)
{
    CHECK(i->length + length <= SCRIPT_MAX);
    memcpy(i->script + i->length, bytes, length);
    i->length += length;
}

static void add_random(struct lab *lab, struct lab_intruding *i, size_t length)
{
    for (size_t n = 0; n < length; n++) {
        uint8_t byte = (uint8_t)below(lab, 256);
        add(i, &byte, 1);
    }
}

static void add_frame(struct lab_intruding *i, uint8_t flags, const void *body, size_t length)
{
    uint8_t header[LAB_FRAME_OVERHEAD];
    add(i, header, lab_zmtp_header(header, flags, length));
    add(i, body, length);
}

static void add_message(struct lab_intruding *i, const struct proto_message *m)
{
    uint8_t bytes[PROTO_JOB_BYTES];
    size_t n = proto_encode(m, bytes, sizeof bytes);
    add_frame(i, 0, bytes, n);
}

/* A client of good manners but that it reads no answers. */
static void add_greedy(struct lab *lab, struct lab_intruding *i)
{
    static const enum proto_type asked[] = {PROTO_STATS, PROTO_MEMBERS, PROTO_JOBS, PROTO_SCAN};
    struct proto_message hello = {.type = PROTO_HELLO,
                                  .hello = {.role = PROTO_CLIENT,
                                            .instance = rng_next(&lab_net_of(lab)->intruder.random),
                                            .name = proto_text_of("greedy")}};
    const struct proto_message ask = {.type = asked[below(lab, 4)]};
    add_message(i, &hello);
    for (unsigned n = 0; n < 400; n++) {
        add_message(i, &ask);
    }
}

static void add_pieces(struct lab *lab, struct lab_intruding *i)
{
    for (unsigned n = 1 + below(lab, 20); n > 0; n--) {
        add_frame(i, n > 1 || percent(lab, 50) ? LAB_FRAME_MORE : 0, "piece", below(lab, 6));
    }
}

/* More than anybody takes, or that nobody is sent the rest of. */
static void add_large(struct lab *lab, struct lab_intruding *i)
{
    static const uint64_t sizes[] = {PROTO_MESSAGE_MAX,
                                     PROTO_MESSAGE_MAX + 1,
                                     CONNECTION_MESSAGE_MAX,
                                     CONNECTION_MESSAGE_MAX + 1,
                                     UINT32_MAX,
                                     INT64_MAX,
                                     UINT64_MAX - 8,
                                     UINT64_MAX};
    uint8_t header[LAB_FRAME_OVERHEAD];
    uint64_t size = sizes[below(lab, 8)];
    add(i, header, lab_zmtp_header(header, percent(lab, 20) ? LAB_FRAME_COMMAND : 0, size));
    add_random(lab, i,
               size <= CONNECTION_MESSAGE_MAX && percent(lab, 50) ? size : below(lab, 3000));
}

/* With keys it has none that is allowed, and goes no further than a HELLO. */
static size_t greet(const struct lab *lab, uint8_t *out)
{
    struct lab_curve curve;
    if (!lab_net_of(lab)->has_keys) {
        return lab_zmtp_hello(out);
    }
    lab_curve_open(&curve, &lab_net_of(lab)->server, lab_net_of(lab)->server.public_key);
    size_t n = lab_zmtp_greeting(out, true);
    return n + lab_curve_hello(&curve, out + n);
}

static void write_script(struct lab *lab, struct lab_intruding *i)
{
    uint8_t hello[LAB_GREETING_BYTES + LAB_CURVE_COMMAND_BYTES];
    size_t n = greet(lab, hello);
    unsigned kind = below(lab, 9);
    if (kind == 0) {
        add_random(lab, i, below(lab, 300));
        return;
    }
    if (kind == 1) { /* a byte is another one */
        hello[below(lab, (uint32_t)n)] ^= (uint8_t)(1 + below(lab, 255));
    } else if (kind == 2) { /* half a handshake */
        n = below(lab, (uint32_t)n);
    }
    add(i, hello, n);
    if (kind == 3) {
        add_large(lab, i);
    } else if (kind == 4) {
        add_pieces(lab, i);
    } else if (kind == 5) {
        add_greedy(lab, i);
    } else if (kind == 6) { /* a command that there is not, or is too short, and a PING */
        add_frame(i, LAB_FRAME_COMMAND, "\4PING\0\0context", 7 + below(lab, 8));
        add_frame(i, LAB_FRAME_COMMAND, "\7UNKNOWN", below(lab, 9));
    } else if (kind == 7) {
        add_random(lab, i, below(lab, 300));
    }
}

/* ---- its connections ---- */

static struct in6_addr an_address(struct lab *lab)
{
    struct in6_addr at = {.s6_addr = {[10] = 0xff, [11] = 0xff, [12] = 127, [15] = 1}};
    if (!lab_net_of(lab)->is_one_machine) {
        at.s6_addr[12] = 10;
        at.s6_addr[13] = 8;
        at.s6_addr[15] = (uint8_t)below(lab, ADDRESSES);
    }
    return at;
}

static void leave(struct lab_intruding *i, bool is_silent)
{
    if (i->stream != NULL) {
        lab_stream_close(i->stream, LAB_CLIENT, is_silent);
    }
    free(i->script);
    *i = (struct lab_intruding){.stream = NULL};
}

static void come(struct lab *lab, struct lab_intruding *i, unsigned shard)
{
    i->stream = lab_service_meet(lab, shard, an_address(lab));
    if (i->stream != NULL) {
        i->script = malloc(SCRIPT_MAX);
        CHECK(i->script != NULL);
        i->reads = percent(lab, 30);
        write_script(lab, i);
    }
}

static void go_on(struct lab *lab, struct lab_intruding *i)
{
    uint8_t rest[4096];
    uint32_t left = (uint32_t)(i->length - i->at);
    while (i->reads && lab_stream_read(i->stream, LAB_CLIENT, rest, sizeof rest) > 0) {
    }
    if (i->stream->half[LAB_CLIENT].is_ended || (left == 0 && percent(lab, 30))) {
        leave(i, percent(lab, 50));
    } else if (left > 0) {
        uint32_t n = percent(lab, 70) ? left : 1 + below(lab, left);
        (void)lab_service_say(i->stream, i->script + i->at, n);
        i->at += n; /* what was not taken is left out */
    }
}

/* Many at once, which say nothing. */
static void storm(struct lab *lab, unsigned shard)
{
    for (unsigned n = below(lab, STORM_MOST); n > 0; n--) {
        struct lab_intruding *i = &lab_net_of(lab)->intruder.list[below(lab, LAB_INTRUDERS)];
        leave(i, percent(lab, 50));
        i->stream = lab_stream_open(lab, LAB_NOBODY, shard, an_address(lab), lab->now_ns);
    }
    chaos_of(lab)->result.storms++;
}

void lab_intruder_act(struct lab *lab)
{
    struct lab_intruder *all = &lab_net_of(lab)->intruder;
    struct lab_intruding *i = &all->list[below(lab, LAB_INTRUDERS)];
    unsigned shard = i->stream != NULL ? i->stream->shard : below(lab, lab->options.shards);
    if (lab->ended || all->acts >= ACTS_MAX || !lab->shard[shard].alive ||
        chaos_of(lab)->shard[shard].faults.stalls > 0) {
        return;
    }
    all->acts++;
    chaos_of(lab)->result.intrusions++;
    if (percent(lab, STORM_PERCENT)) {
        storm(lab, shard);
    } else if (i->stream == NULL) {
        come(lab, i, shard);
    } else {
        go_on(lab, i);
    }
}

void lab_intruder_close(struct lab *lab)
{
    for (unsigned i = 0; lab_net_of(lab) != NULL && i < LAB_INTRUDERS; i++) {
        leave(&lab_net_of(lab)->intruder.list[i], true);
    }
}
