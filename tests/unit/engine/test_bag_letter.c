/* Letters about a bag of positions: what is said is read as it was said, and nothing else is read.
 */
#include "worker/engine/mailbox.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static uint8_t body[PROTO_BODY_MAX];
static struct bag_letter out;

static bool is_read(const struct bag_letter *letter)
{
    return bag_letter_read(body, bag_letter_write(letter, body), &out);
}

static struct bag_letter found_letter(void)
{
    struct bag_letter letter = {.kind = BAG_FOUND, .count = 2, .item = {3, 4000000000}};
    letter.found = (struct bag_found){.item = 9, .time_us = 123456789012};
    letter.found.result = (struct search_result){
        .depth = 24, .deepest = 30, .score = -64, .bound = TT_EXACT, .move = 17};
    letter.found.result.pv.length = SEARCH_PV_MAX;
    for (unsigned i = 0; i < SEARCH_PV_MAX; i++) {
        letter.found.result.pv.move[i] = (uint16_t)(65535 - i);
    }
    unsigned n = 1;
#define X(name, json, help) letter.found.counters.name = 1000000007u * n++;
    COUNTERS(X)
#undef X
    return letter;
}

static void each_kind_is_read_as_it_was_said(void **state)
{
    (void)state;
    struct bag_letter work = {.kind = BAG_WORK, .is_shared = true, .count = 2, .item = {1, 70000}};
    snprintf(work.text[0], sizeof work.text[0], "8/8/8/8/8/8/8/K1k5 w - -");
    memset(work.text[1], 'X', 64);
    assert_true(is_read(&work));
    assert_memory_equal(&out, &work, sizeof work);
    const struct bag_letter keep = {.kind = BAG_KEEP, .count = 1, .item = {5}};
    assert_true(is_read(&keep));
    assert_memory_equal(&out, &keep, sizeof keep);
    const struct bag_letter has = {.kind = BAG_HAS,
                                   .count = BAG_ASSIGNED_MAX,
                                   .item = {8, 7, 6, 5, 4, 3, 2, 1},
                                   .nodes = 1000};
    assert_true(is_read(&has));
    assert_memory_equal(&out, &has, sizeof has);
    const struct bag_letter found = found_letter();
    assert_true(is_read(&found));
    assert_int_equal(out.count, 2);
    assert_int_equal(out.item[1], 4000000000);
    assert_int_equal(out.found.item, 9);
    assert_int_equal(out.found.time_us, 123456789012);
    assert_int_equal(out.found.result.score, -64);
    assert_int_equal(out.found.result.move, 17);
    assert_int_equal(out.found.result.bound, TT_EXACT);
    assert_memory_equal(&out.found.result.pv, &found.found.result.pv, sizeof out.found.result.pv);
    assert_memory_equal(&out.found.counters, &found.found.counters, sizeof out.found.counters);
}

static void what_no_search_has_is_not_read(void **state)
{
    (void)state;
    struct bag_letter letter = found_letter();
    letter.found.result.depth = SEARCH_DEPTH_MAX + 1;
    assert_false(is_read(&letter));
    letter = found_letter();
    letter.found.result.score = GAME_MATE + 1;
    assert_false(is_read(&letter));
    struct bag_letter work = {.kind = BAG_WORK, .count = 1};
    snprintf(work.text[0], sizeof work.text[0], "a line\nmore");
    assert_false(is_read(&work));
    struct bag_letter kind = {.kind = BAG_HAS, .count = 1};
    const size_t length = bag_letter_write(&kind, body);
    for (unsigned at = 0; at < 3; at++) { /* kind, shared, count */
        const uint8_t before = body[at];
        body[at] = 200;
        assert_false(bag_letter_read(body, length, &out));
        body[at] = before;
    }
    assert_true(bag_letter_read(body, length, &out));
}

static void parts_and_more_are_not_read(void **state)
{
    (void)state;
    const struct bag_letter letter = found_letter();
    const size_t length = bag_letter_write(&letter, body);
    for (size_t cut = 0; cut < length; cut++) {
        assert_false(bag_letter_read(body, cut, &out));
    }
    body[length] = 0;
    assert_false(bag_letter_read(body, length + 1, &out));
}

static void what_does_not_fit_is_not_written(void **state)
{
    (void)state;
    struct bag_letter work = {.kind = BAG_WORK, .count = 8};
    for (unsigned i = 0; i < work.count; i++) {
        memset(work.text[i], 'X', GAME_TEXT_MAX - 1);
    }
    assert_int_equal(bag_letter_write(&work, body), 0);
    work.count--;
    assert_true(is_read(&work));
}

/* ---- when a worker joins ---- */

static struct mail_join join;
static uint64_t now_us = 1000000000;

/* Joins that are due from now on, if it is asked each millisecond. */
static unsigned joins_within(unsigned ms)
{
    unsigned joins = 0;
    for (unsigned i = 0; i < ms; i++) {
        joins += mail_join_is_due(&join, now_us);
        now_us += 1000;
    }
    return joins;
}

static void a_worker_joins_when_there_is_a_reason(void **state)
{
    (void)state;
    mail_join_begin(&join);
    assert_int_equal(joins_within(1), 1);
    assert_int_equal(joins_within(10), 1); /* the job may not be open yet */
    assert_int_equal(joins_within(990), 5); /* after 30, 70, 150, 310 and 630 ms */
    assert_in_range(joins_within(100000), 10, 14); /* nobody answers for long */
    mail_join_after(&join, MAIL_JOIN_LONGEST_MS, now_us);
    assert_int_equal(joins_within(MAIL_JOIN_LONGEST_MS), 0);
    assert_int_equal(joins_within(10 * MAIL_JOIN_LONGEST_MS), 10);
    mail_join_after(&join, MAIL_JOIN_AWAIT_MS, now_us);
    assert_int_equal(joins_within(MAIL_JOIN_AWAIT_MS), 0);
    assert_int_equal(joins_within(1), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_kind_is_read_as_it_was_said),
        cmocka_unit_test(what_no_search_has_is_not_read),
        cmocka_unit_test(parts_and_more_are_not_read),
        cmocka_unit_test(what_does_not_fit_is_not_written),
        cmocka_unit_test(a_worker_joins_when_there_is_a_reason),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
