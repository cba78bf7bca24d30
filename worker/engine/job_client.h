/* job_client: how jobs travel between front-ends and workers: the job messages of a searcher's
 * client, and a bounded queue of what comes, because it comes in the middle of nodes, too, and is
 * looked at between them.
 *
 * Events beyond JOB_EVENTS_MAX are dropped and nothing is lost for good: of offers JOB_MISSED is
 * said, a source that fell silent is found by comparison, stops and reports are repeated.
 * Threads: the searcher's. Memory: some 0.4 MiB in open, of which it touches what it needs.
 * Blocking: none of the functions waits. */
#ifndef WORKER_ENGINE_JOB_CLIENT_H
#define WORKER_ENGINE_JOB_CLIENT_H

#include "worker/engine/job_event.h"
#include "worker/table/remote.h"

enum { JOB_EVENTS_MAX = 1024 };

struct job_client;

/* Over that remote, which is borrowed until close. ERR_NOMEM. */
enum err job_client_open(struct job_client **out, struct remote *remote);
/* Accepts NULL; nulls. */
void job_client_close(struct job_client **client);

/* Takes an event of the remote's client, if it is about jobs or shards. */
void job_client_event(struct job_client *client, const struct client_event *event);

/* Posts to every source, now or as soon as it is up, until the stop. Copies. As client_job_post. */
enum err job_client_post(struct job_client *client, const struct job *job);
void job_client_stop(struct job_client *client, uint64_t job);
void job_client_report(struct job_client *client, const struct proto_job_report *report);
/* The next event; false: none. */
bool job_client_poll(struct job_client *client, struct job_event *out);
/* Asks every source for all its open jobs anew. */
void job_client_refresh(struct job_client *client);
unsigned job_client_sources_up(const struct job_client *client);

#endif
