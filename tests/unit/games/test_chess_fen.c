#include "tests/support/test_chess.h"
#include "worker/games/chess/chess.h"

static void check_round_trip(struct chess_position *position)
{
    char text[GAME_TEXT_MAX], again[GAME_TEXT_MAX];
    chess_position_format(position, text);
    struct chess_position copy;
    test_parse(&copy, text);
    chess_position_format(&copy, again);
    assert_string_equal(text, again);
    assert_int_equal(position->key, copy.key);
    assert_int_equal(position->score, copy.score);
    assert_memory_equal(position->board, copy.board, sizeof(copy.board));
    assert_memory_equal(position->set, copy.set, sizeof(copy.set));
}

static void positions_survive_text(void **state)
{
    (void)state;
    test_random_play(80, check_round_trip);
}

static void check_same_text(const char *fen, char *rest, void *context)
{
    (void)rest;
    unsigned *different = context;
    struct chess_position position;
    test_parse(&position, fen);
    char text[GAME_TEXT_MAX];
    chess_position_format(&position, text);
    *different += strcmp(fen, text) != 0;
}

/* Lines of the perft file differ only where an idle en-passant square is dropped. */
static void text_is_written_as_it_was_read(void **state)
{
    (void)state;
    unsigned different = 0;
    test_each_line(PERFT_FILE, 6, check_same_text, &different);
    print_message("%u lines with an idle en-passant square\n", different);
    assert_true(different < 12);
}

static void short_forms_are_accepted(void **state)
{
    (void)state;
    static const char *const forms[] = {
        "startpos",
        " startpos\n",
        CHESS_START,
        "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq -",
        "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0",
        "  rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR   w  qkQK  -  0  1  ",
    };
    for (unsigned i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
        struct chess_position position;
        test_parse(&position, forms[i]);
        char text[GAME_TEXT_MAX];
        chess_position_format(&position, text);
        assert_string_equal(text, CHESS_START);
    }
}

struct bad {
    const char *text;
    enum err err;
    const char *why; /* part of the message */
};

