/* task_places: the positions of a master's tree (tasks.h), and what is known of each.
 *
 * Threads: the master's own. Memory: the caller's array; nothing is moved while it is used. Pure.
 */
#ifndef WORKER_SEARCH_HANDOVER_TASK_PLACES_H
#define WORKER_SEARCH_HANDOVER_TASK_PLACES_H

#include "worker/search/handover/peers.h"

enum {
    PLACES = 1 << 18, /* a power of two */
    PLACES_USED = PLACES / 4 * 3,
    KNOWN = 6, /* results kept of a position */
    PLACE_UNOWNED = UINT16_MAX,
};

/* What is known of a position at a depth. */
struct known {
    uint8_t depth;
    int16_t lower, upper;
    uint16_t move; /* the best; 0: not known */
};

/* A position of the master's tree. */
struct place {
    uint64_t key; /* 0: none */
    uint16_t move; /* the best of the last pass */
    uint16_t owner; /* the worker that has or had it, or PLACE_UNOWNED */
    bool is_task; /* it is in the list of tasks, the owner's */
    uint8_t depth; /* ... to be searched to */
    int16_t alpha, beta; /* ... in this window */
    uint32_t pass; /* the last that came to it as a task */
    uint32_t request; /* its number */
    bool has_static;
    int16_t value; /* `has_static`: the evaluation */
    unsigned known_count;
    struct known known[KNOWN]; /* the deepest first */
};

struct places {
    struct place *at; /* PLACES of them, zeroes at first */
    unsigned used;
};

/* The place of that key, a new one without an owner if need be. NULL: there is no room for it. */
struct place *place_of(struct places *places, uint64_t key);

/* Takes a result. False: it says nothing new. */
bool place_take(struct place *place, const struct task_result *result);

/* The deepest result, of `most` plies at most, that says where the value lies in the window; NULL:
 * there is none. */
const struct known *place_deepest(const struct place *place, int most, int alpha, int beta);

#endif
