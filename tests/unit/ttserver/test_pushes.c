/* Pushes: what goes to many leaves a piece at a time, in order, and is paid for. */
#include "ttserver/net/pushes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { TARGETS = 600, ROOM = 1 << 17, SLOW_NS = 20000 };

struct bed {
    struct pushes pushes;
    uint8_t route[TARGETS][CONNECTION_ROUTE];
    struct ttcore_target target[TARGETS];
    struct {
        uint32_t to;
        uint8_t what;
    } sent[ROOM];
    uint32_t count;
    uint64_t now_ns, charged_ns, dropped;
    uint8_t payer;
    bool is_slow;
};

static uint32_t number_of(const uint8_t *route)
{
    uint32_t number;
    memcpy(&number, route, sizeof number);
    return number;
}

static void on_send(void *self, const uint8_t *route, const struct ttcore_message *message)
{
    struct bed *bed = self;
    assert_in_range(bed->count, 0, ROOM - 1);
    bed->sent[bed->count].to = number_of(route);
    bed->sent[bed->count++].what = message->bytes[0];
    bed->now_ns += bed->is_slow ? SLOW_NS : 0;
}

static void on_charge(void *self, const uint8_t *cause, uint64_t ns)
{
    struct bed *bed = self;
    bed->charged_ns += ns;
    bed->payer = cause[0];
}

static uint64_t on_now(void *self)
{
    const struct bed *bed = self;
    return bed->now_ns;
}

static int setup(void **state)
{
    struct bed *bed = calloc(1, sizeof *bed);
    bed->pushes = (struct pushes){.send = on_send,
                                  .charge = on_charge,
                                  .now_ns = on_now,
                                  .self = bed,
                                  .hints_dropped = &bed->dropped,
                                  .at_once = PUSHES_AT_ONCE};
    for (uint32_t i = 0; i < TARGETS; i++) {
        memcpy(bed->route[i], &i, sizeof i);
        bed->target[i] = (struct ttcore_target){bed->route[i], CONNECTION_ROUTE};
    }
    pushes_init(&bed->pushes, 0);
    *state = bed;
    return 0;
}

static int teardown(void **state)
{
    struct bed *bed = *state;
    pushes_close(&bed->pushes);
    pushes_close(&bed->pushes);
    free(bed);
    return 0;
}

/* `length` bytes of `what` to the first so many; by peer 9. */
static bool push(struct bed *bed, uint8_t what, uint32_t targets, struct ttcore_message like)
{
    static const uint8_t cause[CONNECTION_ROUTE] = {9};
    static uint8_t bytes[1 << 16];
    bytes[0] = what;
    like.bytes = bytes;
    like.targets = like.paid = targets;
    like.length = like.length > 0 ? like.length : 1;
    bool is_taken = pushes_take(&bed->pushes, &like, bed->target, cause);
    bytes[0] = 0; /* the queue has a copy */
    return is_taken;
}

#define JOB                 \
    (struct ttcore_message) \
    {                       \
        .in_order = true    \
    }
#define HINT                \
    (struct ttcore_message) \
    {                       \
        .may_drop = true    \
    }

static void a_message_for_few_is_for_the_caller(void **state)
{
    struct bed *bed = *state;
    assert_false(push(bed, 1, PUSHES_AT_ONCE, JOB));
    assert_true(push(bed, 2, PUSHES_AT_ONCE + 1, JOB));
    assert_true(push(bed, 3, 1, JOB)); /* it does not overtake */
    assert_false(push(bed, 4, 1, (struct ttcore_message){.in_order = false})); /* an answer does */
    assert_false(push(bed, 5, 1, HINT));
    pushes_all(&bed->pushes);
    assert_false(pushes_wait(&bed->pushes));
    assert_int_equal(bed->count, PUSHES_AT_ONCE + 2);
    assert_int_equal(bed->sent[PUSHES_AT_ONCE + 1].what, 3);
}

static void what_waits_leaves_in_pieces_and_in_order(void **state)
{
    struct bed *bed = *state;
    unsigned pieces = 0;
    bed->is_slow = true;
    for (uint8_t what = 1; what <= 3; what++) {
        assert_true(push(bed, what, TARGETS, JOB));
    }
    for (; pushes_wait(&bed->pushes); pieces++) {
        uint32_t before = bed->count;
        pushes_some(&bed->pushes);
        assert_true(bed->count > before);
        assert_in_range(bed->count - before, 1, PUSHES_SLICE_NS / SLOW_NS + 1);
    }
    assert_true(pieces >= 3 * TARGETS / (PUSHES_SLICE_NS / SLOW_NS + 1));
    assert_int_equal(bed->count, 3 * TARGETS);
    for (uint32_t i = 0; i < bed->count; i++) {
        assert_int_equal(bed->sent[i].what, 1 + i / TARGETS);
        assert_int_equal(bed->sent[i].to, i % TARGETS);
    }
    assert_int_equal(bed->payer, 9);
    assert_int_equal(bed->charged_ns, (uint64_t)bed->count * (SLOW_NS + PUSHES_FLUSH_NS));
}

