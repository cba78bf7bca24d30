#include "tests/support/test_tt.h"

#include "common/tt/results.h"

enum { ONE_BUCKET = 64, BIG = 1 << 20, NAMESPACE_KEYS = 9 };

static struct tt_generations generations;

/* The ages of generations are by their numbers until one begins. */
static struct tt_results open_table(size_t bytes)
{
    struct tt_results table = {0};
    tt_generations_init(&generations);
    for (unsigned i = 0; i <= UINT8_MAX; i++) {
        generations.offset[i] = 0;
    }
    assert_int_equal(tt_results_open(&table, bytes, &generations), ERR_OK);
    return table;
}

static void put(struct tt_results *table, uint8_t generation, struct tt_store store)
{
    tt_results_store(table, &store, generation);
}

static void put_exact(struct tt_results *table, uint8_t generation, uint64_t key, uint8_t depth)
{
    put(table, generation, tt_result(key, depth, TT_EXACT, (int)key, (uint16_t)key));
}

static bool knows(const struct tt_results *table, uint64_t key)
{
    struct tt_found found;
    return tt_results_find(table, key, TT_DEPTH_MAX, &found);
}

static struct tt_found find(const struct tt_results *table, uint64_t key)
{
    struct tt_found found = {0};
    tt_results_prefetch(table, key);
    assert_true(tt_results_find(table, key, TT_DEPTH_MAX, &found));
    return found;
}

static void expect(const struct tt_results *table, uint64_t key, uint8_t depth, int lower,
                   int upper, uint16_t move)
{
    struct tt_found found = find(table, key);
    assert_int_equal(found.depth, depth);
    assert_int_equal(found.lower, lower);
    assert_int_equal(found.upper, upper);
    assert_int_equal(found.move, move);
}

/* ---- find ---- */

static void an_empty_table_knows_nothing(void **state)
{
    (void)state;
    struct tt_results table = open_table(BIG);
    assert_false(knows(&table, 0));
    assert_false(knows(&table, 1));
    assert_false(knows(&table, UINT64_MAX));
    tt_results_close(&table);
}

static void what_was_stored_is_found(void **state)
{
    (void)state;
    static const uint64_t keys[] = {0, 1, UINT64_MAX, UINT64_C(1) << 63, 12345};
    struct tt_results table = open_table(BIG);
    for (unsigned i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        put(&table, 1, tt_result(keys[i], TT_DEPTH_MAX, TT_EXACT, TT_SCORE_MIN, UINT16_MAX));
        expect(&table, keys[i], TT_DEPTH_MAX, TT_SCORE_MIN, TT_SCORE_MIN, UINT16_MAX);
        put(&table, 1, tt_result(keys[i] ^ 2, 0, TT_EXACT, 0, 0));
        expect(&table, keys[i] ^ 2, 0, 0, 0, 0);
    }
    tt_results_close(&table);
}

static void a_bound_leaves_the_other_side_open(void **state)
{
    (void)state;
    struct tt_results table = open_table(BIG);
    put(&table, 1, tt_result(1, 5, TT_LOWER, -7, 3));
    put(&table, 1, tt_result(2, 5, TT_UPPER, -7, 0));
    expect(&table, 1, 5, -7, TT_SCORE_MAX, 3);
    expect(&table, 2, 5, TT_SCORE_MIN, -7, 0);
    tt_results_close(&table);
}

static void a_torn_entry_is_a_miss(void **state)
{
    (void)state;
    struct tt_results table = open_table(ONE_BUCKET);
    struct tt_entry *entry = &table.bucket[0].slot[0];
    for (unsigned bit = 0; bit < 64; bit++) {
        tt_results_clear(&table);
        put_exact(&table, 1, 77, 5);
        assert_true(knows(&table, 77));
        atomic_store(&entry->body, atomic_load(&entry->body) ^ UINT64_C(1) << bit);
        assert_false(knows(&table, 77));
        /* Both halves from different writes of one key. */
        put(&table, 1, tt_result(78, 5, TT_LOWER, 10, 1));
        assert_true(knows(&table, 78));
    }
    tt_results_close(&table);
}

static void a_key_that_differs_in_any_bit_is_a_miss(void **state)
{
    (void)state;
    struct tt_results table = open_table(ONE_BUCKET);
    uint64_t key = UINT64_C(0x0123456789abcdef);
    put_exact(&table, 1, key, 5);
    for (unsigned bit = 0; bit < 64; bit++) {
        assert_false(knows(&table, key ^ UINT64_C(1) << bit));
    }
    tt_results_close(&table);
}

