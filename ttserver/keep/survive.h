/* survive: the results of the shards of a process outlive it: in files (snapshots.h), or in a Redis
 * (backing.h), or not at all.
 *
 * Threads: the main one. Memory: allocates in open and attach. open, attach and end may block on
 * the disk or the network. */
#ifndef TTSERVER_KEEP_SURVIVE_H
#define TTSERVER_KEEP_SURVIVE_H

#include "ttserver/core/core.h"
#include "ttserver/keep/backing.h"
#include "ttserver/keep/snapshots.h"

struct survive_options {
    const char *snapshot; /* path; NULL: no snapshots */
    uint32_t snapshot_every_s;
    const struct redis_address *backing; /* borrowed until end; NULL: none, or with a snapshot */
    uint32_t backing_depth;
};

struct survive_shard {
    uint64_t place; /* drawn, or that of the results that there are */
    struct ttcore_survival survival;
};

struct survive {
    unsigned shards; /* 0: nothing survives */
    bool has_snapshots, has_backing; /* at most one is set */
    struct survive_shard *shard;
    struct snapshots snapshots;
    struct backing backing;
};

/* Finds what there is, before the shards open, the first at `listen`; changes nothing of it, as the
 * start may fail yet. False: said in one line. */
bool survive_open(struct survive *s, const char *program, const struct survive_options *options,
                  const struct options_host_port *listen, unsigned shards);
/* What the core of shard `i` is opened with. */
void survive_core(struct survive *s, unsigned i, struct ttcore_options *core);
/* Fills the table of shard `i`, before it runs. False: said in one line. */
bool survive_attach(struct survive *s, const char *program, unsigned i, struct ttcore *core);
/* Once all are attached. False: a thread could not start. */
bool survive_start(struct survive *s);
/* Writes down now what is written from time to time. */
void survive_write_now(struct survive *s);
/* After the shards ended, before they are closed. Accepts a zeroed struct, and twice. */
void survive_end(struct survive *s);

#endif
