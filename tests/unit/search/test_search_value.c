/* The value of a search: against a plain minimax, in mates, at the ends of games. */
#include "tests/support/test_search.h"

#include "worker/search/node.h"

/* ---- minimax without anything: the definition of a strict value ---- */

static int from_below(int child)
{
    int v = -child;
    if (v > GAME_MATE_MIN) {
        return v - 1;
    }
    return v < -GAME_MATE_MIN ? v + 1 : v;
}

static int plain_quiesce(void *position)
{
    const struct game *game = test_game();
    struct game_move list[GAME_MOVES_MAX];
    bool check = game->check(position);
    unsigned n = game->generate_noisy(position, list);
    if (check && n == 0) {
        return game->finished(position);
    }
    int best = check ? -GAME_INFINITE : game->evaluate(position);
    for (unsigned i = 0; i < n; i++) {
        if (check || !game->losing(position, list[i].move)) {
            game->make(position, list[i].move);
            int v = from_below(plain_quiesce(position));
            game->unmake(position, list[i].move);
            best = v > best ? v : best;
        }
    }
    return best;
}

static int plain_value(void *position, int depth)
{
    const struct game *game = test_game();
    struct game_move list[GAME_MOVES_MAX];
    if (depth == 0) {
        return plain_quiesce(position);
    }
    unsigned n = game->generate(position, list);
    int best = n == 0 ? game->finished(position) : -GAME_INFINITE;
    for (unsigned i = 0; i < n; i++) {
        game->make(position, list[i].move);
        int v = from_below(plain_value(position, depth - 1 + game->check(position)));
        game->unmake(position, list[i].move);
        best = v > best ? v : best;
    }
    return best;
}

static const struct {
    const char *text;
    unsigned depth;
} small[] = {
    {"8/8/8/4k3/8/4K3/4P3/8 w - - 0 1", 6}, /* king and pawn */
    {"8/2p5/3p4/KP5r/1R3p1k/8/4P1P1/8 w - - 0 1", 3}, /* pins, en passant */
    {"8/8/8/2k5/2pP4/8/B7/4K3 b - d3 0 3", 3}, /* en passant here and now */
    {"r7/1P2k3/8/8/8/8/4K1p1/5N2 b - - 0 1", 3}, /* promotions */
    {"6k1/5ppp/8/8/8/8/5PPP/R5K1 w - - 0 1", 4}, /* mate on the back rank */
    {"7k/8/5K2/6Q1/8/8/8/8 w - - 0 1", 5}, /* mates and stalemates */
    {"4k3/8/8/8/8/8/4r3/R3K2R w KQ - 0 1", 4}, /* in check */
    {"r3k2r/8/8/8/8/8/8/R3K2R b KQkq - 0 1", 3}, /* castling */
    {"2r3k1/5pp1/8/8/2R5/8/2R2PPP/6K1 w - - 0 1", 4}, /* exchanges on a file */
    {"r1bqkbnr/pppp1ppp/2n5/4p3/4P3/5N2/PPPP1PPP/RNBQKB1R w KQkq - 2 3", 2},
    {"8/8/1p1k4/1P1p4/1K1P4/8/8/8 b - - 0 1", 6}, /* zugzwang */
};

static void a_strict_score_is_that_of_minimax(void **state)
{
    (void)state;
    struct rig *rig[] = {
        rig_open("sequential", 1, EMBEDDED_NEVER, RIG_BYTES),
        rig_open("abdada", 1, 1, RIG_BYTES),
        rig_open("abdada-paper", 1, 1, RIG_BYTES),
        rig_open("shared-table", 1, 1, RIG_BYTES),
    };
    for (unsigned i = 0; i < sizeof small / sizeof small[0]; i++) {
        for (unsigned depth = 1; depth <= small[i].depth; depth++) {
            test_parse(rig[0]->position, small[i].text);
            int value = plain_value(rig[0]->position, (int)depth);
            for (unsigned r = 0; r < 4; r++) {
                rig_run_text(rig[r], small[i].text, depth);
                rig_expect_score(rig[r], depth, value);
            }
        }
    }
    for (unsigned r = 0; r < 4; r++) {
        rig_close(rig[r]);
    }
}

static void the_best_move_earns_the_score(void **state)
{
    (void)state;
    struct rig *rig = rig_open("sequential", 1, EMBEDDED_NEVER, RIG_BYTES);
    for (unsigned i = 0; i < sizeof small / sizeof small[0]; i++) {
        rig_run_text(rig, small[i].text, small[i].depth);
        const struct search_result *r = &rig->searcher[0].result;
        test_game()->make(rig->position, r->move);
        int depth = (int)small[i].depth - 1 + test_game()->check(rig->position);
        assert_int_equal(from_below(plain_value(rig->position, depth)), r->score);
    }
    rig_close(rig);
}

