/* libabdada's feed before a real ttserver: results go to all others, from any thread, and what has
 * no room is counted; a new search. */
#include "tests/support/test_lib.h"

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>

enum { DEPTH = 4, ROOM = 1024, THREADS = 4, EACH = 5000 };

static struct abdada *open_feed(uint64_t namespace_id, uint32_t flags)
{
    struct abdada_options options = options_for(&server, namespace_id);
    options.share_depth = DEPTH;
    options.flags = flags;
    return open_with(&options);
}

/* Both know of each other: what one shares the other takes. */
static void let_meet(struct abdada *a, struct abdada *b)
{
    struct abdada_store_op op[ROOM];
    bool has_a = false, has_b = false;
    WAIT_FOR((abdada_share(a, 1, 9, 0, ABDADA_EXACT, 0), abdada_share(b, 2, 9, 0, ABDADA_EXACT, 0),
              has_a |= abdada_take_shared(a, op, ROOM) > 0,
              has_b |= abdada_take_shared(b, op, ROOM) > 0, has_a && has_b));
}

static void share_with_all(uint64_t namespace_id, uint32_t flags)
{
    struct abdada *a = open_feed(namespace_id, flags), *b = open_feed(namespace_id, flags);
    struct abdada *c = open_feed(namespace_id, flags), *other = open_feed(namespace_id + 1, flags);
    struct abdada *without = open_at(&server, namespace_id);
    struct abdada_store_op op[ROOM];
    int n = 0;
    let_meet(a, b);
    let_meet(a, c);
    assert_int_equal(abdada_share(a, 77, DEPTH - 1, 0, ABDADA_EXACT, 0), ABDADA_OK); /* shallow */
    assert_int_equal(abdada_share(a, 77, 64, 0, ABDADA_EXACT + ABDADA_BESIDE, 0), ABDADA_OK);
    struct abdada *to[] = {b, c};
    for (unsigned i = 0; i < 2; i++) {
        WAIT_FOR((abdada_share(a, 77, DEPTH + 20, -31000, ABDADA_LOWER + ABDADA_BESIDE, 65535),
                  abdada_share(to[i], 2, 9, 0, ABDADA_EXACT, 0), abdada_serve(a),
                  abdada_take_shared(to[i], op, 1) == 1 && op->key == 77));
        assert_true(op->depth == DEPTH + 20 && op->score == -31000 && op->move == 65535 &&
                    op->bound == ABDADA_LOWER && op->slot == 0);
    }
    assert_int_equal(abdada_take_shared(other, op, ROOM), 0);
    while ((n = abdada_take_shared(a, op, ROOM)) > 0) {
        for (int i = 0; i < n; i++) {
            assert_int_equal(op[i].key, 2);
        }
    }
    assert_int_equal(abdada_share(without, 1, 9, 0, ABDADA_EXACT, 0), ABDADA_E_ROLE);
    assert_int_equal(abdada_take_shared(without, op, 1), ABDADA_E_ROLE);
    assert_true(figure(a, -1, "shared") > 0 && figure(b, -1, "shared_taken") > 0);
    assert_int_equal(figure(a, -1, "share_depth"), DEPTH);
    struct abdada *all[] = {a, b, c, other, without};
    for (unsigned i = 0; i < 5; i++) {
        abdada_close(all[i]);
    }
    assert_int_equal(abdada_share(a, 1, 9, 0, ABDADA_EXACT, 0), ABDADA_E_HANDLE);
}

static void results_go_to_all_others_of_the_namespace(void **state)
{
    (void)state;
    share_with_all(11, 0);
    share_with_all(13, ABDADA_RAW_KEYS | ABDADA_TURNS);
}

