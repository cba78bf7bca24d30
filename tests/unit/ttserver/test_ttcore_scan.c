/* The results as a whole: SCAN and FLUSH, a piece at a time. */
#include "tests/support/test_ttcore.h"

#include "common/rng.h"
#include "common/tt/results.h"

enum { BUCKETS = 3 * TTCORE_FLUSH_BUCKETS / 2, KEYS = 1500 };

/* Larger than what one message goes through. */
static int large_setup(void **state)
{
    struct ttcore_options options = bed_options();
    options.results_bytes = BUCKETS * sizeof(struct tt_bucket);
    *state = bed_open(&options);
    bed_hello(*state, "a", PROTO_CLIENT);
    bed_hello(*state, "b", PROTO_CLIENT);
    return 0;
}

static struct tt_store entry(unsigned i)
{
    return (struct tt_store){.key = rng_mix(i + 1),
                             .score = (int16_t)((int)i - KEYS / 2),
                             .depth = (uint8_t)(i % 13),
                             .bound = (uint8_t)(1 + i % 3),
                             .move = (uint16_t)i};
}

static void fill(struct bed *bed)
{
    for (unsigned i = 0; i < KEYS; i++) {
        bed_store(bed, "a", entry(i));
    }
}

static struct proto_scanned scan(struct bed *bed, uint64_t cursor, uint8_t depth)
{
    bed_say(bed, "b",
            (struct proto_message){.type = PROTO_SCAN,
                                   .scan = {.request = 4, .cursor = cursor, .depth = depth}});
    const struct proto_scanned page = bed_seen(bed, "b", PROTO_SCANNED)->scanned;
    assert_int_equal(page.request, 4);
    assert_true(page.next == 0 || page.next > cursor);
    return page;
}

/* How many entries of at least that depth there are; each is as it was stored. */
static unsigned count(struct bed *bed, uint8_t depth, bool *seen)
{
    unsigned n = 0;
    uint64_t cursor = 0;
    do {
        struct proto_scanned page = scan(bed, cursor, depth);
        cursor = page.next;
        for (uint32_t i = 0; i < page.list.count; i++, n++) {
            const struct tt_scanned *e = &page.list.at[i];
            struct tt_store was = entry(e->move);
            assert_true(e->key == was.key && e->depth == was.depth && e->depth >= depth);
            assert_int_equal(e->lower, was.bound & TT_LOWER ? was.score : TT_SCORE_MIN);
            assert_int_equal(e->upper, was.bound & TT_UPPER ? was.score : TT_SCORE_MAX);
            assert_false(seen != NULL && seen[e->move]);
            if (seen != NULL) {
                seen[e->move] = true;
            }
        }
    } while (cursor != 0);
    return n;
}

static void a_scan_finds_every_entry_once(void **state)
{
    struct bed *bed = *state;
    bool seen[KEYS] = {false};
    fill(bed);
    assert_int_equal(count(bed, 0, seen), KEYS);
    unsigned deep = 0;
    for (unsigned i = 0; i < KEYS; i++) {
        deep += entry(i).depth >= 9;
    }
    assert_int_equal(count(bed, 9, NULL), deep);
    assert_int_equal(count(bed, 13, NULL), 0);
    assert_int_equal(bed_figures(bed).scanned, KEYS + deep);
}

static void a_page_is_bounded_in_buckets_and_in_entries(void **state)
{
    struct bed *bed = *state;
    struct proto_scanned empty = scan(bed, 0, 0);
    assert_int_equal(empty.list.count, 0);
    assert_int_equal(empty.next, TTCORE_SCAN_BUCKETS);
    for (uint64_t i = 0; i < 400000; i++) { /* so that most buckets are full */
        struct tt_store store = {.key = rng_mix(i), .depth = 3, .bound = TT_EXACT, .score = 1};
        if (i % 64 == 0) {
            bed_store(bed, "a", store);
        }
        if (store.key < UINT64_MAX / BUCKETS * TTCORE_SCAN_BUCKETS) {
            bed_store(bed, "a", store);
        }
    }
    struct proto_scanned page = scan(bed, 0, 0);
    assert_true(page.list.count > PROTO_BATCH_MAX - TT_BUCKET_ENTRIES);
    assert_true(page.list.count <= PROTO_BATCH_MAX && page.next < TTCORE_SCAN_BUCKETS);
}

static void a_scan_out_of_range_ends_or_is_refused(void **state)
{
    struct bed *bed = *state;
    static const uint64_t cursors[] = {BUCKETS, BUCKETS + 1, UINT64_MAX};
    fill(bed);
    for (unsigned i = 0; i < 3; i++) {
        struct proto_scanned page = scan(bed, cursors[i], 0);
        assert_true(page.next == 0 && page.list.count == 0);
    }
    bed_say(bed, "b", (struct proto_message){.type = PROTO_SCAN, .scan = {4, 0, TT_DEPTH_MAX + 1}});
    bed_expect_error(bed, "b", PROTO_ERR_RANGE);
    assert_int_equal(bed->seen.error.request, 4);
}

/* ---- FLUSH ---- */

static void flush(struct bed *bed, const char *who, uint32_t request)
{
    bed_say(bed, who, (struct proto_message){.type = PROTO_FLUSH, .flush = {request}});
}