static void who_pays_for_some_pays_a_part(void **state)
{
    struct bed *bed = *state;
    static const uint8_t cause[CONNECTION_ROUTE] = {8};
    static const uint8_t byte[1];
    struct ttcore_message m = {
        .bytes = byte, .length = 1, .targets = TARGETS, .paid = 0, .in_order = true};
    assert_true(pushes_take(&bed->pushes, &m, bed->target, cause));
    pushes_all(&bed->pushes);
    assert_int_equal(bed->charged_ns, 0);
    m.paid = TARGETS / 2;
    assert_true(pushes_take(&bed->pushes, &m, bed->target, cause));
    pushes_all(&bed->pushes);
    assert_in_range(bed->charged_ns, TARGETS / 2 * PUSHES_FLUSH_NS,
                    TARGETS / 2 * PUSHES_FLUSH_NS + PUSHES_SLICE_NS);
    assert_true(pushes_take(&bed->pushes, &m, bed->target, NULL)); /* nobody's */
    uint64_t before_ns = bed->charged_ns;
    pushes_all(&bed->pushes);
    assert_int_equal(bed->charged_ns, before_ns);
}

static void hints_that_come_too_late_are_dropped(void **state)
{
    struct bed *bed = *state;
    struct ttcore_message hint = HINT;
    unsigned taken = 0;
    hint.length = 20000;
    for (unsigned i = 0; i < 100; i++) {
        assert_true(push(bed, 1, 100, hint));
        taken += bed->dropped == 0;
    }
    assert_in_range(taken, 5, PUSHES_HINTS_HELD / 20000);
    assert_int_equal(bed->dropped, (100 - taken) * 100);
    assert_true(push(bed, 2, 100, JOB)); /* what must come does not wait behind them */
    pushes_all(&bed->pushes);
    assert_int_equal(bed->count, 100);
    while (pushes_wait(&bed->pushes)) {
        pushes_some(&bed->pushes);
    }
    assert_int_equal(bed->count, 100 + taken * 100);
}

/* Beyond the bound, those that wait longest leave at once. */
static void what_must_come_comes(void **state)
{
    struct bed *bed = *state;
    struct ttcore_message job = JOB;
    job.length = 60000;
    for (uint8_t what = 1; what <= 100; what++) {
        assert_true(push(bed, what, 100, job));
        assert_in_range(bed->pushes.must.held, 1, PUSHES_HELD);
    }
    pushes_all(&bed->pushes);
    assert_int_equal(bed->count, 100 * 100);
    for (uint32_t i = 0; i < bed->count; i++) {
        assert_int_equal(bed->sent[i].what, 1 + i / 100);
    }
    assert_int_equal(bed->dropped, 0);
}

static void who_makes_much_wait_waits(void **state)
{
    struct bed *bed = *state;
    struct connection a = {.is_broken = false}, b = {.is_broken = false};
    struct ttcore_message job = JOB;
    job.length = 60000;
    push(bed, 1, 100, job);
    pushes_keep_back(&bed->pushes, &a);
    assert_false(connection_is_paused(&a));
    for (uint8_t what = 2; bed->pushes.must.held <= PUSHES_HELD / 2; what++) {
        push(bed, what, 100, job);
    }
    pushes_keep_back(&bed->pushes, &a);
    pushes_keep_back(&bed->pushes, &a);
    pushes_keep_back(&bed->pushes, &b);
    assert_true(connection_is_paused(&a) && connection_is_paused(&b));
    assert_null(pushes_let_go(&bed->pushes));
    pushes_forget(&bed->pushes, &b);
    pushes_all(&bed->pushes);
    assert_ptr_equal(pushes_let_go(&bed->pushes), &a);
    assert_false(connection_is_paused(&a));
    assert_null(pushes_let_go(&bed->pushes));
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(a_message_for_few_is_for_the_caller),
        T(what_waits_leaves_in_pieces_and_in_order),
        T(who_pays_for_some_pays_a_part),
        T(hints_that_come_too_late_are_dropped),
        T(what_must_come_comes),
        T(who_makes_much_wait_waits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
