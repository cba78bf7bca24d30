/* Whatever the body of a MAIL, the reader stays within it, and takes only what a search can use; a
 * message that it takes, written by us, is read as the same.
 *
 * libFuzzer: see tests/fuzz/long.py; with any other compiler add -DFUZZ_MAIN: a program that makes
 * its own inputs from a seed, `fuzz_letter [RUNS [SEED]]`, random messages with some of their bytes
 * changed. */
#include "common/err.h"
#include "common/rng.h"
#include "worker/engine/letter.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

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

int main(int argc, char **argv)
{
    unsigned long long runs = argc > 1 ? strtoull(argv[1], NULL, 0) : 100000;
    uint64_t rng = argc > 2 ? strtoull(argv[2], NULL, 0) : 1;
    uint8_t body[PROTO_BODY_MAX];
    printf("%s: %llu runs, seed %llu\n", argv[0], runs, (unsigned long long)rng);
    for (unsigned long long i = 0; i < runs; i++) {
        size_t length = random_letter(&rng, body);
        for (unsigned n = rng_below(&rng, 3); n > 0; n--) {
            body[rng_below(&rng, (uint32_t)length)] = (uint8_t)rng_next(&rng);
        }
        (void)LLVMFuzzerTestOneInput(
            body, rng_below(&rng, 8) == 0 ? rng_below(&rng, (uint32_t)length) : length);
    }
    return 0;
}
#endif
