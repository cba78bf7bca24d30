/* Whatever the text, the reader of GGF stays within it, says what is wrong in one line, and gives
 * legal moves only; a game that it accepts, written by us, is read as the same.
 *
 * libFuzzer: see tests/fuzz/long.py; with any other compiler add -DFUZZ_MAIN: a program that makes
 * its own inputs from a seed, `fuzz_ggf [RUNS [SEED]]`, random games with some of their bytes
 * changed. */
#include "common/err.h"
#include "tests/fuzz/fuzz_own.h"
#include "worker/programs/othello/ggf.h"

#include <stdlib.h>
#include <string.h>

enum { TEXT_MAX = 4096 };
_Static_assert((int)TEXT_MAX <= (int)FUZZ_BYTES, "a text fits");

static size_t write_move(char *text, size_t room, bool is_black, unsigned move)
{
    char name[3] = {(char)('A' + move % 8), (char)('1' + move / 8)};
    return (size_t)snprintf(text, room, "%c[%s]", is_black ? 'B' : 'W',
                            move == GGF_PASS ? "PA" : name);
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
    if (move == GGF_PASS) {
        CHECK(moves == 0 && othello_moves(b.other, b.own) != 0);
        return othello_pass(b);
    }
    CHECK(move < GGF_PASS && (moves & othello_bit(move)) != 0);
    return othello_play(b, move, othello_flips(b.own, b.other, move));
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    struct ggf_game game, again;
    char why[GGF_WHY_MAX], text[TEXT_MAX];
    char *copy = malloc(length + 1); /* a sanitizer sees one byte too far */
    CHECK(copy != NULL);
    memcpy(copy, bytes, length);
    copy[length] = '\0';
    memset(why, 'x', sizeof why);
    const bool ok = ggf_parse(copy, &game, why);
    free(copy);
    if (!ok) {
        CHECK(memchr(why, '\0', sizeof why) != NULL);
        return 0;
    }
    struct othello_board board = game.board;
    size_t used = write_head(text, sizeof text, board, game.is_black);
    CHECK(game.moves <= GGF_MOVES_MAX);
    for (unsigned i = 0; i < game.moves; i++) {
        board = after(board, game.move[i]);
        used += write_move(text + used, sizeof text - used, game.is_black == (i % 2 == 0),
                           game.move[i]);
    }
    snprintf(text + used, sizeof text - used, ";)");
    CHECK(ggf_parse(text, &again, why) && again.moves == game.moves);
    CHECK(again.is_black == game.is_black && again.board.own == game.board.own &&
          again.board.other == game.board.other);
    CHECK(memcmp(again.move, game.move, game.moves) == 0);
    return 0;
}

#ifdef FUZZ_MAIN
static size_t random_game(uint64_t *rng, char *text)
{
    struct othello_board board = {UINT64_C(0x0000000810000000), UINT64_C(0x0000001008000000)};
    const unsigned wanted = rng_below(rng, 70);
    bool is_black = true;
    size_t used = write_head(text, TEXT_MAX, board, is_black);
    for (unsigned i = 0; i < wanted; i++) {
        uint64_t moves = othello_moves(board.own, board.other);
        unsigned move = GGF_PASS;
        if (moves == 0 && othello_moves(board.other, board.own) == 0) {
            break;
        }
        if (moves != 0) {
            for (unsigned skip = rng_below(rng, othello_count(moves)); skip > 0; skip--) {
                moves &= moves - 1;
            }
            move = othello_first(moves);
        }
        used += write_move(text + used, TEXT_MAX - used, is_black, move);
        board = after(board, move);
        is_black = !is_black;
    }
    used += (size_t)snprintf(text + used, TEXT_MAX - used, ";)");
    return used;
}

/* One change: a byte, a byte of those that mean something, a cut, a byte more or less. */
static size_t change(uint64_t *rng, char *text, size_t n)
{
    static const char means[] = "(;)[]/: .,*O-8BWTIPAa1h90\0";
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
    size_t n = random_game(rng, text);
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
