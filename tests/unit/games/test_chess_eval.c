#include "tests/support/test_chess.h"
#include "worker/games/chess/eval.h"

static void mirror(struct chess_position *to, const struct chess_position *from)
{
    chess_position_clear(to);
    for (unsigned s = 0; s < 64; s++) {
        if (from->board[s] != CHESS_EMPTY) {
            chess_position_put(to, from->board[s] ^ 8, s ^ 56);
        }
    }
    to->side = from->side ^ 1;
    to->castling = (uint8_t)(from->castling >> 2 | (from->castling & 3) << 2);
    to->ep = from->ep == CHESS_NO_SQUARE ? CHESS_NO_SQUARE : from->ep ^ 56;
    chess_position_refresh(to);
}

static void check_mirrored(struct chess_position *position)
{
    struct chess_position mirrored;
    mirror(&mirrored, position);
    int score = chess_eval(position);
    assert_int_equal(score, chess_eval(&mirrored));
    assert_true(score < CHESS_EVAL_MAX && score > -CHESS_EVAL_MAX);
    assert_int_equal(chess_movegen_count(position), chess_movegen_count(&mirrored));
}

static void colours_are_treated_alike(void **state)
{
    (void)state;
    test_random_play(150, check_mirrored);
}

static void check_counters(struct chess_position *position)
{
    struct chess_position other;
    chess_position_fork(&other, position);
    other.halfmoves = 77;
    other.fullmove = 5;
    other.castling = 0;
    assert_int_equal(chess_eval(&other), chess_eval(position));
}

static void counters_and_history_do_not_matter(void **state)
{
    (void)state;
    test_random_play(50, check_counters);
}

struct comparison {
    const char *better, *worse; /* for the side to move */
};

static void better_positions_score_more(void **state)
{
    (void)state;
    static const struct comparison cases[] = {
        {"startpos", "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKB1R w KQkq -"}, /* a knight more */
        {"4k3/8/4P3/8/8/8/8/4K3 w - -", "4k3/8/8/8/8/4P3/8/4K3 w - -"}, /* a passed pawn runs */
        {"4k3/pp6/8/8/8/8/PP6/4K3 w - -", "4k3/pp6/8/8/8/P7/P7/4K3 w - -"}, /* not doubled */
        {"4k3/ppp5/8/8/8/8/PPP5/4K3 w - -", "4k3/ppp5/8/8/8/8/P1P1P3/4K3 w - -"}, /* not isolated */
        {"r4rk1/ppp2ppp/3q4/8/8/3Q4/PPP2PPP/R4RK1 w - -",
         "r4rk1/ppp2ppp/3q4/8/5PPP/3Q4/PPP5/R4RK1 w - -"}, /* a king behind its pawns */
        {"4k3/8/8/8/8/8/PP6/3RK3 w - -", "4k3/8/8/8/8/8/PP6/R3K3 w - -"}, /* a file for the rook */
        {"7k/8/5K2/8/8/8/8/Q7 w - -", "7k/8/8/8/8/8/8/1QK5 w - -"}, /* driving a king to mate */
    };
    for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct chess_position better, worse;
        test_parse(&better, cases[i].better);
        test_parse(&worse, cases[i].worse);
        if (chess_eval(&better) <= chess_eval(&worse)) {
            fail_msg("%s: %d, %s: %d", cases[i].better, chess_eval(&better), cases[i].worse,
                     chess_eval(&worse));
        }
    }
}

static void hopeless_material_counts_little(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "4k3/8/8/8/8/8/8/3NKN2 w - -", /* two knights */
        "4kb2/8/8/8/8/8/8/4KR2 w - -", /* rook against bishop */
    };
    for (unsigned i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct chess_position position;
        test_parse(&position, texts[i]);
        int score = chess_eval(&position);
        assert_true(score > -80 && score < 80);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(colours_are_treated_alike),
        cmocka_unit_test(counters_and_history_do_not_matter),
        cmocka_unit_test(better_positions_score_more),
        cmocka_unit_test(hopeless_material_counts_little),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
