/* What an entry proves of a node, and what a value found in a window proves. */
#include "tests/support/test_tt.h"

#include "common/tt/ops.h"

static struct tt_found entry(int lower, int upper, unsigned depth)
{
    return (struct tt_found){
        .lower = (int16_t)lower, .upper = (int16_t)upper, .depth = (uint8_t)depth};
}

static void expect(struct tt_found found, unsigned depth, bool strict, int alpha, int beta,
                   bool resolves, int value)
{
    int score = 4711;
    assert_int_equal(tt_ops_resolves(&found, depth, strict, alpha, beta, &score), resolves);
    assert_int_equal(score, resolves ? value : 4711);
}

static void an_entry_resolves_the_windows_it_does_not_reach_into(void **state)
{
    (void)state;
    expect(entry(10, TT_SCORE_MAX, 5), 5, true, 0, 10, true, 10);
    expect(entry(9, TT_SCORE_MAX, 5), 5, true, 0, 10, false, 0);
    expect(entry(TT_SCORE_MIN, 0, 5), 5, true, 0, 10, true, 0);
    expect(entry(TT_SCORE_MIN, 1, 5), 5, true, 0, 10, false, 0);
    expect(entry(1, 9, 5), 5, true, 0, 10, false, 0);
    expect(entry(-20, -10, 5), 5, true, 0, 10, true, -10);
    expect(entry(20, 30, 5), 5, true, 0, 10, true, 20);
    expect(entry(TT_SCORE_MIN, TT_SCORE_MAX, 5), 5, true, -32000, 32000, false, 0);
}

static void an_exact_entry_resolves_every_window(void **state)
{
    (void)state;
    for (int score = -3; score <= 3; score++) {
        expect(entry(score, score, 5), 5, true, -1, 1, true, score);
    }
}

static void a_strict_node_wants_an_entry_of_its_own_depth(void **state)
{
    (void)state;
    for (unsigned depth = 3; depth <= 7; depth++) {
        expect(entry(4, 4, depth), 5, true, 0, 1, depth == 5, 4);
        expect(entry(4, 4, depth), 5, false, 0, 1, depth >= 5, 4);
    }
}

/* All three ways to a verdict agree: the ask, the smaller rule, and the bound of a stored value. */
static void a_stored_value_resolves_the_window_it_was_found_in(void **state)
{
    (void)state;
    for (int score = -4; score <= 4; score++) {
        for (int alpha = -3; alpha < 3; alpha++) {
            for (int beta = alpha + 1; beta <= 3; beta++) {
                enum tt_bound bound = tt_bound_of(score, alpha, beta);
                assert_int_equal(bound, score <= alpha  ? TT_UPPER
                                        : score >= beta ? TT_LOWER
                                                        : TT_EXACT);
                struct tt_store store = tt_result(1, 5, bound, score, 9);
                struct tt_found found = tt_found_of(&store);
                struct tt_ask ask = {.alpha = (int16_t)alpha, .beta = (int16_t)beta, .depth = 5};
                struct tt_answer answer = {.alpha = ask.alpha, .beta = ask.beta};
                expect(found, 5, true, alpha, beta, true, score);
                assert_int_equal(found.move, 9);
                assert_int_equal(tt_ops_judge(&found, &ask, &answer), TT_CUT);
                assert_int_equal(answer.score, score);
            }
        }
    }
}

static void an_entry_that_resolves_nothing_narrows_the_window(void **state)
{
    (void)state;
    struct tt_found found = entry(-5, 5, 6);
    struct tt_ask ask = {.alpha = -10, .beta = 10, .depth = 6, .flags = TT_STRICT};
    struct tt_answer answer = {.alpha = ask.alpha, .beta = ask.beta};
    assert_int_equal(tt_ops_judge(&found, &ask, &answer), TT_OPEN);
    assert_int_equal(answer.alpha, -5);
    assert_int_equal(answer.beta, 5);
    ask.depth = 5; /* not an entry of this depth */
    answer = (struct tt_answer){.alpha = ask.alpha, .beta = ask.beta};
    assert_int_equal(tt_ops_judge(&found, &ask, &answer), TT_OPEN);
    assert_int_equal(answer.alpha, -10);
    assert_int_equal(answer.beta, 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_entry_resolves_the_windows_it_does_not_reach_into),
        cmocka_unit_test(an_exact_entry_resolves_every_window),
        cmocka_unit_test(a_strict_node_wants_an_entry_of_its_own_depth),
        cmocka_unit_test(a_stored_value_resolves_the_window_it_was_found_in),
        cmocka_unit_test(an_entry_that_resolves_nothing_narrows_the_window),
    };
    return cmocka_run_group_tests_name("tt_ops", tests, NULL, NULL);
}
