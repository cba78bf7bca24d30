#include "ttserver/core/job_table.h"

#include <stdlib.h>
#include <string.h>

enum err ttcore_jobs_open(struct ttcore_jobs *jobs, uint32_t max)
{
    *jobs = (struct ttcore_jobs){.max = max, .slot = calloc(max, sizeof *jobs->slot)};
    return jobs->slot != NULL ? ERR_OK : ERR_NOMEM;
}

void ttcore_jobs_close(struct ttcore_jobs *jobs)
{
    free(jobs->slot);
    memset(jobs, 0, sizeof *jobs);
}

struct ttcore_job *ttcore_jobs_find(const struct ttcore_jobs *jobs, uint64_t id)
{
    for (uint32_t i = 0; i < jobs->max && jobs->open > 0; i++) {
        if (jobs->slot[i].is_open && jobs->slot[i].id == id) {
            return &jobs->slot[i];
        }
    }
    return NULL;
}

struct ttcore_job *ttcore_jobs_add(struct ttcore_jobs *jobs, const struct proto_message *post,
                                   uint32_t owner, uint64_t user, uint64_t now_us)
{
    struct ttcore_job *job = jobs->slot, *end = jobs->slot + jobs->max;
    CHECK(jobs->open < jobs->max);
    while (job < end && job->is_open) {
        job++;
    }
    CHECK_THAT(job < end, "jobs: a slot is free where not all are open");
    CHECK_THAT(owner != 0 && post->job.job != 0, "jobs: each has an owner and an id");
    struct proto_message message = *post;
    message.type = PROTO_JOB;
    message.job.user = user;
    job->length = (uint32_t)proto_encode(&message, job->bytes, sizeof job->bytes);
    CHECK(job->length > 0);
    job->is_open = true;
    job->id = post->job.job;
    job->owner = owner;
    job->depth = post->job.depth;
    job->has_bag = post->job.flags & PROTO_JOB_BAG;
    job->posted_us = now_us;
    job->found = (struct ttcore_found){.depth = 0};
    jobs->open++;
    return job;
}

void ttcore_jobs_remove(struct ttcore_jobs *jobs, struct ttcore_job *job)
{
    CHECK_THAT(job->is_open && jobs->open > 0, "jobs: what is removed is open");
    CHECK_THAT(jobs->orphans <= jobs->open, "jobs: an orphan is open");
    jobs->stopped[jobs->stops++ % TTCORE_STOPPED_MAX] =
        (struct ttcore_stopped){job->id, job->owner};
    job->is_open = false;
    jobs->open--;
}

void ttcore_jobs_take_report(struct ttcore_job *job, const struct proto_job_report *report,
                             bool by_owner)
{
    struct ttcore_found *found = &job->found;
    if (by_owner) {
        found->by_owner = true;
        found->nodes = report->nodes;
        found->duplicated = report->duplicated;
        found->abandoned = report->abandoned;
        found->bytes = report->bytes_sent + report->bytes_received;
        found->left_s = report->left_s;
    }
    bool is_possible = job->depth == PROTO_NO_LIMIT || report->depth <= job->depth;
    bool is_deeper = report->depth > found->depth;
    bool is_longer = report->depth == found->depth && report->line.length > found->length;
    if (report->depth > 0 && is_possible &&
        (by_owner || (!found->by_owner && (is_deeper || is_longer)))) {
        found->depth = report->depth;
        found->score = report->score;
        found->move = report->move;
        uint32_t length = report->line.length; /* of the longest beginning of whole words */
        if (length > TTCORE_LINE_MAX) {
            length = TTCORE_LINE_MAX;
            while (length > 0 && report->line.at[length] != ' ') {
                length--;
            }
        }
        found->length = (uint16_t)length;
        if (length > 0) {
            memcpy(found->line, report->line.at, length);
        }
    }
}

void ttcore_jobs_bar(struct ttcore_jobs *jobs, uint64_t id)
{
    jobs->barred[jobs->bars++ % TTCORE_BARRED_MAX] = id;
}

bool ttcore_jobs_is_barred(const struct ttcore_jobs *jobs, uint64_t id)
{
    bool is_barred = false;
    for (uint32_t i = 0; i < TTCORE_BARRED_MAX; i++) {
        is_barred = is_barred || jobs->barred[i] == id;
    }
    return is_barred;
}

const struct ttcore_stopped *ttcore_jobs_stopped(const struct ttcore_jobs *jobs, uint64_t id)
{
    for (uint32_t i = 1; i <= TTCORE_STOPPED_MAX; i++) {
        const struct ttcore_stopped *stopped =
            &jobs->stopped[(jobs->stops - i) % TTCORE_STOPPED_MAX];
        if (stopped->owner != 0 && stopped->id == id) {
            return stopped;
        }
    }
    return NULL;
}