/* ---- replacement ---- */

static void the_same_key_is_replaced_before_an_empty_place(void **state)
{
    (void)state;
    struct tt_results table = open_table(ONE_BUCKET);
    for (uint8_t depth = 1; depth < 20; depth++) {
        put_exact(&table, depth, 5, depth);
    }
    put_exact(&table, 19, 6, 1);
    put_exact(&table, 19, 7, 1);
    put_exact(&table, 19, 8, 1);
    assert_int_equal(find(&table, 5).depth, 19);
    assert_true(knows(&table, 6) && knows(&table, 7) && knows(&table, 8));
    tt_results_close(&table);
}

static void the_oldest_generation_goes_before_the_shallowest(void **state)
{
    (void)state;
    struct tt_results table = open_table(ONE_BUCKET);
    put_exact(&table, 2, 1, 200);
    put_exact(&table, 4, 2, 1);
    put_exact(&table, 3, 3, 1);
    put_exact(&table, 4, 4, 2);
    put_exact(&table, 5, 5, 0);
    assert_false(knows(&table, 1));
    put_exact(&table, 5, 6, 0);
    assert_false(knows(&table, 3));
    assert_true(knows(&table, 2) && knows(&table, 4) && knows(&table, 5) && knows(&table, 6));
    tt_results_close(&table);
}

static void the_shallowest_of_one_generation_goes(void **state)
{
    (void)state;
    struct tt_results table = open_table(ONE_BUCKET);
    put_exact(&table, 1, 1, 9);
    put_exact(&table, 1, 2, 4);
    put_exact(&table, 1, 3, 7);
    put_exact(&table, 1, 4, 5);
    put_exact(&table, 1, 5, 1);
    assert_false(knows(&table, 2));
    put_exact(&table, 1, 6, 8);
    assert_false(knows(&table, 5));
    assert_true(knows(&table, 1) && knows(&table, 3) && knows(&table, 4) && knows(&table, 6));
    tt_results_close(&table);
}

static void a_deeper_result_of_this_generation_stays(void **state)
{
    (void)state;
    struct tt_results table = open_table(ONE_BUCKET);
    put(&table, 3, tt_result(1, 8, TT_LOWER, 50, 9));
    put(&table, 3, tt_result(1, 7, TT_EXACT, -50, 8));
    expect(&table, 1, 8, 50, TT_SCORE_MAX, 9);
    put(&table, 4, tt_result(1, 7, TT_EXACT, -50, 8));
    expect(&table, 1, 7, -50, -50, 8);
    tt_results_close(&table);
}

static void a_fail_low_keeps_the_old_move(void **state)
{
    (void)state;
    struct tt_results table = open_table(ONE_BUCKET);
    put(&table, 2, tt_result(1, 4, TT_LOWER, 50, 9));
    put(&table, 2, tt_result(1, 5, TT_UPPER, 20, 0));
    expect(&table, 1, 5, TT_SCORE_MIN, 20, 9);
    put(&table, 3, tt_result(1, 3, TT_UPPER, 20, 0));
    expect(&table, 1, 3, TT_SCORE_MIN, 20, 9);
    put(&table, 3, tt_result(1, 3, TT_EXACT, 10, 7));
    expect(&table, 1, 3, 10, 10, 7);
    tt_results_close(&table);
}

/* ---- what survived a restart ---- */

static void put_beside(struct tt_results *table, struct tt_store store)
{
    store.bound |= TT_BESIDE;
    tt_results_store(table, &store, 1);
}

/* Strict searches: results of several depths lie beside each other, and lend a move for order to
 * one that has none, but never as what proves a bound. */
static void results_of_several_depths_stay_beside_each_other(void **state)
{
    struct tt_results table = open_table(ONE_BUCKET);
    struct tt_found found;
    (void)state;
    for (uint8_t depth = 4; depth < 7; depth++) {
        put_beside(&table, tt_result(1, depth, TT_LOWER, depth, depth));
    }
    put_beside(&table, tt_result(1, 3, TT_UPPER, 9, 0));
    for (uint8_t depth = 4; depth < 7; depth++) {
        assert_true(tt_results_find(&table, 1, depth, &found));
        assert_int_equal(found.depth, depth);
        assert_int_equal(found.lower, depth);
        assert_int_equal(found.move, depth);
    }
    assert_true(tt_results_find(&table, 1, 3, &found));
    assert_int_equal(found.upper, 9);
    assert_int_equal(found.move, 6); /* of the deepest */
    assert_true(tt_results_find(&table, 1, 9, &found));
    assert_int_equal(found.depth, 6);
    put_beside(&table, tt_result(1, 5, TT_LOWER, 8, 0)); /* as after a null move */
    assert_true(tt_results_find(&table, 1, 5, &found));
    assert_int_equal(found.lower, 8);
    assert_int_equal(found.move, 0);
    put_beside(&table,
               tt_result(1, 8, TT_EXACT, 1, 2)); /* the shallowest goes, of the key or not */
    assert_true(tt_results_find(&table, 1, 3, &found));
    assert_int_equal(found.depth, 8);
    tt_results_close(&table);
}

