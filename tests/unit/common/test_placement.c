/* placement: searching threads, each on a CPU of its own. */
#include "common/placement.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum { TRIES = 100, MORE = 3, NOW = 1000000000 };

static struct placement placement;

static cpu_set_t mine(void)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) != 0) {
        skip(); /* the system may have more CPUs than a cpu_set_t: nothing is moved */
    }
    return set;
}

static void allow(cpu_set_t set)
{
    assert_int_equal(sched_setaffinity(0, sizeof set, &set), 0);
}

/* A thread of that name begins at `now`. */
static int begin(uint16_t name, uint64_t now)
{
    struct placement_slot slot = {.name = name};
    return placement_begin(&placement, &slot, now);
}

static void forget(void)
{
    memset(&placement, 0, sizeof placement);
}

static void assert_all_once(const int *cpu, int count, const cpu_set_t *allowed)
{
    cpu_set_t seen;
    int found = 0;
    CPU_ZERO(&seen);
    for (int i = 0; i < count; i++) {
        if (cpu[i] >= 0) {
            assert_true(CPU_ISSET(cpu[i], allowed));
            assert_false(CPU_ISSET(cpu[i], &seen));
            CPU_SET(cpu[i], &seen);
            found++;
        }
    }
    assert_int_equal(found, CPU_COUNT(allowed));
}

static void each_cpu_is_given_once(void **state)
{
    (void)state;
    cpu_set_t allowed = mine(), after;
    int cpu[CPU_SETSIZE + MORE], count = CPU_COUNT(&allowed) + MORE;
    forget();
    for (int i = 0; i < count; i++) {
        cpu[i] = begin((uint16_t)(1 + i), NOW + (uint64_t)i);
        after = mine();
        assert_true(CPU_EQUAL(&after, &allowed));
    }
    assert_all_once(cpu, count, &allowed);
}

/* The system may move a thread at any time, but rarely right after it was placed. */
static void a_thread_moves_to_the_cpu_it_is_given(void **state)
{
    (void)state;
    cpu_set_t allowed = mine();
    unsigned there = 0;
    for (unsigned i = 0; i < TRIES; i++) {
        forget();
        int before = begin(1, NOW), cpu = begin(2, NOW);
        there += cpu >= 0 && cpu != before && sched_getcpu() == cpu;
    }
    if (CPU_COUNT(&allowed) > 1) {
        assert_in_range(there, TRIES / 2, TRIES);
    }
}

static void go_to(int cpu)
{
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    allow(one);
}

/* To the current CPU, so that the system does not move the test meanwhile. */
static cpu_set_t confine(void)
{
    cpu_set_t allowed = mine();
    go_to(sched_getcpu());
    return allowed;
}

static void a_record_expires(void **state)
{
    (void)state;
    cpu_set_t allowed = confine(), confined = mine(), after;
    forget();
    int first = begin(1, NOW), other = begin(2, NOW + PLACEMENT_FRESH_US - 1);
    int later = begin(2, NOW + PLACEMENT_FRESH_US), wrong = begin(3, NOW - 1);
    int here = sched_getcpu();
    after = mine();
    allow(allowed);
    assert_int_equal(first, here);
    assert_int_equal(other, -1);
    assert_int_equal(later, here);
    assert_int_equal(wrong, here); /* a record of the future does not count */
    assert_true(CPU_EQUAL(&after, &confined));
}

static void an_updated_record_does_not_expire(void **state)
{
    (void)state;
    struct placement_slot slot = {.name = 1};
    cpu_set_t allowed = confine();
    forget();
    placement_begin(&placement, &slot, NOW);
    placement_update(&placement, &slot,
                     NOW + PLACEMENT_EVERY_US - 1); /* too early: changes nothing */
    int early = begin(2, NOW + PLACEMENT_FRESH_US);
    forget();
    slot = (struct placement_slot){.name = 1};
    placement_begin(&placement, &slot, NOW);
    placement_update(&placement, &slot, NOW + PLACEMENT_EVERY_US);
    int late = begin(2, NOW + PLACEMENT_FRESH_US);
    placement_end(&placement, &slot);
    int after = begin(2, NOW + PLACEMENT_FRESH_US);
    allow(allowed);
    assert_true(early >= 0);
    assert_int_equal(late, -1);
    assert_true(after >= 0);
}

