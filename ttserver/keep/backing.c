#include "ttserver/keep/backing.h"

#include "common/clock.h"
#include "common/log.h"
#include "common/signals.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum {
    BATCH_BUCKETS = 32, /* in a round trip */
    REST_FOR_WORK = 19,
    REST_MAX_US = 100000,
    SWEEP_US = 100000, /* between the end of a sweep and the next */
    RETRY_US = 1000000,
    LOADING_WAIT_US = 60000000, /* for a Redis that reads its file, at start */
    LOADING_RETRY_US = 100000,
    NICE = 5,
    WORDS_EACH_SLICE = BACKING_SLICE / 64,
    HOSTNAME_MAX = 256,
};

/* ---- the thread's waiting ---- */

static bool is_ending(const struct backing *b)
{
    return atomic_load(&b->end_by_us) != 0;
}

/* Until then, or until the end is asked for. */
static void rest(struct backing *b, uint64_t us)
{
    uint64_t at_us = clock_us() + us;
    pthread_mutex_lock(&b->mutex);
    while (!is_ending(b) && clock_wait(&b->wake, &b->mutex, at_us)) {
    }
    pthread_mutex_unlock(&b->mutex);
}

/* ---- Redis comes and goes ---- */

static void set_again(const struct backing_shard *shard, uint64_t again)
{
    atomic_store_explicit(&shard->ledger->again, again, memory_order_release);
}

/* One line and one event until it is back. */
static void lose(struct backing *b, const char *why)
{
    backing_link_close(&b->link);
    for (unsigned i = 0; i < b->options.shards; i++) {
        struct backing_shard *shard = &b->shard[i];
        if (shard->ledger != NULL) {
            set_again(shard, 1);
            ttcore_ledger_add(&shard->ledger->backing_lost, !b->is_down);
        }
    }
    if (!b->is_down) {
        log_line(b->options.program, "--backing %s: %s; the shards keep serving, and retry",
                 b->where, why);
    }
    b->is_down = true;
}

static enum err read_results(struct backing *b, struct backing_shard *shard,
                             const struct backing_record *record, char *why)
{
    uint64_t begin_us = clock_us(), entries = 0;
    enum err err =
        backing_link_read(b->link, record, shard->results, &shard->ledger->flushed, &entries, why);
    if (err == ERR_EXIST) {
        snprintf(why, REDIS_WHY_MAX, "a shard was flushed while its results were read");
        return err;
    }
    ttcore_ledger_add(&shard->ledger->restored, entries);
    log_line(b->options.program, "--backing %s: %" PRIu64 " results of %s read in %" PRIu64 " ms",
             b->where, entries, shard->name, (clock_us() - begin_us) / 1000);
    return err;
}

/* The record says what there is to be read, so it has all buckets there ever were. */
static enum err claim(struct backing *b, struct backing_shard *shard,
                      const struct backing_record *now, char *why)
{
    if (now->place == shard->own.place && now->buckets >= shard->own.buckets) {
        shard->own.buckets = now->buckets;
        return ERR_OK;
    }
    return backing_link_set_record(b->link, shard->name, &shard->own, why);
}

/* After Redis was away: it may have lost all, or have what was there before this process. */
static enum err take_over(struct backing *b, struct backing_shard *shard, char *why)
{
    struct backing_record now;
    enum err err = backing_link_record(b->link, shard->name, &now, why);
    set_again(shard, 1);
    if (err != ERR_OK) {
        return err;
    }
    const bool is_own = now.place == shard->own.place;
    shard->old = is_own ? shard->old : now;
    /* With another stamp it may have read a file from before a flush: then the sweep forgets it. */
    shard->flushed = now.stamp == shard->own.stamp ? shard->flushed : 0;
    if (ttcore_ledger_read(&shard->ledger->flushed) == shard->flushed && now.place != 0 &&
        !(is_own && shard->is_read)) {
        err = read_results(b, shard, &now, why);
    }
    shard->is_read = shard->is_read || err == ERR_OK;
    return err == ERR_OK && (is_own || now.place == 0) ? claim(b, shard, &now, why) : err;
}

/* ---- writing behind ---- */

/* Since the Redis was told last. */
static bool is_flushed(const struct backing_shard *shard)
{
    return ttcore_ledger_read(&shard->ledger->flushed) != shard->flushed;
}

struct batch {
    unsigned count;
    struct {
        uint64_t slice, bits[WORDS_EACH_SLICE];
    } at[BATCH_BUCKETS];
    unsigned buckets;
    uint64_t entries, begin_us;
};

static enum err write_batch(struct backing *b, struct backing_shard *shard, struct batch *batch,
                            char *why)
{
    enum err err = backing_link_flush(b->link, why);
    for (unsigned i = 0; err != ERR_OK && i < batch->count; i++) { /* to be written again */
        for (unsigned w = 0; w < WORDS_EACH_SLICE; w++) {
            _Atomic uint64_t *word =
                &shard->ledger->unwritten[batch->at[i].slice * WORDS_EACH_SLICE + w];
            atomic_fetch_or_explicit(word, batch->at[i].bits[w], memory_order_relaxed);
        }
    }
    if (err != ERR_OK) {
        return err;
    }
    ttcore_ledger_add(&shard->ledger->backing_written, batch->entries);
    if (!is_ending(b)) {
        uint64_t us = (clock_us() - batch->begin_us) * REST_FOR_WORK;
        rest(b, us < REST_MAX_US ? us : REST_MAX_US);
    }
    *batch = (struct batch){.begin_us = clock_us()};
    return ERR_OK;
}

