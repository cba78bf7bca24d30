/* chaos: one search on the virtual cluster with everything drawn from a seed: game, cluster,
 * network, patience, and faults that strike while it lasts. And what must hold all the same:
 *   an answer comes, in a time that the faults explain;
 *   its score is that of the sequential search, where the search is strict (most are);
 *   when all has been said and heard, no session in good order holds a node;
 *   when silent sessions have lapsed, no other does but those that lost messages;
 *   when the age limit has passed, nobody does;
 *   the dead have no session, the living have one on every shard that lives;
 *   no request is outstanding past its time; no search goes on; no shard has grown.
 *
 * Threads: any, one per plan. Memory: a plan owns its job. */
#ifndef WORKER_LAB_CHAOS_H
#define WORKER_LAB_CHAOS_H

#include "worker/lab/lab.h"

enum { CHAOS_TEXT_MAX = 512 };

/* What is not to be drawn; zero and NULL: draw it. */
struct chaos_wish {
    const struct job *job; /* game, position and depth; the rest of it is not looked at */
    const struct algorithm *algorithm;
    unsigned workers, shards;
    unsigned faults; /* at most LAB_FAULTS_MAX */
    /* Planted faults, as in lab_options. */
    uint32_t skip_release_ppm;
    bool never_expire_sessions, never_expire;
};

struct chaos_plan {
    struct job job;
    struct lab_options
        lab; /* without faults: chaos_run draws them when it knows how long it takes */
    unsigned faults;
    uint64_t seed;
};

struct chaos_outcome {
    int score; /* the sequential one */
    struct lab_result sequential, calm, faulty;
    struct lab_fault fault[LAB_FAULTS_MAX];
    unsigned faults;
    char broken[CHAOS_TEXT_MAX]; /* empty: all invariants hold */
};

/* ERR_NOMEM; the game's errors. */
enum err chaos_draw(uint64_t seed, const struct chaos_wish *wish, struct chaos_plan *out);
void chaos_free(struct chaos_plan *plan);

/* Faults that strike between 0 and `within_ns`. Returns how many: `count`, or a number drawn when
 * that is 0. */
unsigned chaos_draw_faults(const struct chaos_plan *plan, uint64_t within_ns,
                           struct lab_fault fault[LAB_FAULTS_MAX]);

/* Three runs: sequential, without faults, with them. ERR_NOMEM. */
enum err chaos_run(const struct chaos_plan *plan, struct chaos_outcome *out);

/* One line for people: the plan, the faults. */
void chaos_describe(const struct chaos_plan *plan, char *text, size_t size);
void chaos_describe_fault(const struct lab_fault *fault, char *text, size_t size);

#endif
