#include "ttserver/keep/keep_files.h"

#include "common/clock.h"
#include "common/log.h"
#include "common/signals.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

enum {
    WORK_US = 1000,
    REST_US = 4 * WORK_US,
    NICE = 5,
};

/* ---- start ---- */

enum err keep_files_open(struct keep_files *s, const struct keep_files_options *options)
{
    enum err err = ERR_OK;
    memset(s, 0, sizeof *s);
    s->options = *options;
    s->file = calloc(options->shards, sizeof *s->file);
    if (s->file == NULL) {
        return ERR_NOMEM;
    }
    pthread_mutex_init(&s->mutex, NULL);
    clock_open_condition(&s->wake);
    for (unsigned i = 0; err == ERR_OK && i < options->shards; i++) {
        err = keep_file_open(&s->file[i], disk_of_system(), options->path, i);
        if (s->file[i].line[0] != '\0') {
            log_fail(options->program, "--snapshot: %s", s->file[i].line);
        }
    }
    return err;
}

static void say(const struct keep_files *s, const struct keep_file *file)
{
    if (file->line[0] != '\0') {
        log_line(s->options.program, "%s", file->line);
    }
}

void keep_files_fill(struct keep_files *s, unsigned shard, struct tt_results *results,
                     struct ttcore_ledger *ledger, uint64_t place)
{
    struct keep_file *file = &s->file[shard];
    uint64_t begin_us = clock_us();
    uint64_t total = keep_file_fill(file, results, ledger, place);
    say(s, file);
    /* A refused file is replaced at once: a symbolic link to none would fail the next start. */
    s->is_wanted = s->is_wanted || file->line[0] != '\0';
    if (file->is_whole) {
        log_line(s->options.program, "%s: %" PRIu64 " results read in %" PRIu64 " ms", file->path,
                 total, (clock_us() - begin_us) / 1000);
    }
}

/* ---- writing ---- */

/* Waits for so long, or, between snapshots, until one is wanted. False: the end was asked for. */
static bool rest(struct keep_files *s, uint64_t us, bool is_between)
{
    uint64_t at_us = clock_us() + us;
    pthread_mutex_lock(&s->mutex);
    while (!s->is_ending && !(is_between && s->is_wanted) &&
           clock_wait(&s->wake, &s->mutex, at_us)) {
    }
    s->is_wanted = s->is_wanted && !is_between;
    bool goes_on = !s->is_ending;
    pthread_mutex_unlock(&s->mutex);
    return goes_on;
}

/* Without rests once the end is near, when the shards do not run any more. When the end comes in
 * between, the file is as it was. */
static void write_if_changed(struct keep_files *s, struct keep_file *file, bool rests)
{
    uint64_t begin_us = clock_us();
    while (keep_file_write(file)) {
        if (rests && clock_us() - begin_us >= WORK_US) {
            if (!rest(s, REST_US, false)) {
                snapshot_abort(&file->writer);
                return;
            }
            begin_us = clock_us();
        }
    }
    say(s, file);
}

static void *run(void *context)
{
    struct keep_files *s = context;
    (void)setpriority(PRIO_PROCESS, 0, NICE); /* of this thread, on Linux */
    while (rest(s, s->options.every_s * UINT64_C(1000000), true)) {
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
        keep_file_close(&s->file[i]);
    }
    pthread_cond_destroy(&s->wake);
    pthread_mutex_destroy(&s->mutex);
    free(s->file);
    memset(s, 0, sizeof *s);
}
