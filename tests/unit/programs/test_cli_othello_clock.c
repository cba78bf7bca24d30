#include "tests/support/test_tt.h"

#include "worker/programs/othello/othello_clock.h"

static uint32_t of(int64_t left_ms, int64_t increment_ms, int64_t period_ms, unsigned empties)
{
    const struct othello_clock clock = {true, left_ms, increment_ms, period_ms};
    return othello_clock_move_ms(&clock, empties);
}

static void a_move_never_takes_more_than_is_left(void **state)
{
    (void)state;
    static const int64_t lefts[] = {-5000, 0, 1, 2, 10, 100, 1000, 60000, 10000000000};
    for (unsigned i = 0; i < sizeof lefts / sizeof *lefts; i++) {
        for (unsigned empties = 0; empties <= 64; empties++) {
            for (int64_t more = 0; more <= 100000; more = more * 10 + 100) {
                const int64_t left = lefts[i];
                assert_in_range(of(left, more, 0, empties), 1, left < 1 ? 1 : (uint64_t)left);
                const int64_t all = left + more;
                assert_in_range(of(left, 0, more, empties), 1, all < 1 ? 1 : (uint64_t)all);
            }
        }
    }
}

static void a_whole_game_fits_in_its_time(void **state)
{
    (void)state;
    for (int64_t game_ms = 100; game_ms <= 10000000; game_ms *= 10) {
        for (unsigned first = 59; first <= 60; first++) {
            int64_t left_ms = game_ms;
            for (unsigned empties = first; empties >= 1; empties = empties > 2 ? empties - 2 : 0) {
                left_ms -= of(left_ms, 0, 0, empties);
                assert_true(left_ms >= 0);
            }
        }
    }
}

static void most_time_is_for_the_middle_game_and_the_first_exact_search(void **state)
{
    (void)state;
    int64_t left_ms = 600000, spent[65] = {0};
    for (unsigned empties = 60; empties >= 2; empties -= 2) {
        spent[empties] = of(left_ms, 0, 0, empties);
        left_ms -= spent[empties];
    }
    assert_true(spent[40] > spent[56]);
    assert_true(spent[22] > spent[40]);
    assert_true(spent[12] < spent[56]);
    assert_in_range(spent[60], 600000 / 60, 600000 / 20);
}

static void more_time_gives_more(void **state)
{
    (void)state;
    for (unsigned empties = 4; empties <= 60; empties++) {
        assert_true(of(100000, 0, 0, empties) > of(50000, 0, 0, empties));
        assert_true(of(50000, 1000, 0, empties) >= of(50000, 0, 0, empties));
        assert_true(of(0, 0, 10000, empties) >= 8000); /* most of the period of byo-yomi */
    }
}

static void more_time_solves_more(void **state)
{
    (void)state;
    assert_in_range(othello_clock_solvable(0), 1, 12);
    assert_in_range(othello_clock_solvable(1000), 16, 20);
    assert_int_equal(othello_clock_solvable(UINT64_MAX), 64);
    for (uint64_t ms = 1; ms < UINT64_C(1) << 40; ms *= 2) {
        assert_true(othello_clock_solvable(2 * ms) > othello_clock_solvable(ms));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_move_never_takes_more_than_is_left),
        cmocka_unit_test(a_whole_game_fits_in_its_time),
        cmocka_unit_test(most_time_is_for_the_middle_game_and_the_first_exact_search),
        cmocka_unit_test(more_time_gives_more),
        cmocka_unit_test(more_time_solves_more),
    };
    return cmocka_run_group_tests_name("cli_othello_clock", tests, NULL, NULL);
}
