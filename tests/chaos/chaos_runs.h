/* chaos_runs: many searches with faults drawn from seeds (chaos.h), each checked; what fails is
 * named with the command that repeats it. Runs in child processes, so that a crash or a hang is a
 * failure like others. It has no threads, for it forks. May block for hours. Threads: one. */
#ifndef TESTS_CHAOS_CHAOS_RUNS_H
#define TESTS_CHAOS_CHAOS_RUNS_H

#include "tests/chaos/chaos.h"

enum { CHAOS_PLANTS_MAX = 512 };

struct chaos_runs {
    const char *program;
    /* As given; NULL or 0: to be drawn. */
    const char *seeds; /* A..B, or one */
    uint32_t faults; /* of each run, at most */
    const char *failures; /* a file to which failing runs are appended */
    const char *plant; /* a name of chaos_plants */
    const char *algorithm;
    const uint32_t *workers; /* one run each */
    unsigned counts;
    unsigned shards;
    const struct job *job; /* game, position, depth */
    const struct game *game; /* without a job: positions of this game are drawn */
    unsigned jobs; /* processes at a time, at least 1 */
    bool json;
};

/* Names of the faults that can be planted, as a list for people. */
const char *chaos_plants(char text[CHAOS_PLANTS_MAX]);

/* The exit status of the command: 1 when a run failed. */
int chaos_runs(const struct chaos_runs *options);

#endif
