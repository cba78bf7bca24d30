/* library_pairs: nodes entered and stored a second through libabdada on one shard, so many a call.
 *
 *   build/release/bench/library_pairs HOST:PORT [COUNT [SECONDS]]
 *
 * Keys are fresh: each node is OPEN, and its store is a new result. Beside it in the same minute,
 * as the machine changes: abdada ttbench --servers HOST:PORT --clients 1 --batch COUNT. */
#include "worker/lib/abdada.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { COUNT_MAX = 65536, DEPTH = 5 };

static double seconds_of(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Enters and stores `count` nodes; returns how many were not OPEN. */
static unsigned pair(struct abdada *table, uint64_t *key, unsigned count)
{
    static struct abdada_ask_op ask[COUNT_MAX];
    static struct abdada_store_op store[COUNT_MAX];
    static struct abdada_answer answer[COUNT_MAX];
    unsigned others = 0;
    for (unsigned i = 0; i < count; i++) {
        *key += UINT64_C(0x9e3779b97f4a7c15);
        ask[i] = (struct abdada_ask_op){.key = *key, .alpha = -1, .beta = 1, .depth = DEPTH};
    }
    (void)abdada_ask_many(table, ask, count, answer);
    for (unsigned i = 0; i < count; i++) {
        others += answer[i].verdict != ABDADA_OPEN;
        store[i] = (struct abdada_store_op){
            .key = ask[i].key, .score = 1, .depth = DEPTH, .bound = ABDADA_LOWER};
    }
    (void)abdada_store_many(table, store, count);
    return others;
}

int main(int argc, char **argv)
{
    unsigned count = argc > 2 ? (unsigned)atoi(argv[2]) : 256, others = 0;
    double wanted = argc > 3 ? atof(argv[3]) : 3, took;
    struct abdada_options options = {.struct_size = sizeof options, .servers = argv[argc > 1]};
    struct abdada *table;
    uint64_t pairs = 0, key = (uint64_t)time(NULL) << 32;
    if (argc < 2 || count < 1 || count > COUNT_MAX || abdada_open(&table, &options) != ABDADA_OK ||
        abdada_wait_connected(table, 5000) < 1) {
        fprintf(stderr,
                "usage: library_pairs HOST:PORT [COUNT [SECONDS]], with a ttserver there\n");
        return 1;
    }
    double begin = seconds_of(CLOCK_MONOTONIC), cpu = seconds_of(CLOCK_THREAD_CPUTIME_ID);
    do {
        others += pair(table, &key, count);
        pairs += count;
        took = seconds_of(CLOCK_MONOTONIC) - begin;
    } while (took < wanted);
    cpu = seconds_of(CLOCK_THREAD_CPUTIME_ID) - cpu;
    printf("%.0f pairs/s, %u a call, %.0f ns of the caller's CPU time a pair, %u not OPEN\n",
           (double)pairs / took, count, cpu * 1e9 / (double)pairs, others);
    return abdada_close(table) == ABDADA_OK ? 0 : 1;
}
