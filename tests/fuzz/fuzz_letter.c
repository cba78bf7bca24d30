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
        CHECK(m.at < GAME_MOVES_MAX && m.length < SEARCH_PLY_MAX);
        CHECK(m.line_length <= SEARCH_PV_MAX);
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
    m.split = rng_next(rng);
    m.request = (uint32_t)rng_next(rng);
    m.at = rng_below(rng, GAME_MOVES_MAX + 2);
    m.alpha = m.alpha_now = (int)rng_below(rng, 1000) - 500;
    m.beta = (int)rng_below(rng, 1000) - 500;
    m.best = m.alpha - (int)rng_below(rng, 3);
    m.depth = (int)rng_below(rng, SEARCH_DEPTH_MAX + 2);
    m.iteration = (int)rng_below(rng, SEARCH_DEPTH_MAX + 2);
    m.length = (uint16_t)rng_below(rng, SEARCH_PLY_MAX);
    m.line_length = (uint16_t)rng_below(rng, SEARCH_PV_MAX + 2);
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
