#include "common/metrics.h"

#include "common/memory.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

enum { NAME_MAX_BYTES = 128 };

static const struct unit {
    const char *suffix, *base;
    double scale;
} units[] = {{"_ms", "_seconds", 1e-3}, {"_us", "_seconds", 1e-6}, {"_permille", "_ratio", 1e-3}};

/* The whole name; the unit of its figures, NULL: they are as they are. */
static const struct unit *full_name(const struct metrics *m, const char *name, bool is_counter,
                                    char out[NAME_MAX_BYTES])
{
    const struct unit *unit = NULL;
    size_t stem = strlen(name);
    for (size_t i = 0; i < sizeof units / sizeof *units && unit == NULL; i++) {
        size_t suffix = strlen(units[i].suffix);
        if (stem > suffix && strcmp(name + stem - suffix, units[i].suffix) == 0) {
            unit = &units[i];
            stem -= suffix;
        }
    }
    snprintf(out, NAME_MAX_BYTES, "%s_%.*s%s%s", m->program, (int)stem, name,
             unit != NULL ? unit->base : "", is_counter ? "_total" : "");
    return unit;
}

void metrics_head(const struct metrics *m, const char *name, bool is_counter, const char *help)
{
    char full[NAME_MAX_BYTES];
    (void)full_name(m, name, is_counter, full);
    fprintf(m->out, "# HELP %s %s.\n# TYPE %s %s\n", full, help, full,
            is_counter ? "counter" : "gauge");
}

void metrics_sample(const struct metrics *m, const char *name, bool is_counter, const char *label,
                    const char *label_value, uint64_t figure)
{
    char full[NAME_MAX_BYTES];
    const struct unit *unit = full_name(m, name, is_counter, full);
    fputs(full, m->out);
    if (label_value != NULL) {
        fprintf(m->out, "{%s=\"", label);
        for (const char *c = label_value; *c != '\0'; c++) {
            fprintf(m->out, "%s%c", strchr("\"\\\n", *c) != NULL ? "\\" : "",
                    *c == '\n' ? 'n' : *c);
        }
        fputs("\"}", m->out);
    }
    if (unit != NULL) {
        fprintf(m->out, " %.10g\n", (double)figure * unit->scale);
    } else {
        fprintf(m->out, " %" PRIu64 "\n", figure);
    }
}

void metrics_one(const struct metrics *m, const char *name, bool is_counter, const char *help,
                 uint64_t figure)
{
    metrics_head(m, name, is_counter, help);
    metrics_sample(m, name, is_counter, NULL, NULL, figure);
}

void metrics_process(const struct metrics *m)
{
    const struct metrics process = {m->out, "process"};
    struct timespec cpu = {0};
    metrics_head(m, "build_info", false, "The version, as a label of the number 1");
    metrics_sample(m, "build_info", false, "version", PROGRAM_VERSION, 1);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu);
    metrics_one(&process, "cpu_us", true, "CPU time of all threads",
                (uint64_t)cpu.tv_sec * 1000000 + (uint64_t)cpu.tv_nsec / 1000);
    metrics_one(&process, "resident_memory_bytes", false, "Memory in use", memory_resident_bytes());
}
