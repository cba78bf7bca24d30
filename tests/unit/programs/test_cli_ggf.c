#include "tests/support/test_tt.h"

#include "worker/programs/othello/ggf.h"

#define BOARD "BO[8 ---------------------------O*------*O--------------------------- *]"
/* The example of the description of the NBoard protocol, version 2. */
#define EXAMPLE                                         \
    "(;GM[Othello]PC[NBoard]DT[2014-02-21 20:52:27 "    \
    "GMT]PB[./mEdax]PW[chris]RE[?]TI[15:00]TY[8]" BOARD \
    "B[F5]W[F6]B[D3]W[C5]B[E6]W[F7]B[E7]W[F4];)"

static struct ggf_game parsed(const char *text)
{
    struct ggf_game game;
    char why[GGF_WHY_MAX] = "";
    if (!ggf_parse(text, &game, why)) {
        fail_msg("%s: %s", text, why);
    }
    return game;
}

static void expect_refused(const char *text, const char *says)
{
    struct ggf_game game, before;
    char why[GGF_WHY_MAX] = "";
    memset(&game, 0x5a, sizeof game);
    before = game;
    if (ggf_parse(text, &game, why) || strstr(why, says) == NULL || strchr(why, '\n') != NULL) {
        fail_msg("%s: said '%s' instead of '%s'", text, why, says);
    }
    assert_memory_equal(&game, &before, sizeof game);
}

static void the_example_of_the_specification_is_read(void **state)
{
    (void)state;
    static const uint8_t moves[] = {37, 45, 19, 34, 44, 53, 52, 29};
    struct ggf_game game = parsed(EXAMPLE);
    assert_int_equal(game.moves, sizeof moves);
    assert_memory_equal(game.move, moves, sizeof moves);
    assert_true(game.is_black && game.clock[0].is_set && game.clock[1].is_set);
    assert_int_equal(game.clock[0].main_ms, 900000);
    assert_int_equal(game.board.own, UINT64_C(0x0000000810000000));
    assert_int_equal(game.board.other, UINT64_C(0x0000001008000000));
}

static void letters_blanks_and_other_tags_do_not_matter(void **state)
{
    (void)state;
    struct ggf_game game = parsed(" ( ; gm[OTHELLO] XY[a[b\"c] Ty [s8r20] " BOARD
                                  "\n b[ f5 / 1.5 / 2 ] w[d6//0.25] KB[1] B[c5/-3] ; ) ");
    assert_int_equal(game.moves, 3);
    assert_int_equal(game.used_ms[0], 2000);
    assert_int_equal(game.used_ms[1], 250);
    assert_false(game.clock[0].is_set);
    game = parsed("(;BO[8];)"); /* the usual board */
    assert_int_equal(game.board.own, UINT64_C(0x0000000810000000));
    game = parsed("(;BO[8 -------- -------- -------- ---O*--- ---*O--- -------- -------- -------- "
                  "O];)");
    assert_false(game.is_black);
    assert_int_equal(game.board.own, UINT64_C(0x0000001008000000));
}

static void clocks_have_three_parts(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool is_set;
        int64_t main_ms, increment_ms, extra_ms;
    } rows[] = {
        {"15:00", true, 900000, 0, 0},
        {"01:00/00:10/02:00", true, 60000, 10000, 120000},
        {"5", true, 300000, 0, 0},
        {"1:02:03", true, 3723000, 0, 0},
        {"0:0.5", true, 500, 0, 0},
        {"5:00//2:00", true, 300000, 0, 120000},
        {"5:00,N2/0:07,3/1:00", true, 300000, 7000, 60000},
        {"99999999999999999999999:00", true, 1000000000, 0, 0},
        {"?", false, 0, 0, 0},
        {"", false, 0, 0, 0},
        {"/1:00/1:00", false, 0, 0, 0},
    };
    for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[256];
        snprintf(text, sizeof text, "(;TW[1:00]TB[%s]" BOARD ";)", rows[i].text);
        struct ggf_clock clock = parsed(text).clock[0];
        assert_int_equal(clock.is_set, rows[i].is_set);
        assert_int_equal(clock.main_ms, rows[i].main_ms);
        assert_int_equal(clock.increment_ms, rows[i].increment_ms);
        assert_int_equal(clock.extra_ms, rows[i].extra_ms);
        assert_int_equal(parsed(text).clock[1].main_ms, 60000);
    }
}

/* Here Black can move, here nobody, here White alone. */
#define PASSES "BO[8 *O-------------------------------------------------------------- *]"
#define OVER "BO[8 **-------------------------------------------------------------- *]"
#define BLACK_PASSES "BO[8 O*-------------------------------------------------------------- *]"

