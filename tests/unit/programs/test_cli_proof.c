#include "tests/support/test_tt.h"

#include "common/rng.h"
#include "worker/games/othello/othello.h"
#include "worker/games/othello/solver.h"
#include "worker/programs/othello/proof.h"
#include "worker/programs/othello/prove.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

enum { MOVES_MAX = 1 << 14, TEXT_MAX = 1 << 16, MEMBERS_MAX = 1 << 17 };

/* A proof by its parts, which a test may change. */
struct sample {
    struct othello_board board;
    bool is_black;
    int score;
    unsigned leaf, moves, read;
    unsigned char move[MOVES_MAX];
};

static struct othello_memory *memory;

static int value_of(struct othello_board board)
{
    int value;
    unsigned move;
    assert_true(othello_solve(memory, board, -65, 65, NULL, &value, &move));
    return value;
}

static enum err choose_best(void *self, const struct proof_walk *walk, unsigned *square)
{
    struct sample *s = self;
    int value;
    assert_true(othello_solve(memory, walk->claim.board, walk->claim.value - 1, walk->claim.value,
                              NULL, &value, square));
    assert_true(value >= walk->claim.value && s->moves < MOVES_MAX);
    s->move[s->moves++] = (unsigned char)*square;
    return ERR_OK;
}

static enum err choose_next(void *self, const struct proof_walk *walk, unsigned *square)
{
    struct sample *s = self;
    (void)walk;
    if (s->read == s->moves) {
        return ERR_ABSENT;
    }
    *square = s->move[s->read++];
    return ERR_OK;
}

static void prove(struct sample *s, unsigned leaf)
{
    struct proof_walk walk = {.leaf = leaf, .self = s, .choose = choose_best};
    s->leaf = leaf;
    s->score = value_of(s->board);
    s->moves = 0;
    assert_int_equal(proof_walk(&walk, s->board, s->is_black, s->score), PROOF_VALID);
    proof_close(&walk);
}

/* A board of a game by chance, with so many empty squares. */
static void draw(struct sample *s, uint64_t *rng, unsigned empties)
{
    const struct othello_board start = {UINT64_C(0x0000000810000000), UINT64_C(0x0000001008000000)};
    struct othello_board b = start;
    s->is_black = true;
    while (othello_count(othello_empties(b)) > empties) {
        uint64_t moves = othello_moves(b.own, b.other);
        s->is_black = !s->is_black;
        if (moves == 0 && othello_moves(b.other, b.own) == 0) {
            b = start;
            s->is_black = true;
        } else if (moves == 0) {
            b = othello_pass(b);
        } else {
            for (unsigned skip = rng_below(rng, othello_count(moves)); skip > 0; skip--) {
                moves &= moves - 1;
            }
            const unsigned square = othello_first(moves);
            b = othello_play(b, square, othello_flips(b.own, b.other, square));
        }
    }
    s->board = b;
}

/* The text of its file with an end that is right for these moves, as an honest writer makes it. */
static size_t text_of(struct sample *s, char text[TEXT_MAX])
{
    struct proof_walk walk = {.leaf = s->leaf, .self = s, .choose = choose_next};
    char board[67];
    size_t n = 0;
    s->read = 0;
    (void)proof_walk(&walk, s->board, s->is_black, s->score);
    proof_close(&walk);
    n += (size_t)sprintf(text + n, PROOF_HEAD_LINE "\n", PROOF_VERSION, s->leaf, 1u);
    othello_format(s->board, s->is_black, board);
    n += (size_t)sprintf(text + n, PROOF_POSITION_LINE "\n", board);
    n += (size_t)sprintf(text + n, PROOF_SCORE_LINE "\n", s->score);
    for (unsigned i = 0; i < s->moves; i++) {
        n += (size_t)sprintf(
            text + n, "%c%c%s", 'a' + s->move[i] % 8, '1' + s->move[i] / 8,
            i + 1 == s->moves || i % PROOF_LINE_MOVES == PROOF_LINE_MOVES - 1 ? "\n" : "");
    }
    const uint32_t crc = (uint32_t)crc32(0, (const uint8_t *)text, (unsigned)n);
    return n + (size_t)sprintf(text + n, PROOF_END_LINE "\n", walk.claims, walk.leaves, crc);
}

