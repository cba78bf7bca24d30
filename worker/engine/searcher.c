#include "worker/engine/searcher.h"

#include "worker/engine/mailbox.h"

#include "common/rng.h"

#include <string.h>

enum { NUMBERS = 1000 }; /* that a worker draws one of */

/* What comes for it besides results of nodes. */
static void take_event(void *self, const struct client_event *event)
{
    const struct searcher *p = self;
    if (p->jobs != NULL) {
        job_client_event(p->jobs, event);
    }
    if (p->mailboxes != NULL) {
        mailboxes_event(p->mailboxes, p->mailbox, event);
    }
    if (p->bag != NULL) {
        bag_inbox_event(p->bag, event);
    }
}

enum err searcher_open(struct searcher *p, const struct searcher_options *options)
{
    memset(p, 0, sizeof *p);
    p->index = options->index;
    p->poll_nodes = options->poll_nodes;
    p->is_fiber = options->is_fiber;
    p->bag = options->bag;
    p->local = (struct embedded_port){
        .table = options->table,
        .slot = (uint16_t)options->index,
        .inflight_depth_max = options->neighbours == 1 && !embedded_is_on_host(options->table)
                                  ? EMBEDDED_NEVER
                                  : EMBEDDED_INFLIGHT_DEPTH,
        .inflight_by_size = true,
        .place.name = (uint16_t)options->client.instance,
    };
    if (options->shell == NULL) {
        return ERR_OK;
    }
    struct remote_options remote = {
        .shell = *options->shell,
        .client = options->client,
        .events = {.self = p, .take = take_event},
        .local = &p->local,
        .share_depth = options->share_depth,
    };
    if (remote.client.rto_min_us == 0) {
        remote.client.rto_min_us = SEARCHER_RTO_MIN_US;
    }
    bool has_jobs = remote.client.role == PROTO_FRONT || remote.client.role == PROTO_WORKER;
    enum err err = remote_open(&p->remote, &remote);
    if (err == ERR_OK && has_jobs) {
        err = job_client_open(&p->jobs, p->remote);
    }
    if (err == ERR_OK && options->mailboxes != NULL) {
        p->mailboxes = options->mailboxes;
        p->mailbox = options->mailbox;
        mailboxes_connect(options->mailboxes, options->mailbox, p->remote, remote.client.instance);
    }
    return err;
}

void searcher_close(struct searcher *p)
{
    remote_close(&p->remote);
    job_client_close(&p->jobs);
    search_free(&p->search);
}

struct searcher_talk searcher_talk(const struct searcher *p)
{
    if (p->remote == NULL) {
        return (struct searcher_talk){0};
    }
    const struct client_counters *c = client_counters(remote_client(p->remote));
    return (struct searcher_talk){
        .waited_us = remote_waited_us(p->remote),
        .talked_us = remote_talked_us(p->remote),
        .bytes_sent = c->bytes_sent - p->sent_before,
        .bytes_received = c->bytes_received - p->received_before,
    };
}

/* Threads of a front-end are counted from the first, which breaks no ties. Workers do not know of
 * each other: their seed draws a number. */
static unsigned number_of(const struct searcher *p, uint64_t seed)
{
    const bool is_thread = p->remote == NULL || p->jobs == NULL;
    return seed == 0 ? 0 : is_thread ? p->index : SEARCH_AWAY + (unsigned)(rng_mix(seed) % NUMBERS);
}

static bool is_alone(const struct searcher *p)
{
    return embedded_slots(p->local.table) == 1 && !embedded_is_on_host(p->local.table);
}

enum err searcher_begin(struct searcher *p, const struct job *job, const struct env_port *env,
                        uint64_t seed)
{
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
        .number = number_of(p, seed),
        .depth_limit = job_last_iteration(job),
        .root_move = job->root_move,
        .root_moves = job->root_moves,
        .lines = job->lines,
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
    search_set_limits(p->search, &options, env);
    search_set_position(p->search, job->position);
    /* Results of a bag's positions before are of no use: where nobody else searches by them. */
    embedded_begin(&p->local, job->is_next && is_alone(p) ? 0 : job->id, job->namespace_id);
    if (p->remote != NULL) {
        const struct client_counters *c = client_counters(remote_client(p->remote));
        p->sent_before = c->bytes_sent;
        p->received_before = c->bytes_received;
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
        atomic_store_explicit(&p->total.timeouts, c->timeouts, memory_order_relaxed);
        atomic_store_explicit(&p->total.bytes_sent, c->bytes_sent, memory_order_relaxed);
        atomic_store_explicit(&p->total.bytes_received, c->bytes_received, memory_order_relaxed);
    }
}

