/* kill_cost: what the death of one worker of 32 costs each algorithm, in the virtual cluster: how
 * much later the answer comes. One worker other than the front-end dies half-way and does not come
 * back. Nodes of 125 us, 20 us a round trip, heartbeats of a second. Those that search without
 * being kept apart (shared-table, lazy) lose a worker's share and nothing else, and are left out.
 *
 *   kill_cost [RUNS]      (5) another worker each time; median and longest */
#include "tests/chaos/chaos_lab.h"
#include "worker/games/games.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WORKERS = 32, RUNS_MAX = 31, DEPTH = 7 };

static const char tree[] = "tree:b=16,d=7,seed=3,order=85";

static struct chaos_result run(const struct chaos_options *options)
{
    static struct chaos_result result;
    if (chaos_lab_run(options, &result) != ERR_OK || !result.lab.answer[0].answered) {
        fprintf(stderr, "kill_cost: no answer\n");
        exit(1);
    }
    return result;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
    const unsigned runs = argc > 1 ? (unsigned)atoi(argv[1]) : 5;
    char why[128] = "";
    struct job job = {.strict = true, .waits = true, .depth = DEPTH, .remote_depth = 1};
    if (runs < 1 || runs > RUNS_MAX ||
        job_set_position(&job, games_by_name("tree"), tree, why, sizeof why) != ERR_OK) {
        fprintf(stderr, "usage: kill_cost [RUNS, 1 to %d]\n", RUNS_MAX);
        return 1;
    }
    printf("%s, depth %d, %d workers\n%-20s %9s %8s %8s  %s\n", tree, DEPTH, WORKERS, "algorithm",
           "seconds", "lost", "longest", "scores");
    const struct algorithm *a;
    for (unsigned i = 0; (a = algorithm_at(i)) != NULL; i++) {
        if (a->random_order) {
            continue;
        }
        job.algorithm = a;
        job_set_namespace(&job, 0);
        struct chaos_options options = {
            .lab =
                {
                    .job = &job,
                    .workers = WORKERS,
                    .shards = 2,
                    .seed = 1,
                    .node_ns = 125000,
                    .rtt_ns = 20000,
                    .results_bytes = 1 << 24,
                    .local_bytes = 1 << 20,
                    .limit_ns = UINT64_C(1000000000000),
                    .heartbeat_ms = 1000,
                    .inflight_age_max_ms = 60000,
                    .rto_max_us = 250000,
                    .probe_us = 100000,
                },
        };
        const struct chaos_result whole = run(&options);
        double lost_s[RUNS_MAX];
        bool is_same = true;
        for (unsigned k = 0; k < runs; k++) {
            const struct lab_fault death = {LAB_KILL, .worker = 1 + k * 7 % (WORKERS - 1),
                                            .workers = 1, .at_ns = whole.lab.end_ns / 2,
                                            .lasts_ns = LAB_FOR_EVER};
            options.fault = &death;
            options.faults = 1;
            const struct chaos_result r = run(&options);
            lost_s[k] = ((double)r.lab.end_ns - (double)whole.lab.end_ns) / 1e9;
            is_same = is_same && r.lab.answer[0].search.score == whole.lab.answer[0].search.score;
        }
        qsort(lost_s, runs, sizeof lost_s[0], by_size);
        printf("%-20s %9.2f %8.3f %8.3f  %s\n", a->name, (double)whole.lab.end_ns / 1e9,
               lost_s[runs / 2], lost_s[runs - 1], is_same ? "the same" : "OTHERS");
        fflush(stdout);
    }
    job_free(&job);
    return 0;
}
