#include "tests/support/test_tt.h"

#include "worker/games/games.h"
#include "worker/programs/othello/scored.h"
#include "worker/programs/suite.h"

#include <unistd.h>

/* A file with this text; the caller unlinks it. */
static void write_file(char *path, const char *text)
{
    strcpy(path, "/tmp/abdada-suite-XXXXXX");
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
}

static enum err read_text(struct suite *suite, const char *text, char *why, size_t why_size)
{
    char path[64];
    write_file(path, text);
    enum err err = suite_read(suite, path, SUITE_EPD, 0, why, why_size);
    unlink(path);
    return err;
}

static struct suite read_good(const char *text)
{
    struct suite suite = {0};
    char why[256] = "";
    assert_int_equal(read_text(&suite, text, why, sizeof why), ERR_OK);
    assert_string_equal(why, "");
    return suite;
}

#define KING "8/8/8/4k3/8/4K3/4P3/8 w - -"

static void four_fields_are_a_position(void **state)
{
    (void)state;
    struct suite suite = read_good(KING " bm Kd3; id \"one\";\n");
    assert_int_equal(suite.count, 1);
    assert_string_equal(suite.at[0].position, KING);
    assert_string_equal(suite.at[0].best, "Kd3");
    assert_string_equal(suite.at[0].avoid, "");
    assert_string_equal(suite.at[0].id, "one");
    assert_int_equal(suite.at[0].line, 1);
    suite_close(&suite);
}

static void the_fourth_field_is_missing_only_before_a_known_operation(void **state)
{
    (void)state;
    const struct game *chess = games_by_name("chess");
    static const char *const rest[] = {"bm Kd3;", "v0 12;",     "draw_reject;", ";",
                                       "",        "xx bm Kd3;", "id5 1;"};
    void *position = malloc(chess->position_size);
    for (unsigned i = 0; i < sizeof rest / sizeof *rest; i++) {
        char line[128], why[128];
        snprintf(line, sizeof line, "4k3/8/8/8/8/8/8/4K3 w - %s\n", rest[i]);
        struct suite suite = read_good(line);
        assert_int_equal(suite.count, 1);
        assert_int_equal(chess->parse(position, suite.at[0].position, why, sizeof why),
                         i < 5 ? ERR_OK : ERR_SYNTAX);
        suite_close(&suite);
    }
    free(position);
}

static void six_fields_are_a_position_too(void **state)
{
    (void)state;
    struct suite suite = read_good(KING " 12 34 am e4; id \"two\";\n" KING " 0 1\n" KING "\n");
    assert_int_equal(suite.count, 3);
    assert_string_equal(suite.at[0].position, KING " 12 34");
    assert_string_equal(suite.at[0].avoid, "e4");
    assert_string_equal(suite.at[0].best, "");
    assert_string_equal(suite.at[1].position, KING " 0 1");
    assert_string_equal(suite.at[2].position, KING);
    suite_close(&suite);
}

static void operations_come_in_any_order_and_number(void **state)
{
    (void)state;
    struct suite suite =
        read_good(KING " c0 \"bm is not this\"; acd 9; id \"BK.05 a\" ; bm Nd5 a4 ;am Kf3 Kf4+;\n");
    assert_string_equal(suite.at[0].id, "BK.05 a");
    assert_string_equal(suite.at[0].best, "Nd5 a4");
    assert_string_equal(suite.at[0].avoid, "Kf3 Kf4+");
    suite_close(&suite);
}

static void bytes_that_control_a_terminal_are_no_text(void **state)
{
    (void)state;
    struct suite suite = read_good(KING " id \"a\x1b[2Jb\x7f \xc2\x9b \xc3\xa9\";\n");
    assert_string_equal(suite.at[0].id, "a?[2Jb? ?? \xc3\xa9");
    suite_close(&suite);
}

static void a_name_that_only_begins_alike_is_another(void **state)
{
    (void)state;
    struct suite suite = read_good(KING " bmx Kd3; idea \"no\"; id;\n");
    assert_string_equal(suite.at[0].best, "");
    assert_string_equal(suite.at[0].id, "1");
    suite_close(&suite);
}