static const struct bad bad_texts[] = {
    {"", ERR_SYNTAX, "3 to 6 fields, not 0"},
    {"start", ERR_SYNTAX, "3 to 6 fields, not 1"},
    {"4k3/8/8/8/8/8/8/4K3 w", ERR_SYNTAX, "3 to 6 fields, not 2"},
    {"4k3/8/8/8/8/8/8/4K3 w - - 0 1 x", ERR_SYNTAX, "more than 6"},
    {"4k3/8/8/8/8/8/8/4K2x w - - 0 1", ERR_SYNTAX, "'x' is not a piece"},
    {"4k3/8/8/8/8/8/8/4K2. w - - 0 1", ERR_SYNTAX, "'.' is not a piece"},
    {"4k3/8/8/8/8/8/8/4K2\x01 w - - 0 1", ERR_SYNTAX, "'?' is not a piece"},
    {"4k3/8/8/8/8/8/8/4K30 w - - 0 1", ERR_SYNTAX, "'0' is not a piece"},
    {"4k3/9/8/8/8/8/8/4K3 w - - 0 1", ERR_SYNTAX, "'9' is not a piece"},
    {"4k3/7/8/8/8/8/8/4K3 w - - 0 1", ERR_SYNTAX, "rank 7 has 7 squares"},
    {"4k3/8/8/8/8/8/8/4K2 w - - 0 1", ERR_SYNTAX, "rank 1 has 7 squares"},
    {"4k3/8p/8/8/8/8/8/4K3 w - - 0 1", ERR_SYNTAX, "rank 7 has more than 8"},
    {"4k4/8/8/8/8/8/8/4K3 w - - 0 1", ERR_SYNTAX, "rank 8 has more than 8"},
    {"4k3/8/8/8/8/8/4K3 w - - 0 1", ERR_SYNTAX, "7 ranks"},
    {"4k3/8/8/8/8/8/8/8/4K3 w - - 0 1", ERR_SYNTAX, "more than 8 ranks"},
    {"4k3/8/8/8/8/8/8/4K3/ w - - 0 1", ERR_SYNTAX, "more than 8 ranks"},
    {"4k3/8/8/8/8/8/8/4K3 x - - 0 1", ERR_SYNTAX, "not w or b"},
    {"4k3/8/8/8/8/8/8/4K3 wb - - 0 1", ERR_SYNTAX, "not w or b"},
    {"4k3/8/8/8/8/8/8/4K2R w X - 0 1", ERR_SYNTAX, "'X' is not a castling right"},
    {"4k3/8/8/8/8/8/8/4K2R w K- - 0 1", ERR_SYNTAX, "'-' is not a castling right"},
    {"4k3/8/8/8/8/8/8/4K2R w KK - 0 1", ERR_SYNTAX, "'K' twice"},
    {"4k3/8/8/8/8/8/4K3/7R w KKKK - 0 1", ERR_SYNTAX, "'K' twice"},
    {"4k3/8/8/8/8/8/8/4K2R w KH - 0 1", ERR_SYNTAX, "'H' twice"},
    {"4k3/8/8/8/8/8/8/R3K3 w QA - 0 1", ERR_SYNTAX, "'A' twice"},
    {"4k3/8/8/8/8/8/8/R3K3 w I - 0 1", ERR_SYNTAX, "'I' is not a castling right"},
    {"4k3/8/8/8/8/8/8/4K3 w - e 0 1", ERR_SYNTAX, "not a square or -"},
    {"4k3/8/8/8/8/8/8/4K3 w - i6 0 1", ERR_SYNTAX, "not a square or -"},
    {"4k3/8/8/8/8/8/8/4K3 w - e9 0 1", ERR_SYNTAX, "not a square or -"},
    {"4k3/8/8/8/8/8/8/4K3 w - - x 1", ERR_SYNTAX, "halfmove clock is not a number"},
    {"4k3/8/8/8/8/8/8/4K3 w - - -1 1", ERR_SYNTAX, "halfmove clock is not a number"},
    {"4k3/8/8/8/8/8/8/4K3 w - - 0 1.", ERR_SYNTAX, "move number is not a number"},
    {"4k3/8/8/8/8/8/8/4K3 w - - 0 10000", ERR_SYNTAX, "move number above 9999"},
    {"4k3/8/8/8/8/8/8/4K3 w - - 99999999999999999999 1", ERR_SYNTAX, "halfmove clock above"},
    {"8/8/8/8/8/8/8/4K3 w - - 0 1", ERR_ILLEGAL, "black has 0 kings"},
    {"4k3/8/8/8/8/8/8/8 w - - 0 1", ERR_ILLEGAL, "white has 0 kings"},
    {"4k3/8/8/8/8/8/8/K3K3 w - - 0 1", ERR_ILLEGAL, "white has 2 kings"},
    {"4k3/8/8/8/8/8/8/P3K3 w - - 0 1", ERR_ILLEGAL, "white pawn on the first or last rank"},
    {"4k2p/8/8/8/8/8/8/4K3 w - - 0 1", ERR_ILLEGAL, "black pawn on the first or last rank"},
    {"4k3/8/8/8/8/PPPPPPPP/PPPPPPPP/4K3 w - - 0 1", ERR_ILLEGAL, "more than 16 pieces"},
    {"4k3/8/8/8/8/P7/PPPPPPPP/4K3 w - - 0 1", ERR_ILLEGAL, "more than 8 pawns"},
    {"4k3/8/8/8/8/8/8/4K3 w K - 0 1", ERR_OK, "left out castling right 'K': no king and rook"},
    {"4k3/8/8/8/8/8/8/R3K3 w K - 0 1", ERR_OK, "castling right 'K'"},
    {"4k3/8/8/8/8/8/8/R2K4 w K - 0 1", ERR_OK, "castling right 'K'"},
    {"4k3/8/8/8/8/8/3K4/R7 w Q - 0 1", ERR_OK, "castling right 'Q'"},
    {"4k3/8/8/8/8/8/8/R3K3 w B - 0 1", ERR_OK, "castling right 'B'"},
    {"4k2R/8/8/8/8/8/8/4K3 b k - 0 1", ERR_OK, "castling right 'k'"},
    {"4k3/8/8/8/8/8/8/4K3 w Kq e3 0 1", ERR_OK, "home; left out castling right 'q'"},
    {"4k3/8/8/8/8/8/8/4K3 w - e3 0 1", ERR_OK, "left out en-passant square e3: not on rank 6"},
    {"4k3/8/8/8/8/8/8/4K3 b - e6 0 1", ERR_OK, "left out en-passant square e6: not on rank 3"},
    {"4k3/8/8/8/8/8/8/4K3 w K -", ERR_OK, "'K'"},
    {"4k3/8/8/8/8/8/PPPPPPPP/QQ2K3 w - - 0 1", ERR_OK, ""},
    {"4k3/8/8/8/8/8/PPPPPPPP/QQQQKQQQ w - - 0 1", ERR_OK, ""},
    {"nnnbbbrr/qq2k3/ppppp3/8/8/8/8/4K3 w - - 0 1", ERR_OK, ""},
    {"nnnbbb2/qqq1k3/ppppp3/8/8/8/8/4K3 w - - 0 1", ERR_OK, ""},
    {"4k3/8/8/8/8/8/4r3/4K3 b - - 0 1", ERR_ILLEGAL, "side not to move is in check"},
    {"8/8/8/8/8/8/4k3/4K3 w - - 0 1", ERR_ILLEGAL, "side not to move is in check"},
};

