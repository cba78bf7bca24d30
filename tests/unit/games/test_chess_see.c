#include "tests/support/test_chess.h"
#include "worker/games/chess/chess.h"
#include "worker/games/chess/see.h"

enum { P = 100, N = 325, B = 325, R = 500, Q = 950 };

struct exchange {
    const char *fen, *move;
    int gain;
};

static const struct exchange exchanges[] = {
    {"1k1r4/1pp4p/p7/4p3/8/P5P1/1PP4P/2K1R3 w - -", "e1e5", P}, /* undefended */
    {"1k1r3q/1ppn3p/p4b2/4p3/8/P2N2P1/1PP1R1BP/2K1Q3 w - -", "d3e5", P - N},
    {"4k3/8/3p4/4p3/8/8/8/K3R3 w - -", "e1e5", P - R},
    {"4k3/8/3p4/4p3/8/8/4R3/K3R3 w - -", "e2e5", P - R + P}, /* the rook behind joins in */
    {"3r2k1/3r4/8/3p4/8/8/3R4/3R2K1 w - -", "d2d5", P - R},
    {"3r2k1/8/8/3p4/8/8/3R4/3R2K1 w - -", "d2d5", P}, /* taking back would lose a rook more */
    {"4k3/8/3n4/8/4P3/8/8/4K3 b - -", "d6e4", P},
    {"4k3/8/3n4/8/4P3/3P4/8/4K3 b - -", "d6e4", P - N},
    {"4k3/8/8/3pP3/8/8/8/4K3 w - d6", "e5d6", P},
    {"4k3/2p5/8/3pP3/8/8/8/4K3 w - d6", "e5d6", 0},
    {"3n3k/2P5/8/8/8/8/8/K7 w - -", "c7d8q", N + Q - P},
    {"3nr2k/2P5/8/8/8/8/8/K7 w - -", "c7d8q", N - P},
    {"7k/2P5/8/8/8/8/8/K7 w - -", "c7c8q", Q - P},
    {"4r2k/2P5/8/8/8/8/8/K7 w - -", "c7c8q", -P},
    {"4r2k/2P5/8/8/8/8/8/K7 w - -", "c7c8n", -P},
    {"8/8/8/3k4/4p3/8/3N4/3K4 w - -", "d2e4", P - N}, /* the king takes back */
    {"8/8/8/3k4/4p3/6N1/3N4/3K4 w - -", "d2e4", P}, /* but not what is defended */
    {"8/8/8/8/3k4/4p3/3K4/8 w - -", "d2d1", 0},
    {"7k/8/5b2/8/3p4/8/1B6/Q6K w - -", "b2d4", P}, /* a queen behind a bishop */
    {"7k/6q1/5b2/8/3p4/8/1B6/Q6K w - -", "b2d4", P - B + B - B + 0},
    {"r3k2r/8/8/8/8/8/8/R3K2R w KQkq -", "e1g1", 0},
    {"4k3/4q3/8/4b3/8/8/4R3/4RK2 w - -", "e2e5", B}, /* a queen would be lost for two rooks */
};

/* The value is pinned down by the highest threshold that is reached. */
static void exchanges_have_their_known_values(void **state)
{
    (void)state;
    for (unsigned i = 0; i < sizeof(exchanges) / sizeof(exchanges[0]); i++) {
        struct chess_position position;
        test_parse(&position, exchanges[i].fen);
        uint16_t move = 0;
        assert_int_equal(game_chess.parse_move(&position, exchanges[i].move, &move), ERR_OK);
        if (!chess_see_at_least(&position, move, exchanges[i].gain) ||
            chess_see_at_least(&position, move, exchanges[i].gain + 1)) {
            int found = -2000;
            while (chess_see_at_least(&position, move, found + 1)) {
                found++;
            }
            fail_msg("%s %s: %d, not %d", exchanges[i].fen, exchanges[i].move, found,
                     exchanges[i].gain);
        }
        assert_int_equal(game_chess.losing(&position, move), exchanges[i].gain < 0);
    }
}

/* The textbook recursion: each side takes with its least piece or stops. */
static int slow_recapture(const struct chess_position *position, unsigned to, uint64_t occupied,
                          unsigned side, unsigned occupant)
{
    static const int value[6] = {P, N, B, R, Q, 10000};
    uint64_t attackers = chess_attackers(position, to, side, occupied) & occupied;
    if (!attackers) {
        return 0;
    }
    unsigned kind = CHESS_PAWN;
    while (!(attackers & chess_set(position, side, kind))) {
        kind++;
    }
    uint64_t rest =
        occupied ^ bitboard_of(bitboard_first(attackers & chess_set(position, side, kind)));
    if (kind == CHESS_KING && (chess_attackers(position, to, side ^ 1, occupied) & occupied)) {
        return 0;
    }
    int gain = value[occupant] - slow_recapture(position, to, rest, side ^ 1, kind);
    return gain > 0 ? gain : 0;
}

static void check_captures(struct chess_position *position)
{
    static const int value[6] = {P, N, B, R, Q, 10000};
    struct game_move list[GAME_MOVES_MAX];
    unsigned count = chess_movegen_noisy(position, list);
    for (unsigned i = 0; i < count; i++) {
        unsigned from = chess_move_from(list[i].move), to = chess_move_to(list[i].move);
        if (chess_move_kind(list[i].move) != CHESS_CAPTURE) {
            continue;
        }
        uint64_t occupied = chess_occupied(position) ^ bitboard_of(from);
        int gain =
            value[position->board[to] & 7] -
            slow_recapture(position, to, occupied, position->side ^ 1, position->board[from] & 7);
        assert_true(chess_see_at_least(position, list[i].move, gain));
        assert_false(chess_see_at_least(position, list[i].move, gain + 1));
    }
}

static void thresholds_agree_with_the_full_recursion(void **state)
{
    (void)state;
    test_random_play(60, check_captures);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exchanges_have_their_known_values),
        cmocka_unit_test(thresholds_agree_with_the_full_recursion),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