static void passes_may_be_written_or_left_out(void **state)
{
    (void)state;
    struct ggf_game game = parsed("(;" BLACK_PASSES "B[PA]W[C1];)");
    assert_int_equal(game.moves, 2);
    assert_int_equal(game.move[0], GGF_PASS);
    assert_int_equal(game.move[1], 2);
    game = parsed("(;" BLACK_PASSES "W[c1];)");
    assert_int_equal(game.moves, 2);
    assert_int_equal(game.move[0], GGF_PASS);
    game = parsed("(;" BLACK_PASSES "B[pass/0/1];)");
    assert_int_equal(game.moves, 1);
    assert_int_equal(game.used_ms[0], 1000);
    expect_refused("(;" PASSES "B[PA];)", "not legal");
    expect_refused("(;" OVER "B[PA];)", "not legal");
    expect_refused("(;" BLACK_PASSES "B[c1];)", "not legal");
}

static void what_is_wrong_is_said_and_changes_nothing(void **state)
{
    (void)state;
    char longer[2048];
    expect_refused("", "begins with (;");
    expect_refused("x", "begins with (;");
    expect_refused("(;", "BO[...] is wanted");
    expect_refused("(;" BOARD, "ends with ;)");
    expect_refused("(;" BOARD "B[f5]", "ends with ;)");
    expect_refused("(;" BOARD ";", "there is ''");
    expect_refused("(;" BOARD ";)x", "there is ')x'");
    expect_refused("(;" BOARD ";)(;" BOARD ";)", "there is ')(;");
    expect_refused("(;GM[Othello];)", "no board");
    expect_refused("(;GM[Go]" BOARD ";)", "not Othello");
    expect_refused("(;TY[10]" BOARD ";)", "not Othello on 8x8");
    expect_refused("(;TY[88]" BOARD ";)", "not Othello on 8x8");
    expect_refused("(;TY[8a]" BOARD ";)", "not Othello on 8x8");
    expect_refused("(;" BOARD BOARD ";)", "two boards");
    expect_refused("(;BO[10 *];)", "size 8");
    expect_refused("(;BO[];)", "size 8");
    expect_refused("(;BO[8 *];)", "1 squares");
    expect_refused("(;BO[8 x];)", "BO: ");
    expect_refused("(;B[f5]" BOARD ";)", "before the board");
    expect_refused("(;" BOARD "B[f5", "B[ has no end");
    expect_refused("(;" BOARD "B f5];)", "is wanted at 'B f5");
    expect_refused("(;" BOARD "B[i5];)", "no move");
    expect_refused("(;" BOARD "B[f55];)", "no move");
    expect_refused("(;" BOARD "B[];)", "no move");
    expect_refused("(;" BOARD "W[f5];)", "move 1, W[f5], is not legal");
    expect_refused("(;" BOARD "B[f5]B[f6];)", "move 2, B[f6], is not legal");
    expect_refused("(;" BOARD "B[a1];)", "move 1, B[a1], is not legal");
    expect_refused("(;" BOARD "B[d4];)", "not legal");
    snprintf(longer, sizeof longer, "(;" BOARD "B[f5%*s];)", 1100, "");
    expect_refused(longer, "longer than 1023 bytes");
    snprintf(longer, sizeof longer, "(;%0*d[1]" BOARD ";)", 40, 0);
    expect_refused(longer, "is wanted");
}

static void moves_are_read_alone(void **state)
{
    (void)state;
    int64_t used;
    assert_int_equal(ggf_move("a1"), 0);
    assert_int_equal(ggf_move("H8"), 63);
    assert_int_equal(ggf_move("b1/"), 1);
    assert_int_equal(ggf_move("PA"), GGF_PASS);
    assert_int_equal(ggf_move("Pass "), GGF_PASS);
    assert_int_equal(ggf_move(""), -1);
    assert_int_equal(ggf_move("a"), -1);
    assert_int_equal(ggf_move("a9"), -1);
    assert_int_equal(ggf_move("a12"), -1);
    assert_int_equal(ggf_move("pas"), -1);
    assert_int_equal(ggf_move("passe"), -1);
    assert_int_equal(ggf_move_and_time("d3/-1.2/0.5", &used), 19);
    assert_int_equal(used, 500);
    assert_int_equal(ggf_move_and_time("d3//1:05", &used), 19);
    assert_int_equal(used, 65000);
    assert_int_equal(ggf_move_and_time("d3/1/nan", &used), 19);
    assert_int_equal(used, 0);
    assert_int_equal(ggf_move_and_time("d3/1/-5", &used), 19);
    assert_int_equal(used, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_example_of_the_specification_is_read),
        cmocka_unit_test(letters_blanks_and_other_tags_do_not_matter),
        cmocka_unit_test(clocks_have_three_parts),
        cmocka_unit_test(passes_may_be_written_or_left_out),
        cmocka_unit_test(what_is_wrong_is_said_and_changes_nothing),
        cmocka_unit_test(moves_are_read_alone),
    };
    return cmocka_run_group_tests_name("cli_ggf", tests, NULL, NULL);
}
