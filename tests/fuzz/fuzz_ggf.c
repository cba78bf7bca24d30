/* Whatever the bytes, the readers of GGF and of files of games (transcripts, GGF, WTHOR) stay
 * within them, say what is wrong in one line, come to an end, and give legal moves only; a game
 * that they accept, written by us, is read as the same.
 *
 * libFuzzer: see tests/fuzz/long.py; with any other compiler add -DFUZZ_MAIN: a program that makes
 * its own inputs from a seed, `fuzz_ggf [RUNS [SEED]]`, random games with some of their bytes
 * changed. */
#include "common/err.h"
#include "tests/fuzz/fuzz_own.h"
#include "worker/programs/othello/othello_game.h"

#include <stdlib.h>
#include <string.h>

enum { TEXT_MAX = 4096 };
_Static_assert((int)TEXT_MAX <= (int)FUZZ_BYTES, "a text fits");

static size_t write_move(char *text, size_t room, bool is_black, unsigned move)
{
    char name[3] = {(char)('A' + move % 8), (char)('1' + move / 8)};
    return (size_t)snprintf(text, room, "%c[%s]", is_black ? 'B' : 'W',
                            move == OTHELLO_PASSED ? "PA" : name);
}

static size_t write_head(char *text, size_t room, struct othello_board board, bool is_black)
{
    char squares[67];
    othello_format(board, is_black, squares);
    return (size_t)snprintf(text, room, "(;GM[Othello]TI[5:00/0:01/2:00]TY[8]BO[8 %s]", squares);
}

/* The board after the move; a move that is not legal is a bug. */
static struct othello_board after(struct othello_board b, unsigned move)
{
    const uint64_t moves = othello_moves(b.own, b.other);
    if (move == OTHELLO_PASSED) {
        CHECK(moves == 0 && othello_moves(b.other, b.own) != 0);
        return othello_pass(b);
    }
    CHECK(move < OTHELLO_PASSED && (moves & othello_bit(move)) != 0);
    return othello_play(b, move, othello_flips(b.own, b.other, move));
}

static void check_game(const struct othello_game *game)
{
    struct ggf_game again;
    char why[OTHELLO_GAME_WHY_MAX], text[TEXT_MAX];
    struct othello_board board = game->board;
    size_t used = write_head(text, sizeof text, board, game->is_black);
    CHECK(game->moves <= OTHELLO_GAME_MOVES_MAX);
    for (unsigned i = 0; i < game->moves; i++) {
        board = after(board, game->move[i]);
        used += write_move(text + used, sizeof text - used, game->is_black == (i % 2 == 0),
                           game->move[i]);
    }
    CHECK(board.own == game->last.own && board.other == game->last.other);
    snprintf(text + used, sizeof text - used, ";)");
    CHECK(ggf_parse(text, &again, why) && again.game.moves == game->moves);
    CHECK(again.game.is_black == game->is_black && again.game.board.own == game->board.own &&
          again.game.board.other == game->board.other);
    CHECK(memcmp(again.game.move, game->move, game->moves) == 0);
}

/* The bytes and a zero: a sanitizer sees one byte too far. */
static char *copy_of(const uint8_t *bytes, size_t length)
{
    char *copy = malloc(length + 1);
    CHECK(copy != NULL);
    memcpy(copy, bytes, length);
    copy[length] = '\0';
    return copy;
}

static void check_file(const uint8_t *bytes, size_t length)
{
    struct game_file file;
    struct othello_game game;
    char why[OTHELLO_GAME_WHY_MAX];
    enum game_file_answer answer;
    char *copy = copy_of(bytes, length);
    unsigned games = 0;
    memset(why, 'x', sizeof why);
    const bool ok = game_file_open(&file, copy, length, why);
    CHECK(ok || memchr(why, '\0', sizeof why) != NULL);
    while (ok && (answer = game_file_next(&file, &game, why)) != GAME_FILE_END) {
        CHECK(file.game == ++games && games <= length + 1);
        if (answer == GAME_FILE_GAME) {
            check_game(&game);
        } else {
            const char *end = memchr(why, '\0', sizeof why);
            CHECK(end != NULL && end > why && memchr(why, '\n', (size_t)(end - why)) == NULL);
        }
    }
    free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    struct ggf_game game;
    char why[OTHELLO_GAME_WHY_MAX];
    char *copy = copy_of(bytes, length);
    memset(why, 'x', sizeof why);
    const bool ok = ggf_parse(copy, &game, why);
    free(copy);
    CHECK(ok || memchr(why, '\0', sizeof why) != NULL);
    if (ok) {
        check_game(&game.game);
    }
    check_file(bytes, length);
    return 0;
}