/* When the system has moved a thread, the record of its former CPU is removed. */
static void a_moved_thread_frees_its_former_cpu(void **state)
{
    (void)state;
    cpu_set_t allowed = mine();
    struct placement_slot slot = {.name = 1};
    if (CPU_COUNT(&allowed) < 2) {
        skip();
    }
    confine();
    forget();
    int before = placement_begin(&placement, &slot, NOW), after = 0;
    while (after == before || !CPU_ISSET(after, &allowed)) {
        after++;
    }
    go_to(after);
    placement_update(&placement, &slot, NOW + PLACEMENT_EVERY_US);
    int there = begin(2, NOW + PLACEMENT_EVERY_US);
    go_to(before);
    int free = begin(3, NOW + PLACEMENT_EVERY_US);
    allow(allowed);
    assert_int_equal(there, -1);
    assert_int_equal(free, before);
}

/* An update neither moves a thread nor takes a CPU that another one has recorded. */
static void an_update_moves_nothing(void **state)
{
    (void)state;
    cpu_set_t allowed = mine();
    struct placement_slot slot = {.name = 2};
    unsigned stayed = 0;
    for (unsigned i = 0; i < TRIES; i++) {
        forget();
        int before = begin(1, NOW);
        slot.due_us = 0;
        placement_update(&placement, &slot, NOW + 1);
        stayed += sched_getcpu() == before;
    }
    cpu_set_t after = mine();
    assert_true(CPU_EQUAL(&after, &allowed));
    assert_in_range(stayed, TRIES / 2, TRIES);
    confine();
    forget();
    int here = begin(1, NOW);
    slot.due_us = 0;
    placement_update(&placement, &slot, NOW + 1);
    uint16_t name = (uint16_t)placement.last[here];
    allow(allowed);
    assert_int_equal(name, 1);
    assert_int_equal(slot.recorded, 0);
}

static void forbidden_cpus_are_left_alone(void **state)
{
    (void)state;
    cpu_set_t allowed = mine(), fewer, after;
    int cpu[CPU_SETSIZE], count = CPU_COUNT(&allowed), forbidden = 0;
    if (count < 2) {
        skip();
    }
    while (!CPU_ISSET(forbidden, &allowed)) {
        forbidden++;
    }
    fewer = allowed;
    CPU_CLR(forbidden, &fewer);
    allow(fewer);
    forget();
    for (int i = 0; i < count; i++) {
        cpu[i] = begin((uint16_t)(1 + i), NOW);
    }
    after = mine();
    allow(allowed);
    assert_true(CPU_EQUAL(&after, &fewer));
    assert_all_once(cpu, count, &fewer);
}

struct starter {
    uint16_t name;
    int cpu;
};

static void *start(void *context)
{
    struct starter *s = context;
    s->cpu = begin(s->name, NOW);
    return NULL;
}

static void threads_that_begin_together_get_different_cpus(void **state)
{
    (void)state;
    cpu_set_t allowed = mine();
    struct starter starter[CPU_SETSIZE + MORE];
    int cpu[CPU_SETSIZE + MORE], count = CPU_COUNT(&allowed) + MORE;
    pthread_t thread[CPU_SETSIZE + MORE];
    forget();
    for (int i = 0; i < count; i++) {
        starter[i].name = (uint16_t)(1 + i);
        assert_int_equal(pthread_create(&thread[i], NULL, start, &starter[i]), 0);
    }
    for (int i = 0; i < count; i++) {
        pthread_join(thread[i], NULL);
        cpu[i] = starter[i].cpu;
    }
    assert_all_once(cpu, count, &allowed);
}

struct created {
    int cpu;
    cpu_set_t allowed;
    bool is_confined;
    atomic_bool has_run;
};

