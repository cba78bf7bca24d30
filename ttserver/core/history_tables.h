/* ttcore_histories: the history tables of a shard, one for each root key that its searchers name.
 *
 * The one unused for longest makes room for a new one, if that is TTCORE_HISTORY_KEEP_US. Threads:
 * the core's owner. Memory: allocates in open only, TTCORE_HISTORY_BYTES a table. */
#ifndef TTSERVER_CORE_HISTORY_TABLES_H
#define TTSERVER_CORE_HISTORY_TABLES_H

#include "common/err.h"
#include "common/tt/history_sums.h"

#include <stdint.h>

enum {
    TTCORE_HISTORY_BYTES = 8 * TT_WEIGHTS + 64,
    TTCORE_HISTORY_KEEP_US = 2000000, /* a root_key used since then does not make room */
};

struct ttcore_history {
    uint64_t root_key;
    uint64_t user; /* who named it first */
    uint64_t used_us;
    uint32_t epoch; /* another root key, or the same begun anew, has another; 0: free */
    struct tt_history sums;
};
_Static_assert(sizeof(struct ttcore_history) <= TTCORE_HISTORY_BYTES, "as STATS counts the memory");

struct ttcore_histories {
    struct ttcore_history *slot;
    uint32_t max, epochs;
    uint32_t user_max; /* of one user, that are in use */
};

/* ERR_NOMEM. */
enum err ttcore_histories_open(struct ttcore_histories *histories, uint32_t max, uint32_t user_max);
/* Accepts a zeroed struct, and twice. */
void ttcore_histories_close(struct ttcore_histories *histories);

/* That of the root key, begun anew when there is none; NULL when all were used lately, or the user
 * has as many of those as it may. */
struct ttcore_history *ttcore_histories_of(struct ttcore_histories *histories, uint64_t root_key,
                                           uint64_t user, uint64_t now_us);

#endif
