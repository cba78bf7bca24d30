/* chaos: jobs on the virtual cluster with everything drawn from a seed: games, front-ends and what
 * they post and stop, cluster, network, patience, and faults that begin while it lasts. And what
 * must hold all the same:
 *   every front-end that lives gets its answers, in a time that the faults explain;
 *   their scores are those of the sequential search, where the search is strict (most are);
 *   a job that was stopped or lost its front-end is left by every worker in bounded time;
 *   when all messages have arrived, no session in good order has a node in flight;
 *   when silent sessions have expired, no other has but those that lost messages;
 *   when the age limit has passed, nobody has;
 *   the dead have no session, the living have one on every shard that lives;
 *   then every front-end posts a job to the healed cluster: the workers are shared evenly, each
 *     front-end counts exactly those on its job, and after the stop gets their last reports;
 *   a shard starts with what it kept on its disk, or with nothing and a line; what it reads was
 *     written there, and what was said to be written is read;
 *   no request is outstanding past its time; no search goes on; no shard has grown;
 *   what a shard sends is ZMTP; its connections keep to their budget, and of those without a living
 *     peer nothing is left.
 *
 * Threads: any, one per plan. Memory: a plan owns its job. */
#ifndef TESTS_CHAOS_CHAOS_H
#define TESTS_CHAOS_CHAOS_H

#include "tests/chaos/chaos_lab.h"

enum { CHAOS_TEXT_MAX = 512 };

/* Kinds of trouble: those of lab_fault_kind, then these. Each seed leaves whole kinds of them out
 * (swarm testing, Groce, Zhang, Eide, Chen and Regehr 2012), as one kind hides what another would
 * show: where everybody is killed nobody is slow. A fifth of the seeds have all. */
enum chaos_kind {
    CHAOS_LOSS = LAB_FAULT_KINDS, /* messages are lost all the time, everywhere */
    CHAOS_LIES,
    CHAOS_NARROW, /* small tables, slow cards */
    CHAOS_WATCHERS, /* beside the searches (lab_watcher.h); no trouble by themselves */
    CHAOS_WANT, /* of memory, where programs start and workers begin jobs */
    CHAOS_DISKS, /* shards keep their results on disks, which fail */
    CHAOS_DRIFT, /* each machine has a clock of its own */
    CHAOS_KINDS,
};

/* What is not to be drawn; zero and NULL: draw it. */
struct chaos_wish {
    const struct job *job; /* game, position and depth; the rest of it is drawn */
    const struct game *game; /* without a job: that positions are drawn of. Of a game with an end in
                                so many moves the first is an ending, searched exactly */
    const struct algorithm *algorithm;
    unsigned workers, shards;
    unsigned faults; /* at most LAB_FAULTS_MAX */
    bool is_wired; /* every run simulates connections; else half of them */
    struct lab_planted planted;
};

struct chaos_plan {
    struct job job[LAB_POSTS_MAX];
    struct lab_post post[LAB_POSTS_MAX]; /* their jobs are set by chaos_run */
    unsigned posts;
    struct chaos_options options; /* without faults: chaos_run draws them when it knows how long it
                                     takes */
    unsigned faults;
    uint64_t lie_ns; /* of the run with faults, as in chaos_options; also: */
    uint32_t want_ppm;
    struct lab_disk_faults disk;
    uint64_t seed;
};

struct chaos_outcome {
    int score[LAB_POSTS_MAX]; /* sequential; of posts that are not stopped */
    uint64_t sequential_ns, sequential_nodes; /* sums of those searches */
    struct chaos_result faultless, faulty; /* without faults, and with them */
    struct lab_fault fault[LAB_FAULTS_MAX];
    unsigned faults;
    char broken[CHAOS_TEXT_MAX]; /* empty: all invariants hold */
};

bool chaos_has(uint64_t seed, unsigned kind);
/* For people, and in names of figures. */
const char *chaos_kind_name(unsigned kind);

/* ERR_NOMEM; the game's errors. */
enum err chaos_draw(uint64_t seed, const struct chaos_wish *wish, struct chaos_plan *out);
void chaos_free(struct chaos_plan *plan);

/* Faults that begin between 0 and `within_ns`. Returns how many: `count`, or a number drawn when
 * that is 0. */
unsigned chaos_draw_faults(const struct chaos_plan *plan, uint64_t within_ns,
                           struct lab_fault fault[LAB_FAULTS_MAX]);

/* Each job sequentially, all without faults, all with faults. ERR_NOMEM. */
enum err chaos_run(const struct chaos_plan *plan, struct chaos_outcome *out);

/* One line for people: the plan, the faults. */
void chaos_describe(const struct chaos_plan *plan, char *text, size_t size);
void chaos_describe_fault(const struct lab_fault *fault, char *text, size_t size);

#endif
