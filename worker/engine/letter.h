/* letter: the bodies of MAIL, by which searchers of different processes write to each other:
 * messages between those of one search (worker/search/handover/peers.h), and letters between the
 * front-end that has a bag of positions (bag_core.h) and the workers that search them. Who takes
 * the one takes none of the other. Job and sender are the MAIL's own. All is as it lies
 * in memory, as only builds of the same sources read each other's.
 *
 *     front-end -> worker   WORK   positions to search, each with its number
 *                           KEEP   numbers of all that it has: nobody wants more from it
 *     worker -> front-end   HAS    what it has, in its order: every 200 ms
 *                           FOUND  a result, and what it has still
 *
 * A body comes from anybody who takes part in the job. None is read that could make a search leave
 * its memory: a kind that is one, counts that fit, windows, depths and scores that a search has.
 * Whether a position is one, a move legal and a value true is not its business.
 *
 * Threads: any. Memory: never allocates. Pure. */
#ifndef WORKER_ENGINE_LETTER_H
#define WORKER_ENGINE_LETTER_H

#include "proto/codec.h"
#include "worker/engine/bag_core.h"
#include "worker/search/handover/peers.h"
#include "worker/search/search.h"

/* Returns the length of the body. */
size_t letter_write(const struct peer_message *message, uint8_t body[PROTO_BODY_MAX]);
/* False: it is none. Leaves job and from 0. */
bool letter_read(const uint8_t *body, size_t length, struct peer_message *out);

enum bag_kind { BAG_WORK = 64, BAG_KEEP, BAG_HAS, BAG_FOUND };

/* What was found of a position. */
struct bag_found {
    uint32_t item;
    uint8_t is_refused; /* 1: the worker cannot search it */
    struct search_result result; /* exact; its depth may be 0: the limits were that small */
    struct counters counters; /* COUNTERS; its talk with the shards stays 0 */
    uint64_t time_us; /* that the search took */
};

struct bag_letter {
    enum bag_kind kind;
    uint8_t is_shared; /* WORK: 1: others search it, too */
    unsigned count; /* of `item`: that are to be searched, or that it has */
    uint32_t item[BAG_ASSIGNED_MAX];
    char text[BAG_ASSIGNED_MAX][GAME_TEXT_MAX]; /* WORK: positions */
    uint64_t nodes; /* HAS: in the first, so far */
    struct bag_found found; /* FOUND */
};

/* The length of the body; 0: it has no room for all. */
size_t bag_letter_write(const struct bag_letter *letter, uint8_t body[PROTO_BODY_MAX]);
/* False: it is none. */
bool bag_letter_read(const uint8_t *body, size_t length, struct bag_letter *out);

#endif
