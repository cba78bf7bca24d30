#include "tests/support/test_chess.h"
#include "worker/games/chess/chess.h"
#include "worker/games/chess/san.h"

static void check_round_trip(struct chess_position *position)
{
    struct game_move list[GAME_MOVES_MAX];
    unsigned count = chess_movegen_all(position, list);
    for (unsigned i = 0; i < count; i++) {
        char text[CHESS_SAN_MAX], decorated[CHESS_SAN_MAX + 4];
        uint16_t move = 0;
        chess_san_format(position, list[i].move, text);
        assert_int_equal(chess_san_parse(position, text, &move), ERR_OK);
        assert_int_equal(move, list[i].move);
        snprintf(decorated, sizeof(decorated), "%s!?", text);
        move = 0;
        assert_int_equal(chess_san_parse(position, decorated, &move), ERR_OK);
        assert_int_equal(move, list[i].move);
    }
}

static void every_legal_move_is_read_as_it_is_written(void **state)
{
    (void)state;
    test_random_play(25, check_round_trip);
}

/* `rest` is "bm Nd5 a4; id ...". The files' + and # must come out again. */
static void check_best_moves(const char *fen, char *rest, void *context)
{
    unsigned *moves = context;
    struct chess_position position;
    test_parse(&position, fen);
    assert_memory_equal(rest, "bm ", 3);
    rest[strcspn(rest, ";")] = '\0';
    for (char *text = strtok(rest + 3, " "); text; text = strtok(NULL, " ")) {
        uint16_t move = 0;
        if (chess_san_parse(&position, text, &move)) {
            fail_msg("%s: %s is not legal", fen, text);
        }
        char again[CHESS_SAN_MAX];
        chess_san_format(&position, move, again);
        assert_string_equal(again, text);
        ++*moves;
    }
}

static void published_best_moves_are_legal(void **state)
{
    (void)state;
    unsigned moves = 0;
    test_each_line(BRATKO_KOPEC_FILE, 4, check_best_moves, &moves);
    assert_int_equal(moves, 26);
}

struct named {
    const char *fen, *text, *coordinates;
};

static const struct named readings[] = {
    {"startpos", "Nf3", "g1f3"},
    {"startpos", "Ng1f3", "g1f3"},
    {"startpos", "Ngf3", "g1f3"},
    {"startpos", "N1f3", "g1f3"},
    {"startpos", "e4", "e2e4"},
    {"startpos", "e2e4", "e2e4"},
    {"r3k2r/8/8/8/8/8/8/R3K2R w KQkq -", "O-O", "e1g1"},
    {"r3k2r/8/8/8/8/8/8/R3K2R w KQkq -", "0-0-0!", "e1c1"},
    {"r3k2r/8/8/8/8/8/8/R3K2R b KQkq -", "0-0", "e8g8"},
    {"r3k2r/8/8/8/8/8/8/R3K2R b KQkq -", "O-O-O", "e8c8"},
    {"r3k2r/8/8/8/8/8/8/R3K2R b KQkq -", "o-o", "e8g8"},
    {"r3k2r/8/8/8/8/8/8/R3K2R w KQkq -", "o-o-o", "e1c1"},
    {"3n4/2P1k3/8/8/8/8/8/4K3 w - -", "cxd8=b+", "c7d8b"},
    {"4k3/8/8/3pP3/8/8/8/4K3 w - d6", "exd6", "e5d6"},
    {"4k3/8/8/3pP3/8/8/8/4K3 w - d6", "ed6", "e5d6"},
    {"4k3/8/8/3pP3/8/8/8/4K3 w - d6", "exd6ep", "e5d6"},
    {"4k3/8/8/3pP3/8/8/8/4K3 w - d6", "exd6e.p.+", "e5d6"},
    {"4k3/8/8/3pP3/8/8/8/4K3 w - d6", "e5xd6!e.p.", "e5d6"},
    {"3n4/2P1k3/8/8/8/8/8/4K3 w - -", "c8/Q", "c7c8q"},
    {"3n4/2P1k3/8/8/8/8/8/4K3 w - -", "cxd8/n+", "c7d8n"},
    {"4k3/8/8/3pP3/8/8/8/4K3 w - d6", "e5xd6", "e5d6"},
    {"3n4/2P1k3/8/8/8/8/8/4K3 w - -", "cxd8=Q+", "c7d8q"},
    {"3n4/2P1k3/8/8/8/8/8/4K3 w - -", "cxd8N", "c7d8n"},
    {"3n4/2P1k3/8/8/8/8/8/4K3 w - -", "c8=R", "c7c8r"},
    {"4k3/8/8/2p5/1B6/8/8/4K3 w - -", "Bxc5", "b4c5"},
    {"4k3/8/8/2p5/1P6/8/8/4K3 w - -", "bxc5", "b4c5"},
};

