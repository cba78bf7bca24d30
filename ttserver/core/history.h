/* ttcore_histories: the history tables of a shard, one for each root its searchers speak of (a
 * root_key). The one that nobody spoke of for longest makes room for a new one. Threads: the core's
 * owner. Memory: allocates in open only, TTCORE_HISTORY_BYTES a root_key. */
#ifndef TTSERVER_CORE_HISTORY_H
#define TTSERVER_CORE_HISTORY_H

#include "common/err.h"
#include "common/tt/history.h"

#include <stdint.h>

enum {
    TTCORE_HISTORY_BYTES = 8 * TT_WEIGHTS + 64,
    TTCORE_HISTORY_KEEP_US = 2000000, /* a root_key used since then does not make room */
};

struct ttcore_history {
    uint64_t root_key;
    uint64_t used_us;
    uint32_t epoch; /* another root_key, or the same begun anew, has another; 0: free */
    struct tt_history sums;
};
_Static_assert(sizeof(struct ttcore_history) <= TTCORE_HISTORY_BYTES, "what STATS tell");

struct ttcore_histories {
    struct ttcore_history *slot;
    uint32_t max, epochs;
};

/* ERR_NOMEM. */
enum err ttcore_histories_open(struct ttcore_histories *histories, uint32_t max);
/* Accepts a zeroed struct, and twice. */
void ttcore_histories_close(struct ttcore_histories *histories);

/* The root_key's, begun anew when it is not there; NULL when all were used lately. */
struct ttcore_history *ttcore_histories_of(struct ttcore_histories *histories, uint64_t root_key,
                                           uint64_t now_us);

#endif
