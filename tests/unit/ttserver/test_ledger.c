#include "tests/support/test_tt.h"

#include "ttserver/core/ledger.h"

#include <pthread.h>
#include <stdlib.h>

enum {
    BUCKETS = 200, /* few: the last store of each is what a fault shows at */
    WORDS = (BUCKETS + 63) / 64,
    DEPTH_MIN = 4,
    STORES = 1000,
    ROUNDS = 1000,
};

struct shard {
    struct tt_generations generations;
    struct tt_results results;
    struct ttcore_ledger ledger;
    uint64_t seed;
    atomic_bool is_done;
};

static int open_shard(void **state)
{
    struct shard *s = calloc(1, sizeof *s);
    tt_generations_init(&s->generations);
    assert_int_equal(
        tt_results_open(&s->results, BUCKETS * sizeof(struct tt_bucket), &s->generations), ERR_OK);
    s->ledger.words = WORDS;
    s->ledger.unwritten = calloc(WORDS, sizeof *s->ledger.unwritten);
    s->ledger.depth_min = DEPTH_MIN;
    *state = s;
    return 0;
}

static int close_shard(void **state)
{
    struct shard *s = *state;
    tt_results_close(&s->results);
    free(s->ledger.unwritten);
    free(s);
    return 0;
}

static uint64_t bucket_of(const struct shard *s, uint64_t key)
{
    return (uint64_t)(tt_results_bucket(&s->results, key) - s->results.bucket);
}

static bool is_noted(struct shard *s, uint64_t key)
{
    uint64_t bucket = bucket_of(s, key);
    return ttcore_ledger_read(&s->ledger.unwritten[bucket / 64]) >> bucket % 64 & 1;
}

static void a_store_notes_its_bucket_if_it_is_deep_enough(void **state)
{
    struct shard *s = *state;
    const struct tt_store store[] = {
        tt_result(UINT64_C(1) << 60, DEPTH_MIN - 1, TT_EXACT, 1, 1),
        tt_result(UINT64_C(2) << 60, DEPTH_MIN, TT_EXACT, 1, 1),
        tt_result(UINT64_MAX, TT_DEPTH_MAX, TT_EXACT, 1, 1),
    };
    ttcore_ledger_note(&s->ledger, &s->results, store, 3);
    assert_false(is_noted(s, store[0].key));
    assert_true(is_noted(s, store[1].key));
    assert_true(is_noted(s, store[2].key));
    assert_int_equal(bucket_of(s, UINT64_MAX), BUCKETS - 1);
    assert_int_equal(s->ledger.deep, 2);
    assert_int_equal(s->ledger.changes, 3);
}

static void where_nobody_writes_only_changes_count(void **state)
{
    struct shard *s = *state;
    const struct tt_store store = tt_result(5, 9, TT_EXACT, 1, 1);
    _Atomic uint64_t *bits = s->ledger.unwritten;
    s->ledger.unwritten = NULL;
    ttcore_ledger_note(&s->ledger, &s->results, &store, 1);
    assert_int_equal(s->ledger.deep, 0);
    assert_int_equal(s->ledger.changes, 1);
    s->ledger.unwritten = bits;
}

/* ---- a thread that writes down what another stores ---- */

static void *store_all(void *context)
{
    struct shard *s = context;
    for (unsigned i = 0; i < STORES; i++) {
        struct tt_store store = tt_result(rng_next(&s->seed), DEPTH_MIN + i % 5, TT_EXACT,
                                          (int)(i % 30000), (uint16_t)(1 + i % 1000));
        tt_results_store(&s->results, &store, 2);
        ttcore_ledger_note(&s->ledger, &s->results, &store, 1);
    }
    atomic_store(&s->is_done, true);
    return NULL;
}

static bool are_equal(const struct tt_scanned *a, const struct tt_scanned *b)
{
    return a->key == b->key && a->lower == b->lower && a->upper == b->upper && a->move == b->move &&
           a->depth == b->depth;
}

static void write_down(struct shard *s, struct tt_scanned copy[BUCKETS][TT_BUCKET_ENTRIES])
{
    for (uint64_t w = 0; w < WORDS; w++) {
        uint64_t bits = atomic_exchange_explicit(&s->ledger.unwritten[w], 0, memory_order_acquire);
        for (unsigned i = 0; i < 64; i++) {
            for (unsigned slot = 0; bits >> i & 1 && slot < TT_BUCKET_ENTRIES; slot++) {
                struct tt_scanned *entry = &copy[w * 64 + i][slot];
                *entry = (struct tt_scanned){0};
                (void)tt_results_entry(&s->results, w * 64 + i, slot, entry);
            }
        }
    }
}

/* What it read of a bucket last is what the bucket has in the end: no store goes unwritten. */
static void what_is_read_when_noted_is_what_there_is_in_the_end(void **state)
{
    struct shard *s = *state;
    static struct tt_scanned copy[BUCKETS][TT_BUCKET_ENTRIES];
    s->seed = tt_seed();
    for (unsigned round = 0; round < ROUNDS; round++) {
        pthread_t thread;
        atomic_store(&s->is_done, false);
        assert_int_equal(pthread_create(&thread, NULL, store_all, s), 0);
        for (bool ends = false; !ends;) {
            ends = atomic_load(&s->is_done);
            write_down(s, copy);
        }
        assert_int_equal(pthread_join(thread, NULL), 0);
        for (uint64_t bucket = 0; bucket < BUCKETS; bucket++) {
            for (unsigned slot = 0; slot < TT_BUCKET_ENTRIES; slot++) {
                struct tt_scanned is = {0};
                (void)tt_results_entry(&s->results, bucket, slot, &is);
                assert_true(are_equal(&is, &copy[bucket][slot]));
            }
        }
    }
    assert_int_equal(s->ledger.deep, ROUNDS * STORES);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_shard, close_shard)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_store_notes_its_bucket_if_it_is_deep_enough),
        TEST(where_nobody_writes_only_changes_count),
        TEST(what_is_read_when_noted_is_what_there_is_in_the_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
