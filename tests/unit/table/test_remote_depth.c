/* The remote depth limit: by what asking has cost, and whether there are peers. */
#include "worker/table/remote_depth.h"

#include "proto/codec.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { LONG = 20, CHECKS = 100, ALONE = false, PEERS_THERE = true };

/* A search that spends `permille` of its time, in so many checks. */
static void check(struct remote_depth *h, unsigned iteration, bool has_peers, unsigned permille,
                  unsigned checks)
{
    for (unsigned i = 0; i < checks; i++) {
        remote_depth_adapt(h, iteration, has_peers, h->from_us + REMOTE_DEPTH_EVERY_US,
                           h->spent_us + permille * REMOTE_DEPTH_EVERY_US / 1000);
    }
}

static struct remote_depth begun(uint8_t depth)
{
    struct remote_depth h = {.depth = 0};
    remote_depth_begin(&h, depth, false, 1000000, 500);
    return h;
}

/* At selection full a node of a depth takes a small part of the time. */
static void at_selection_full_it_begins_higher_and_moves_sooner(void **state)
{
    (void)state;
    struct remote_depth h = {.depth = 0};
    remote_depth_begin(&h, PROTO_REMOTE_DEPTH_AUTO, true, 1000000, 0);
    assert_int_equal(h.depth, REMOTE_DEPTH_FIRST_FULL);
    remote_depth_adapt(&h, LONG, PEERS_THERE, 1000000 + REMOTE_DEPTH_EARLY_EVERY_US,
                       REMOTE_DEPTH_EARLY_EVERY_US * (REMOTE_DEPTH_COST_PERMILLE + 1) / 1000);
    assert_int_equal(h.depth, REMOTE_DEPTH_FIRST_FULL + 1);
    check(&h, LONG, PEERS_THERE, 1000, 1); /* far too much */
    assert_int_equal(h.depth, REMOTE_DEPTH_FIRST_FULL + 3);
    check(&h, LONG, PEERS_THERE, 1000, CHECKS);
    assert_int_equal(h.depth, LONG); /* the root is asked about */
    check(&h, 8, PEERS_THERE, 0, 1); /* ... in a small iteration, too */
    assert_int_equal(h.now, 8);
    check(&h, LONG, PEERS_THERE, 1000, 1);
    assert_int_equal(h.now, LONG);
    check(&h, 2 * LONG, PEERS_THERE, 1000, CHECKS);
    assert_int_equal(h.depth, 2 * LONG);
    check(&h, 2 * LONG, PEERS_THERE, REMOTE_DEPTH_COST_PERMILLE / 3 - 1, 1);
    assert_int_equal(h.depth, 2 * LONG - 1);
    remote_depth_begin(&h, PROTO_REMOTE_DEPTH_AUTO, true, 9000000, 0);
    assert_int_equal(h.depth, 2 * LONG - 1);
    remote_depth_begin(&h, PROTO_REMOTE_DEPTH_AUTO, false, 9000000, 0);
    assert_int_equal(h.depth, REMOTE_DEPTH_FIRST);
}

static void a_fixed_limit_stays(void **state)
{
    (void)state;
    struct remote_depth h = begun(9);
    check(&h, LONG, PEERS_THERE, 1000, CHECKS);
    check(&h, LONG, PEERS_THERE, 0, CHECKS);
    assert_int_equal(h.depth, 9);
}

static void a_search_begins_with_the_limit_of_the_one_before(void **state)
{
    (void)state;
    struct remote_depth h = begun(PROTO_REMOTE_DEPTH_AUTO);
    check(&h, LONG, PEERS_THERE, REMOTE_DEPTH_COST_PERMILLE + 1, 2);
    remote_depth_begin(&h, PROTO_REMOTE_DEPTH_AUTO, false, 2000000, 0);
    assert_int_equal(h.depth, REMOTE_DEPTH_FIRST + 2);
    remote_depth_begin(&h, 3, false, 3000000, 0);
    assert_int_equal(h.depth, 3);
    remote_depth_begin(&h, PROTO_REMOTE_DEPTH_AUTO, false, 4000000,
                       0); /* a fixed one says nothing */
    assert_int_equal(h.depth, REMOTE_DEPTH_FIRST);
}

