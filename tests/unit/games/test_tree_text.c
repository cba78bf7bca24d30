#include "tests/support/test_tree.h"

static void texts_round_trip(void **state)
{
    (void)state;
    static const char *const longest =
        "tree:b=64,d=100,seed=18446744073709551615,replies=63,shape=ranked,edges=tailed,"
        "range=299,order=10,ends=90,checks=90";
    struct tree_position p, q;
    char text[GAME_TEXT_MAX], again[GAME_TEXT_MAX];
    for (unsigned i = 0; i <= TEST_TREES; i++) {
        test_parse(&p, i < TEST_TREES ? test_trees[i] : longest);
        game_tree.format(&p, text);
        test_parse(&q, text);
        assert_memory_equal(&p, &q, sizeof p);
        game_tree.format(&q, again);
        assert_string_equal(text, again);
    }
    assert_string_equal(text, longest);
}

static void what_is_left_out_has_its_default(void **state)
{
    (void)state;
    static const char *const same[] = {"tree",
                                       "tree:",
                                       "startpos",
                                       "tree:seed=1,d=12,b=20",
                                       "tree:b=20,d=12,",
                                       "tree:shape=uniform,edges=uniform,range=100,order=100,t=1,"
                                       "ends=0,checks=0,replies=20"};
    char text[GAME_TEXT_MAX];
    struct tree_position p;
    for (unsigned i = 0; i < sizeof same / sizeof same[0]; i++) {
        test_parse(&p, same[i]);
        game_tree.format(&p, text);
        assert_string_equal(text, "tree:b=20,d=12,seed=1");
    }
    test_parse(&p, "tree:b=7,replies=7,edges=sharp");
    game_tree.format(&p, text);
    assert_string_equal(text, "tree:b=7,d=12,seed=1,edges=sharp");
}

static void bad_texts_name_the_field(void **state)
{
    (void)state;
    static const struct {
        const char *text, *part;
        enum err err;
    } bad[] = {
        {"", "a tree is written tree:", ERR_SYNTAX},
        {"rnbqkbnr/8", "a tree is written tree:", ERR_SYNTAX},
        {"tree:b=0", "b is a number from 1 to 64", ERR_SYNTAX},
        {"tree:b=65", "b is a number from 1 to 64", ERR_SYNTAX},
        {"tree:d=101", "d is a number from 1 to 100", ERR_SYNTAX},
        {"tree:d=", "d is a number", ERR_SYNTAX},
        {"tree:d=3x", "d is a number", ERR_SYNTAX},
        {"tree:d=-3", "d is a number", ERR_SYNTAX},
        {"tree:d=+3", "d is a number", ERR_SYNTAX},
        {"tree:d= 3", "d is a number", ERR_SYNTAX},
        {"tree:seed=18446744073709551616", "seed is a number", ERR_SYNTAX},
        {"tree:seed=000000000000000000000", "seed is a number", ERR_SYNTAX},
        {"tree:replies=0", "replies is a number from 1", ERR_SYNTAX},
        {"tree:width=3", "'width' is no field=value; fields: b d seed", ERR_SYNTAX},
        {"tree:b", "'b' is no field=value", ERR_SYNTAX},
        {"tree:b=3,,d=4", "'' is no field=value", ERR_SYNTAX},
        {"tree:b=3;d=4", "b is a number", ERR_SYNTAX},
        {"tree:b=3,b=3", "b is given twice", ERR_SYNTAX},
        {"tree:shape=odd", "shape is one of uniform ranked varied", ERR_SYNTAX},
        {"tree:shape=uniforms", "shape is one of", ERR_SYNTAX},
        {"tree:edges=", "edges is one of uniform bell tailed losses sharp", ERR_SYNTAX},
        {"tree:range=300,d=100", "range is at most 299 with d=100", ERR_ILLEGAL},
        {"tree:t=2,shape=varied", "t is 1 unless shape=uniform", ERR_ILLEGAL},
        {"tree:t=2,edges=sharp", "t is 1 with edges=sharp", ERR_ILLEGAL},
    };
    struct tree_position p;
    char why[200];
    for (unsigned i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        why[0] = '\0';
        assert_int_equal(game_tree.parse(&p, bad[i].text, why, sizeof why), bad[i].err);
        if (strstr(why, bad[i].part) == NULL || strchr(why, '\n') != NULL) {
            fail_msg("%s: says '%s', not '%s'", bad[i].text, why, bad[i].part);
        }
    }
}

static void move_texts_round_trip(void **state)
{
    (void)state;
    struct tree_position p;
    char text[GAME_MOVE_TEXT_MAX];
    uint16_t move = 0;
    test_parse(&p, "tree:b=12,d=1");
    for (uint16_t m = 1; m <= 12; m++) {
        game_tree.format_move(&p, m, text);
        assert_int_equal(game_tree.parse_move(&p, text, &move), ERR_OK);
        assert_int_equal(move, m);
    }
    assert_int_equal(game_tree.parse_move(&p, "13", &move), ERR_ILLEGAL);
    assert_int_equal(game_tree.parse_move(&p, "0", &move), ERR_SYNTAX);
    assert_int_equal(game_tree.parse_move(&p, "1a", &move), ERR_SYNTAX);
    assert_int_equal(game_tree.parse_move(&p, "", &move), ERR_SYNTAX);
    assert_int_equal(game_tree.parse_move(&p, "9999", &move), ERR_SYNTAX);
    assert_int_equal(move, 12);
}

#define T(name) cmocka_unit_test(name)
int main(void)
{
    const struct CMUnitTest tests[] = {
        T(texts_round_trip),
        T(what_is_left_out_has_its_default),
        T(bad_texts_name_the_field),
        T(move_texts_round_trip),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
