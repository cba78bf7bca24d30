/* Feeds a stream of messages, good and bad, to the shard's core.
 *
 * Input: records of [who and time: 1 byte][length: 2 bytes, big-endian][bytes]. libFuzzer:
 *   clang -fsanitize=fuzzer,address,undefined -I. -D_GNU_SOURCE tests/fuzz/fuzz_ttcore.c \
 *     common/err.c common/tt/?*.c proto/codec.c ttserver/core/?*.c -lmsgpackc
 * With any other compiler add -DFUZZ_MAIN: a program that makes its own records from a seed,
 * `fuzz_ttcore [SEED [RUNS]]`, valid messages with some of their bytes changed. */
#include "fuzz_messages.h"
#include "ttserver/core/core.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PEERS = 8, TICK_US = 250 * 1000 };

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

/* Half of the peers have a key; two of those are of one user. */
static const struct ttcore_peer known[PEERS / 2] = {
    {7, TTCORE_MAY_WORK | TTCORE_MAY_USE_TABLE | TTCORE_MAY_READ_STATISTICS, "worker"},
    {8, TTCORE_MAY_POST | TTCORE_MAY_USE_TABLE | TTCORE_MAY_READ_STATISTICS, "front-end"},
    {8, TTCORE_MAY_READ_STATISTICS, "monitor"},
    {9, 0xf | TTCORE_MAY_STOP_ANY_JOB | TTCORE_MAY_FLUSH, "administrator"},
};

static struct ttcore *open_core(struct ttcore_actions *actions)
{
    struct ttcore_options options = ttcore_defaults();
    struct ttcore *core = NULL;
    options.results_bytes = 4096;
    options.inflight_max = 64;
    options.sessions_max = PEERS - 1;
    options.jobs_max = 8;
    CHECK(ttcore_open(&core, &options) == ERR_OK);
    CHECK(ttcore_actions_open(actions, options.sessions_max, options.jobs_max) == ERR_OK);
    return core;
}

/* Whatever came in, what goes out is well formed and within bounds. */
static void check_actions(const struct ttcore_actions *actions)
{
    static struct proto_decoder decoder;
    struct proto_message message;
    CHECK(actions->dropped == 0);
    for (uint32_t i = 0; i < actions->messages; i++) {
        const struct ttcore_message *m = &actions->message[i];
        CHECK(m->targets > 0 && m->first + m->targets <= actions->targets);
        CHECK(proto_decode(&decoder, m->bytes, m->length, &message) == ERR_OK);
    }
}

static void let_all_expire(struct ttcore *core, struct ttcore_actions *actions, uint64_t now_us)
{
    struct ttcore_figures figures;
    for (unsigned i = 0; i < 24; i++) {
        struct ttcore_event tick = {.kind = TTCORE_TICK, .now_us = now_us += TICK_US};
        ttcore_step(core, &tick, actions);
        check_actions(actions);
    }
    ttcore_figures(core, &figures);
    CHECK(figures.sessions == 0 && figures.jobs == 0 && figures.inflight_entries == 0 &&
          figures.users == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    struct ttcore_actions actions;
    struct ttcore *core = open_core(&actions);
    uint64_t now_us = 0;
    while (length >= 3) {
        uint8_t head = bytes[0], route[2] = {0, head % PEERS};
        size_t size = (size_t)bytes[1] << 8 | bytes[2];
        bytes += 3;
        length -= 3;
        size = size < length ? size : length;
        struct ttcore_event event = {TTCORE_MESSAGE,
                                     now_us,
                                     route,
                                     sizeof route,
                                     bytes,
                                     size,
                                     route[1] % 2 ? &known[route[1] / 2] : NULL};
        ttcore_step(core, &event, &actions);
        check_actions(&actions);
        while (ttcore_has_more(core)) {
            struct ttcore_event more = {.kind = TTCORE_MORE, .now_us = now_us};
            ttcore_step(core, &more, &actions);
            check_actions(&actions);
        }
        bytes += size;
        length -= size;
        if (head & 0x80) {
            struct ttcore_event tick = {.kind = TTCORE_TICK, .now_us = now_us += TICK_US};
            ttcore_step(core, &tick, &actions);
            check_actions(&actions);
        }
    }
    let_all_expire(core, &actions, now_us);
    ttcore_close(&core);
    ttcore_actions_close(&actions);
    return 0;
}

#ifdef FUZZ_MAIN

static size_t make_input(uint64_t *rng, uint8_t *out, size_t room)
{
    size_t used = 0;
    for (unsigned i = rng_below(rng, 200); i > 0 && room - used > 4096; i--) {
        uint8_t *record = out + used;
        size_t size = fuzz_message(rng, record + 3, 4096 - 3);
        if (rng_below(rng, 4) == 0 && size > 0) {
            for (unsigned k = 1 + rng_below(rng, 3); k > 0; k--) {
                record[3 + rng_below(rng, (uint32_t)size)] = (uint8_t)rng_next(rng);
            }
            size -= rng_below(rng, 3) == 0 ? rng_below(rng, (uint32_t)size) : 0;
        }
        record[0] = (uint8_t)(rng_below(rng, PEERS) | (rng_below(rng, 8) == 0 ? 0x80 : 0));
        record[1] = (uint8_t)(size >> 8);
        record[2] = (uint8_t)size;
        used += 3 + size;
    }
    return used;
}

int main(int argc, char **argv)
{
    enum { ROOM = 1 << 18 };
    uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
    unsigned long runs = argc > 2 ? strtoul(argv[2], NULL, 10) : 2000;
    for (unsigned long i = 0; i < runs; i++, seed++) {
        uint64_t rng = seed;
        /* Exactly as long as the input, so that a sanitizer sees every step beyond it. */
        uint8_t *room = malloc(ROOM);
        CHECK(room != NULL);
        size_t length = make_input(&rng, room, ROOM);
        uint8_t *input = malloc(length + 1);
        CHECK(input != NULL);
        memcpy(input, room, length);
        free(room);
        LLVMFuzzerTestOneInput(input, length);
        free(input);
    }
    printf("fuzz_ttcore: %lu runs up to seed %llu\n", runs, (unsigned long long)seed - 1);
    return 0;
}

#endif
