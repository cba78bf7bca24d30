/* lab: the virtual cluster. The search, the tables, the client, the worker, the front-end's job
 * logic and the shard's core run for real, under a virtual clock: a worker is a fiber, the network
 * a model, a node costs a fixed time (docs/design.md).
 *
 * A front-end posts its jobs to the shards, the workers are offered them, and all that happens
 * between is messages. Discrete events in order of virtual time. A fiber computes ahead of the
 * clock up to its next poll, and waits there until everything earlier has happened: causality is
 * exact to the poll. What a game's own solver searches takes as long a node, and polls as often,
 * but for the last squares, which it counts together. Everything is drawn from one seed: the same
 * options give the same trace, event for event, on any build. Threads: one at a time. Memory: some
 * 0.6 MiB a worker plus its table.
 *
 * Measures (Weill 1996, section 3.1), T(1), nodes(1) from the run with one worker:
 *   speedup S = T(1) / T(N); efficiency = S / N;
 *   search overhead = nodes(N) / nodes(1) - 1;
 *   communication overhead = (time N workers waited for shards - time one waited) / T(1);
 *   synchronization overhead = time overhead N T(N)/T(1) - 1 less the two others. */
#ifndef WORKER_LAB_LAB_H
#define WORKER_LAB_LAB_H

#include "worker/engine/job.h"
#include "worker/search/search.h"

enum {
    LAB_WORKERS_MAX = 4096,
    LAB_SHARDS_MAX = 64,
    LAB_FRONTS_MAX = 8,
    LAB_POSTS_MAX = 16,
};

/* Ways between workers and shards. */
enum lab_way { LAB_TO_SHARDS = 1, LAB_TO_WORKERS = 2, LAB_BOTH_WAYS = 3 };

/* A front-end posts its jobs in the order of the list, one after the other. One that was killed and
 * started anew begins anew. */
struct lab_post {
    const struct job *job; /* game, position, algorithm, strict, full, depth, remote_depth, waits,
                              namespace_id */
    unsigned front;
    uint64_t at_ns; /* not before */
    uint64_t stop_ns; /* after so long it is stopped without an answer; 0: never */
};

struct lab_hooks;

struct lab_options {
    const struct job *job; /* where there are no posts: the only one */
    const struct lab_post *post; /* borrowed */
    unsigned posts; /* at most LAB_POSTS_MAX */
    unsigned workers; /* searchers, the first front-end included, 1..LAB_WORKERS_MAX */
    uint32_t threads; /* that search on a host and share its table [1]; the first front-end and the
                         workers fill one host after the other, other front-ends have one each */
    uint32_t fronts; /* the others come in addition to `workers` [1] */
    unsigned shards; /* 1..LAB_SHARDS_MAX */
    uint64_t seed;
    uint64_t node_ns; /* search time of a node, at least 1 */
    uint64_t rtt_ns; /* time of the network, there and back */
    uint64_t jitter_ns; /* added to each way, uniform in 0..jitter */
    uint64_t service_ns; /* of a shard per message it takes, and per further one that it sends */
    uint64_t service_operation_ns; /* ... and per operation in it */
    uint64_t message_ns; /* of a worker per message it sends, the answer to it included; half of it
                            for results of others, which they send by themselves */
    uint64_t operation_ns; /* ... and per operation in it */
    uint32_t poll_ns; /* of search between two polls, after which a worker takes its messages; 0:
                         50 us. In whole nodes, 1 to 256. Threads of a host take messages of the
                         searchers every 3 us all the same */
    uint64_t bandwidth; /* of a host's network card, bytes a second each way; 0: no bound. Shard i
                           is on host i, or begins again with the first */
    uint32_t loss_ppm; /* messages lost in a million */
    uint64_t results_bytes; /* memory of all shards together */
    uint64_t local_bytes; /* memory of each host */
    uint8_t share_depth; /* results of at least this depth are broadcast; 0: none */
    uint64_t limit_ns; /* virtual time after which no answer counts as none */
    struct counters *contribution; /* of each host: what its searchers did in all their searches, in
                                      virtual time, added to what is there; borrowed; NULL:
                                      not wanted */
    /* Patience. Zero means the default in brackets. */
    uint32_t inflight_max; /* in-flight entries of a shard [64 a worker and 256] */
    uint32_t heartbeat_ms; /* of shards [1,000]; they tick four times as often. The patience of
                              workers and front-ends with jobs is scaled with it */
    uint32_t inflight_age_max_ms; /* age limit of in-flight entries [60,000] */
    uint32_t connect_ms; /* wait for shards before the first job [50] */
    uint32_t rto_min_us, rto_max_us, probe_us; /* of clients [theirs: proto/client/client.h] */
    /* What else happens to the cluster (world.h). NULL, NULL, 0: nothing. */
    const struct lab_hooks *hooks; /* borrowed */
    void *context; /* of the hooks, borrowed */
    unsigned guests; /* programs that the hooks run beside the searchers, on the first host */
};

/* What a finished iteration said, and when, from the post on. */
struct lab_iteration {
    uint64_t time_ns;
    int score;
    uint16_t move;
};

/* Outcome of a post. */
struct lab_answer {
    struct search_result search;
    struct lab_iteration iteration[SEARCH_DEPTH_MAX + 1]; /* by depth; 0 ns: none */
    bool answered; /* to the job's depth, by a front-end that was not killed before its end */
    uint64_t time_ns; /* time from the post to the answer */
};

struct lab_result {
    struct lab_answer answer[LAB_POSTS_MAX];
    uint64_t end_ns; /* when the last was */
    struct counters sum; /* over workers, restarted ones included */
    uint64_t idle_ns; /* without work (algorithms that steal), summed over workers */
    uint64_t messages, bytes;
    uint64_t lost; /* messages */
    /* Bytes through the cards, both ways, headers included; what stays on its host is not. */
    uint64_t card_bytes, card_bytes_most; /* sum of all hosts; the busiest host's */
    uint64_t busy_ns, busy_most_ns; /* sum of all shards; the busiest shard's */
    uint64_t shared, shared_taken; /* results that workers told to other hosts; ... were told */
    uint64_t asks, peeks, stores; /* operations sent to shards */
    uint64_t downs, timeouts; /* of shards in clients' eyes, of requests */
    uint64_t trace; /* hash of every event */
    uint64_t events;
};

/* ERR_NOMEM, ERR_RANGE. */
enum err lab_run(const struct lab_options *options, struct lab_result *out);

#endif
