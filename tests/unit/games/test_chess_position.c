#include "tests/support/test_chess.h"
#include "worker/games/chess/chess.h"

static uint16_t find_move(const struct chess_position *position, const char *text)
{
    uint16_t move = 0;
    if (game_chess.parse_move(position, text, &move)) {
        fail_msg("%s is not legal here", text);
    }
    return move;
}

/* Moves in coordinate form, separated by spaces. */
static void play(struct chess_position *position, const char *moves)
{
    while (*moves) {
        char text[GAME_MOVE_TEXT_MAX] = "";
        size_t size = strcspn(moves, " ");
        assert_true(size < sizeof(text));
        memcpy(text, moves, size);
        chess_position_make(position, find_move(position, text));
        moves += size;
        moves += strspn(moves, " ");
    }
}

static void check_refreshed(struct chess_position *position)
{
    struct chess_position copy;
    chess_position_fork(&copy, position);
    chess_position_refresh(&copy);
    assert_int_equal(position->key, copy.key);
    assert_int_equal(position->score, copy.score);
}

static void key_and_score_follow_the_moves(void **state)
{
    (void)state;
    test_random_play(200, check_refreshed);
}

static void check_sets(struct chess_position *position)
{
    uint64_t all = 0;
    for (unsigned colour = 0; colour < 2; colour++) {
        uint64_t sum = 0;
        for (unsigned kind = CHESS_PAWN; kind <= CHESS_KING; kind++) {
            uint64_t set = chess_set(position, colour, kind);
            assert_true((sum & set) == 0);
            sum |= set;
            for (; set; set &= set - 1) {
                assert_int_equal(position->board[bitboard_first(set)], colour << 3 | kind);
            }
        }
        assert_true(sum == chess_set(position, colour, CHESS_ALL));
        assert_true((all & sum) == 0);
        all |= sum;
    }
    for (unsigned s = 0; s < 64; s++) {
        assert_int_equal(position->board[s] == CHESS_EMPTY, !(all >> s & 1));
    }
}

static void board_and_sets_agree(void **state)
{
    (void)state;
    test_random_play(100, check_sets);
}

enum { HEAD = offsetof(struct chess_position, undo) };

static void check_undone(struct chess_position *position)
{
    struct chess_position before;
    memcpy(&before, position, HEAD);
    struct game_move list[GAME_MOVES_MAX];
    unsigned count = chess_movegen_all(position, list);
    for (unsigned i = 0; i < count; i++) {
        chess_position_make(position, list[i].move);
        assert_int_equal(position->side, before.side ^ 1);
        check_refreshed(position);
        chess_position_unmake(position, list[i].move);
        assert_memory_equal(&before, position, HEAD);
    }
    if (!chess_position_check(position)) {
        chess_position_make_null(position);
        check_refreshed(position);
        assert_int_equal(position->ep, CHESS_NO_SQUARE);
        chess_position_unmake_null(position);
        assert_memory_equal(&before, position, HEAD);
    }
}

static void taking_a_move_back_restores_every_byte(void **state)
{
    (void)state;
    test_random_play(40, check_undone);
}

/* What makes transpositions agree: a square that nobody can capture on must not show. */
static void check_ep(struct chess_position *position)
{
    struct game_move list[GAME_MOVES_MAX];
    unsigned count = chess_movegen_all(position, list);
    bool possible = false;
    for (unsigned i = 0; i < count; i++) {
        possible |= chess_move_kind(list[i].move) == CHESS_EN_PASSANT;
    }
    assert_int_equal(position->ep != CHESS_NO_SQUARE, possible);
}

static void en_passant_square_is_kept_only_while_capturable(void **state)
{
    (void)state;
    test_random_play(200, check_ep);
}

static void transpositions_share_a_key(void **state)
{
    (void)state;
    static const char *const pairs[][2] = {
        {"e2e4 e7e5 g1f3", "g1f3 e7e5 e2e4"},
        {"d2d4 d7d5 c2c4", "c2c4 d7d5 d2d4"},
        {"g1f3 g8f6 f3g1 f6g8", ""},
    };
    for (unsigned i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
        struct chess_position a, b;
        test_parse(&a, "startpos");
        test_parse(&b, "startpos");
        play(&a, pairs[i][0]);
        play(&b, pairs[i][1]);
        assert_int_equal(a.key, b.key);
    }
}