/* Writes all buckets that are noted; ends at a flush. */
static enum err sweep_table(struct backing *b, struct backing_shard *shard, char *why)
{
    uint64_t slices = backing_slices(shard->results->buckets);
    struct batch batch = {.begin_us = clock_us()};
    enum err err = ERR_OK;
    for (uint64_t slice = 0; err == ERR_OK && slice < slices && !is_flushed(shard); slice++) {
        uint64_t *bits = batch.at[batch.count].bits;
        unsigned buckets = 0;
        for (unsigned w = 0; w < WORDS_EACH_SLICE; w++) {
            _Atomic uint64_t *word = &shard->ledger->unwritten[slice * WORDS_EACH_SLICE + w];
            bits[w] = atomic_load_explicit(word, memory_order_relaxed);
            if (bits[w] != 0) {
                bits[w] = atomic_exchange_explicit(word, 0, memory_order_acquire);
            }
            buckets += (unsigned)__builtin_popcountll(bits[w]);
        }
        if (buckets == 0) {
            continue;
        }
        batch.at[batch.count++].slice = slice;
        batch.buckets += buckets;
        batch.entries += backing_link_put(b->link, shard->own.place, slice, bits, shard->results,
                                          b->options.depth_min);
        if (batch.buckets >= BATCH_BUCKETS) {
            err = write_batch(b, shard, &batch, why);
        }
    }
    return err ? err : write_batch(b, shard, &batch, why);
}

static enum err sweep(struct backing *b, struct backing_shard *shard, char *why)
{
    struct ttcore_ledger *ledger = shard->ledger;
    enum err err = ERR_OK;

    /* 1. Forget what was flushed. */
    uint64_t flushed = ttcore_ledger_read(&ledger->flushed);
    if (is_flushed(shard)) {
        shard->own.stamp = clock_unique();
        err = backing_link_forget(b->link, &shard->own, why);
        err = err ? err : backing_link_forget(b->link, &shard->old, why);
        err = err ? err : backing_link_set_record(b->link, shard->name, &shard->own, why);
        if (err != ERR_OK) {
            return err;
        }
        shard->old = (struct backing_record){0};
        shard->flushed = flushed;
        set_again(shard, 1);
    }

    /* 2. Write what is new, or all of the table. */
    uint64_t deep = ttcore_ledger_read(&ledger->deep);
    bool again = ttcore_ledger_read(&ledger->again) != 0;
    if (!again && deep == ttcore_ledger_read(&ledger->backed)) {
        return ERR_OK;
    }
    for (uint64_t w = 0; again && w < ledger->words; w++) {
        atomic_store_explicit(&ledger->unwritten[w], UINT64_MAX, memory_order_relaxed);
    }
    err = sweep_table(b, shard, why);
    if (err == ERR_OK && is_flushed(shard)) {
        return ERR_OK; /* the next sweep begins with that */
    }

    /* 3. Then the record of another place goes, as all that it had is written. */
    if (err == ERR_OK && shard->old.place != 0) {
        err = backing_link_set_record(b->link, shard->name, &shard->own, why);
        err = err ? err : backing_link_forget(b->link, &shard->old, why);
    }
    if (err == ERR_OK) {
        shard->old = (struct backing_record){0};
        atomic_store_explicit(&ledger->backed, deep, memory_order_release);
        set_again(shard, 0);
    }
    return err;
}

/* The loop has ended with an error: the Redis may lack these results. */
static void say_unwritten(struct backing *b, const char *why)
{
    for (unsigned i = 0; i < b->options.shards; i++) {
        struct ttcore_ledger *ledger = b->shard[i].ledger;
        const uint64_t deep = ttcore_ledger_read(&ledger->deep);
        const uint64_t unwritten = ttcore_ledger_read(&ledger->again) != 0
                                       ? deep + ttcore_ledger_read(&ledger->restored)
                                       : deep - ttcore_ledger_read(&ledger->backed);
        if (unwritten > 0) {
            ttcore_ledger_add(&ledger->backing_lost, 1);
            log_line(b->options.program,
                     "--backing %s: up to %" PRIu64 " results of %s were not written: %s", b->where,
                     unwritten, b->shard[i].name, why);
        }
    }
}

