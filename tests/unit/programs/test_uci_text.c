#include "tests/support/test_tt.h"

#include "worker/programs/uci_text.h"

static struct uci_info info(const char *text)
{
    struct uci_info found;
    if (!uci_info_read(text, &found)) {
        fail_msg("%s", text);
    }
    return found;
}

static void a_line_of_a_search_is_read(void **state)
{
    (void)state;
    const struct uci_info i =
        info("info depth 12 seldepth 20 multipv 2 score cp -31 nodes 5000 nps 900 pv e2e4 e7e5");
    assert_int_equal(i.depth, 12);
    assert_int_equal(i.multipv, 2);
    assert_true(i.has_score && i.score == -31);
    assert_true(i.has_nodes && i.nodes == 5000 && i.nps == 900);
    assert_string_equal(i.line, "e2e4 e7e5");
    assert_false(info("info depth 3 score cp 5 lowerbound nodes 9").has_score);
    assert_false(info("info depth 3 score cp 5 upperbound pv e2e4").has_score);
    assert_int_equal(info("info score cp 1 pv a2a3").multipv, 1);
}

static void mates_are_counted_as_in_reports(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int score;
    } cases[] = {{"mate 1", 30999},
                 {"mate 3", 30995},
                 {"mate -1", -30998},
                 {"mate 0", -31000},
                 {"cp 29999", 29999}};
    for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[64], again[32];
        snprintf(text, sizeof text, "info depth 1 score %s", cases[i].text);
        assert_int_equal(info(text).score, cases[i].score);
        uci_score_text(cases[i].score, again, sizeof again);
        assert_string_equal(again, cases[i].text);
    }
}

static void rubbish_is_clamped_or_passed_over(void **state)
{
    (void)state;
    struct uci_info i;
    assert_false(uci_info_read("information depth 3", &i));
    assert_false(uci_info_read("info string depth 3 score cp 9", &i));
    assert_false(uci_info_read("bestmove e2e4", &i));
    i = info("info depth 99999999999999999999 score cp 99999999999999999999 nodes -5 nps x pv");
    assert_int_equal(i.depth, 250);
    assert_int_equal(i.score, 29999);
    assert_int_equal(i.nodes, 0);
    assert_string_equal(i.line, "");
    assert_int_equal(info("info score mate 99999999").score, 30003);
    assert_true(info("info score mate -99999999").score > -31000);
    assert_true(info("info nodes 99999999999999999999").nodes >> 47 == 0);
    info("info depth");
    info("info score");
    info("info score cp");
}

static void totals_take_the_place_of_numbers(void **state)
{
    (void)state;
    char out[256], small[16];
    uci_info_total("info depth 3 nodes 5 nps 7 time 1 pv e2e4 nodes 9", 50, 70, out, sizeof out);
    assert_string_equal(out, "info depth 3 nodes 50 nps 70 time 1 pv e2e4 nodes 9");
    uci_info_total("info nodes", 50, 70, out, sizeof out);
    assert_string_equal(out, "info nodes");
    uci_info_total("info string nodes 3", 50, 70, out, sizeof out);
    assert_string_equal(out, "info string nodes 3");
    uci_info_total("info depth 3 nodes 5 nps 7 time 1 pv e2e4", 50, 70, small, sizeof small);
    assert_memory_equal(small, "info depth 3", 12);
    assert_true(strlen(small) < sizeof small);
}

static void a_command_for_others_is_cut_in_its_room(void **state)
{
    (void)state;
    struct uci_go go;
    char out[64];
    assert_true(uci_go_read("nodes 70 depth 9 mate 3 searchmoves e2e4", &go));
    assert_true(uci_go_text(&go, out, sizeof out));
    assert_string_equal(out, "go depth 9 nodes 70 mate 3 searchmoves e2e4");
    for (size_t size = 1; size <= strlen(out); size++) {
        char small[128];
        memset(small, '#', sizeof small);
        assert_false(uci_go_text(&go, small, size));
        assert_true(memchr(small, '\0', size) != NULL);
        for (size_t i = size; i < sizeof small; i++) {
            assert_int_equal(small[i], '#');
        }
    }
}

static struct uci_option option(const char *text)
{
    struct uci_option found;
    if (!uci_option_read(text, &found)) {
        fail_msg("%s", text);
    }
    return found;
}

