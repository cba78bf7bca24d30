#include "ttserver/core/job_table.h"

#include <stdlib.h>
#include <string.h>

enum err ttcore_jobs_open(struct ttcore_jobs *jobs, uint32_t max)
{
    struct ttcore_jobs fresh = {.max = max};
    fresh.slot = calloc(max, sizeof *fresh.slot);
    fresh.bytes = calloc(max, sizeof *fresh.bytes);
    if (fresh.slot == NULL || fresh.bytes == NULL) {
        ttcore_jobs_close(&fresh);
        return ERR_NOMEM;
    }
    *jobs = fresh;
    return ERR_OK;
}

void ttcore_jobs_close(struct ttcore_jobs *jobs)
{
    free(jobs->slot);
    free(jobs->bytes);
    memset(jobs, 0, sizeof *jobs);
}

struct ttcore_job *ttcore_jobs_find(const struct ttcore_jobs *jobs, uint64_t id)
{
    for (uint32_t i = 0; i < jobs->max && jobs->open > 0; i++) {
        if (jobs->slot[i].length != 0 && jobs->slot[i].id == id) {
            return &jobs->slot[i];
        }
    }
    return NULL;
}

static struct ttcore_job *find_free(const struct ttcore_jobs *jobs)
{
    for (uint32_t i = 0; i < jobs->max; i++) {
        if (jobs->slot[i].length == 0) {
            return &jobs->slot[i];
        }
    }
    return NULL;
}

struct ttcore_job *ttcore_jobs_add(struct ttcore_jobs *jobs, const struct proto_message *post,
                                   uint32_t owner, uint64_t now_us)
{
    struct ttcore_job *job = find_free(jobs);
    if (job == NULL) {
        return NULL;
    }
    /* JOB and JOB_POST have the same fields in the same order: the union may be read as either. */
    struct proto_message message = *post;
    message.type = PROTO_JOB;
    size_t length = proto_encode(&message, jobs->bytes[job - jobs->slot], TTCORE_JOB_BYTES);
    CHECK(length > 0);
    *job = (struct ttcore_job){post->job_post.job, owner, (uint32_t)length, now_us, 0};
    jobs->open++;
    return job;
}

void ttcore_jobs_remove(struct ttcore_jobs *jobs, struct ttcore_job *job)
{
    CHECK(job->length != 0);
    jobs->stopped[jobs->stops++ % TTCORE_STOPPED_MAX] =
        (struct ttcore_stopped){job->id, job->owner};
    job->length = 0;
    jobs->open--;
}

uint32_t ttcore_jobs_stopped_owner(const struct ttcore_jobs *jobs, uint64_t id)
{
    for (uint32_t i = 0; i < TTCORE_STOPPED_MAX; i++) {
        if (jobs->stopped[i].owner != 0 && jobs->stopped[i].id == id) {
            return jobs->stopped[i].owner;
        }
    }
    return 0;
}
