#include "tests/support/test_chess.h"
#include "worker/games/chess/chess.h"
#include "worker/games/chess/drawn_endings.h"
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
    assert_int_equal(chess_draws_likely(position), chess_draws_likely(&mirrored));
    assert_int_equal(game_chess.structure(position) == 0, chess_draws_likely(position));
    assert_int_equal(game_chess.structure(&mirrored) == 0, chess_draws_likely(position));
}

static void colours_are_treated_alike(void **state)
{
    (void)state;
    test_random_play(150, check_mirrored);
}

/* Few pieces: endings that random games hardly reach. */
static void endings_are_treated_alike(void **state)
{
    (void)state;
    uint64_t seed = 4;
    unsigned likely = 0;
    for (unsigned i = 0; i < 200000; i++) {
        static struct chess_position position;
        uint64_t taken = 0;
        chess_position_clear(&position);
        for (unsigned placed = 0; placed < 3 + i % 3;) {
            const unsigned square = (unsigned)rng_below(&seed, 64);
            const unsigned kind = placed < 2 ? CHESS_KING : (unsigned)rng_below(&seed, CHESS_KING);
            const unsigned colour = placed < 2 ? placed : (unsigned)rng_below(&seed, 2);
            if (!(taken & bitboard_of(square)) &&
                (kind != CHESS_PAWN || (square >= 8 && square < 56))) {
                chess_position_put(&position, kind | colour << 3, square);
                taken |= bitboard_of(square);
                placed++;
            }
        }
        position.side = (uint8_t)rng_below(&seed, 2);
        if (bitboard_distance(chess_king(&position, CHESS_WHITE),
                              chess_king(&position, CHESS_BLACK)) > 1 &&
            !chess_attackers(&position, chess_king(&position, position.side ^ 1u), position.side,
                             taken)) {
            chess_position_refresh(&position);
            check_mirrored(&position);
            likely += chess_draws_likely(&position);
        }
    }
    assert_true(likely > 1000);
}

/* Nobody is ahead in the endgame half, and one side's advantage would count, the other's not. */
static void even_endings_are_treated_alike(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "8/8/8/4P3/4k3/8/1N6/K1b5 w - -",
        "N7/K7/8/2P5/b7/4k3/8/8 w - -",
        "8/8/8/5k2/8/5P2/6b1/K4N2 b - -",
        "8/3p4/3p4/8/4k2K/8/8/N7 w - -",
    };
    for (unsigned i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        static struct chess_position position;
        test_parse(&position, texts[i]);
        assert_int_equal(CHESS_EG(position.score), 0);
        check_mirrored(&position);
    }
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
        {"4k3/7p/4P3/8/8/8/7P/4K3 w - -", "4k3/7p/8/8/8/4P3/7P/4K3 w - -"}, /* a passed pawn runs */
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

static void put_kings_and_pawn(struct chess_position *position, unsigned white, unsigned black,
                               unsigned pawn, unsigned side)
{
    chess_position_clear(position);
    chess_position_put(position, CHESS_KING, white);
    chess_position_put(position, CHESS_KING | 8, black);
    chess_position_put(position, CHESS_PAWN, pawn);
    position->side = (uint8_t)side;
}

/* As many as published tables have: 111,282 of 165,676 with the pawn on the files a to d. */
static void king_and_pawn_against_king_is_known(void **state)
{
    (void)state;
    static struct chess_position position, mirrored;
    unsigned legal = 0, won = 0;
    for (unsigned i = 0; i < 2 * 64 * 64 * 48; i++) {
        const unsigned white = i % 64, black = i / 64 % 64, pawn = 8 + i / 4096 % 48,
                       side = i / 4096 / 48;
        if (pawn % 8 > 3 || pawn == white || pawn == black ||
            bitboard_distance(white, black) <= 1) {
            continue;
        }
        put_kings_and_pawn(&position, white, black, pawn, side);
        if (side == CHESS_WHITE && bitboard_tables.pawn[CHESS_WHITE][pawn] & bitboard_of(black)) {
            continue;
        }
        const bool drawn = chess_draws_known(&position);
        legal++;
        won += !drawn;
        mirror(&mirrored, &position);
        assert_int_equal(chess_draws_known(&mirrored), drawn);
        put_kings_and_pawn(&position, white ^ 7, black ^ 7, pawn ^ 7, side);
        assert_int_equal(chess_draws_known(&position), drawn);
    }
    assert_int_equal(legal, 165676);
    assert_int_equal(won, 111282);
}

static void draws_are_known(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool known, dead;
    } cases[] = {
        {"8/8/8/8/4k3/8/8/K7 b - -", true, true},
        {"8/8/8/8/4k3/8/8/KN6 b - -", true, true},
        {"8/8/8/8/4k3/8/1B6/K1B5 b - -", true, true},
        {"8/8/4k3/8/8/B1B5/1B6/K7 b - -", true, true},
        {"8/8/4k1b1/7b/8/B1B5/1B6/K7 b - -", false, false}, /* bishops of both colours */
        {"8/8/4k3/5b2/8/B1B5/1B6/K7 b - -", false, false},
        {"8/8/4kb2/8/8/B1B5/1B6/K7 b - -", true, true},
        {"8/8/8/8/4k3/8/8/KNN5 b - -", false, false},
        {"8/8/8/8/4k3/8/8/KNB5 b - -", false, false},
        {"8/8/4k3/8/8/8/8/KR6 b - -", false, false},
        {"8/8/2k5/8/2P5/2K5/8/8 w - -", true, false},
        {"8/8/2k5/2p5/8/2K5/8/8 b - -", true, false},
        {"8/2k5/8/2K5/2P5/8/8/8 b - -", false, false},
        {"1k6/8/P7/8/8/8/5B2/6K1 b - -", true, false},
        {"1k6/8/P7/8/8/5B2/8/6K1 b - -", false, false}, /* the right bishop */
        {"2k5/8/P7/8/8/8/5B2/6K1 b - -", false, false}, /* too far to tell */
        {"k7/8/P7/P7/8/P7/8/B5K1 w - -", true, false},
        {"k7/8/P7/PP6/8/8/8/B5K1 w - -", false, false},
        {"k7/8/P7/8/8/8/7P/B5K1 w - -", false, false},
        {"6b1/8/8/8/8/5kpp/7p/7K w - -", false, false}, /* a pawn elsewhere */
        {"6k1/8/5b2/8/7p/7p/6K1/8 w - -", true, false}, /* h1 is light, and f6 dark */
        {"6k1/8/4b3/8/7p/7p/6K1/8 w - -", false, false},
    };
    for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        static struct chess_position position;
        test_parse(&position, cases[i].text);
        if (chess_draws_known(&position) != cases[i].known ||
            chess_draws_dead(&position) != cases[i].dead) {
            fail_msg("%s", cases[i].text);
        }
        assert_true(!cases[i].known || chess_eval(&position) == 0);
        assert_int_equal(game_chess.drawn(&position, 0) == GAME_DRAWN_HERE, cases[i].known);
        assert_int_equal(game_chess.ended(&position), cases[i].dead);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(colours_are_treated_alike),
        cmocka_unit_test(endings_are_treated_alike),
        cmocka_unit_test(even_endings_are_treated_alike),
        cmocka_unit_test(counters_and_history_do_not_matter),
        cmocka_unit_test(better_positions_score_more),
        cmocka_unit_test(hopeless_material_counts_little),
        cmocka_unit_test(king_and_pawn_against_king_is_known),
        cmocka_unit_test(draws_are_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
