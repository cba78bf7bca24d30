/* rng: splitmix64 (Steele, Lea, Flood 2014): small, repeatable from its seed, good enough for
 * Zobrist keys, tie-breaking and tests. Not for secrets. Pure; the caller owns the state. */
#ifndef COMMON_RNG_H
#define COMMON_RNG_H

#include <stdint.h>

/* A bijection of 64 bits in which every input bit reaches every output bit. */
static inline uint64_t rng_mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

static inline uint64_t rng_next(uint64_t *state)
{
    *state += UINT64_C(0x9e3779b97f4a7c15);
    return rng_mix(*state);
}

/* Uniform in 0..n-1, n > 0 (multiply-shift; the bias is below 2^-32 for the n used here). */
static inline uint32_t rng_below(uint64_t *state, uint32_t n)
{
    return (uint32_t)(((rng_next(state) >> 32) * n) >> 32);
}

/* Hash of a text, FNV-1a finished by rng_mix. */
static inline uint64_t rng_hash_text(const char *text)
{
    uint64_t h = UINT64_C(0xcbf29ce484222325);
    for (; *text; text++) {
        h = (h ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
    }
    return rng_mix(h);
}

#endif
