#include "ttserver/keep/keep_files.h"

#include "common/clock.h"
#include "common/log.h"
#include "common/signals.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum {
    READ_ENTRIES = 1024,
    BUCKETS_AT_A_TIME = 256, /* between two views of the clock: 16 KiB of the table */
    WORK_US = 1000,
    REST_US = 4 * WORK_US,
    NICE = 5,
};

/* ---- start ---- */

static void set_aside(struct keep_files *s, struct keep_file *file)
{
    char aside[SNAPSHOT_WHY_MAX];
    file->is_off = snapshot_set_aside(file->path, aside) != ERR_OK;
    log_line(s->options.program, "%s: the shard begins empty; %s", file->said,
             file->is_off ? "the file could not be renamed, and there will be no snapshots"
                          : "the file is renamed to .bad");
    file->said[0] = '\0';
    file->is_refused = false;
}

static enum err open_one(struct keep_files *s, unsigned i)
{
    const struct keep_files_options *options = &s->options;
    struct keep_file *file = &s->file[i];
    int length = i == 0 ? snprintf(file->path, sizeof file->path, "%s", options->path)
                        : snprintf(file->path, sizeof file->path, "%s.%u", options->path, i);
    enum err err = length >= (int)sizeof file->path
                       ? ERR_RANGE
                       : snapshot_lock(&file->lock, file->path, file->said);
    err = err ? err : snapshot_open(&file->reader, file->path, file->said);
    switch (err) {
    case ERR_PROTO:
    case ERR_VERSION:
        file->is_refused = true;
        return ERR_OK;
    case ERR_ABSENT:
        file->said[0] = '\0';
        return ERR_OK;
    case ERR_RANGE:
        log_fail(options->program, "--snapshot: a path has 1 to %d characters",
                 SNAPSHOT_PATH_MAX - 1);
        return err;
    case ERR_EXIST:
    case ERR_IO: /* there may be good results: it is neither renamed nor overwritten */
        log_fail(options->program, "--snapshot: %s", file->said);
        return err;
    default:
        return err;
    }
}

enum err keep_files_open(struct keep_files *s, const struct keep_files_options *options)
{
    enum err err = ERR_OK;
    memset(s, 0, sizeof *s);
    s->options = *options;
    s->file = calloc(options->shards, sizeof *s->file);
    if (s->file == NULL) {
        return ERR_NOMEM;
    }
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&s->mutex, NULL);
    pthread_cond_init(&s->wake, &monotonic);
    pthread_condattr_destroy(&monotonic);
    for (unsigned i = 0; i < options->shards; i++) {
        s->file[i].lock = -1;
    }
    for (unsigned i = 0; err == ERR_OK && i < options->shards; i++) {
        err = open_one(s, i);
    }
    return err;
}

uint64_t keep_files_place(const struct keep_files *s, unsigned shard)
{
    return s->file[shard].reader != NULL ? snapshot_place(s->file[shard].reader) : 0;
}

enum err keep_files_fill(struct keep_files *s, unsigned shard, struct tt_results *results,
                         struct ttcore_ledger *ledger, uint64_t place)
{
    struct keep_file *file = &s->file[shard];
    struct tt_scanned entry[READ_ENTRIES];
    char why[SNAPSHOT_WHY_MAX];
    uint64_t begin_us = clock_us(), total = 0;
    size_t count = 1;
    enum err err = ERR_OK;
    file->results = results;
    file->ledger = ledger;
    file->place = place;
    if (file->is_refused) {
        set_aside(s, file);
    }
    if (file->reader == NULL) {
        return ERR_OK;
    }
    while (err == ERR_OK && count > 0) {
        err = snapshot_next(file->reader, entry, READ_ENTRIES, &count, why);
        for (size_t i = 0; err == ERR_OK && i < count; i++) {
            tt_results_restore(results, &entry[i]);
        }
        total += err == ERR_OK ? count : 0;
    }
    snapshot_close(&file->reader);
    if (err != ERR_OK) {
        log_fail(s->options.program, "--snapshot: %s", why);
        return ERR_IO;
    }
    ttcore_ledger_add(&ledger->restored, total);
    file->is_whole = true;
    log_line(s->options.program, "%s: %" PRIu64 " results read in %" PRIu64 " ms", file->path,
             total, (clock_us() - begin_us) / 1000);
    return ERR_OK;
}

/* ---- writing ---- */

/* True: the end was asked for. */
static bool rest(struct keep_files *s, uint64_t us)
{
    uint64_t at_us = clock_us() + us;
    struct timespec at = {.tv_sec = (time_t)(at_us / 1000000),
                          .tv_nsec = (long)(at_us % 1000000) * 1000};
    pthread_mutex_lock(&s->mutex);
    while (!s->is_ending && pthread_cond_timedwait(&s->wake, &s->mutex, &at) != ETIMEDOUT) {
    }
    bool is_ending = s->is_ending;
    pthread_mutex_unlock(&s->mutex);
    return is_ending;
}

