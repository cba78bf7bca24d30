/* A stand-in for libFuzzer: mutates the golden messages, repeatable from its seed.
 *
 *   gcc -fsanitize=address,undefined ... && ./fuzz_decode [RUNS [SEED]]      (100,000 and 1)
 *   clang -fsanitize=fuzzer,address -DLIBFUZZER ... && ./fuzz_decode CORPUS
 *
 * Reads tests/data/golden/messages-*.txt: run it from the top of the repository. */
#ifndef TESTS_FUZZ_FUZZ_DRIVER_H
#define TESTS_FUZZ_FUZZ_DRIVER_H

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

#ifndef LIBFUZZER
#include "proto/messages.h"
#include "tests/fuzz/fuzz_own.h"

enum { FUZZ_SEEDS = 128, FUZZ_GOLDEN_BYTES = 4096 };
_Static_assert((int)FUZZ_GOLDEN_BYTES <= (int)FUZZ_BYTES, "a message fits");

struct fuzz_seeds {
    unsigned count;
    size_t length[FUZZ_SEEDS];
    uint8_t bytes[FUZZ_SEEDS][FUZZ_GOLDEN_BYTES];
};

static int fuzz_load(struct fuzz_seeds *seeds, const char *path)
{
    unsigned before = seeds->count;
    char line[2 * FUZZ_GOLDEN_BYTES];
    FILE *file = fopen(path, "r");
    if (!file) {
        return -1;
    }
    while (seeds->count < FUZZ_SEEDS && fgets(line, sizeof line, file)) {
        const char *hex = strchr(line, ' ');
        size_t *n = &seeds->length[seeds->count];
        unsigned value;
        for (hex = hex ? hex + 1 : ""; sscanf(hex, "%2x", &value) == 1; hex += 2) {
            seeds->bytes[seeds->count][(*n)++] = (uint8_t)value;
        }
        seeds->count += *n > 0;
    }
    fclose(file);
    return seeds->count > before ? 0 : -1;
}

/* One change: a bit, a byte, an interesting byte, a cut, a growth, a piece of another message. */
static size_t fuzz_mutate(uint64_t *rng, const struct fuzz_seeds *seeds, uint8_t *bytes, size_t n)
{
    static const uint8_t interesting[] = {0x00, 0x7f, 0x80, 0x90, 0x9f, 0xc0, 0xc1, 0xcc, 0xcd,
                                          0xce, 0xcf, 0xd0, 0xd3, 0xd9, 0xdb, 0xdc, 0xdd, 0xff};
    size_t at = n ? rng_below(rng, (uint32_t)n) : 0;
    unsigned other = rng_below(rng, seeds->count);
    switch (n ? rng_below(rng, 6) : 4) {
    case 0:
        bytes[at] ^= (uint8_t)(1u << rng_below(rng, 8));
        return n;
    case 1:
        bytes[at] = (uint8_t)rng_next(rng);
        return n;
    case 2:
        bytes[at] = interesting[rng_below(rng, sizeof interesting)];
        return n;
    case 3:
        return at;
    case 4:
        if (n < FUZZ_GOLDEN_BYTES) {
            memmove(bytes + at + 1, bytes + at, n - at);
            bytes[at] = (uint8_t)rng_next(rng);
            n++;
        }
        return n;
    default:
        if (at + seeds->length[other] <= FUZZ_GOLDEN_BYTES) {
            memcpy(bytes + at, seeds->bytes[other], seeds->length[other]);
            n = at + seeds->length[other] > n ? at + seeds->length[other] : n;
        }
        return n;
    }
}

static struct fuzz_seeds fuzz_golden;

static size_t fuzz_make(uint64_t *rng, uint8_t *bytes)
{
    const unsigned s = rng_below(rng, fuzz_golden.count);
    size_t n = fuzz_golden.length[s];
    memcpy(bytes, fuzz_golden.bytes[s], n);
    for (unsigned k = rng_below(rng, 5); k > 0; k--) {
        n = fuzz_mutate(rng, &fuzz_golden, bytes, n);
    }
    return n;
}

int main(int argc, char **argv)
{
    char path[64];
    snprintf(path, sizeof path, "tests/data/golden/messages-%d.txt", PROTO_VERSION);
    if (fuzz_load(&fuzz_golden, path) != 0) {
        fprintf(stderr, "%s: no %s here\n", argv[0], path);
        return 1;
    }
    fuzz_own(argc, argv, fuzz_make, NULL);
    return 0;
}
#endif

#endif
