/* Ages of results, apart for each namespace. */
#include "tests/support/test_tt.h"

#include "common/tt/generation.h"

static uint8_t begin(struct tt_generations *g, uint64_t namespace_id)
{
    return tt_generations_of(g, tt_generations_advance(g, namespace_id), namespace_id);
}

static uint8_t present(struct tt_generations *g, uint64_t namespace_id)
{
    return tt_generations_of(g, tt_generations_use(g, namespace_id), namespace_id);
}

static unsigned rank_of(const struct tt_generations *g, uint8_t generation)
{
    return tt_generations_rank(g, generation);
}

static void a_job_ages_no_namespace_in_use(void **state)
{
    (void)state;
    struct tt_generations g;
    tt_generations_init(&g);
    uint8_t a = begin(&g, 10), b = begin(&g, 20), next = begin(&g, 10);
    assert_true(a != b && b != next && next != a);
    assert_int_equal(rank_of(&g, next), TT_GENERATION_NEWEST);
    assert_int_equal(rank_of(&g, b), TT_GENERATION_NEWEST);
    assert_int_equal(rank_of(&g, a), TT_GENERATION_NEWEST - 1);
    assert_int_equal(present(&g, 10), next);
    assert_int_equal(present(&g, 20), b);
}

static void one_namespace_goes_round_in_order(void **state)
{
    (void)state;
    struct tt_generations g;
    uint8_t last[4] = {0};
    tt_generations_init(&g);
    for (unsigned i = 0; i < 1000; i++) {
        for (unsigned k = 3; k > 0; k--) {
            last[k] = last[k - 1];
        }
        last[0] = begin(&g, 7);
        assert_true(last[0] > TT_GENERATION_NONE);
        for (unsigned k = 0; k < 4 && k < i; k++) {
            assert_int_equal(tt_generations_rank(&g, last[k]), TT_GENERATION_NEWEST - k);
        }
    }
    unsigned of_rank[256] = {0};
    for (unsigned i = TT_GENERATION_NONE + 1; i < 256; i++) {
        of_rank[tt_generations_rank(&g, (uint8_t)i)]++;
    }
    for (unsigned rank = 2; rank < 256; rank++) {
        assert_int_equal(of_rank[rank], 1); /* 254 ages, all told apart */
    }
}

static void a_generation_in_use_is_not_drawn_again(void **state)
{
    (void)state;
    struct tt_generations g;
    tt_generations_init(&g);
    uint8_t kept = begin(&g, 1);
    for (unsigned i = 0; i < 1000; i++) {
        assert_true(begin(&g, 2) != kept);
        assert_int_equal(present(&g, 1), kept);
        assert_int_equal(rank_of(&g, kept), TT_GENERATION_NEWEST);
    }
}

/* As with a namespace for each job, which nobody uses afterwards. */
static void an_unused_namespace_ages(void **state)
{
    (void)state;
    struct tt_generations g;
    uint8_t begun[40];
    tt_generations_init(&g);
    for (unsigned i = 0; i < 40; i++) {
        begun[i] = begin(&g, 1000 + i);
    }
    for (unsigned i = 0; i + 1 < 40; i++) {
        unsigned jobs = 39 - i, unused = TT_NAMESPACE_JOBS;
        unsigned age = jobs > unused ? jobs - unused : 0;
        assert_in_range(rank_of(&g, begun[i]), TT_GENERATION_NEWEST - age,
                        TT_GENERATION_NEWEST - (age > 1 ? age - 1 : 0));
    }
    uint8_t again = present(&g, 1000); /* it returns as a new one */
    assert_true(again != begun[0]);
    assert_int_equal(rank_of(&g, again), TT_GENERATION_NEWEST);
}

static void a_namespace_without_a_job_has_a_generation_while_it_is_used(void **state)
{
    (void)state;
    struct tt_generations g;
    tt_generations_init(&g);
    uint8_t own = present(&g, 5);
    assert_true(own > TT_GENERATION_NONE);
    for (unsigned i = 0; i < 10; i++) {
        begin(&g, 6);
        assert_int_equal(present(&g, 5), own);
    }
    assert_int_equal(rank_of(&g, TT_GENERATION_NONE), 1); /* of stores without any: the oldest */
}

static void the_least_recently_used_namespace_is_forgotten(void **state)
{
    (void)state;
    struct tt_generations g;
    uint8_t first[TT_NAMESPACES];
    tt_generations_init(&g);
    for (unsigned i = 0; i < TT_NAMESPACES; i++) {
        first[i] = begin(&g, 100 + i);
        for (unsigned k = 0; k < i; k++) {
            assert_int_equal(present(&g, 100 + k), first[k]);
        }
    }
    begin(&g, 100); /* all others were used before it */
    first[0] = present(&g, 100);
    for (unsigned i = 2; i < TT_NAMESPACES; i++) {
        assert_int_equal(present(&g, 100 + i), first[i]);
    }
    unsigned place = tt_generations_advance(&g, 200);
    assert_int_equal(tt_generations_of(&g, place, 101), TT_GENERATION_NONE);
    assert_true(present(&g, 101) != first[1]);
    assert_int_equal(present(&g, 200), tt_generations_of(&g, place, 200));
}

/* What two threads that race may leave: the same namespace twice. */
static void a_double_ends_with_the_next_job(void **state)
{
    (void)state;
    struct tt_generations g;
    tt_generations_init(&g);
    uint8_t one = begin(&g, 7);
    g.known[5] = g.known[0];
    g.known[5].generation = 200;
    g.offset[200] = TT_GENERATION_NEWEST - 200;
    begin(&g, 7);
    begin(&g, 7);
    assert_true(rank_of(&g, 200) < TT_GENERATION_NEWEST && rank_of(&g, one) < TT_GENERATION_NEWEST);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_job_ages_no_namespace_in_use),
        cmocka_unit_test(one_namespace_goes_round_in_order),
        cmocka_unit_test(a_generation_in_use_is_not_drawn_again),
        cmocka_unit_test(an_unused_namespace_ages),
        cmocka_unit_test(a_namespace_without_a_job_has_a_generation_while_it_is_used),
        cmocka_unit_test(the_least_recently_used_namespace_is_forgotten),
        cmocka_unit_test(a_double_ends_with_the_next_job),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
