#include "tests/support/test_chess.h" /* cmocka and the seed */
#include "worker/games/games.h"
#include "worker/games/othello/othello.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { LINE_MAX_BYTES = 1024, WALKS = 2000 };

static const struct game *game;

static void set(struct othello_position *p, const char *text)
{
    char why[128] = "as before";
    if (game->parse(p, text, why, sizeof why) != ERR_OK || why[0] != '\0') {
        fail_msg("%s: %s", text, why);
    }
}

static uint64_t leaf_budget(void)
{
    const char *text = getenv("PERFT_MAX_LEAVES");
    uint64_t budget = text ? strtoull(text, NULL, 10) : 200000;
    return budget ? budget : UINT64_MAX;
}

static void check_perft(const struct othello_position *p, unsigned depth, uint64_t expected)
{
    uint64_t found = othello_perft(p, depth);
    if (found != expected) {
        char text[GAME_TEXT_MAX];
        game->format(p, text);
        fail_msg("%s depth %u: %" PRIu64 " leaves, not %" PRIu64, text, depth, found, expected);
    }
}

static void the_tree_of_the_start_has_the_published_sizes(void **state)
{
    (void)state;
    struct othello_position p;
    char line[LINE_MAX_BYTES];
    unsigned depths = 0;
    set(&p, "startpos");
    FILE *file = fopen("tests/data/othello/perft.txt", "r");
    assert_non_null(file);
    while (fgets(line, sizeof line, file) != NULL) {
        unsigned depth;
        uint64_t leaves;
        if (sscanf(line, "%u %" SCNu64, &depth, &leaves) == 2 && leaves <= leaf_budget()) {
            check_perft(&p, depth, leaves);
            depths++;
        }
    }
    fclose(file);
    assert_true(depths >= 7);
}

static void trees_near_the_end_have_the_computed_sizes(void **state)
{
    (void)state;
    char line[LINE_MAX_BYTES];
    unsigned positions = 0;
    FILE *file = fopen("tests/data/othello/perft-endgame.txt", "r");
    assert_non_null(file);
    while (fgets(line, sizeof line, file) != NULL) {
        struct othello_position p;
        char *rest = strchr(line, ';');
        if (line[0] == '#' || rest == NULL) {
            continue;
        }
        set(&p, line);
        positions++;
        for (; rest != NULL; rest = strchr(rest + 1, ';')) {
            unsigned depth;
            uint64_t leaves;
            assert_int_equal(sscanf(rest, ";D%u %" SCNu64, &depth, &leaves), 2);
            if (leaves <= leaf_budget()) {
                check_perft(&p, depth, leaves);
            }
        }
    }
    fclose(file);
    assert_int_equal(positions, 42);
}

/* Square by square, as the rules say it. */
static uint64_t slow_flips(struct othello_board b, unsigned square)
{
    uint64_t all = 0;
    for (int row_step = -1; row_step <= 1; row_step++) {
        for (int step = -1; step <= 1; step++) {
            int row = (int)square / 8 + row_step, column = (int)square % 8 + step;
            uint64_t line = 0;
            while ((row_step != 0 || step != 0) && row >= 0 && row < 8 && column >= 0 &&
                   column < 8 && (b.other >> (8 * row + column) & 1) != 0) {
                line |= othello_bit((unsigned)(8 * row + column));
                row += row_step;
                column += step;
            }
            if (row >= 0 && row < 8 && column >= 0 && column < 8 &&
                (b.own >> (8 * row + column) & 1) != 0) {
                all |= line;
            }
        }
    }
    return all;
}

static void any_board_is_played_by_the_rules(void **state)
{
    (void)state;
    uint64_t seed = test_seed();
    for (unsigned turn = 0; turn < 20000; turn++) {
        uint64_t discs = rng_next(&seed) | rng_next(&seed), colours = rng_next(&seed);
        struct othello_board b = {discs & colours, discs & ~colours};
        uint64_t moves = othello_moves(b.own, b.other);
        for (uint64_t left = othello_empties(b); left != 0; left &= left - 1) {
            unsigned square = othello_first(left);
            uint64_t flips = slow_flips(b, square);
            assert_int_equal(othello_flips(b.own, b.other, square), flips);
            assert_int_equal(othello_flips_plainly(b.own, b.other, square), flips);
            assert_int_equal(moves >> square & 1, flips != 0);
        }
    }
}

