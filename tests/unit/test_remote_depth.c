/* From which depth up the shards are asked: by what asking has cost, and who is there. */
#include "worker/table/remote_depth.h"

#include "proto/codec.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { LONG = 20, LOOKS = 100, ALONE = false, COMPANY = true };

/* A search that spends `permille` of its time, look after look. */
static void look(struct remote_depth *h, unsigned iteration, bool has_others, unsigned permille,
                 unsigned looks)
{
    for (unsigned i = 0; i < looks; i++) {
        remote_depth_adapt(h, iteration, has_others, h->from_us + REMOTE_DEPTH_EVERY_US,
                           h->spent_us + permille * REMOTE_DEPTH_EVERY_US / 1000);
    }
}

static struct remote_depth begun(uint8_t depth)
{
    struct remote_depth h;
    remote_depth_begin(&h, depth, 1000000, 500);
    return h;
}

static void a_fixed_one_stays(void **state)
{
    (void)state;
    struct remote_depth h = begun(9);
    look(&h, LONG, COMPANY, 1000, LOOKS);
    look(&h, LONG, COMPANY, 0, LOOKS);
    assert_int_equal(h.depth, 9);
}

static void what_costs_too_much_is_asked_less(void **state)
{
    (void)state;
    struct remote_depth h = begun(PROTO_REMOTE_DEPTH_AUTO);
    assert_int_equal(h.depth, REMOTE_DEPTH_FIRST);
    look(&h, LONG, COMPANY, REMOTE_DEPTH_COST_PERMILLE + 1, 1);
    assert_int_equal(h.depth, REMOTE_DEPTH_FIRST + 1);
    look(&h, LONG, COMPANY, REMOTE_DEPTH_COST_PERMILLE, LOOKS);
    assert_int_equal(h.depth, REMOTE_DEPTH_FIRST + 1);
    look(&h, LONG, COMPANY, 1000, LOOKS);
    assert_int_equal(h.depth, REMOTE_DEPTH_MAX);
}

static void what_costs_little_is_asked_more(void **state)
{
    (void)state;
    struct remote_depth h = begun(PROTO_REMOTE_DEPTH_AUTO);
    look(&h, LONG, COMPANY, REMOTE_DEPTH_COST_PERMILLE / 6,
         LOOKS); /* a ply more would be too much */
    assert_int_equal(h.depth, REMOTE_DEPTH_FIRST);
    look(&h, LONG, COMPANY, REMOTE_DEPTH_COST_PERMILLE / 6 - 1, 1);
    assert_int_equal(h.depth, REMOTE_DEPTH_FIRST - 1);
    look(&h, LONG, COMPANY, 0, LOOKS);
    assert_int_equal(h.depth, REMOTE_DEPTH_MIN);
}

static void alone_less_is_spent(void **state)
{
    (void)state;
    struct remote_depth h = begun(PROTO_REMOTE_DEPTH_AUTO);
    look(&h, LONG, ALONE, REMOTE_DEPTH_ALONE_PERMILLE, LOOKS);
    assert_int_equal(h.depth, REMOTE_DEPTH_FIRST);
    look(&h, LONG, ALONE, REMOTE_DEPTH_ALONE_PERMILLE + 1, 1);
    assert_int_equal(h.depth, REMOTE_DEPTH_FIRST + 1);
    look(&h, LONG, COMPANY, REMOTE_DEPTH_ALONE_PERMILLE + 1, LOOKS); /* somebody has come */
    assert_int_equal(h.depth, REMOTE_DEPTH_FIRST + 1);
    look(&h, LONG, COMPANY, REMOTE_DEPTH_COST_PERMILLE / 6 - 1, 1);
    assert_int_equal(h.depth, REMOTE_DEPTH_FIRST);
}

