#include "common/tt/generation.h"

#define READ(object) atomic_load_explicit(object, memory_order_relaxed)
#define WRITE(object, value) atomic_store_explicit(object, value, memory_order_relaxed)

void tt_generations_init(struct tt_generations *g)
{
    for (unsigned i = 0; i < 256; i++) {
        WRITE(&g->rank[i], i > 0);
        WRITE(&g->place[i], 0);
    }
    for (unsigned i = 0; i < TT_NAMESPACES; i++) {
        WRITE(&g->known[i].id, 0);
        WRITE(&g->known[i].used, 0);
        WRITE(&g->known[i].generation, TT_GENERATION_NONE);
    }
    WRITE(&g->rank[TT_GENERATION_NONE], TT_GENERATION_NEWEST - 1);
    WRITE(&g->uses, 0);
    WRITE(&g->drawn, TT_GENERATION_NONE);
}

static unsigned find(const struct tt_generations *g, uint64_t namespace_id)
{
    unsigned i = 0;
    while (i < TT_NAMESPACES &&
           (READ(&g->known[i].used) == 0 || READ(&g->known[i].id) != namespace_id)) {
        i++;
    }
    return i;
}

static void set_used(struct tt_generations *g, unsigned index)
{
    WRITE(&g->known[index].used, 1 + atomic_fetch_add_explicit(&g->uses, 1, memory_order_relaxed));
}

unsigned tt_generations_use(struct tt_generations *g, uint64_t namespace_id)
{
    unsigned index = find(g, namespace_id);
    if (index < TT_NAMESPACES) {
        set_used(g, index);
    }
    return index;
}

/* All generations of a namespace become one job older; `disowns`: and are nobody's any more. */
static void age(struct tt_generations *g, unsigned index, bool disowns)
{
    for (unsigned i = TT_GENERATION_NONE + 1; i < 256; i++) {
        uint8_t rank = READ(&g->rank[i]);
        if (READ(&g->place[i]) == index + 1) {
            WRITE(&g->rank[i], (uint8_t)(rank - (rank > 1)));
            if (disowns) {
                WRITE(&g->place[i], 0);
            }
        }
    }
}

static unsigned claim(struct tt_generations *g, uint64_t namespace_id)
{
    unsigned oldest = 0;
    for (unsigned i = 1; i < TT_NAMESPACES; i++) {
        oldest = READ(&g->known[i].used) < READ(&g->known[oldest].used) ? i : oldest;
    }
    age(g, oldest, true);
    WRITE(&g->known[oldest].id, namespace_id);
    return oldest;
}

static bool is_present(const struct tt_generations *g, uint8_t generation)
{
    bool found = false;
    for (unsigned i = 0; i < TT_NAMESPACES; i++) {
        found = found || READ(&g->known[i].generation) == generation;
    }
    return found;
}

unsigned tt_generations_advance(struct tt_generations *g, uint64_t namespace_id)
{
    unsigned index = find(g, namespace_id);
    uint8_t generation = READ(&g->drawn);
    index = index < TT_NAMESPACES ? index : claim(g, namespace_id);
    do {
        generation = generation == UINT8_MAX ? TT_GENERATION_NONE + 1 : (uint8_t)(generation + 1);
    } while (is_present(g, generation));
    WRITE(&g->drawn, generation);
    age(g, index, false);
    WRITE(&g->place[generation], (uint8_t)(index + 1));
    WRITE(&g->rank[generation], TT_GENERATION_NEWEST);
    WRITE(&g->known[index].generation, generation);
    set_used(g, index);
    return index;
}
