/* job_event: what a front-end or worker hears of jobs (job_client.h).
 *
 * Sources are numbered 0 ... JOB_SOURCES_MAX - 1: each keeps the open jobs by itself (a shard does)
 * and offers them to every worker, so a worker is offered a job by several sources.
 * Threads: a struct; that of who has it. */
#ifndef WORKER_ENGINE_JOB_EVENT_H
#define WORKER_ENGINE_JOB_EVENT_H

#include "proto/client/client.h"
#include "worker/engine/job.h"

enum { JOB_SOURCES_MAX = 64, JOB_WHY_MAX = 128 };

enum job_event_kind {
    JOB_OFFERED, /* the source has this job open; repeated at will */
    JOB_STOPPED, /* it has it no longer: its owner ended it, or the source does not know it */
    JOB_REPORTED, /* by a worker, on a job posted here; the same report comes from every source */
    JOB_REFUSED, /* the source does not take a job posted here; again whenever it is asked */
    JOB_SOURCE_UP, /* its open jobs follow */
    JOB_SOURCE_DOWN, /* it fell silent */
    JOB_INDEX, /* this worker's place among the workers of the source */
    JOB_MISSED, /* offers were dropped for want of room: job_client_refresh brings them again */
};

struct job_event {
    enum job_event_kind kind;
    unsigned source;
    struct job_offer offer; /* OFFERED */
    uint64_t job; /* STOPPED, REFUSED */
    char why[JOB_WHY_MAX]; /* REFUSED: the source's words, for people, as far as they fit */
    bool by_owner; /* STOPPED */
    struct proto_job_report report; /* REPORTED; without its line and its ... */
    char name[CLIENT_NAME_MAX + 1]; /* ... name: printable, one word */
    uint64_t sources; /* REPORTED: bit i: source i passed on this report, or an older one */
    uint32_t worker_index; /* INDEX: 0 ... workers - 1, without gaps */
    uint64_t source_id; /* INDEX: random, the same for every worker of this source */
};

#endif