static void the_size_of_the_table_does_not_change_a_strict_score(void **state)
{
    (void)state;
    struct suite suite = test_positions();
    struct rig *big = oracle_open(), *tiny = rig_open("sequential", 1, EMBEDDED_NEVER, 64);
    struct rig *small_one = rig_open("abdada", 1, 2, 1 << 14);
    for (unsigned i = 0; i < 4; i++) {
        rig_run_text(big, suite.at[i].position, 4);
        rig_run_text(tiny, suite.at[i].position, 4);
        rig_run_text(small_one, suite.at[i].position, 4);
        rig_expect_score(tiny, 4, big->searcher[0].result.score);
        rig_expect_score(small_one, 4, big->searcher[0].result.score);
        rig_run_text(big, suite.at[i].position, 4); /* over a table full of itself */
        rig_expect_score(big, 4, tiny->searcher[0].result.score);
    }
    rig_close(big);
    rig_close(tiny);
    rig_close(small_one);
    suite_close(&suite);
}

/* ---- mates ---- */

static const struct {
    const char *text;
    int plies; /* to mate; negative: the side to move is mated */
} mates[] = {
    {"6k1/5ppp/8/8/8/8/8/R6K w - - 0 1", 1}, {"7k/8/8/8/8/8/R7/1R5K w - - 0 1", 3},
    {"7k/R7/8/8/8/8/8/1R5K b - - 0 1", -2},  {"r6k/8/8/8/8/8/5PPP/6K1 b - - 0 1", 1},
    {"6k1/8/8/8/8/8/R7/1R5K w - - 0 1", 3},  {"8/8/8/6k1/8/8/R7/1R5K w - - 0 1", 5},
};

/* The line of a mate score ends in mate after as many plies as the score says. */
static void expect_mate_line(struct rig *rig, const struct search_result *r, int plies)
{
    const struct game *game = test_game();
    struct game_move list[GAME_MOVES_MAX];
    assert_int_equal(r->pv.length, plies < 0 ? -plies : plies);
    for (unsigned i = 0; i < r->pv.length; i++) {
        game->make(rig->position, r->pv.move[i]);
    }
    assert_int_equal(game->generate(rig->position, list), 0);
    assert_int_equal(game->finished(rig->position), -GAME_MATE);
}

static void a_mate_is_found_with_its_distance(void **state)
{
    (void)state;
    struct rig *rig = rig_open("abdada", 1, 2, RIG_BYTES);
    for (unsigned i = 0; i < sizeof mates / sizeof mates[0]; i++) {
        int plies = mates[i].plies;
        unsigned depth = plies < 0 ? (unsigned)-plies : (unsigned)plies;
        rig_run_text(rig, mates[i].text, depth);
        rig_expect_score(rig, depth, plies < 0 ? -GAME_MATE - plies : GAME_MATE - plies);
        expect_mate_line(rig, &rig->searcher[0].result, plies);
        if (depth > 3) {
            continue;
        }
        rig_run_text(rig, mates[i].text, depth + 1); /* and is the same in a deeper search */
        rig_expect_score(rig, depth + 1, plies < 0 ? -GAME_MATE - plies : GAME_MATE - plies);
    }
    rig_close(rig);
}

static void a_mate_seen_from_another_ply_is_not_mistaken(void **state)
{
    (void)state;
    /* The same table is asked from every position of the line, forwards and backwards. */
    struct rig *rig = rig_open("abdada", 1, 1, RIG_BYTES);
    rig_run_text(rig, mates[5].text, 5);
    struct search_line line = rig->searcher[0].result.pv;
    for (unsigned round = 0; round < 2; round++) {
        for (unsigned i = 0; i < line.length; i++) {
            unsigned at = round == 0 ? i : line.length - 1 - i;
            test_parse(rig->position, mates[5].text);
            for (unsigned k = 0; k < at; k++) {
                test_game()->make(rig->position, line.move[k]);
            }
            int left = 5 - (int)at;
            rig_run(rig, (unsigned)left);
            rig_expect_score(rig, (unsigned)left, at % 2 ? left - GAME_MATE : GAME_MATE - left);
        }
    }
    rig_close(rig);
}

static void when_the_game_is_over_there_is_no_move(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int score;
    } over[] = {
        {"7k/5Q2/6K1/8/8/8/8/8 b - - 0 1", 0},
        {"R5k1/5ppp/8/8/8/8/8/7K b - - 0 1", -GAME_MATE},
    };
    struct rig *rig = rig_open("abdada", 2, 2, RIG_BYTES);
    for (unsigned i = 0; i < 2; i++) {
        rig_run_text(rig, over[i].text, 5);
        rig_expect_score(rig, 5, over[i].score);
        assert_int_equal(rig->searcher[0].result.move, 0);
        assert_int_equal(rig->searcher[0].result.pv.length, 0);
        assert_int_equal(rig->searcher[0].watch.opens, 0);
    }
    rig_close(rig);
}