static void what_has_no_room_is_refused_and_counted(void **state)
{
    (void)state;
    struct abdada *a = open_feed(3, 0);
    struct abdada_store_op op[ROOM + 3];
    for (unsigned i = 0; i < ROOM + 3; i++) {
        op[i] = (struct abdada_store_op){.key = i, .depth = 9, .bound = ABDADA_EXACT};
    }
    assert_int_equal(abdada_share_many(a, op, ROOM), ABDADA_OK);
    assert_int_equal(abdada_share_many(a, op, 3), ABDADA_E_FULL);
    assert_int_equal(figure(a, -1, "share_lost"), 3);
    op[1].bound = 0;
    assert_int_equal(abdada_share_many(a, op, ROOM), ABDADA_E_ARGUMENT);
    WAIT_FOR(figure(a, -1, "shared") == ROOM);
    abdada_close(a);
}

static void a_result_deeper_than_63_arrives_as_one_of_63(void **state)
{
    (void)state;
    struct abdada *a = open_feed(8, 0), *b = open_feed(8, 0);
    struct abdada_store_op op;
    let_meet(a, b);
    for (unsigned depth = 63; depth <= 250; depth += 187) {
        uint64_t key = 1000 + depth;
        WAIT_FOR((abdada_share(a, key, depth, 5, ABDADA_UPPER, 6), abdada_serve(a),
                  abdada_share(b, 2, 9, 0, ABDADA_EXACT, 0),
                  abdada_take_shared(b, &op, 1) == 1 && op.key == key));
        assert_true(op.depth == 63 && op.score == 5 && op.bound == ABDADA_UPPER && op.move == 6);
    }
    abdada_close(a);
    abdada_close(b);
}

static void who_is_silent_for_a_moment_misses_nothing(void **state)
{
    enum { SILENT_US = 200000, FIRST = 100, COUNT = 50 };
    (void)state;
    struct abdada *a = open_feed(7, 0), *b = open_feed(7, 0);
    struct abdada_store_op op[ROOM];
    unsigned taken = 0;
    let_meet(a, b);
    usleep(SILENT_US);
    for (unsigned i = 0; i < COUNT; i++) {
        assert_int_equal(abdada_serve(a), ABDADA_OK);
        assert_int_equal(abdada_share(a, FIRST + i, 9, 0, ABDADA_EXACT, 0), ABDADA_OK);
    }
    while (taken < COUNT) {
        int n = 0;
        WAIT_FOR((abdada_serve(a), n = abdada_take_shared(b, op, ROOM)) > 0);
        for (int i = 0; i < n; i++) {
            taken += op[i].key >= FIRST;
        }
    }
    abdada_close(a);
    abdada_close(b);
}

enum { WAKES = 20 };

/* How often the descriptor says that a result is to be sent, and soon. */
static unsigned count_wakes(struct abdada *t, int fd)
{
    enum { SOON_MS = 100 };
    struct pollfd polled = {.fd = fd, .events = POLLIN};
    unsigned wakes = 0;
    assert_int_equal(abdada_serve(t), ABDADA_OK);
    for (unsigned i = 0; i < WAKES; i++) {
        assert_int_equal(abdada_share(t, i, 9, 0, ABDADA_EXACT, 0), ABDADA_OK);
        wakes += poll(&polled, 1, SOON_MS) == 1;
        assert_int_equal(abdada_serve(t), ABDADA_OK);
    }
    return wakes;
}

static void a_result_that_another_thread_shares_wakes_the_event_loop(void **state)
{
    enum { SILENT_US = 20000 }; /* nothing comes any more */
    (void)state;
    struct abdada *a = open_feed(10, 0), *b = open_feed(10, 0);
    struct abdada_store_op op[ROOM];
    int fd = abdada_fd(a);
    assert_true(fd >= 0);
    WAIT_FOR((let_meet(a, b), usleep(SILENT_US), abdada_take_shared(a, op, ROOM),
              count_wakes(a, fd)) == WAKES);
    abdada_close(a);
    abdada_close(b);
}

struct finder {
    struct abdada *handle;
    atomic_uint *done;
};

static void *find(void *self)
{
    const struct finder *me = self;
    for (uint64_t i = 0; i < EACH; i++) {
        while (abdada_share(me->handle, i, 9, 0, ABDADA_EXACT, 0) != ABDADA_OK) {
            sched_yield();
        }
    }
    atomic_fetch_add(me->done, 1);
    return NULL;
}