static void a_restored_entry_answers_and_stays_beside_a_shallower_one(void **state)
{
    (void)state;
    struct tt_results table = open_table(ONE_BUCKET);
    tt_results_restore(&table, &(struct tt_scanned){1, -5, 20, 9, 7});
    expect(&table, 1, 7, -5, 20, 9);
    put(&table, 2, tt_result(1, 3, TT_EXACT, 1, 4));
    expect(&table, 1, 7, -5, 20, 9);
    assert_int_equal(find(&table, 1).generation, 2);
    put(&table, 2, tt_result(1, 8, TT_EXACT, 1, 4));
    expect(&table, 1, 8, 1, 1, 4);
    tt_results_close(&table);
}

static void a_restored_entry_replaces_no_deeper_one(void **state)
{
    (void)state;
    struct tt_results table = open_table(ONE_BUCKET);
    put(&table, 2, tt_result(1, 8, TT_EXACT, 1, 4));
    tt_results_restore(&table, &(struct tt_scanned){1, -5, 20, 9, 7});
    tt_results_restore(&table, &(struct tt_scanned){1, -5, 20, 9, 8});
    expect(&table, 1, 8, 1, 1, 4);
    tt_results_restore(&table, &(struct tt_scanned){1, -5, 20, 9, 9});
    expect(&table, 1, 9, -5, 20, 9);
    tt_results_close(&table);
}

static void restored_entries_of_several_depths_stay_beside_each_other(void **state)
{
    struct tt_results table = open_table(ONE_BUCKET);
    struct tt_found found;
    (void)state;
    for (uint8_t depth = 9; depth > 6; depth--) {
        tt_results_restore(&table, &(struct tt_scanned){1, depth, 20, depth, depth});
    }
    tt_results_restore(&table, &(struct tt_scanned){1, 0, 1, 1, 8}); /* of a depth that is there */
    for (uint8_t depth = 7; depth < 10; depth++) {
        assert_true(tt_results_find(&table, 1, depth, &found));
        assert_int_equal(found.depth, depth);
        assert_int_equal(found.lower, depth);
    }
    tt_results_restore(&table, &(struct tt_scanned){1, TT_SCORE_MIN, 30, 0, 3});
    assert_true(tt_results_find(&table, 1, 3, &found));
    assert_int_equal(found.move, 0); /* as it was: no other one's move */
    expect(&table, 1, 9, 9, 20, 9); /* the deepest to who asks deeper */
    tt_results_close(&table);
}

static void a_restored_entry_is_the_first_to_be_replaced(void **state)
{
    (void)state;
    struct tt_results table = open_table(ONE_BUCKET);
    tt_generations_init(&generations);
    unsigned index = tt_generations_advance(&generations, 5);
    uint8_t generation = tt_generations_of(&generations, index, 5);
    tt_results_restore(&table, &(struct tt_scanned){1, -5, 20, 9, 200});
    for (uint64_t key = 2; key < 6; key++) {
        put_exact(&table, generation, key, 1);
        assert_int_equal(knows(&table, 1), key < 5);
    }
    tt_results_close(&table);
}

/* ---- bounds of one depth ---- */

static void bounds_of_one_depth_are_merged(void **state)
{
    (void)state;
    struct tt_results table = open_table(ONE_BUCKET);
    put(&table, 1, tt_result(1, 5, TT_LOWER, 10, 3));
    put(&table, 1, tt_result(1, 5, TT_UPPER, 40, 0));
    expect(&table, 1, 5, 10, 40, 3);
    put(&table, 1, tt_result(1, 5, TT_LOWER, 20, 4));
    expect(&table, 1, 5, 20, 40, 4);
    put(&table, 1, tt_result(1, 5, TT_UPPER, 60, 0));
    expect(&table, 1, 5, 20, 40, 4);
    put(&table, 1, tt_result(1, 5, TT_UPPER, 20, 0));
    expect(&table, 1, 5, 20, 20, 4);
    tt_results_close(&table);
}

