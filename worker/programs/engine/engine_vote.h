/* engine_vote: which move several engines that searched one position play, as engines choose among
 * the moves of their threads: each searcher's last line counts for its move, the deeper and the
 * better it is the more. A mate that is found comes first, the shortest of all.
 *
 * Threads: any. Memory: none. Pure. */
#ifndef WORKER_PROGRAMS_ENGINE_ENGINE_VOTE_H
#define WORKER_PROGRAMS_ENGINE_ENGINE_VOTE_H

#include "proto/client/client.h"
#include "worker/programs/uci_text.h"

/* What one searcher says. */
struct engine_voice {
    uint64_t instance; /* a worker's alias; 0: the front-end's own engine */
    char name[CLIENT_NAME_MAX + 1];
    uint8_t state; /* enum proto_job_state */
    uint64_t received_us; /* its last report */
    unsigned depth;
    int score; /* as in JOB_REPORT */
    uint64_t nodes;
    char line[PROTO_TEXT_MAX + 1];
    char move[UCI_MOVE_MAX]; /* the first of the line; "": none, or not to be played */
};

/* Returns the index of the voice whose move is to be played: among equals the first. voices > 0. */
unsigned engine_vote(const struct engine_voice *voice, unsigned voices);

#endif
