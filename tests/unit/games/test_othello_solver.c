/* Run from the root of the repository. TEST_SEED in the environment repeats a random run. */
#include "tests/support/test_tt.h"

#include "worker/games/othello/last.h"
#include "worker/games/othello/solver.h"

#include <pthread.h>

enum { WORST = -OTHELLO_SCORE_MAX };

static struct othello_memory *memory; /* keeps from test to test what it has, if not emptied */

static void empty_memory(void)
{
    memset(memory, 0, othello_memory_bytes());
}

static uint64_t begin_random(void)
{
    const char *text = getenv("TEST_SEED");
    const uint64_t seed = text != NULL ? strtoull(text, NULL, 0) : 20261125;
    print_message("repeat with TEST_SEED=%llu\n", (unsigned long long)seed);
    return seed;
}

/* ---- the oracle: negamax by the rules, square by square ---- */

struct plain {
    signed char disc[8][8]; /* 1: the side to move, -1 */
};

static struct plain plain_of(struct othello_board board)
{
    struct plain plain;
    for (unsigned s = 0; s < 64; s++) {
        plain.disc[s / 8][s % 8] =
            (signed char)((int)(board.own >> s & 1) - (int)(board.other >> s & 1));
    }
    return plain;
}

/* Plays as the side `side` where it can; the number of discs turned. */
static int plain_play(struct plain *plain, int row, int column, int side)
{
    int turned = 0;
    if (plain->disc[row][column] != 0) {
        return 0;
    }
    for (int dr = -1; dr <= 1; dr++) {
        for (int dc = -1; dc <= 1; dc++) {
            int r = row + dr, c = column + dc, n = 0;
            while (r >= 0 && r < 8 && c >= 0 && c < 8 && plain->disc[r][c] == -side) {
                r += dr;
                c += dc;
                n++;
            }
            if (n > 0 && r >= 0 && r < 8 && c >= 0 && c < 8 && plain->disc[r][c] == side) {
                for (int i = 1; i <= n; i++) {
                    plain->disc[row + i * dr][column + i * dc] = (signed char)side;
                }
                turned += n;
            }
        }
    }
    if (turned != 0) {
        plain->disc[row][column] = (signed char)side;
    }
    return turned;
}

/* Its alpha-beta, in the full window, is what makes eight empty squares possible. */
static int plain_value(const struct plain *plain, int side, int alpha, int beta, bool passed)
{
    int best = WORST - 1;
    for (int s = 0; s < 64 && best < beta; s++) {
        struct plain next = *plain;
        if (plain_play(&next, s / 8, s % 8, side) != 0) {
            const int value =
                -plain_value(&next, -side, -beta, best > alpha ? -best : -alpha, false);
            best = value > best ? value : best;
        }
    }
    if (best >= WORST) {
        return best;
    }
    if (!passed) {
        return -plain_value(plain, -side, -beta, -alpha, true);
    }
    int own = 0, other = 0;
    for (int s = 0; s < 64; s++) {
        own += plain->disc[s / 8][s % 8] == side;
        other += plain->disc[s / 8][s % 8] == -side;
    }
    return own > other ? 64 - 2 * other : own < other ? 2 * own - 64 : 0;
}

static int oracle(struct othello_board board)
{
    const struct plain plain = plain_of(board);
    return plain_value(&plain, 1, -65, 65, false);
}

/* ---- boards ---- */

/* From the start of the game by random moves; the game may end with more empty squares. */
static struct othello_board play_out(uint64_t *seed, unsigned empties)
{
    struct othello_board board = {UINT64_C(0x0000000810000000), UINT64_C(0x0000001008000000)};
    while (othello_count(othello_empties(board)) > empties) {
        uint64_t moves = othello_moves(board.own, board.other);
        if (moves == 0) {
            board = othello_pass(board);
            moves = othello_moves(board.own, board.other);
            if (moves == 0) {
                break;
            }
        }
        for (unsigned i = rng_below(seed, othello_count(moves)); i > 0; i--) {
            moves &= moves - 1;
        }
        const unsigned square = othello_first(moves);
        board = othello_play(board, square, othello_flips(board.own, board.other, square));
    }
    return board;
}