static void what_has_no_id_is_numbered(void **state)
{
    (void)state;
    struct suite suite = read_good(KING "\n\n" KING " id \"x\";\n" KING " bm Kd3;\n");
    assert_string_equal(suite.at[0].id, "1");
    assert_string_equal(suite.at[1].id, "x");
    assert_string_equal(suite.at[2].id, "3");
    assert_int_equal(suite.at[2].line, 4);
    suite_close(&suite);
}

static void comments_blank_lines_and_line_ends_are_passed_over(void **state)
{
    (void)state;
    struct suite suite =
        read_good("# a comment\n% another\n\n   \t\r\n  # indented\n  " KING " bm Kd3;\r\n" KING);
    assert_int_equal(suite.count, 2);
    assert_string_equal(suite.at[0].position, KING);
    assert_string_equal(suite.at[0].best, "Kd3");
    assert_int_equal(suite.at[0].line, 6);
    assert_int_equal(suite.at[1].line, 7);
    suite_close(&suite);
}

static void blanks_after_a_position_are_ignored(void **state)
{
    (void)state;
    const struct game *chess = games_by_name("chess");
    struct suite suite = read_good(KING "   \n" KING "  ;\n" KING " 0 1  bm Kd3 ;\n");
    void *position = malloc(chess->position_size);
    for (unsigned i = 0; i < suite.count; i++) {
        char why[128];
        assert_int_equal(chess->parse(position, suite.at[i].position, why, sizeof why), ERR_OK);
    }
    free(position);
    suite_close(&suite);
}

/* The others are read all the same. */
static void a_line_that_is_no_position_is_named(void **state)
{
    (void)state;
    char text[600] = KING "\n; bm Kd3;\n# fine\n";
    size_t n = strlen(text);
    memset(text + n, '8', 300);
    strcpy(text + n + 300, "\n" KING " id \"last\";\n");
    struct suite suite = read_good(text);
    assert_int_equal(suite.count, 4);
    for (unsigned i = 1; i < 3; i++) {
        assert_true(suite.at[i].is_wrong);
        assert_int_equal(suite.at[i].line, i == 1 ? 2 : 4);
        assert_string_equal(suite.at[i].position,
                            "a position has 3 to 6 fields, then come operations");
    }
    assert_false(suite.at[0].is_wrong);
    assert_false(suite.at[3].is_wrong);
    assert_string_equal(suite.at[3].id, "last");
    suite_close(&suite);
}

static void a_semicolon_in_quotes_ends_nothing(void **state)
{
    (void)state;
    struct suite suite =
        read_good(KING " c0 \"first; bm Kd2\"; c1 \"x; id y\"; bm Kd3; id \"a; b\";\n" KING
                       " c0 5\" wide; id \"open; bm Kf3;\n" KING " bm \"Kd3\"; id plain ;\n");
    assert_string_equal(suite.at[0].best, "Kd3");
    assert_string_equal(suite.at[0].id, "a; b");
    assert_string_equal(suite.at[1].best, "Kf3");
    assert_string_equal(suite.at[1].id, "open");
    assert_string_equal(suite.at[2].best, "Kd3");
    assert_string_equal(suite.at[2].id, "plain");
    suite_close(&suite);
}

static void a_quote_within_a_word_opens_nothing(void **state)
{
    (void)state;
    struct suite suite = read_good(KING " c0 5\" nail; bm Kd3; id \"x\";\n" KING
                                        " c0 a\";\tbm Kd3; id\t\"x\";\n" KING
                                        " c0 \"a\" 5\" \"b; bm Kd2\"; bm Kd3; id \"x\";\n");
    assert_int_equal(suite.count, 3);
    for (unsigned i = 0; i < suite.count; i++) {
        assert_string_equal(suite.at[i].best, "Kd3");
        assert_string_equal(suite.at[i].id, "x");
    }
    suite_close(&suite);
}