void searcher_publish(struct searcher *p)
{
    const struct search_counters *c = search_counters(p->search);
#define X(name, json, help) \
    atomic_store_explicit(&p->total.name, p->done.name + c->name, memory_order_relaxed);
    COUNTERS(X)
#undef X
#define X(name, json, help) atomic_store_explicit(&p->name, c->name, memory_order_relaxed);
    COUNTERS(X)
#undef X
    atomic_store_explicit(&p->depth, search_iteration(p->search), memory_order_relaxed);
    if (p->remote != NULL) {
        const struct searcher_talk talk = searcher_talk(p);
#define X(name) atomic_store_explicit(&p->name, talk.name, memory_order_relaxed);
        COUNTERS_OF_TALK(X)
#undef X
        atomic_store_explicit(&p->total.waited_us, p->done_waited_us + talk.waited_us,
                              memory_order_relaxed);
        atomic_store_explicit(&p->remote_depth, remote_depth_now(p->remote), memory_order_relaxed);
    }
    searcher_publish_shards(p);
}

void searcher_end(struct searcher *p)
{
    const struct search_counters *c = search_counters(p->search);
    searcher_publish(p);
#define X(name, json, help) p->done.name += c->name;
    COUNTERS(X)
#undef X
    p->done_waited_us += p->remote != NULL ? remote_waited_us(p->remote) : 0;
    atomic_store_explicit(&p->total.is_busy, false, memory_order_relaxed);
    atomic_fetch_add_explicit(&p->total.searches, 1, memory_order_relaxed);
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
    p->table.serve(p->table.self, search, now_us);
    atomic_store_explicit(&p->total.is_busy, true, memory_order_relaxed);
    searcher_publish(p);
}

void searcher_extend_line(const struct searcher *p, const struct job *job, struct search_line *line,
                          unsigned want)
{
    unsigned made = 0;
    const bool is_own = !algorithm_needs_peers(job->algorithm); /* else others may say anything */
    for (; made < line->length; made++) {
        if (!is_own && !game_is_legal(job->game, job->position, line->move[made])) {
            line->length = (uint16_t)made;
            break;
        }
        job->game->make(job->position, line->move[made]);
    }
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
    while (made > 0) {
        job->game->unmake(job->position, line->move[--made]);
    }
}

struct searcher_figures searcher_figures(const struct searcher *p)
{
    return (struct searcher_figures){
#define X(name, json, help) .sum.name = atomic_load_explicit(&p->name, memory_order_relaxed),
        COUNTERS(X)
#undef X
#define X(name) .talk.name = atomic_load_explicit(&p->name, memory_order_relaxed),
            COUNTERS_OF_TALK(X)
#undef X
                .depth = atomic_load_explicit(&p->depth, memory_order_relaxed),
        .remote_depth = atomic_load_explicit(&p->remote_depth, memory_order_relaxed),
        .shards_up = atomic_load_explicit(&p->shards_up, memory_order_relaxed),
    };
}

struct searcher_totals searcher_totals(const struct searcher *p)
{
    return (struct searcher_totals){
#define X(name, json, help) .sum.name = atomic_load_explicit(&p->total.name, memory_order_relaxed),
        COUNTERS(X)
#undef X
            .waited_us = atomic_load_explicit(&p->total.waited_us, memory_order_relaxed),
        .timeouts = atomic_load_explicit(&p->total.timeouts, memory_order_relaxed),
        .bytes_sent = atomic_load_explicit(&p->total.bytes_sent, memory_order_relaxed),
        .bytes_received = atomic_load_explicit(&p->total.bytes_received, memory_order_relaxed),
        .searches = atomic_load_explicit(&p->total.searches, memory_order_relaxed),
        .is_busy = atomic_load_explicit(&p->total.is_busy, memory_order_relaxed),
        .shards_up = atomic_load_explicit(&p->shards_up, memory_order_relaxed),
    };
}
