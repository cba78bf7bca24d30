#include "worker/engine/searcher.h"

#include "common/rng.h"

#include <string.h>

enum { NUMBERS = 1000 }; /* that a worker draws one of */

enum err searcher_open(struct searcher *p, const struct searcher_options *options)
{
    memset(p, 0, sizeof *p);
    p->index = options->index;
    p->poll_nodes = options->poll_nodes;
    p->is_fiber = options->is_fiber;
    p->is_thread = options->lane == NULL || options->client.role == PROTO_CLIENT;
    p->local = (struct embedded_port){
        .table = options->table,
        .slot = (uint16_t)options->index,
        .inflight_depth_max = options->neighbours == 1 && !embedded_is_on_host(options->table)
                                  ? EMBEDDED_NEVER
                                  : EMBEDDED_INFLIGHT_DEPTH,
        .inflight_by_size = true,
        .place.name = (uint16_t)options->client.instance,
    };
    if (options->lane == NULL) {
        return ERR_OK;
    }
    struct remote_options remote = {
        .lane = *options->lane,
        .client = options->client,
        .events = options->events,
        .local = &p->local,
        .share_depth = options->share_depth,
    };
    if (remote.client.rto_min_us == 0) {
        remote.client.rto_min_us = SEARCHER_RTO_MIN_US;
    }
    return remote_open(&p->remote, &remote);
}

void searcher_close(struct searcher *p)
{
    remote_close(&p->remote);
    search_free(&p->search);
}

struct counters searcher_counters(const struct searcher *p)
{
    struct counters c = *search_counters(p->search);
    if (p->remote != NULL) {
        const struct client_counters *client = client_counters(remote_client(p->remote));
        c.waited_us = remote_waited_us(p->remote);
        c.talked_us = remote_talked_us(p->remote);
        c.bytes_sent = client->bytes_sent - p->before.bytes_sent;
        c.bytes_received = client->bytes_received - p->before.bytes_received;
    }
    return c;
}

enum err searcher_begin(struct searcher *p, const struct job *job, const struct env_port *env,
                        uint64_t seed)
{
    const bool is_alone =
        embedded_slots(p->local.table) == 1 && !embedded_is_on_host(p->local.table);
    /* Threads of a front-end are counted from the first, which breaks no ties. Workers do not know
     * of each other: their seed draws a number. */
    struct search_options options = {
        .game = job->game,
        .algorithm = job->algorithm,
        .strict = job->strict,
        .full = job->full,
        .keeps_endings = job->keeps_endings,
        .seed = seed,
        .random_order = p->remote != NULL && !job->waits,
        .namespace_id = job->namespace_id,
        .slot = (uint16_t)p->index,
        .searchers = embedded_slots(p->local.table),
        .number = seed == 0      ? 0
                  : p->is_thread ? p->index
                                 : SEARCH_AWAY + (unsigned)(rng_mix(seed) % NUMBERS),
        .depth_limit = job_last_iteration(job),
        .root_move = job->root_move,
        .root_moves = job->root_moves,
        .lines = job->lines,
        .only_ties = job->only_ties,
        .poll_nodes = p->poll_nodes,
    };
    p->local.score_max = job->game->score_max;
    p->local.is_strict = job->strict;
    p->local.is_full = job->full;
    p->local.results_only = !job->algorithm->counts_inflight;
    p->table = p->remote != NULL ? remote_table_port(p->remote) : embedded_table_port(&p->local);
    if (p->search != NULL && p->game != job->game) {
        search_free(&p->search);
    }
    if (p->search == NULL) {
        if (job->game->solver_size != NULL) {
            options.solver_memory = embedded_solver_memory(p->local.table, job->game->solver_size(),
                                                           job->game->solver_layout);
        }
        enum err err = search_open(&p->search, &options, &p->table, env);
        if (err != ERR_OK) {
            return err;
        }
        p->game = job->game;
    }
    CHECK_THAT(p->game == job->game, "a search is of its job's game");
    search_set_limits(p->search, &options, env);
    search_set_position(p->search, job->position);
    /* Results of a bag's positions before are of no use: where nobody else searches by them. */
    embedded_begin(&p->local, job->is_next && is_alone ? 0 : job->id, job->namespace_id);
    p->before = counters_read(&p->all);
    if (p->remote != NULL) {
        const struct client_counters *c = client_counters(remote_client(p->remote));
        p->before.bytes_sent = c->bytes_sent;
        p->before.bytes_received = c->bytes_received;
        if (!job->is_next) {
            remote_hello(p->remote, job->namespace_id);
        }
        remote_begin(p->remote, job->remote_depth, job->algorithm->uses_shards, job->waits);
        if (job->alone_ms > 0) {
            remote_keep_alone(p->remote, remote_now_us(p->remote) + job->alone_ms * UINT64_C(1000));
        }
    }
    searcher_publish(p);
    return ERR_OK;
}

