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
#include "worker/lab/lab_disk.h"
#include "worker/search/search.h"

enum {
    LAB_WORKERS_MAX = 4096,
    LAB_SHARDS_MAX = 64,
    LAB_FAULTS_MAX = 256,
    LAB_FRONTS_MAX = 8,
    LAB_POSTS_MAX = 16,
    LAB_WATCHERS_MAX = 8,
};

#define LAB_FOR_EVER UINT64_MAX

enum lab_fault_kind {
    LAB_KILL, /* as kill -9; at the end started anew, with nothing. Never the host of worker 0. */
    LAB_STALL, /* stands still, as after SIGSTOP; at the end goes on where it was */
    LAB_CUT, /* what passes between these workers and these shards is lost, one way or both */
    LAB_DELAY, /* ... comes `amount` nanoseconds later */
    LAB_LOSS, /* ... is lost `amount` times in a million */
    LAB_UPGRADE, /* ends as after SIGTERM, with a BYE; at the end started anew as a program that
                    speaks versions of the protocol up to `amount` */
    LAB_SUSPEND, /* as a stall of whole hosts, whose monotonic clocks stand still as well */
    LAB_JUMP, /* their wall clocks jump by `amount` nanoseconds, forward or (two's complement) back;
                 what lasts is the difference */
    /* Of connections, where they are simulated: */
    LAB_RESET, /* those of these workers and these shards end, and both are told */
    LAB_HALF_OPEN, /* nothing passes any more on those that there are, and nobody is told */
    LAB_DEAF, /* these workers read nothing of these shards */
    LAB_FAULT_KINDS,
};

enum lab_way { LAB_TO_SHARDS = 1, LAB_TO_WORKERS = 2, LAB_BOTH_WAYS = 3 };

/* Kill, stall, suspend and jump hit these workers and these shards; the others every pair of the
 * two. Workers are numbered from the front-ends on: 0 is the first front-end. A kill takes the
 * whole host with it: its threads are of one process; suspend and jump do so, too. */
struct lab_fault {
    enum lab_fault_kind kind;
    unsigned worker, workers; /* the first, how many */
    unsigned shard, shards;
    enum lab_way ways;
    uint64_t at_ns; /* virtual time, which begins at 0 with HELLOs */
    uint64_t lasts_ns; /* LAB_FOR_EVER: to the answer, with which all faults end but such kills */
    uint64_t amount;
};

/* A front-end posts its jobs in the order of the list, one after the other. One that was killed and
 * started anew begins anew. */
struct lab_post {
    const struct job *job; /* game, position, algorithm, strict, full, depth, remote_depth, waits,
                              namespace_id */
    unsigned front;
    uint64_t at_ns; /* not before */
    uint64_t stop_ns; /* after so long it is stopped without an answer; 0: never */
};

/* Faults of the program, to test the tests. */
struct lab_planted {
    uint32_t skip_release_ppm; /* messages of leaves (stores, releases) forgotten, in a million */
    bool never_expire_sessions; /* silent sessions stay */
    bool never_expire; /* in-flight entries have no age limit */
    bool skip_stop; /* front-ends never send a stop */
    bool lose_reports; /* last reports are lost */
    bool stale_index; /* workers are given one worker index, never another */
    bool lose_versions; /* nobody hears that a shard speaks another version of the protocol */
    bool lose_flushes; /* a shard says that it has forgotten its results, and has not */
    bool stray_letters; /* ... gives each letter to another */
    bool lose_rows; /* ... leaves out the last row of each page of members */
    bool half_made; /* a program that gets no memory leaves its host's table behind */
    bool false_results; /* the liar's scores are of the game: what others say is believed */
    bool lose_rest; /* shards take a write of a part for one of all */
    bool lose_budget; /* shards do not get back what a connection had of their budget */
    bool keep_half_open; /* shards never end a connection without a session */
    bool wall_clock; /* shards live by their wall clock */
    bool compare_clocks; /* shards compare their clock with that of a message's sender */
    bool trust_sums; /* a file is read whatever its sums say */
    struct lab_disk_planted disk;
};