static void keys_differ_by_side_rights_and_en_passant(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "r3k2r/8/8/3pP3/8/8/8/R3K2R w KQkq d6", "r3k2r/8/8/3pP3/8/8/8/R3K2R w KQkq -",
        "r3k2r/8/8/3pP3/8/8/8/R3K2R b KQkq -",  "r3k2r/8/8/3pP3/8/8/8/R3K2R w KQk -",
        "r3k2r/8/8/3pP3/8/8/8/R3K2R w KQq -",   "r3k2r/8/8/3pP3/8/8/8/R3K2R w Kkq -",
        "r3k2r/8/8/3pP3/8/8/8/R3K2R w Qkq -",   "r3k2r/8/8/3pP3/8/8/8/R3K2R w - -",
    };
    enum { COUNT = sizeof(texts) / sizeof(texts[0]) };
    uint64_t keys[COUNT];
    for (unsigned i = 0; i < COUNT; i++) {
        struct chess_position position;
        test_parse(&position, texts[i]);
        keys[i] = position.key;
        for (unsigned j = 0; j < i; j++) {
            assert_true(keys[i] != keys[j]);
        }
    }
}

static void repetition_is_a_draw(void **state)
{
    (void)state;
    struct chess_position position;
    test_parse(&position, "startpos");
    play(&position, "g1f3 g8f6 f3g1");
    assert_false(game_chess.drawn(&position, GAME_UNDO_MAX));
    play(&position, "f6g8");
    assert_int_equal(game_chess.drawn(&position, GAME_UNDO_MAX), 4); /* moves ago */
    /* A pawn move ends the window: nothing before it can come back. */
    play(&position, "e2e4");
    assert_false(game_chess.drawn(&position, GAME_UNDO_MAX));
    play(&position, "e7e5 g1f3 g8f6 f3g1 f6g8");
    assert_true(game_chess.drawn(&position, GAME_UNDO_MAX));
}

/* A single repetition in the game is no draw: the player who wins need not repeat it. */
static void a_position_of_the_game_draws_by_its_third_occurrence(void **state)
{
    (void)state;
    struct chess_position position;
    test_parse(&position, "startpos");
    play(&position, "g1f3 g8f6 f3g1 f6g8");
    assert_int_equal(game_chess.drawn(&position, 4), 4); /* the root itself */
    assert_int_equal(game_chess.drawn(&position, 3), 0);
    play(&position, "g1f3 g8f6 f3g1");
    assert_true(game_chess.repeatable(&position) != 0); /* the start, by f6g8 */
    play(&position, "f6g8");
    assert_int_equal(game_chess.drawn(&position, 3), 8);
    assert_int_equal(game_chess.drawn(&position, 4), 4);
    test_parse(&position, "startpos");
    play(&position, "g1f3 g8f6 f3g1");
    assert_true(game_chess.repeatable(&position) == 0);
}

/* A search takes positions for unlike from where it might reach the end of the clock. */
static void the_clock_is_part_of_the_key_when_draws_are_near(void **state)
{
    (void)state;
    uint64_t seen[101];
    for (unsigned clock = 0; clock <= 100; clock++) {
        struct chess_position position;
        char fen[64];
        snprintf(fen, sizeof fen, "8/8/4k3/8/8/4K3/4R3/8 w - - %u 100", clock);
        test_parse(&position, fen);
        seen[clock] = game_chess.counted_key(&position);
        for (unsigned other = clock < 60 ? 60 : 0; other < clock; other++) {
            assert_true(seen[other] != seen[clock]);
        }
        assert_int_equal(seen[clock] == game_chess.key(&position), clock < 60);
        assert_int_equal(game_chess.drawn(&position, GAME_UNDO_MAX),
                         clock < 100 ? 0 : GAME_DRAWN_BY_COUNT);
    }
    struct chess_position bare;
    test_parse(&bare, "8/8/4k3/8/8/4K3/4B3/8 w - - 100 100");
    assert_int_equal(game_chess.drawn(&bare, GAME_UNDO_MAX), GAME_DRAWN_HERE);
}

/* The same pieces on the same squares, but castling is lost: not the same position. */
static void losing_a_right_is_not_repetition(void **state)
{
    (void)state;
    struct chess_position position;
    test_parse(&position, "r3k2r/8/8/8/8/8/8/R3K2R w KQkq - 0 1");
    play(&position, "e1e2 e8e7 e2e1 e7e8");
    assert_false(game_chess.drawn(&position, GAME_UNDO_MAX));
    play(&position, "e1e2 e8e7 e2e1 e7e8");
    assert_true(game_chess.drawn(&position, GAME_UNDO_MAX));
}

