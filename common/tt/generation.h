/* generation: how old the results of a table are, so that a job never ages the results of another
 * namespace that is in use.
 *
 * A generation is a number of 8 bits in each entry (results.h); its rank is its age for the
 * replacement rule: the smaller, the sooner replaced; 0 for an empty entry. A job begins a new
 * generation of its namespace. The present generations of all known namespaces are
 * TT_GENERATION_NEWEST; every other one becomes one rank older with each job of any namespace. A
 * namespace is forgotten when it was not used during TT_NAMESPACE_JOBS jobs, or for another when
 * TT_NAMESPACES others were used later; its next use begins a new generation. After 254 generations
 * a number is used again, but never the present one of a namespace.
 *
 * Pure. Threads: any number, of several processes if the struct is in memory that they share: all
 * of it is relaxed atomics. Two that race, or one that is killed, leave some ages wrong until the
 * next jobs, which costs a worse replacement and nothing else. Memory: never allocates. */
#ifndef COMMON_TT_GENERATION_H
#define COMMON_TT_GENERATION_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum {
    TT_NAMESPACES = 8,
    TT_NAMESPACE_JOBS = 2,
    TT_GENERATION_NONE = 1, /* generation of stores without a namespace, the oldest; 0: empty */
    TT_GENERATION_NEWEST = 255, /* rank */
};

struct tt_namespace {
    _Atomic uint64_t id;
    _Atomic uint64_t used; /* `jobs` at its last use; 0: the place is free */
    _Atomic uint8_t generation; /* the present one */
};

struct tt_generations {
    /* By generation, its rank less its number: so generation and depth, which lie beside each other
     * in an entry, become rank and depth by one addition (results.c). */
    _Atomic uint32_t offset[256];
    struct tt_namespace known[TT_NAMESPACES];
    _Atomic uint64_t jobs; /* begun, and one */
    _Atomic uint8_t drawn; /* the last generation that began */
};

void tt_generations_init(struct tt_generations *generations);
/* The namespace is in use now. Returns its index in `known`. */
unsigned tt_generations_use(struct tt_generations *generations, uint64_t namespace_id);
/* The same, of one that is known; else nothing. */
void tt_generations_keep(struct tt_generations *generations, uint64_t namespace_id);
/* A job of the namespace begins. Returns its index. */
unsigned tt_generations_advance(struct tt_generations *generations, uint64_t namespace_id);

/* The present generation of the namespace at `index`; TT_GENERATION_NONE when another namespace has
 * taken its place, or none has. */
static inline uint8_t tt_generations_of(const struct tt_generations *generations, unsigned index,
                                        uint64_t namespace_id)
{
    const struct tt_namespace *known = &generations->known[index];
    return atomic_load_explicit(&known->id, memory_order_relaxed) == namespace_id
               ? atomic_load_explicit(&known->generation, memory_order_relaxed)
               : TT_GENERATION_NONE;
}

static inline uint8_t tt_generations_rank(const struct tt_generations *generations,
                                          uint8_t generation)
{
    return (uint8_t)(atomic_load_explicit(&generations->offset[generation], memory_order_relaxed) +
                     generation);
}

#endif
