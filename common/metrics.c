#include "common/metrics.h"

#include <inttypes.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { NAME_MAX_BYTES = 128 };

static const struct unit {
    const char *suffix, *base;
    double scale;
} units[] = {{"_ms", "_seconds", 1e-3}, {"_us", "_seconds", 1e-6}, {"_permille", "_ratio", 1e-3}};

static const struct unit *unit_of(const char *name)
{
    size_t length = strlen(name);
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        size_t suffix = strlen(units[i].suffix);
        if (length > suffix && strcmp(name + length - suffix, units[i].suffix) == 0) {
            return &units[i];
        }
    }
    return NULL;
}

static void full_name(const struct metrics *m, const char *name, bool is_counter,
                      char out[NAME_MAX_BYTES])
{
    const struct unit *unit = unit_of(name);
    int stem = (int)(strlen(name) - (unit != NULL ? strlen(unit->suffix) : 0));
    snprintf(out, NAME_MAX_BYTES, "%s_%.*s%s%s", m->program, stem, name,
             unit != NULL ? unit->base : "", is_counter ? "_total" : "");
}

void metrics_head(const struct metrics *m, const char *name, bool is_counter, const char *help)
{
    char full[NAME_MAX_BYTES];
    full_name(m, name, is_counter, full);
    fprintf(m->out, "# HELP %s %s.\n# TYPE %s %s\n", full, help, full,
            is_counter ? "counter" : "gauge");
}

static void put_escaped(FILE *out, const char *text)
{
    for (; *text != '\0'; text++) {
        if (*text == '\n') {
            fputs("\\n", out);
        } else {
            fprintf(out, "%s%c", *text == '"' || *text == '\\' ? "\\" : "", *text);
        }
    }
}

void metrics_sample(const struct metrics *m, const char *name, bool is_counter, const char *label,
                    const char *label_value, uint64_t figure)
{
    char full[NAME_MAX_BYTES];
    const struct unit *unit = unit_of(name);
    full_name(m, name, is_counter, full);
    fputs(full, m->out);
    if (label != NULL) {
        fprintf(m->out, "{%s=\"", label);
        put_escaped(m->out, label_value);
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

static uint64_t resident_bytes(void)
{
    unsigned long long pages = 0, resident = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file != NULL) {
        if (fscanf(file, "%llu %llu", &pages, &resident) != 2) {
            resident = 0;
        }
        fclose(file);
    }
    return (uint64_t)resident * (uint64_t)sysconf(_SC_PAGESIZE);
}

void metrics_process(const struct metrics *m)
{
    const struct metrics process = {m->out, "process"};
    struct rusage use = {0};
    metrics_head(m, "build_info", false, "The version, as a label of the number 1");
    metrics_sample(m, "build_info", false, "version", PROGRAM_VERSION, 1);
    getrusage(RUSAGE_SELF, &use);
    uint64_t cpu_us = (uint64_t)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) * 1000000 +
                      (uint64_t)(use.ru_utime.tv_usec + use.ru_stime.tv_usec);
    metrics_one(&process, "cpu_us", true, "CPU time of all threads", cpu_us);
    metrics_one(&process, "resident_memory_bytes", false, "Memory in use", resident_bytes());
}