void searcher_publish_shards(struct searcher *p)
{
    if (p->remote != NULL) {
        const struct client_counters *c = client_counters(remote_client(p->remote));
        atomic_store_explicit(&p->shards_up, client_shards_up(remote_client(p->remote)),
                              memory_order_relaxed);
        atomic_store_explicit(&p->timeouts, c->timeouts, memory_order_relaxed);
        atomic_store_explicit(&p->all.at[COUNTER_bytes_sent], c->bytes_sent, memory_order_relaxed);
        atomic_store_explicit(&p->all.at[COUNTER_bytes_received], c->bytes_received,
                              memory_order_relaxed);
    }
}

void searcher_publish(struct searcher *p)
{
    const struct counters now = searcher_counters(p);
    struct counters all = p->before;
    counters_add(&all, &now);
    CHECK_THAT(all.nodes >= p->before.nodes, "totals only grow");
    counters_publish(&p->now, &now);
    counters_publish(&p->all, &all);
    atomic_store_explicit(&p->depth, search_iteration(p->search), memory_order_relaxed);
    if (p->remote != NULL) {
        atomic_store_explicit(&p->remote_depth, remote_depth_now(p->remote), memory_order_relaxed);
    }
    searcher_publish_shards(p);
}

void searcher_end(struct searcher *p)
{
    searcher_publish(p);
    atomic_store_explicit(&p->nodes_left, 0, memory_order_relaxed);
    atomic_store_explicit(&p->is_busy, false, memory_order_relaxed);
    atomic_fetch_add_explicit(&p->searches, 1, memory_order_relaxed);
    if (!p->is_fiber) {
        embedded_end_placement(&p->local);
    }
    if (p->remote != NULL) {
        remote_flush(p->remote);
    }
}

void searcher_serve(struct searcher *p, struct search *search, uint64_t now_us)
{
    if (!p->is_fiber) {
        embedded_update_placement(&p->local, now_us);
    }
    if (p->remote != NULL) {
        remote_serve(p->remote, search, now_us);
    } else {
        embedded_serve(&p->local, search);
    }
    atomic_store_explicit(&p->is_busy, true, memory_order_relaxed);
    searcher_publish(p);
    atomic_store_explicit(&p->nodes_left, search_nodes_left(search), memory_order_relaxed);
}

enum err searcher_post(struct searcher *p, const struct job *job)
{
    const struct proto_job wire = job_to_wire(job);
    return client_job_post(remote_client(p->remote), &wire, remote_now_us(p->remote));
}

void searcher_stop(struct searcher *p, uint64_t job)
{
    client_job_stop(remote_client(p->remote), job, remote_now_us(p->remote));
}

void searcher_report(struct searcher *p, const struct proto_job_report *report)
{
    client_job_report(remote_client(p->remote), report, remote_now_us(p->remote));
}

void searcher_extend_line(const struct searcher *p, const struct job *job, struct search_line *line,
                          unsigned want)
{
    unsigned made = job_make_line(job, line, line->length); /* others may say anything */
    line->length = (uint16_t)made;
    for (; made > 0 && made < want && made < SEARCH_PV_MAX; made++) {
        const struct tt_ask ask = {.key = job->game->key(job->position) ^ job->namespace_id,
                                   .alpha = TT_SCORE_MIN,
                                   .beta = TT_SCORE_MAX};
        struct tt_answer known = {.move = 0};
        (void)embedded_find(p->local.table, &ask, &known);
        if (known.move == 0 || !game_is_legal(job->game, job->position, known.move)) {
            break;
        }
        line->move[line->length++] = known.move;
        job->game->make(job->position, known.move);
    }
    job_unmake_line(job, line, made);
}

struct searcher_figures searcher_figures(const struct searcher *p)
{
    return (struct searcher_figures){
        .now = counters_read(&p->now),
        .all = counters_read(&p->all),
        .timeouts = atomic_load_explicit(&p->timeouts, memory_order_relaxed),
        .searches = atomic_load_explicit(&p->searches, memory_order_relaxed),
        .is_busy = atomic_load_explicit(&p->is_busy, memory_order_relaxed),
        .depth = atomic_load_explicit(&p->depth, memory_order_relaxed),
        .nodes_left = atomic_load_explicit(&p->nodes_left, memory_order_relaxed),
        .remote_depth = atomic_load_explicit(&p->remote_depth, memory_order_relaxed),
        .shards_up = atomic_load_explicit(&p->shards_up, memory_order_relaxed),
    };
}
