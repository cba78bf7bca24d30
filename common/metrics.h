/* metrics: figures in the text format of Prometheus (version 0.0.4), by its conventions: base units
 * in the name, counters end in _total.
 *
 * A figure of a list whose name ends in _ms, _us or _permille becomes one in _seconds or _ratio.
 * Samples of one metric stand together, so a caller writes a head and then all samples.
 * Threads: any. Memory: none. */
#ifndef COMMON_METRICS_H
#define COMMON_METRICS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define METRICS_TYPE "text/plain; version=0.0.4; charset=utf-8"

struct metrics {
    FILE *out;
    const char *program; /* begins each name: "ttserver" */
};

/* Begins the next metric. `help` is a sentence without its full stop. */
void metrics_head(const struct metrics *m, const char *name, bool is_counter, const char *help);
/* Writes a sample of the metric; `label_value`, which is escaped, is NULL: without a label. */
void metrics_sample(const struct metrics *m, const char *name, bool is_counter, const char *label,
                    const char *label_value, uint64_t figure);
/* Writes the head and one sample without a label. */
void metrics_one(const struct metrics *m, const char *name, bool is_counter, const char *help,
                 uint64_t figure);
/* Writes PROGRAM_build_info, and process_cpu_seconds_total and process_resident_memory_bytes, as
 * other programs have them. */
void metrics_process(const struct metrics *m);

#endif
