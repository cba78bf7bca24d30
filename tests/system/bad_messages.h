/* bad_messages: what a bad peer may send to a shard, kind by kind, repeatable from a seed. Each
 * maker writes up to ROOM bytes and returns how many. Threads: one. */
#ifndef TESTS_SYSTEM_BAD_MESSAGES_H
#define TESTS_SYSTEM_BAD_MESSAGES_H

#include "tests/fuzz/fuzz_messages.h"

enum { ROOM = 1 << 18, WITNESS_NODES = 8, WITNESS_DEPTH = 7 };

static const uint64_t witness_key =
    UINT64_C(0x5eed000000000000); /* the witness has these in flight */
static const uint64_t witness_namespace = 77, witness_instance = 4711;

static size_t make_valid(uint64_t *rng, uint8_t *out)
{
    size_t n;
    do {
        n = fuzz_message(rng, out, PROTO_MESSAGE_MAX);
    } while (n == 0);
    return n;
}

static size_t make_noise(uint64_t *rng, uint8_t *out)
{
    size_t n = rng_below(rng, rng_below(rng, 4) == 0 ? 3000 : 24);
    for (size_t i = 0; i < n; i++) {
        out[i] = (uint8_t)rng_next(rng);
    }
    return n;
}

static size_t make_truncated(uint64_t *rng, uint8_t *out)
{
    return rng_below(rng, (uint32_t)make_valid(rng, out));
}

static size_t make_flipped(uint64_t *rng, uint8_t *out)
{
    size_t n = make_valid(rng, out);
    for (unsigned k = 1 + rng_below(rng, 8); k > 0; k--) {
        out[rng_below(rng, (uint32_t)n)] ^= (uint8_t)(1u << rng_below(rng, 8));
    }
    return n;
}

/* nil, booleans, floats, strings, maps, extensions, where integers and lists are expected. */
static size_t make_mistyped(uint64_t *rng, uint8_t *out)
{
    static const uint8_t wrong[] = {0xc0, 0xc1, 0xc2, 0xc3, 0xca, 0xcb, 0xa1, 0x81, 0xd4, 0xd9,
                                    0xc4, 0xde, 0xe0, 0xd0, 0xd3, 0x90, 0xdc, 0x80, 0xc7};
    size_t n = make_valid(rng, out);
    for (unsigned k = 1 + rng_below(rng, 3); k > 0; k--) {
        out[n > 2 ? 2 + rng_below(rng, (uint32_t)n - 2) : 0] = wrong[rng_below(rng, sizeof wrong)];
    }
    return n;
}

/* Headers that promise up to 4 G elements, bytes or characters. */
static size_t make_huge_count(uint64_t *rng, uint8_t *out)
{
    static const uint8_t header[] = {0xdd, 0xdf, 0xdb, 0xc6, 0xc9, 0xdc, 0xde, 0xda};
    size_t n = 0;
    if (rng_below(rng, 4) > 0) {
        out[n++] = (uint8_t)(0x92 + rng_below(rng, 4));
        out[n++] = PROTO_VERSION;
        out[n++] = (uint8_t)(1 + rng_below(rng, 18));
        for (unsigned k = rng_below(rng, 3); k > 0; k--) {
            out[n++] = (uint8_t)rng_below(rng, 100);
        }
    }
    out[n++] = header[rng_below(rng, sizeof header)];
    for (unsigned k = 0; k < 4; k++) {
        out[n++] = rng_below(rng, 2) ? 0xff : (uint8_t)rng_next(rng);
    }
    for (unsigned k = rng_below(rng, 64); k > 0; k--) {
        out[n++] = (uint8_t)rng_next(rng);
    }
    return n;
}

static size_t make_too_large(uint64_t *rng, uint8_t *out)
{
    size_t n = PROTO_MESSAGE_MAX + 1 + rng_below(rng, ROOM - PROTO_MESSAGE_MAX - 1);
    memset(out, (int)rng_below(rng, 256), n);
    return n;
}

/* As large as it may be: what comes back is as large. */
static size_t make_large_ask(uint64_t *rng, uint8_t *out)
{
    static struct tt_ask asks[PROTO_BATCH_MAX];
    struct proto_message m = {.type = PROTO_RETRIEVE_ASK};
    for (unsigned i = 0; i < PROTO_BATCH_MAX; i++) {
        asks[i] = (struct tt_ask){.key = rng_next(rng), .depth = 3, .alpha = -5, .beta = 5};
    }
    m.retrieve_ask.request = 1;
    m.retrieve_ask.list = (struct proto_asks){PROTO_BATCH_MAX, asks};
    return proto_encode(&m, out, ROOM);
}

static size_t make_hello(uint64_t *rng, uint8_t *out)
{
    struct proto_message m = {.type = PROTO_HELLO};
    m.hello.request = 1;
    m.hello.role = (uint8_t)rng_below(rng, 4);
    m.hello.flags = (uint8_t)rng_below(rng, 3);
    m.hello.namespace_id = rng_below(rng, 2) ? witness_namespace : rng_next(rng);
    m.hello.instance = rng_below(rng, 2) ? witness_instance : rng_next(rng);
    m.hello.name = proto_text_of("bad");
    return proto_encode(&m, out, ROOM);
}

/* Somebody else's nodes and jobs, by every slot and number. */
static size_t make_theft(uint64_t *rng, uint8_t *out)
{
    struct tt_release release = {witness_key + rng_below(rng, WITNESS_NODES), WITNESS_DEPTH,
                                 (uint16_t)rng_below(rng, 4)};
    struct tt_store store = {.key = rng_next(rng),
                             .depth = WITNESS_DEPTH,
                             .score = 1,
                             .bound = TT_EXACT,
                             .slot = release.slot};
    struct proto_message m = {.type = PROTO_RELEASE};
    switch (rng_below(rng, 4)) {
    case 0:
        m.type = PROTO_STORE_HASH;
        m.store_hash.list = (struct proto_stores){1, &store};
        break;
    case 1:
        m.type = PROTO_JOB_STOP;
        m.job_stop.job = rng_below(rng, 8);
        break;
    case 2:
        m.type = PROTO_BYE;
        break;
    default:
        m.release.list = (struct proto_releases){1, &release};
    }
    return proto_encode(&m, out, ROOM);
}

typedef size_t maker_fn(uint64_t *rng, uint8_t *out);
static const struct kind {
    const char *name;
    maker_fn *make;
    unsigned weight;
} kinds[] = {
    {"noise", make_noise, 150},
    {"truncated", make_truncated, 150},
    {"flipped", make_flipped, 200},
    {"mistyped", make_mistyped, 150},
    {"huge_counts", make_huge_count, 150},
    {"valid", make_valid, 100},
    {"hello", make_hello, 20},
    {"theft", make_theft, 60},
    {"large", make_large_ask, 2},
    {"too_large", make_too_large, 1},
};
enum { KINDS = sizeof kinds / sizeof kinds[0] };

#endif