/* A member of gzip. */
static size_t make_member(const char *text, size_t n, uint8_t bytes[MEMBERS_MAX])
{
    z_stream z = {.next_in = (uint8_t *)text,
                  .avail_in = (unsigned)n,
                  .next_out = bytes,
                  .avail_out = MEMBERS_MAX};
    assert_int_equal(deflateInit2(&z, 9, Z_DEFLATED, 15 + 16, 9, Z_DEFAULT_STRATEGY), Z_OK);
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    assert_int_equal(deflateEnd(&z), Z_OK);
    return z.total_out;
}

struct verdict {
    enum err err;
    bool is_valid; /* and every leaf's claim is true */
    uint64_t claims;
    size_t leaves;
    struct proof_score score; /* the first one */
    char why[PROOF_WHY_MAX];
};

static struct verdict check_within(const uint8_t *bytes, size_t size, uint64_t memory_max,
                                   unsigned leaf_max)
{
    struct proof_reader reader;
    struct proof_contents contents = {.memory_max = memory_max, .leaf_max = leaf_max};
    struct verdict v = {0};
    uint64_t nodes = 0;
    assert_int_equal(proof_reader_of(&reader, bytes, size), ERR_OK);
    v.err = proof_contents_read(&contents, &reader, v.why);
    v.is_valid = v.err == ERR_OK;
    for (size_t i = 0; i < contents.leaves && v.is_valid; i++) {
        v.is_valid = proof_solve(&contents.leaf[i], &nodes);
    }
    v.claims = contents.claims;
    v.leaves = contents.leaves;
    if (contents.scores > 0) {
        v.score = contents.score[0];
    }
    assert_null(strchr(v.why, '\n'));
    assert_true(v.err == ERR_OK || v.why[0] != '\0');
    proof_contents_close(&contents);
    proof_reader_close(&reader);
    return v;
}

static struct verdict check_bytes(const uint8_t *bytes, size_t size)
{
    return check_within(bytes, size, 0, 0);
}

static struct verdict check_text(const char *text, size_t n)
{
    static uint8_t bytes[MEMBERS_MAX];
    return check_bytes(bytes, make_member(text, n, bytes));
}

static struct verdict check_sample(struct sample *s)
{
    static char text[TEXT_MAX];
    return check_text(text, text_of(s, text));
}

/* ---- tests ---- */

static void the_plain_solver_knows_what_boards_are_worth(void **state)
{
    (void)state;
    uint64_t rng = 1, nodes = 0;
    for (unsigned i = 0; i < 300; i++) {
        struct sample s;
        draw(&s, &rng, i % 11);
        const int value = value_of(s.board);
        for (int v = value - 3; v <= value + 3; v++) {
            const struct othello_claim least = {
                .board = s.board, .value = (int8_t)v, .is_lower = true};
            const struct othello_claim most = {.board = s.board, .value = (int8_t)v};
            assert_int_equal(proof_solve(&least, &nodes), value >= v);
            assert_int_equal(proof_solve(&most, &nodes), value <= v);
        }
    }
    assert_int_equal(nodes, 1715785); /* the order of moves decides how many */
}

static void a_proof_is_valid_with_the_true_score_alone(void **state)
{
    (void)state;
    uint64_t rng = 2;
    for (unsigned i = 0; i < 60; i++) {
        struct sample s;
        draw(&s, &rng, 8 + i % 4);
        prove(&s, 1 + i % 7);
        struct verdict v = check_sample(&s);
        assert_true(v.is_valid);
        assert_true(v.claims >= v.leaves && v.leaves > 0);
        const int score = s.score;
        for (s.score = score - 4; s.score <= score + 4; s.score++) {
            v = abs(s.score) <= 64 ? check_sample(&s) : v;
            assert_true(s.score == score || abs(s.score) > 64 || !v.is_valid);
        }
    }
}

