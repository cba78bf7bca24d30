/* job_client: the job port over ttservers: a bounded queue that the protocol client fills while its
 * messages are read, and the client's job messages.
 *
 * Events beyond JOB_EVENTS_MAX are dropped and nothing is lost for good: of offers the port says
 * JOB_MISSED, a source that fell silent is found by comparison, stops and reports are repeated.
 * Threads: the searcher's. Memory: some 0.4 MiB in open, of which it touches what it needs. */
#ifndef WORKER_ENGINE_JOB_CLIENT_H
#define WORKER_ENGINE_JOB_CLIENT_H

#include "worker/engine/job_port.h"
#include "worker/table/remote.h"

enum { JOB_EVENTS_MAX = 1024 };

struct job_client;

enum err job_client_open(struct job_client **out);
/* Accepts NULL; nulls. */
void job_client_close(struct job_client **client);

/* For remote_options.sink. */
struct client_sink job_client_sink(struct job_client *client);
/* Over that remote, which is borrowed until close. */
struct job_port job_client_port(struct job_client *client, struct remote *remote);

#endif
