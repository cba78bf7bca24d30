/* The estimator of round trips. */
#include "proto/client/rtt.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void rtt_starts_at_the_maximum_and_follows_samples(void **state)
{
    struct rtt rtt;
    (void)state;
    rtt_reset(&rtt, 2000, 250000);
    assert_int_equal(rtt.timeout_us, 250000);
    rtt_sample(&rtt, 8000);
    assert_int_equal(rtt_smoothed_us(&rtt), 8000);
    assert_int_equal(rtt.timeout_us, 8000 + 4 * 4000);
    for (unsigned i = 0; i < 100; i++) {
        rtt_sample(&rtt, 8000);
    }
    assert_in_range(rtt.timeout_us, 8000, 8100);
    for (unsigned i = 0; i < 100; i++) {
        rtt_sample(&rtt, 100);
    }
    assert_in_range(rtt_smoothed_us(&rtt), 95, 110);
    assert_int_equal(rtt.timeout_us, 2000);
}

static void rtt_backs_off_until_the_next_sample(void **state)
{
    struct rtt rtt;
    (void)state;
    rtt_reset(&rtt, 2000, 250000);
    rtt_sample(&rtt, 100);
    rtt_back_off(&rtt);
    assert_int_equal(rtt.timeout_us, 4000);
    for (unsigned i = 0; i < 40; i++) {
        rtt_back_off(&rtt);
    }
    assert_int_equal(rtt.timeout_us, 250000);
    rtt_sample(&rtt, 100);
    assert_int_equal(rtt.timeout_us, 2000);
    rtt_sample(&rtt, UINT64_MAX);
    assert_in_range(rtt.timeout_us, 2000, 250000);
}

#define T(name) cmocka_unit_test(name)
int main(void)
{
    const struct CMUnitTest tests[] = {
        T(rtt_starts_at_the_maximum_and_follows_samples),
        T(rtt_backs_off_until_the_next_sample),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
