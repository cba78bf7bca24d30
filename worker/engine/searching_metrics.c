#include "worker/engine/searching_metrics.h"

#include "common/log.h"
#include "common/metrics.h"

#include <stdlib.h>

struct searching_metrics {
    struct http *http;
    struct searching_metrics_options options;
    struct http_route route[3];
};

/* The sums over all searchers, without the fields that describe one search. */
static struct searcher_figures sum_up(const struct searching_metrics *m, unsigned *busy)
{
    struct searcher_figures sum = {.searches = 0};
    *busy = 0;
    if (m->options.past != NULL) {
        sum = *m->options.past;
    }
    for (unsigned i = 0; i < m->options.threads; i++) {
        struct searcher_figures t = searcher_figures(m->options.searcher(m->options.self, i));
        counters_add(&sum.all, &t.all);
        sum.timeouts += t.timeouts;
        sum.searches += t.searches;
        sum.shards_up = t.shards_up > sum.shards_up ? t.shards_up : sum.shards_up;
        *busy += t.is_busy;
    }
    return sum;
}

static unsigned answer_metrics(void *self, FILE *out)
{
    const struct searching_metrics *m = self;
    const struct metrics text = {out, m->options.program};
    unsigned busy;
    const struct searcher_figures sum = sum_up(m, &busy);
    metrics_one(&text, "threads", false, "Searching threads", m->options.threads);
    metrics_one(&text, "busy_threads", false, "Threads that search a job now", busy);
    metrics_one(&text, "shards", false, "Shards of the table, up or not", m->options.shards);
    metrics_one(&text, "shards_up", false, "Shards that answer", sum.shards_up);
    if (m->options.workers != NULL) {
        metrics_one(&text, "workers", false, "Threads of workers that help now",
                    m->options.workers(m->options.self));
    }
    metrics_one(&text, "searches", true, "Searches ended, by each thread", sum.searches);
    metrics_one(&text, "timeouts", true, "Requests to shards without an answer in time",
                sum.timeouts);
    metrics_one(&text, "waited_us", true, "Time that threads waited for shards", sum.all.waited_us);
    metrics_one(&text, "bytes_sent", true, "Bytes of messages to shards", sum.all.bytes_sent);
    metrics_one(&text, "bytes_received", true, "Bytes of messages from shards",
                sum.all.bytes_received);
    for (unsigned i = 0; i < COUNTERS_OF_SEARCH; i++) {
        metrics_one(&text, COUNTER_NAME[i].json, true, COUNTER_NAME[i].help, sum.all.at[i]);
    }
    metrics_process(&text);
    return 200;
}

static unsigned answer_health(void *self, FILE *out)
{
    const struct searching_metrics *m = self;
    unsigned busy;
    const unsigned up = sum_up(m, &busy).shards_up;
    fprintf(out, "%u of %u shards up, %u of %u threads search\n", up, m->options.shards, busy,
            m->options.threads);
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
        return err_say(ERR_NOMEM, why, HTTP_WHY_MAX, "%s", err_text(ERR_NOMEM));
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
    struct searching_metrics *m = *metrics;
    if (m != NULL) {
        http_close(&m->http);
        if (m->options.past != NULL) {
            unsigned busy;
            *m->options.past = sum_up(m, &busy);
            m->options.past->shards_up = 0;
        }
        free(m);
        *metrics = NULL;
    }
}