static void many_spellings_are_understood(void **state)
{
    (void)state;
    for (unsigned i = 0; i < sizeof(readings) / sizeof(readings[0]); i++) {
        struct chess_position position;
        test_parse(&position, readings[i].fen);
        uint16_t move = 0;
        if (chess_san_parse(&position, readings[i].text, &move)) {
            fail_msg("%s: %s", readings[i].fen, readings[i].text);
        }
        char text[GAME_MOVE_TEXT_MAX];
        game_chess.format_move(&position, move, text);
        assert_string_equal(text, readings[i].coordinates);
    }
}

static const struct named writings[] = {
    {"4k3/8/8/8/8/8/4K3/R6R w - -", "Rad1", "a1d1"}, /* same rank */
    {"R3k3/8/8/8/8/8/4K3/R7 b - -", "Kd7", "e8d7"},
    {"R7/4k3/8/8/8/8/4K3/R7 w - -", "R1a4", "a1a4"}, /* same file */
    {"1k6/8/8/8/4Q2Q/8/8/K6Q w - -", "Qh4e1", "h4e1"}, /* both */
    {"7k/8/8/8/8/2N5/8/K5N1 w - -", "Nce2", "c3e2"},
    {"4k3/8/4r3/8/4N3/8/8/2N1K3 w - -", "Nd3", "c1d3"}, /* the other knight is pinned */
    {"6k1/5ppp/8/8/8/8/8/R3K3 w - -", "Ra8#", "a1a8"},
    {"4k2r/8/8/8/8/8/8/5K2 b k -", "O-O+", "e8g8"},
    {"7k/P7/8/8/8/8/8/K7 w - -", "a8=Q+", "a7a8q"},
    {"7k/P7/8/8/8/8/8/K7 w - -", "a8=N", "a7a8n"},
};

static void moves_are_written_as_short_as_they_can_be(void **state)
{
    (void)state;
    for (unsigned i = 0; i < sizeof(writings) / sizeof(writings[0]); i++) {
        struct chess_position position;
        test_parse(&position, writings[i].fen);
        uint16_t move = 0;
        assert_int_equal(game_chess.parse_move(&position, writings[i].coordinates, &move), ERR_OK);
        char text[CHESS_SAN_MAX];
        chess_san_format(&position, move, text);
        assert_string_equal(text, writings[i].text);
    }
}

struct refused {
    const char *fen, *text;
    enum err err;
};

static void bad_texts_are_refused(void **state)
{
    (void)state;
    static const struct refused cases[] = {
        {"startpos", "", ERR_SYNTAX},
        {"startpos", "+", ERR_SYNTAX},
        {"startpos", "N", ERR_SYNTAX},
        {"startpos", "Nf9", ERR_SYNTAX},
        {"startpos", "Xf3", ERR_SYNTAX},
        {"startpos", "N-f3", ERR_SYNTAX},
        {"startpos", "Ng1xxf3", ERR_SYNTAX},
        {"startpos", "=Q", ERR_SYNTAX},
        {"startpos", "Nf4", ERR_ILLEGAL},
        {"startpos", "Nxf3", ERR_ILLEGAL},
        {"startpos", "O-O", ERR_ILLEGAL},
        {"startpos", "e4=Q", ERR_ILLEGAL},
        {"4k3/8/8/8/8/8/4K3/R6R w - -", "Rd1", ERR_ILLEGAL}, /* two rooks can */
        {"7k/P7/8/8/8/8/8/K7 w - -", "a8", ERR_ILLEGAL}, /* to what? */
        {"7k/P7/8/8/8/8/8/K7 w - -", "a8=K", ERR_SYNTAX},
    };
    for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct chess_position position;
        test_parse(&position, cases[i].fen);
        uint16_t move = 77;
        enum err err = chess_san_parse(&position, cases[i].text, &move);
        if (err != cases[i].err) {
            fail_msg("%s: %s gives %d", cases[i].fen, cases[i].text, (int)err);
        }
        assert_int_equal(move, 77);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_legal_move_is_read_as_it_is_written),
        cmocka_unit_test(published_best_moves_are_legal),
        cmocka_unit_test(many_spellings_are_understood),
        cmocka_unit_test(moves_are_written_as_short_as_they_can_be),
        cmocka_unit_test(bad_texts_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