static void *note_cpu(void *context)
{
    struct created *c = context;
    c->cpu = sched_getcpu();
    c->allowed = mine();
    atomic_store(&c->has_run, true);
    return NULL;
}

/* The creator keeps running meanwhile. */
static struct created create(unsigned nth)
{
    struct created found = {.cpu = -1};
    struct placement_thread thread;
    assert_true(placement_create_thread(&thread, nth, note_cpu, &found));
    found.is_confined = thread.is_confined;
    while (!atomic_load(&found.has_run)) {
    }
    assert_int_equal(pthread_join(thread.thread, NULL), 0);
    return found;
}

static void *spin(void *stop)
{
    while (!atomic_load((atomic_bool *)stop)) {
    }
    return NULL;
}

/* Confines the test to this CPU and another one on which a thread spins: both are equally busy, so
 * that the system has no reason to prefer the other. False: there is no other CPU. */
static bool stay_on_two(int here, const cpu_set_t *allowed, atomic_bool *stop, pthread_t *spinner)
{
    int other = 0;
    cpu_set_t two;
    while (other == here || (other < CPU_SETSIZE && !CPU_ISSET(other, allowed))) {
        other++;
    }
    if (other == CPU_SETSIZE) {
        return false;
    }
    go_to(other);
    assert_int_equal(pthread_create(spinner, NULL, spin, stop), 0);
    CPU_ZERO(&two);
    CPU_SET(here, &two);
    go_to(here);
    CPU_SET(other, &two);
    allow(two);
    return true;
}

static void a_thread_is_created_on_another_cpu(void **state)
{
    (void)state;
    cpu_set_t allowed = mine(), two, after;
    static atomic_bool stop; /* static: a test that fails leaves the thread running */
    unsigned elsewhere = 0, whole = 0;
    pthread_t spinner;
    if (!stay_on_two(sched_getcpu(), &allowed, &stop, &spinner)) {
        skip();
    }
    two = mine();
    for (unsigned i = 0; i < TRIES; i++) {
        int here = sched_getcpu();
        struct created found = create(1);
        elsewhere += found.cpu != here;
        whole += CPU_EQUAL(&found.allowed, &two) != 0;
    }
    after = mine();
    atomic_store(&stop, true);
    allow(allowed);
    pthread_join(spinner, NULL);
    /* Without help it is half of them at most; not all where others keep the CPUs busy, too. */
    assert_in_range(elsewhere, 2 * TRIES / 3, TRIES);
    assert_int_equal(whole, TRIES);
    assert_true(CPU_EQUAL(&after, &two));
}

static void threads_beyond_the_cpus_begin_anywhere(void **state)
{
    (void)state;
    cpu_set_t allowed = mine();
    unsigned count = (unsigned)CPU_COUNT(&allowed);
    if (count > 1) {
        assert_true(create(count - 1).is_confined);
    }
    struct created found = create(count);
    assert_false(found.is_confined);
    assert_true(CPU_EQUAL(&found.allowed, &allowed));
}

static void a_thread_is_created_on_a_single_cpu(void **state)
{
    (void)state;
    cpu_set_t allowed = confine(), one = mine();
    struct created found = create(1);
    allow(allowed);
    assert_true(CPU_EQUAL(&found.allowed, &one));
    assert_true(CPU_ISSET(found.cpu, &one));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_cpu_is_given_once),
        cmocka_unit_test(a_thread_moves_to_the_cpu_it_is_given),
        cmocka_unit_test(a_record_expires),
        cmocka_unit_test(an_updated_record_does_not_expire),
        cmocka_unit_test(a_moved_thread_frees_its_former_cpu),
        cmocka_unit_test(an_update_moves_nothing),
        cmocka_unit_test(forbidden_cpus_are_left_alone),
        cmocka_unit_test(threads_that_begin_together_get_different_cpus),
        cmocka_unit_test(a_thread_is_created_on_another_cpu),
        cmocka_unit_test(threads_beyond_the_cpus_begin_anywhere),
        cmocka_unit_test(a_thread_is_created_on_a_single_cpu),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
