/* chaos_runs: many searches with faults drawn from seeds (worker/lab/chaos.h), each checked; what
 * fails is named with the command that repeats it. Runs in child processes, so that a crash or a
 * hang is a failure like others. Called by `abdada sim` alone; it has no threads, for it forks. May
 * block for hours. Threads: one. */
#ifndef WORKER_PROGRAMS_SIM_CHAOS_RUNS_H
#define WORKER_PROGRAMS_SIM_CHAOS_RUNS_H

#include "worker/lab/chaos.h"

struct cli_chaos {
    const char *program;
    /* As given; NULL or 0: to be drawn. */
    const char *faults; /* random[:N] */
    const char *seeds; /* A..B; NULL: `seed` alone */
    uint64_t seed;
    const char *failures; /* a file to which failing runs are appended */
    const char *plant; /* skip-release[:PPM] and others: chaos.c */
    const char *algorithm;
    const uint32_t *workers; /* one run each */
    unsigned counts;
    unsigned shards;
    const struct job *job; /* game, position, depth */
    const struct game *game; /* without a job: positions of this game are drawn */
    unsigned jobs; /* processes at a time, at least 1 */
    bool json;
};

/* The exit status of the command. */
int cli_chaos(const struct cli_chaos *chaos);

#endif
