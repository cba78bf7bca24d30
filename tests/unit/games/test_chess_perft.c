#include "tests/support/test_chess.h"

/* PERFT_MAX_LEAVES: counts above it are skipped; 0 means none is. */
static uint64_t leaf_budget(void)
{
    const char *text = getenv("PERFT_MAX_LEAVES");
    uint64_t budget = text ? strtoull(text, NULL, 10) : 200000;
    return budget ? budget : UINT64_MAX;
}

struct tally {
    uint64_t budget, leaves;
    unsigned counts;
};

/* `rest` is ";D1 20 ;D2 400 ...". */
static void check_line(const char *fen, char *rest, void *context)
{
    struct tally *tally = context;
    struct chess_position position;
    test_parse(&position, fen);
    for (char *at = strchr(rest, ';'); at; at = strchr(at + 1, ';')) {
        unsigned depth;
        unsigned long long expected;
        assert_int_equal(sscanf(at, ";D%u %llu", &depth, &expected), 2);
        if (expected > tally->budget) {
            continue;
        }
        uint64_t found = chess_perft(&position, depth);
        if (found != expected) {
            fail_msg("%s depth %u: %llu leaves, not %llu", fen, depth, (unsigned long long)found,
                     expected);
        }
        tally->leaves += found;
        tally->counts++;
    }
}

static void legal_move_trees_have_the_published_sizes(void **state)
{
    (void)state;
    struct tally tally = {leaf_budget(), 0, 0};
    unsigned lines = test_each_line(PERFT_FILE, 6, check_line, &tally);
    assert_true(lines >= 113);
    assert_true(tally.counts >= lines); /* each position at depth 1 at least */
    print_message("%u positions, %u counts, %llu leaves\n", lines, tally.counts,
                  (unsigned long long)tally.leaves);
}

/* Published for Chess960 (A. Grant's list, which several engines repeat). */
static void trees_of_chess960_have_the_published_sizes(void **state)
{
    (void)state;
    static const struct {
        const char *fen;
        uint64_t leaves[5];
    } cases[] = {
        {"bqnb1rkr/pp3ppp/3ppn2/2p5/5P2/P2P4/NPP1P1PP/BQ1BNRKR w HFhf - 2 9",
         {21, 528, 12189, 326672, 8146062}},
        {"2nnrbkr/p1qppppp/8/1ppb4/6PP/3PP3/PPP2P2/BQNNRBKR w HEhe - 1 9",
         {21, 807, 18002, 667366, 16253601}},
        {"b1q1rrkb/pppppppp/3nn3/8/P7/1PPP4/4PPPP/BQNNRKRB w GE - 1 9",
         {20, 479, 10471, 273318, 6417013}},
    };
    for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct chess_position position;
        test_parse(&position, cases[i].fen);
        for (unsigned depth = 1; depth <= 5 && cases[i].leaves[depth - 1] <= leaf_budget();
             depth++) {
            assert_int_equal(chess_perft(&position, depth), cases[i].leaves[depth - 1]);
        }
    }
}

static void depth_zero_counts_the_position(void **state)
{
    (void)state;
    struct chess_position position;
    test_parse(&position, "startpos");
    assert_int_equal(chess_perft(&position, 0), 1);
}

static void check_count(struct chess_position *position)
{
    struct game_move list[GAME_MOVES_MAX];
    assert_int_equal(chess_movegen_count(position), chess_movegen_all(position, list));
}

static void counting_agrees_with_listing(void **state)
{
    (void)state;
    test_random_play(60, check_count);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(legal_move_trees_have_the_published_sizes),
        cmocka_unit_test(trees_of_chess960_have_the_published_sizes),
        cmocka_unit_test(depth_zero_counts_the_position),
        cmocka_unit_test(counting_agrees_with_listing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
