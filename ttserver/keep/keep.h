/* keep: the results of the shards of a process outlive it: in files (keep_files.h), or in a Redis
 * (backing.h), or not at all.
 *
 * Threads: the main one. Memory: allocates in open and attach. open, attach and end may block on
 * the disk or the network. */
#ifndef TTSERVER_KEEP_KEEP_H
#define TTSERVER_KEEP_KEEP_H

#include "ttserver/core/core.h"
#include "ttserver/keep/backing.h"
#include "ttserver/keep/keep_files.h"

struct keep_options {
    const char *snapshot; /* path; NULL: no snapshots */
    uint32_t snapshot_every_s;
    const struct redis_address *backing; /* borrowed until end; NULL: none, or with a snapshot */
    uint32_t backing_depth;
};

struct keep_shard {
    uint64_t place; /* drawn, or that of the results that there are */
    struct ttcore_ledger ledger;
};

struct keep {
    unsigned shards; /* 0: nothing survives */
    bool has_snapshots, has_backing; /* at most one is set */
    struct keep_shard *shard;
    struct keep_files files;
    struct backing backing;
};

/* Finds what there is, before the shards open, the first at `listen`; changes nothing of it, as the
 * start may fail yet. False: said in one line. */
bool keep_open(struct keep *s, const char *program, const struct keep_options *options,
               const struct options_host_port *listen, unsigned shards);
/* What the core of shard `i` is opened with. */
void keep_core(struct keep *s, unsigned i, struct ttcore_options *core);
/* Fills the table of shard `i`, before it runs. False: said in one line. */
bool keep_attach(struct keep *s, const char *program, unsigned i, struct ttcore *core);
/* Once all are attached. False: a thread could not start. */
bool keep_start(struct keep *s);
/* Writes down now what is written from time to time. */
void keep_write_now(struct keep *s);
/* After the shards ended, before they are closed. Accepts a zeroed struct, and twice. */
void keep_end(struct keep *s);

#endif
