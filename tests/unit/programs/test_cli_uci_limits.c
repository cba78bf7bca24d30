#include "tests/support/test_tt.h"

#include "common/memory.h"
#include "worker/games/games.h"
#include "worker/programs/cli.h"
#include "worker/programs/uci/uci_search.h"
#include "worker/search/search.h"

static struct uci_go go; /* of the last command */

static struct uci_limits read_limits(const char *words, bool black)
{
    assert_true(uci_go_read(words, &go));
    const struct uci_limits limits = uci_limits_of(&go, black, UCI_OVERHEAD_MS);
    assert_in_range(limits.depth, 1, SEARCH_DEPTH_MAX);
    return limits;
}

static void expect(const char *words, unsigned depth, uint32_t time_ms, uint64_t nodes,
                   bool infinite)
{
    struct uci_limits limits = read_limits(words, false);
    assert_int_equal(limits.depth, depth);
    assert_int_equal(limits.time_ms, time_ms);
    assert_int_equal(limits.nodes, nodes);
    assert_int_equal(go.infinite, infinite);
}

static void nothing_said_is_no_limit(void **state)
{
    (void)state;
    expect("", SEARCH_DEPTH_MAX, 0, 0, false);
    expect("   \t ", SEARCH_DEPTH_MAX, 0, 0, false);
}

static void depth_nodes_and_movetime_are_limits(void **state)
{
    (void)state;
    expect("depth 7", 7, 0, 0, false);
    expect("nodes 123456789012", SEARCH_DEPTH_MAX, 0, UINT64_C(123456789012), false);
    expect("depth 7\tnodes 5", 7, 0, 5, false);
    struct uci_limits limits = read_limits("movetime 1000", false);
    assert_in_range(limits.time_ms, 950, 1000);
    assert_in_range(limits.spare_us, 5000, 10000);
    for (unsigned ms = 1; ms <= 100; ms++) {
        char words[32];
        snprintf(words, sizeof words, "movetime %u", ms);
        limits = read_limits(words, false);
        assert_int_equal(limits.time_ms, ms);
        assert_in_range(limits.spare_us, 500, ms * 1000 - 300); /* never late, and never no time */
    }
}

static void infinite_and_ponder_wait_for_stop(void **state)
{
    (void)state;
    expect("infinite", SEARCH_DEPTH_MAX, 0, 0, true);
    struct uci_limits limits = read_limits("ponder wtime 10000 btime 10000", false);
    assert_true(go.ponder && !go.infinite);
    assert_true(limits.time_ms > 0); /* from ponderhit on */
    expect("infinite depth 3", 3, 0, 0, true);
}

static void nonsense_is_no_limit(void **state)
{
    (void)state;
    expect("depth 0", 1, 0, 0, false); /* a bad value counts as 1 */
    expect("depth -5", 1, 0, 0, false);
    expect("depth 100000", SEARCH_DEPTH_MAX, 0, 0, false);
    expect("depth 4294967299", SEARCH_DEPTH_MAX, 0, 0, false);
    expect("depth", 1, 0, 0, false);
    expect("depth x", 1, 0, 0, false);
    expect("mate 2", 4, 0, 0, false);
    expect("mate 60", SEARCH_DEPTH_MAX, 0, 0, false);
    assert_int_equal(read_limits("mate 60", false).mate, 60);
    assert_int_equal(read_limits("mate 5000000000", false).mate, UINT32_MAX);
    expect("nodes -1", SEARCH_DEPTH_MAX, 0, 0, false);
    expect("movetime -1", SEARCH_DEPTH_MAX, 1, 0, false);
}

static void unknown_words_are_passed_over(void **state)
{
    (void)state;
    expect("Depth 5", SEARCH_DEPTH_MAX, 0, 0, false);
}

static void searchmoves_end_with_the_first_other_word(void **state)
{
    (void)state;
    struct uci_limits limits = read_limits("searchmoves e2e4 a7a8q depth 5 d2d4 mate 3", false);
    assert_int_equal(limits.depth, 5);
    assert_int_equal(limits.mate, 3);
    assert_string_equal(go.moves, " e2e4 a7a8q ");
    (void)read_limits("searchmoves e2e4 rubbish ponder infinite", false);
    assert_true(go.ponder && go.infinite);
    assert_string_equal(go.moves, " e2e4 rubbish ");
    (void)read_limits("depth 5 searchmoves", false);
    assert_string_equal(go.moves, "");
    char many[3000] = "searchmoves";
    for (unsigned i = 0; i < 500; i++) {
        strcat(many, " a2a3");
    }
    assert_false(uci_go_read(many, &go));
    assert_true(strlen(go.moves) > UCI_MOVES_MAX - 8);
}

static void each_side_has_its_own_clock(void **state)
{
    (void)state;
    const char *words = "wtime 60000 btime 6000 winc 0 binc 0";
    assert_true(read_limits(words, false).time_ms > 5 * read_limits(words, true).time_ms);
    assert_int_equal(read_limits("wtime 60000", true).time_ms, 0); /* the other's clock alone */
}

static void movetime_goes_before_the_clock(void **state)
{
    (void)state;
    assert_in_range(read_limits("wtime 60000 movetime 100", false).time_ms, 50, 100);
}

