#include "worker/table/lessons.h"

#include "common/err.h"

enum { INDEX_BITS = 13, WEIGHT_BITS = 14, LAP_BITS = 5, ROOT_SHIFT = 32 };

_Static_assert(TT_WEIGHTS == 1 << INDEX_BITS, "an index fits");
_Static_assert(LESSONS_WEIGHT_MAX == (1 << WEIGHT_BITS) - 1, "a weight fits");
_Static_assert(INDEX_BITS + WEIGHT_BITS + LAP_BITS == ROOT_SHIFT, "one word");

/* The lap tells what was written here now from what was here before. */
static uint64_t label(uint32_t root_key, uint32_t at)
{
    return (uint64_t)root_key << ROOT_SHIFT | (at / LESSONS_KEPT) % (1u << LAP_BITS);
}

static uint64_t pack(uint64_t label, struct tt_weight w)
{
    uint64_t weight = w.weight < LESSONS_WEIGHT_MAX ? w.weight : LESSONS_WEIGHT_MAX;
    return label | weight << LAP_BITS | (uint64_t)w.index << (LAP_BITS + WEIGHT_BITS);
}

static struct tt_weight unpack(uint64_t word)
{
    return (struct tt_weight){
        .index = (uint16_t)(word >> (LAP_BITS + WEIGHT_BITS) & (TT_WEIGHTS - 1)),
        .weight = (uint32_t)(word >> LAP_BITS & LESSONS_WEIGHT_MAX),
    };
}

static bool has_label(uint64_t word, uint64_t label)
{
    uint64_t mask = ~(uint64_t)0 << ROOT_SHIFT | ((1u << LAP_BITS) - 1);
    return ((word ^ label) & mask) == 0;
}

uint32_t lessons_end(const struct lessons *l)
{
    return atomic_load_explicit(&l->end, memory_order_relaxed);
}

unsigned lessons_exchange(struct lessons *l, uint32_t root_key, uint32_t *cursor,
                          const struct tt_weight *given, unsigned count, struct tt_weight *out,
                          unsigned room)
{
    CHECK(count <= LESSONS_KEPT);
    uint32_t end = count == 0 ? lessons_end(l)
                              : atomic_fetch_add_explicit(&l->end, count, memory_order_relaxed);
    for (uint32_t i = 0; i < count; i++) {
        atomic_store_explicit(&l->at[(end + i) % LESSONS_KEPT],
                              pack(label(root_key, end + i), given[i]), memory_order_relaxed);
    }
    uint32_t most = room < LESSONS_KEPT - count ? room : LESSONS_KEPT - count;
    uint32_t at = end - *cursor <= most ? *cursor : end - most;
    unsigned n = 0;
    for (; at != end; at++) {
        uint64_t word = atomic_load_explicit(&l->at[at % LESSONS_KEPT], memory_order_relaxed);
        struct tt_weight lesson = unpack(word);
        if (has_label(word, label(root_key, at)) && lesson.weight > 0) {
            out[n++] = lesson;
        }
    }
    *cursor = end + count;
    return n;
}
