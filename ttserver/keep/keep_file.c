#include "ttserver/keep/keep_file.h"

#include <stdio.h>
#include <string.h>

enum {
    READ_ENTRIES = 1024,
    BUCKETS_AT_A_TIME = 256, /* 16 KiB of the table */
};

/* ---- start ---- */

/* `said` is why. */
static void set_aside(struct keep_file *file)
{
    char aside[SNAPSHOT_WHY_MAX];
    file->is_off = snapshot_set_aside(file->disk, file->path, aside) != ERR_OK;
    snprintf(file->line, sizeof file->line, "%s: the shard starts empty; %s", file->said,
             file->is_off ? "the file could not be renamed, and there will be no snapshots"
                          : "the file is renamed to .bad");
    file->said[0] = '\0';
    file->is_refused = false;
}

enum err keep_file_open(struct keep_file *file, const struct disk_port *disk, const char *path,
                        unsigned i)
{
    memset(file, 0, sizeof *file);
    file->disk = disk;
    file->lock = -1;
    int length = i == 0 ? snprintf(file->path, sizeof file->path, "%s", path)
                        : snprintf(file->path, sizeof file->path, "%s.%u", path, i);
    enum err err = length >= (int)sizeof file->path
                       ? ERR_RANGE
                       : snapshot_lock(&file->lock, disk, file->path, file->said);
    err = err ? err : snapshot_open(&file->reader, disk, file->path, file->said);
    switch (err) {
    case ERR_PROTO:
    case ERR_VERSION:
        file->is_refused = true;
        return ERR_OK;
    case ERR_ABSENT:
        file->said[0] = '\0';
        return ERR_OK;
    case ERR_RANGE:
        snprintf(file->line, sizeof file->line, "a path has 1 to %d characters",
                 SNAPSHOT_PATH_MAX - 1);
        return err;
    case ERR_EXIST:
    case ERR_IO: /* there may be good results: it is neither renamed nor overwritten */
        snprintf(file->line, sizeof file->line, "%s", file->said);
        return err;
    default:
        return err;
    }
}

uint64_t keep_file_place(const struct keep_file *file)
{
    return file->reader != NULL ? snapshot_place(file->reader) : 0;
}

uint64_t keep_file_fill(struct keep_file *file, struct tt_results *results,
                        struct ttcore_ledger *ledger, uint64_t place)
{
    struct tt_scanned entry[READ_ENTRIES];
    uint64_t total = 0;
    size_t count = 1;
    enum err err = ERR_OK;
    file->results = results;
    file->ledger = ledger;
    file->place = place;
    file->line[0] = '\0';
    if (file->reader == NULL) {
        if (file->is_refused) {
            set_aside(file);
        }
        return 0;
    }
    while (err == ERR_OK && count > 0) {
        err = snapshot_next(file->reader, entry, READ_ENTRIES, &count, file->said);
        for (size_t i = 0; err == ERR_OK && i < count; i++) {
            tt_results_restore(results, &entry[i]);
        }
        total += err == ERR_OK ? count : 0;
    }
    snapshot_close(&file->reader);
    if (err != ERR_OK) { /* part of it is in the table, which must not be served */
        tt_results_clear(results);
        set_aside(file);
        return 0;
    }
    ttcore_ledger_add(&ledger->restored, total);
    file->is_whole = true;
    return total;
}

/* ---- writing ---- */

bool keep_file_write(struct keep_file *file)
{
    const struct tt_results *results = file->results;
    struct ttcore_ledger *ledger = file->ledger;
    char why[SNAPSHOT_WHY_MAX] = "";
    enum err err = ERR_OK;

    /* 1. Begin a snapshot, if none is under way and there is something new. */
    file->line[0] = '\0';
    if (file->writer == NULL) {
        file->changes = ttcore_ledger_read(&ledger->changes);
        file->flushed = ttcore_ledger_read(&ledger->flushed);
        if (file->is_off || (file->is_whole && file->changes == file->written)) {
            return false;
        }
        file->bucket = file->entries = 0;
        err = snapshot_create(&file->writer, file->disk, file->path, file->place, why);
    }

    /* 2. Write the next buckets. */
    const uint64_t left = results->buckets - file->bucket;
    const uint64_t end = file->bucket + (left < BUCKETS_AT_A_TIME ? left : BUCKETS_AT_A_TIME);
    for (; err == ERR_OK && file->bucket < end; file->bucket++) {
        for (unsigned slot = 0; err == ERR_OK && slot < TT_BUCKET_ENTRIES; slot++) {
            struct tt_scanned entry;
            if (tt_results_entry(results, file->bucket, slot, &entry)) {
                err = snapshot_add(file->writer, &entry, why);
                file->entries++;
            }
        }
    }
    if (err == ERR_OK && file->flushed != ttcore_ledger_read(&ledger->flushed)) {
        snapshot_abort(&file->writer); /* what was written before the flush must not come back */
        return true;
    }
    if (err == ERR_OK && file->bucket < results->buckets) {
        return true;
    }

    /* 3. The last are written, or it has failed: then another than before is told. */
    err = err ? err : snapshot_commit(&file->writer, why);
    if (err != ERR_OK) {
        snapshot_abort(&file->writer);
        ttcore_ledger_add(&ledger->snapshot_failures, 1);
        if (strcmp(why, file->said) != 0) {
            snprintf(file->line, sizeof file->line, "no snapshot: %s; the shard continues", why);
            snprintf(file->said, sizeof file->said, "%s", why);
        }
        return false;
    }
    if (file->said[0] != '\0') {
        snprintf(file->line, sizeof file->line, "%s: snapshots are written again", file->path);
        file->said[0] = '\0';
    }
    file->is_whole = true;
    file->written = file->changes;
    ttcore_ledger_add(&ledger->snapshots, 1);
    atomic_store_explicit(&ledger->snapshot_entries, file->entries, memory_order_release);
    return false;
}

void keep_file_close(struct keep_file *file)
{
    snapshot_abort(&file->writer);
    snapshot_close(&file->reader);
    if (file->disk != NULL && file->lock >= 0) {
        file->disk->close(file->disk->self, file->lock);
    }
    file->disk = NULL;
}
