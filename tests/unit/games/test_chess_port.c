#include "tests/support/test_chess.h"
#include "worker/games/chess/chess.h"

#include <namespaces.h>

static void the_namespace_is_that_of_the_sources(void **state)
{
    (void)state;
    assert_true(game_chess.namespace_id == NAMESPACE_chess);
    assert_true(game_chess.namespace_id != 0);
}

static bool listed(uint16_t move, const struct game_move *list, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        if (list[i].move == move) {
            return true;
        }
    }
    return false;
}

static void check_lists(struct chess_position *position)
{
    struct game_move all[GAME_MOVES_MAX], noisy[GAME_MOVES_MAX];
    unsigned count = game_chess.generate(position, all);
    unsigned noisy_count = game_chess.generate_noisy(position, noisy);
    unsigned expected = 0;
    bool check = game_chess.check(position);
    for (unsigned i = 0; i < count; i++) {
        assert_true(all[i].move != 0);
        assert_false(listed(all[i].move, all, i));
        bool is_noisy = all[i].flags & GAME_NOISY;
        assert_true(is_noisy ? all[i].order >= 1 && all[i].order <= 1000 : all[i].order == 0);
        unsigned kind = chess_move_kind(all[i].move);
        assert_int_equal(is_noisy, (kind & CHESS_CAPTURE) || kind == CHESS_TO_QUEEN);
        bool wanted = check || is_noisy;
        assert_int_equal(listed(all[i].move, noisy, noisy_count), wanted);
        expected += wanted;
    }
    assert_int_equal(noisy_count, expected);
}

static void noisy_moves_are_the_noisy_part_of_all_moves(void **state)
{
    (void)state;
    test_random_play(120, check_lists);
}

static void check_texts(struct chess_position *position)
{
    struct game_move list[GAME_MOVES_MAX];
    unsigned count = game_chess.generate(position, list);
    for (unsigned i = 0; i < count; i++) {
        char text[GAME_MOVE_TEXT_MAX];
        uint16_t move = 0;
        game_chess.format_move(position, list[i].move, text);
        assert_int_equal(game_chess.parse_move(position, text, &move), ERR_OK);
        assert_int_equal(move, list[i].move);
    }
}

static void move_texts_round_trip(void **state)
{
    (void)state;
    test_random_play(20, check_texts);
}

static void bad_move_texts_are_refused(void **state)
{
    (void)state;
    struct chess_position position;
    test_parse(&position, "startpos");
    static const char *const malformed[] = {"",     "e2",    "e2e",    "e2e9",
                                            "i2e4", "e2e4x", "e7e8qq", "O-O"};
    uint16_t move = 77;
    for (unsigned i = 0; i < sizeof(malformed) / sizeof(malformed[0]); i++) {
        assert_int_equal(game_chess.parse_move(&position, malformed[i], &move), ERR_SYNTAX);
    }
    static const char *const illegal[] = {"e2e5", "e7e5", "e1g1", "a1a1", "e2e4q"};
    for (unsigned i = 0; i < sizeof(illegal) / sizeof(illegal[0]); i++) {
        assert_int_equal(game_chess.parse_move(&position, illegal[i], &move), ERR_ILLEGAL);
    }
    assert_int_equal(move, 77);
}

struct ending {
    const char *text;
    bool check;
    int score;
};

static void games_end_in_mate_or_stalemate(void **state)
{
    (void)state;
    static const struct ending endings[] = {
        {"R5k1/5ppp/8/8/8/8/8/4K3 b - -", true, -GAME_MATE},
        {"7k/5Q2/6K1/8/8/8/8/8 b - -", false, 0},
        {"rnb1kbnr/pppp1ppp/8/4p3/6Pq/5P2/PPPPP2P/RNBQKBNR w KQkq -", true, -GAME_MATE},
    };
    for (unsigned i = 0; i < sizeof(endings) / sizeof(endings[0]); i++) {
        struct chess_position position;
        test_parse(&position, endings[i].text);
        struct game_move list[GAME_MOVES_MAX];
        assert_int_equal(game_chess.generate(&position, list), 0);
        assert_int_equal(game_chess.generate_noisy(&position, list), 0);
        assert_int_equal(game_chess.check(&position), endings[i].check);
        assert_int_equal(game_chess.finished(&position), endings[i].score);
    }
}

static void zugzwang_looms_when_only_pawns_are_left(void **state)
{
    (void)state;
    struct chess_position position;
    test_parse(&position, "4k2r/8/8/8/8/8/4P3/4K3 w - -");
    assert_true(game_chess.zugzwang(&position));
    test_parse(&position, "4k2r/8/8/8/8/8/4P3/4K3 b - -");
    assert_false(game_chess.zugzwang(&position));
}

static void a_copied_position_lives_on_its_own(void **state)
{
    (void)state;
    void *one = malloc(game_chess.position_size), *two = malloc(game_chess.position_size);
    assert_non_null(one);
    assert_non_null(two);
    char why[64], before[GAME_TEXT_MAX], after[GAME_TEXT_MAX];
    assert_int_equal(game_chess.parse(one, "startpos", why, sizeof(why)), ERR_OK);
    uint16_t move = 0;
    assert_int_equal(game_chess.parse_move(one, "e2e4", &move), ERR_OK);
    game_chess.make(one, move);
    game_chess.format(one, before);
    memcpy(two, one, game_chess.position_size);
    game_chess.unmake(one, move);
    game_chess.format(two, after);
    assert_string_equal(before, after);
    game_chess.unmake(two, move);
    assert_int_equal(game_chess.key(one), game_chess.key(two));
    free(one);
    free(two);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_namespace_is_that_of_the_sources),
        cmocka_unit_test(noisy_moves_are_the_noisy_part_of_all_moves),
        cmocka_unit_test(move_texts_round_trip),
        cmocka_unit_test(bad_move_texts_are_refused),
        cmocka_unit_test(games_end_in_mate_or_stalemate),
        cmocka_unit_test(zugzwang_looms_when_only_pawns_are_left),
        cmocka_unit_test(a_copied_position_lives_on_its_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
