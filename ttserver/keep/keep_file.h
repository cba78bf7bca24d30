/* keep_file: the results of a shard in a file (common/tt/snapshot.h): read when it starts, written
 * piece by piece while it runs.
 *
 * A file that was read and is torn, damaged, foreign or newer is renamed to PATH.bad, and the shard
 * begins with an empty table. One that cannot be opened, or is no file, is left alone, and the
 * start fails; so it does where another process has the same file. A table that did not change is
 * not written again.
 *
 * Every call sets `line`: what it has to tell people, or nothing. A failure is told when it is
 * another than the one before.
 *
 * It starts no thread and reads no clock: keep_files.h does, and the virtual cluster has its own.
 * Threads: one at a time for a file; the shard may run beside `write`. Memory: allocates a reader
 * in open, until fill or close, and a writer while it writes. Blocking: on the disk, which it
 * borrows. */
#ifndef TTSERVER_KEEP_KEEP_FILE_H
#define TTSERVER_KEEP_KEEP_FILE_H

#include "common/tt/snapshot.h"
#include "ttserver/core/ledger.h"

#include <stdbool.h>

enum { KEEP_FILE_LINE_MAX = SNAPSHOT_WHY_MAX + 128 };

struct keep_file {
    /* fixed after open; from fill to close */
    const struct disk_port *disk; /* NULL: it is closed */
    char path[SNAPSHOT_PATH_MAX]; /* of a symbolic link, the file that it led to at open */
    int lock; /* descriptor; negative: none */
    const struct tt_results *results; /* borrowed */
    struct ttcore_ledger *ledger; /* borrowed */
    uint64_t place;
    /* state */
    struct snapshot_reader *reader; /* until fill */
    struct snapshot_writer *writer; /* of the snapshot that is being written; NULL: none */
    uint64_t bucket, entries; /* of it: the next one, those so far */
    uint64_t changes, written; /* ledger.changes when it began; when the last one did */
    uint64_t flushed; /* ledger.flushed when it began */
    bool is_whole; /* something was written, or read and nothing stored after */
    bool is_refused; /* until fill: `said` is why */
    bool is_off; /* a refused file could not be renamed: it is not overwritten */
    char said[SNAPSHOT_WHY_MAX]; /* the last failure; empty: none after the last success */
    char line[KEEP_FILE_LINE_MAX];
};

/* Locks the file of shard `i`, PATH or, from 1 on, PATH.i, and checks it if it is there; changes
 * nothing of it. ERR_NOMEM; with a line ERR_RANGE: the path is too long; ERR_EXIST: another process
 * has the file; ERR_IO. To be closed in any case. */
enum err keep_file_open(struct keep_file *file, const struct disk_port *disk, const char *path,
                        unsigned i);
/* The place of the results in the file; 0: there are none. */
uint64_t keep_file_place(const struct keep_file *file);
/* Reads the file into the table of the shard, which does not run yet, or renames a refused one:
 * also one that was damaged since open. Returns how many results were read. `place` is what the
 * shard has. */
uint64_t keep_file_fill(struct keep_file *file, struct tt_results *results,
                        struct ttcore_ledger *ledger, uint64_t place);
/* Writes some more of the snapshot, or begins one if the table has changed. Whether there is more
 * to write: the rest, by further calls. */
bool keep_file_write(struct keep_file *file);
/* Drops what is being written; accepts a zeroed struct, and twice. */
void keep_file_close(struct keep_file *file);

#endif