static void the_move_that_proved_the_best_lower_bound_stays(void **state)
{
    (void)state;
    struct tt_results table = open_table(ONE_BUCKET);
    put(&table, 1, tt_result(1, 5, TT_EXACT, 50, 3));
    put(&table, 1, tt_result(1, 5, TT_LOWER, 30, 4)); /* of a narrower question, come late */
    expect(&table, 1, 5, 50, 50, 3);
    put(&table, 1, tt_result(1, 5, TT_LOWER, 50, 4));
    expect(&table, 1, 5, 50, 50, 4);
    tt_results_close(&table);
}

static void a_lower_bound_comes_with_the_move_that_proved_it_or_none(void **state)
{
    (void)state;
    struct tt_results table = open_table(ONE_BUCKET);
    put(&table, 1, tt_result(1, 5, TT_LOWER, 10, 3));
    put(&table, 1, tt_result(1, 5, TT_LOWER, 20, 0)); /* as after a null move */
    expect(&table, 1, 5, 20, TT_SCORE_MAX, 0);
    put(&table, 1, tt_result(1, 5, TT_LOWER, 15, 4));
    expect(&table, 1, 5, 20, TT_SCORE_MAX, 0);
    put(&table, 1, tt_result(1, 5, TT_LOWER, 20, 4));
    expect(&table, 1, 5, 20, TT_SCORE_MAX, 4);
    put(&table, 1, tt_result(1, 5, TT_EXACT, 20, 0));
    expect(&table, 1, 5, 20, 20, 4);
    put(&table, 1, tt_result(1, 6, TT_LOWER, 5, 0));
    expect(&table, 1, 6, 5, TT_SCORE_MAX, 0);
    tt_results_close(&table);
}

static void bounds_of_different_depths_are_not_merged(void **state)
{
    (void)state;
    struct tt_results table = open_table(ONE_BUCKET);
    put(&table, 1, tt_result(1, 5, TT_LOWER, 10, 3));
    put(&table, 1, tt_result(1, 6, TT_UPPER, 40, 0));
    expect(&table, 1, 6, TT_SCORE_MIN, 40, 3);
    tt_results_close(&table);
}

static void of_contradicting_bounds_the_newer_is_believed(void **state)
{
    (void)state;
    struct tt_results table = open_table(ONE_BUCKET);
    put(&table, 1, tt_result(1, 5, TT_EXACT, 10, 3));
    put(&table, 1, tt_result(1, 5, TT_LOWER, 11, 4));
    expect(&table, 1, 5, 11, TT_SCORE_MAX, 4);
    put(&table, 1, tt_result(1, 5, TT_UPPER, 10, 0));
    expect(&table, 1, 5, TT_SCORE_MIN, 10, 4);
    put(&table, 1, tt_result(1, 5, TT_EXACT, 12, 5));
    expect(&table, 1, 5, 12, 12, 5);
    tt_results_close(&table);
}

/* ---- the table as a whole ---- */

static void the_smallest_table_has_one_bucket(void **state)
{
    (void)state;
    static const size_t sizes[] = {0, 1, 63, 64, 127};
    for (unsigned i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        struct tt_results table = open_table(sizes[i]);
        assert_int_equal(table.buckets, 1);
        assert_ptr_equal(tt_results_bucket(&table, 0), &table.bucket[0]);
        assert_ptr_equal(tt_results_bucket(&table, UINT64_MAX), &table.bucket[0]);
        tt_results_close(&table);
    }
}

static void buckets_are_within_the_table(void **state)
{
    (void)state;
    uint64_t random = tt_seed();
    for (size_t bytes = 64; bytes < 64 * 40; bytes += 64) {
        struct tt_results table = open_table(bytes);
        assert_true(table.buckets * sizeof(struct tt_bucket) <= bytes);
        assert_ptr_equal(tt_results_bucket(&table, UINT64_MAX), &table.bucket[table.buckets - 1]);
        for (unsigned i = 0; i < 100; i++) {
            uint64_t key = rng_next(&random);
            assert_true(tt_results_bucket(&table, key) < &table.bucket[table.buckets]);
        }
        tt_results_close(&table);
    }
}

