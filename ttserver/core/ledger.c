#include "ttserver/core/ledger.h"

static void set_bit(struct ttcore_ledger *s, uint64_t bucket)
{
    _Atomic uint64_t *word = &s->unwritten[bucket / 64];
    uint64_t bit = UINT64_C(1) << bucket % 64;
    /* Not a test whether it is set already: who cleared it meanwhile may have read the bucket as it
     * was before. */
    atomic_fetch_or_explicit(word, bit, memory_order_release);
}

void ttcore_ledger_note(struct ttcore_ledger *s, const struct tt_results *results,
                        const struct tt_store *store, uint32_t count)
{
    uint64_t deep = 0;
    for (uint32_t i = 0; s->unwritten != NULL && i < count; i++) {
        if (store[i].depth >= s->depth_min) {
            set_bit(s, (uint64_t)(tt_results_bucket(results, store[i].key) - results->bucket));
            deep++;
        }
    }
    if (deep > 0) {
        ttcore_ledger_add(&s->deep, deep);
    }
    ttcore_ledger_add(&s->changes, count);
}
