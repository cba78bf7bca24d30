/* fuzz_messages: valid messages of random types, repeatable from a seed. Threads: one. */
#ifndef TESTS_FUZZ_FUZZ_MESSAGES_H
#define TESTS_FUZZ_FUZZ_MESSAGES_H

#include "common/rng.h"
#include "proto/codec.h"

#include <string.h>

/* A valid message of a random type. */
static size_t fuzz_message(uint64_t *rng, uint8_t *out, size_t room)
{
    static const uint8_t types[] = {1,  1,  3,  3,  3,  5,  5,  6,  7,  9,  10,
                                    12, 13, 15, 17, 18, 19, 20, 22, 26, 27, 29};
    static union {
        struct tt_ask ask[8];
        struct tt_store store[8];
        struct tt_release release[8];
        struct tt_peek peek[8];
    } op;
    struct proto_message m;
    uint32_t count = rng_below(rng, 9);
    memset(&m, 0, sizeof m);
    m.type = (enum proto_type)types[rng_below(rng, sizeof types)];
    for (uint32_t i = 0; i < count; i++) {
        uint64_t key = rng_below(rng, 20);
        uint8_t depth = (uint8_t)rng_below(rng, 3);
        uint16_t slot = (uint16_t)rng_below(rng, 3);
        if (m.type == PROTO_RETRIEVE_ASK) {
            op.ask[i] = (struct tt_ask){key, -5, 5, depth, (uint8_t)rng_below(rng, 4), slot};
            m.retrieve_ask.list = (struct proto_asks){count, op.ask};
        } else if (m.type == PROTO_STORE_HASH) {
            op.store[i] =
                (struct tt_store){key, 3, depth, (uint8_t)(1 + rng_below(rng, 3)), 7, slot};
            m.store_hash.list = (struct proto_stores){count, op.store};
        } else if (m.type == PROTO_RELEASE) {
            op.release[i] = (struct tt_release){key, depth, slot};
            m.release.list = (struct proto_releases){count, op.release};
        } else if (m.type == PROTO_PEEK) {
            op.peek[i] = (struct tt_peek){key, depth};
            m.peek.list = (struct proto_peeks){count, op.peek};
        } else if (m.type == PROTO_SHARE) {
            op.store[i] = (struct tt_store){key, 3, depth, TT_LOWER, 7, 0};
            if (rng_below(rng, 4) == 0) { /* a foreign claim; now and then one that there is not */
                op.store[i].bound = TT_CLAIM;
                op.store[i].score = (int16_t)(rng_below(rng, 20) == 0 ? 2 : rng_below(rng, 2));
            }
            m.share.list = (struct proto_stores){count, op.store};
        }
    }
    if (m.type == PROTO_HELLO) {
        m.hello.role = (uint8_t)rng_below(rng, 4);
        m.hello.flags = (uint8_t)rng_below(rng, 8);
        m.hello.instance = rng_below(rng, 2);
        m.hello.table_id = rng_below(rng, 3);
        m.hello.lowest = (uint8_t)rng_below(rng, PROTO_VERSION + 2);
        m.hello.highest = (uint8_t)rng_below(rng, PROTO_VERSION + 2);
    } else if (m.type == PROTO_JOB_POST || m.type == PROTO_JOB_STOP || m.type == PROTO_JOB_REPORT) {
        m.job.job = rng_below(rng, 4); /* the first field of all three */
        if (m.type == PROTO_JOB_REPORT) {
            m.job_report.state = (uint8_t)rng_below(rng, 3);
            m.job_report.why = proto_text_of(rng_below(rng, 2) ? "" : "unknown game");
        }
    } else if (m.type == PROTO_SHARE) {
        m.share.table_id = rng_below(rng, 3);
        m.share.load = (uint8_t)rng_below(rng, 256);
    } else if (m.type == PROTO_MAIL_JOIN || m.type == PROTO_MAIL) {
        m.mail_join.job = m.mail.job = rng_below(rng, 4);
        m.mail.to = rng_below(rng, 2);
    } else if (m.type == PROTO_SCAN) {
        m.scan.cursor = rng_below(rng, 2) ? rng_below(rng, 80) : rng_next(rng);
        m.scan.depth = (uint8_t)rng_below(rng, 3);
    }
    return proto_encode(&m, out, room);
}

#endif