static enum err write_buckets(const struct keep_file *file, struct snapshot_writer *writer,
                              uint64_t from, uint64_t to, uint64_t *written, char *why)
{
    for (uint64_t b = from; b < to; b++) {
        for (unsigned slot = 0; slot < TT_BUCKET_ENTRIES; slot++) {
            struct tt_scanned entry;
            if (!tt_results_entry(file->results, b, slot, &entry)) {
                continue;
            }
            enum err err = snapshot_add(writer, &entry, why);
            if (err != ERR_OK) {
                return err;
            }
            ++*written;
        }
    }
    return ERR_OK;
}

/* Without rests once the end is near, when the shards do not run any more. ERR_ABSENT: the end came
 * in between, and the file is as it was. */
static enum err write_file(struct keep_files *s, struct keep_file *file, bool rests,
                           uint64_t *written, char *why)
{
    struct snapshot_writer *writer = NULL;
    enum err err = snapshot_create(&writer, file->path, file->place, why);
    uint64_t begin_us = clock_us();
    for (uint64_t b = 0; err == ERR_OK && b < file->results->buckets; b += BUCKETS_AT_A_TIME) {
        uint64_t left = file->results->buckets - b;
        uint64_t n = left < BUCKETS_AT_A_TIME ? left : BUCKETS_AT_A_TIME;
        err = write_buckets(file, writer, b, b + n, written, why);
        if (err == ERR_OK && rests && clock_us() - begin_us >= WORK_US) {
            err = rest(s, REST_US) ? ERR_ABSENT : ERR_OK;
            begin_us = clock_us();
        }
    }
    if (err != ERR_OK) {
        snapshot_abort(&writer);
        return err;
    }
    return snapshot_commit(&writer, why);
}

static void write_if_changed(struct keep_files *s, struct keep_file *file, bool rests)
{
    char why[SNAPSHOT_WHY_MAX] = "";
    uint64_t changes = ttcore_ledger_read(&file->ledger->changes), written = 0;
    if (file->is_off || (file->is_whole && changes == file->written)) {
        return;
    }
    enum err err = write_file(s, file, rests, &written, why);
    if (err == ERR_ABSENT) {
        return;
    }
    if (err != ERR_OK) {
        ttcore_ledger_add(&file->ledger->snapshot_failures, 1);
        if (strcmp(why, file->said) != 0) {
            log_line(s->options.program, "no snapshot: %s; the shard serves on", why);
            memcpy(file->said, why, sizeof why);
        }
        return;
    }
    if (file->said[0] != '\0') {
        log_line(s->options.program, "%s: snapshots are written again", file->path);
        file->said[0] = '\0';
    }
    file->is_whole = true;
    file->written = changes;
    ttcore_ledger_add(&file->ledger->snapshots, 1);
    atomic_store_explicit(&file->ledger->snapshot_entries, written, memory_order_release);
}

/* Until it is time; false: the end was asked for. */
static bool wait_for_turn(struct keep_files *s)
{
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    at.tv_sec += s->options.every_s;
    pthread_mutex_lock(&s->mutex);
    while (!s->is_ending && !s->is_wanted &&
           pthread_cond_timedwait(&s->wake, &s->mutex, &at) != ETIMEDOUT) {
    }
    s->is_wanted = false;
    bool goes_on = !s->is_ending;
    pthread_mutex_unlock(&s->mutex);
    return goes_on;
}

static void *run(void *context)
{
    struct keep_files *s = context;
    (void)setpriority(PRIO_PROCESS, 0, NICE); /* of this thread, on Linux */
    while (wait_for_turn(s)) {
        for (unsigned i = 0; i < s->options.shards; i++) {
            write_if_changed(s, &s->file[i], true);
        }
    }
    return NULL;
}

bool keep_files_start(struct keep_files *s)
{
    s->is_running = signals_create_thread(&s->thread, run, s);
    return s->is_running;
}

static void wake(struct keep_files *s, bool *flag)
{
    pthread_mutex_lock(&s->mutex);
    *flag = true;
    pthread_cond_signal(&s->wake);
    pthread_mutex_unlock(&s->mutex);
}

void keep_files_write_now(struct keep_files *s)
{
    wake(s, &s->is_wanted);
}

void keep_files_end(struct keep_files *s)
{
    if (s->file == NULL) {
        return;
    }
    if (s->is_running) {
        wake(s, &s->is_ending);
        pthread_join(s->thread, NULL);
    }
    for (unsigned i = 0; i < s->options.shards; i++) {
        if (s->is_running) {
            write_if_changed(s, &s->file[i], false);
        }
        snapshot_close(&s->file[i].reader);
        if (s->file[i].lock >= 0) {
            close(s->file[i].lock);
        }
    }
    pthread_cond_destroy(&s->wake);
    pthread_mutex_destroy(&s->mutex);
    free(s->file);
    memset(s, 0, sizeof *s);
}
