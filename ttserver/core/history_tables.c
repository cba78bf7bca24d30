#include "ttserver/core/history_tables.h"

#include <stdlib.h>
#include <string.h>

enum { PAGE_BYTES = 4096 };

enum err ttcore_histories_open(struct ttcore_histories *histories, uint32_t max)
{
    size_t bytes = max * sizeof *histories->slot;
    volatile uint8_t *room = calloc(1, bytes);
    histories->slot = (struct ttcore_history *)room;
    histories->max = max;
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

struct ttcore_history *ttcore_histories_of(struct ttcore_histories *histories, uint64_t root_key,
                                           uint64_t now_us)
{
    struct ttcore_history *oldest = &histories->slot[0];
    for (uint32_t i = 0; i < histories->max; i++) {
        struct ttcore_history *h = &histories->slot[i];
        if (h->epoch != 0 && h->root_key == root_key) {
            h->used_us = now_us;
            return h;
        }
        if (oldest->epoch != 0 && (h->epoch == 0 || h->used_us < oldest->used_us)) {
            oldest = h;
        }
    }
    if (oldest->epoch != 0 && oldest->used_us + TTCORE_HISTORY_KEEP_US > now_us) {
        return NULL;
    }
    if (oldest->epoch != 0) {
        memset(oldest, 0, sizeof *oldest);
    }
    oldest->root_key = root_key;
    oldest->used_us = now_us;
    histories->epochs += histories->epochs + 1 != 0 ? 1 : 2;
    oldest->epoch = histories->epochs;
    return oldest;
}
