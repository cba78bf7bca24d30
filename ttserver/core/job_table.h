/* ttcore_jobs: the table of a shard's open jobs, each kept as the JOB message its workers get.
 *
 * A slot is free, owned (by a live session) or orphaned (its owner ended in this step; the step
 * drops it before it returns). Threads: the core's owner. Memory: allocates in open only. */
#ifndef TTSERVER_CORE_JOB_TABLE_H
#define TTSERVER_CORE_JOB_TABLE_H

#include "common/err.h"
#include "ttserver/core/actions.h"

#include <stdbool.h>
#include <stdint.h>

enum { TTCORE_STOPPED_MAX = 64, TTCORE_BARRED_MAX = 64, TTCORE_LINE_MAX = 512 };

/* The result so far, for people. */
struct ttcore_found {
    bool by_owner; /* the owner has reported; from then on only its reports count */
    uint8_t depth; /* the deepest iteration reported; 0: none */
    int16_t score;
    uint16_t move, length;
    uint64_t nodes; /* from the owner, as the next line; 0: no report yet */
    uint64_t duplicated, abandoned, bytes;
    uint32_t left_s;
    char line[TTCORE_LINE_MAX];
};

struct ttcore_job {
    uint64_t id;
    bool is_open; /* false: the slot is free */
    uint32_t owner; /* session id; 0 of an open one: orphaned */
    uint8_t depth; /* as posted; PROTO_NO_LIMIT */
    bool has_bag; /* letters bring its positions */
    uint64_t posted_us;
    struct ttcore_found found;
    uint32_t length;
    uint8_t bytes[PROTO_JOB_BYTES]; /* its JOB */
};

struct ttcore_stopped {
    uint64_t id;
    uint32_t owner; /* session id; 0: the place is free */
};

struct ttcore_jobs {
    struct ttcore_job *slot;
    uint32_t max, open, orphans;
    struct ttcore_stopped stopped[TTCORE_STOPPED_MAX]; /* a ring of the last */
    uint32_t stops;
    uint64_t barred[TTCORE_BARRED_MAX]; /* a ring of its own, which no other stop can fill */
    uint32_t bars;
};

/* ERR_NOMEM. */
enum err ttcore_jobs_open(struct ttcore_jobs *jobs, uint32_t max);
/* Accepts a zeroed struct, and twice. */
void ttcore_jobs_close(struct ttcore_jobs *jobs);

/* NULL when there is no such job. */
struct ttcore_job *ttcore_jobs_find(const struct ttcore_jobs *jobs, uint64_t id);
/* Needs a free slot and a JOB_POST whose id is not in the table. `user` goes into the JOB. */
struct ttcore_job *ttcore_jobs_add(struct ttcore_jobs *jobs, const struct proto_message *post,
                                   uint32_t owner, uint64_t user, uint64_t now_us);
void ttcore_jobs_remove(struct ttcore_jobs *jobs, struct ttcore_job *job);
/* Takes what a report adds: a deeper iteration or a longer line; from the owner, everything. */
void ttcore_jobs_take_report(struct ttcore_job *job, const struct proto_job_report *report,
                             bool by_owner);
/* Keeps this id from being posted again. */
void ttcore_jobs_bar(struct ttcore_jobs *jobs, uint64_t id);
bool ttcore_jobs_is_barred(const struct ttcore_jobs *jobs, uint64_t id);
/* Finds the last removal of a job; NULL if it is too long ago. */
const struct ttcore_stopped *ttcore_jobs_stopped(const struct ttcore_jobs *jobs, uint64_t id);

#endif