/* What a host contributes: what its searchers did in all their searches, in virtual time. */
struct lab_contribution {
    uint64_t nodes, asks;
#define X(name) uint64_t name;
    COUNTERS_OF_TALK(X)
#undef X
};

struct lab_options {
    const struct job *job; /* where there are no posts: the only one */
    const struct lab_post *post; /* borrowed */
    unsigned posts; /* at most LAB_POSTS_MAX */
    unsigned workers; /* searchers, the first front-end included, 1..LAB_WORKERS_MAX */
    uint32_t threads; /* that search on a host and share its table [1]; the first front-end and the
                         workers fill one host after the other, other front-ends have one each */
    uint32_t fronts; /* the others come in addition to `workers` [1] */
    unsigned watchers; /* programs that do not search (lab_watcher.h), on the first host; links of
                          theirs are numbered after the workers */
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
    uint32_t drift_ppm; /* most, of the clocks of hosts and shards, which then begin anywhere; 0:
                           all show virtual time */
    uint64_t lie_ns; /* on average, between messages of a liar (lab_liar.h); 0: there is none */
    uint32_t want_ppm; /* so many calls for memory fail, in a million, where a program starts (but
                          the first front-end) and where a worker begins a job; one that cannot
                          start tries again some heartbeats later */
    uint64_t results_bytes; /* memory of all shards together */
    uint64_t local_bytes; /* memory of each host */
    uint64_t keep_ns; /* between two snapshots of a shard, which it reads when it starts again; 0:
                         it keeps nothing */
    struct lab_disk_faults disk; /* of the disks of shards, until the end of all posts */
    uint8_t share_depth; /* results of at least this depth are broadcast; 0: none */
    uint64_t limit_ns; /* virtual time after which no answer counts as none */
    struct lab_contribution *contribution; /* of each host, added to what is there; borrowed; NULL:
                                              not wanted */
    /* Faults, borrowed; at most LAB_FAULTS_MAX. None begins after the end of all posts. */
    const struct lab_fault *fault;
    unsigned faults;
    bool is_mixed; /* which versions of the protocol a host or shard speaks at first is drawn; else
                      all speak the newest */
    bool is_wired; /* the connections of shards are simulated, too (lab_stream.h): what is lost
                      comes later, and only the end of a connection loses messages */
    bool has_keys; /* with is_wired: they are CURVE, and all programs have keys */
    bool drain; /* after that, check what is left behind: the second half of the result */
    /* Patience. Zero means the default in brackets. */
    uint32_t inflight_max; /* in-flight entries of a shard [64 a worker and 256] */
    uint32_t heartbeat_ms; /* of shards [1,000]; they tick four times as often. The patience of
                              workers and front-ends with jobs is scaled with it */
    uint32_t inflight_age_max_ms; /* age limit of in-flight entries [60,000] */
    uint32_t connect_ms; /* wait for shards before the first job [50] */
    uint32_t rto_min_us, rto_max_us, probe_us; /* of clients [theirs: proto/client/client.h] */
    struct lab_planted planted;
};

/* What a finished iteration said, and when, from the post on. */
struct lab_iteration {
    uint64_t time_ns;
    int score;
    uint16_t move;
};

/* Of a post. */
struct lab_answer {
    struct search_result search;
    struct lab_iteration iteration[SEARCH_DEPTH_MAX + 1]; /* by depth; 0 ns: none */
    bool answered; /* to the job's depth, by a front-end that was not killed before its end */
    uint64_t time_ns; /* time from the post to the answer */
};

/* What a liar says, by type: what the shards take, not refuse, ignore or drop as malformed. */
#define LAB_LIES(X)          \
    X(HELLO, hellos)         \
    X(RETRIEVE_ASK, asks)    \
    X(STORE_HASH, stores)    \
    X(RELEASE, releases)     \
    X(PEEK, peeks)           \
    X(SHARE, shares)         \
    X(HISTORY, histories)    \
    X(JOB_POST, posts)       \
    X(JOB_STOP, stops)       \
    X(JOB_REPORT, reports)   \
    X(MEMBERS, members)      \
    X(JOBS, jobs)            \
    X(STATS, stats)          \
    X(HEARTBEAT, heartbeats) \
    X(SCAN, scans)           \
    X(FLUSH, flushes)

