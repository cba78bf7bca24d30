/* The solver of the checker is slow and plain on purpose: it shares with the one that finds scores
 * (solver.c, last.c) nothing but the rules (board.h). */
#include "worker/games/othello/claim.h"

#include "common/rng.h"

#include <namespaces.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MOVES_MAX = 34, /* no board has more */
    FEW = 5, /* with so few empty squares they are tried as they come */
    COUNT_NODES = 256, /* between two calls of count */
};

/* ---- the solver ---- */

struct claim_search {
    uint64_t nodes;
    const struct game_solver *solver; /* NULL: nobody counts, or says stop */
    bool is_stopped; /* what comes out is no answer then */
};

static bool is_at_least(struct othello_board b, unsigned empties, int value,
                        struct claim_search *search);

/* Whether the move, which turns `flips`, is worth `value` or more: its answers are all worth no
 * more than -value, so none is worth 1 - value. */
static bool move_is_at_least(struct othello_board b, unsigned square, uint64_t flips,
                             unsigned empties, int value, struct claim_search *search)
{
    return !is_at_least(othello_play(b, square, flips), empties - 1, 1 - value, search);
}

/* There is no move: pass, or count. */
static bool pass_is_at_least(struct othello_board b, unsigned empties, int value,
                             struct claim_search *search)
{
    if (othello_moves(b.other, b.own) == 0) {
        return othello_final_score(b) >= value;
    }
    return !is_at_least(othello_pass(b), empties, 1 - value, search);
}

/* Without a list of moves. Those of quadrants with an odd number of empty squares come first: who
 * begins in such a region moves last in it. */
static bool few_is_at_least(struct othello_board b, unsigned empties, int value,
                            struct claim_search *search)
{
    const uint64_t all = othello_empties(b), quadrant = UINT64_C(0x0f0f0f0f);
    uint64_t odd = 0;
    bool has_moved = false;
    for (unsigned i = 0; i < 4; i++) {
        const uint64_t part = all & quadrant << (4 * (i % 2) + 32 * (i / 2));
        odd |= othello_count(part) % 2 == 1 ? part : 0;
    }
    for (unsigned pass = 0; pass < 2; pass++) {
        for (uint64_t set = pass == 0 ? odd : all & ~odd; set != 0; set &= set - 1) {
            const unsigned square = othello_first(set);
            const uint64_t flips = othello_flips(b.own, b.other, square);
            if (flips != 0) {
                has_moved = true;
                if (move_is_at_least(b, square, flips, empties, value, search)) {
                    return true;
                }
            }
        }
    }
    return !has_moved && pass_is_at_least(b, empties, value, search);
}

struct move {
    uint64_t flips;
    unsigned square, order; /* least first: the fewer answers there are, the smaller the tree */
};

/* The moves in order. */
static unsigned list_moves(struct othello_board b, uint64_t moves, struct move list[MOVES_MAX])
{
    unsigned n = 0;
    for (; moves != 0; moves &= moves - 1) {
        struct move m = {.square = othello_first(moves)};
        m.flips = othello_flips(b.own, b.other, m.square);
        const struct othello_board next = othello_play(b, m.square, m.flips);
        const uint64_t answers = othello_moves(next.own, next.other);
        m.order = 4 * (othello_count(answers) + othello_count(answers & othello_corners)) +
                  ((othello_bit(m.square) & othello_corners) == 0 ? 2 : 0);
        unsigned at = n++;
        for (; at > 0 && list[at - 1].order > m.order; at--) {
            list[at] = list[at - 1];
        }
        list[at] = m;
    }
    return n;
}

/* Whether the board is worth `value` or more. */
static bool is_at_least(struct othello_board b, unsigned empties, int value,
                        struct claim_search *search)
{
    if (search->is_stopped) {
        return false;
    }
    if (++search->nodes % COUNT_NODES == 0 && search->solver != NULL &&
        !search->solver->count(search->solver->self, COUNT_NODES)) {
        search->is_stopped = true;
        return false;
    }
    if (empties == 0) {
        return othello_final_score(b) >= value;
    }
    if (empties <= FEW) {
        return few_is_at_least(b, empties, value, search);
    }
    const uint64_t moves = othello_moves(b.own, b.other);
    if (moves == 0) {
        return pass_is_at_least(b, empties, value, search);
    }
    struct move list[MOVES_MAX];
    const unsigned n = list_moves(b, moves, list);
    for (unsigned i = 0; i < n; i++) {
        if (move_is_at_least(b, list[i].square, list[i].flips, empties, value, search)) {
            return true;
        }
    }
    return false;
}

bool othello_claim_solve(const struct othello_claim *claim, const struct game_solver *solver,
                         uint64_t *nodes, bool *is_true)
{
    struct claim_search search = {.solver = solver};
    const unsigned empties = othello_count(othello_empties(claim->board));
    *is_true = claim->is_lower ? is_at_least(claim->board, empties, claim->value, &search)
                               : !is_at_least(claim->board, empties, claim->value + 1, &search);
    *nodes += search.nodes;
    return !search.is_stopped;
}

/* ---- as a game ---- */

/* The one move that there is, once, so that the root has one. */
enum { SOLVE = 1 };