/* Discs anywhere: not connected, few or none of one side now and then. */
static struct othello_board fill(uint64_t *seed, unsigned empties)
{
    uint64_t free = 0, own = rng_next(seed);
    while (othello_count(free) < empties) {
        free |= othello_bit(rng_below(seed, 64));
    }
    for (unsigned i = rng_below(seed, 4); i > 0; i--) {
        own &= rng_next(seed);
    }
    own = rng_below(seed, 40) == 0 ? 0 : rng_below(seed, 2) != 0 ? own : ~own;
    return (struct othello_board){own & ~free, ~own & ~free};
}

static struct othello_board random_board(uint64_t *seed, unsigned empties)
{
    return rng_below(seed, 2) != 0 ? play_out(seed, empties) : fill(seed, empties);
}

/* ---- checks ---- */

static void check_window(struct othello_board board, int expected, int alpha, int beta)
{
    int value = 1000;
    unsigned move = 1000;
    assert_true(othello_solve(memory, board, alpha, beta, NULL, &value, &move));
    if (value >= beta) {
        assert_true(value <= expected);
    } else if (value <= alpha) {
        assert_true(value >= expected);
    } else {
        assert_int_equal(value, expected);
    }
    assert_true((expected > alpha) == (value > alpha) && (expected >= beta) == (value >= beta));
    const uint64_t moves = othello_moves(board.own, board.other);
    if (moves == 0) {
        assert_int_equal(move, OTHELLO_NO_MOVE);
        return;
    }
    assert_true(move < 64 && (moves >> move & 1) != 0);
    if (value > alpha) {
        const struct othello_board next =
            othello_play(board, move, othello_flips(board.own, board.other, move));
        assert_true(-oracle(next) >= value);
    }
}

static void values_are_those_of_plain_negamax(void **state)
{
    (void)state;
    uint64_t seed = begin_random();
    for (unsigned i = 0; i < 1200 / TSAN_SEES_ONE_OF; i++) {
        const unsigned empties = i % 8 + 1;
        if (empties >= 7 && i % 4 != 0 && i % 5 != 0) {
            continue;
        }
        const struct othello_board board = random_board(&seed, empties);
        if (othello_count(othello_empties(board)) > 8) {
            continue; /* a game that ended early: others do so with fewer squares */
        }
        const int expected = oracle(board);
        if (i % 3 == 0) {
            empty_memory();
        }
        for (unsigned k = 0; k < 6; k++) {
            const int alpha = (int)rng_below(&seed, 140) - 70;
            check_window(board, expected, alpha, alpha + 1 + (int)rng_below(&seed, k < 3 ? 2 : 70));
        }
        const int close = expected + (int)rng_below(&seed, 5) - 3;
        check_window(board, expected, close, close + 1);
        check_window(board, expected, -64, 64);
    }
}

/* Alpha-beta without memory or evaluation, fewest answers first: for more empty squares. */
static int quick_value(struct othello_board board, int alpha, int beta, bool passed)
{
    struct othello_board next[64];
    unsigned answers[64], n = 0;
    const uint64_t empties = othello_empties(board);
    for (uint64_t rest = empties; rest != 0; rest &= rest - 1) {
        const unsigned square = othello_first(rest);
        const uint64_t flips = othello_flips_plainly(board.own, board.other, square);
        if (flips == 0) {
            continue;
        }
        const struct othello_board after = othello_play(board, square, flips);
        unsigned count = 0, i = n++;
        for (uint64_t replies = othello_empties(after); replies != 0 && othello_count(empties) > 4;
             replies &= replies - 1) {
            count += othello_flips_plainly(after.own, after.other, othello_first(replies)) != 0;
        }
        for (; i > 0 && answers[i - 1] > count; i--) {
            answers[i] = answers[i - 1];
            next[i] = next[i - 1];
        }
        answers[i] = count;
        next[i] = after;
    }
    if (n == 0) {
        return passed ? othello_final_score(board)
                      : -quick_value(othello_pass(board), -beta, -alpha, true);
    }
    int best = WORST;
    for (unsigned i = 0; i < n && best < beta; i++) {
        const int value = -quick_value(next[i], -beta, best > alpha ? -best : -alpha, false);
        best = value > best ? value : best;
    }
    return best;
}