static void *run(void *context)
{
    struct backing *b = context;
    enum err err = ERR_OK;
    char why[REDIS_WHY_MAX];
    (void)setpriority(PRIO_PROCESS, 0, NICE); /* of this thread, on Linux */
    for (bool ends = false; !ends;) {
        ends = is_ending(b); /* once more after that: the shards store no more */
        /* The PING finds a loss while there is nothing to write: what was written may be gone. */
        const bool was_lost = b->link == NULL;
        err = was_lost ? backing_link_open(&b->link, b->options.address, &b->end_by_us, why)
                       : backing_link_ping(b->link, why);
        for (unsigned i = 0; was_lost && err == ERR_OK && i < b->options.shards; i++) {
            err = take_over(b, &b->shard[i], why);
        }
        for (unsigned i = 0; err == ERR_OK && i < b->options.shards; i++) {
            err = sweep(b, &b->shard[i], why);
        }
        if (err != ERR_OK && err != ERR_FULL) { /* that is the time for the end */
            lose(b, why);
        } else if (b->is_down && err == ERR_OK) {
            log_line(b->options.program, "--backing %s: connected again, all is written", b->where);
            b->is_down = false;
        }
        rest(b, b->is_down ? RETRY_US : SWEEP_US);
    }
    if (err != ERR_OK) {
        say_unwritten(b, why);
    }
    return NULL;
}

/* ---- life ---- */

/* A Redis that was started with this process may still read its file. */
static enum err open_link(struct backing *b, char *why)
{
    uint64_t end_us = clock_us() + LOADING_WAIT_US;
    enum err err = backing_link_open(&b->link, b->options.address, &b->end_by_us, why);
    if (err == ERR_ABSENT) {
        log_line(b->options.program, "--backing %s: waiting until it has read its file", b->where);
    }
    while (err == ERR_ABSENT && clock_us() < end_us) {
        usleep(LOADING_RETRY_US);
        err = backing_link_open(&b->link, b->options.address, &b->end_by_us, why);
    }
    return err;
}

enum err backing_open(struct backing *b, const struct backing_options *options)
{
    char why[REDIS_WHY_MAX], hostname[HOSTNAME_MAX] = {0}, at[OPTIONS_HOST_MAX + 16];
    memset(b, 0, sizeof *b);
    b->options = *options;
    b->shard = calloc(options->shards, sizeof *b->shard);
    if (b->shard == NULL) {
        return ERR_NOMEM;
    }
    pthread_mutex_init(&b->mutex, NULL);
    clock_open_condition(&b->wake);
    redis_address_text(options->address, b->where);
    gethostname(hostname, sizeof hostname - 1);
    for (unsigned i = 0; i < options->shards; i++) {
        options_host_port_text(options->host, (uint16_t)(options->port + i), at, sizeof at);
        snprintf(b->shard[i].name, BACKING_NAME_MAX, "%s/%s", hostname, at);
    }
    enum err err = open_link(b, why);
    for (unsigned i = 0; err == ERR_OK && i < options->shards; i++) {
        err = backing_link_record(b->link, b->shard[i].name, &b->shard[i].own, why);
    }
    if (err != ERR_OK) {
        lose(b, why);
    }
    return ERR_OK;
}

enum err backing_attach(struct backing *b, unsigned index, struct tt_results *results,
                        struct ttcore_ledger *ledger, uint64_t place)
{
    struct backing_shard *shard = &b->shard[index];
    struct backing_record found = shard->own;
    char why[REDIS_WHY_MAX];
    ledger->words = backing_slices(results->buckets) * WORDS_EACH_SLICE;
    ledger->depth_min = b->options.depth_min;
    ledger->unwritten = calloc(ledger->words, sizeof *ledger->unwritten);
    if (ledger->unwritten == NULL) {
        return ERR_NOMEM;
    }
    shard->results = results;
    shard->ledger = ledger;
    shard->own = (struct backing_record){place, results->buckets, 0};
    if (b->link == NULL) {
        set_again(shard, 1);
        ttcore_ledger_add(&ledger->backing_lost, 1);
        return ERR_OK;
    }
    /* In a table of another size each bucket has entries of several buckets here. */
    set_again(shard, found.place != 0 && found.buckets != results->buckets);
    enum err err = found.place != 0 ? read_results(b, shard, &found, why) : ERR_OK;
    shard->is_read = err == ERR_OK;
    err = err ? err : claim(b, shard, &found, why);
    if (err != ERR_OK) {
        lose(b, why);
    }
    return ERR_OK;
}

bool backing_start(struct backing *b)
{
    b->is_running = signals_create_thread(&b->thread, run, b);
    return b->is_running;
}

void backing_end(struct backing *b)
{
    if (b->shard == NULL) {
        return;
    }
    if (b->is_running) {
        pthread_mutex_lock(&b->mutex);
        atomic_store(&b->end_by_us, clock_us() + BACKING_END_MS * UINT64_C(1000));
        pthread_cond_signal(&b->wake);
        pthread_mutex_unlock(&b->mutex);
        pthread_join(b->thread, NULL);
    }
    for (unsigned i = 0; i < b->options.shards; i++) {
        if (b->shard[i].ledger != NULL) {
            free(b->shard[i].ledger->unwritten);
            b->shard[i].ledger->unwritten = NULL;
        }
    }
    backing_link_close(&b->link);
    pthread_cond_destroy(&b->wake);
    pthread_mutex_destroy(&b->mutex);
    free(b->shard);
    memset(b, 0, sizeof *b);
}