static void any_threads_share_by_one_handle(void **state)
{
    (void)state;
    struct abdada *a = open_feed(4, ABDADA_TURNS), *b = open_feed(4, 0);
    struct abdada_store_op op[ROOM];
    atomic_uint done = 0;
    struct finder me = {a, &done};
    pthread_t thread[THREADS];
    let_meet(a, b);
    WAIT_FOR(abdada_take_shared(a, op, ROOM) == 0);
    uint64_t before = figure(a, -1, "shared"), taken = 0;
    for (unsigned i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&thread[i], NULL, find, &me), 0);
    }
    const uint64_t end_us = clock_us() + PATIENCE_MS * UINT64_C(1000);
    while (atomic_load(&done) < THREADS || taken == 0) {
        assert_true(clock_us() < end_us);
        assert_true(abdada_take_shared(a, op, ROOM) >= 0);
        int n = abdada_take_shared(b, op, ROOM);
        assert_true(n >= 0);
        taken += (uint64_t)n;
    }
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_join(thread[i], NULL);
    }
    /* No result was sent twice. Some of those from before may have waited. */
    assert_true(figure(a, -1, "shared") - before <= THREADS * EACH + ROOM);
    abdada_close(a);
    abdada_close(b);
}

static void a_new_search_leaves_all_and_may_change_the_namespace(void **state)
{
    (void)state;
    struct abdada *a = open_feed(5, 0), *b = open_feed(5, 0), *c = open_feed(6, 0);
    struct abdada_ask_op ask = {.key = 1, .alpha = -1, .beta = 1, .depth = 5};
    struct abdada_store_op op[ROOM];
    struct abdada_answer answer;
    struct abdada_peeked peeked;
    abdada_ticket ticket;
    let_meet(a, b);
    assert_int_equal(abdada_store(a, 2, 5, 7, ABDADA_EXACT, 0), ABDADA_OK);
    assert_int_equal(abdada_ask(a, 3, 5, -1, 1, 0, &answer), ABDADA_OK);
    assert_int_equal(abdada_ask_send(a, &ask, &ticket), ABDADA_OK);
    assert_int_equal(abdada_new_search(a, 6), ABDADA_OK);
    assert_int_equal(abdada_take_shared(a, op, ROOM), 0);
    assert_int_equal(abdada_ask_poll(a, ticket, &answer), ABDADA_E_TICKET);
    assert_int_equal(figure(a, -1, "in_flight"), 0);
    WAIT_FOR(abdada_peek(b, 3, 5, &peeked) == ABDADA_OK && peeked.nproc == 0);
    WAIT_FOR(abdada_peek(b, 1, 5, &peeked) == ABDADA_OK && peeked.nproc == 0);
    assert_int_equal(abdada_peek(b, 2, 5, &peeked), ABDADA_OK);
    assert_int_equal(peeked.depth, 5);
    assert_int_equal(abdada_peek(a, 2, 5, &peeked), ABDADA_OK);
    assert_int_equal(peeked.depth, 0);
    let_meet(a, c);
    assert_int_equal(abdada_new_search(a, 5), ABDADA_OK);
    assert_int_equal(abdada_peek(a, 2, 5, &peeked), ABDADA_OK);
    assert_int_equal(peeked.depth, 5);
    abdada_close(a);
    abdada_close(b);
    abdada_close(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(results_go_to_all_others_of_the_namespace),
        cmocka_unit_test(what_has_no_room_is_refused_and_counted),
        cmocka_unit_test(a_result_deeper_than_63_arrives_as_one_of_63),
        cmocka_unit_test(who_is_silent_for_a_moment_misses_nothing),
        cmocka_unit_test(a_result_that_another_thread_shares_wakes_the_event_loop),
        cmocka_unit_test(any_threads_share_by_one_handle),
        cmocka_unit_test(a_new_search_leaves_all_and_may_change_the_namespace),
    };
    return cmocka_run_group_tests(tests, server_setup, server_teardown);
}
