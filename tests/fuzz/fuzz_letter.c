/* Whatever the body of a MAIL, the reader stays within it, and takes only what a search can use; a
 * message that it takes, written by us, is read as the same.
 *
 * libFuzzer: see tests/fuzz/long.py; with any other compiler add -DFUZZ_MAIN: a program that makes
 * its own inputs from a seed, `fuzz_letter [RUNS [SEED]]`, random messages with some of their bytes
 * changed. */
#include "common/err.h"
#include "tests/fuzz/fuzz_own.h"
#include "worker/engine/letter.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    static struct peer_message m, again;
    uint8_t body[PROTO_BODY_MAX], same[PROTO_BODY_MAX];
    uint8_t *copy = malloc(length + 1); /* a sanitizer sees a byte too far */
    CHECK(copy != NULL);
    memcpy(copy, bytes, length);
    const bool ok = letter_read(copy, length, &m);
    if (ok) {
        CHECK(m.length < (m.kind == STEAL_RESULT ? SEARCH_PV_MAX + 1 : SEARCH_PLY_MAX));
        CHECK(m.kind < STEAL_WORK || m.kind >= TASK_WORK || m.child.at < GAME_MOVES_MAX);
        CHECK(letter_write(&m, body) == length);
        CHECK(letter_read(body, length, &again));
        CHECK(letter_write(&again, same) == length && memcmp(body, same, length) == 0);
    }
    free(copy);
    return 0;
}

#ifdef FUZZ_MAIN
_Static_assert((int)PROTO_BODY_MAX <= (int)FUZZ_BYTES, "a body fits");

static size_t random_letter(uint64_t *rng, uint8_t body[PROTO_BODY_MAX])
{
    struct peer_message m = {.kind = rng_below(rng, TASK_RESULT + 2)};
    const int alpha = (int)rng_below(rng, 1000) - 500, beta = (int)rng_below(rng, 1000) - 500;
    const int best = alpha - (int)rng_below(rng, 3);
    const int depth = (int)rng_below(rng, SEARCH_DEPTH_MAX + 2);
    const int iteration = (int)rng_below(rng, SEARCH_DEPTH_MAX + 2);
    const struct peer_child child = {rng_next(rng), rng_below(rng, GAME_MOVES_MAX + 2)};
    const uint32_t request = (uint32_t)rng_next(rng);
    if (m.kind == STEAL_WORK) {
        m.work = (struct steal_work){.child = child,
                                     .request = request,
                                     .alpha = alpha,
                                     .alpha_now = alpha,
                                     .beta = beta,
                                     .best = best,
                                     .depth = depth,
                                     .iteration = iteration};
    } else if (m.kind == STEAL_RESULT) {
        m.result = (struct steal_result){.child = child, .best = best};
    } else if (m.kind == STEAL_NARROW) {
        m.narrow = (struct steal_narrow){child, alpha, beta};
    } else if (m.kind == TASK_WORK) {
        m.offer = (struct task_offer){.key = child.split,
                                      .request = request,
                                      .alpha = alpha,
                                      .beta = beta,
                                      .depth = depth,
                                      .iteration = iteration};
    } else if (m.kind == TASK_RESULT) {
        m.known = (struct task_result){child.split, request, depth, best, best, GAME_INFINITE, 0};
    } else {
        m.child = child;
    }
    m.length =
        (uint16_t)rng_below(rng, m.kind == STEAL_RESULT ? SEARCH_PV_MAX + 2 : SEARCH_PLY_MAX);
    for (unsigned i = 0; i < SEARCH_PLY_MAX; i++) {
        m.moves[i] = (uint16_t)rng_next(rng);
    }
    return letter_write(&m, body);
}

static size_t make(uint64_t *rng, uint8_t *bytes)
{
    const size_t length = random_letter(rng, bytes);
    for (unsigned n = rng_below(rng, 3); n > 0; n--) {
        bytes[rng_below(rng, (uint32_t)length)] = (uint8_t)rng_next(rng);
    }
    return rng_below(rng, 8) == 0 ? rng_below(rng, (uint32_t)length) : length;
}

int main(int argc, char **argv)
{
    fuzz_own(argc, argv, make, NULL);
    return 0;
}
#endif
