/* observer: a caller that watches an engine's search, and the thread that tells it. An observer may
 * take as long as its terminal, pipe or GUI likes, so no searching thread calls it: what happens is
 * noted, and a thread for this alone tells the observer, in order. Of progress, of the root's moves
 * and of what a shard says of the job only the newest is told; when very many lines wait, those of
 * old iterations are left out, all of an iteration together.
 *
 * Threads: begin and end by the owner; the notes by any, one at a time. Memory: in open. Blocking:
 * end, for as long as it says, and then for the thread's last step. */
#ifndef WORKER_ENGINE_OBSERVER_H
#define WORKER_ENGINE_OBSERVER_H

#include "common/counters.h"
#include "worker/engine/job_event.h"

/* Sums over this process and, where workers reported, over all. */
struct engine_status {
    uint64_t time_us;
    uint64_t own_nodes;
#define X(name, json, help) uint64_t name;
    COUNTERS(X)
#undef X
    uint64_t waited_us; /* for shards, of this process's threads */
    uint64_t all_waited_us, all_us; /* the same of all searchers, and the time that they had */
    uint64_t bytes; /* of messages between all searchers and the shards; of these ... */
    uint64_t bytes_sent; /* ... by the searchers */
    unsigned workers; /* ttworker threads that live: reported in the last seconds */
    unsigned shards, shards_up, remote_depth;
    unsigned refused; /* shards that refused the job */
    unsigned workers_refused; /* workers that live and cannot search it: of another build */
    unsigned depth; /* iteration under way */
    unsigned hash_permille;
};

/* Called one at a time, by a thread of the engine's that does not search, while the search goes on;
 * the last time before engine_run returns. The job's position is the observer's meanwhile. */
struct engine_observer {
    void *self;
    /* Of each finished iteration every line, the best first, which is `line` 0, and of one
     * under way a bound (result->bound) of line 0, without a move. After ENGINE_PATIENCE_US ... */
    void (*iteration)(void *self, unsigned line, const struct search_result *result,
                      const struct engine_status *status);
    /* ... the root's move that the first thread is at, when it changes. */
    void (*root_move)(void *self, uint16_t move, unsigned number,
                      const struct engine_status *status);
    /* About once a second; `best`: of the last finished iteration. */
    void (*progress)(void *self, const struct search_result *best,
                     const struct engine_status *status);
    /* Once for each shard that refuses the job: `why` are its words; and once it has taken it
     * since, with NULL. Others may have taken it. */
    void (*refused)(void *self, unsigned shard, const char *why,
                    const struct engine_status *status);
};

struct observer;

/* ERR_NOMEM. */
enum err observer_open(struct observer **out);
/* Accepts NULL; nulls. */
void observer_close(struct observer **observer);

/* `to` is borrowed until the end; NULL: nobody. Where there is no thread the notes call `to`. */
void observer_begin(struct observer *observer, const struct engine_observer *to);
/* True: all is told, and nobody is called any more; false: not within that time. */
bool observer_end(struct observer *observer, unsigned wait_ms);

/* The notes; all is copied. */
void observer_note_line(struct observer *observer, unsigned line,
                        const struct search_result *result, const struct engine_status *status);
void observer_note_root_move(struct observer *observer, uint16_t move, unsigned number,
                             const struct engine_status *status);
void observer_note_progress(struct observer *observer, const struct search_result *best,
                            const struct engine_status *status);
void observer_note_refusal(struct observer *observer, unsigned shard, const char *why,
                           const struct engine_status *status);

#endif
