/* Claims about boards as a game: what is read, and that its value says whether the claim is true.
 */
#include "worker/games/othello/claim.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const char board[] = /* FFO #20: +6 */
    "XXXOXXXXOXXXXXXXOOXXXXXXOOOXXXXXOOOXXOO-OOOOO---OOOOOOO-OOOOOOO- X";
static const struct game *const game = &game_othello_claim;
static void *position;

static int start(void **state)
{
    (void)state;
    position = calloc(1, game->position_size);
    assert_non_null(position);
    return 0;
}

static int finish(void **state)
{
    (void)state;
    free(position);
    return 0;
}

static enum err read(const char *claim)
{
    char text[2 * GAME_TEXT_MAX], why[256] = "as before";
    snprintf(text, sizeof text, "%s%s", board, claim);
    const enum err err = game->parse(position, text, why, sizeof why);
    assert_true((err == ERR_OK) == (why[0] == '\0'));
    return err;
}

static void a_claim_is_read_as_it_is_written(void **state)
{
    (void)state;
    const char *const claims[] = {" >= +6", " <= -64", " <= +0", " >= +64"};
    for (unsigned i = 0; i < sizeof claims / sizeof claims[0]; i++) {
        char wanted[GAME_TEXT_MAX], text[GAME_TEXT_MAX];
        snprintf(wanted, sizeof wanted, "%s%s", board, claims[i]);
        assert_int_equal(read(claims[i]), ERR_OK);
        game->format(position, text);
        assert_string_equal(text, wanted);
    }
}

static void what_is_no_claim_is_refused(void **state)
{
    (void)state;
    const char *const wrong[] = {"",        " >",     " >=",
                                 " >= x",   " >= 65", " <= -65",
                                 " >= 6 7", " = 6",   " >= 999999999999999",
                                 "X >= 6"};
    char long_text[400], why[256];
    for (unsigned i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        assert_int_equal(read(wrong[i]), ERR_SYNTAX);
    }
    memset(long_text, 'X', sizeof long_text);
    memcpy(long_text + sizeof long_text - 6, ">= +1", 6);
    assert_int_equal(game->parse(position, long_text, why, sizeof why), ERR_SYNTAX);
}

struct counter {
    uint64_t nodes;
    uint64_t most; /* then stop */
};

static bool count(void *self, unsigned nodes)
{
    struct counter *c = self;
    c->nodes += nodes;
    return c->nodes <= c->most;
}

static bool solve(uint64_t most, int *value)
{
    uint16_t move;
    struct counter counter = {0, most};
    const struct game_solver solver = {.self = &counter, .count = count};
    assert_true(game->solves(position, 1, true));
    return game->solve(position, -GAME_INFINITE, GAME_INFINITE, &solver, value, &move);
}

static void its_value_says_whether_it_is_true(void **state)
{
    (void)state;
    const struct {
        const char *claim;
        int value;
    } rows[] = {{" >= +6", 1}, {" >= +7", -1}, {" >= -64", 1}, {" <= +6", 1}, {" <= +5", -1}};
    for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        int value = 0;
        assert_int_equal(read(rows[i].claim), ERR_OK);
        assert_true(solve(UINT64_MAX, &value));
        assert_int_equal(value, rows[i].value);
    }
}

static void who_counts_may_stop_it(void **state)
{
    (void)state;
    int value = 0;
    char why[256];
    assert_int_equal(/* FFO #40, 20 empty squares: for minutes */
                     game->parse(position,
                                 "O--OOOOX-OOOOOOXOOXXOOOXOOXOOOXXOOOOOOXX---OOOOX----O--X-------- "
                                 "X >= +38",
                                 why, sizeof why),
                     ERR_OK);
    assert_false(solve(100000, &value));
    assert_int_equal(value, 0);
}

static void it_has_one_move_and_ends(void **state)
{
    (void)state;
    struct game_move list[GAME_MOVES_MAX];
    assert_int_equal(read(" >= +6"), ERR_OK);
    const uint64_t key = game->key(position);
    assert_int_equal(game->generate(position, list), 1);
    assert_int_equal(game->depth_left(position), 1);
    game->make(position, list[0].move);
    assert_int_equal(game->generate(position, list), 0);
    assert_int_equal(game->depth_left(position), 0);
    assert_false(game->solves(position, 1, true));
    assert_true(game->key(position) != key);
    game->unmake(position, list[0].move);
    assert_true(game->key(position) == key);
    assert_int_equal(read(" <= +6"), ERR_OK);
    assert_true(game->key(position) != key);
    assert_int_equal(read(" >= +7"), ERR_OK);
    assert_true(game->key(position) != key);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_claim_is_read_as_it_is_written, start, finish),
        cmocka_unit_test_setup_teardown(what_is_no_claim_is_refused, start, finish),
        cmocka_unit_test_setup_teardown(its_value_says_whether_it_is_true, start, finish),
        cmocka_unit_test_setup_teardown(who_counts_may_stop_it, start, finish),
        cmocka_unit_test_setup_teardown(it_has_one_move_and_ends, start, finish),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
