/* The solver of the checker. It is slow and plain on purpose: it shares with the one that finds
 * scores (worker/games/othello/solver.c, last.c) nothing but the rules (board.h). */
#include "worker/programs/othello/proof.h"

enum {
    MOVES_MAX = 34, /* no board has more */
    FEW = 5, /* with so few empty squares they are tried as they come */
};

static bool is_at_least(struct othello_board b, unsigned empties, int value, uint64_t *nodes);

/* Whether the move, which turns `flips`, is worth `value` or more: its answers are all worth no
 * more than -value, so none is worth 1 - value. */
static bool move_is_at_least(struct othello_board b, unsigned square, uint64_t flips,
                             unsigned empties, int value, uint64_t *nodes)
{
    return !is_at_least(othello_play(b, square, flips), empties - 1, 1 - value, nodes);
}

/* There is no move: pass, or count. */
static bool pass_is_at_least(struct othello_board b, unsigned empties, int value, uint64_t *nodes)
{
    if (othello_moves(b.other, b.own) == 0) {
        return othello_final_score(b) >= value;
    }
    return !is_at_least(othello_pass(b), empties, 1 - value, nodes);
}

/* Without a list of moves. Those of quadrants with an odd number of empty squares come first: who
 * begins in such a region moves last in it. */
static bool few_is_at_least(struct othello_board b, unsigned empties, int value, uint64_t *nodes)
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
                if (move_is_at_least(b, square, flips, empties, value, nodes)) {
                    return true;
                }
            }
        }
    }
    return !has_moved && pass_is_at_least(b, empties, value, nodes);
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
static bool is_at_least(struct othello_board b, unsigned empties, int value, uint64_t *nodes)
{
    ++*nodes;
    if (empties == 0) {
        return othello_final_score(b) >= value;
    }
    if (empties <= FEW) {
        return few_is_at_least(b, empties, value, nodes);
    }
    const uint64_t moves = othello_moves(b.own, b.other);
    if (moves == 0) {
        return pass_is_at_least(b, empties, value, nodes);
    }
    struct move list[MOVES_MAX];
    const unsigned n = list_moves(b, moves, list);
    for (unsigned i = 0; i < n; i++) {
        if (move_is_at_least(b, list[i].square, list[i].flips, empties, value, nodes)) {
            return true;
        }
    }
    return false;
}

bool proof_solve(const struct proof_claim *claim, uint64_t *nodes)
{
    const unsigned empties = othello_count(othello_empties(claim->board));
    return claim->is_lower ? is_at_least(claim->board, empties, claim->value, nodes)
                           : !is_at_least(claim->board, empties, claim->value + 1, nodes);
}
