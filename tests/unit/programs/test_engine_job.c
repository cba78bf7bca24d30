#include "tests/support/test_tt.h"

#include "worker/programs/engine/engine_job.h"
#include "worker/programs/engine/engine_limits.h"
#include "worker/programs/engine/engine_rules.h"
#include "worker/programs/engine/engine_vote.h"

/* ---- what a worker takes from a job ---- */

static struct uci_engine *engine(void)
{
    static const char *const line[] = {
        "option name Threads type spin default 1 min 1 max 8",
        "option name Skill Level type spin default 20 min 0 max 20",
        "option name Style type combo default Solid var Solid var Risky",
        "option name UCI_Chess960 type check default false",
        "option name EvalFile type string default small.nnue",
        "option name UCI_Variant type string default chess",
        "option name Clear Hash type button",
    };
    static struct uci_greeting is;
    static struct uci_engine e = {.is = &is};
    for (is.options = 0; is.options < sizeof line / sizeof line[0]; is.options++) {
        assert_true(uci_option_read(line[is.options], &is.option[is.options]));
    }
    snprintf(is.name, sizeof is.name, "Fake 1");
    return &e;
}

static void expect_go(const char *search, const char *go)
{
    char out[PROTO_TEXT_MAX + 1], why[ENGINE_WHY_TEXT_MAX];
    const bool ok = engine_job_go(search, out, why);
    if (ok != (go != NULL) || (ok && strcmp(out, go) != 0)) {
        fail_msg("%s: %s", search, ok ? out : why);
    }
}

static void a_job_says_limits_and_moves_alone(void **state)
{
    (void)state;
    expect_go("go infinite", "go infinite");
    expect_go("go depth 12; Skill Level=3", "go depth 12");
    expect_go("go infinite depth 3", NULL);
    expect_go("go mate 2 nodes 5", NULL);
    expect_go("go nodes 5  mate 2", NULL);
    expect_go("go wtime 5 infinite", NULL);
    expect_go("go nodes 5 mate 2 searchmoves e2e4 P@e5 b7b8=Q",
              "go nodes 5 mate 2 searchmoves e2e4 P@e5 b7b8=Q");
    expect_go("go depth", NULL);
    expect_go("go depth x", NULL);
    expect_go("go depth -1", NULL);
    expect_go("go movetime 100", NULL);
    expect_go("go perft 9", NULL);
    expect_go("go infinite searchmoves quit\\", NULL);
    expect_go("goinfinite", NULL);
    expect_go("setoption name x", NULL);
    expect_go("", NULL);
}

static void only_one_line_of_printable_text_gets_to_an_engine(void **state)
{
    (void)state;
    assert_true(engine_job_is_clean("startpos moves e2e4", "go infinite"));
    assert_true(engine_job_is_clean("fen 8/8/8/8/8/8/8/8 w - - 0 1", "go infinite"));
    assert_false(engine_job_is_clean("startpos\nsetoption name x", "go infinite"));
    assert_false(engine_job_is_clean("startpos", "go infinite; UCI_Variant=a\nquit"));
    assert_false(engine_job_is_clean("startpos\xc3\xa9", "go infinite"));
    assert_false(engine_job_is_clean("other", "go infinite"));
    assert_false(engine_job_is_clean("", "go infinite"));
}

static void expect_settings(const char *search, const struct engine_settings *owners,
                            const char *why)
{
    static struct engine_settings out;
    char said[ENGINE_WHY_TEXT_MAX] = "";
    const bool ok = engine_job_settings(search, engine(), owners, &out, said);
    if (ok != (why == NULL) || (why != NULL && strstr(said, why) == NULL)) {
        fail_msg("%s: said '%s' in place of '%s'", search, said, why);
    }
    if (ok) {
        assert_null(engine_settings_get(&out, "EvalFile"));
        assert_null(engine_settings_get(&out, "Threads"));
        assert_null(engine_settings_get(&out, "Clear Hash"));
    }
}

