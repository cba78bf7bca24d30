/* keep_files: the results of each shard in a file (keep_file.h), read at start and written by a
 * thread of its own.
 *
 * Shard 0 has the file PATH, shard i PATH.i. A file that is refused is said in one line, and
 * renamed once the shard has its port. The thread walks the tables beside the shards every
 * `every_s` seconds, when asked to, and at the end; it works a fifth of the time, at low priority,
 * so that the shards do not wait for it. A failure is one line and counted.
 *
 * Threads: all calls belong to the main thread; the figures are the thread's (ledger.h). Memory:
 * allocates in open and while it writes. open, fill and end block on the disk. */
#ifndef TTSERVER_KEEP_KEEP_FILES_H
#define TTSERVER_KEEP_KEEP_FILES_H

#include "ttserver/keep/keep_file.h"

#include <pthread.h>

struct keep_files_options {
    const char *program; /* in the log; borrowed until end */
    const char *path; /* borrowed until end */
    unsigned shards;
    uint32_t every_s; /* positive */
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
/* Reads the file of a shard into its table, before the shard runs, or renames a refused one.
 * `place` is what the shard has. */
void keep_files_fill(struct keep_files *s, unsigned shard, struct tt_results *results,
                     struct ttcore_ledger *ledger, uint64_t place);
/* Starts the thread. False: it could not be. */
bool keep_files_start(struct keep_files *s);
/* Writes all files soon. */
void keep_files_write_now(struct keep_files *s);
/* Ends the thread and writes the last files, if the shards ran: after they ended. Frees; accepts a
 * zeroed struct, and twice. */
void keep_files_end(struct keep_files *s);

#endif
