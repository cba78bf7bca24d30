/* Percentiles out of buckets. */
#include "common/histogram.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void quantiles_are_within_a_bucket_of_the_truth(void **state)
{
    static struct histogram h;
    (void)state;
    assert_true(histogram_quantile(&h, 0.5) == 0);
    for (uint64_t i = 1; i <= 100000; i++) {
        histogram_add(&h, i * 1000);
    }
    for (int percent = 1; percent <= 100; percent++) {
        double truth = percent * 1e6;
        double got = histogram_quantile(&h, percent / 100.0);
        assert_true(got > truth * 0.983 && got < truth * 1.017);
    }
    assert_true(histogram_quantile(&h, 1) <= 1e8 && h.max == 100000000 && h.count == 100000);
}

static void small_values_are_exact_and_huge_ones_are_kept(void **state)
{
    static struct histogram h;
    (void)state;
    for (unsigned i = 0; i < 128; i++) {
        assert_int_equal(histogram_bucket(i), i);
    }
    for (unsigned i = 128; i < 1u << 20; i++) { /* no gap, no step back */
        unsigned step = histogram_bucket(i) - histogram_bucket(i - 1);
        assert_true(step <= 1);
    }
    histogram_add(&h, UINT64_MAX);
    histogram_add(&h, 7);
    assert_true(histogram_quantile(&h, 0.5) == 7);
    assert_true(h.bucket[HISTOGRAM_BUCKETS - 1] == 1 && h.max == UINT64_MAX);
}

static void two_merged_are_one(void **state)
{
    static struct histogram a, b, both;
    (void)state;
    for (uint64_t i = 0; i < 5000; i++) {
        histogram_add(i % 3 ? &a : &b, i * i);
        histogram_add(&both, i * i);
    }
    histogram_merge(&a, &b);
    assert_memory_equal(&a, &both, sizeof a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quantiles_are_within_a_bucket_of_the_truth),
        cmocka_unit_test(small_values_are_exact_and_huge_ones_are_kept),
        cmocka_unit_test(two_merged_are_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