/* BOARDS in the environment: how many. */
static void values_of_10_to_14_empty_squares_are_those_of_a_quick_search(void **state)
{
    (void)state;
    uint64_t seed = begin_random();
    const char *text = getenv("BOARDS");
    const unsigned boards = text != NULL ? (unsigned)atoi(text) : 40 / TSAN_SEES_ONE_OF;
    for (unsigned i = 0; i < boards; i++) {
        const struct othello_board board = random_board(&seed, 10 + (text != NULL ? i % 5 : i % 2));
        int value = 1000;
        unsigned move;
        if (i % 7 == 0) {
            empty_memory();
        }
        assert_true(othello_solve(memory, board, -64, 64, NULL, &value, &move));
        assert_true(quick_value(board, value - 1, value + 1, false) == value);
    }
}

static bool go_on(void *self, unsigned nodes)
{
    (void)self, (void)nodes;
    return true;
}

/* What a selective search leaves in the memory is likely, and often wrong: it must not pass for
 * what is proved. */
static void a_selective_search_leaves_no_bounds_to_the_exact_one(void **state)
{
    (void)state;
    uint64_t seed = begin_random();
    const struct game_solver selective = {.count = go_on, .is_selective = true};
    unsigned wrong = 0;
    for (unsigned i = 0; i < 100 / TSAN_SEES_ONE_OF; i++) {
        const struct othello_board board = fill(&seed, 9);
        const int expected = oracle(board);
        int value = 1000;
        unsigned move;
        empty_memory();
        for (int alpha = expected - 6; alpha <= expected + 4; alpha += 2) {
            assert_true(othello_solve(memory, board, alpha, alpha + 2, &selective, &value, &move));
            wrong += (value > alpha) != (expected > alpha);
        }
        for (int alpha = expected - 6; alpha <= expected + 4; alpha += 2) {
            check_window(board, expected, alpha, alpha + 2);
        }
        check_window(board, expected, -64, 64);
        /* And the other way round: what is proved is known to the selective one. */
        assert_true(othello_solve(memory, board, -64, 64, &selective, &value, &move));
        assert_int_equal(value, expected);
    }
    assert_true(wrong > 0);
}

/* Nothing but null windows, as most of the search has. */
static void last_squares_are_those_of_plain_negamax(void **state)
{
    (void)state;
    uint64_t seed = begin_random();
    for (unsigned i = 0; i < 4000 / TSAN_SEES_ONE_OF; i++) {
        const struct othello_board board = random_board(&seed, i % (OTHELLO_LAST_MAX + 1));
        const unsigned empties = othello_count(othello_empties(board));
        if (empties > OTHELLO_LAST_MAX) {
            continue;
        }
        const int expected = oracle(board);
        for (int alpha = expected - 6; alpha <= expected + 6; alpha += 2) {
            unsigned nodes = 0;
            const int value = othello_last(board, empties, alpha, &nodes);
            assert_true(nodes > 0);
            assert_true(expected > alpha ? value > alpha && value <= expected
                                         : value <= alpha && value >= expected);
        }
    }
}

static void a_full_board_and_one_colour_alone(void **state)
{
    (void)state;
    int value = 0;
    unsigned move = 0;
    const struct othello_board full = {UINT64_C(0xffffffff), UINT64_C(0xffffffff00000000)};
    assert_true(othello_solve(memory, full, -64, 64, NULL, &value, &move));
    assert_int_equal(value, 0);
    assert_int_equal(move, OTHELLO_NO_MOVE);
    const struct othello_board alone = {0, UINT64_C(0xff00)};
    assert_true(othello_solve(memory, alone, -64, 64, NULL, &value, &move));
    assert_int_equal(value, -64);
    assert_true(othello_solve(memory, othello_pass(alone), -64, 64, NULL, &value, &move));
    assert_int_equal(value, 64);
    assert_int_equal(move, OTHELLO_NO_MOVE);
    const struct othello_board none = {0, 0};
    assert_true(othello_solve(memory, none, -64, 64, NULL, &value, &move));
    assert_int_equal(value, 0);
    /* Here black turns all that there is of white. */
    const struct othello_board won = {1, 2};
    assert_true(othello_solve(memory, won, 0, 1, NULL, &value, &move));
    assert_true(value >= 1);
    assert_int_equal(move, 2);
}

