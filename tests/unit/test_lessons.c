/* The log of lessons: what is told is heard by the others, once, or lost; never by who told it. */
#include "tests/unit/test_tt.h"

#include "common/memory.h"
#include "worker/table/lessons.h"

#include <pthread.h>
#include <stdatomic.h>

enum {
    TOPIC = 77,
    THREADS = 4,
    SAYINGS = TT_WEIGHTS / THREADS,
    ROUNDS = 1400,
    BATCH = 40,
    LAPS = 32,
    ROOM = 512
};

static int setup(void **state)
{
    *state = memory_lines(sizeof(struct lessons));
    return *state == NULL ? -1 : 0;
}

static int teardown(void **state)
{
    free(*state);
    return 0;
}

static void tell(struct lessons *log, uint32_t root_key, uint32_t *cursor, unsigned count,
                 uint16_t first)
{
    struct tt_weight lesson[LESSONS_KEPT], out[1];
    for (unsigned i = 0; i < count; i++) {
        lesson[i] = (struct tt_weight){(uint16_t)(first + i), i + 1};
    }
    (void)lessons_exchange(log, root_key, cursor, lesson, count, out, 0);
}

static unsigned hear(struct lessons *log, uint32_t *cursor, struct tt_weight *out, unsigned room)
{
    return lessons_exchange(log, TOPIC, cursor, NULL, 0, out, room);
}

static void others_hear_it_once_and_oneself_never(void **state)
{
    struct lessons *log = *state;
    struct tt_weight out[ROOM], one = {5, 9};
    uint32_t a = lessons_end(log), b = a;
    tell(log, TOPIC, &a, 3, 100);
    assert_int_equal(hear(log, &a, out, ROOM), 0);
    assert_int_equal(lessons_exchange(log, TOPIC, &b, &one, 1, out, ROOM), 3);
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(out[i].index, 100 + i);
        assert_int_equal(out[i].weight, i + 1);
    }
    assert_int_equal(hear(log, &b, out, ROOM), 0);
    assert_int_equal(hear(log, &a, out, ROOM), 1);
    assert_int_equal(out[0].index, 5);
    assert_int_equal(out[0].weight, 9);
    uint32_t late = lessons_end(log);
    assert_int_equal(hear(log, &late, out, ROOM), 0); /* who comes later begins at the end */
}

static void the_count_of_all_may_pass_its_end(void **state)
{
    struct lessons *log = *state;
    struct tt_weight out[LESSONS_KEPT];
    uint32_t a = UINT32_MAX - 3, b = a;
    atomic_store(&log->end, a);
    tell(log, TOPIC, &a, 8, 100);
    assert_int_equal(a, 4);
    assert_int_equal(hear(log, &b, out, ROOM), 8);
    assert_int_equal(out[7].index, 107);
    tell(log, TOPIC, &a, LESSONS_KEPT, 0); /* all at once */
    assert_int_equal(hear(log, &b, out, LESSONS_KEPT), LESSONS_KEPT);
}

static void what_one_tells_in_the_room_of_the_answer_is_told(void **state)
{
    struct lessons *log = *state;
    struct tt_weight same[2] = {{1, 2}, {3, 4}}, out[2];
    uint32_t a = 0, b = 0;
    tell(log, TOPIC, &b, 2, 10);
    assert_int_equal(lessons_exchange(log, TOPIC, &a, same, 2, same, 2), 2);
    assert_int_equal(same[0].index, 10);
    assert_int_equal(hear(log, &b, out, 2), 2);
    assert_int_equal(out[1].index, 3);
}

static void another_root_is_nobodys_business(void **state)
{
    struct lessons *log = *state;
    struct tt_weight out[ROOM];
    uint32_t a = 0, b = 0;
    tell(log, TOPIC + 1, &a, 4, 0);
    tell(log, TOPIC, &a, 1, 50);
    assert_int_equal(hear(log, &b, out, ROOM), 1);
    assert_int_equal(out[0].index, 50);
}

static void of_more_than_room_the_newest_are_heard(void **state)
{
    struct lessons *log = *state;
    struct tt_weight out[LESSONS_KEPT + 1];
    uint32_t a = 0, b = 0, late = 0;
    tell(log, TOPIC, &a, 9, 0);
    assert_int_equal(hear(log, &b, out, 4), 4);
    assert_int_equal(out[0].index, 5);
    assert_int_equal(hear(log, &b, out, 4), 0);
    for (unsigned i = 0; i < 40; i++) { /* more than once round */
        tell(log, TOPIC, &a, LESSONS_KEPT / 8, (uint16_t)(i * 10));
    }
    assert_int_equal(hear(log, &late, out, LESSONS_KEPT + 1), LESSONS_KEPT);
    assert_int_equal(out[LESSONS_KEPT - 1].index, 390 + LESSONS_KEPT / 8 - 1);
}

/* A place that was taken and not written yet holds what was there a lap ago, or nothing. */
static void what_is_not_written_yet_is_not_heard(void **state)
{
    struct lessons *log = *state;
    struct tt_weight out[ROOM];
    uint32_t a = 0, b = 0;
    tell(log, 0, &a, 1, 0); /* even of the root_key that empty memory names */
    atomic_fetch_add(&log->end, 3);
    assert_int_equal(lessons_exchange(log, 0, &b, NULL, 0, out, ROOM), 1);
    tell(log, TOPIC, &a, LESSONS_KEPT - 4, 7);
    b = lessons_end(log);
    atomic_fetch_add(&log->end, 10);
    assert_int_equal(hear(log, &b, out, ROOM), 0);
}

