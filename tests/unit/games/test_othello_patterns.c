#include "common/rng.h"
#include "tests/instruments/tune/othello_sample.h"
#include "tests/instruments/tune/othello_solve.h"
#include "worker/games/othello/patterns.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

enum { GAMES = 60, SOLVED_EMPTIES = 8 };

static const struct othello_board opening = {UINT64_C(0x0000000810000000),
                                             UINT64_C(0x0000001008000000)};

/* A random move, or a pass; false: the game is over. */
static bool play_randomly(struct othello_board *b, uint64_t *seed)
{
    uint64_t moves = othello_moves(b->own, b->other);
    if (moves == 0) {
        *b = othello_pass(*b);
        return othello_moves(b->own, b->other) != 0;
    }
    for (unsigned skip = rng_below(seed, othello_count(moves)); skip > 0; skip--) {
        moves &= moves - 1;
    }
    const unsigned square = othello_first(moves);
    *b = othello_play(*b, square, othello_flips(b->own, b->other, square));
    return true;
}

static void each_board(void (*check)(struct othello_board b, uint64_t *seed))
{
    uint64_t seed = 7;
    for (unsigned game = 0; game < GAMES; game++) {
        struct othello_board b = opening;
        do {
            check(b, &seed);
        } while (play_randomly(&b, &seed));
    }
}

static uint64_t symmetric_set(uint64_t set, unsigned symmetry)
{
    uint64_t to = 0;
    for (; set != 0; set &= set - 1) {
        to |= othello_bit(othello_symmetric(othello_first(set), symmetry));
    }
    return to;
}

static void check_symmetries(struct othello_board b, uint64_t *seed)
{
    (void)seed;
    const int value = othello_evaluate(b);
    for (unsigned i = 0; i < OTHELLO_SYMMETRIES; i++) {
        const struct othello_board turned = {symmetric_set(b.own, i), symmetric_set(b.other, i)};
        assert_int_equal(othello_evaluate(turned), value);
    }
}

static void symmetric_boards_have_one_value(void **state)
{
    (void)state;
    each_board(check_symmetries);
}

/* No board may leave the scores or read beside the weights, not even one that no game reaches. */
static void check_bounds(struct othello_board b, uint64_t *seed)
{
    for (unsigned i = 0; i < 20; i++) {
        const int value = othello_evaluate(b);
        assert_in_range(value + OTHELLO_EVAL_MAX, 0, 2 * OTHELLO_EVAL_MAX);
        b.own = rng_next(seed) & rng_next(seed);
        b.other = rng_next(seed) & ~b.own;
    }
}

static void values_are_scores(void **state)
{
    (void)state;
    each_board(check_bounds);
    static const struct othello_board extreme[] = {
        {0, 0}, {UINT64_MAX, 0}, {0, UINT64_MAX}, {1, 0}, {UINT64_MAX ^ 1, 0}, {0, UINT64_MAX ^ 1},
    };
    for (unsigned i = 0; i < sizeof extreme / sizeof extreme[0]; i++) {
        const int value = othello_evaluate(extreme[i]);
        assert_in_range(value + OTHELLO_EVAL_MAX, 0, 2 * OTHELLO_EVAL_MAX);
    }
}

static void check_numbers(struct othello_board b, uint64_t *seed)
{
    uint16_t fast[OTHELLO_PLACES_ROOM], slow[OTHELLO_PLACES_ROOM];
    for (unsigned i = 0; i < 20; i++) {
        othello_place_numbers(b, fast);
        othello_place_numbers_slowly(b, slow);
        assert_memory_equal(fast, slow, sizeof fast);
        b.own = rng_next(seed);
        b.other = rng_next(seed) & ~b.own;
    }
}

/* All moves of a board. */
static void check_next(struct othello_board b, uint64_t *seed)
{
    (void)seed;
    struct othello_sums sums, next_sums, fresh;
    othello_sum(b, &sums);
    assert_int_equal(othello_evaluate_sums(b, &sums), othello_evaluate(b));
    for (uint64_t moves = othello_moves(b.own, b.other); moves != 0; moves &= moves - 1) {
        const unsigned square = othello_first(moves);
        const uint64_t flips = othello_flips(b.own, b.other, square);
        const struct othello_board next = othello_play(b, square, flips);
        othello_sum_next(&sums, square, flips, &next_sums);
        othello_sum(next, &fresh);
        assert_memory_equal(&next_sums, &fresh, sizeof fresh);
        assert_int_equal(othello_evaluate_next(&sums, square, flips, next,
                                               othello_moves(next.own, next.other),
                                               othello_moves(next.other, next.own)),
                         othello_evaluate(next));
    }
}

static void what_a_move_changes_gives_the_next_value(void **state)
{
    (void)state;
    each_board(check_next);
}

static void numbers_of_places_are_as_square_by_square(void **state)
{
    (void)state;
    each_board(check_numbers);
}

/* Black and white are nothing to a board; what a colour is worth is what the mover is. With the
 * move the other way the value is about the opposite one: more than half of the difference is kept.
 */
static void swapped_colours_have_about_the_opposite_value(void **state)
{
    (void)state;
    uint64_t seed = 11;
    double same = 0, sum = 0;
    for (unsigned game = 0; game < GAMES; game++) {
        struct othello_board b = opening;
        do {
            const int one = othello_evaluate(b), two = othello_evaluate(othello_pass(b));
            sum += abs(one) + abs(two);
            same += abs(one + two);
        } while (play_randomly(&b, &seed));
    }
    print_message("left of the opposite values: %.2f\n", same / sum);
    assert_true(same < sum / 2);
}

/* Against exact scores of boards after random moves, which no fit has seen. */
static void it_predicts_better_than_by_hand(void **state)
{
    (void)state;
    struct othello_memory *memory = othello_solve_open();
    uint64_t seed = 5;
    double fitted = 0, by_hand = 0;
    unsigned count = 0;
    assert_non_null(memory);
    while (count < 400) {
        struct othello_board b = opening;
        bool goes_on = true;
        while (goes_on && othello_count(othello_empties(b)) > SOLVED_EMPTIES) {
            goes_on = play_randomly(&b, &seed);
        }
        if (goes_on && othello_moves(b.own, b.other) != 0) {
            const int score = othello_solve_exactly(memory, b) * OTHELLO_EVAL_UNIT;
            fitted += abs(othello_evaluate(b) - score);
            by_hand += abs(othello_start_evaluate(b, OTHELLO_EVAL_UNIT) - score);
            count++;
        }
    }
    free(memory);
    print_message("mean error in discs at %d empty squares: %.2f, by hand %.2f\n", SOLVED_EMPTIES,
                  fitted / count / OTHELLO_EVAL_UNIT, by_hand / count / OTHELLO_EVAL_UNIT);
    assert_true(fitted * 4 < by_hand * 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(symmetric_boards_have_one_value),
        cmocka_unit_test(values_are_scores),
        cmocka_unit_test(numbers_of_places_are_as_square_by_square),
        cmocka_unit_test(what_a_move_changes_gives_the_next_value),
        cmocka_unit_test(swapped_colours_have_about_the_opposite_value),
        cmocka_unit_test(it_predicts_better_than_by_hand),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
