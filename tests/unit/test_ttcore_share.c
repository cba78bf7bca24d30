/* Results passed on from one searcher to others of the same namespace. */
#include "tests/unit/test_ttcore.h"

static struct tt_store result[2] = {{5, 30, 1, TT_LOWER, 9, 0}, {6, -7, 2, TT_EXACT, 8, 0}};

static void say_share(struct bed *bed, const char *who, uint64_t table_id)
{
    struct proto_message m = {.type = PROTO_SHARE};
    m.share = (struct proto_share){table_id, {2, result}};
    bed_say(bed, who, m);
}

static void hello_in(struct bed *bed, const char *who, uint64_t namespace_id, uint8_t flags)
{
    bed_hello_as(bed, who, (struct proto_hello){.namespace_id = namespace_id, .flags = flags});
}

static void who_wants_results_of_the_namespace_gets_them(void **state)
{
    struct bed *bed = *state;
    hello_in(bed, "a", 1, PROTO_WANTS_RESULTS);
    hello_in(bed, "b", 1, PROTO_WANTS_RESULTS);
    hello_in(bed, "c", 1, 0);
    hello_in(bed, "d", 2, PROTO_WANTS_RESULTS);
    say_share(bed, "a", 'a');
    assert_int_equal(bed->actions.messages, 1);
    assert_int_equal(bed->actions.message[0].targets, 1);
    const struct proto_share *share = &bed_seen(bed, "b", PROTO_SHARE)->share;
    assert_int_equal(share->list.count, 2);
    assert_int_equal(share->list.at[1].score, -7);
    assert_int_equal(bed_figures(bed).shared, 2);
    say_share(bed, "d", 'd'); /* alone there */
    assert_int_equal(bed->actions.messages, 0);
    assert_int_equal(bed_figures(bed).shared, 2);
}

static void at_most_two_get_them_in_turns(void **state)
{
    struct bed *bed = *state;
    static const char *const name[] = {"a", "b", "c", "d"};
    for (unsigned i = 0; i < 4; i++) {
        hello_in(bed, name[i], 1, PROTO_WANTS_RESULTS);
    }
    say_share(bed, "d", 'd');
    assert_int_equal(bed->actions.message[0].targets, 2);
    assert_non_null(bed_nth(bed, "a", 0));
    assert_non_null(bed_nth(bed, "b", 0));
    say_share(bed, "a", 'a');
    assert_non_null(bed_nth(bed, "c", 0));
    assert_non_null(bed_nth(bed, "d", 0));
}

static void who_has_the_same_table_is_passed_over(void **state)
{
    enum { SHARED = 7 };
    struct bed *bed = *state;
    hello_in(bed, "a", 1, PROTO_WANTS_RESULTS);
    hello_in(bed, "b", 1, PROTO_WANTS_RESULTS);
    hello_in(bed, "c", 1, PROTO_WANTS_RESULTS);
    say_share(bed, "a", SHARED);
    assert_int_equal(bed->actions.message[0].targets, 2); /* nobody has said which table it has */
    say_share(bed, "b", SHARED);
    assert_int_equal(bed->actions.message[0].targets, 1);
    assert_non_null(bed_nth(bed, "c", 0));
    say_share(bed, "c", SHARED + (UINT64_C(1) << 63));
    assert_int_equal(bed->actions.message[0].targets, 2);
    say_share(bed, "a", SHARED);
    assert_int_equal(bed->actions.message[0].targets, 1);
    assert_non_null(bed_nth(bed, "c", 0));
    say_share(bed, "b", 0); /* b does not say which table it has */
    assert_int_equal(bed->actions.message[0].targets, 2);
    struct proto_message none = {.type = PROTO_SHARE};
    bed_say(bed, "a", none);
    assert_int_equal(bed->actions.messages, 0);
}

static void bad_results_go_nowhere(void **state)
{
    struct bed *bed = *state;
    hello_in(bed, "a", 1, PROTO_WANTS_RESULTS);
    hello_in(bed, "b", 1, PROTO_WANTS_RESULTS);
    result[0].bound = TT_EXACT + 1;
    say_share(bed, "a", 'a');
    result[0].bound = TT_LOWER;
    bed_expect_error(bed, "a", PROTO_ERR_RANGE);
    assert_int_equal(bed_figures(bed).shared, 0);
}

#define T(name) cmocka_unit_test_setup_teardown(name, bed_setup, bed_teardown)
int main(void)
{
    const struct CMUnitTest tests[] = {
        T(who_wants_results_of_the_namespace_gets_them),
        T(at_most_two_get_them_in_turns),
        T(who_has_the_same_table_is_passed_over),
        T(bad_results_go_nowhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