/* ---- lines ---- */

static void the_line_is_legal_and_begins_with_the_move(void **state)
{
    (void)state;
    const struct game *game = test_game();
    struct suite suite = test_positions();
    struct rig *rig = rig_open("abdada", 2, 2, RIG_BYTES);
    for (unsigned i = 0; i < suite.count; i++) {
        rig_run_text(rig, suite.at[i].position, 3);
        for (unsigned d = 0; d < rig->searchers; d++) {
            const struct search_result *r = &rig->searcher[d].result;
            assert_in_range(r->pv.length, 1, SEARCH_PV_MAX);
            assert_int_equal(r->pv.move[0], r->move);
            test_parse(rig->position, suite.at[i].position);
            for (unsigned k = 0; k < r->pv.length; k++) {
                struct game_move list[GAME_MOVES_MAX];
                unsigned n = game->generate(rig->position, list), at = 0;
                while (at < n && list[at].move != r->pv.move[k]) {
                    at++;
                }
                assert_true(at < n);
                game->make(rig->position, r->pv.move[k]);
            }
        }
    }
    rig_close(rig);
    suite_close(&suite);
}

/* ---- mate distance: score_up and bound_down ---- */

static void bounds_and_scores_cross_a_ply_consistently(void **state)
{
    (void)state;
    int last_up = GAME_INFINITE + 1, last_down = GAME_INFINITE + 1;
    for (int v = -GAME_INFINITE; v <= GAME_INFINITE; v++) {
        assert_true(score_up(v) <= last_up);
        assert_true(bound_down(v) <= last_down);
        assert_true(v != 0 || (score_up(v) == 0 && bound_down(v) == 0));
        last_up = score_up(v);
        last_down = bound_down(v);
        /* A bound goes down and its own score comes back up. GAME_MATE_MIN itself is no score. */
        if (v > -GAME_MATE && v < GAME_MATE) {
            assert_int_equal(score_up(bound_down(v)), v);
        }
    }
}

/* What the child's window decides is what the parent's would: score_up(v) >= b if and only if
 * v <= bound_down(b), for every score a position can have. */
static void a_window_decides_the_same_on_both_sides_of_a_ply(void **state)
{
    (void)state;
    for (int b = -GAME_INFINITE; b <= GAME_INFINITE; b += b < -29900 || b >= 29900 ? 1 : 97) {
        int scores[] = {-GAME_MATE, -GAME_MATE_MIN - 1, -GAME_MATE_MIN + 1, -1,       0,
                        1,          GAME_MATE_MIN - 1,  GAME_MATE_MIN + 1,  GAME_MATE};
        for (int v = bound_down(b) - 3; v <= bound_down(b) + 3; v++) {
            bool is_score =
                v >= -GAME_MATE && v <= GAME_MATE && v != -GAME_MATE_MIN && v != GAME_MATE_MIN;
            assert_true(!is_score || (score_up(v) >= b) == (v <= bound_down(b)));
        }
        for (unsigned i = 0; i < sizeof scores / sizeof scores[0]; i++) {
            assert_int_equal(score_up(scores[i]) >= b, scores[i] <= bound_down(b));
        }
    }
}

/* Searches of different namespaces share a table and none of its results. */
static void namespaces_never_meet(void **state)
{
    (void)state;
    static const char *const text = "3r1k2/4npp1/1ppr3p/p6P/P2PPPP1/1NR5/5K2/2R5 w - - 0 1";
    struct rig *rig = rig_open("sequential", 1, 2, RIG_BYTES);
    uint64_t nodes[3];
    const uint64_t namespace_id[3] = {rng_mix(1), rng_mix(1), rng_mix(2)};
    for (unsigned i = 0; i < 3; i++) {
        rig->searcher[0].options.namespace_id = namespace_id[i];
        rig_run_text(rig, text, 5);
        nodes[i] = rig->searcher[0].counters.nodes;
    }
    assert_true(nodes[1] < nodes[0] / 2);
    assert_true(nodes[2] > nodes[0] * 3 / 4);
    rig_close(rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_strict_score_is_that_of_minimax),
        cmocka_unit_test(the_best_move_earns_the_score),
        cmocka_unit_test(the_size_of_the_table_does_not_change_a_strict_score),
        cmocka_unit_test(a_mate_is_found_with_its_distance),
        cmocka_unit_test(a_mate_seen_from_another_ply_is_not_mistaken),
        cmocka_unit_test(when_the_game_is_over_there_is_no_move),
        cmocka_unit_test(the_line_is_legal_and_begins_with_the_move),
        cmocka_unit_test(bounds_and_scores_cross_a_ply_consistently),
        cmocka_unit_test(a_window_decides_the_same_on_both_sides_of_a_ply),
        cmocka_unit_test(namespaces_never_meet),
    };
    return cmocka_run_group_tests_name("search_value", tests, NULL, NULL);
}
