/* Whatever the body of a MAIL, the reader of letters about a bag of positions stays within it; a
 * letter that it takes, written by us, is read as the same, and its texts end.
 *
 * libFuzzer: see tests/fuzz/long.py; with any other compiler add -DFUZZ_MAIN: a program that makes
 * its own inputs from a seed, `fuzz_bag_letter [RUNS [SEED]]`, random letters with some of their
 * bytes changed. */
#include "common/err.h"
#include "tests/fuzz/fuzz_own.h"
#include "worker/engine/letter.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    static struct bag_letter letter, again;
    uint8_t body[PROTO_BODY_MAX];
    uint8_t *copy = malloc(length + 1); /* a sanitizer sees a byte too far */
    CHECK(copy != NULL);
    memcpy(copy, bytes, length);
    if (bag_letter_read(copy, length, &letter)) {
        CHECK(letter.count <= BAG_ASSIGNED_MAX);
        for (unsigned i = 0; i < letter.count; i++) {
            CHECK(memchr(letter.text[i], '\0', GAME_TEXT_MAX) != NULL);
        }
        CHECK(letter.found.result.pv.length <= SEARCH_PV_MAX);
        const size_t written = bag_letter_write(&letter, body);
        if (written > 0) { /* longer ones than a MAIL has cannot be written */
            CHECK(bag_letter_read(body, written, &again));
            CHECK(memcmp(&letter, &again, sizeof letter) == 0);
        }
    }
    free(copy);
    return 0;
}

#ifdef FUZZ_MAIN
_Static_assert((int)PROTO_BODY_MAX <= (int)FUZZ_BYTES, "a body fits");

static size_t random_letter(uint64_t *rng, uint8_t *body)
{
    static struct bag_letter m;
    memset(&m, 0, sizeof m);
    m.kind = (enum bag_kind)(BAG_WORK + rng_below(rng, 4));
    m.is_shared = rng_below(rng, 2) == 0;
    m.count = rng_below(rng, BAG_ASSIGNED_MAX);
    for (unsigned i = 0; i < m.count; i++) {
        m.item[i] = (uint32_t)rng_next(rng);
        memset(m.text[i], 'X', rng_below(rng, GAME_TEXT_MAX));
    }
    m.nodes = rng_next(rng) >> 15; /* a half is of 2^48 or more */
    m.found.result.depth = rng_below(rng, SEARCH_DEPTH_MAX + 2);
    m.found.result.score = (int)rng_below(rng, 65536) - 32768;
    m.found.result.move = (uint16_t)rng_next(rng);
    m.found.result.pv.length = (uint16_t)rng_below(rng, SEARCH_PV_MAX + 1);
    return bag_letter_write(&m, body);
}

static size_t make(uint64_t *rng, uint8_t *bytes)
{
    size_t length = random_letter(rng, bytes);
    for (unsigned n = length > 0 ? rng_below(rng, 3) : 0; n > 0; n--) {
        bytes[rng_below(rng, (uint32_t)length)] = (uint8_t)rng_next(rng);
    }
    return length > 0 && rng_below(rng, 8) == 0 ? rng_below(rng, (uint32_t)length) : length;
}

int main(int argc, char **argv)
{
    fuzz_own(argc, argv, make, NULL);
    return 0;
}
#endif