static void options_that_a_job_may_not_set_must_agree(void **state)
{
    (void)state;
    static struct engine_settings none, has;
    expect_settings("go infinite", &none, NULL);
    expect_settings("go infinite; Skill Level=3; Style=Risky; UCI_Variant=koth", &none, NULL);
    expect_settings("go infinite; ucinewgame=7; EvalFile=small.nnue", &none, NULL);
    expect_settings("go infinite; EvalFile=big.nnue", &none,
                    "EvalFile is 'small.nnue', not 'big.nnue'");
    expect_settings("go infinite; Skill Level=21", &none,
                    "Skill Level is 'none of these', not '21'");
    expect_settings("go infinite; Style=", &none, "Style");
    expect_settings("go infinite; Other=1", &none, "no option 'Other'");
    assert_true(engine_settings_put(&has, "evalfile", "/x/big.nnue"));
    assert_true(engine_settings_put(&has, "Style", "Risky"));
    expect_settings("go infinite; EvalFile=big.nnue; Style=Risky", &has, NULL);
    expect_settings("go infinite; EvalFile=big.nnue", &has, "Style is 'Risky', not 'Solid'");
    expect_settings("go infinite; Style=Risky", &has,
                    "EvalFile is '/x/big.nnue', not 'small.nnue'");
}

static void what_the_front_end_set_gets_into_the_job(void **state)
{
    (void)state;
    static struct engine_settings set;
    static struct engine_job job;
    assert_true(engine_settings_put(&set, "skill level", "3"));
    assert_true(engine_settings_put(&set, "Skill Level", "4"));
    assert_true(engine_settings_put(&set, "Style", "Solid"));
    assert_true(engine_settings_put(&set, "EvalFile", "/home/me/secret/big.nnue"));
    assert_true(engine_settings_put(&set, "Threads", "8"));
    assert_true(engine_settings_put(&set, "Unknown", "8"));
    assert_true(engine_job_write(&job, engine(), &set, "go depth 3", 0x7f));
    assert_string_equal(job.game, "uci:Fake 1");
    assert_string_equal(job.search, "go depth 3; Skill Level=4; EvalFile=big.nnue; ucinewgame=7f");
    assert_int_equal(engine_job_new_game(job.search), 0x7f);
    expect_settings(job.search, &set, NULL);
    char many[PROTO_TEXT_MAX + 1];
    memset(many, 'x', sizeof many - 1);
    many[sizeof many - 1] = '\0';
    assert_false(engine_job_write(&job, engine(), &set, many, 1));
}

/* ---- limits ---- */

static void others_get_limits_without_clocks(void **state)
{
    (void)state;
    struct engine_limits l;
    char rest[256];
    assert_true(engine_limits_read("wtime 1000 btime 2000 winc 10", true, 5000000, &l));
    assert_string_equal(l.others, "go infinite");
    assert_true(l.has_clock && l.answer_us > 5000000 + 1500000 && l.answer_us < 5000000 + 2000000);
    assert_true(l.stop_us < l.answer_us && l.think_us > 0 && l.think_us < 2000000);
    engine_limits_rest(&l, "wtime 1000 btime 2000 winc 10", true, 5500000, rest, sizeof rest);
    assert_string_equal(rest, "go wtime 1000 btime 1500 winc 10");

    assert_true(engine_limits_read("depth 9 searchmoves e2e4 d2d4 nodes 70", false, 0, &l));
    assert_string_equal(l.others, "go depth 9 nodes 70 searchmoves e2e4 d2d4");
    assert_true(l.nodes == 70 && !l.has_clock && l.answer_us == 0 && l.depth == 9);

    assert_true(engine_limits_read("ponder movetime 100", false, 1000000, &l));
    assert_true(l.go.ponder && l.answer_us == 0);
    engine_limits_hit(&l, false, 9000000);
    assert_true(!l.go.ponder && l.answer_us >= 9100000 && l.answer_us < 9400000);
    engine_limits_rest(&l, "ponder movetime 100", false, 9200000, rest, sizeof rest);
    assert_string_equal(rest, "go movetime 1");

    assert_true(engine_limits_read("infinite wtime 5", false, 1, &l));
    assert_true(l.go.infinite && l.answer_us == 0);
    assert_true(engine_limits_read("movetime 99999999999999999999", false, 1, &l));
    assert_true(l.answer_us > 1);
    assert_true(engine_limits_read("wtime -100 depth", false, 1, &l));
    assert_true(l.has_clock && l.answer_us > 1 && l.answer_us < 50000);
    assert_true(engine_limits_read("movetime -1", false, 1, &l));
    assert_true(l.has_clock && l.answer_us < 100000);
    static const char *const huge[] = {"wtime 9223372036854775807", "wtime 20496382304121725",
                                       "movetime 9223372036854775807"};
    for (unsigned i = 0; i < sizeof huge / sizeof huge[0]; i++) { /* years fit into a job's time */
        assert_true(engine_limits_read(huge[i], false, 1, &l));
        assert_in_range(l.answer_us / 1000, 1000000, UINT32_MAX / 2);
        assert_true(l.stop_us < l.answer_us && l.stop_us > 1000000000);
    }
    assert_true(engine_limits_read("infinite nodes 9223372036854775807", false, 1, &l));
    assert_string_equal(l.others, "go nodes 1152921504606846975");
}