static void null_move_ends_the_repetition_window(void **state)
{
    (void)state;
    struct chess_position position;
    test_parse(&position, "startpos");
    play(&position, "g1f3 g8f6 f3g1");
    chess_position_make_null(&position);
    play(&position, "g1f3 f6g8");
    chess_position_make_null(&position);
    play(&position, "g8f6");
    assert_false(game_chess.drawn(&position, GAME_UNDO_MAX));
}

static void fifty_moves_without_progress_are_a_draw(void **state)
{
    (void)state;
    struct chess_position position;
    test_parse(&position, "7k/8/8/8/8/8/R7/K7 w - - 98 100");
    play(&position, "a2b2");
    assert_false(game_chess.drawn(&position, GAME_UNDO_MAX));
    play(&position, "h8g8");
    assert_true(game_chess.drawn(&position, GAME_UNDO_MAX));
    test_parse(&position, "7k/8/6K1/8/8/8/R7/8 w - - 99 100");
    play(&position, "a2a8"); /* mate on the hundredth */
    assert_false(game_chess.drawn(&position, GAME_UNDO_MAX));
    test_parse(&position, "7k/8/6K1/8/8/8/P7/8 w - - 99 100");
    play(&position, "a2a3");
    assert_false(game_chess.drawn(&position, GAME_UNDO_MAX));
}

struct material_case {
    const char *text;
    bool drawn;
};

static void bare_minor_pieces_cannot_mate(void **state)
{
    (void)state;
    static const struct material_case cases[] = {
        {"4k3/8/8/8/8/8/8/4K3 w - -", true},    {"4k3/8/8/8/8/8/8/4KN2 w - -", true},
        {"4kb2/8/8/8/8/8/8/4K3 w - -", true},   {"4k3/8/8/8/8/8/8/4KR2 w - -", false},
        {"4k3/8/8/8/8/8/4P3/4K3 w - -", false}, {"4k3/8/8/8/8/8/8/4KNN1 w - -", false},
        {"4kb2/8/8/8/8/8/8/4KB2 w - -", false}, {"4kq2/8/8/8/8/8/8/4K3 w - -", false},
    };
    for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct chess_position position;
        test_parse(&position, cases[i].text);
        if (game_chess.drawn(&position, GAME_UNDO_MAX) != (cases[i].drawn ? GAME_DRAWN_HERE : 0)) {
            fail_msg("%s", cases[i].text);
        }
    }
}

static void history_has_its_promised_length(void **state)
{
    (void)state;
    struct chess_position position;
    test_parse(&position, "startpos");
    static const char *const cycle[4] = {"g1f3", "g8f6", "f3g1", "f6g8"};
    uint16_t moves[GAME_UNDO_MAX];
    uint64_t key = position.key;
    for (unsigned i = 0; i < GAME_UNDO_MAX; i++) {
        moves[i] = find_move(&position, cycle[i % 4]);
        chess_position_make(&position, moves[i]);
    }
    for (unsigned i = GAME_UNDO_MAX; i-- > 0;) {
        chess_position_unmake(&position, moves[i]);
    }
    assert_int_equal(position.key, key);
    assert_int_equal(position.ply, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(key_and_score_follow_the_moves),
        cmocka_unit_test(board_and_sets_agree),
        cmocka_unit_test(taking_a_move_back_restores_every_byte),
        cmocka_unit_test(en_passant_square_is_kept_only_while_capturable),
        cmocka_unit_test(transpositions_share_a_key),
        cmocka_unit_test(keys_differ_by_side_rights_and_en_passant),
        cmocka_unit_test(repetition_is_a_draw),
        cmocka_unit_test(a_position_of_the_game_draws_by_its_third_occurrence),
        cmocka_unit_test(the_clock_is_part_of_the_key_when_draws_are_near),
        cmocka_unit_test(losing_a_right_is_not_repetition),
        cmocka_unit_test(null_move_ends_the_repetition_window),
        cmocka_unit_test(fifty_moves_without_progress_are_a_draw),
        cmocka_unit_test(bare_minor_pieces_cannot_mate),
        cmocka_unit_test(history_has_its_promised_length),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