static bool is_flushed(struct bed *bed, const char *who, uint32_t request)
{
    for (unsigned i = 0; bed_nth(bed, who, i) != NULL; i++) {
        if (bed->seen.type == PROTO_FLUSHED && bed->seen.flushed.request == request) {
            return true;
        }
    }
    return false;
}

static void a_flush_forgets_all_results_piece_by_piece(void **state)
{
    struct bed *bed = *state;
    unsigned pieces = 1;
    fill(bed);
    bed_ask(bed, "b", bed_wide(77, 5, 0, 0));
    flush(bed, "a", 6);
    assert_false(is_flushed(bed, "a", 6)); /* not yet: others must not wait so long */
    assert_in_range(count(bed, 0, NULL), 1, KEYS - 1);
    for (; ttcore_has_more(bed->core) && pieces < 10; pieces++) {
        bed_event(bed, TTCORE_MORE);
    }
    assert_int_equal(pieces, 2);
    assert_true(is_flushed(bed, "a", 6));
    assert_int_equal(count(bed, 0, NULL), 0);
    assert_int_equal(bed_peek(bed, "b", 77, 5).nproc, 1); /* who is in flight stays */
    assert_int_equal(bed_figures(bed).flushes, 1);
    bed_store(bed, "a", entry(5));
    bed_event(bed, TTCORE_MORE); /* nothing is left to do */
    assert_int_equal(bed->actions.messages, 0);
    assert_int_equal(count(bed, 0, NULL), 1);
}

/* One that comes while another is under way covers what was cleared before it, and filled again. */
static void each_flush_clears_all_that_was_there_when_it_came(void **state)
{
    struct bed *bed = *state;
    flush(bed, "a", 6);
    fill(bed);
    flush(bed, "b", 7); /* does the second piece */
    assert_true(is_flushed(bed, "a", 6));
    assert_false(is_flushed(bed, "b", 7));
    assert_true(count(bed, 0, NULL) > 0);
    bed_event(bed, TTCORE_MORE);
    assert_true(is_flushed(bed, "b", 7));
    assert_int_equal(count(bed, 0, NULL), 0);
    assert_false(ttcore_has_more(bed->core));
}

static void flushes_are_bounded_and_those_of_the_dead_end(void **state)
{
    struct bed *bed = *state;
    struct ttcore_event gone = {
        .kind = TTCORE_GONE, .route = (const uint8_t *)"b", .route_length = 1};
    flush(bed, "b", 7);
    ttcore_step(bed->core, &gone, &bed->actions);
    bed_event(bed, TTCORE_MORE);
    assert_int_equal(bed->actions.messages, 0);
    assert_false(ttcore_has_more(bed->core));
    flush(bed, "a", 1);
    for (uint32_t i = 2; i <= 100; i++) { /* each does a piece, so two are under way at most */
        flush(bed, "a", i);
        assert_true(is_flushed(bed, "a", i - 1));
    }
    bed_event(bed, TTCORE_MORE);
    assert_true(is_flushed(bed, "a", 100));
}

static void beyond_the_bound_a_flush_is_refused(void **state)
{
    (void)state;
    struct ttcore_options options = bed_options();
    options.results_bytes = 40 * TTCORE_FLUSH_BUCKETS * sizeof(struct tt_bucket);
    struct bed *bed = bed_open(&options);
    bed_hello(bed, "a", PROTO_CLIENT);
    for (uint32_t i = 1; i <= TTCORE_FLUSHES_MAX; i++) {
        flush(bed, "a", i);
        assert_int_equal(bed->actions.messages, 0);
    }
    flush(bed, "a", 99);
    bed_expect_error(bed, "a", PROTO_ERR_LIMIT);
    assert_int_equal(bed->seen.error.request, 99);
    unsigned answered = 0;
    while (ttcore_has_more(bed->core)) {
        bed_event(bed, TTCORE_MORE);
        answered += bed->actions.messages;
    }
    assert_int_equal(answered, TTCORE_FLUSHES_MAX);
    bed_close(bed);
}

static void a_place_is_kept_or_that_of_the_boot(void **state)
{
    (void)state;
    for (uint64_t place = 0; place < 2; place++) {
        struct ttcore_options options = bed_options();
        options.place = place;
        struct bed *bed = bed_open(&options);
        bed_hello_as(bed, "a", (struct proto_hello){.role = PROTO_CLIENT});
        const struct proto_welcome welcome = bed_seen(bed, "a", PROTO_WELCOME)->welcome;
        assert_int_equal(welcome.boot, 77);
        assert_int_equal(welcome.place, place != 0 ? place : 77);
        bed_close(bed);
    }
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, large_setup, bed_teardown)
    const struct CMUnitTest tests[] = {
        T(a_scan_finds_every_entry_once),
        T(a_page_is_bounded_in_buckets_and_in_entries),
        T(a_scan_out_of_range_ends_or_is_refused),
        T(a_flush_forgets_all_results_piece_by_piece),
        T(each_flush_clears_all_that_was_there_when_it_came),
        T(flushes_are_bounded_and_those_of_the_dead_end),
        cmocka_unit_test(beyond_the_bound_a_flush_is_refused),
        cmocka_unit_test(a_place_is_kept_or_that_of_the_boot),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
