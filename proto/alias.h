/* alias: the number by which others know an instance (HELLO): in MAIL, JOB_REPORT, MEMBERS_ANSWER,
 * and, where nothing else is known of a user, as the user of a JOB.
 *
 * Who knows an instance may take the place of its session, so it is told to nobody but the shards.
 * The alias is the same at all shards, and from it an instance is found by trying alone:
 * SipHash-2-4 (Aumasson and Bernstein 2012) of the instance under a key that is no secret. Pure. */
#ifndef PROTO_ALIAS_H
#define PROTO_ALIAS_H

#include <stdint.h>

static inline uint64_t proto_rotate(uint64_t x, unsigned bits)
{
    return x << bits | x >> (64 - bits);
}

static inline void proto_sip_rounds(uint64_t v[4], unsigned rounds)
{
    for (unsigned i = 0; i < rounds; i++) {
        v[0] += v[1];
        v[1] = proto_rotate(v[1], 13) ^ v[0];
        v[0] = proto_rotate(v[0], 32);
        v[2] += v[3];
        v[3] = proto_rotate(v[3], 16) ^ v[2];
        v[0] += v[3];
        v[3] = proto_rotate(v[3], 21) ^ v[0];
        v[2] += v[1];
        v[1] = proto_rotate(v[1], 17) ^ v[2];
        v[2] = proto_rotate(v[2], 32);
    }
}

/* Hashes a message of eight bytes. The low byte of each number is the first. */
static inline uint64_t proto_siphash(uint64_t key_0, uint64_t key_1, uint64_t message)
{
    const uint64_t words[] = {message, UINT64_C(8) << 56 /* its length */};
    uint64_t v[] = {key_0 ^ UINT64_C(0x736f6d6570736575), key_1 ^ UINT64_C(0x646f72616e646f6d),
                    key_0 ^ UINT64_C(0x6c7967656e657261), key_1 ^ UINT64_C(0x7465646279746573)};
    for (unsigned i = 0; i < 2; i++) {
        v[3] ^= words[i];
        proto_sip_rounds(v, 2);
        v[0] ^= words[i];
    }
    v[2] ^= 0xff;
    proto_sip_rounds(v, 4);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

/* Never 0, which is nobody. The key is "abdada instance " in ASCII. */
static inline uint64_t proto_alias(uint64_t instance)
{
    uint64_t alias =
        proto_siphash(UINT64_C(0x6920616461646261), UINT64_C(0x2065636e6174736e), instance);
    return alias != 0 ? alias : 1;
}

#endif