/* Random games: what is unmade is as it was, and all moves have a text of their own. */
static void games_are_taken_back(void **state)
{
    (void)state;
    uint64_t seed = test_seed();
    for (unsigned walk = 0; walk < WALKS / 20; walk++) {
        struct othello_position p, before[OTHELLO_UNDO_MAX];
        struct game_move list[GAME_MOVES_MAX];
        uint16_t made[OTHELLO_UNDO_MAX];
        unsigned n = 0, count;
        set(&p, "startpos");
        while ((count = game->generate(&p, list)) > 0) {
            char text[GAME_MOVE_TEXT_MAX];
            uint16_t again;
            before[n] = p;
            made[n] = list[rng_below(&seed, count)].move;
            game->format_move(&p, made[n], text);
            assert_int_equal(game->parse_move(&p, text, &again), ERR_OK);
            assert_int_equal(again, made[n]);
            unsigned left = game->depth_left(&p);
            game->make(&p, made[n]);
            assert_int_equal(game->passed(&p), made[n] == OTHELLO_PASS);
            assert_int_equal(game->depth_left(&p), left - (made[n] != OTHELLO_PASS));
            n++;
        }
        assert_true(othello_moves(p.board.own, p.board.other) == 0 &&
                    othello_moves(p.board.other, p.board.own) == 0);
        while (n-- > 0) {
            game->unmake(&p, made[n]);
            assert_memory_equal(&p.board, &before[n].board, sizeof p.board);
            assert_int_equal(p.is_black, before[n].is_black);
            assert_int_equal(p.made, before[n].made);
        }
    }
}

static void positions_are_text(void **state)
{
    (void)state;
    struct othello_position p, again;
    char text[GAME_TEXT_MAX], why[128];
    set(&p, "startpos");
    game->format(&p, text);
    assert_string_equal(text, "---------------------------OX------XO--------------------------- X");
    set(&again, " --------.._-----\t-----------O*-- ----x0--------------------------- b;E6:+0;");
    assert_memory_equal(&p.board, &again.board, sizeof p.board);
    static const struct {
        const char *text, *why;
    } wrong[] = {
        {"", "0 squares instead of 64"},
        {"---X", "4 squares instead of 64"},
        {"---------------------------OX------XO---------------------------", "side to move"},
        {"---------------------------OX------XO--------------------------- Z", "side to move"},
        {"---------------------------OX------XO---------------------------- X", "side to move"},
        {"---------------------------OX------XO--------------------------- X X", "more"},
        {"---------------------------OQ------XO--------------------------- X", "square 29"},
        {"rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1", "square 1"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        assert_int_equal(game->parse(&again, wrong[i].text, why, sizeof why), ERR_SYNTAX);
        if (strstr(why, wrong[i].why) == NULL || strchr(why, '\n') != NULL) {
            fail_msg("'%s': %s", wrong[i].text, why);
        }
    }
    uint16_t move;
    static const char *const no_moves[] = {"", "d", "d9", "i3", "d33", "e2e4"};
    for (size_t i = 0; i < sizeof no_moves / sizeof no_moves[0]; i++) {
        assert_int_equal(game->parse_move(&p, no_moves[i], &move), ERR_SYNTAX);
    }
    assert_int_equal(game->parse_move(&p, "a1", &move), ERR_ILLEGAL);
    assert_int_equal(game->parse_move(&p, "pass", &move), ERR_ILLEGAL);
    assert_int_equal(game->parse_move(&p, "D3", &move), ERR_OK);
}

static void the_winner_gets_the_empty_squares(void **state)
{
    (void)state;
    struct othello_position p;
    struct game_move list[GAME_MOVES_MAX];
    set(&p, "X--------------------------------------------------------------- X");
    assert_int_equal(game->generate(&p, list), 0);
    assert_int_equal(game->finished(&p), 64);
    set(&p, "X--------------------------------------------------------------- O");
    assert_int_equal(game->finished(&p), -64);
    assert_int_equal(game->evaluate(&p), -64);
    assert_int_equal(game_othello_wld.finished(&p), -1);
    set(&p, "X------O-------------------------------------------------------- O");
    assert_int_equal(game->finished(&p), 0);
    set(&p, "XO-------------------------------------------------------------- O"); /* a pass */
    assert_int_equal(game->generate(&p, list), 1);
    assert_int_equal(list[0].move, OTHELLO_PASS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_tree_of_the_start_has_the_published_sizes),
        cmocka_unit_test(trees_near_the_end_have_the_computed_sizes),
        cmocka_unit_test(any_board_is_played_by_the_rules),
        cmocka_unit_test(games_are_taken_back),
        cmocka_unit_test(positions_are_text),
        cmocka_unit_test(the_winner_gets_the_empty_squares),
    };
    game = games_by_name("othello");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