static void counters_may_be_unknown(void **state)
{
    (void)state;
    struct suite suite =
        read_good(KING " - - bm Kd3;\n" KING " - bm Kd3;\n" KING " 5 - bm Kd3;\n" KING
                       " - - bm Kd3; hmvc 99;\n" KING " - -\n" KING " - 7 bm Kd3;\n" KING
                       " 0 1 - bm Kd3;\n" KING " 0 1 2 bm Kd3;\n" KING " \"a\" bm Kd3;\n");
    static const char *const positions[] = {KING, KING, KING " 5", KING " 99 1", KING};
    assert_int_equal(suite.count, 9);
    for (unsigned i = 0; i < 5; i++) {
        assert_false(suite.at[i].is_wrong);
        assert_string_equal(suite.at[i].position, positions[i]);
        assert_string_equal(suite.at[i].best, i < 4 ? "Kd3" : "");
    }
    for (unsigned i = 5; i < 9; i++) {
        assert_true(suite.at[i].is_wrong);
    }
    suite_close(&suite);
}

static void counters_may_be_operations(void **state)
{
    (void)state;
    struct suite suite = read_good(KING " hmvc 99; fmvn 80;\n" KING " id \"x\"; fmvn 7;\n" KING
                                        " hmvc 5;\n" KING " 3 4 hmvc 99; fmvn 80;\n");
    assert_string_equal(suite.at[0].position, KING " 99 80");
    assert_string_equal(suite.at[1].position, KING " 0 7");
    assert_string_equal(suite.at[2].position, KING " 5 1");
    assert_string_equal(suite.at[3].position, KING " 3 4");
    suite_close(&suite);
}

static void lines_end_as_any_system_ends_them(void **state)
{
    (void)state;
    static const char *const ends[] = {"\n", "\r\n", "\r"};
    for (unsigned i = 0; i < 3; i++) {
        char text[400];
        snprintf(text, sizeof text, "\xef\xbb\xbf%s id \"a\";%s%s%s id \"b\";", KING, ends[i],
                 ends[i], KING);
        struct suite suite = read_good(text);
        assert_int_equal(suite.count, 2);
        assert_string_equal(suite.at[0].position, KING);
        assert_string_equal(suite.at[1].id, "b");
        assert_int_equal(suite.at[1].line, 3);
        suite_close(&suite);
    }
}

static void a_name_is_cut_between_characters(void **state)
{
    (void)state;
    char text[300] = KING " id \"n", name[SUITE_ID_MAX + 1] = "n";
    for (unsigned i = 0; i < SUITE_ID_MAX / 2; i++) {
        strcat(text, "\xc3\xbc");
        strcat(name, i < SUITE_ID_MAX / 2 - 1 ? "\xc3\xbc" : "");
    }
    struct suite suite = read_good(strcat(text, "\";\n"));
    assert_string_equal(suite.at[0].id, name);
    suite_close(&suite);
}

static void a_file_that_is_not_there_is_named(void **state)
{
    (void)state;
    struct suite suite = {0};
    char why[256] = "";
    assert_int_equal(suite_read(&suite, "/no/such/file.epd", SUITE_EPD, 0, why, sizeof why),
                     ERR_IO);
    assert_non_null(strstr(why, "/no/such/file.epd"));
    assert_int_equal(suite.count, 0);
    suite_close(&suite);
}

static void a_directory_is_no_suite(void **state)
{
    (void)state;
    struct suite suite = {0};
    char why[256] = "";
    assert_int_equal(suite_read(&suite, "/tmp", SUITE_EPD, 0, why, sizeof why), ERR_IO);
    assert_true(why[0] != '\0');
    suite_close(&suite);
}

static void texts_longer_than_their_fields_are_cut(void **state)
{
    (void)state;
    char text[900], name[301];
    memset(name, 'n', 300);
    name[300] = '\0';
    snprintf(text, sizeof text, KING " bm %s; id \"%s\";\n", name, name);
    struct suite suite = read_good(text);
    assert_int_equal(strlen(suite.at[0].id), SUITE_ID_MAX - 1);
    assert_int_equal(strlen(suite.at[0].best), SUITE_MOVES_MAX - 1);
    suite_close(&suite);
}

