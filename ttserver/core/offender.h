/* ttcore_offenders: peers that send what is no message, and which of them are not heard for now.
 *
 * Who sends TTCORE_FAULTS_MAX malformed messages within TTCORE_FAULTS_US is ignored for
 * TTCORE_IGNORE_US; then it has a clean sheet. Known by their whole ROUTER id, which is of one
 * connection: nobody is taken for another, and who connects again begins anew. A bounded table in
 * sets by a seeded hash: where all of a set are ignored, one more is not noted. Threads: the core's
 * owner. Memory: never allocates. */
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
    uint64_t since_us; /* the first fault, or the first moment of being ignored */
    uint32_t faults; /* 0: the place is free; TTCORE_FAULTS_MAX: ignored */
    uint8_t route_length;
    uint8_t route[TTCORE_ROUTE_MAX];
};

/* A zeroed struct is an empty table. */
struct ttcore_offenders {
    struct ttcore_offender place[TTCORE_OFFENDER_SETS][TTCORE_OFFENDER_WAYS];
    uint64_t seed; /* fixed; nobody else knows it */
    uint32_t ignored; /* how many are, or were a tick ago */
};

/* Another malformed message of this peer. */
void ttcore_offenders_note(struct ttcore_offenders *offenders, const uint8_t *route, size_t length,
                           uint64_t now_us);
/* Whether the peer's messages are dropped now. */
bool ttcore_offenders_ignores(struct ttcore_offenders *offenders, const uint8_t *route,
                              size_t length, uint64_t now_us);
/* Forgets whom nothing is held against any more. O(places). */
void ttcore_offenders_expire(struct ttcore_offenders *offenders, uint64_t now_us);

#endif