/* ---- positions and moves ---- */

static void long_games_are_written_shorter(void **state)
{
    (void)state;
    static char position[8192], out[PROTO_TEXT_MAX + 1];
    struct engine_rules whole = {.are_known = false}, cut = {.are_known = false};
    size_t used = (size_t)snprintf(position, sizeof position, "startpos moves e2e4 e7e5");
    for (unsigned i = 0; i < 150; i++) {
        used += (size_t)snprintf(position + used, sizeof position - used, " g1f3 g8f6 f3g1 f6g8");
    }
    assert_true(engine_rules_shorten(position, true, false, out));
    assert_true(strlen(out) <= PROTO_TEXT_MAX && strlen(out) > PROTO_TEXT_MAX - 160);
    engine_rules_set(&whole, position, true, false);
    engine_rules_set(&cut, out, true, false);
    assert_true(whole.are_known && cut.are_known);
    assert_string_equal(whole.job.game->name, "chess");
    char one[GAME_TEXT_MAX], other[GAME_TEXT_MAX];
    whole.job.game->format(whole.job.position, one);
    cut.job.game->format(cut.job.position, other);
    assert_string_equal(one, other);
    assert_false(engine_rules_shorten(position, false, false, out));
    strcat(position, " e1e8");
    engine_rules_set(&whole, position, true, false);
    assert_false(whole.are_known);
    engine_rules_free(&whole);
    engine_rules_free(&cut);
    assert_true(engine_rules_shorten("fen anything at all", false, false, out));
    assert_string_equal(out, "fen anything at all");
}

static void illegal_moves_of_others_are_not_played(void **state)
{
    (void)state;
    struct engine_rules rules = {.are_known = false};
    char line[64] = "e2e4 e7e5 g1f3 e5e4 b8c6", move[GAME_MOVE_TEXT_MAX];
    engine_rules_set(&rules, "startpos moves", true, false);
    assert_true(engine_rules_allow(&rules, "e2e4", true));
    assert_false(engine_rules_allow(&rules, "e2e5", true) ||
                 engine_rules_allow(&rules, "e2e4q", true) ||
                 engine_rules_allow(&rules, "", true) || engine_rules_allow(&rules, "0000", true));
    assert_true(engine_rules_any(&rules, move) && engine_rules_allow(&rules, move, true));
    engine_rules_cut(&rules, line);
    assert_string_equal(line, "e2e4 e7e5 g1f3");
    engine_rules_set(&rules, "fen 7k/5Q2/5K2/8/8/8/8/8 b - - 0 1", true, false);
    assert_true(rules.are_known);
    assert_false(engine_rules_any(&rules, move));
    engine_rules_set(&rules,
                     "fen bqnb1rkr/pp3ppp/3ppn2/2p5/5P2/P2P4/NPP1P1PP/BQ1BNRKR w HFhf - 2 9", true,
                     true);
    assert_true(rules.are_known && engine_rules_allow(&rules, "a2c3", true));
    engine_rules_set(&rules, "startpos", false, false);
    assert_false(rules.are_known || engine_rules_allow(&rules, "e2e4", true) ||
                 engine_rules_any(&rules, move));
    snprintf(line, sizeof line, "P@e4 e7e5");
    engine_rules_cut(&rules, line);
    assert_string_equal(line, "P@e4");
    engine_rules_free(&rules);
    assert_true(engine_rules_is_black("startpos moves e2e4"));
    assert_false(engine_rules_is_black("startpos"));
    assert_true(engine_rules_is_black("fen 8/8/8/8/8/8/8/8 b - - 0 1"));
    assert_false(engine_rules_is_black("fen 8/8/8/8/8/8/8/8 b - - 0 1 moves a7a6"));
}