/* A disc that is called stable is never turned in any play-out. */
static void stable_discs_stay(void **state)
{
    (void)state;
    uint64_t seed = begin_random();
    for (unsigned i = 0; i < 3000 / TSAN_SEES_ONE_OF; i++) {
        struct othello_board board = random_board(&seed, 1 + rng_below(&seed, 30));
        uint64_t own = othello_stable(board.own, board.other);
        uint64_t other = othello_stable(board.other, board.own);
        assert_true((own & ~board.own) == 0 && (other & ~board.other) == 0);
        for (unsigned passes = 0; passes < 2;) {
            uint64_t moves = othello_moves(board.own, board.other);
            if (moves == 0) {
                passes++;
                board = othello_pass(board);
            } else {
                passes = 0;
                for (unsigned k = rng_below(&seed, othello_count(moves)); k > 0; k--) {
                    moves &= moves - 1;
                }
                const unsigned square = othello_first(moves);
                board = othello_play(board, square, othello_flips(board.own, board.other, square));
            }
            const uint64_t turn = own;
            own = other;
            other = turn;
            assert_true((own & ~board.own) == 0 && (other & ~board.other) == 0);
        }
    }
}

/* ---- problems with known scores ---- */

struct counter {
    unsigned calls, stop_at; /* 0: never */
    uint64_t nodes;
};

static bool count(void *self, unsigned nodes)
{
    struct counter *counter = self;
    counter->nodes += nodes;
    assert_true(nodes < 100000);
    return ++counter->calls != counter->stop_at;
}

/* Calls `check` for each problem with at most `most` empty squares. */
static void each_problem(const char *path, unsigned most,
                         void (*check)(struct othello_board board, int score, const char *moves))
{
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    char line[2048], why[OTHELLO_WHY_MAX];
    struct othello_board board;
    bool is_black;
    while (fgets(line, sizeof line, file) != NULL) {
        const char *score = strchr(line, ':'), *moves = strchr(line, ';');
        if (line[0] != '%' && score != NULL && othello_parse(line, &board, &is_black, why) &&
            othello_count(othello_empties(board)) <= most) {
            check(board, atoi(score + 1), moves);
        }
    }
    fclose(file);
}

static void check_problem(struct othello_board board, int score, const char *moves)
{
    struct counter counter = {0};
    const struct game_solver solver = {.self = &counter, .count = count};
    int value = 0;
    unsigned move = OTHELLO_NO_MOVE;
    assert_true(othello_solve(memory, board, -64, 64, &solver, &value, &move));
    assert_int_equal(value, score);
    char text[8];
    snprintf(text, sizeof text, "%c%c:%+d;", (char)('A' + move % 8), (char)('1' + move / 8), score);
    assert_non_null(strstr(moves, text));
    assert_true(counter.calls > 0 && counter.nodes > 0);
    /* From memory, at once and in any window. */
    struct counter again = {0};
    const struct game_solver second = {.self = &again, .count = count};
    assert_true(othello_solve(memory, board, score - 1, score + 1, &second, &value, &move));
    assert_int_equal(value, score);
    assert_non_null(strstr(moves, text));
    assert_true(again.nodes <= counter.nodes / 8 + 1);
}

static void problems_have_their_scores_and_moves(void **state)
{
    (void)state;
    empty_memory();
    each_problem("tests/data/othello/ffo-1-19.obf", 16, check_problem);
    each_problem("tests/data/othello/ffo.obf", 15, check_problem);
}

static void check_stopped(struct othello_board board, int score, const char *moves)
{
    (void)moves;
    for (unsigned stop_at = 1; stop_at <= 40; stop_at += 13) {
        struct counter counter = {.stop_at = stop_at};
        const struct game_solver solver = {.self = &counter, .count = count};
        int value = 1000;
        unsigned move = 1000;
        empty_memory();
        if (!othello_solve(memory, board, -64, 64, &solver, &value, &move)) {
            assert_int_equal(counter.calls, stop_at); /* it asks no more */
            assert_true(value == 1000 && move == 1000);
        }
        assert_true(othello_solve(memory, board, score - 2, score + 2, NULL, &value, &move));
        assert_int_equal(value, score);
    }
}