static void a_share_never_takes_the_whole_clock(void **state)
{
    (void)state;
    static const int64_t clocks[] = {1, 20, 31, 50, 100, 1000, 60000, 3600000, 400000000};
    static const int64_t increments[] = {0, 10, 1000, 100000};
    static const int64_t moves[] = {0, 1, 2, 40, 1000};
    for (unsigned i = 0; i < 9 * 4 * 5; i++) {
        char words[128];
        long long clock = clocks[i % 9];
        snprintf(words, sizeof words, "wtime %lld winc %lld movestogo %lld", clock,
                 (long long)increments[i / 9 % 4], (long long)moves[i / 36]);
        uint32_t time_ms = read_limits(words, false).time_ms;
        assert_in_range(time_ms, 1, clock > 1 ? clock - clock / 4 : 1);
    }
}

/* Sides that move at once get 10 ms a move and spend what they plan and 2 ms more. */
static void a_long_game_keeps_more_in_reserve_than_the_overhead(void **state)
{
    (void)state;
    int64_t left_us = 1000000;
    for (unsigned move = 0; move < 300; move++) {
        char words[64];
        snprintf(words, sizeof words, "wtime %lld winc 10", (long long)(left_us / 1000));
        left_us -= (read_limits(words, false).time_ms + 2) * INT64_C(1000);
        assert_true(left_us >= UCI_OVERHEAD_MS * 3000);
        left_us += 10000;
    }
}

static void more_time_is_given_with_more_clock_increment_or_fewer_moves(void **state)
{
    (void)state;
    uint32_t base = read_limits("wtime 60000", false).time_ms;
    assert_in_range(base, 1000, 4000);
    assert_true(read_limits("wtime 120000", false).time_ms > base);
    assert_true(read_limits("wtime 60000 winc 1000", false).time_ms > base);
    assert_true(read_limits("wtime 60000 movestogo 5", false).time_ms > base);
    assert_true(read_limits("wtime 60000 movestogo 5", false).time_ms <
                read_limits("wtime 60000 movestogo 1", false).time_ms);
}

/* Front-ends send what is left even when it is less than nothing. */
static void a_clock_that_has_run_out_is_a_limit_too(void **state)
{
    (void)state;
    assert_int_equal(read_limits("wtime 0 btime 0", false).time_ms, 1);
    assert_int_equal(read_limits("wtime -50 btime 9000", false).time_ms, 1);
    assert_int_equal(read_limits("wtime 9000 btime -1 binc 10", true).time_ms, 1);
}

static void numbers_beyond_all_bounds_do_no_harm(void **state)
{
    (void)state;
    static const char *const huge[] = {"9223372036854775807", "-9223372036854775808",
                                       "99999999999999999999999", "4294967296", "-4294967296"};
    for (unsigned i = 0; i < 5 * 5 * 5; i++) {
        char words[256];
        snprintf(words, sizeof words, "wtime %s winc %s movestogo %s", huge[i % 5], huge[i / 5 % 5],
                 huge[i / 25]);
        assert_true(read_limits(words, false).time_ms >= 1);
    }
    for (unsigned i = 0; i < 5; i++) {
        char words[256];
        snprintf(words, sizeof words, "movetime %s nodes %s depth %s", huge[i], huge[i], huge[i]);
        struct uci_limits limits = read_limits(words, false);
        assert_true(huge[i][0] == '-' ? limits.time_ms == 1 : limits.time_ms > 1000000);
        assert_true(huge[i][0] == '-' ? limits.nodes == 0 : limits.nodes >= UINT32_MAX);
        assert_int_equal(limits.depth, huge[i][0] == '-' ? 1 : SEARCH_DEPTH_MAX);
    }
}

/* Beside the table; what other processes take meanwhile is less than these differences. */
static void what_searchers_keep_is_part_of_the_memory(void **state)
{
    (void)state;
    enum { MANY = 256, ROOM_MIB = 512 };
    char why[256] = "";
    const uint64_t most_mib = memory_for_tables(1) >> 20;
    if (most_mib <= ROOM_MIB) {
        skip();
    }
    const uint64_t hash_mib = most_mib - ROOM_MIB;
    const struct game *chess = games_by_name("chess"), *othello = games_by_name("othello");
    assert_int_equal(cli_check_memory(hash_mib, chess, 1, why, sizeof why), ERR_OK);
    assert_int_equal(cli_check_memory(hash_mib, othello, MANY, why, sizeof why), ERR_OK);
    assert_int_equal(cli_check_memory(hash_mib, chess, MANY, why, sizeof why), ERR_NOMEM);
    assert_non_null(strstr(why, "that the program takes besides"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_said_is_no_limit),
        cmocka_unit_test(depth_nodes_and_movetime_are_limits),
        cmocka_unit_test(infinite_and_ponder_wait_for_stop),
        cmocka_unit_test(nonsense_is_no_limit),
        cmocka_unit_test(unknown_words_are_passed_over),
        cmocka_unit_test(searchmoves_end_with_the_first_other_word),
        cmocka_unit_test(each_side_has_its_own_clock),
        cmocka_unit_test(movetime_goes_before_the_clock),
        cmocka_unit_test(a_share_never_takes_the_whole_clock),
        cmocka_unit_test(a_long_game_keeps_more_in_reserve_than_the_overhead),
        cmocka_unit_test(more_time_is_given_with_more_clock_increment_or_fewer_moves),
        cmocka_unit_test(a_clock_that_has_run_out_is_a_limit_too),
        cmocka_unit_test(numbers_beyond_all_bounds_do_no_harm),
        cmocka_unit_test(what_searchers_keep_is_part_of_the_memory),
    };
    return cmocka_run_group_tests_name("cli_uci_limits", tests, NULL, NULL);
}