static void bad_texts_are_refused_with_a_reason(void **state)
{
    (void)state;
    for (unsigned i = 0; i < sizeof(bad_texts) / sizeof(bad_texts[0]); i++) {
        const struct bad *bad = &bad_texts[i];
        struct chess_position position;
        memset(&position, 0x5a, sizeof(position));
        char why[128] = "";
        enum err err = chess_position_parse(&position, bad->text, why, sizeof(why));
        if (err != bad->err || !strstr(why, bad->why)) {
            fail_msg("'%s': error %d, \"%s\"", bad->text, (int)err, why);
        }
        assert_null(strchr(why, '\n'));
        if (err) {
            struct chess_position untouched;
            memset(&untouched, 0x5a, sizeof(untouched));
            assert_memory_equal(&position, &untouched, sizeof(position));
        }
    }
}

static void reasons_fit_any_buffer(void **state)
{
    (void)state;
    struct chess_position position;
    char why[8] = "1234567";
    assert_int_equal(chess_position_parse(&position, "x", why, 0), ERR_SYNTAX);
    assert_string_equal(why, "1234567");
    assert_int_equal(chess_position_parse(&position, "x", why, 4), ERR_SYNTAX);
    assert_int_equal(strlen(why), 3);
}

/* What is left out is said, and the rest is kept. */
static void impossible_rights_are_left_out(void **state)
{
    (void)state;
    static const char *const texts[][2] = {
        {"r3k2r/8/8/8/8/8/4K3/R6R w KQkq e3 0 1", "r3k2r/8/8/8/8/8/4K3/R6R w kq - 0 1"},
        {"r3k3/8/8/8/8/8/8/R3K2R b KQkq - 5 9", "r3k3/8/8/8/8/8/8/R3K2R b KQq - 5 9"},
        {"1r2k1r1/8/8/8/8/8/8/1R2K1R1 w GBgbA -", "1r2k1r1/8/8/8/8/8/8/1R2K1R1 w GBgb - 0 1"},
        {"4k3/8/8/8/8/8/8/4K2R w K", "4k3/8/8/8/8/8/8/4K2R w K - 0 1"},
    };
    for (unsigned i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct chess_position position;
        char text[GAME_TEXT_MAX];
        test_parse(&position, texts[i][0]);
        chess_position_format(&position, text);
        assert_string_equal(text, texts[i][1]);
    }
}

struct ep_case {
    const char *text;
    bool kept;
};

