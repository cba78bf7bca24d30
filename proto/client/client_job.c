#include "proto/client/client_state.h"

#include <string.h>

static struct stored_job *find(struct client *c, uint64_t job)
{
    for (unsigned i = 0; i < c->options.jobs; i++) {
        if (c->jobs[i].used && c->jobs[i].job.job == job) {
            return &c->jobs[i];
        }
    }
    return NULL;
}

/* Where there is no room now there may be later, and the post is repeated. A job that we may not
 * post stays so until the next session, except that a HELLO under way may say the role first. */
void client_job_on_error(struct client *c, unsigned shard, const struct proto_error *m)
{
    bool is_barred = m->code == PROTO_ERR_ROLE && !c->shards[shard].hello_owed;
    for (unsigned i = 0; i < c->options.jobs; i++) {
        struct stored_job *job = &c->jobs[i];
        bool is_meant = m->request != 0 && job->used && (uint32_t)job->job.job == m->request;
        if (is_meant && (is_barred || m->code == PROTO_ERR_LIMIT)) {
            job->barred |= (uint64_t)is_barred << shard;
            event_put(c, (struct client_event){.kind = CLIENT_JOB_REFUSED,
                                               .shard = shard,
                                               .refused = {job->job.job, &m->text}});
            return;
        }
    }
}

static bool send_post(struct client *c, unsigned shard, const struct stored_job *job)
{
    const struct proto_message m = {.type = PROTO_JOB_POST, .job = job->job};
    return client_send(c, shard, &m);
}

static bool send_stop(struct client *c, unsigned shard, uint64_t job)
{
    struct proto_message m = {.type = PROTO_JOB_STOP};
    m.job_stop.job = job;
    m.job_stop.reason = PROTO_STOP_OWNER;
    return client_send(c, shard, &m);
}

/* Workers wait for a message that the lane did not take: it does not wait for a heartbeat. */
static void repeat_later(struct client *c, unsigned shard, bool was_sent)
{
    struct shard *s = &c->shards[shard];
    s->job_due_us = c->now_us + (was_sent ? (uint64_t)s->heartbeat_ms * 1000 : UNSENT_PAUSE_MIN_US);
}

/* A stop is repeated for as long as a shard may be out for a few heartbeats; later the end of our
 * session there ends the job. */
static void send_all(struct client *c, unsigned shard, bool all_stops)
{
    const uint64_t fresh_us = (uint64_t)c->shards[shard].heartbeat_ms * 10000;
    bool was_sent = true, any = false;
    for (unsigned i = 0; i < c->options.jobs && was_sent; i++) {
        if (c->jobs[i].used && !(c->jobs[i].barred >> shard & 1)) {
            any = true;
            was_sent = send_post(c, shard, &c->jobs[i]);
        }
    }
    for (unsigned i = 0; i < STOPPED_MAX && was_sent; i++) {
        const struct stopped_job *stopped = &c->stopped[i];
        if (stopped->used && (all_stops || c->now_us - stopped->at_us < fresh_us)) {
            any = true;
            was_sent = send_stop(c, shard, stopped->job);
        }
    }
    c->shards[shard].job_due_us = UINT64_MAX;
    if (any) {
        repeat_later(c, shard, was_sent);
    }
}

/* It has just come up. A shard that was asleep still has our session, and jobs stopped meanwhile.
 */
void client_job_send_all(struct client *c, unsigned shard)
{
    for (unsigned i = 0; i < c->options.jobs; i++) {
        c->jobs[i].barred &= ~(UINT64_C(1) << shard);
    }
    send_all(c, shard, true);
}

uint64_t client_job_tick(struct client *c, unsigned shard)
{
    const struct shard *s = &c->shards[shard];
    if (c->now_us >= s->job_due_us) {
        send_all(c, shard, false);
    }
    return s->job_due_us;
}

enum err client_job_post(struct client *c, const struct proto_job *job, uint64_t now_us)
{
    struct stored_job *room = NULL;
    client_advance(c, now_us);
    if (find(c, job->job)) {
        return ERR_EXIST;
    }
    for (unsigned i = 0; i < c->options.jobs && !room; i++) {
        room = c->jobs[i].used ? NULL : &c->jobs[i];
    }
    if (!room) {
        return ERR_FULL;
    }
    room->job = *job;
    struct proto_text *text[] = {&room->job.game, &room->job.position, &room->job.algorithm};
    for (unsigned i = 0; i < sizeof text / sizeof *text; i++) {
        if (text[i]->length > PROTO_TEXT_MAX) {
            return ERR_RANGE;
        }
        if (text[i]->length > 0) { /* an empty text may be nowhere */
            memcpy(room->text[i], text[i]->at, text[i]->length);
        }
        text[i]->at = room->text[i];
    }
    room->used = true;
    room->barred = 0;
    for (unsigned i = 0; i < STOPPED_MAX; i++) {
        c->stopped[i].used = c->stopped[i].used && c->stopped[i].job != job->job;
    }
    for (unsigned i = 0; i < c->up_count; i++) {
        unsigned shard = c->owners[i].shard;
        repeat_later(c, shard, send_post(c, shard, room));
    }
    return ERR_OK;
}

void client_job_stop(struct client *c, uint64_t job, uint64_t now_us)
{
    struct stored_job *stored = find(c, job);
    client_advance(c, now_us);
    if (stored) {
        stored->used = false;
        c->stopped[c->next_stopped++ % STOPPED_MAX] =
            (struct stopped_job){.job = job, .at_us = c->now_us, .used = true};
    }
    for (unsigned i = 0; i < c->up_count; i++) {
        unsigned shard = c->owners[i].shard;
        if (!send_stop(c, shard, job)) {
            repeat_later(c, shard, false);
        }
    }
}

void client_job_report(struct client *c, const struct proto_job_report *report, uint64_t now_us)
{
    struct proto_message m = {.type = PROTO_JOB_REPORT, .job_report = *report};
    client_advance(c, now_us);
    for (unsigned i = 0; i < c->up_count; i++) {
        (void)client_send(c, c->owners[i].shard, &m);
    }
}
