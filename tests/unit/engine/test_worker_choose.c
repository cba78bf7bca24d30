/* Which of several jobs a worker takes: all workers are divided evenly, by user and then by job. */
#include "worker/engine/worker_core.h"

#include "common/rng.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void jobs_get_equally_many_workers(void **state)
{
    uint64_t rng = 1;
    struct worker_job_name job[20];
    (void)state;
    for (unsigned jobs = 1; jobs <= 20; jobs++) {
        for (unsigned i = 0; i < jobs; i++) {
            job[i] = (struct worker_job_name){rng_next(&rng), 5};
        }
        for (unsigned workers = 0; workers <= 50; workers++) {
            unsigned count[20] = {0};
            for (unsigned w = 0; w < workers; w++) {
                count[worker_core_choose(job, jobs, w, 1)]++;
            }
            for (unsigned i = 0; i < jobs; i++) {
                assert_in_range(count[i], workers / jobs, (workers + jobs - 1) / jobs);
            }
        }
    }
}

/* Users have equally many workers however many jobs each has, and so have the jobs of a user. */
static void workers_are_divided_by_user_and_then_by_job(void **state)
{
    enum { JOBS = 24, USERS = 6, WORKERS = 60 };
    uint64_t random = 5;
    (void)state;
    for (unsigned round = 0; round < 200; round++) {
        unsigned users = 1 + rng_below(&random, USERS), of_user[USERS] = {0};
        unsigned jobs = users + rng_below(&random, JOBS - users + 1);
        uint64_t name[USERS], source = rng_next(&random);
        struct worker_job_name choice[JOBS];
        for (unsigned i = 0; i < jobs; i++) { /* the first of each user, then anybody's */
            unsigned user = i < users ? i : rng_below(&random, users);
            if (i < users) {
                name[i] = rng_next(&random);
            }
            choice[i] = (struct worker_job_name){rng_next(&random), name[user]};
            of_user[user]++;
        }
        for (unsigned workers = 0; workers <= WORKERS; workers++) {
            unsigned on_job[JOBS] = {0}, on_user[USERS] = {0};
            for (unsigned w = 0; w < workers; w++) {
                on_job[worker_core_choose(choice, jobs, w, source)]++;
            }
            for (unsigned i = 0; i < jobs; i++) {
                for (unsigned u = 0; u < users; u++) {
                    on_user[u] += choice[i].user == name[u] ? on_job[i] : 0;
                }
            }
            for (unsigned u = 0; u < users; u++) {
                assert_in_range(on_user[u], workers / users, (workers + users - 1) / users);
                for (unsigned i = 0; i < jobs; i++) {
                    if (choice[i].user == name[u]) {
                        assert_in_range(on_job[i], on_user[u] / of_user[u],
                                        (on_user[u] + of_user[u] - 1) / of_user[u]);
                    }
                }
            }
        }
    }
}

/* With fewer workers than users: a key that comes first at one source does not at another. */
static void no_user_comes_first_at_all_sources(void **state)
{
    enum { USERS = 8, SOURCES = 400 };
    struct worker_job_name choice[USERS];
    unsigned served[USERS] = {0};
    uint64_t random = 11;
    (void)state;
    for (unsigned i = 0; i < USERS; i++) {
        choice[i] = (struct worker_job_name){100 + i, i}; /* 0 is as small as a number gets */
    }
    for (unsigned i = 0; i < SOURCES; i++) {
        served[worker_core_choose(choice, USERS, 0, rng_next(&random))]++;
    }
    for (unsigned i = 0; i < USERS; i++) {
        assert_in_range(served[i], SOURCES / USERS / 2, SOURCES / USERS * 2);
    }
}

static void the_order_in_which_jobs_are_known_does_not_matter(void **state)
{
    static const struct worker_job_name one[] = {{5, 1}, {900, 0}, {7, 1}, {0, UINT64_MAX}};
    static const struct worker_job_name other[] = {{900, 0}, {0, UINT64_MAX}, {5, 1}, {7, 1}};
    (void)state;
    for (uint32_t w = 0; w < 12; w++) {
        assert_int_equal(one[worker_core_choose(one, 4, w, 1)].job,
                         other[worker_core_choose(other, 4, w, 1)].job);
    }
}

static void any_worker_index_is_good_for_some_job(void **state)
{
    static const struct worker_job_name choice[] = {{UINT64_MAX, 0}, {1, 0}, {2, 0}};
    (void)state;
    assert_int_equal(worker_core_choose(choice, 1, UINT32_MAX, 1), 0);
    assert_in_range(worker_core_choose(choice, 3, UINT32_MAX, 1), 0, 2);
    assert_int_equal(worker_core_choose(choice, 3, 2, 1), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(jobs_get_equally_many_workers),
        cmocka_unit_test(workers_are_divided_by_user_and_then_by_job),
        cmocka_unit_test(no_user_comes_first_at_all_sources),
        cmocka_unit_test(the_order_in_which_jobs_are_known_does_not_matter),
        cmocka_unit_test(any_worker_index_is_good_for_some_job),
    };
    return cmocka_run_group_tests_name("worker's choice", tests, NULL, NULL);
}
