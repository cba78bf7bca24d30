/* Letters about a bag of positions: what is said is read as it was said, and nothing else is read.
 */
#include "worker/engine/bag_letter.h"

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
    const struct bag_letter drop = {.kind = BAG_DROP, .count = 1, .item = {5}};
    assert_true(is_read(&drop));
    assert_memory_equal(&out, &drop, sizeof drop);
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

/* ---- the inbox ---- */

static struct bag_inbox *inbox;

static void post(uint64_t job, uint64_t from, const struct bag_letter *letter)
{
    const struct proto_mail mail = {
        .job = job, .from = from, .body = {body, (uint32_t)bag_letter_write(letter, body)}};
    const struct client_event event = {.kind = CLIENT_MAIL, .mail = &mail};
    bag_inbox_event(inbox, &event);
}

static void an_inbox_keeps_letters_of_its_job_in_order(void **state)
{
    (void)state;
    uint64_t from;
    struct bag_letter letter = {.kind = BAG_HAS};
    assert_int_equal(bag_inbox_open(&inbox), ERR_OK);
    post(5, 1, &letter); /* of no job so far */
    bag_inbox_begin(inbox, 5);
    post(6, 1, &letter);
    assert_false(bag_inbox_next(inbox, &out, &from));
    for (unsigned i = 0; i < BAG_INBOX_ROOM + 10; i++) {
        letter.nodes = i;
        post(5, 100 + i, &letter);
    }
    for (unsigned i = 0; i < BAG_INBOX_ROOM; i++) { /* the rest is lost */
        assert_true(bag_inbox_next(inbox, &out, &from));
        assert_int_equal(from, 100 + i);
        assert_int_equal(out.nodes, i);
    }
    assert_false(bag_inbox_next(inbox, &out, &from));
    const struct proto_mail bad = {.job = 5, .from = 1, .body = {(const uint8_t *)"?", 1}};
    const struct client_event event = {.kind = CLIENT_MAIL, .mail = &bad};
    bag_inbox_event(inbox, &event);
    post(5, 2, &letter);
    assert_true(bag_inbox_next(inbox, &out, &from));
    assert_int_equal(from, 2);
    bag_inbox_close(&inbox);
    bag_inbox_close(&inbox);
}

static void an_inbox_knows_who_takes_part(void **state)
{
    (void)state;
    uint64_t peer[BAG_PEERS_MAX];
    struct proto_correspondent who[] = {{7}, {8}};
    struct proto_mail_list list = {.job = 5, .list = {2, who}};
    const struct client_event event = {.kind = CLIENT_CORRESPONDENTS, .correspondents = &list};
    assert_int_equal(bag_inbox_open(&inbox), ERR_OK);
    bag_inbox_begin(inbox, 5);
    bag_inbox_event(inbox, &event);
    list.job = 6;
    bag_inbox_event(inbox, &event);
    assert_int_equal(bag_inbox_peers(inbox, peer), 2);
    assert_int_equal(peer[1], 8);
    assert_int_equal(bag_inbox_peers(inbox, peer), 0);
    bag_inbox_close(&inbox);
}

/* Joins that are due from `now` on, if it is asked each millisecond. */
static unsigned joins_within(uint64_t *now_us, unsigned ms)
{
    unsigned joins = 0;
    for (unsigned i = 0; i < ms; i++) {
        joins += bag_inbox_join_is_due(inbox, *now_us);
        *now_us += 1000;
    }
    return joins;
}

static void a_worker_joins_when_there_is_a_reason(void **state)
{
    (void)state;
    const struct client_event up = {.kind = CLIENT_SHARD_UP}, down = {.kind = CLIENT_SHARD_DOWN};
    const struct client_event other = {.kind = CLIENT_WORKER_INDEX};
    uint64_t now_us = 1000000000;
    assert_int_equal(bag_inbox_open(&inbox), ERR_OK);
    bag_inbox_begin(inbox, 5);
    assert_int_equal(joins_within(&now_us, 1), 1);
    assert_int_equal(joins_within(&now_us, 10), 1);
    assert_int_equal(joins_within(&now_us, 990), 5); /* after 30, 70, 150, 310 and 630 ms */
    assert_in_range(joins_within(&now_us, 100000), 10, 14); /* nobody answers for long */
    bag_inbox_answered(inbox, now_us);
    assert_int_equal(joins_within(&now_us, BAG_JOIN_LONGEST_MS), 0);
    assert_int_equal(joins_within(&now_us, 10 * BAG_JOIN_LONGEST_MS), 10);
    bag_inbox_event(inbox, &other);
    bag_inbox_answered(inbox, now_us);
    assert_int_equal(joins_within(&now_us, 1000), 0);
    bag_inbox_event(inbox, &down);
    assert_int_equal(joins_within(&now_us, 1), 1);
    bag_inbox_answered(inbox, now_us);
    bag_inbox_event(inbox, &up);
    assert_int_equal(joins_within(&now_us, 1), 1);
    assert_int_equal(joins_within(&now_us, 10), 1); /* the job may not be open there yet */
    bag_inbox_answered(inbox, now_us);
    bag_inbox_await(inbox, now_us);
    assert_int_equal(joins_within(&now_us, BAG_JOIN_AWAIT_MS), 0);
    assert_int_equal(joins_within(&now_us, 1), 1);
    bag_inbox_begin(inbox, 6);
    assert_int_equal(joins_within(&now_us, 1), 1);
    bag_inbox_close(&inbox);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_kind_is_read_as_it_was_said),
        cmocka_unit_test(what_no_search_has_is_not_read),
        cmocka_unit_test(parts_and_more_are_not_read),
        cmocka_unit_test(what_does_not_fit_is_not_written),
        cmocka_unit_test(an_inbox_keeps_letters_of_its_job_in_order),
        cmocka_unit_test(an_inbox_knows_who_takes_part),
        cmocka_unit_test(a_worker_joins_when_there_is_a_reason),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
