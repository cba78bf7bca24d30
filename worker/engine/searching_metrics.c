#include "worker/engine/searching_metrics.h"

#include "common/log.h"
#include "common/metrics.h"

#include <stdlib.h>

struct searching_metrics {
    struct http *http;
    struct searching_metrics_options options;
    struct http_route route[3];
};

struct sum {
    struct searcher_totals all;
    unsigned busy;
};

static struct sum sum_up(const struct searching_metrics *m)
{
    struct sum sum = {.busy = 0};
    for (unsigned i = 0; i < m->options.threads; i++) {
        struct searcher_totals t = searcher_totals(m->options.searcher(m->options.self, i));
#define X(name, json, help) sum.all.sum.name += t.sum.name;
        COUNTERS(X)
#undef X
        sum.all.waited_us += t.waited_us;
        sum.all.timeouts += t.timeouts;
        sum.all.bytes_sent += t.bytes_sent;
        sum.all.bytes_received += t.bytes_received;
        sum.all.searches += t.searches;
        sum.all.shards_up = t.shards_up > sum.all.shards_up ? t.shards_up : sum.all.shards_up;
        sum.busy += t.is_busy;
    }
    return sum;
}

static unsigned answer_metrics(void *self, FILE *out)
{
    const struct searching_metrics *m = self;
    const struct metrics text = {out, m->options.program};
    struct sum sum = sum_up(m);
    metrics_one(&text, "threads", false, "Searching threads", m->options.threads);
    metrics_one(&text, "busy_threads", false, "Threads that search a job now", sum.busy);
    metrics_one(&text, "shards", false, "Shards of the table, up or not", m->options.shards);
    metrics_one(&text, "shards_up", false, "Shards that answer", sum.all.shards_up);
    if (m->options.workers != NULL) {
        metrics_one(&text, "workers", false, "Threads of workers that help now",
                    m->options.workers(m->options.self));
    }
    metrics_one(&text, "searches", true, "Searches ended, by each thread", sum.all.searches);
    metrics_one(&text, "timeouts", true, "Requests to shards without an answer in time",
                sum.all.timeouts);
    metrics_one(&text, "waited_us", true, "Time that threads waited for shards", sum.all.waited_us);
    metrics_one(&text, "bytes_sent", true, "Bytes of messages to shards", sum.all.bytes_sent);
    metrics_one(&text, "bytes_received", true, "Bytes of messages from shards",
                sum.all.bytes_received);
#define X(name, json, help) metrics_one(&text, json, true, help, sum.all.sum.name);
    COUNTERS(X)
#undef X
    metrics_process(&text);
    return 200;
}

static unsigned answer_health(void *self, FILE *out)
{
    const struct searching_metrics *m = self;
    struct sum sum = sum_up(m);
    fprintf(out, "%u of %u shards up, %u of %u threads search\n", sum.all.shards_up,
            m->options.shards, sum.busy, m->options.threads);
    return 200;
}

enum err searching_metrics_open(struct searching_metrics **out,
                                const struct options_host_port *address,
                                const struct searching_metrics_options *options,
                                char why[HTTP_WHY_MAX])
{
    if (address->host[0] == '\0') {
        return ERR_OK;
    }
    struct searching_metrics *m = calloc(1, sizeof *m);
    if (m == NULL) {
        snprintf(why, HTTP_WHY_MAX, "%s", err_text(ERR_NOMEM));
        return ERR_NOMEM;
    }
    m->options = *options;
    m->route[0] = (struct http_route){
        .path = "/metrics", .content_type = METRICS_TYPE, .answer = answer_metrics, .self = m};
    m->route[1] = (struct http_route){
        .path = "/healthz", .content_type = "text/plain", .answer = answer_health, .self = m};
    const struct http_options http = {.address = address,
                                      .route = m->route,
                                      .connections_max = SEARCHING_METRICS_CONNECTIONS,
                                      .stop = options->stop};
    enum err err = http_open(&m->http, &http, why);
    if (err != ERR_OK) {
        free(m);
        return err;
    }
    log_line(options->says, "metrics at http://%s/metrics", http_address(m->http));
    *out = m;
    return ERR_OK;
}

void searching_metrics_close(struct searching_metrics **metrics)
{
    if (*metrics != NULL) {
        http_close(&(*metrics)->http);
        free(*metrics);
        *metrics = NULL;
    }
}
