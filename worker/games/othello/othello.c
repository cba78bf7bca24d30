#include "worker/games/othello/othello.h"

#include "worker/games/othello/patterns.h"
#include "worker/games/othello/solver.h"

#include <namespaces.h>
#include <stdio.h>
#include <string.h>

_Static_assert((int)OTHELLO_UNDO_MAX > 2 * OTHELLO_SQUARES - 8, "a game fits");

static const char start[] = "---------------------------OX------XO--------------------------- X";

static enum err parse(void *position, const char *text, char *why, size_t why_size)
{
    struct othello_position *p = position;
    char line[OTHELLO_WHY_MAX];
    memset(p, 0, sizeof *p);
    snprintf(why, why_size, "%s", "");
    if (!othello_parse(strcmp(text, "startpos") == 0 ? start : text, &p->board, &p->is_black,
                       line)) {
        return err_say(ERR_SYNTAX, why, why_size, "%s", line);
    }
    return ERR_OK;
}

static void format(const void *position, char *text)
{
    const struct othello_position *p = position;
    othello_format(p->board, p->is_black, text);
}

static unsigned generate(const void *position, struct game_move *list)
{
    const struct othello_position *p = position;
    uint64_t moves = othello_moves(p->board.own, p->board.other);
    unsigned n = 0;
    for (; moves != 0; moves &= moves - 1) {
        list[n++] = (struct game_move){.move = (uint16_t)(othello_first(moves) + 1)};
    }
    if (n == 0 && othello_moves(p->board.other, p->board.own) != 0) {
        list[n++] = (struct game_move){.move = OTHELLO_PASS};
    }
    return n;
}

static void make(void *position, uint16_t move)
{
    struct othello_position *p = position;
    uint64_t flips = 0;
    if (move == OTHELLO_PASS) {
        p->board = othello_pass(p->board);
    } else {
        flips = othello_flips(p->board.own, p->board.other, move - 1u);
        p->board = othello_play(p->board, move - 1u, flips);
    }
    p->undo[p->made].flips = flips;
    p->undo[p->made++].move = move;
    p->is_black = !p->is_black;
}

static void unmake(void *position, uint16_t move)
{
    struct othello_position *p = position;
    uint64_t flips = p->undo[--p->made].flips;
    p->board = othello_pass(p->board);
    p->is_black = !p->is_black;
    if (move != OTHELLO_PASS) {
        p->board.other ^= flips;
        p->board.own ^= flips ^ othello_bit(move - 1u);
    }
}

static bool passed(const void *position)
{
    const struct othello_position *p = position;
    return p->made > 0 && p->undo[p->made - 1].move == OTHELLO_PASS;
}

static uint64_t key(const void *position)
{
    const struct othello_position *p = position;
    return othello_hash(p->board);
}

static int finished(const void *position)
{
    const struct othello_position *p = position;
    return othello_final_score(p->board);
}

static unsigned depth_left(const void *position)
{
    const struct othello_position *p = position;
    return othello_count(othello_empties(p->board));
}

static bool check(const void *position)
{
    (void)position;
    return false;
}

/* ---- evaluation and order ---- */

static int evaluate(const void *position)
{
    const struct othello_position *p = position;
    const struct othello_board b = p->board;
    if (othello_moves(b.own, b.other) == 0 && othello_moves(b.other, b.own) == 0) {
        return othello_final_score(b);
    }
    const int part = othello_evaluate(b), half = OTHELLO_EVAL_UNIT / 2;
    const int value = (part + (part < 0 ? -half : half)) / OTHELLO_EVAL_UNIT;
    return value > OTHELLO_SCORE_MAX - 1   ? OTHELLO_SCORE_MAX - 1
           : value < 1 - OTHELLO_SCORE_MAX ? 1 - OTHELLO_SCORE_MAX
                                           : value;
}

static int sign_of(int value)
{
    return (value > 0) - (value < 0);
}

static int evaluate_sign(const void *position)
{
    return sign_of(evaluate(position));
}

static int finished_sign(const void *position)
{
    return sign_of(finished(position));
}

enum {
    RATED_DEPTH = 3, /* below, the evaluation of every move costs more than a bad order */
    ANSWER = OTHELLO_EVAL_UNIT, /* what an answer weighs */
};

/* By the evaluation, and fastest first: where the opponent has few answers, the tree is small. */
static void rate(const void *position, int depth, struct game_move *list, unsigned count)
{
    const struct othello_position *p = position;
    const bool is_exact = depth + 1 >= (int)depth_left(position); /* or likely to be */
    for (unsigned i = 0; i < count && list[i].move != OTHELLO_PASS; i++) {
        const unsigned square = list[i].move - 1u;
        if (is_exact) {
            list[i].order = othello_order(p->board, square);
            continue;
        }
        const uint64_t flips = othello_flips(p->board.own, p->board.other, square);
        const struct othello_board child = othello_play(p->board, square, flips);
        const uint64_t answers = othello_moves(child.own, child.other);
        int value = -(int)(othello_count(answers) + othello_count(answers & othello_corners));
        if (depth >= RATED_DEPTH) {
            value = ANSWER * value - othello_evaluate(child);
        }
        list[i].order = value;
    }
}

/* ---- moves as text ---- */

