/* analyse: has the workers of an abdada cluster search a chess position, and prints what they find.
 *
 *     cc analyse.c -o analyse $(pkg-config --cflags --libs abdada)
 *     ./analyse --servers 127.0.0.1:7400 --depth 10 startpos
 *
 * One line for each depth: depth, score in centipawns from the side to move, nodes of the worker
 * that said it, best line. */
#include <abdada.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    PATIENCE_MS = 10000, /* without a word from any worker */
    DEPTH_MAX = 100,
};

static int failed(const char *what, int error)
{
    fprintf(stderr, "analyse: %s: %s\n", what, abdada_error_text(error));
    return 1;
}

/* Until a worker has finished the depth. */
static int watch(struct abdada *t, unsigned depth)
{
    struct abdada_job_event event;
    unsigned deepest = 0;
    int error;
    while ((error = abdada_job_next(t, PATIENCE_MS, &event)) == ABDADA_OK) {
        if (event.state == ABDADA_JOB_BARRED) {
            fprintf(stderr, "analyse: shard %d does not take the job: %s\n", (int)event.shard,
                    event.text);
        } else if (event.state == ABDADA_JOB_REFUSED) {
            fprintf(stderr, "analyse: a worker cannot search this position; others may\n");
        } else if (event.depth > deepest) {
            deepest = event.depth;
            printf("depth %u score %d nodes %llu line %s\n", deepest, event.score,
                   (unsigned long long)event.nodes, event.text);
            fflush(stdout);
            if (deepest >= depth) {
                return 0;
            }
        }
    }
    if (error == ABDADA_WAITING) {
        fprintf(stderr, "analyse: no worker searches; is one running?\n");
        return 1;
    }
    return failed("waiting", error);
}

int main(int argc, char *argv[])
{
    char why[256] = "", *end;
    struct abdada *t;
    uint64_t id;
    struct abdada_options options = {
        .struct_size = sizeof options,
        .role = ABDADA_FRONT_END,
        .name = "analyse",
        .log_name = "analyse",
        .why = why,
        .why_size = sizeof why,
    };
    struct abdada_job job = {.struct_size = sizeof job, .depth = 8};
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--servers") == 0 && i + 1 < argc) {
            options.servers = argv[++i];
        } else if (strcmp(argv[i], "--keys") == 0 && i + 1 < argc) {
            options.keys = argv[++i];
        } else if (strcmp(argv[i], "--depth") == 0 && i + 1 < argc) {
            long depth = strtol(argv[++i], &end, 10);
            if (end == argv[i] || *end != '\0' || depth < 1 || depth > DEPTH_MAX) {
                fprintf(stderr, "analyse: --depth %s: not in 1 to %d\n", argv[i], DEPTH_MAX);
                return 2;
            }
            job.depth = (uint8_t)depth;
        } else if (strcmp(argv[i], "--strict") == 0) {
            job.flags |= ABDADA_JOB_STRICT;
        } else {
            job.position = argv[i];
        }
    }
    if (options.servers == NULL) {
        fprintf(stderr, "usage: analyse --servers HOST:PORT,... [--keys DIR] [--depth N] "
                        "[--strict] [FEN]\n");
        return 2;
    }
    int error = abdada_open(&t, &options);
    if (error != ABDADA_OK) {
        fprintf(stderr, "analyse: %s\n", why[0] != '\0' ? why : abdada_error_text(error));
        return 1;
    }
    error = abdada_wait_connected(t, 2000);
    error = error > 0 ? abdada_job_post(t, &job, &id) : error;
    int status = error == ABDADA_OK ? watch(t, job.depth) : failed(options.servers, error);
    abdada_close(t); /* which ends the job */
    return status;
}
