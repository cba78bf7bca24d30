/* Whatever the bytes, the reader of proofs stays within them and says what is wrong in one line;
 * and a proof that it accepts, all of whose leaves are true, has a true score.
 *
 * The first byte says whether the rest is a file as it is, or the text of one member. libFuzzer:
 * see tests/fuzz/long.py; with any other compiler add -DFUZZ_MAIN: a program that makes its own
 * inputs from a seed, `fuzz_proof [RUNS [SEED]]`: texts of small proofs with some of their bytes
 * changed.
 */
#include "common/err.h"
#include "tests/fuzz/fuzz_own.h"
#include "worker/programs/othello/proof.h"

#include <stdlib.h>
#include <string.h>

enum {
    EMPTIES_MAX = 7, /* of boards that are worth solving here */
    FUZZ_MEMORY = 1 << 20,
};

static bool is_true(const struct othello_claim *claim)
{
    uint64_t nodes = 0;
    return othello_count(othello_empties(claim->board)) <= EMPTIES_MAX &&
           proof_solve(claim, &nodes);
}

/* The board and the score that the text begins with. */
static void check_score(const char *text)
{
    struct othello_board board;
    bool is_black;
    char why[OTHELLO_WHY_MAX];
    const char *position = strstr(text, "position "), *score = strstr(text, "score ");
    CHECK(position != NULL && score != NULL);
    CHECK(othello_parse(position + 9, &board, &is_black, why));
    struct othello_claim claim = {
        .board = board, .value = (int8_t)atoi(score + 6), .is_lower = true};
    if (othello_count(othello_empties(board)) > EMPTIES_MAX) {
        return;
    }
    CHECK(is_true(&claim));
    claim.is_lower = false;
    CHECK(is_true(&claim));
}

static void read_file(const uint8_t *bytes, size_t size, const char *text)
{
    struct proof_reader reader;
    struct proof_contents contents = {.memory_max = FUZZ_MEMORY};
    char why[PROOF_WHY_MAX];
    CHECK(proof_reader_of(&reader, bytes, size) == ERR_OK);
    memset(why, 'x', sizeof why);
    const enum err err = proof_contents_read(&contents, &reader, why);
    if (err != ERR_OK) {
        CHECK(memchr(why, '\0', sizeof why) != NULL);
    } else if (text != NULL && contents.head.positions == 1) {
        bool is_valid = true;
        for (size_t i = 0; i < contents.leaves && is_valid; i++) {
            is_valid = is_true(&contents.leaf[i]);
        }
        if (is_valid) {
            check_score(text);
        }
    }
    proof_contents_close(&contents);
    CHECK(reader.whole <= size);
    proof_reader_close(&reader);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    if (length == 0 || length > FUZZ_BYTES) {
        return 0;
    }
    if (bytes[0] % 2 == 0) {
        read_file(bytes + 1, length - 1, NULL);
        return 0;
    }
    static uint8_t member[2 * FUZZ_BYTES];
    char text[FUZZ_BYTES];
    memcpy(text, bytes + 1, length - 1);
    text[length - 1] = '\0';
    z_stream z = {.next_in = (uint8_t *)text,
                  .avail_in = (unsigned)length - 1,
                  .next_out = member,
                  .avail_out = sizeof member};
    CHECK(deflateInit2(&z, 1, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) == Z_OK);
    CHECK(deflate(&z, Z_FINISH) == Z_STREAM_END && deflateEnd(&z) == Z_OK);
    read_file(member, z.total_out, text);
    return 0;
}

#ifdef FUZZ_MAIN
/* A board of few empty squares, and moves of its own; the end is right for them. */
struct maker {
    uint64_t *rng;
    char *text;
    size_t used;
};

static enum err choose(void *self, const struct proof_walk *walk, unsigned *square)
{
    struct maker *m = self;
    uint64_t moves = othello_moves(walk->claim.board.own, walk->claim.board.other);
    for (unsigned skip = rng_below(m->rng, othello_count(moves)); skip > 0; skip--) {
        moves &= moves - 1;
    }
    *square = othello_first(moves);
    m->used += (size_t)sprintf(m->text + m->used, "%c%c\n", 'a' + *square % 8, '1' + *square / 8);
    return m->used < FUZZ_BYTES / 2 ? ERR_OK : ERR_FULL;
}

static size_t make(uint64_t *rng, uint8_t *bytes)
{
    static const char start[] =
        "XXXOXXXXOXXXXXXXOOXXXXXXOOOXXXXXOOOXXOO-OOOOO---OOOOOOO-OOOOOOO- X";
    struct maker m = {.rng = rng, .text = (char *)bytes};
    const int score = 2 * (int)rng_below(rng, 7) - 2; /* it is +6 */
    struct proof_walk walk = {.leaf = 1 + rng_below(rng, 6), .self = &m, .choose = choose};
    struct othello_board board;
    bool is_black;
    char why[OTHELLO_WHY_MAX];
    CHECK(othello_parse(start, &board, &is_black, why));
    m.text[0] = (char)(rng_below(rng, 8) != 0);
    m.used =
        1 + (size_t)sprintf(m.text + 1,
                            PROOF_HEAD_LINE "\n" PROOF_POSITION_LINE "\n" PROOF_SCORE_LINE "\n",
                            PROOF_VERSION, walk.leaf, 1u, start, score);
    (void)proof_walk(&walk, board, is_black, score);
    proof_close(&walk);
    for (unsigned k = rng_below(rng, 4); k > 0; k--) {
        const size_t at = 1 + rng_below(rng, (uint32_t)m.used - 1);
        bytes[at] = rng_below(rng, 2) != 0 ? (uint8_t)rng_next(rng)
                                           : (uint8_t) "XO-a1h8 +\n"[rng_below(rng, 10)];
    }
    const uint32_t crc = (uint32_t)crc32(0, bytes + 1, (unsigned)m.used - 1);
    return m.used +
           (size_t)sprintf(m.text + m.used, PROOF_END_LINE "\n", walk.claims, walk.leaves, crc);
}

int main(int argc, char **argv)
{
    fuzz_own(argc, argv, make, NULL);
    return 0;
}
#endif