static void idle_en_passant_squares_are_dropped(void **state)
{
    (void)state;
    static const struct ep_case cases[] = {
        {"4k3/8/8/3pP3/8/8/8/4K3 w - d6 0 1", true},
        {"4k3/8/8/3p1P2/8/8/8/4K3 w - d6 0 1", false}, /* no pawn beside */
        {"4k3/8/8/4P3/8/8/8/4K3 w - d6 0 1", false}, /* no pawn has passed */
        {"4k3/3p4/8/3pP3/8/8/8/4K3 w - d6 0 1", false}, /* it cannot have come from d7 */
        {"4k3/8/3n4/3pP3/8/8/8/4K3 w - d6 0 1", false}, /* nor through d6 */
        {"8/8/8/K2pP2r/8/8/8/4k3 w - d6 0 1", false}, /* both pawns leave the rank */
        {"8/8/8/K1NpP2r/8/8/8/4k3 w - d6 0 1", true},
        {"4r1k1/8/8/3pP3/8/8/8/4K3 w - d6 0 1", false}, /* pinned on the file */
        {"6k1/8/8/2KpP3/8/8/8/b7 w - d6 0 1", true}, /* pinned to nothing */
        {"6k1/8/8/b2pP3/8/8/8/4K3 w - d6 0 1", false}, /* in check from elsewhere */
        {"6k1/8/8/3pP3/4K3/8/8/8 w - d6 0 1", true}, /* the way out of check */
        {"4k3/8/8/8/3Pp3/8/8/4K3 b - d3 0 1", true},
    };
    for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct chess_position position;
        test_parse(&position, cases[i].text);
        if ((position.ep != CHESS_NO_SQUARE) != cases[i].kept) {
            fail_msg("%s", cases[i].text);
        }
    }
}

/* X-FEN and Shredder-FEN of Chess960; all is written as the latter. */
static void castling_of_chess960(void **state)
{
    (void)state;
    static const struct {
        const char *text, *castling, *move; /* one of castling, NULL: none is legal */
    } cases[] = {
        {"4kr2/8/8/8/8/8/8/RR1K4 w Qk - 0 1", "Af", NULL},
        {"4kr2/8/8/8/8/8/8/RR1K4 w Bf - 0 1", "Bf", "d1b1"},
        {"4k3/8/8/8/8/8/8/4K2R w K - 0 1", "K", "e1g1"}, /* as always */
        {"4k3/8/8/8/8/8/8/4K2R w H - 0 1", "H", "e1h1"},
        {"4k3/8/8/8/8/8/8/5RK1 w F - 0 1", "F", "g1f1"}, /* long */
        {"4k3/8/8/8/8/8/8/3RK3 w D - 0 1", "D", "e1d1"},
        {"4k3/8/8/8/8/8/8/1r1RK3 w D - 0 1", "D", NULL},
        {"4k3/8/8/8/8/8/8/qRK5 w B - 0 1", "B", NULL}, /* the rook shields the king */
    };
    for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct chess_position position;
        char text[GAME_TEXT_MAX], castling[8], why[128] = "", move[GAME_MOVE_TEXT_MAX] = "";
        struct game_move list[GAME_MOVES_MAX];
        assert_int_equal(chess_position_parse(&position, cases[i].text, why, sizeof why), ERR_OK);
        chess_position_format(&position, text);
        assert_int_equal(sscanf(text, "%*s %*s %7s", castling), 1);
        assert_string_equal(castling, cases[i].castling);
        unsigned count = game_chess.generate(&position, list), castlings = 0;
        for (unsigned k = 0; k < count; k++) {
            unsigned kind = chess_move_kind(list[k].move);
            if (kind == CHESS_SHORT || kind == CHESS_LONG) {
                uint64_t key = position.key;
                game_chess.format_move(&position, list[k].move, move);
                castlings++;
                chess_position_make(&position, list[k].move);
                struct chess_position anew;
                chess_position_format(&position, text);
                assert_int_equal(chess_position_parse(&anew, text, why, sizeof why), ERR_OK);
                assert_int_equal(anew.key, position.key);
                chess_position_unmake(&position, list[k].move);
                assert_int_equal(position.key, key);
            }
        }
        if (cases[i].move == NULL) {
            assert_int_equal(castlings, 0);
        } else {
            assert_int_equal(castlings, 1);
            assert_string_equal(move, cases[i].move);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(positions_survive_text),
        cmocka_unit_test(text_is_written_as_it_was_read),
        cmocka_unit_test(short_forms_are_accepted),
        cmocka_unit_test(bad_texts_are_refused_with_a_reason),
        cmocka_unit_test(impossible_rights_are_left_out),
        cmocka_unit_test(castling_of_chess960),
        cmocka_unit_test(reasons_fit_any_buffer),
        cmocka_unit_test(idle_en_passant_squares_are_dropped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