static void what_costs_too_much_is_asked_less(void **state)
{
    (void)state;
    struct remote_depth h = begun(PROTO_REMOTE_DEPTH_AUTO);
    assert_int_equal(h.depth, REMOTE_DEPTH_FIRST);
    check(&h, LONG, PEERS_THERE, REMOTE_DEPTH_COST_PERMILLE + 1, 1);
    assert_int_equal(h.depth, REMOTE_DEPTH_FIRST + 1);
    check(&h, LONG, PEERS_THERE, REMOTE_DEPTH_COST_PERMILLE, CHECKS);
    assert_int_equal(h.depth, REMOTE_DEPTH_FIRST + 1);
    check(&h, LONG, PEERS_THERE, 1000, CHECKS);
    assert_int_equal(h.depth, REMOTE_DEPTH_MAX);
}

static void what_costs_little_is_asked_more(void **state)
{
    (void)state;
    struct remote_depth h = begun(PROTO_REMOTE_DEPTH_AUTO);
    check(&h, LONG, PEERS_THERE, REMOTE_DEPTH_COST_PERMILLE / 6,
          CHECKS); /* a ply more would be too much */
    assert_int_equal(h.depth, REMOTE_DEPTH_FIRST);
    check(&h, LONG, PEERS_THERE, REMOTE_DEPTH_COST_PERMILLE / 6 - 1, 1);
    assert_int_equal(h.depth, REMOTE_DEPTH_FIRST - 1);
    check(&h, LONG, PEERS_THERE, 0, CHECKS);
    assert_int_equal(h.depth, REMOTE_DEPTH_MIN);
}

static void alone_less_is_spent(void **state)
{
    (void)state;
    struct remote_depth h = begun(PROTO_REMOTE_DEPTH_AUTO);
    check(&h, LONG, ALONE, REMOTE_DEPTH_ALONE_PERMILLE, CHECKS);
    assert_int_equal(h.depth, REMOTE_DEPTH_FIRST);
    check(&h, LONG, ALONE, REMOTE_DEPTH_ALONE_PERMILLE + 1, 1);
    assert_int_equal(h.depth, REMOTE_DEPTH_FIRST + 1);
    check(&h, LONG, PEERS_THERE, REMOTE_DEPTH_ALONE_PERMILLE + 1, CHECKS); /* a peer has come */
    assert_int_equal(h.depth, REMOTE_DEPTH_FIRST + 1);
    check(&h, LONG, PEERS_THERE, REMOTE_DEPTH_COST_PERMILLE / 6 - 1, 1);
    assert_int_equal(h.depth, REMOTE_DEPTH_FIRST);
}

/* Asks come in bursts. */
static void alone_it_falls_when_it_was_quiet_for_long(void **state)
{
    (void)state;
    struct remote_depth h = begun(PROTO_REMOTE_DEPTH_AUTO);
    check(&h, LONG, ALONE, 0, REMOTE_DEPTH_QUIET_CHECKS - 1);
    check(&h, LONG, ALONE, REMOTE_DEPTH_ALONE_PERMILLE, 1);
    check(&h, LONG, ALONE, 0, REMOTE_DEPTH_QUIET_CHECKS - 1);
    assert_int_equal(h.depth, REMOTE_DEPTH_FIRST);
    check(&h, LONG, ALONE, 0, 1);
    assert_int_equal(h.depth, REMOTE_DEPTH_FIRST - 1);
    check(&h, LONG, ALONE, 0, REMOTE_DEPTH_QUIET_CHECKS * REMOTE_DEPTH_MAX);
    assert_int_equal(h.depth, REMOTE_DEPTH_MIN);
    check(&h, LONG, ALONE, 1000, 1);
    assert_int_equal(h.depth, REMOTE_DEPTH_MIN + 1);
}

