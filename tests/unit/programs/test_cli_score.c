/* Lines that others wrote, as players write moves. */
#include "tests/support/test_tt.h"

#include "worker/games/games.h"
#include "worker/programs/cli.h"
#include "worker/programs/score.h"

#define START "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1"

static void expect(const char *game, const char *position, const char *line, const char *expected)
{
    char text[64];
    score_text_san(games_by_name(game), position, line, text, sizeof text);
    assert_string_equal(text, expected);
}

static void a_line_is_written_as_players_do(void **state)
{
    (void)state;
    expect("chess", START, "g1f3 e7e5 f3e5 d7d6", "Nf3 e5 Nxe5 d6");
    expect("chess", "r3k2r/8/8/8/8/8/7P/R3K2R w KQkq - 0 1", "e1g1 e8c8", "O-O O-O-O");
    expect("chess", "7k/P7/8/8/8/8/8/K7 w - - 0 1", "a7a8q", "a8=Q+");
    expect("chess", START, "", "");
}

static void what_is_no_legal_move_ends_it(void **state)
{
    (void)state;
    expect("chess", START, "e2e4 e2e4 e7e5", "e4");
    expect("chess", START, "e2e4 e7e5nonsense", "e4");
    expect("chess", START, "</b> e2e4", "");
}

static void what_is_no_position_or_no_chess_has_none(void **state)
{
    (void)state;
    expect("chess", "8/8 w", "e2e4", "");
    expect("chess", "", "e2e4", "");
    expect("tree", "tree:b=4,d=4", "1 2", "");
}

static void what_does_not_fit_is_left_out(void **state)
{
    char text[9];
    (void)state;
    score_text_san(games_by_name("chess"), START, "e2e4 e7e5 g1f3", text, sizeof text);
    assert_string_equal(text, "e4 e5");
    score_text_san(games_by_name("chess"), START, "e2e4 e7e5 g1f3", text, sizeof text - 1);
    assert_string_equal(text, "e4 e5");
}

static void what_is_left_is_said_roughly(void **state)
{
    (void)state;
    static const struct {
        uint32_t seconds;
        const char *text;
    } said[] = {{0, ""},
                {1, "  about 1 s left"},
                {119, "  about 119 s left"},
                {120, "  about 2.0 minutes left"},
                {2400, "  about 40 minutes left"},
                {11520, "  about 3.2 hours left"},
                {172800, "  about 2.0 days left"},
                {UINT32_MAX, "  about 49710 days left"}};
    char text[CLI_TIME_LEFT_MAX];
    for (size_t i = 0; i < sizeof said / sizeof said[0]; i++) {
        assert_string_equal(cli_time_left(said[i].seconds, text), said[i].text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_line_is_written_as_players_do),
        cmocka_unit_test(what_is_no_legal_move_ends_it),
        cmocka_unit_test(what_is_no_position_or_no_chess_has_none),
        cmocka_unit_test(what_does_not_fit_is_left_out),
        cmocka_unit_test(what_is_left_is_said_roughly),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