/* Asks come in bursts. */
static void alone_it_falls_when_it_was_quiet_for_long(void **state)
{
    (void)state;
    struct remote_depth h = begun(PROTO_REMOTE_DEPTH_AUTO);
    look(&h, LONG, ALONE, 0, REMOTE_DEPTH_QUIET_LOOKS - 1);
    look(&h, LONG, ALONE, REMOTE_DEPTH_ALONE_PERMILLE, 1);
    look(&h, LONG, ALONE, 0, REMOTE_DEPTH_QUIET_LOOKS - 1);
    assert_int_equal(h.depth, REMOTE_DEPTH_FIRST);
    look(&h, LONG, ALONE, 0, 1);
    assert_int_equal(h.depth, REMOTE_DEPTH_FIRST - 1);
    look(&h, LONG, ALONE, 0, REMOTE_DEPTH_QUIET_LOOKS * REMOTE_DEPTH_MAX);
    assert_int_equal(h.depth, REMOTE_DEPTH_MIN);
    look(&h, LONG, ALONE, 1000, 1);
    assert_int_equal(h.depth, REMOTE_DEPTH_MIN + 1);
}

/* It may have risen to the root: in an iteration of minutes, too, more is asked again. */
static void it_falls_from_the_root(void **state)
{
    (void)state;
    struct remote_depth h = begun(PROTO_REMOTE_DEPTH_AUTO);
    look(&h, 8, ALONE, 1000, LOOKS);
    assert_int_equal(h.depth, 8);
    look(&h, 8, ALONE, 0, REMOTE_DEPTH_QUIET_LOOKS);
    assert_int_equal(h.depth, 7);
}

/* An iteration that hardly has nodes to ask about says nothing about the next one's cost; in
 * has_others there is something to be had from others in any. */
static void alone_a_shallow_iteration_does_not_lower_it(void **state)
{
    (void)state;
    struct remote_depth h = begun(PROTO_REMOTE_DEPTH_AUTO);
    for (unsigned iteration = 1; iteration <= REMOTE_DEPTH_FIRST; iteration++) {
        look(&h, iteration, ALONE, 0, LOOKS);
        assert_int_equal(h.depth, REMOTE_DEPTH_FIRST);
    }
    look(&h, REMOTE_DEPTH_FIRST + 1, ALONE, 0, REMOTE_DEPTH_QUIET_LOOKS);
    assert_int_equal(h.depth, REMOTE_DEPTH_FIRST - 1);
    look(&h, 1, COMPANY, 0, 1);
    assert_int_equal(h.depth, REMOTE_DEPTH_FIRST - 2);
}

static void the_root_is_asked_about_whatever_it_costs(void **state)
{
    (void)state;
    struct remote_depth h = begun(PROTO_REMOTE_DEPTH_AUTO);
    for (unsigned iteration = 1; iteration <= LONG; iteration++) {
        look(&h, iteration, ALONE, 1000, LOOKS);
        unsigned least = iteration < REMOTE_DEPTH_FIRST ? REMOTE_DEPTH_FIRST : iteration;
        assert_int_equal(h.depth, least < REMOTE_DEPTH_MAX ? least : REMOTE_DEPTH_MAX);
    }
}

static void a_look_too_soon_is_none(void **state)
{
    (void)state;
    struct remote_depth h = begun(PROTO_REMOTE_DEPTH_AUTO);
    const struct remote_depth first = h;
    for (unsigned us = 0; us < REMOTE_DEPTH_EVERY_US; us += 100) {
        remote_depth_adapt(&h, LONG, ALONE, first.from_us + us, first.spent_us + us);
    }
    assert_int_equal(h.depth, REMOTE_DEPTH_FIRST);
    assert_true(h.from_us == first.from_us && h.spent_us == first.spent_us);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_fixed_one_stays),
        cmocka_unit_test(what_costs_too_much_is_asked_less),
        cmocka_unit_test(what_costs_little_is_asked_more),
        cmocka_unit_test(alone_less_is_spent),
        cmocka_unit_test(alone_it_falls_when_it_was_quiet_for_long),
        cmocka_unit_test(it_falls_from_the_root),
        cmocka_unit_test(alone_a_shallow_iteration_does_not_lower_it),
        cmocka_unit_test(the_root_is_asked_about_whatever_it_costs),
        cmocka_unit_test(a_look_too_soon_is_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
