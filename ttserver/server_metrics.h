/* server_metrics: what the shards of a process count, over HTTP: /metrics for Prometheus
 * (common/metrics.h) and /healthz, which says whether every shard serves.
 *
 * Shards leave their figures here once a second; nobody waits for anybody longer than it takes to
 * copy them. Threads: server_metrics_publish by the shard's thread, open and close by the main one;
 * answers are given by the HTTP server's. Memory: allocates in open. */
#ifndef TTSERVER_SERVER_METRICS_H
#define TTSERVER_SERVER_METRICS_H

#include "common/http.h"
#include "ttserver/core/figures.h"

#include <pthread.h>

enum {
    /* Readers of figures need no more, and others cannot take the descriptors of the shards. */
    SERVER_METRICS_CONNECTIONS = 16,
    SERVER_METRICS_EVERY_MS = 1000,
    SERVER_METRICS_STALE_MS = 5000, /* a shard that left nothing for so long does not serve */
};

/* One for each shard; zero: nothing was left yet. */
struct server_metrics_shard {
    pthread_mutex_t lock;
    struct ttcore_figures figures; /* under the lock, as is ... */
    uint64_t published_us; /* CLOCK_MONOTONIC */
    char address[OPTIONS_HOST_MAX + 16]; /* address of the shard: a label of its figures */
};

struct server_metrics {
    struct http *http;
    unsigned shards;
    struct server_metrics_shard *shard; /* NULL: there are no metrics */
    struct http_route route[3];
};

/* ERR_NOMEM. */
enum err server_metrics_open(struct server_metrics *metrics, unsigned shards);
/* From now on, with the shards' addresses filled in. Errors: http_open; `why` is for people. */
enum err server_metrics_serve(struct server_metrics *metrics,
                              const struct options_host_port *address, char why[HTTP_WHY_MAX]);
void server_metrics_publish(struct server_metrics_shard *shard,
                            const struct ttcore_figures *figures);
/* Accepts a zeroed struct, and twice. */
void server_metrics_close(struct server_metrics *metrics);

#endif