static void options_are_read(void **state)
{
    (void)state;
    struct uci_option o = option("option name Skill Level type spin default 20 min 0 max 20");
    assert_string_equal(o.name, "Skill Level");
    assert_int_equal(o.kind, UCI_SPIN);
    assert_string_equal(o.normal, "20");
    assert_true(uci_option_takes(&o, "0") && uci_option_takes(&o, "20"));
    assert_false(uci_option_takes(&o, "21") || uci_option_takes(&o, "-1") ||
                 uci_option_takes(&o, "") || uci_option_takes(&o, "3 4") ||
                 uci_option_takes(&o, "3\nquit"));
    o = option("option name Style type combo default Solid var Solid var Very Risky");
    assert_int_equal(o.kind, UCI_COMBO);
    assert_true(uci_option_takes(&o, "Solid") && uci_option_takes(&o, "Very Risky"));
    assert_false(uci_option_takes(&o, "Very") || uci_option_takes(&o, "Solid\nVery Risky\n"));
    o = option("option name UCI_Chess960 type check default false");
    assert_true(uci_option_takes(&o, "true"));
    assert_false(uci_option_takes(&o, "yes"));
    o = option("option name EvalFile type string default <empty>");
    assert_int_equal(o.kind, UCI_STRING);
    assert_string_equal(o.normal, "<empty>");
    o = option("option name Log type string default");
    assert_string_equal(o.normal, "");
    o = option("option name Mood type combo default var Quiet var Wild");
    assert_string_equal(o.normal, "");
    assert_true(uci_option_takes(&o, "Quiet") && uci_option_takes(&o, "Wild"));
    assert_int_equal(option("option name Clear Hash type button").kind, UCI_BUTTON);
    assert_int_equal(option("option name New Kind type file default x").kind, UCI_STRING);
    assert_false(uci_option_read("option", &o) || uci_option_read("option name", &o) ||
                 uci_option_read("id name x", &o));
}

/* Values that do not fit are lost; those before them are kept. */
static void an_option_of_any_length_is_read(void **state)
{
    (void)state;
    enum { VARS = 1000 };
    char word[2 * UCI_VALUE_MAX + 1], text[8 * UCI_VARS_MAX];
    size_t used = (size_t)snprintf(text, sizeof text, "option name Style type combo default 0");
    for (unsigned i = 0; i < VARS; i++) {
        used += (size_t)snprintf(text + used, sizeof text - used, " var value %u", i);
    }
    const struct uci_option o = option(text);
    assert_true(strlen(o.vars) < sizeof o.vars);
    assert_true(uci_option_takes(&o, "value 0") && uci_option_takes(&o, "value 99"));
    memset(word, 'x', sizeof word);
    word[sizeof word - 1] = '\0';
    snprintf(text, sizeof text, "option name %s type %s default %s min %s var %s", word, word, word,
             word, word);
    const struct uci_option long_one = option(text);
    assert_true(strlen(long_one.name) < sizeof long_one.name);
    assert_int_equal(long_one.kind, UCI_STRING);
}

static void files_agree_by_their_last_name(void **state)
{
    (void)state;
    assert_true(uci_values_agree("/a/b/nn-1.nnue", "nn-1.nnue"));
    assert_true(uci_values_agree("C:\\nets\\nn-1.nnue", "/nets/nn-1.nnue"));
    assert_true(uci_values_agree("<empty>", ""));
    assert_false(uci_values_agree("/a/nn-1.nnue", "/a/nn-2.nnue"));
    assert_false(uci_values_agree("", "nn-1.nnue"));
}

static void expect_words(const char *command, unsigned words, const char *last)
{
    char room[256], *word[UCI_WORDS_MAX];
    unsigned count = 0;
    if (!uci_cut_command(command, room, sizeof room, word)) {
        fail_msg("%s", command);
    }
    while (word[count] != NULL) {
        count++;
    }
    assert_int_equal(count, words);
    assert_string_equal(word[count - 1], last);
}

static void a_command_is_cut_as_by_a_shell(void **state)
{
    (void)state;
    char room[16], *word[UCI_WORDS_MAX];
    expect_words("stockfish", 1, "stockfish");
    expect_words("  ssh  ws2 stockfish ", 3, "stockfish");
    expect_words("sh -c 'exec a  \"b\"'", 3, "exec a  \"b\"");
    expect_words("\"/my engines/x\" \"a\\\"b\\c\"", 2, "a\"b\\c");
    expect_words("/my\\ engines/x", 1, "/my engines/x");
    expect_words("a ''", 2, "");
    expect_words("a $HOME`x`*", 2, "$HOME`x`*");
    assert_false(uci_cut_command("", room, sizeof room, word));
    assert_false(uci_cut_command("  ", room, sizeof room, word));
    assert_false(uci_cut_command("a 'b", room, sizeof room, word));
    assert_false(uci_cut_command("0123456789abcdef", room, sizeof room, word));
    char many[3 * UCI_WORDS_MAX] = "";
    for (unsigned i = 0; i < UCI_WORDS_MAX; i++) {
        strcat(many, "a ");
    }
    char large[sizeof many];
    assert_false(uci_cut_command(many, large, sizeof large, word));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_line_of_a_search_is_read),
        cmocka_unit_test(mates_are_counted_as_in_reports),
        cmocka_unit_test(rubbish_is_clamped_or_passed_over),
        cmocka_unit_test(totals_take_the_place_of_numbers),
        cmocka_unit_test(a_command_for_others_is_cut_in_its_room),
        cmocka_unit_test(options_are_read),
        cmocka_unit_test(an_option_of_any_length_is_read),
        cmocka_unit_test(files_agree_by_their_last_name),
        cmocka_unit_test(a_command_is_cut_as_by_a_shell),
    };
    return cmocka_run_group_tests_name("uci_text", tests, NULL, NULL);
}
