/* table_alone: the table in one thread without a protocol, the most that a shard could serve, and a
 * loop that only fetches random cache lines of the same memory. They alternate `repeats` times; one
 * JSON line per repeat on stdout.
 *
 *   table_alone [--memory SIZE] [--batch N] [--repeats N] [--millions N] */
#include "common/clock.h"
#include "common/options.h"
#include "common/rng.h"
#include "common/tt/ops.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    BATCH_MAX = 1024,
    BARE_BATCH = 256, /* reads at a time; fewer are slower, more are not faster */
    INFLIGHT = 1 << 16,
    SESSION = 1,
};

struct alone {
    uint64_t memory;
    uint32_t batch, repeats, millions;
    struct tt_generations generations;
    struct tt_results results;
    struct tt_inflight inflight;
    uint64_t seed, sum;
    struct tt_ask ask[BATCH_MAX];
    struct tt_answer answer[BATCH_MAX];
    struct tt_store store[BATCH_MAX];
};

/* What is the same in every batch. */
static void prepare(struct alone *a)
{
    for (uint32_t i = 0; i < a->batch; i++) {
        a->ask[i] =
            (struct tt_ask){.alpha = -1, .beta = 1, .flags = TT_EXCLUSIVE, .slot = (uint16_t)i};
        a->store[i] = (struct tt_store){.score = 1, .bound = TT_LOWER, .slot = (uint16_t)i};
    }
}

static void draw(struct alone *a)
{
    for (uint32_t i = 0; i < a->batch; i++) {
        uint64_t key = rng_next(&a->seed);
        a->ask[i].key = a->store[i].key = key;
        a->ask[i].depth = a->store[i].depth = (uint8_t)(4 + key % 8);
    }
}

/* Reads random lines of the table, all 64 bytes: addresses as the table chooses them. */
static void bare(struct alone *a)
{
    const struct tt_bucket *line[BARE_BATCH];
    for (uint32_t i = 0; i < BARE_BATCH; i++) {
        line[i] = tt_results_bucket(&a->results, rng_next(&a->seed));
        __builtin_prefetch(line[i]);
    }
    for (uint32_t i = 0; i < BARE_BATCH; i++) {
        uint64_t word[sizeof *line[i] / sizeof(uint64_t)];
        memcpy(word, (const void *)line[i], sizeof word);
        for (size_t w = 0; w < sizeof word / sizeof word[0]; w++) {
            a->sum += word[w];
        }
    }
}

static void asks(struct alone *a, struct tt_inflight *inflight, uint64_t now_us)
{
    for (uint32_t i = 0; i < a->batch; i++) {
        tt_results_prefetch(&a->results, a->ask[i].key);
        if (inflight != NULL) {
            tt_inflight_prefetch(inflight, a->ask[i].key, a->ask[i].depth);
        }
    }
    for (uint32_t i = 0; i < a->batch; i++) {
        tt_ops_ask(&a->results, inflight, &a->ask[i], SESSION, now_us, &a->answer[i]);
        a->sum += a->answer[i].nproc;
    }
}

static void stores(struct alone *a, struct tt_inflight *inflight)
{
    for (uint32_t i = 0; i < a->batch; i++) {
        tt_results_prefetch(&a->results, a->store[i].key);
        if (inflight != NULL) {
            tt_inflight_prefetch(inflight, a->store[i].key, a->store[i].depth);
        }
    }
    for (uint32_t i = 0; i < a->batch; i++) {
        if (inflight != NULL) {
            a->sum += tt_ops_store(&a->results, inflight, &a->store[i], SESSION, 1);
        } else {
            tt_results_store(&a->results, &a->store[i], 1);
        }
    }
}

enum what { BARE, ASKS, STORES_AFTER_ASKS, RESULTS_ALONE, WHATS };

/* Operations a second. The keys of a batch are drawn within the time, as those of the bare loop. */
static double measure(struct alone *a, enum what what)
{
    uint64_t wanted = (uint64_t)a->millions * 1000000, done = 0;
    uint64_t begin = clock_ns();
    struct tt_inflight *inflight = what == RESULTS_ALONE ? NULL : &a->inflight;
    for (uint64_t now_us = 1; done < wanted; now_us++) {
        if (what == BARE) {
            bare(a);
            done += BARE_BATCH;
            continue;
        }
        draw(a);
        asks(a, inflight, now_us);
        done += a->batch;
        if (what == ASKS) {
            tt_inflight_drop_session(inflight, SESSION);
        } else {
            stores(a, inflight);
            done += a->batch;
        }
    }
    return (double)done * 1e9 / (double)(clock_ns() - begin);
}

int main(int argc, char *argv[])
{
    static struct alone a = {
        .memory = 1 << 30, .batch = 128, .repeats = 5, .millions = 20, .seed = 1};
    const struct options_row table[] = {
        OPTIONS_ROW(SIZE, "memory", "SIZE", &a.memory, 1 << 20, 0, "of the results (1G)"),
        OPTIONS_ROW(U32, "batch", "N", &a.batch, 1, BATCH_MAX, "operations at a time (128)"),
        OPTIONS_ROW(U32, "repeats", "N", &a.repeats, 1, 1000, "rounds (5)"),
        OPTIONS_ROW(U32, "millions", "N", &a.millions, 1, 10000, "operations each (20 million)"),
        {0},
    };
    const struct options options = {.program = "table_alone",
                                    .usage = "[OPTION]...",
                                    .summary = "The table without a protocol.",
                                    .table = table};
    int status = options_parse(&options, argc, argv, NULL, NULL);
    if (status >= 0) {
        return status;
    }
    tt_generations_init(&a.generations);
    if (tt_results_open(&a.results, a.memory, &a.generations) != ERR_OK ||
        tt_inflight_open(&a.inflight, INFLIGHT, 0, 6, 1) != ERR_OK) {
        fprintf(stderr, "table_alone: no memory\n");
        return 1;
    }
    prepare(&a);
    for (uint32_t r = 0; r < a.repeats; r++) {
        double per_s[WHATS];
        for (enum what what = BARE; what < WHATS; what++) {
            per_s[what] = measure(&a, what);
        }
        printf("{\"bare_per_s\":%.0f,\"asks_per_s\":%.0f,\"ops_per_s\":%.0f,"
               "\"results_ops_per_s\":%.0f,\"sum\":%u}\n",
               per_s[BARE], per_s[ASKS], per_s[STORES_AFTER_ASKS], per_s[RESULTS_ALONE],
               (unsigned)(a.sum & 1));
        fflush(stdout);
    }
    tt_inflight_close(&a.inflight);
    tt_results_close(&a.results);
    return 0;
}