static void clear_forgets_and_close_may_come_twice(void **state)
{
    (void)state;
    struct tt_results table = open_table(BIG);
    for (uint64_t key = 0; key < 5000; key++) {
        put_exact(&table, 1, rng_mix(key), 3);
    }
    tt_results_clear(&table);
    assert_int_equal(tt_results_permille(&table, 1), 0);
    for (uint64_t key = 0; key < 5000; key++) {
        assert_false(knows(&table, rng_mix(key)));
    }
    tt_results_close(&table);
    tt_results_close(&table);
    assert_null(table.bucket);
}

static void permille_counts_one_generation(void **state)
{
    (void)state;
    struct tt_results table = open_table(ONE_BUCKET);
    assert_int_equal(tt_results_permille(&table, 1), 0);
    put_exact(&table, 1, 1, 3);
    put_exact(&table, 1, 2, 3);
    put_exact(&table, 2, 3, 3);
    assert_int_equal(tt_results_permille(&table, 1), 500);
    assert_int_equal(tt_results_permille(&table, 2), 250);
    assert_int_equal(tt_results_permille(&table, 3), 0);
    put_exact(&table, 2, 1, 3);
    put_exact(&table, 2, 2, 3);
    put_exact(&table, 2, 4, 3);
    assert_int_equal(tt_results_permille(&table, 2), 1000);
    tt_results_close(&table);
}

/* ---- one bucket against a model that is a plain array ---- */

struct model_entry {
    bool used;
    uint64_t key;
    struct tt_found it;
};

static struct model_entry *model_find(struct model_entry *model, uint64_t key)
{
    for (unsigned i = 0; i < TT_BUCKET_ENTRIES; i++) {
        if (model[i].used && model[i].key == key) {
            return &model[i];
        }
    }
    return NULL;
}

/* `ended`: how many jobs had begun when a generation was no longer a present one; 0: it is one. */
struct model {
    struct model_entry entry[TT_BUCKET_ENTRIES];
    unsigned jobs, ended[256];
};

static bool goes_before(const struct model *m, const struct model_entry *a,
                        const struct model_entry *b)
{
    unsigned ended_a = m->ended[a->it.generation], ended_b = m->ended[b->it.generation];
    unsigned age_a = ended_a == 0 ? 0 : 1 + m->jobs - ended_a;
    unsigned age_b = ended_b == 0 ? 0 : 1 + m->jobs - ended_b;
    if (!a->used || !b->used) {
        return !a->used && b->used;
    }
    return age_a != age_b ? age_a > age_b : a->it.depth < b->it.depth;
}

static struct model_entry *model_victim(struct model *model)
{
    struct model_entry *victim = &model->entry[0];
    for (unsigned i = 1; i < TT_BUCKET_ENTRIES; i++) {
        if (goes_before(model, &model->entry[i], victim)) {
            victim = &model->entry[i];
        }
    }
    return victim;
}

static void model_store(struct model *model, const struct tt_store *store, uint8_t now)
{
    struct tt_found it = {
        .lower = store->bound & TT_LOWER ? store->score : TT_SCORE_MIN,
        .upper = store->bound & TT_UPPER ? store->score : TT_SCORE_MAX,
        .move = store->move,
        .depth = store->depth,
        .generation = now,
    };
    struct model_entry *old = model_find(model->entry, store->key);
    if (old != NULL && old->it.generation == now && old->it.depth > it.depth) {
        return;
    }
    bool merged = old != NULL && old->it.depth == it.depth && it.lower <= old->it.upper &&
                  old->it.lower <= it.upper;
    bool knows_no_move = it.move == 0 && it.lower == (merged ? old->it.lower : TT_SCORE_MIN);
    if (old != NULL && ((merged && old->it.lower > it.lower) || knows_no_move)) {
        it.move = old->it.move;
    }
    if (merged && old->it.lower > it.lower) {
        it.lower = old->it.lower;
    }
    if (merged && old->it.upper < it.upper) {
        it.upper = old->it.upper;
    }
    *(old != NULL ? old : model_victim(model)) = (struct model_entry){true, store->key, it};
}

static void compare(const struct tt_results *table, struct model_entry *model, uint64_t key)
{
    struct tt_found found;
    const struct model_entry *entry = model_find(model, key);
    assert_int_equal(tt_results_find(table, key, TT_DEPTH_MAX, &found), entry != NULL);
    if (entry != NULL) {
        assert_int_equal(found.lower, entry->it.lower);
        assert_int_equal(found.upper, entry->it.upper);
        assert_int_equal(found.move, entry->it.move);
        assert_int_equal(found.depth, entry->it.depth);
        assert_int_equal(found.generation, entry->it.generation);
    }
}

