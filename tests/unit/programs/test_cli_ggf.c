#include "tests/support/test_tt.h"

#include "worker/programs/othello/othello_game.h"

#define BOARD "BO[8 ---------------------------O*------*O--------------------------- *]"
/* The example of the description of the NBoard protocol, version 2. */
#define EXAMPLE                                         \
    "(;GM[Othello]PC[NBoard]DT[2014-02-21 20:52:27 "    \
    "GMT]PB[./mEdax]PW[chris]RE[?]TI[15:00]TY[8]" BOARD \
    "B[F5]W[F6]B[D3]W[C5]B[E6]W[F7]B[E7]W[F4];)"

static struct ggf_game parsed(const char *text)
{
    struct ggf_game game;
    char why[OTHELLO_GAME_WHY_MAX] = "";
    if (!ggf_parse(text, &game, why)) {
        fail_msg("%s: %s", text, why);
    }
    return game;
}

static void expect_refused(const char *text, const char *says)
{
    struct ggf_game game, before;
    char why[OTHELLO_GAME_WHY_MAX] = "";
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
    assert_int_equal(game.game.moves, sizeof moves);
    assert_memory_equal(game.game.move, moves, sizeof moves);
    assert_true(game.game.is_black && game.clock[0].is_set && game.clock[1].is_set);
    assert_int_equal(game.clock[0].main_ms, 900000);
    assert_int_equal(game.game.board.own, UINT64_C(0x0000000810000000));
    assert_int_equal(game.game.board.other, UINT64_C(0x0000001008000000));
}

static void letters_blanks_and_other_tags_do_not_matter(void **state)
{
    (void)state;
    struct ggf_game game = parsed(" ( ; gm[OTHELLO] XY[a[b\"c] Ty [s8r20] " BOARD
                                  "\n b[ f5 / 1.5 / 2 ] w[d6//0.25] KB[1] B[c5/-3] ; ) ");
    assert_int_equal(game.game.moves, 3);
    assert_int_equal(game.used_ms[0], 2000);
    assert_int_equal(game.used_ms[1], 250);
    assert_false(game.clock[0].is_set);
    game = parsed("(;BO[8];)"); /* the usual board */
    assert_int_equal(game.game.board.own, UINT64_C(0x0000000810000000));
    game = parsed("(;BO[8 -------- -------- -------- ---O*--- ---*O--- -------- -------- -------- "
                  "O];)");
    assert_false(game.game.is_black);
    assert_int_equal(game.game.board.own, UINT64_C(0x0000001008000000));
}

static void a_backslash_makes_a_bracket_a_letter(void **state)
{
    (void)state;
    assert_int_equal(parsed("(;PB[a\\]b]PW[\\\\]" BOARD "B[f5];)").game.moves, 1);
    assert_int_equal(parsed("(;PB[\\]B[f5\\]]" BOARD ";)").game.moves, 0);
    expect_refused("(;" BOARD "B[f5\\];)", "B[ has no end");
    expect_refused("(;" BOARD "B[f5\\", "B[ has no end");
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
    assert_int_equal(game.game.moves, 2);
    assert_int_equal(game.game.move[0], OTHELLO_PASSED);
    assert_int_equal(game.game.move[1], 2);
    game = parsed("(;" BLACK_PASSES "W[c1];)");
    assert_int_equal(game.game.moves, 2);
    assert_int_equal(game.game.move[0], OTHELLO_PASSED);
    game = parsed("(;" BLACK_PASSES "B[pass/0/1];)");
    assert_int_equal(game.game.moves, 1);
    assert_int_equal(game.used_ms[0], 1000);
    expect_refused("(;" PASSES "B[PA];)", "not legal");
    expect_refused("(;" OVER "B[PA];)", "not legal");
    expect_refused("(;" BLACK_PASSES "B[c1];)", "not legal");
}

