/* ttcore_offenders: peers that send what is no message, and which of them are ignored now.
 *
 * A peer that sends TTCORE_FAULTS_MAX messages within TTCORE_FAULTS_US that are malformed, or of a
 * version not spoken here, is ignored for TTCORE_IGNORE_US; then its faults are forgotten. Peers
 * are known by their whole route, which is of one connection: none is taken for another, and one
 * that connects again begins anew. A bounded table in sets by a seeded hash: when all of a set are
 * ignored, one more is not noted.
 * Threads: the core's owner. Memory: never allocates. */
#ifndef TTSERVER_CORE_OFFENDER_H
#define TTSERVER_CORE_OFFENDER_H

#include "ttserver/core/actions.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    TTCORE_FAULTS_MAX = 32,
    TTCORE_FAULTS_US = 1000 * 1000,
    TTCORE_IGNORE_US = 1000 * 1000,
    TTCORE_OFFENDER_SETS = 64, /* a power of two */
    TTCORE_OFFENDER_WAYS = 4,
};

struct ttcore_offender {
    uint64_t began_us; /* the first fault, or the first moment of being ignored */
    uint32_t faults; /* 0: the place is free; TTCORE_FAULTS_MAX: ignored */
    uint8_t route_length;
    uint8_t route[TTCORE_ROUTE_MAX];
};

/* A zeroed struct is an empty table. */
struct ttcore_offenders {
    struct ttcore_offender place[TTCORE_OFFENDER_SETS][TTCORE_OFFENDER_WAYS];
    uint64_t seed; /* fixed; known to this shard alone */
    uint32_t ignored; /* how many peers are, or were at the last tick */
};

/* Another fault of this peer. */
void ttcore_offenders_note(struct ttcore_offenders *offenders, const uint8_t *route, size_t length,
                           uint64_t now_us);
/* Whether the peer's messages are dropped now. */
bool ttcore_offenders_ignores(struct ttcore_offenders *offenders, const uint8_t *route,
                              size_t length, uint64_t now_us);
/* Forgets faults that are too old, and peers ignored for long enough. O(places). */
void ttcore_offenders_expire(struct ttcore_offenders *offenders, uint64_t now_us);

#endif