/* It may have risen to the root: in an iteration of minutes, too, more is asked again. */
static void it_falls_from_the_root(void **state)
{
    (void)state;
    struct remote_depth h = begun(PROTO_REMOTE_DEPTH_AUTO);
    check(&h, 8, ALONE, 1000, CHECKS);
    assert_int_equal(h.depth, 8);
    check(&h, 8, ALONE, 0, REMOTE_DEPTH_QUIET_CHECKS);
    assert_int_equal(h.depth, 7);
}

/* An iteration with hardly a node to ask about says nothing about the next one's cost. With peers
 * every iteration has something to gain. */
static void alone_a_shallow_iteration_does_not_lower_it(void **state)
{
    (void)state;
    struct remote_depth h = begun(PROTO_REMOTE_DEPTH_AUTO);
    for (unsigned iteration = 1; iteration <= REMOTE_DEPTH_FIRST; iteration++) {
        check(&h, iteration, ALONE, 0, CHECKS);
        assert_int_equal(h.depth, REMOTE_DEPTH_FIRST);
    }
    check(&h, REMOTE_DEPTH_FIRST + 1, ALONE, 0, REMOTE_DEPTH_QUIET_CHECKS);
    assert_int_equal(h.depth, REMOTE_DEPTH_FIRST - 1);
    check(&h, 1, PEERS_THERE, 0, 1);
    assert_int_equal(h.depth, REMOTE_DEPTH_FIRST - 2);
}

static void the_root_is_asked_about_whatever_it_costs(void **state)
{
    (void)state;
    struct remote_depth h = begun(PROTO_REMOTE_DEPTH_AUTO);
    for (unsigned iteration = 1; iteration <= LONG; iteration++) {
        check(&h, iteration, ALONE, 1000, CHECKS);
        unsigned least = iteration < REMOTE_DEPTH_FIRST ? REMOTE_DEPTH_FIRST : iteration;
        assert_int_equal(h.depth, least < REMOTE_DEPTH_MAX ? least : REMOTE_DEPTH_MAX);
    }
}

static void a_check_too_soon_changes_nothing(void **state)
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

/* They leave the root and its children, and as much of the time as for a searcher alone. */
static void claims_leave_what_is_near_the_root(void **state)
{
    (void)state;
    struct remote_depth h = begun(PROTO_REMOTE_DEPTH_AUTO), fixed = begun(3);
    for (unsigned iteration = 1; iteration <= LONG; iteration++) {
        unsigned near_root = iteration - REMOTE_DEPTH_NEAR_ROOT;
        near_root = near_root < REMOTE_DEPTH_FIRST ? REMOTE_DEPTH_FIRST : near_root;
        near_root = near_root < REMOTE_DEPTH_MAX ? near_root : REMOTE_DEPTH_MAX;
        remote_depth_adapt_to_claims(&h, iteration, h.from_us, h.spent_us); /* at once */
        assert_int_equal(h.depth, near_root);
        remote_depth_adapt_to_claims(&fixed, iteration, h.from_us, h.spent_us);
        assert_int_equal(fixed.depth, 3);
    }
    for (unsigned i = 0; i < CHECKS; i++) { /* quiet as it is */
        remote_depth_adapt_to_claims(&h, LONG, h.from_us + REMOTE_DEPTH_EVERY_US, h.spent_us);
        assert_int_equal(h.depth, REMOTE_DEPTH_MAX);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(at_selection_full_it_begins_higher_and_moves_sooner),
        cmocka_unit_test(a_fixed_limit_stays),
        cmocka_unit_test(a_search_begins_with_the_limit_of_the_one_before),
        cmocka_unit_test(what_costs_too_much_is_asked_less),
        cmocka_unit_test(what_costs_little_is_asked_more),
        cmocka_unit_test(alone_less_is_spent),
        cmocka_unit_test(alone_it_falls_when_it_was_quiet_for_long),
        cmocka_unit_test(it_falls_from_the_root),
        cmocka_unit_test(alone_a_shallow_iteration_does_not_lower_it),
        cmocka_unit_test(the_root_is_asked_about_whatever_it_costs),
        cmocka_unit_test(a_check_too_soon_changes_nothing),
        cmocka_unit_test(claims_leave_what_is_near_the_root),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