static void what_is_wrong_is_said_and_changes_nothing(void **state)
{
    (void)state;
    char longer[2048];
    expect_refused("", "starts with (;");
    expect_refused("x", "starts with (;");
    expect_refused("(;", "missing ;) at the end");
    expect_refused("(;" BOARD, "missing ;) at the end");
    expect_refused("(;" BOARD "B[f5]", "missing ;) at the end");
    expect_refused("(;" BOARD ";", "a ) is wanted, not ''");
    expect_refused("(;" BOARD ";)x", "there is 'x'");
    expect_refused("(;" BOARD ";)(;" BOARD ";)", "there is '(;");
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
    assert_int_equal(ggf_move("PA"), OTHELLO_PASSED);
    assert_int_equal(ggf_move("Pass "), OTHELLO_PASSED);
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

/* ---- files ---- */

static struct game_file opened(char *bytes, size_t size)
{
    struct game_file file;
    char why[OTHELLO_GAME_WHY_MAX] = "";
    if (!game_file_open(&file, bytes, size, why)) {
        fail_msg("%s", why);
    }
    return file;
}

/* Wants games as "moves@line", the others as "why@line". */
static void expect_games(char *bytes, size_t size, const char *const *wanted)
{
    struct game_file file = opened(bytes, size);
    struct othello_game game;
    char why[OTHELLO_GAME_WHY_MAX], found[256];
    enum game_file_answer answer;
    unsigned number = 0;
    while ((answer = game_file_next(&file, &game, why)) != GAME_FILE_END) {
        if (answer == GAME_FILE_GAME) {
            snprintf(why, sizeof why, "%u", game.moves);
        }
        snprintf(found, sizeof found, "%s@%u", why, file.line);
        assert_non_null(wanted[number]);
        assert_string_equal(found, wanted[number]);
        assert_int_equal(file.game, ++number);
    }
    assert_null(wanted[number]);
    assert_int_equal(game_file_next(&file, &game, why), GAME_FILE_END);
}

static void a_game_a_line_is_read_as_people_write_it(void **state)
{
    (void)state;
    char text[] = "\xef\xbb\xbf"
                  "f5d6c3d3c4\r\nF5 D6,C3\td3 c4 % five moves\r"
                  "# a comment\n\n  ; another\n1. f5 d6 2. c3\n"
                  "f5f6e6f4e3c5c4pa\n"
                  "f5d6zz\nf5d6\x01\x80\n\x1a\n(no game)\nf5\n1.,# f5";
    static const char *const wanted[] = {
        "5@1",
        "5@2",
        "3@6",
        "move 8, pa, is not legal there@7",
        "'zz' is not a move such as f5@8",
        "'\?\?' is not a move such as f5@9",
        "'(no game)' is not a move such as f5@11",
        "1@12",
        "there is no move on the line@13",
        NULL,
    };
    expect_games(text, sizeof text - 1, wanted);
    char nothing[] = " \r\n# f5\n";
    expect_games(nothing, sizeof nothing - 1, wanted + 9);
}

static void games_in_ggf_may_stand_together_and_be_damaged(void **state)
{
    (void)state;
    char text[] = EXAMPLE "\n2 (;BO[8]B[F5]\nW[D6];) (;" BOARD "B[f5];)\r\n"
                          "1 (;" BOARD "B[f5]W[f5]B[d6];)(;BO[8]B[f5];)\n"
                          "(;" BOARD "B[f5]W[d6\n"
                          "(;CO[(;BO[8\\];)\n\n]BO[8]B[f5]W[d6]B[c3];)\n"
                          "f5d6c3d3\n(;BO[8]";
    static const char *const wanted[] = {
        "8@1",
        "2@2",
        "1@3",
        "move 2, W[f5], is not legal there@4",
        "1@4",
        "W[ has no end@5",
        "3@6",
        "4@9",
        "missing ;) at the end of the game@10",
        NULL,
    };
    expect_games(text, sizeof text - 1, wanted);
}

static void a_damaged_game_hides_no_game_after_it(void **state)
{
    (void)state;
    char text[] = "(;BO[8]B[f5]\nf5d6c3\n\nf5 d6\r\n"
                  "(;BO[8]B[f5]W[d6\n1. f5 d6 2. c3 d3\r"
                  "(;BO[8]W[f5];) ( ;BO[8]B[f5];)\n"
                  "(;BO[8]\nB[f5]\nW[f5]\n;)\nd6c3\nF5D6";
    static const char *const wanted[] = {
        "a property such as BO[...] is wanted at 'f5d6c3\?\?f5 d6?'@1",
        "3@2",
        "2@4",
        "W[ has no end@5",
        "4@6",
        "move 1, W[f5], is not legal there@7",
        "1@7",
        "move 2, W[f5], is not legal there@8",
        "2@13",
        NULL,
    };
    expect_games(text, sizeof text - 1, wanted);
}

/* Bytes that are zero fill the ends of files that a crash has cut, and stand in UTF-16. */
static void a_text_with_zero_bytes_is_no_wthor(void **state)
{
    (void)state;
    char padded[] = "f5d6\0\0\0\0\0\0\0\0\0\0\0\0\0\0\nf5", brief[] = "f5\0\0";
    static const char *const wanted[] = {"2@1", "1@2", NULL};
    expect_games(padded, sizeof padded - 1, wanted);
    expect_games(brief, sizeof brief - 1, (const char *const[]){"1@1", NULL});
}

enum {
    WTB_HEADER = 16,
    WTB_RECORD = 68,
    WTB_GAMES = 3,
    WTB_SIZE = WTB_HEADER + WTB_GAMES * WTB_RECORD,
};

/* Three games: F5 D6 C3, nothing, F5. */
static void write_wthor(char bytes[WTB_SIZE + 1])
{
    static const char header[WTB_HEADER] = {20, 26, 11,         28, WTB_GAMES, 0, 0, 0,
                                            0,  0,  (char)0xea, 7,  8,         0, 24};
    static const char moves[] = {56, 64, 33};
    memset(bytes, 0, WTB_SIZE + 1);
    memcpy(bytes, header, sizeof header);
    memcpy(bytes + WTB_HEADER + 8, moves, sizeof moves);
    bytes[WTB_HEADER + 2 * WTB_RECORD + 8] = 56;
}

static void wthor_is_read_to_the_first_damage_of_its_size(void **state)
{
    (void)state;
    char bytes[WTB_SIZE + 1];
    static const char *const whole[] = {"3@1", "0@2", "1@3", NULL};
    static const char *const cut[] = {
        "3@1", "0@2", "the file ends after 67 of its 68 bytes; the header says 3 games@3", NULL};
    static const char *const empty[] = {
        "the file ends after 0 of its 68 bytes; the header says 3 games@1", NULL};
    static const char *const huge[] = {
        "3@1", "0@2", "1@3",
        "the file ends after 0 of its 68 bytes; the header says 4294967295 games@4", NULL};
    static const char *const more[] = {"3@1", "0@2",
                                       "68 bytes follow, but the header says 2 games@3", NULL};
    static const char *const wrong[] = {"move 2, 99, is no square (10 x row + column)@1",
                                        "move 2, 56, comes after the end of the game@2",
                                        "move 1, a1, is not legal there@3", NULL};
    write_wthor(bytes);
    expect_games(bytes, WTB_SIZE, whole);
    expect_games(bytes, WTB_SIZE - 1, cut);
    expect_games(bytes, WTB_HEADER, empty);
    memset(bytes + 4, 0xff, 4);
    expect_games(bytes, WTB_SIZE, huge);
    write_wthor(bytes);
    bytes[4] = 2;
    expect_games(bytes, WTB_SIZE, more);
    write_wthor(bytes);
    bytes[WTB_HEADER + 9] = 99;
    bytes[WTB_HEADER + WTB_RECORD + 9] = 56;
    bytes[WTB_HEADER + 2 * WTB_RECORD + 8] = 11;
    expect_games(bytes, WTB_SIZE, wrong);
}

static void a_wthor_file_of_another_kind_is_refused(void **state)
{
    (void)state;
    static const struct {
        size_t size, at;
        char byte;
        const char *says;
    } rows[] = {
        {15, 0, 20, "not the 16 bytes of its header"},
        {WTB_SIZE, 12, 10, "boards of size 10, not 8"},
        {WTB_SIZE, 4, 0, "without games"},
    };
    for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
        char bytes[WTB_SIZE + 1], why[OTHELLO_GAME_WHY_MAX] = "";
        struct game_file file;
        write_wthor(bytes);
        bytes[rows[i].at] = rows[i].byte;
        assert_false(game_file_open(&file, bytes, rows[i].size, why));
        if (strstr(why, rows[i].says) == NULL) {
            fail_msg("said '%s' instead of '%s'", why, rows[i].says);
        }
    }
}

