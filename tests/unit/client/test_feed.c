/* The queue of results for others: no result is lost or taken twice, whichever threads find it;
 * what has no room is refused, and nothing waits. How the least depth moves: test_share. */
#include "proto/client/feed.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

enum { THREADS = 4, EACH = 20000, PAUSE_US = 2000 };

static struct tt_store result_of(uint64_t key)
{
    return (struct tt_store){.key = key, .score = (int16_t)key, .depth = 9, .bound = TT_EXACT};
}

static void results_leave_in_their_order_when_due_or_full(void **state)
{
    struct feed *f = calloc(1, sizeof *f);
    struct tt_store out[FEED_MAX];
    uint64_t put = 0, taken = 0;
    (void)state;
    assert_int_equal(feed_take_due(f, 1, PAUSE_US, out), 0); /* nothing waits */
    for (unsigned round = 0; round < 5; round++) {
        uint64_t now = 1000000 * (round + 1);
        struct tt_store result = result_of(put++);
        assert_true(feed_put(f, &result));
        assert_int_equal(feed_waiting(f), 1);
        assert_int_equal(feed_take_due(f, now, PAUSE_US, out), 1);
        assert_int_equal(out[0].key, taken++);
        for (unsigned i = 0; i < FEED_MAX; i++) {
            assert_int_equal(feed_take_due(f, now + 1, PAUSE_US, out), 0); /* in the pause */
            result = result_of(put++);
            assert_true(feed_put(f, &result));
        }
        assert_false(feed_put(f, &result));
        assert_int_equal(feed_take_due(f, now + 1, PAUSE_US, out), FEED_MAX);
        for (unsigned i = 0; i < FEED_MAX; i++) {
            assert_int_equal(out[i].key, taken++);
        }
    }
    struct tt_store result = result_of(put);
    assert_true(feed_put(f, &result));
    feed_clear(f);
    assert_int_equal(feed_waiting(f), 0);
    free(f);
}

struct finder {
    struct feed *feed;
    uint64_t first;
    atomic_uint *done;
};

static void *find(void *self)
{
    struct finder *me = self;
    for (uint64_t i = 0; i < EACH; i++) {
        struct tt_store result = result_of(me->first + i);
        while (!feed_put(me->feed, &result)) {
            sched_yield();
        }
    }
    atomic_fetch_add(me->done, 1);
    return NULL;
}

static void of_many_threads_nothing_is_lost_or_taken_twice(void **state)
{
    struct feed *f = calloc(1, sizeof *f);
    bool *seen = calloc(THREADS * EACH, sizeof *seen);
    struct tt_store out[FEED_MAX];
    struct finder finder[THREADS];
    uint64_t last[THREADS] = {0}, taken = 0;
    pthread_t thread[THREADS];
    atomic_uint done = 0;
    (void)state;
    for (unsigned i = 0; i < THREADS; i++) {
        finder[i] = (struct finder){f, (uint64_t)i * EACH, &done};
        assert_int_equal(pthread_create(&thread[i], NULL, find, &finder[i]), 0);
    }
    for (unsigned n = 1; n > 0 || atomic_load(&done) < THREADS;) {
        n = feed_take_due(f, 0, 0, out);
        for (unsigned i = 0; i < n; i++) {
            uint64_t key = out[i].key;
            assert_true(key < THREADS * EACH && !seen[key] && out[i].score == (int16_t)key);
            assert_true(key >= last[key / EACH]); /* each thread's in their order */
            last[key / EACH] = key;
            seen[key] = true;
        }
        taken += n;
    }
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_join(thread[i], NULL);
    }
    taken += feed_take_due(f, 0, 0, out); /* put between the last look and the last word */
    assert_int_equal(taken, THREADS * EACH);
    free(seen);
    free(f);
}

static void depths_that_no_message_can_carry_are_not_wanted(void **state)
{
    struct feed *f = calloc(1, sizeof *f);
    const struct feed_limits limits = {.lowest = 16, .first = 24, .highest = 48};
    (void)state;
    feed_begin(f, &limits);
    assert_false(feed_wants(f, UINT64_MAX, 2));
    assert_true(feed_wants(f, 0, 3));
    assert_true(feed_wants(f, 0, PROTO_RESULT_DEPTH_MAX));
    assert_false(feed_wants(f, 0, PROTO_RESULT_DEPTH_MAX + 1));
    free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(results_leave_in_their_order_when_due_or_full),
        cmocka_unit_test(of_many_threads_nothing_is_lost_or_taken_twice),
        cmocka_unit_test(depths_that_no_message_can_carry_are_not_wanted),
    };
    return cmocka_run_group_tests_name("feed", tests, NULL, NULL);
}