#ifdef FUZZ_MAIN
enum form { GGF, TRANSCRIPT, WTHOR, FORMS };
enum { WTHOR_HEADER = 16, WTHOR_COUNT = 4, WTHOR_RECORD = 68, WTHOR_MOVES = 8, GAMES_MAX = 3 };

static unsigned random_move(uint64_t *rng, struct othello_board board)
{
    uint64_t moves = othello_moves(board.own, board.other);
    if (moves == 0) {
        return OTHELLO_PASSED;
    }
    for (unsigned skip = rng_below(rng, othello_count(moves)); skip > 0; skip--) {
        moves &= moves - 1;
    }
    return othello_first(moves);
}

/* A move in one of the forms; those of files have no passes. */
static size_t write_any(char *text, size_t room, enum form form, bool is_black, unsigned move)
{
    if (form == GGF) {
        return write_move(text, room, is_black, move);
    }
    if (move == OTHELLO_PASSED) {
        return 0;
    }
    if (form == WTHOR) {
        *text = (char)(10 * (move / 8 + 1) + move % 8 + 1);
        return 1;
    }
    return (size_t)snprintf(text, room, "%c%u", (char)('a' + move % 8), move / 8 + 1);
}

static size_t random_game(uint64_t *rng, char *text, size_t room, enum form form)
{
    struct othello_board board = {UINT64_C(0x0000000810000000), UINT64_C(0x0000001008000000)};
    const unsigned wanted = rng_below(rng, 70);
    bool is_black = true;
    size_t used = form == GGF ? write_head(text, room, board, is_black) : 0;
    if (form == WTHOR) {
        memset(text, 0, WTHOR_RECORD);
        used = WTHOR_MOVES;
    }
    for (unsigned i = 0; i < wanted; i++) {
        const unsigned move = random_move(rng, board);
        if (move == OTHELLO_PASSED && othello_moves(board.other, board.own) == 0) {
            break;
        }
        used += write_any(text + used, room - used, form, is_black, move);
        board = after(board, move);
        is_black = !is_black;
    }
    if (form == WTHOR) {
        return WTHOR_RECORD;
    }
    return used + (size_t)snprintf(text + used, room - used, form == GGF ? ";)\n" : "\n");
}

static size_t random_file(uint64_t *rng, char *text)
{
    const enum form form = rng_below(rng, FORMS);
    const unsigned games = rng_below(rng, GAMES_MAX + 1);
    size_t used = form == WTHOR ? WTHOR_HEADER : 0;
    memset(text, 0, WTHOR_HEADER);
    text[WTHOR_COUNT] = (char)games;
    for (unsigned i = 0; i < games; i++) {
        used += random_game(rng, text + used, TEXT_MAX - used, form);
    }
    return used;
}

/* One change: a byte, a byte of those that mean something, a cut, a byte more or less. */
static size_t change(uint64_t *rng, char *text, size_t n)
{
    static const char means[] = "(;)[]/: .,*O-8BWTIPAa1h90\\\n#\0";
    const size_t at = n > 0 ? rng_below(rng, (uint32_t)n) : 0;
    switch (n > 0 ? rng_below(rng, 5) : 3) {
    case 0:
        text[at] = (char)rng_next(rng);
        return n;
    case 1:
        text[at] = means[rng_below(rng, sizeof means)];
        return n;
    case 2:
        return rng_below(rng, 4) == 0 ? at : n;
    case 3:
        if (n < TEXT_MAX) {
            memmove(text + at + 1, text + at, n - at);
            text[at] = means[rng_below(rng, sizeof means)];
            n++;
        }
        return n;
    default:
        memmove(text + at, text + at + 1, n - at - 1);
        return n - 1;
    }
}

static size_t make(uint64_t *rng, uint8_t *bytes)
{
    char *text = (char *)bytes;
    size_t n = random_file(rng, text);
    for (unsigned k = rng_below(rng, 5); k > 0; k--) {
        n = change(rng, text, n);
    }
    return n;
}

int main(int argc, char **argv)
{
    fuzz_own(argc, argv, make, NULL);
    return 0;
}
#endif