static void a_position_is_that_of_the_side_that_can_move(void **state)
{
    (void)state;
    static const char *const texts[] = {"(;" BLACK_PASSES "B[PA]W[C1];)",
                                        "(;" BLACK_PASSES "W[C1];)", "(;" BLACK_PASSES "B[PA];)",
                                        "(;" BLACK_PASSES ";)"};
    for (unsigned i = 0; i < sizeof texts / sizeof *texts; i++) {
        const struct othello_game game = parsed(texts[i]).game;
        struct othello_board board = {0, 0};
        bool is_black = true;
        assert_false(othello_game_at(&game, 63, &board, &is_black));
        assert_true(othello_game_at(&game, 62, &board, &is_black));
        assert_false(is_black);
        assert_int_equal(board.own, 1);
        assert_int_equal(othello_game_at(&game, 61, &board, &is_black), i < 2);
        assert_int_equal(is_black, i < 2); /* to move where the game is over */
        assert_false(othello_game_at(&game, 60, &board, &is_black));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_example_of_the_specification_is_read),
        cmocka_unit_test(letters_blanks_and_other_tags_do_not_matter),
        cmocka_unit_test(a_backslash_makes_a_bracket_a_letter),
        cmocka_unit_test(clocks_have_three_parts),
        cmocka_unit_test(passes_may_be_written_or_left_out),
        cmocka_unit_test(what_is_wrong_is_said_and_changes_nothing),
        cmocka_unit_test(moves_are_read_alone),
        cmocka_unit_test(a_game_a_line_is_read_as_people_write_it),
        cmocka_unit_test(games_in_ggf_may_stand_together_and_be_damaged),
        cmocka_unit_test(a_damaged_game_hides_no_game_after_it),
        cmocka_unit_test(a_text_with_zero_bytes_is_no_wthor),
        cmocka_unit_test(wthor_is_read_to_the_first_damage_of_its_size),
        cmocka_unit_test(a_wthor_file_of_another_kind_is_refused),
        cmocka_unit_test(a_position_is_that_of_the_side_that_can_move),
    };
    return cmocka_run_group_tests_name("cli_ggf", tests, NULL, NULL);
}
