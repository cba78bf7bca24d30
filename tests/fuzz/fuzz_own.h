/* A stand-in for libFuzzer with inputs of a fuzzer's own making, repeatable from the seed:
 *
 *   NAME [RUNS [SEED]]      (100,000 and 1) */
#ifndef TESTS_FUZZ_FUZZ_OWN_H
#define TESTS_FUZZ_FUZZ_OWN_H

#include "common/err.h"
#include "common/rng.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FUZZ_BYTES = 1 << 13 };

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

/* make: one input of at most FUZZ_BYTES, and returns its length; done, if there is one: after it.
 */
static void fuzz_own(int argc, char **argv, size_t (*make)(uint64_t *rng, uint8_t *bytes),
                     void (*done)(const uint8_t *bytes))
{
    static uint8_t bytes[FUZZ_BYTES];
    unsigned long long runs = argc > 1 ? strtoull(argv[1], NULL, 0) : 100000;
    uint64_t rng = argc > 2 ? strtoull(argv[2], NULL, 0) : 1;
    printf("%s: %llu runs, seed %llu\n", argv[0], runs, (unsigned long long)rng);
    for (unsigned long long i = 0; i < runs; i++) {
        size_t n = make(&rng, bytes);
        uint8_t *exact = malloc(n ? n : 1); /* a sanitizer sees one byte too far */
        CHECK(exact != NULL);
        memcpy(exact, bytes, n);
        (void)LLVMFuzzerTestOneInput(exact, n);
        free(exact);
        if (done) {
            done(bytes);
        }
    }
}

#endif
