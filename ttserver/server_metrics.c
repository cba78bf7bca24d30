#include "ttserver/server_metrics.h"

#include "common/clock.h"
#include "common/metrics.h"

#include <stdlib.h>

static const char program[] = "ttserver";

struct sampled {
    struct ttcore_figures figures;
    bool is_fresh;
};

static bool is_fresh(const struct server_metrics_shard *s)
{
    return s->published_us != 0 &&
           clock_us() < s->published_us + SERVER_METRICS_STALE_MS * UINT64_C(1000);
}

/* ---- answers, by the HTTP server's thread ---- */

static unsigned answer_metrics(void *self, FILE *out)
{
    struct server_metrics *m = self;
    const struct metrics text = {out, program};
    struct sampled *at = calloc(m->shards, sizeof *at);
    if (at == NULL) {
        return 503;
    }
    for (unsigned i = 0; i < m->shards; i++) {
        pthread_mutex_lock(&m->shard[i].lock);
        at[i] = (struct sampled){m->shard[i].figures, is_fresh(&m->shard[i])};
        pthread_mutex_unlock(&m->shard[i].lock);
    }
    metrics_head(&text, "shard_serves", false, "1 while the shard's thread goes round");
    for (unsigned i = 0; i < m->shards; i++) {
        metrics_sample(&text, "shard_serves", false, "shard", m->shard[i].address, at[i].is_fresh);
    }
#define ALL(name, is_counter, help)                                            \
    metrics_head(&text, #name, is_counter, help);                              \
    for (unsigned i = 0; i < m->shards; i++) {                                 \
        metrics_sample(&text, #name, is_counter, "shard", m->shard[i].address, \
                       at[i].figures.name);                                    \
    }
#define X(name, help) ALL(name, true, help)
    TTCORE_COUNTERS(X, X)
    TTCORE_OUTSIDE(X, X)
    TTCORE_PARTS(X, X)
#undef X
#define X(name, help) ALL(name, false, help)
    TTCORE_GAUGES(X)
#undef X
#undef ALL
    metrics_process(&text);
    free(at);
    return 200;
}

static unsigned answer_health(void *self, FILE *out)
{
    struct server_metrics *m = self;
    unsigned serving = 0;
    for (unsigned i = 0; i < m->shards; i++) {
        pthread_mutex_lock(&m->shard[i].lock);
        serving += is_fresh(&m->shard[i]);
        pthread_mutex_unlock(&m->shard[i].lock);
    }
    fprintf(out, "%u of %u shards serve\n", serving, m->shards);
    return serving == m->shards ? 200 : 503;
}

/* ---- life ---- */

enum err server_metrics_open(struct server_metrics *m, unsigned shards)
{
    m->shard = calloc(shards, sizeof *m->shard);
    if (m->shard == NULL) {
        return ERR_NOMEM;
    }
    for (; m->shards < shards; m->shards++) {
        pthread_mutex_init(&m->shard[m->shards].lock, NULL);
    }
    return ERR_OK;
}

enum err server_metrics_serve(struct server_metrics *m, const struct options_host_port *address,
                              char why[HTTP_WHY_MAX])
{
    m->route[0] = (struct http_route){
        .path = "/metrics", .content_type = METRICS_TYPE, .answer = answer_metrics, .self = m};
    m->route[1] = (struct http_route){
        .path = "/healthz", .content_type = "text/plain", .answer = answer_health, .self = m};
    const struct http_options options = {
        .address = address, .route = m->route, .connections_max = SERVER_METRICS_CONNECTIONS};
    return http_open(&m->http, &options, why);
}

void server_metrics_publish(struct server_metrics_shard *s, const struct ttcore_figures *figures)
{
    pthread_mutex_lock(&s->lock);
    s->figures = *figures;
    s->published_us = clock_us();
    pthread_mutex_unlock(&s->lock);
}

void server_metrics_close(struct server_metrics *m)
{
    http_close(&m->http);
    while (m->shards > 0) {
        pthread_mutex_destroy(&m->shard[--m->shards].lock);
    }
    free(m->shard);
    m->shard = NULL;
}