/* Neither side has a move: nothing is to be shown but the count. */
static void a_finished_game_proves_itself(void **state)
{
    (void)state;
    struct sample s = {.board = {UINT64_C(0xffffffffff), 0}, .is_black = true, .leaf = 4};
    for (s.score = -64; s.score <= 64; s.score += 2) {
        assert_int_equal(check_sample(&s).is_valid, s.score == 64);
    }
    s.board = (struct othello_board){UINT64_C(0xffff), UINT64_C(0xff00000000000000)};
    for (s.score = -64; s.score <= 64; s.score += 2) {
        const struct verdict v = check_sample(&s);
        assert_int_equal(v.is_valid, s.score == 16 + 40 - 8);
        assert_int_equal(v.err, s.score == 48 ? ERR_OK : ERR_ILLEGAL);
    }
}

/* Black has no move, white has: both claims go on after a pass. */
static void a_pass_needs_no_move_of_the_proof(void **state)
{
    (void)state;
    uint64_t rng = 3;
    unsigned passes = 0;
    for (unsigned i = 0; i < 100000 && passes < 10; i++) {
        struct sample s;
        draw(&s, &rng, 9);
        if (othello_moves(s.board.own, s.board.other) == 0 &&
            othello_moves(s.board.other, s.board.own) != 0) {
            prove(&s, 4);
            assert_true(check_sample(&s).is_valid);
            passes++;
        }
    }
    assert_int_equal(passes, 10);
}

static void change(struct sample *s, uint64_t *rng)
{
    const unsigned square = rng_below(rng, 64);
    switch (rng_below(rng, 7)) {
    case 0:
        s->score += 2 * (int)rng_below(rng, 9) - 8;
        break;
    case 1: /* a disc of the other colour, or taken away */
        if ((s->board.own >> square & 1) != 0) {
            s->board.own ^= othello_bit(square);
            s->board.other ^= rng_below(rng, 2) != 0 ? othello_bit(square) : 0;
        } else if ((s->board.other >> square & 1) != 0) {
            s->board.other ^= othello_bit(square);
            s->board.own ^= rng_below(rng, 2) != 0 ? othello_bit(square) : 0;
        } else {
            s->board.own |= othello_bit(square);
        }
        break;
    case 2: /* the other side to move */
        s->board = othello_pass(s->board);
        break;
    case 3:
    case 4:
        if (s->moves > 0) {
            s->move[rng_below(rng, s->moves)] = (unsigned char)square;
        }
        break;
    case 5: /* a move less, or more */
        s->moves = rng_below(rng, s->moves + 2);
        break;
    default:
        s->leaf = 1 + rng_below(rng, 8);
    }
}

/* Whatever is changed, with an end that fits it: what is accepted is true. */
static void no_false_proof_is_accepted(void **state)
{
    (void)state;
    uint64_t rng = 4;
    unsigned accepted = 0, refused = 0, lies = 0;
    for (unsigned i = 0; i < 50; i++) {
        struct sample proof;
        draw(&proof, &rng, 10);
        prove(&proof, 3 + i % 4);
        for (unsigned k = 0; k < 40; k++) {
            struct sample s = proof;
            for (unsigned n = 1 + rng_below(&rng, 2); n > 0; n--) {
                change(&s, &rng);
            }
            s.score = s.score > 64 ? 64 : s.score < -64 ? -64 : s.score;
            const bool is_valid = check_sample(&s).is_valid;
            const bool is_false = value_of(s.board) != s.score;
            if (is_valid && is_false) {
                fail_msg("sample %u, change %u: a false proof was accepted", i, k);
            }
            lies += is_false;
            accepted += is_valid;
            refused += !is_valid;
        }
    }
    print_message("%u accepted, %u refused, %u with a false score\n", accepted, refused, lies);
    assert_true(accepted > 20 && refused > 1000 && lies > 500);
}

