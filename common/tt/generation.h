/* generation: how old the results of a table are, apart for each namespace.
 *
 * A job begins a new generation of its namespace, and only of that: a result is as old as the
 * number of jobs that its own namespace began since. A generation is a number of 8 bits in each
 * entry (results.h); `rank` maps it to its age for the replacement rule, GENERATION_NEWEST being
 * the present generation of any namespace. The TT_NAMESPACES used last are known. One that is
 * forgotten for another ages by one job, and its stores count as of a namespace without a job: one
 * job old. After 254 generations a number is used again, but never while it is the present one of a
 * namespace.
 *
 * Pure. Threads: any number, of several processes if the struct is in memory that they share: all
 * of it is relaxed atomics, and two that race leave some ages wrong, which costs a worse
 * replacement and nothing else. Memory: never allocates. */
#ifndef COMMON_TT_GENERATION_H
#define COMMON_TT_GENERATION_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum {
    TT_NAMESPACES = 8,
    TT_GENERATION_NONE = 1, /* of stores in a namespace that is not known; 0 is an empty entry's */
    TT_GENERATION_NEWEST = 255, /* rank */
};

/* A namespace that is known; all zero: free. */
struct tt_namespace {
    _Atomic uint64_t id;
    _Atomic uint64_t used; /* grows with every use; 0: free */
    _Atomic uint8_t generation;
};

struct tt_generations {
    _Atomic uint8_t rank[256]; /* by generation: the smaller, the sooner replaced; 0 for none */
    _Atomic uint8_t place[256]; /* by generation: 1 + the index of its namespace; 0: of none */
    struct tt_namespace known[TT_NAMESPACES];
    _Atomic uint64_t uses;
    _Atomic uint8_t drawn; /* the last generation that began */
};

void tt_generations_init(struct tt_generations *generations);
/* Marks a namespace as used now. Returns its index in `known`; TT_NAMESPACES when it is not known.
 */
unsigned tt_generations_use(struct tt_generations *generations, uint64_t namespace_id);
/* Begins a generation of the namespace, in place of the least recently used one if it is not known.
 * Returns its index. */
unsigned tt_generations_advance(struct tt_generations *generations, uint64_t namespace_id);

/* The present generation of the namespace of that index, TT_NAMESPACES included. */
static inline uint8_t tt_generations_at(const struct tt_generations *generations, unsigned index)
{
    return index < TT_NAMESPACES
               ? atomic_load_explicit(&generations->known[index].generation, memory_order_relaxed)
               : TT_GENERATION_NONE;
}

static inline uint8_t tt_generations_rank(const struct tt_generations *generations,
                                          uint8_t generation)
{
    return atomic_load_explicit(&generations->rank[generation], memory_order_relaxed);
}

#endif