struct claim_position {
    struct othello_claim claim;
    bool is_made;
};

void othello_claim_format(const struct othello_claim *claim, char text[OTHELLO_CLAIM_TEXT_MAX])
{
    char board[67];
    othello_format(claim->board, claim->is_black, board);
    snprintf(text, OTHELLO_CLAIM_TEXT_MAX, "%s %s %+d", board,
             claim->is_lower ? ">=" : "<=", claim->value);
}

static enum err parse(void *position, const char *text, char *why, size_t why_size)
{
    struct claim_position *p = position;
    struct othello_claim claim = {.value = 0};
    const char *sign = strpbrk(text, "<>");
    char board[GAME_TEXT_MAX], line[OTHELLO_WHY_MAX], *end;
    snprintf(why, why_size, "%s", "");
    if (sign == NULL || sign[1] != '=' || (size_t)(sign - text) >= sizeof board) {
        snprintf(why, why_size, "a board, the side to move, >= or <=, and a value are wanted");
        return ERR_SYNTAX;
    }
    const long value = strtol(sign + 2, &end, 10);
    if (end == sign + 2 || *end != '\0' || value < -OTHELLO_SCORE_MAX ||
        value > OTHELLO_SCORE_MAX) {
        return err_say(ERR_SYNTAX, why, why_size, "a value from %d to %d is wanted",
                       -OTHELLO_SCORE_MAX, OTHELLO_SCORE_MAX);
    }
    memcpy(board, text, (size_t)(sign - text));
    board[sign - text] = '\0';
    if (!othello_parse(board, &claim.board, &claim.is_black, line)) {
        return err_say(ERR_SYNTAX, why, why_size, "%s", line);
    }
    claim.value = (int8_t)value;
    claim.is_lower = *sign == '>';
    *p = (struct claim_position){.claim = claim};
    return ERR_OK;
}

static void format(const void *position, char *text)
{
    const struct claim_position *p = position;
    othello_claim_format(&p->claim, text);
}

static unsigned generate(const void *position, struct game_move *list)
{
    const struct claim_position *p = position;
    list[0] = (struct game_move){.move = SOLVE};
    return p->is_made ? 0 : 1;
}

static void make(void *position, uint16_t move)
{
    (void)move;
    ((struct claim_position *)position)->is_made = true;
}

static void unmake(void *position, uint16_t move)
{
    (void)move;
    ((struct claim_position *)position)->is_made = false;
}

static uint64_t key(const void *position)
{
    const struct claim_position *p = position;
    const uint64_t claim = (uint64_t)(uint8_t)p->claim.value << 2 | (p->claim.is_lower ? 2u : 0u) |
                           (p->is_made ? 1u : 0u);
    return othello_hash(p->claim.board) ^ rng_mix(claim);
}

static int nothing(const void *position)
{
    (void)position;
    return 0;
}

static bool check(const void *position)
{
    (void)position;
    return false;
}

static unsigned depth_left(const void *position)
{
    const struct claim_position *p = position;
    return p->is_made ? 0 : 1;
}

static bool solves(const void *position, int depth, unsigned few)
{
    const struct claim_position *p = position;
    (void)few;
    return !p->is_made && depth > 0;
}

static bool solve(void *position, int alpha, int beta, const struct game_solver *solver, int *value,
                  uint16_t *move)
{
    const struct claim_position *p = position;
    uint64_t nodes = 0;
    bool is_true;
    (void)alpha;
    (void)beta;
    if (!othello_claim_solve(&p->claim, solver, &nodes, &is_true)) {
        return false;
    }
    *value = is_true ? 1 : -1;
    *move = SOLVE;
    return solver->count(solver->self, (unsigned)(nodes % COUNT_NODES));
}

static void format_move(const void *position, uint16_t move, char *text)
{
    (void)position;
    (void)move;
    memcpy(text, "solve", 6);
}

static enum err parse_move(const void *position, const char *text, uint16_t *move)
{
    const struct claim_position *p = position;
    if (strcmp(text, "solve") != 0 || p->is_made) {
        return ERR_ILLEGAL;
    }
    *move = SOLVE;
    return ERR_OK;
}

enum { NEVER = 255 };

/* One iteration in the full window: the answer is one of two. */
static const struct game_search game_search = {
    .first_iteration = 1,
    .iteration_step = 1,
    .aspiration_depth = NEVER,
    .null_depth = NEVER,
    .reduce_depth = NEVER,
    .singular_depth = NEVER,
    .internal_depth = NEVER,
    .probcut_depth = NEVER,
};

const struct game game_othello_claim = {
    .name = "othello-claim",
    .namespace_id = NAMESPACE_othello + 2,
    .position_size = sizeof(struct claim_position),
    .score_kind = GAME_DISCS,
    .score_max = 1,
    .search = &game_search,
    .parse = parse,
    .format = format,
    .generate = generate,
    .make = make,
    .unmake = unmake,
    .key = key,
    .evaluate = nothing,
    .finished = nothing,
    .check = check,
    .depth_left = depth_left,
    .solves = solves,
    .solve = solve,
    .format_move = format_move,
    .parse_move = parse_move,
};