static void every_bit_of_the_file_counts(void **state)
{
    (void)state;
    static char text[TEXT_MAX];
    static uint8_t bytes[MEMBERS_MAX];
    uint64_t rng = 5;
    struct sample s;
    draw(&s, &rng, 10);
    prove(&s, 5);
    const size_t size = make_member(text, text_of(&s, text), bytes);
    const struct verdict whole = check_bytes(bytes, size);
    assert_true(whole.is_valid);
    for (size_t bit = 0; bit < 8 * size; bit++) {
        bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
        const struct verdict v = check_bytes(bytes, size);
        /* A bit of the member's head says nothing. */
        assert_true(v.err != ERR_OK ||
                    (v.claims == whole.claims && v.leaves == whole.leaves &&
                     v.score.board.own == s.board.own && v.score.board.other == s.board.other &&
                     v.score.is_black == s.is_black && v.score.score == s.score));
        bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    for (size_t cut = 0; cut < size; cut++) {
        assert_int_equal(check_bytes(bytes, cut).err, ERR_PROTO);
    }
}

static void a_text_that_is_no_proof_is_refused_in_a_line(void **state)
{
    (void)state;
#define HEAD "abdada-proof 1 leaf 5 positions 1\n"
#define LESS "abdada-proof 1 leaf 2 positions 1\n"
#define BOARD "position XXXOXXXXOXXXXXXXOOXXXXXXOOOXXXXXOOOXXOO-OOOOO---OOOOOOO-OOOOOOO- X\n"
    static const struct {
        const char *text, *says;
    } bad[] = {
        {"", "it is empty"},
        {"\n", "line 1 is not that of a proof"},
        {"abdada-proof 2 leaf 5 positions 1 more\n", "version 2"},
        {"abdada-proof 1 leaf 05 positions 1\n", "line 1"},
        {"abdada-proof 1 leaf 25 positions 1\n", "too large"},
        {"abdada-proof 1 leaf 0 positions 1\n", "too large, or empty"},
        {"abdada-proof 1 leaf 5 positions 0\n", "line 1 has no position"},
        {"abdada-proof 1 leaf 5 positions 1000001\n", "line 1 has too many positions"},
        {LESS BOARD
         "score +6\nh5g6h5h5h5h5h5h5h5h5h5h5h5h5h5h5h5h5h5h5h5h5h5h5h5h5h5h5h5h5h5h5h5h5h5h5"
         "h5h5h5h5h5\n",
         "line 4 has more than 40 moves"},
        {"abdada-proof 1 leaf 5 positions 1", "line 1 does not end"},
        {HEAD, "not complete"},
        {HEAD BOARD, "not complete"},
        {HEAD BOARD "score +6\n", "not complete"},
        {HEAD BOARD "score +6\nh5\n", "not complete"},
        {HEAD "\n", "line 2 is not a position"},
        {HEAD BOARD "\n", "line 3 is not a score"},
        {HEAD BOARD "score +6\n\n", "line 4 is not of moves"},
        {HEAD BOARD "score +6\nh5\n\n", "line 5 is not the end"},
        {HEAD BOARD "score 6\n", "line 3 is not a score"},
        {HEAD BOARD "score +06\n", "line 3 is not a score"},
        {HEAD BOARD "score -0\n", "line 3 is not a score"},
        {HEAD BOARD "score +66\n", "line 3 is not a score"},
        {HEAD "position XO X\n", "line 2 is not a position"},
        {HEAD "h5\n", "line 2 is not a position"},
        {LESS BOARD "score +6\nh5g\n", "line 4 has something else"},
        {LESS BOARD "score +6\nh5 g6\n", "line 4 has something else"},
        {HEAD BOARD "score +6\nh5h5\n", "line 4 has more moves"},
        {HEAD BOARD "score +6\na1\n", "does not hold: the move for it is not legal"},
        {LESS BOARD "score +8\nh5\n", "-8 does not hold: the game is over"},
        {HEAD BOARD "score +6\nend claims 1 leaves 0 crc32 00000000\n", "there is no move for it"},
        {HEAD BOARD "score +6\nh5\nend claims 6 leaves 5 crc32 00000000\n", "is not the end"},
        {HEAD BOARD "score \t6\n", "not plain text"},
        {HEAD BOARD "score +6\n\xff\n", "not plain text"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        const struct verdict v = check_text(bad[i].text, strlen(bad[i].text));
        if (v.err == ERR_OK || strstr(v.why, bad[i].says) == NULL) {
            fail_msg("%s: said '%s' instead of '%s'", bad[i].text, v.why, bad[i].says);
        }
    }
    static const uint8_t plain[] = "abdada-proof";
    assert_non_null(strstr(check_bytes(plain, sizeof plain).why, "not a proof file"));
}

static void a_proof_beyond_the_bounds_is_refused(void **state)
{
    (void)state;
    static char text[TEXT_MAX];
    static uint8_t bytes[MEMBERS_MAX];
    uint64_t rng = 6;
    struct sample s;
    draw(&s, &rng, 12);
    prove(&s, 2);
    const size_t size = make_member(text, text_of(&s, text), bytes);
    assert_int_equal(check_within(bytes, size, 1 << 20, 2).err, ERR_OK);
    for (uint64_t max = 1; max < 100000; max *= 3) {
        const struct verdict v = check_within(bytes, size, max, 0);
        assert_int_equal(v.err, ERR_FULL);
        assert_string_equal(v.why, PROOF_NO_ROOM);
    }
    const struct verdict v = check_within(bytes, size, 0, 1);
    assert_int_equal(v.err, ERR_RANGE);
    assert_string_equal(v.why, "leaves of 2 empty squares take long: --max-leaf 2");
}

/* While the claims move to a set twice as large both sets count. */
static void claims_stay_in_their_memory(void **state)
{
    (void)state;
    uint64_t rng = 6;
    struct sample s;
    unsigned refusals = 0;
    bool is_valid = false;
    size_t most = 0;
    draw(&s, &rng, 12);
    prove(&s, 2);
    for (uint64_t max = 1; !is_valid; max += max / 8 + 1) {
        struct proof_walk walk = {
            .leaf = s.leaf, .self = &s, .choose = choose_next, .memory_max = max};
        s.read = 0;
        is_valid = proof_walk(&walk, s.board, s.is_black, s.score) == PROOF_VALID;
        assert_true(is_valid || walk.err == ERR_FULL);
        const size_t room = walk.set.room; /* has grown by one step at most since the last walk */
        assert_true((room + (room > most ? most : 0)) * sizeof *walk.set.at <= max);
        most = room > most ? room : most;
        refusals += !is_valid;
        proof_close(&walk);
    }
    assert_true(refusals > 0 && most > 1024);
}

static enum err read_lines(struct proof_reader *r, char *why)
{
    enum err err;
    while ((err = proof_reader_line(r, why)) == ERR_OK) {
    }
    return err;
}

/* Each bit of a member that is not the last: what is damaged is not torn, so no writer cuts it. */
static void a_file_that_is_damaged_is_not_torn(void **state)
{
    (void)state;
    static const char text[] = "first\n", second[] = "the second line\n";
    static uint8_t bytes[MEMBERS_MAX];
    struct proof_reader r;
    char why[PROOF_WHY_MAX];
    const size_t first = make_member(text, sizeof text - 1, bytes);
    const size_t middle = first + make_member(second, sizeof second - 1, bytes + first);
    const size_t size = middle + make_member(text, sizeof text - 1, bytes + middle);
    for (size_t bit = 8 * first; bit < 8 * middle; bit++) {
        bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
        assert_int_equal(proof_reader_of(&r, bytes, size), ERR_OK);
        const enum err err = read_lines(&r, why);
        /* A bit of the member's head says nothing. */
        assert_true(err == ERR_ABSENT ? r.whole == size && r.number == 3
                                      : err == ERR_PROTO && r.whole == first && !r.is_torn);
        proof_reader_close(&r);
        bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    for (size_t cut = middle + 1; cut < size; cut++) {
        assert_int_equal(proof_reader_of(&r, bytes, cut), ERR_OK);
        assert_int_equal(read_lines(&r, why), ERR_PROTO);
        assert_true(r.is_torn && r.whole == middle && r.number == 2);
        proof_reader_close(&r);
    }
}

/* A member has a bounded text: whatever there is, no more of it is read. */
static void a_member_of_too_much_text_is_refused(void **state)
{
    (void)state;
    static char text[PROOF_MEMBER_MAX + 1];
    static uint8_t bytes[MEMBERS_MAX];
    struct proof_reader r;
    char why[PROOF_WHY_MAX];
    memset(text, '\n', sizeof text);
    for (unsigned more = 0; more < 2; more++) {
        const size_t first = make_member("a line\nand ", 11, bytes);
        const size_t size = first + make_member(text, PROOF_MEMBER_MAX + more, bytes + first);
        assert_int_equal(proof_reader_of(&r, bytes, size), ERR_OK);
        assert_int_equal(read_lines(&r, why), more == 0 ? ERR_ABSENT : ERR_PROTO);
        assert_int_equal(r.number, more == 0 ? 1 + PROOF_MEMBER_MAX : 1);
        assert_true(more == 0 || strstr(why, "too long") != NULL);
        proof_reader_close(&r);
    }
}

/* What a writer that was killed leaves is read to its whole members, and goes on from there. */
static void a_file_is_continued_where_it_was_torn(void **state)
{
    (void)state;
    char path[] = "/tmp/abdada-proof-XXXXXX", why[PROOF_WHY_MAX], line[PROOF_LINE_MAX];
    struct proof_writer *w, *other;
    char other_why[PROOF_WHY_MAX];
    struct proof_reader r;
    uint32_t crc;
    unsigned square, moves = 0;
    const int file = mkstemp(path);
    assert_true(file >= 0);
    snprintf(line, sizeof line, PROOF_HEAD_LINE, PROOF_VERSION, 5u, 1u);
    assert_int_equal(proof_writer_open(&w, disk_of_system(), path, why), ERR_OK);
    assert_int_equal(proof_writer_begin(w, NULL, 0, 0, why), ERR_OK);
    assert_int_equal(proof_writer_line(w, line, why), ERR_OK);
    assert_int_equal(proof_writer_flush(w, why), ERR_OK);
    for (unsigned i = 0; i < 100; i++) {
        assert_int_equal(proof_writer_move(w, i % 64, why), ERR_OK);
        assert_true(i != 49 || proof_writer_flush(w, why) == ERR_OK);
    }
    assert_int_equal(proof_writer_close(&w, why), ERR_OK);
    const off_t size = lseek(file, 0, SEEK_END);
    assert_int_equal(ftruncate(file, size - 1), 0);
    assert_int_equal(proof_writer_open(&w, disk_of_system(), path, why), ERR_OK);
    assert_int_equal(proof_writer_open(&other, disk_of_system(), path, other_why), ERR_EXIST);
    assert_string_equal(other_why, "another program writes it");
    assert_int_equal(proof_writer_read(w, &r, 10), ERR_FULL);
    assert_int_equal(lseek(file, 0, SEEK_END), size - 1);
    proof_reader_close(&r);
    assert_int_equal(proof_reader_open(&r, path, UINT64_MAX), ERR_OK);
    assert_int_equal(proof_reader_line(&r, why), ERR_OK);
    assert_string_equal(r.line, line);
    while (proof_reader_move(&r, &square, why) == ERR_OK) {
        assert_int_equal(square, moves++ % 64);
    }
    assert_int_equal(moves, 50);
    assert_true(r.is_torn);
    assert_int_equal(proof_writer_begin(w, r.bytes, r.whole, r.crc, why), ERR_OK);
    assert_int_equal(proof_writer_move(w, 50, why), ERR_OK);
    crc = proof_writer_crc(w);
    assert_int_equal(proof_writer_close(&w, why), ERR_OK);
    proof_reader_close(&r);
    assert_int_equal(proof_reader_open(&r, path, UINT64_MAX), ERR_OK);
    assert_int_equal(read_lines(&r, why), ERR_ABSENT);
    assert_int_equal(r.crc, crc);
    assert_int_equal(r.number, 4);
    assert_string_equal(r.line, "c7");
    proof_reader_close(&r);
    close(file);
    unlink(path);
    assert_int_equal(proof_writer_open(&w, disk_of_system(), "/nowhere/file", why), ERR_IO);
    assert_int_equal(proof_reader_open(&r, "/nowhere/file", UINT64_MAX), ERR_IO);
}

struct full_disk {
    struct disk_port port;
    unsigned writes, waits, waits_max;
};

/* Every second write finds no room, each other one room for a part. */
static ssize_t write_a_part(void *self, int file, const void *bytes, size_t length)
{
    struct full_disk *d = self;
    errno = d->writes % 4 == 1 ? EDQUOT : ENOSPC;
    return d->writes++ % 2 == 1 ? -1 : write(file, bytes, length / 2 + 1);
}

static bool await_room(void *self, const char *why)
{
    struct full_disk *d = self;
    assert_string_equal(why, strerror(d->writes % 4 == 2 ? EDQUOT : ENOSPC));
    return ++d->waits <= d->waits_max;
}

static void a_full_disk_is_awaited(void **state)
{
    (void)state;
    char path[] = "/tmp/abdada-proof-XXXXXX", why[PROOF_WHY_MAX], line[PROOF_LINE_MAX];
    struct full_disk d = {.port = *disk_of_system(), .waits_max = 1000};
    struct proof_writer *w;
    struct proof_reader r;
    close(mkstemp(path));
    d.port.self = &d;
    d.port.write = write_a_part;
    assert_int_equal(proof_writer_open(&w, &d.port, path, why), ERR_OK);
    proof_writer_set_await(w, await_room, &d);
    assert_int_equal(proof_writer_begin(w, NULL, 0, 0, why), ERR_OK);
    for (unsigned i = 0; i < 10; i++) {
        snprintf(line, sizeof line, "line %u", i);
        assert_int_equal(proof_writer_line(w, line, why), ERR_OK);
        assert_int_equal(proof_writer_flush(w, why), ERR_OK);
    }
    assert_true(d.waits >= 10);
    assert_int_equal(proof_reader_open(&r, path, UINT64_MAX), ERR_OK);
    assert_int_equal(read_lines(&r, why), ERR_ABSENT);
    assert_int_equal(r.number, 10);
    assert_string_equal(r.line, "line 9");
    proof_reader_close(&r);
    d.waits_max = d.waits; /* now it is not awaited */
    assert_int_equal(proof_writer_line(w, "the last", why), ERR_OK);
    assert_int_equal(proof_writer_flush(w, why), ERR_IO);
    assert_true(strcmp(why, strerror(ENOSPC)) == 0 || strcmp(why, strerror(EDQUOT)) == 0);
    assert_int_equal(proof_writer_close(&w, why), ERR_IO);
    unlink(path);
}

/* The engine is right, and the score that the proof was asked for is not, or a move that the file
 * has; or there is no room for the claims. */
static void a_false_score_is_not_proved_nor_one_without_memory(void **state)
{
    (void)state;
#define LEAVES_OF_1 "abdada-proof 1 leaf 1 positions 1\n"
    static const struct {
        const char *board, *says;
        int score;
        enum err err;
        uint64_t memory_max;
        const char *text; /* of a file that is resumed */
    } cases[] = {
        {"XXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXX------------------------ X",
         "<= +62 is not true: the tables were wrong somewhere", 62, ERR_RANGE, 0},
        {"XXXOXXXXOXXXXXXXOOXXXXXXOOOXXXXXOOOXXOO-OOOOO---OOOOOOO-OOOOOOO- X",
         ">= +8 is not true: the tables were wrong somewhere", 8, ERR_RANGE, 0},
        {"XXXOXXXXOXXXXXXXOOXXXXXXOOOXXXXXOOOXXOO-OOOOO---OOOOOOO-OOOOOOO- X",
         "the proof needs more memory", 6, ERR_FULL, 1000},
        {"XXXOXXXXOXXXXXXXOOXXXXXXOOOXXXXXOOOXXOO-OOOOO---OOOOOOO-OOOOOOO- X",
         " is not true: the file has a false move, or the tables were wrong", 6, ERR_RANGE, 0,
         LEAVES_OF_1 BOARD "score +6\ng6\n"},
    };
    char path[] = "/tmp/abdada-proof-XXXXXX", why[ENGINE_WHY_MAX + PROVE_WHY_MAX];
    const int file = mkstemp(path);
    assert_true(file >= 0);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct engine_options options = {.threads = 1, .hash_bytes = 4 << 20};
        const struct prove_options proof = {.disk = disk_of_system(),
                                            .path = path,
                                            .head = {1, 1},
                                            .resumes = cases[i].text != NULL,
                                            .memory_max = cases[i].memory_max};
        struct job job = {.algorithm = algorithm_by_name("abdada"),
                          .depth = 24,
                          .remote_depth = PROTO_REMOTE_DEPTH_AUTO};
        struct engine *engine = NULL;
        struct engine_result result;
        struct prove *prove;
        assert_int_equal(engine_open(&engine, &options, why), ERR_OK);
        assert_int_equal(job_set_position(&job, &game_othello, cases[i].board, why, sizeof why),
                         ERR_OK);
        job_set_namespace(&job, 0);
        assert_int_equal(engine_run(engine, &job, NULL, &result), ERR_OK);
        if (cases[i].text != NULL) {
            static uint8_t bytes[MEMBERS_MAX];
            const size_t size = make_member(cases[i].text, strlen(cases[i].text), bytes);
            assert_int_equal(ftruncate(file, 0), 0);
            assert_int_equal(pwrite(file, bytes, size, 0), (ssize_t)size);
        }
        assert_int_equal(prove_open(&prove, &proof, why), ERR_OK);
        assert_int_equal(prove_position(prove, engine, &job, cases[i].score, why), cases[i].err);
        assert_non_null(strstr(why, cases[i].says));
        assert_int_equal(prove_close(&prove, why), ERR_OK);
        job_free(&job);
        engine_close(&engine);
    }
    close(file);
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_plain_solver_knows_what_boards_are_worth),
        cmocka_unit_test(a_proof_is_valid_with_the_true_score_alone),
        cmocka_unit_test(a_finished_game_proves_itself),
        cmocka_unit_test(a_pass_needs_no_move_of_the_proof),
        cmocka_unit_test(no_false_proof_is_accepted),
        cmocka_unit_test(every_bit_of_the_file_counts),
        cmocka_unit_test(a_text_that_is_no_proof_is_refused_in_a_line),
        cmocka_unit_test(a_proof_beyond_the_bounds_is_refused),
        cmocka_unit_test(claims_stay_in_their_memory),
        cmocka_unit_test(a_file_that_is_damaged_is_not_torn),
        cmocka_unit_test(a_member_of_too_much_text_is_refused),
        cmocka_unit_test(a_file_is_continued_where_it_was_torn),
        cmocka_unit_test(a_full_disk_is_awaited),
        cmocka_unit_test(a_false_score_is_not_proved_nor_one_without_memory),
    };
    memory = aligned_alloc(64, othello_memory_bytes());
    assert_non_null(memory);
    memset(memory, 0, othello_memory_bytes());
    const int failed = cmocka_run_group_tests_name("cli_proof", tests, NULL, NULL);
    free(memory);
    return failed;
}