static void what_is_known_when_stopped_is_right(void **state)
{
    (void)state;
    each_problem("tests/data/othello/ffo-1-19.obf", 14, check_stopped);
}

static bool count_own(void *self, unsigned nodes)
{
    *(uint64_t *)self += nodes;
    return true;
}

/* A thread that solves the same board as others in the same memory. */
struct companion {
    struct othello_board board;
    bool divides;
    uint64_t nodes;
    int value;
};

static void *solve_in_common(void *argument)
{
    struct companion *c = argument;
    const struct game_solver solver = {
        .self = &c->nodes, .count = count_own, .divides = c->divides};
    unsigned move;
    c->value = 1000;
    (void)othello_solve(memory, c->board, -64, 64, &solver, &c->value, &move);
    return NULL;
}

/* Each says the true value. Returns the nodes of all. */
static uint64_t solve_together(struct othello_board board, unsigned threads, bool divides,
                               int score)
{
    enum { THREADS_MAX = 3 };
    struct companion companion[THREADS_MAX];
    pthread_t thread[THREADS_MAX];
    uint64_t nodes = 0;
    for (unsigned i = 0; i < threads; i++) {
        companion[i] = (struct companion){.board = board, .divides = divides};
        assert_int_equal(pthread_create(&thread[i], NULL, solve_in_common, &companion[i]), 0);
    }
    for (unsigned i = 0; i < threads; i++) {
        pthread_join(thread[i], NULL);
        assert_int_equal(companion[i].value, score);
        nodes += companion[i].nodes;
    }
    return nodes;
}

static int solved_alone(struct othello_board board)
{
    int value = 1000;
    unsigned move;
    assert_true(othello_solve(memory, board, -64, 64, NULL, &value, &move));
    return value;
}

static void check_in_common(struct othello_board board, int score, const char *moves)
{
    (void)moves;
    (void)solve_together(board, 3, false, score);
}

static void check_divided(struct othello_board board, int score, const char *moves)
{
    (void)moves;
    (void)solve_together(board, 3, true, score);
}

static void threads_share_a_memory(void **state)
{
    (void)state;
    empty_memory();
    each_problem("tests/data/othello/ffo-1-19.obf", 15, check_in_common);
    empty_memory();
    each_problem("tests/data/othello/ffo-1-19.obf", 15, check_divided);
}

/* What others are said to be in costs order, not truth: here every bucket says so of some board. */
static void what_the_dead_were_in_changes_no_value(void **state)
{
    (void)state;
    uint64_t seed = begin_random();
    for (unsigned byte = 0; byte < 256; byte += 51) {
        const struct othello_board board = fill(&seed, 14);
        empty_memory();
        const int expected = solved_alone(board);
        memset(memory, (int)byte, othello_memory_bytes());
        (void)solve_together(board, 1, true, expected);
    }
}

static int set_up(void **state)
{
    (void)state;
    assert_int_equal(othello_memory_bytes() & (othello_memory_bytes() - 1), 0);
    memory = aligned_alloc(64, othello_memory_bytes());
    assert_non_null(memory);
    empty_memory();
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    free(memory);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_those_of_plain_negamax),
        cmocka_unit_test(values_of_10_to_14_empty_squares_are_those_of_a_quick_search),
        cmocka_unit_test(a_selective_search_leaves_no_bounds_to_the_exact_one),
        cmocka_unit_test(last_squares_are_those_of_plain_negamax),
        cmocka_unit_test(a_full_board_and_one_colour_alone),
        cmocka_unit_test(stable_discs_stay),
        cmocka_unit_test(problems_have_their_scores_and_moves),
        cmocka_unit_test(what_is_known_when_stopped_is_right),
        cmocka_unit_test(threads_share_a_memory),
        cmocka_unit_test(what_the_dead_were_in_changes_no_value),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
