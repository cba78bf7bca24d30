/* job: one question to a search: position, limits, options; and its form on the wire.
 *
 * Threads: a job is written by one and then read by all. Memory: the position block belongs to the
 * job. */
#ifndef WORKER_ENGINE_JOB_H
#define WORKER_ENGINE_JOB_H

#include "proto/client/client.h"
#include "worker/games/game.h"
#include "worker/search/handover/algorithms.h"
#include "worker/search/search.h"

enum { JOB_ALGORITHM_MAX = 32, JOB_GAME_MAX = 64 };

struct job {
    uint64_t id; /* 0: not posted to anybody */
    const struct game *game;
    void *position; /* game->position_size bytes; may carry its history */
    char text[GAME_TEXT_MAX]; /* the position for the wire, without history */
    const struct algorithm *algorithm;
    bool strict, full;
    bool waits; /* for every answer of a shard, instead of searching on meanwhile */
    bool has_bag; /* of positions, which letters bring (bag_core.h); its own is the first of them */
    bool keeps_endings; /* search_options */
    uint8_t depth; /* 1..SEARCH_DEPTH_MAX */
    uint8_t remote_depth; /* PROTO_REMOTE_DEPTH_AUTO or a depth */
    uint32_t time_ms; /* 0: no limit */
    uint64_t nodes; /* limit for all searchers of this process together; 0: none */
    uint64_t namespace_id; /* what keeps unlike searches apart in a table they share:
                              job_set_namespace */
    /* for the front-end alone, not on the wire */
    uint32_t spare_us; /* part of time_ms that is kept for the answer */
    bool at_once; /* the answer does not wait for the workers' last figures */
    uint16_t root_move[GAME_MOVES_MAX]; /* searched at the root; legal */
    unsigned root_moves; /* 0: all */
    unsigned lines; /* lines of the best moves; 0: one */
    bool only_ties; /* only lines of moves as good as the best */
    uint32_t alone_ms; /* so long its search needs no shards: remote_keep_alone */
    bool is_next; /* a position of a bag after another one: the shards know the namespace */
};

/* From game, evaluation, selection and strictness; `fresh` other than 0 gives the job a table of
 * its own. */
void job_set_namespace(struct job *job, uint32_t fresh);
/* The same in every build, so that the node counts of two builds can be compared. For tables that
 * no other process uses. */
void job_set_repeatable_namespace(struct job *job, uint32_t fresh);

/* Sets game and position from text; the rest is left. ERR_NOMEM; the game's errors with `why`. On
 * ERR_OK `why` is empty or says what of the text was left out. */
enum err job_set_position(struct job *job, const struct game *game, const char *text, char *why,
                          size_t why_size);
void job_free(struct job *job);
/* With a position of its own. ERR_NOMEM. */
enum err job_copy(struct job *out, const struct job *job);
/* The last iteration: its depth, or the one that is exact. */
unsigned job_last_iteration(const struct job *job);

/* Makes the first `count` moves of a line from its position, as far as they are legal; returns how
 * many, which the other unmakes. Both need the position for themselves. */
unsigned job_make_line(const struct job *job, const struct search_line *line, unsigned count);
void job_unmake_line(const struct job *job, const struct search_line *line, unsigned made);
/* A line from its position as moves in the game's text, with blanks between; cut where the next
 * move does not fit. Needs the position for itself while it runs. */
void job_line_text(const struct job *job, const struct search_line *line, char *text, size_t size);

/* The texts borrow from the job. */
struct proto_job job_to_wire(const struct job *job);
/* Counters in the fields of a worker's report, each at most what shards take; and back. */
void job_report_set(struct proto_job_report *report, const struct counters *counters);
struct counters job_report_counters(const struct proto_job_report *report);

/* A job as it was posted, with texts of its own. */
struct job_offer {
    struct proto_job wire; /* its texts are no more */
    char game[JOB_GAME_MAX], algorithm[JOB_ALGORITHM_MAX], position[GAME_TEXT_MAX];
};

/* Its game is an engine of somebody else (worker/programs/engine), and no game of ours. */
#define JOB_ENGINE_PREFIX "uci:"
bool job_is_for_engines(const struct proto_job *message);
/* False: a text is longer than any that this program knows, or ends early. */
bool job_offer_set(struct job_offer *out, const struct proto_job *message);
/* Makes a job of an offer: names checked, position parsed. A poster who does not know our
 * evaluation, nor the lower half of its namespaces, says 0 for both. ERR_ABSENT for an unknown game
 * or algorithm; ERR_ILLEGAL when the poster's rules, keys or evaluation are not ours, or the
 * namespace is not one of such a search: our results would be wrong for the others; or when a part
 * of the position would be left out. */
enum err job_from_offer(const struct job_offer *offer, struct job *out, char *why, size_t why_size);

#endif