/* ---- the vote ---- */

static struct engine_voice voice(const char *move, unsigned depth, int score)
{
    struct engine_voice v = {.depth = depth, .score = score};
    snprintf(v.move, sizeof v.move, "%s", move);
    return v;
}

static void depth_score_and_agreement_decide(void **state)
{
    (void)state;
    struct engine_voice v[4] = {voice("e2e4", 10, 20), voice("d2d4", 10, 20),
                                voice("c2c4", 10, 20)};
    assert_int_equal(engine_vote(v, 3), 0); /* the own among equals */
    v[2] = voice("d2d4", 9, 20);
    assert_int_equal(engine_vote(v, 3), 1); /* two of one mind */
    v[2] = voice("c2c4", 11, 20);
    assert_int_equal(engine_vote(v, 3), 2); /* the deeper one */
    v[2] = voice("c2c4", 10, 21);
    assert_int_equal(engine_vote(v, 3), 2); /* the better one */
    v[2] = voice("c2c4", 1, 200);
    assert_int_equal(engine_vote(v, 3), 2);
    v[2] = voice("c2c4", 1, 30);
    assert_int_equal(engine_vote(v, 3), 0);
}

static void mates_come_first(void **state)
{
    (void)state;
    struct engine_voice v[4] = {voice("e2e4", 30, 900), voice("e2e4", 30, 900),
                                voice("d2d4", 5, 30980), voice("c2c4", 3, 30990)};
    assert_int_equal(engine_vote(v, 2), 0);
    assert_int_equal(engine_vote(v, 3), 2);
    assert_int_equal(engine_vote(v, 4), 3);
    v[0] = voice("e2e4", 3, 30995);
    assert_int_equal(engine_vote(v, 4), 0);
    v[0] = voice("e2e4", 10, -30990); /* is mated */
    v[1] = voice("d2d4", 9, -300);
    assert_int_equal(engine_vote(v, 2), 1);
    v[0] = voice("e2e4", 10, -300);
    v[1] = voice("d2d4", 99, -30990);
    assert_int_equal(engine_vote(v, 2), 0);
}

static void a_voice_without_a_move_counts_nothing(void **state)
{
    (void)state;
    struct engine_voice v[3] = {voice("", 50, 500), voice("e2e4", 3, 0), voice("", 60, -900)};
    assert_int_equal(engine_vote(v, 3), 1);
    assert_int_equal(engine_vote(v, 1), 0);
    v[1] = voice("e2e4", 0, 0);
    assert_int_equal(engine_vote(v, 3), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_job_says_limits_and_moves_alone),
        cmocka_unit_test(only_one_line_of_printable_text_gets_to_an_engine),
        cmocka_unit_test(options_that_a_job_may_not_set_must_agree),
        cmocka_unit_test(what_the_front_end_set_gets_into_the_job),
        cmocka_unit_test(others_get_limits_without_clocks),
        cmocka_unit_test(long_games_are_written_shorter),
        cmocka_unit_test(illegal_moves_of_others_are_not_played),
        cmocka_unit_test(depth_score_and_agreement_decide),
        cmocka_unit_test(mates_come_first),
        cmocka_unit_test(a_voice_without_a_move_counts_nothing),
    };
    return cmocka_run_group_tests_name("engine_job", tests, NULL, NULL);
}