/* Even to the oldest and shallowest there can be. */
static void an_empty_place_goes_before_any_entry(void **state)
{
    (void)state;
    struct tt_results table = open_table(ONE_BUCKET);
    struct tt_store old = tt_result(5, 0, TT_EXACT, 1, 0), fresh = tt_result(6, 3, TT_EXACT, 1, 0);
    struct tt_found found;
    tt_results_store(&table, &old, 2);
    tt_results_store(&table, &fresh, 1);
    assert_true(tt_results_find(&table, 5, 0, &found));
    assert_true(tt_results_find(&table, 6, 3, &found));
    tt_results_close(&table);
}

/* Jobs of two namespaces begin at random; a job does not age the present generation of the other.
 */
static void a_bucket_behaves_as_its_model(void **state)
{
    (void)state;
    uint64_t random = tt_seed();
    struct tt_results table = open_table(ONE_BUCKET);
    struct model model = {0};
    uint8_t present[2] = {0};
    tt_generations_init(&generations);
    for (unsigned step = 0; step < 100000; step++) {
        for (unsigned n = 0; n < 2; n++) {
            if (step == 0 || tt_chance(&random, 2)) {
                unsigned place = tt_generations_advance(&generations, n);
                model.ended[present[n]] = ++model.jobs;
                present[n] = tt_generations_of(&generations, place, n);
                model.ended[present[n]] = 0;
            }
        }
        (void)tt_generations_use(&generations, 0);
        (void)tt_generations_use(&generations, 1);
        unsigned n = rng_below(&random, 2);
        struct tt_store store =
            tt_result((2 * rng_below(&random, NAMESPACE_KEYS) + n) * UINT64_C(0x9e3779b97f4a7c15),
                      (uint8_t)rng_below(&random, 4), (enum tt_bound)(1 + rng_below(&random, 3)),
                      (int)rng_below(&random, 9) - 4, (uint16_t)rng_below(&random, 3));
        tt_results_store(&table, &store, present[n]);
        model_store(&model, &store, present[n]);
        for (uint64_t key = 0; key < 2 * NAMESPACE_KEYS; key++) {
            compare(&table, model.entry, key * UINT64_C(0x9e3779b97f4a7c15));
        }
    }
    tt_results_close(&table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_table_knows_nothing),
        cmocka_unit_test(what_was_stored_is_found),
        cmocka_unit_test(a_bound_leaves_the_other_side_open),
        cmocka_unit_test(a_torn_entry_is_a_miss),
        cmocka_unit_test(a_key_that_differs_in_any_bit_is_a_miss),
        cmocka_unit_test(the_same_key_is_replaced_before_an_empty_place),
        cmocka_unit_test(the_oldest_generation_goes_before_the_shallowest),
        cmocka_unit_test(the_shallowest_of_one_generation_goes),
        cmocka_unit_test(a_deeper_result_of_this_generation_stays),
        cmocka_unit_test(a_fail_low_keeps_the_old_move),
        cmocka_unit_test(results_of_several_depths_stay_beside_each_other),
        cmocka_unit_test(a_restored_entry_answers_and_stays_beside_a_shallower_one),
        cmocka_unit_test(a_restored_entry_replaces_no_deeper_one),
        cmocka_unit_test(restored_entries_of_several_depths_stay_beside_each_other),
        cmocka_unit_test(a_restored_entry_is_the_first_to_be_replaced),
        cmocka_unit_test(bounds_of_one_depth_are_merged),
        cmocka_unit_test(the_move_that_proved_the_best_lower_bound_stays),
        cmocka_unit_test(a_lower_bound_comes_with_the_move_that_proved_it_or_none),
        cmocka_unit_test(bounds_of_different_depths_are_not_merged),
        cmocka_unit_test(of_contradicting_bounds_the_newer_is_believed),
        cmocka_unit_test(the_smallest_table_has_one_bucket),
        cmocka_unit_test(buckets_are_within_the_table),
        cmocka_unit_test(clear_forgets_and_close_may_come_twice),
        cmocka_unit_test(permille_counts_one_generation),
        cmocka_unit_test(an_empty_place_goes_before_any_entry),
        cmocka_unit_test(a_bucket_behaves_as_its_model),
    };
    return cmocka_run_group_tests_name("tt_results", tests, NULL, NULL);
}
