/* What is printed of a search, and in which order. */
#include "tests/support/test_tt.h"

#include "worker/games/games.h"
#include "worker/programs/uci/uci_search.h"

#include <unistd.h>

static struct job job;
static struct uci_lines lines;
static const struct engine_status early = {.time_us = 1000, .sum = {.nodes = 10}};
static const struct engine_status late = {.time_us = ENGINE_PATIENCE_US + 1, .sum = {.nodes = 20}};

static uint16_t move_of(const char *text)
{
    uint16_t move;
    assert_int_equal(job.game->parse_move(job.position, text, &move), ERR_OK);
    return move;
}

static struct search_result result_of(const char *move, int score, enum tt_bound bound)
{
    struct search_result r = {.depth = 5, .deepest = 7, .score = score, .bound = bound};
    if (move != NULL) {
        r.move = move_of(move);
        r.pv = (struct search_line){.length = 1, .move = {r.move}};
    }
    return r;
}

static int begin_capture(FILE **file)
{
    fflush(stdout);
    const int kept = dup(STDOUT_FILENO);
    *file = tmpfile();
    assert_non_null(*file);
    assert_true(dup2(fileno(*file), STDOUT_FILENO) >= 0);
    return kept;
}

static void end_capture(FILE *file, int kept, char *text, size_t size)
{
    fflush(stdout);
    assert_true(dup2(kept, STDOUT_FILENO) >= 0);
    close(kept);
    rewind(file);
    const size_t n = fread(text, 1, size - 1, file);
    text[n] = '\0';
    fclose(file);
}

static void set_up(unsigned multipv)
{
    char why[128];
    assert_int_equal(job_set_position(&job, games_by_name("chess"), "startpos", why, sizeof why),
                     ERR_OK);
    job.root_moves = 0;
    job.lines = multipv;
    lines.values.count = 0;
    uci_lines_begin(&lines, &job, multipv);
}

static void take(unsigned number, const char *move, int score)
{
    const struct search_result r = result_of(move, score, TT_EXACT);
    uci_lines_take(&lines, number, &r, &early);
}

static void a_bound_is_not_the_last_word(void **state)
{
    (void)state;
    FILE *file;
    char text[2048];
    set_up(1);
    const int kept = begin_capture(&file);
    take(0, "e2e4", 30);
    const struct search_result bound = result_of(NULL, 60, TT_LOWER);
    const struct search_result mate = result_of(NULL, GAME_MATE - 5, TT_LOWER);
    uci_lines_take_bound(&lines, &bound, &early); /* too soon to be said */
    uci_lines_take_bound(&lines, &mate, &late); /* without its line */
    uci_lines_take_bound(&lines, &bound, &late);
    const struct engine_result end = {.search = lines.line[0], .status = late};
    uci_lines_end(&lines, &end);
    uci_lines_end(&lines, &end); /* the line is the last by now */
    end_capture(file, kept, text, sizeof text);
    assert_string_equal(text, "info depth 5 seldepth 7 score cp 30 nodes 10 nps 10000 time 1 "
                              "hashfull 0 pv e2e4\n"
                              "info depth 5 seldepth 7 score cp 60 lowerbound nodes 20 nps 7 time "
                              "3000 hashfull 0\n"
                              "info depth 5 seldepth 7 score cp 30 nodes 20 nps 7 time 3000 "
                              "hashfull 0 pv e2e4\n");
    job_free(&job);
}

static void many_nodes_have_their_speed(void **state)
{
    (void)state;
    const struct engine_status week = {.time_us = UINT64_C(604800000000),
                                       .sum = {.nodes = UINT64_C(60480000000000)}};
    FILE *file;
    char text[512];
    set_up(1);
    const struct search_result r = result_of("e2e4", 30, TT_EXACT);
    const int kept = begin_capture(&file);
    uci_lines_take(&lines, 0, &r, &week);
    end_capture(file, kept, text, sizeof text);
    assert_non_null(strstr(text, "nodes 60480000000000 nps 100000000 time 604800000 "));
    job_free(&job);
}