static void format_move(const void *position, uint16_t move, char *text)
{
    (void)position;
    if (move == OTHELLO_PASS) {
        memcpy(text, "pass", 5);
        return;
    }
    text[0] = (char)('a' + (move - 1) % 8);
    text[1] = (char)('1' + (move - 1) / 8);
    text[2] = '\0';
}

static enum err parse_move(const void *position, const char *text, uint16_t *move)
{
    struct game_move list[GAME_MOVES_MAX];
    const int wanted = othello_read_move(&text) + 1;
    if (wanted == 0 || *text != '\0') {
        return ERR_SYNTAX;
    }
    const unsigned count = generate(position, list);
    for (unsigned i = 0; i < count; i++) {
        if (list[i].move == wanted) {
            *move = list[i].move;
            return ERR_OK;
        }
    }
    return ERR_ILLEGAL;
}

/* ---- perft ---- */

static uint64_t perft(struct othello_board b, unsigned depth)
{
    uint64_t moves = othello_moves(b.own, b.other), sum = 0;
    if (depth == 0) {
        return 1;
    }
    if (moves == 0) {
        return othello_moves(b.other, b.own) == 0 ? 1 : perft(othello_pass(b), depth - 1);
    }
    if (depth == 1) {
        return othello_count(moves);
    }
    for (; moves != 0; moves &= moves - 1) {
        const unsigned square = othello_first(moves);
        const uint64_t flips = othello_flips(b.own, b.other, square);
        sum += perft(othello_play(b, square, flips), depth - 1);
    }
    return sum;
}

uint64_t othello_perft(const struct othello_position *position, unsigned depth)
{
    return perft(position->board, depth);
}

/* ---- endings ---- */

/* At most: then no table is asked below. A piece is for one searcher where there is a memory for
 * each host; searchers that all share one divide it among them (solver.c). */
static bool solves(const void *position, int depth, enum game_piece piece)
{
    static const unsigned most[] = {
        [GAME_PIECE_KEPT] = 16,
        [GAME_PIECE] = 18,
        [GAME_PIECE_TOGETHER] = 24,
        [GAME_PIECE_SELECTIVE] = 24,
    };
    const unsigned left = depth_left(position);
    return left <= most[piece] && depth >= (int)left;
}

static bool solve(void *position, int alpha, int beta, const struct game_solver *solver, int *value,
                  uint16_t *move)
{
    const struct othello_position *p = position;
    unsigned square;
    alpha = alpha < -OTHELLO_SCORE_MAX ? -OTHELLO_SCORE_MAX - 1 : alpha;
    beta = beta > OTHELLO_SCORE_MAX ? OTHELLO_SCORE_MAX + 1 : beta;
    if (!othello_solve(solver->memory, p->board, alpha, beta, solver, value, &square)) {
        return false;
    }
    *move = square != OTHELLO_NO_MOVE                          ? (uint16_t)(square + 1)
            : othello_moves(p->board.other, p->board.own) != 0 ? OTHELLO_PASS
                                                               : 0;
    return true;
}

static bool solve_sign(void *position, int alpha, int beta, const struct game_solver *solver,
                       int *value, uint16_t *move)
{
    alpha = alpha < -1 ? -1 : alpha > 0 ? 0 : alpha; /* won, or lost, by however much */
    beta = beta > 1 ? 1 : beta < 0 ? 0 : beta;
    if (!solve(position, alpha, beta, solver, value, move)) {
        return false;
    }
    *value = sign_of(*value);
    return true;
}

enum { NEVER = 255 };

/* From depth 4 on: about what build/release/tools/othello_probcut prints (400 positions, depth 10).
 */
static const short deviation[] = {345, 310, 470, 395, 385, 340, 415};

/* ProbCut is the only rule of selection full for this game: the others are about pieces that hang.
 */
static const struct game_search game_search = {
    .first_iteration = 1,
    .iteration_step = 1,
    .aspiration_depth = 4,
    .aspiration_width = 3,
    .exact_gap = 12,
    .prepares = true,
    .children_depth = 6,
    .null_depth = NEVER,
    .reduce_depth = NEVER,
    .singular_depth = NEVER,
    .internal_depth = NEVER,
    .deviation = deviation,
    .deviations = sizeof deviation / sizeof deviation[0],
    .probcut_depth = 4,
    .probcut_tenths = 14,
};

#define OTHELLO_COMMON                                                                            \
    .position_size = sizeof(struct othello_position), .score_kind = GAME_DISCS,                   \
    .search = &game_search, .parse = parse, .format = format, .generate = generate, .make = make, \
    .unmake = unmake, .key = key, .check = check, .passed = passed, .depth_left = depth_left,     \
    .rate = rate, .solves = solves, .solver_size = othello_memory_bytes,                          \
    .solver_layout = NAMESPACE_othello, .format_move = format_move, .parse_move = parse_move

const struct game game_othello = {
    OTHELLO_COMMON,
    .name = "othello",
    .namespace_id = NAMESPACE_othello,
    .score_max = OTHELLO_SCORE_MAX,
    .evaluate = evaluate,
    .finished = finished,
    .solve = solve,
};

const struct game game_othello_wld = {
    OTHELLO_COMMON,      .name = "othello-wld",     .namespace_id = NAMESPACE_othello + 1,
    .score_max = 1,      .evaluate = evaluate_sign, .finished = finished_sign,
    .solve = solve_sign,
};