static void positions_are_added_by_hand(void **state)
{
    (void)state;
    struct suite suite = {0};
    char long_text[SUITE_POSITION_MAX + 1];
    memset(long_text, 'x', sizeof long_text - 1);
    long_text[sizeof long_text - 1] = '\0';
    for (unsigned i = 0; i < 100; i++) {
        assert_int_equal(suite_add(&suite, "here", KING), ERR_OK);
    }
    assert_int_equal(suite_add(&suite, "long", long_text), ERR_SYNTAX);
    assert_int_equal(suite.count, 100);
    assert_string_equal(suite.at[99].position, KING);
    assert_int_equal(suite.at[99].line, 0);
    suite_close(&suite);
    suite_close(&suite);
}

static void suites_of_several_files_are_one(void **state)
{
    (void)state;
    struct suite suite = read_good(KING "\n");
    char why[256];
    assert_int_equal(read_text(&suite, KING "\n" KING " id \"z\";\n", why, sizeof why), ERR_OK);
    assert_int_equal(suite.count, 3);
    assert_string_equal(suite.at[1].id, "2");
    assert_string_equal(suite.at[2].id, "z");
    suite_close(&suite);
}

static void the_positions_of_bratko_and_kopec_are_read(void **state)
{
    (void)state;
    const struct game *chess = games_by_name("chess");
    struct suite suite = {0};
    char why[256] = "";
    void *position = malloc(chess->position_size);
    assert_int_equal(
        suite_read(&suite, "tests/data/chess/bratko-kopec.epd", SUITE_EPD, 0, why, sizeof why),
        ERR_OK);
    assert_int_equal(suite.count, 24);
    for (unsigned i = 0; i < suite.count; i++) {
        char id[8];
        snprintf(id, sizeof id, "BK.%02u", (i + 1) % 100);
        assert_string_equal(suite.at[i].id, id);
        assert_true(suite.at[i].best[0] != '\0');
        assert_int_equal(chess->parse(position, suite.at[i].position, why, sizeof why), ERR_OK);
    }
    assert_string_equal(suite.at[4].best, "Nd5 a4");
    free(position);
    suite_close(&suite);
}

static void boards_are_read_as_programs_write_them(void **state)
{
    (void)state;
#define BOARD "---------------------------OX------XO---------------------------"
    static const struct {
        const char *rest, *best;
        int score;
        bool is_wrong;
        const char *id; /* NULL: its number */
    } rows[] = {
        {" X; % a program 1.0", "", 0, false, "a program 1.0"},
        {" X % no end", "", 0, false, "no end"},
        {" X; f5:+12; E3:-2; % comment; D3:+64;", "f5", 12, false, "comment; D3:+64;"},
        {" X; D3:+64; # FFO #40, 20 empties", "D3", 64, false, "FFO #40"},
        {" X; -48;", "", -48, false, NULL},
        {" X; +0", "", 0, false, NULL},
        {" X; -48; % hard", "", -48, false, "hard"},
        {" X; 4; F5:+4; D3:+2;", "F5", 4, false, NULL},
        {" X;F5:4;E6 : +4 ;", "F5 E6", 4, false, NULL},
        {" X; D3:-1", "D3", -1, false, NULL},
        {" X; PA:-48;", "pass", -48, false, NULL},
        {" X; pa:-48; # pass", "pass", -48, false, "pass"},
        {" X; Pass:+0;", "pass", 0, false, NULL},
        {" X; PAX:-48;", "", 0, true, NULL},
        {" X; D9:-1;", "", 0, true, NULL},
        {" X; D3;", "", 0, true, NULL},
        {" X; D3:+65;", "", 0, true, NULL},
        {" X; D3:+6x;", "", 0, true, NULL},
        {" X; -65;", "", 0, true, NULL},
        {" X; 4 F5;", "", 0, true, NULL},
        {" X; :4;", "", 0, true, NULL},
        {" X; -;", "", 0, true, NULL},
    };
    for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[200], path[64], why[256] = "";
        struct suite suite = {0};
        snprintf(text, sizeof text, BOARD "%s\n", rows[i].rest);
        write_file(path, text);
        assert_int_equal(suite_read(&suite, path, SUITE_OBF, 0, why, sizeof why), ERR_OK);
        unlink(path);
        assert_int_equal(suite.count, 1);
        assert_int_equal(suite.at[0].is_wrong, rows[i].is_wrong);
        assert_string_equal(suite.at[0].best, rows[i].best);
        assert_int_equal(suite.at[0].score, rows[i].score);
        assert_int_equal(suite.at[0].has_score, !rows[i].is_wrong && i > 1);
        if (!rows[i].is_wrong) {
            assert_string_equal(suite.at[0].id, rows[i].id != NULL ? rows[i].id : "1");
        }
        suite_close(&suite);
    }
}

