/* Ages of results, apart for each namespace. */
#include "tests/unit/test_tt.h"

#include "common/tt/generation.h"

static uint8_t begin(struct tt_generations *g, uint64_t namespace_id)
{
    return tt_generations_at(g, tt_generations_advance(g, namespace_id));
}

static uint8_t present(struct tt_generations *g, uint64_t namespace_id)
{
    return tt_generations_at(g, tt_generations_use(g, namespace_id));
}

static void a_job_ages_its_own_namespace_alone(void **state)
{
    (void)state;
    struct tt_generations g;
    tt_generations_init(&g);
    uint8_t a = begin(&g, 10), b = begin(&g, 20), next = begin(&g, 10);
    assert_true(a != b && b != next && next != a);
    assert_int_equal(tt_generations_rank(&g, next), TT_GENERATION_NEWEST);
    assert_int_equal(tt_generations_rank(&g, b), TT_GENERATION_NEWEST);
    assert_int_equal(tt_generations_rank(&g, a), TT_GENERATION_NEWEST - 1);
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

static void the_present_generation_of_a_namespace_is_not_used_again(void **state)
{
    (void)state;
    struct tt_generations g;
    tt_generations_init(&g);
    uint8_t kept = begin(&g, 1);
    for (unsigned i = 0; i < 1000; i++) {
        assert_true(begin(&g, 2) != kept);
    }
    assert_int_equal(tt_generations_rank(&g, kept), TT_GENERATION_NEWEST);
    assert_int_equal(present(&g, 1), kept);
}

static void an_unknown_namespace_is_one_job_old(void **state)
{
    (void)state;
    struct tt_generations g;
    tt_generations_init(&g);
    assert_int_equal(present(&g, 5), TT_GENERATION_NONE);
    begin(&g, 6);
    assert_int_equal(present(&g, 5), TT_GENERATION_NONE);
    assert_int_equal(present(&g, 0), TT_GENERATION_NONE); /* a free place is nobody's */
    assert_int_equal(tt_generations_rank(&g, TT_GENERATION_NONE), TT_GENERATION_NEWEST - 1);
}

static void the_least_recently_used_namespace_is_forgotten(void **state)
{
    (void)state;
    struct tt_generations g;
    uint8_t first[TT_NAMESPACES];
    tt_generations_init(&g);
    for (unsigned i = 0; i < TT_NAMESPACES; i++) {
        first[i] = begin(&g, 100 + i);
    }
    assert_int_equal(present(&g, 100), first[0]); /* used again: the next is the oldest now */
    uint8_t fresh = begin(&g, 200);
    assert_int_equal(present(&g, 101), TT_GENERATION_NONE);
    assert_int_equal(tt_generations_rank(&g, first[1]), TT_GENERATION_NEWEST - 1);
    for (unsigned i = 0; i < TT_NAMESPACES; i++) {
        if (i != 1) {
            assert_int_equal(present(&g, 100 + i), first[i]);
            assert_int_equal(tt_generations_rank(&g, first[i]), TT_GENERATION_NEWEST);
        }
    }
    begin(&g, 200);
    assert_int_equal(tt_generations_rank(&g, fresh), TT_GENERATION_NEWEST - 1);
    assert_int_equal(tt_generations_rank(&g, first[1]), TT_GENERATION_NEWEST - 1); /* not its own */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_job_ages_its_own_namespace_alone),
        cmocka_unit_test(one_namespace_goes_round_in_order),
        cmocka_unit_test(the_present_generation_of_a_namespace_is_not_used_again),
        cmocka_unit_test(an_unknown_namespace_is_one_job_old),
        cmocka_unit_test(the_least_recently_used_namespace_is_forgotten),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
