/* test_tt: cmocka, and the seed of randomised tests. TEST_SEED in the environment repeats a run;
 * every randomised test prints the command that repeats it. */
#ifndef TESTS_SUPPORT_TEST_TT_H
#define TESTS_SUPPORT_TEST_TT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/rng.h"
#include "common/tt/tt.h"
#include "worker/search/ports.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The thread sanitizer looks for races, which values and positions by the hundred do not add to: it
 * sees one case of so many. */
#ifdef __SANITIZE_THREAD__
enum { TSAN_SEES_ONE_OF = 8 };
#else
enum { TSAN_SEES_ONE_OF = 1 };
#endif

/* Asks a table, and waits for its answer where that is not there at once. */
static inline void tt_pose(const struct table_port *port, const struct tt_ask *ask,
                           struct table_ticket *ticket, struct tt_answer *answer)
{
    if (!port->ask(port->self, ask, ticket, answer)) {
        port->await(port->self, ask, ticket, answer);
    }
}

static inline uint64_t tt_seed(void)
{
    const char *text = getenv("TEST_SEED");
    uint64_t seed = text ? strtoull(text, NULL, 0) : 1996;
    print_message("repeat: TEST_SEED=%llu %s\n", (unsigned long long)seed, program_invocation_name);
    return seed;
}

/* True in about `percent` of the calls. */
static inline bool tt_chance(uint64_t *random, unsigned percent)
{
    return rng_below(random, 100) < percent;
}

static inline struct tt_store tt_result(uint64_t key, uint8_t depth, enum tt_bound bound, int score,
                                        uint16_t move)
{
    return (struct tt_store){
        .key = key,
        .depth = depth,
        .bound = (uint8_t)bound,
        .score = (int16_t)score,
        .move = move,
    };
}

#endif
