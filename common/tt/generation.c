#include "common/tt/generation.h"

#include "common/err.h"

#define READ(object) atomic_load_explicit(object, memory_order_relaxed)
#define WRITE(object, value) atomic_store_explicit(object, value, memory_order_relaxed)

static void set_rank(struct tt_generations *g, uint8_t generation, uint32_t rank)
{
    WRITE(&g->offset[generation], rank - generation);
}

void tt_generations_init(struct tt_generations *g)
{
    for (unsigned i = 0; i < 256; i++) {
        set_rank(g, (uint8_t)i, i > 0);
    }
    for (unsigned i = 0; i < TT_NAMESPACES; i++) {
        WRITE(&g->known[i].id, 0);
        WRITE(&g->known[i].used, 0);
        WRITE(&g->known[i].generation, TT_GENERATION_NONE);
    }
    WRITE(&g->jobs, 1);
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

static bool is_present(const struct tt_generations *g, uint8_t generation)
{
    for (unsigned i = 0; i < TT_NAMESPACES; i++) {
        if (READ(&g->known[i].used) != 0 && READ(&g->known[i].generation) == generation) {
            return true;
        }
    }
    return false;
}

/* Begins a generation of known[index]. The place is free meanwhile: a process that is killed here
 * leaves a free one behind. */
static void begin(struct tt_generations *g, unsigned index, uint64_t namespace_id)
{
    uint8_t generation = READ(&g->drawn);
    CHECK_THAT(index < TT_NAMESPACES, "generations: a namespace has a place");
    WRITE(&g->known[index].used, 0);
    do {
        generation = generation == UINT8_MAX ? TT_GENERATION_NONE + 1 : (uint8_t)(generation + 1);
    } while (is_present(g, generation));
    WRITE(&g->drawn, generation);
    set_rank(g, generation, TT_GENERATION_NEWEST);
    WRITE(&g->known[index].generation, generation);
    WRITE(&g->known[index].id, namespace_id);
    WRITE(&g->known[index].used, READ(&g->jobs));
}

static unsigned least_recently_used(const struct tt_generations *g)
{
    unsigned oldest = 0;
    for (unsigned i = 1; i < TT_NAMESPACES; i++) {
        oldest = READ(&g->known[i].used) < READ(&g->known[oldest].used) ? i : oldest;
    }
    return oldest;
}

unsigned tt_generations_use(struct tt_generations *g, uint64_t namespace_id)
{
    unsigned index = find(g, namespace_id);
    uint64_t jobs = READ(&g->jobs);
    if (index == TT_NAMESPACES) {
        index = least_recently_used(g);
        begin(g, index, namespace_id);
    } else if (READ(&g->known[index].used) != jobs) {
        WRITE(&g->known[index].used, jobs);
    }
    return index;
}

void tt_generations_keep(struct tt_generations *g, uint64_t namespace_id)
{
    unsigned index = find(g, namespace_id);
    if (index < TT_NAMESPACES) {
        WRITE(&g->known[index].used, READ(&g->jobs));
    }
}

unsigned tt_generations_advance(struct tt_generations *g, uint64_t namespace_id)
{
    uint64_t jobs = atomic_fetch_add_explicit(&g->jobs, 1, memory_order_relaxed) + 1;
    unsigned index = find(g, namespace_id);
    index = index < TT_NAMESPACES ? index : least_recently_used(g);
    for (unsigned i = 0; i < TT_NAMESPACES; i++) {
        bool is_double = i != index && READ(&g->known[i].id) == namespace_id; /* of a race */
        if (is_double || READ(&g->known[i].used) + TT_NAMESPACE_JOBS < jobs) {
            WRITE(&g->known[i].used, 0);
        }
    }
    WRITE(&g->known[index].used, 0);
    /* Every generation that is not the present one of a namespace becomes one job older. */
    for (unsigned i = TT_GENERATION_NONE + 1; i < 256; i++) {
        uint8_t rank = tt_generations_rank(g, (uint8_t)i);
        if (rank > 1 && !is_present(g, (uint8_t)i)) {
            set_rank(g, (uint8_t)i, rank - 1u);
        }
    }
    begin(g, index, namespace_id);
    return index;
}
