/* Threads that start together, each on a processor of its own. */
#include "common/spread.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum { TRIES = 100, MORE = 3 };

static struct spread spread;

static cpu_set_t mine(void)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) != 0) {
        skip(); /* a system for more processors than a set has room for: nobody is moved */
    }
    return set;
}

static void allow(cpu_set_t set)
{
    assert_int_equal(sched_setaffinity(0, sizeof set, &set), 0);
}

static void assert_all_once_but_the_first(const int *cpu, int count, const cpu_set_t *allowed)
{
    cpu_set_t seen;
    int moved = 0;
    CPU_ZERO(&seen);
    for (int i = 0; i < count; i++) {
        if (cpu[i] >= 0) {
            assert_true(CPU_ISSET(cpu[i], allowed));
            assert_false(CPU_ISSET(cpu[i], &seen));
            CPU_SET(cpu[i], &seen);
            moved++;
        }
    }
    assert_int_equal(moved, CPU_COUNT(allowed) - 1);
}

static void each_processor_is_given_once(void **state)
{
    (void)state;
    cpu_set_t allowed = mine(), after;
    int cpu[CPU_SETSIZE + MORE], count = CPU_COUNT(&allowed) + MORE;
    spread_begin(&spread);
    for (int i = 0; i < count; i++) {
        cpu[i] = spread_take(&spread);
        after = mine();
        assert_true(CPU_EQUAL(&after, &allowed));
    }
    assert_all_once_but_the_first(cpu, count, &allowed);
}

/* The system may move a thread at any time, but not most times just then. */
static void the_thread_goes_there(void **state)
{
    (void)state;
    cpu_set_t allowed = mine();
    unsigned there = 0;
    for (unsigned i = 0; i < TRIES; i++) {
        spread_begin(&spread);
        int before = sched_getcpu(), cpu = spread_take(&spread);
        there += cpu != before && sched_getcpu() == cpu;
    }
    if (CPU_COUNT(&allowed) > 1) {
        assert_in_range(there, TRIES / 2, TRIES);
    }
}

static void a_process_confined_to_one_stays_there(void **state)
{
    (void)state;
    cpu_set_t allowed = mine(), one, after;
    int here = sched_getcpu();
    CPU_ZERO(&one);
    CPU_SET(here, &one);
    allow(one);
    spread_begin(&spread);
    int cpu = spread_take(&spread);
    after = mine();
    allow(allowed);
    assert_int_equal(cpu, -1);
    assert_true(CPU_EQUAL(&after, &one));
}

static void processors_that_are_not_allowed_are_left_alone(void **state)
{
    (void)state;
    cpu_set_t allowed = mine(), fewer, after;
    int cpu[CPU_SETSIZE], count = CPU_COUNT(&allowed) - 1, forbidden = 0;
    if (count < 2) {
        skip();
    }
    while (!CPU_ISSET(forbidden, &allowed)) {
        forbidden++;
    }
    fewer = allowed;
    CPU_CLR(forbidden, &fewer);
    allow(fewer);
    spread_begin(&spread);
    for (int i = 0; i < count; i++) {
        cpu[i] = spread_take(&spread);
    }
    after = mine();
    allow(allowed);
    assert_true(CPU_EQUAL(&after, &fewer));
    assert_all_once_but_the_first(cpu, count, &fewer);
}

static void *start(void *cpu)
{
    *(int *)cpu = spread_take(&spread);
    return NULL;
}

static void threads_at_once_get_different_ones(void **state)
{
    (void)state;
    cpu_set_t allowed = mine();
    int cpu[CPU_SETSIZE + MORE], count = CPU_COUNT(&allowed) + MORE;
    pthread_t thread[CPU_SETSIZE + MORE];
    spread_begin(&spread);
    for (int i = 0; i < count; i++) {
        assert_int_equal(pthread_create(&thread[i], NULL, start, &cpu[i]), 0);
    }
    for (int i = 0; i < count; i++) {
        pthread_join(thread[i], NULL);
    }
    assert_all_once_but_the_first(cpu, count, &allowed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_processor_is_given_once),
        cmocka_unit_test(the_thread_goes_there),
        cmocka_unit_test(a_process_confined_to_one_stays_there),
        cmocka_unit_test(processors_that_are_not_allowed_are_left_alone),
        cmocka_unit_test(threads_at_once_get_different_ones),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
