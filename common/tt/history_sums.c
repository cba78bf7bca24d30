#include "common/tt/history_sums.h"

#include "common/err.h"

enum { CLASSES = 33 };

void tt_history_add(struct tt_history *h, const struct tt_weight *weight, uint32_t count)
{
    bool full = false;
    h->now += count > 0;
    for (uint32_t i = 0; i < count; i++) {
        CHECK_THAT(weight[i].index < TT_WEIGHTS, "history: a weight has a place");
        uint32_t *sum = &h->weight[weight[i].index];
        CHECK_THAT(*sum < TT_HISTORY_LIMIT || full, "history: sums are halved at the limit");
        uint32_t room = TT_HISTORY_LIMIT - *sum;
        *sum += weight[i].weight < room ? weight[i].weight : room;
        h->changed[weight[i].index] = h->now;
        full = full || *sum == TT_HISTORY_LIMIT;
    }
    for (uint32_t i = 0; i < TT_WEIGHTS && full; i++) {
        h->weight[i] /= 2;
    }
    h->halvings += full;
}

/* The number of bits of a weight. */
static unsigned class_of(uint32_t weight)
{
    return weight == 0 ? 0 : 32 - (unsigned)__builtin_clz(weight);
}

uint32_t tt_history_read(const struct tt_history *h, uint32_t cursor, struct tt_weight *out,
                         uint32_t room)
{
    uint32_t of_class[CLASSES] = {0}, sum = 0, n = 0;
    unsigned lowest = CLASSES;
    cursor = cursor > h->now ? 0 : cursor;
    for (uint32_t i = 0; i < TT_WEIGHTS; i++) {
        of_class[class_of(h->weight[i])] += h->changed[i] > cursor;
    }
    while (lowest > 0 && sum + of_class[lowest - 1] <= room) {
        sum += of_class[--lowest];
    }
    uint32_t rest = room - sum; /* for a part of the next class */
    CHECK_THAT(sum <= room, "history: whole classes have room");
    for (uint32_t i = 0; i < TT_WEIGHTS; i++) {
        unsigned class = h->changed[i] > cursor ? class_of(h->weight[i]) + 1 : 0;
        bool is_part = class > 0 && class == lowest && rest > 0;
        if (class > lowest || is_part) {
            CHECK_THAT(n < room, "history: what is read has room");
            out[n++] = (struct tt_weight){(uint16_t)i, h->weight[i]};
            rest -= is_part;
        }
    }
    return n;
}
