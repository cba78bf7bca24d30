/* keep_files: the results of each shard in a file, read at start and written by a thread of its
 * own.
 *
 * Shard 0 has the file PATH, shard i PATH.i. A file that was read and is torn, foreign or newer
 * (common/tt/snapshot.h) is said in one line and renamed to PATH.bad once the shard has its port;
 * the shard then begins with an empty table. One that cannot be read, or is no file, is left alone,
 * and the start fails; so it does where another process has the same file. The thread walks the
 * tables beside the shards every `every_s` seconds, when asked to, and at the end; it works a fifth
 * of the time, at low priority, so that the shards do not wait for it. A table that did not change
 * is not written again. A failure is one line and counted, and said again only when it is another.
 *
 * Threads: all calls belong to the main thread; the figures are the thread's (ledger.h). Memory:
 * allocates in open and while it writes. open, fill and end block on the disk. */
#ifndef TTSERVER_KEEP_KEEP_FILES_H
#define TTSERVER_KEEP_KEEP_FILES_H

#include "common/tt/snapshot.h"
#include "ttserver/core/ledger.h"

#include <pthread.h>
#include <stdbool.h>

struct keep_files_options {
    const char *program; /* in the log; borrowed until end */
    const char *path; /* borrowed until end */
    unsigned shards;
    uint32_t every_s; /* positive */
};

struct keep_file {
    char path[SNAPSHOT_PATH_MAX];
    int lock; /* descriptor; negative: none */
    struct snapshot_reader *reader; /* until fill */
    const struct tt_results *results; /* borrowed from fill to end */
    struct ttcore_ledger *ledger;
    uint64_t place;
    uint64_t written; /* ledger.changes as they were */
    bool is_whole; /* something was written, or read and nothing stored after */
    bool is_refused; /* until fill: `said` is why */
    bool is_off; /* a refused file could not be renamed: it is not overwritten */
    char said[SNAPSHOT_WHY_MAX]; /* the last failure; empty: none after the last success */
};

struct keep_files {
    struct keep_files_options options;
    struct keep_file *file; /* [shards] */
    pthread_t thread;
    bool is_running;
    pthread_mutex_t mutex; /* guards these two */
    bool is_wanted, is_ending;
    pthread_cond_t wake;
};

/* Locks the files and checks those that are there; changes none. ERR_NOMEM; the rest is said in one
 * line: ERR_RANGE: the path is too long; ERR_EXIST: another process has a file; ERR_IO. */
enum err keep_files_open(struct keep_files *s, const struct keep_files_options *options);
/* The place of the results in the file of a shard; 0: there is none. */
uint64_t keep_files_place(const struct keep_files *s, unsigned shard);
/* Reads the file of a shard into its table, before the shard runs, or renames a refused one.
 * `place` is what the shard has. ERR_IO, said in one line: the file was changed after open, or
 * cannot be read any more; part of it is in the table, which is not to be served. */
enum err keep_files_fill(struct keep_files *s, unsigned shard, struct tt_results *results,
                         struct ttcore_ledger *ledger, uint64_t place);
/* Starts the thread. False: it could not be. */
bool keep_files_start(struct keep_files *s);
/* Writes all files soon. */
void keep_files_write_now(struct keep_files *s);
/* Ends the thread and writes the last files, if the shards ran: after they ended. Frees; accepts a
 * zeroed struct, and twice. */
void keep_files_end(struct keep_files *s);

#endif