/* No Othello position has as many legal moves; each of them is one of the best. */
static void every_best_move_of_an_obf_line_is_kept(void **state)
{
    (void)state;
    char text[1024] = "---------------------------OX------XO--------------------------- X;",
         path[64];
    char best[256] = "", why[256] = "";
    for (char row = '1'; row <= '8'; row++) {
        for (char column = 'a'; column <= 'h'; column++) {
            const char square[4] = {column, row, '\0'};
            strcat(strcat(strcat(text, " "), square), ":+64;");
            strcat(strcat(best, best[0] ? " " : ""), square);
        }
    }
    struct suite suite = {0};
    write_file(path, strcat(text, "\n"));
    assert_int_equal(suite_read(&suite, path, SUITE_OBF, 0, why, sizeof why), ERR_OK);
    unlink(path);
    assert_int_equal(suite.count, 1);
    assert_string_equal(suite.at[0].best, best);
    suite_close(&suite);
}

/* Its descriptor is closed by another, so that neither sync nor close can succeed. */
static void scores_that_are_not_on_the_disk_are_a_failure(void **state)
{
    (void)state;
    char path[64], why[SCORED_WHY_MAX] = "";
    struct scored *scored;
    write_file(path, "");
    for (unsigned is_lost = 0; is_lost < 2; is_lost++) {
        const int file = dup(0); /* the number that the file will have */
        close(file);
        assert_int_equal(scored_open(&scored, path, false, why), ERR_OK);
        assert_true(!is_lost || close(file) == 0);
        assert_int_equal(scored_close(&scored, why), is_lost ? ERR_IO : ERR_OK);
        assert_string_equal(why, is_lost ? "Bad file descriptor" : "");
        assert_null(scored);
    }
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(four_fields_are_a_position),
        cmocka_unit_test(the_fourth_field_is_missing_only_before_a_known_operation),
        cmocka_unit_test(six_fields_are_a_position_too),
        cmocka_unit_test(operations_come_in_any_order_and_number),
        cmocka_unit_test(bytes_that_control_a_terminal_are_no_text),
        cmocka_unit_test(a_name_that_only_begins_alike_is_another),
        cmocka_unit_test(what_has_no_id_is_numbered),
        cmocka_unit_test(comments_blank_lines_and_line_ends_are_passed_over),
        cmocka_unit_test(blanks_after_a_position_are_ignored),
        cmocka_unit_test(a_line_that_is_no_position_is_named),
        cmocka_unit_test(a_semicolon_in_quotes_ends_nothing),
        cmocka_unit_test(a_quote_within_a_word_opens_nothing),
        cmocka_unit_test(counters_may_be_operations),
        cmocka_unit_test(counters_may_be_unknown),
        cmocka_unit_test(lines_end_as_any_system_ends_them),
        cmocka_unit_test(a_name_is_cut_between_characters),
        cmocka_unit_test(a_file_that_is_not_there_is_named),
        cmocka_unit_test(a_directory_is_no_suite),
        cmocka_unit_test(texts_longer_than_their_fields_are_cut),
        cmocka_unit_test(positions_are_added_by_hand),
        cmocka_unit_test(suites_of_several_files_are_one),
        cmocka_unit_test(the_positions_of_bratko_and_kopec_are_read),
        cmocka_unit_test(boards_are_read_as_programs_write_them),
        cmocka_unit_test(every_best_move_of_an_obf_line_is_kept),
        cmocka_unit_test(scores_that_are_not_on_the_disk_are_a_failure),
    };
    return cmocka_run_group_tests_name("cli_suite", tests, NULL, NULL);
}
