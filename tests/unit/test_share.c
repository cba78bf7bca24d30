/* Which job a worker takes, from worker indexes and job ids alone. */
#include "worker/engine/share.h"

#include "common/rng.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void jobs_get_equally_many_workers(void **state)
{
    uint64_t rng = 1, job[20];
    (void)state;
    for (unsigned jobs = 1; jobs <= 20; jobs++) {
        for (unsigned i = 0; i < jobs; i++) {
            job[i] = rng_next(&rng);
        }
        for (unsigned workers = 0; workers <= 50; workers++) {
            unsigned count[20] = {0};
            for (unsigned worker_index = 0; worker_index < workers; worker_index++) {
                count[share_choose(job, jobs, worker_index)]++;
            }
            for (unsigned i = 0; i < jobs; i++) {
                assert_in_range(count[i], workers / jobs, (workers + jobs - 1) / jobs);
            }
        }
    }
}

static void the_order_in_which_jobs_are_known_does_not_matter(void **state)
{
    static const uint64_t one[] = {5, 900, 7, 0}, other[] = {900, 0, 5, 7};
    (void)state;
    for (uint32_t worker_index = 0; worker_index < 12; worker_index++) {
        assert_int_equal(one[share_choose(one, 4, worker_index)],
                         other[share_choose(other, 4, worker_index)]);
    }
}

static void any_seat_is_good_for_something(void **state)
{
    static const uint64_t job[] = {UINT64_MAX, 1, 2};
    (void)state;
    assert_int_equal(share_choose(job, 1, UINT32_MAX), 0);
    assert_in_range(share_choose(job, 3, UINT32_MAX), 0, 2);
    assert_int_equal(share_choose(job, 3, 2), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(jobs_get_equally_many_workers),
        cmocka_unit_test(the_order_in_which_jobs_are_known_does_not_matter),
        cmocka_unit_test(any_seat_is_good_for_something),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
