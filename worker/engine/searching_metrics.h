/* searching_metrics: what the searchers of a process did, over HTTP: /metrics for Prometheus
 * (common/metrics.h), and /healthz, which says how many shards are up: without them a searcher
 * still works.
 *
 * Threads: open and close by the main one; answers are given by the HTTP server's, from what
 * searchers publish (searcher_figures). Memory: allocates in open. */
#ifndef WORKER_ENGINE_SEARCHING_METRICS_H
#define WORKER_ENGINE_SEARCHING_METRICS_H

#include "common/http.h"
#include "worker/engine/searcher.h"

enum { SEARCHING_METRICS_CONNECTIONS = 16 };

struct searching_metrics_options {
    const char *program; /* begins the names: "ttworker" */
    const char *says; /* the program, and command, that says on stderr where they are */
    unsigned threads, shards;
    /* Searcher i of `threads`; any thread, until close. */
    const struct searcher *(*searcher)(void *self, unsigned i);
    unsigned (*workers)(void *self); /* that help now; NULL: nobody helps */
    void *self;
    struct searcher_figures *past; /* of searchers closed before: counted with those here, whose
                                      totals close adds; borrowed until then; NULL: none */
    const atomic_bool *stop; /* http.h */
};

struct searching_metrics;

/* Copies the options. Where the address has no host nobody wants figures, and nothing is done.
 * Errors: http_open; `why` is for people. */
enum err searching_metrics_open(struct searching_metrics **out,
                                const struct options_host_port *address,
                                const struct searching_metrics_options *options,
                                char why[HTTP_WHY_MAX]);
/* Accepts a null; nulls. */
void searching_metrics_close(struct searching_metrics **metrics);
#endif