struct lab_result {
    struct lab_answer answer[LAB_POSTS_MAX];
    unsigned unanswered; /* posts that front-ends that live had not ended in time */
    uint64_t end_ns; /* when the last was */
    uint64_t simulated_ns; /* virtual time of the whole run, with its drain */
    struct search_counters sum; /* over workers, restarted ones and the drain's probe included */
    uint64_t waited_ns; /* for answers, summed over workers */
    uint64_t idle_ns; /* without work (algorithms that steal), summed over workers */
    uint64_t messages, bytes;
    /* Of the cards, counted in both directions, headers included; what stays on its host is not. */
    uint64_t card_bytes, card_bytes_most; /* sum of all hosts; the busiest host's */
    uint64_t busy_ns, busy_most_ns; /* sum of all shards; the busiest shard's */
    uint64_t shared, shared_taken; /* results that workers told to other hosts; ... were told */
    uint64_t asks, peeks, stores; /* operations sent to shards */
    uint64_t trace; /* hash of every event */
    uint64_t events;
    /* What faults did. */
    unsigned faults[LAB_FAULT_KINDS]; /* victims, or pairs for cut, delay and loss */
    unsigned restarts;
    uint64_t lost; /* messages; where connections are simulated, segments, which came later */
    uint64_t unsent; /* messages that found the queue of a client full */
    uint64_t lies; /* messages of the liar */
    uint64_t intrusions; /* what a liar below the messages did */
    unsigned storms; /* of connections, of them */
    uint64_t wants; /* calls for memory that failed */
    uint64_t letters; /* that watchers were given */
    unsigned starts_failed; /* for want of it, or as the disk failed; tried again */
#define X(TYPE, name) uint64_t taken_##name;
    LAB_LIES(X)
#undef X
    uint64_t downs, timeouts,
        expired_sessions; /* of shards in clients' eyes, of requests, of sessions */
    unsigned all_shards_dead, all_workers_dead; /* how often */
    /* Of disks: snapshots written, those that failed; at starts, files read, and refused; starts
     * that failed, and were tried again. What the disks did. */
    uint64_t kept, kept_failures, reloaded, refused_files;
    uint64_t short_calls, full_disks, disk_errors, power_losses, spoiled_files;
    /* With drain; all of it should be 0. In order of time. When the network is quiet again:
     * in-flight entries of live sessions whose messages all arrived; when dead sessions have
     * expired: other entries than those of live sessions that lost messages; when every entry has
     * reached its age: any. */
    unsigned inflight_kept, inflight_stale, inflight_left;
    unsigned sessions_stale; /* sessions of the dead, when they should have expired */
    unsigned unconnected; /* pairs of live worker and live shard without a session by then */
    unsigned still_searching; /* workers on a job that was stopped, or lost its front-end, long ago
                               */
    /* When every front-end has posted a job to the healed cluster and a while is over: */
    unsigned uneven; /* workers too many on one of the jobs, or without one */
    unsigned
        miscounted; /* workers that a front-end counts on its job and are not, or the reverse */
    unsigned reports_missing; /* last reports that did not come, also of earlier jobs where nothing
                                 was lost */
    unsigned requests_left; /* overdue in clients, at the end */
    unsigned foreign_files; /* files that were read, and are none that was written */
    unsigned lost_files; /* snapshots that were said to be written, and are not there */
    unsigned unsaid; /* files refused, or starts that failed, without a line */
    unsigned not_started; /* shards that do not start on a disk without faults */
    unsigned mistold; /* things that watchers were told wrong */
    unsigned half_made; /* tables of hosts that are not of the programs that live there */
    unsigned grown; /* shards whose memory or sets grew beyond what they were given */
    /* Of connections, where they are simulated: */
    unsigned broken_streams; /* times that a shard sent what is no ZMTP */
    unsigned over_budget; /* times that a shard held more bytes for its connections than it may, or
                             had counted others */
    unsigned
        connections_left; /* of a shard, that have no living peer; what is left of closed ones */
};

/* ERR_NOMEM, ERR_RANGE. */
enum err lab_run(const struct lab_options *options, struct lab_result *out);

#endif
