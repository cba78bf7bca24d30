#include "tests/support/test_chess.h"
#include "worker/games/chess/eval.h"
#include "worker/games/chess/network.h"

static struct chess_sums kept; /* from position to position, as a search does */

static int fresh(const struct chess_position *position)
{
    struct chess_sums sums;
    chess_sums_clear(&sums);
    return chess_network_eval(&sums, position->set, position->side);
}

static void turn(struct chess_position *to, const struct chess_position *from, unsigned squares,
                 unsigned colours)
{
    chess_position_clear(to);
    for (unsigned s = 0; s < 64; s++) {
        if (from->board[s] != CHESS_EMPTY) {
            chess_position_put(to, from->board[s] ^ colours, s ^ squares);
        }
    }
    to->side = from->side ^ (colours != 0);
    chess_position_refresh(to);
}

static void check_value(struct chess_position *position)
{
    struct chess_position turned;
    const int value = fresh(position);
    assert_int_equal(chess_network_eval(&kept, position->set, position->side), value);
    turn(&turned, position, 56, 8);
    assert_int_equal(fresh(&turned), value); /* colours changed */
    turn(&turned, position, 7, 0);
    assert_int_equal(fresh(&turned), value); /* seen in a mirror */
    int full = chess_eval_full(position, &kept);
    assert_true(full < CHESS_EVAL_MAX && full > -CHESS_EVAL_MAX);
}

/* What is kept from earlier positions changes nothing, and neither do colours and mirrors. */
static void a_value_is_of_the_position_alone(void **state)
{
    (void)state;
    chess_sums_clear(&kept);
    test_random_play(80, check_value);
}

static int value_of(const char *text)
{
    struct chess_position position;
    struct chess_sums sums;
    chess_sums_clear(&sums);
    test_parse(&position, text);
    return chess_eval_full(&position, &sums);
}

static void it_knows_material(void **state)
{
    (void)state;
    static const char *const odds[] = {"p", "n", "b", "r", "q"};
    static const char *const texts[] = {
        "rnbqkbnr/ppp1pppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq -",
        "r1bqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq -",
        "rn1qkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq -",
        "1nbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQk -",
        "rnb1kbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq -",
    };
    const int even = value_of("startpos");
    int before = even;
    assert_true(even > -60 && even < 100);
    for (unsigned i = 0; i < 5; i++) {
        int value = value_of(texts[i]);
        print_message("without %s: %d\n", odds[i], value);
        assert_true(value > even + 20);
        assert_true(i == 2 || value > before); /* knight and bishop are alike */
        before = value;
    }
}

static void what_cannot_be_won_is_a_draw(void **state)
{
    (void)state;
    assert_int_equal(value_of("4k3/p7/8/8/8/8/8/4KNN1 w - -"), 0);
    assert_int_equal(value_of("4k3/8/8/8/8/8/8/4KN2 w - -"), 0);
    int near = value_of("7k/5K2/8/8/8/8/8/R7 w - -"), apart = value_of("7k/8/8/8/8/8/8/RK6 w - -");
    assert_true(near > apart && apart > 300); /* a bare king is driven */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_value_is_of_the_position_alone),
        cmocka_unit_test(it_knows_material),
        cmocka_unit_test(what_cannot_be_won_is_a_draw),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