static void heavy_lessons_are_made_lighter(void **state)
{
    struct lessons *log = *state;
    struct tt_weight out[2],
        heavy[2] = {{TT_WEIGHTS - 1, LESSONS_WEIGHT_MAX + 1}, {0, LESSONS_WEIGHT_MAX}};
    uint32_t a = 0, b = 0;
    (void)lessons_exchange(log, TOPIC, &a, heavy, 2, out, 0);
    assert_int_equal(hear(log, &b, out, 2), 2);
    assert_int_equal(out[0].index, TT_WEIGHTS - 1);
    assert_int_equal(out[0].weight, LESSONS_WEIGHT_MAX);
    assert_int_equal(out[1].weight, LESSONS_WEIGHT_MAX);
}

static void whatever_the_memory_holds_an_index_is_in_range(void **state)
{
    struct lessons *log = *state;
    struct tt_weight out[ROOM];
    uint64_t random = tt_seed();
    uint32_t cursor = 0;
    unsigned heard = 0;
    for (unsigned round = 0; round < 2000; round++) {
        for (unsigned i = 0; i < LESSONS_KEPT; i += 1 + rng_below(&random, 64)) {
            atomic_store(&log->at[i], (uint64_t)TOPIC << 32 | (uint32_t)rng_next(&random));
        }
        atomic_store(&log->end, (uint32_t)rng_next(&random));
        unsigned n = hear(log, &cursor, out, ROOM);
        assert_true(n <= ROOM);
        for (unsigned i = 0; i < n; i++) {
            assert_true(out[i].index < TT_WEIGHTS && out[i].weight <= LESSONS_WEIGHT_MAX);
        }
        heard += n;
    }
    assert_true(heard > 0);
}

/* ---- threads: each counts, in indices of its own and weights ---- */

struct talker {
    pthread_barrier_t *begin;
    struct lessons *log;
    unsigned number;
    uint64_t random;
    unsigned heard;
    const char *broken;
};

static void *talk(void *context)
{
    struct talker *t = context;
    uint32_t last[THREADS] = {0}, said = 0, cursor = lessons_end(t->log);
    struct tt_weight lesson[BATCH], out[ROOM];
    pthread_barrier_wait(t->begin);
    for (unsigned round = 0; round < ROUNDS; round++) {
        unsigned count = (unsigned)rng_below(&t->random, BATCH + 1);
        for (unsigned i = 0; i < count; i++) {
            said++;
            lesson[i] = (struct tt_weight){
                .index = (uint16_t)(t->number * SAYINGS + said / LESSONS_WEIGHT_MAX),
                .weight = said % LESSONS_WEIGHT_MAX + 1,
            };
        }
        unsigned n = lessons_exchange(t->log, TOPIC, &cursor, lesson, count, out, ROOM);
        for (unsigned i = 0; i < n; i++) {
            unsigned from = out[i].index / SAYINGS;
            uint32_t saying = out[i].index % SAYINGS * LESSONS_WEIGHT_MAX + out[i].weight - 1;
            if (from == t->number) {
                t->broken = "nobody hears himself";
            } else if (saying <= last[from] || saying > ROUNDS * BATCH) {
                t->broken = "what was said is heard once, in its order";
            } else {
                last[from] = saying;
            }
        }
        t->heard += n;
    }
    return NULL;
}

static void threads_hear_each_other(void **state)
{
    uint64_t seed = tt_seed();
    struct lessons *log = *state;
    struct talker talker[THREADS];
    pthread_t thread[THREADS];
    pthread_barrier_t begin;
    pthread_barrier_init(&begin, NULL, THREADS);
    for (unsigned i = 0; i < THREADS; i++) {
        talker[i] = (struct talker){.begin = &begin, .log = log, .number = i, .random = seed + i};
        assert_int_equal(pthread_create(&thread[i], NULL, talk, &talker[i]), 0);
    }
    unsigned heard = 0;
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_join(thread[i], NULL);
        heard += talker[i].heard;
    }
    for (unsigned i = 0; i < THREADS; i++) {
        if (talker[i].broken != NULL) {
            fail_msg("thread %u: %s", i, talker[i].broken);
        }
    }
    assert_true(heard > 0);
    /* Of who sleeps for more laps a lesson may be heard late. */
    assert_true(lessons_end(log) < LAPS * LESSONS_KEPT);
    pthread_barrier_destroy(&begin);
}

#define T(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(others_hear_it_once_and_oneself_never),
        T(the_count_of_all_may_pass_its_end),
        T(what_one_tells_in_the_room_of_the_answer_is_told),
        T(another_root_is_nobodys_business),
        T(of_more_than_room_the_newest_are_heard),
        T(what_is_not_written_yet_is_not_heard),
        T(heavy_lessons_are_made_lighter),
        T(whatever_the_memory_holds_an_index_is_in_range),
        T(threads_hear_each_other),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