/* The search likes the first best; of the others the table knows that they win and draw. */
static void tables_put_lines_in_order(void **state)
{
    (void)state;
    FILE *file;
    char text[2048];
    set_up(3);
    lines.values.count = 3;
    lines.values.move[0] =
        (struct chess_tablebase_move){move_of("d2d4"), CHESS_TABLEBASE_WON, 28990};
    lines.values.move[1] = (struct chess_tablebase_move){move_of("c2c4"), CHESS_TABLEBASE_DRAW, 0};
    lines.values.move[2] =
        (struct chess_tablebase_move){move_of("e2e4"), CHESS_TABLEBASE_LOST, -28000};
    const int kept = begin_capture(&file);
    const struct search_result bound = result_of(NULL, 300, TT_LOWER);
    uci_lines_take_bound(&lines, &bound, &late); /* not by what the tables say */
    take(0, "e2e4", 300);
    take(1, "c2c4", 100);
    take(2, "d2d4", -50);
    end_capture(file, kept, text, sizeof text);
    const char *first = strstr(text, "multipv 1 score cp 28990"),
               *second = strstr(text, "multipv 2 score cp 0 "),
               *third = strstr(text, "multipv 3 score cp -28000");
    assert_true(first != NULL && second > first && third > second);
    assert_null(strstr(text, "bound"));
    const struct engine_result end = {.search = result_of("e2e4", 300, TT_EXACT)};
    assert_int_equal(uci_lines_best(&lines, &end)->move, move_of("d2d4"));
    assert_int_equal(uci_root_score(&lines.values, move_of("d2d4"), GAME_MATE - 3), GAME_MATE - 3);
    assert_int_equal(uci_root_score(&lines.values, move_of("c2c4"), GAME_MATE - 3), 0);
    assert_int_equal(uci_root_score(&lines.values, move_of("a2a3"), 17), 17);
    job_free(&job);
}

static void a_mate_without_its_line_is_known_by_its_score(void **state)
{
    (void)state;
    static const struct {
        int score;
        unsigned mate, bare;
    } rows[] = {
        {GAME_MATE - 1, 1, 0},
        {GAME_MATE - 4, 2, 0},
        {GAME_MATE_MIN, 0, 0},
        {GAME_MATE_MIN - 1, 0, 1},
        {GAME_MATE_MIN - 3, 0, 2},
        {GAME_MATE_MIN - 4, 0, 2},
        {GAME_MATE_MIN - 5, 0, 3},
        {29001, 0, 500},
        {29000, 0, 0}, /* of a table */
        {900, 0, 0},
        {0, 0, 0},
        {1 - GAME_MATE_MIN, 0, 0},
        {2 - GAME_MATE, 0, 0},
    };
    for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_int_equal(uci_lines_mate(games_by_name("chess"), rows[i].score), rows[i].mate);
        assert_int_equal(uci_lines_bare_mate(games_by_name("chess"), rows[i].score), rows[i].bare);
        assert_int_equal(uci_lines_bare_mate(games_by_name("othello"), rows[i].score), 0);
    }
}

static void hosts_are_said_where_there_are_several(void **state)
{
    (void)state;
    static const struct front_host host[] = {
        {.name = "desk:1",
         .is_own = true,
         .searchers = 1,
         .sum =
             {.nodes = 5000, .asks = 40, .talked_us = 50, .bytes_sent = 300, .bytes_received = 200},
         .searched_us = 2000},
        {.name = "rack:2", .is_gone = true, .searchers = 2, .sum = {.nodes = 700, .asks = 3}},
    };
    struct engine_result result = {.status = {.time_us = 2000}, .host = host, .hosts = 1};
    char text[512];
    FILE *file;
    int kept = begin_capture(&file);
    uci_lines_hosts(&result);
    end_capture(file, kept, text, sizeof text);
    assert_string_equal(text, "");
    result.hosts = 2;
    kept = begin_capture(&file);
    uci_lines_hosts(&result);
    end_capture(file, kept, text, sizeof text);
    assert_string_equal(text, "info string host desk:1 nodes 5000 nps 2500000 talk 2.5% asks 40 "
                              "sent 300 received 200\n"
                              "info string host rack:2 nodes 700 nps 350000 asks 3 sent 0 "
                              "received 0 gone\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_bound_is_not_the_last_word),
        cmocka_unit_test(many_nodes_have_their_speed),
        cmocka_unit_test(tables_put_lines_in_order),
        cmocka_unit_test(a_mate_without_its_line_is_known_by_its_score),
        cmocka_unit_test(hosts_are_said_where_there_are_several),
    };
    return cmocka_run_group_tests_name("cli_uci_lines", tests, NULL, NULL);
}
