#include "ttserver/core/history_tables.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { PAGE_BYTES = 4096 };

enum err ttcore_histories_open(struct ttcore_histories *histories, uint32_t max, uint32_t user_max)
{
    size_t bytes = max * sizeof *histories->slot;
    volatile uint8_t *room = calloc(1, bytes);
    histories->slot = (struct ttcore_history *)room;
    histories->max = max;
    histories->user_max = user_max;
    for (size_t at = 0; room != NULL && at < bytes; at += PAGE_BYTES) {
        room[at] = 0; /* taken from the system now: what a shard uses does not grow with its jobs */
    }
    return room != NULL ? ERR_OK : ERR_NOMEM;
}

void ttcore_histories_close(struct ttcore_histories *histories)
{
    free(histories->slot);
    memset(histories, 0, sizeof *histories);
}

static bool is_used(const struct ttcore_history *h, uint64_t now_us)
{
    return h->epoch != 0 && h->used_us + TTCORE_HISTORY_KEEP_US > now_us;
}

struct ttcore_history *ttcore_histories_of(struct ttcore_histories *histories, uint64_t root_key,
                                           uint64_t user, uint64_t now_us)
{
    struct ttcore_history *oldest = &histories->slot[0];
    uint32_t of_user = 0;
    for (uint32_t i = 0; i < histories->max; i++) {
        struct ttcore_history *h = &histories->slot[i];
        if (h->epoch != 0 && h->root_key == root_key) {
            h->used_us = now_us;
            return h;
        }
        of_user += h->user == user && is_used(h, now_us);
        if (oldest->epoch != 0 && (h->epoch == 0 || h->used_us < oldest->used_us)) {
            oldest = h;
        }
    }
    if (is_used(oldest, now_us) || of_user >= histories->user_max) {
        return NULL;
    }
    if (oldest->epoch != 0) {
        memset(oldest, 0, sizeof *oldest);
    }
    CHECK_THAT(oldest->sums.now == 0 && oldest->sums.halvings == 0, "histories: one begins empty");
    oldest->root_key = root_key;
    oldest->user = user;
    oldest->used_us = now_us;
    histories->epochs += histories->epochs + 1 != 0 ? 1 : 2;
    oldest->epoch = histories->epochs;
    CHECK_THAT(oldest->epoch != 0, "histories: one in use has an epoch");
    return oldest;
}
