/* library_pairs: nodes entered and stored a second through libabdada on one shard, so many a call,
 * by so many threads with a handle each: one caller waits for a round trip a call.
 *
 *   build/release/bench/library_pairs HOST:PORT [COUNT [SECONDS [THREADS]]]
 *
 * Keys are fresh: each node is OPEN, and its store is a new result. Beside it in the same minute,
 * as the machine changes: abdada ttbench --servers HOST:PORT --clients 1 --batch COUNT. */
#include "worker/lib/abdada.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { COUNT_MAX = 65536, THREADS_MAX = 64, DEPTH = 5 };

struct caller {
    struct abdada *table;
    unsigned count;
    double wanted; /* seconds */
    uint64_t key, pairs, others; /* others: pairs that were not OPEN */
    double took, cpu;
    struct abdada_ask_op ask[COUNT_MAX];
    struct abdada_store_op store[COUNT_MAX];
    struct abdada_answer answer[COUNT_MAX];
};

static double seconds_of(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Enters and stores `count` nodes. */
static void pair(struct caller *c)
{
    for (unsigned i = 0; i < c->count; i++) {
        c->key += UINT64_C(0x9e3779b97f4a7c15);
        c->ask[i] = (struct abdada_ask_op){.key = c->key, .alpha = -1, .beta = 1, .depth = DEPTH};
    }
    (void)abdada_ask_many(c->table, c->ask, c->count, c->answer);
    for (unsigned i = 0; i < c->count; i++) {
        c->others += c->answer[i].verdict != ABDADA_OPEN;
        c->store[i] = (struct abdada_store_op){
            .key = c->ask[i].key, .score = 1, .depth = DEPTH, .bound = ABDADA_LOWER};
    }
    (void)abdada_store_many(c->table, c->store, c->count);
    c->pairs += c->count;
}

static void *call(void *caller)
{
    struct caller *c = caller;
    double begin = seconds_of(CLOCK_MONOTONIC), cpu = seconds_of(CLOCK_THREAD_CPUTIME_ID);
    do {
        pair(c);
        c->took = seconds_of(CLOCK_MONOTONIC) - begin;
    } while (c->took < c->wanted);
    c->cpu = seconds_of(CLOCK_THREAD_CPUTIME_ID) - cpu;
    return NULL;
}

int main(int argc, char **argv)
{
    unsigned count = argc > 2 ? (unsigned)atoi(argv[2]) : 256;
    unsigned threads = argc > 4 ? (unsigned)atoi(argv[4]) : 3;
    struct abdada_options options = {.struct_size = sizeof options, .servers = argv[argc > 1]};
    struct caller *caller[THREADS_MAX];
    pthread_t thread[THREADS_MAX];
    uint64_t pairs = 0, others = 0, key = (uint64_t)time(NULL) << 32;
    double rate = 0, cpu = 0;
    bool ok =
        argc > 1 && count >= 1 && count <= COUNT_MAX && threads >= 1 && threads <= THREADS_MAX;
    for (unsigned i = 0; ok && i < threads; i++) {
        ok = (caller[i] = calloc(1, sizeof *caller[i])) != NULL &&
             abdada_open(&caller[i]->table, &options) == ABDADA_OK &&
             abdada_wait_connected(caller[i]->table, 5000) >= 1;
    }
    if (!ok) {
        fprintf(stderr, "usage: library_pairs HOST:PORT [COUNT [SECONDS [THREADS]]], with a "
                        "ttserver there\n");
        return 1;
    }
    for (unsigned i = 0; i < threads; i++) {
        caller[i]->count = count;
        caller[i]->wanted = argc > 3 ? atof(argv[3]) : 3;
        caller[i]->key = key + ((uint64_t)i << 56);
        ok = pthread_create(&thread[i], NULL, call, caller[i]) == 0 && ok;
    }
    for (unsigned i = 0; ok && i < threads; i++) {
        ok = pthread_join(thread[i], NULL) == 0;
        rate += (double)caller[i]->pairs / caller[i]->took;
        pairs += caller[i]->pairs;
        others += caller[i]->others;
        cpu += caller[i]->cpu;
        ok = abdada_close(caller[i]->table) == ABDADA_OK && ok;
    }
    printf("%.0f pairs/s, %u a call of %u, %.0f ns of a caller's CPU time a pair, %llu not OPEN\n",
           rate, count, threads, cpu * 1e9 / (double)pairs, (unsigned long long)others);
    return ok ? 0 : 1;
}
