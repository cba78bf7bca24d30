/* tree: synthetic game trees, repeatable from a text, for measuring searches.
 *
 * A position is `tree:` and fields in any order, e.g. "tree:b=20,d=12,seed=1"; what is left out has
 * the value in brackets. The text names the root; moves made on it are not part of it.
 *
 *   b=1..64        [20]  moves of the side that moves at the root; the average unless
 *                        shape=uniform
 *   replies=1..64  [b]   the same for the other side. With replies=1 alpha-beta can prune nothing,
 *                        so a tree of 2d plies is Hyatt's minimax tree of d
 *   d=1..100       [12]  plies; no moves below. Deeper searches end there
 *   seed=N         [1]   64 bits: the values
 *   shape=         [uniform]
 *     uniform            every node has b (replies) moves (Hyatt 1988, section 2.2)
 *     ranked             the width of a node follows from its place among its siblings, 1, 2, ...,
 *                        2b-1 from first to last (Hyatt 1988, section 5.4, who gives the i-th
 *                        branch i moves; stretched over the siblings there are so that b^d leaves
 *                        remain)
 *     varied             1 to 2b-1 at random, each as likely
 *   ends=0..90     [0]   percent of the nodes between root and d where the game is over early
 *   checks=0..90   [0]   percent of the nodes that the search extends by a ply, as chess does
 *                        checks (give it less depth than d)
 *   edges=         [uniform]  what a move is worth to its mover
 *     uniform            -range..range, each as likely (Shoham and Toledo 2002; Ura 2014, 4.1)
 *     bell               the mean of four such
 *     tailed             the cube of one: mostly little, seldom much
 *     losses             the best move 0, the others -range..-1: every node's static value is its
 *                        true value, so that ordering is exact and known
 *     sharp              as losses, but a move that is not the best also gives away all that its
 *                        mover is ahead: a bad move has one refutation, which `order` finds or
 *                        misses (with losses, most moves of a side that is ahead still win)
 *   range=1..900   [100] at most 29999 / d
 *   order=0..100   [100] percent of the nodes that list the move of best static child value first
 *                        and all others by that value. At the others, n moves come before the best,
 *                        1 <= n < moves, n - 1 growing with the fourth power of a uniform number:
 *                        order=70 is strongly ordered as Marsland and Campbell 1982 have it (best
 *                        first 70%, in the first quarter 90% of the time). 0: no order at all
 *   t=1..16        [1]   transpositions: each side's moves within t turns reach the same node in
 *                        any order; then half of a move's value goes with the move and half with
 *                        the node reached (all with the move in edges=losses). Only for
 *                        shape=uniform, not sharp. 1: none, a real tree
 *
 * The static value of a node is the sum of the edges on its path, each counted for its mover, seen
 * from the side to move (incremental random trees: Shoham and Toledo 2002; N-games: Smith and Nau
 * 1994). It is the same for every path to the node, and so is everything else about it: a strict
 * value is a function of key and depth. `order` changes keys but not the tree; so do `d`, `ends`
 * and `checks` where they do not cut it.
 *
 * All moves are noisy with order 1..1000, which is how a game orders its own moves; there is no
 * quiescence. A move is its number, 1 upwards. Threads: as every game (game.h).
 *
 * Speed (2-core x86-64, both busy): make, evaluate, key and unmake together 10-13 ns (sharp 24);
 * make, generate and unmake at b=20 75-120 ns (t=2: 175, sharp with order=70: 270). A strict search
 * of one thread runs 4-7 million nodes a second. */
#ifndef WORKER_GAMES_TREE_TREE_H
#define WORKER_GAMES_TREE_TREE_H

#include "worker/games/game.h"

extern const struct game game_tree;

/* name, least, most, default (replies: as b when 0). In this order they are printed. */
#define TREE_FIELDS(X)        \
    X(b, 1, 64, 20)           \
    X(d, 1, 100, 12)          \
    X(seed, 0, UINT64_MAX, 1) \
    X(replies, 1, 64, 0)      \
    X(shape, 0, 2, 0)         \
    X(edges, 0, 4, 0)         \
    X(range, 1, 900, 100)     \
    X(order, 0, 100, 100)     \
    X(t, 1, 16, 1)            \
    X(ends, 0, 90, 0)         \
    X(checks, 0, 90, 0)

enum { TREE_DEPTH_MAX = 100, TREE_SCORE_MAX = 29999 };
enum tree_shape { TREE_UNIFORM, TREE_RANKED, TREE_VARIED };
enum tree_edges { TREE_EVEN, TREE_BELL, TREE_TAILED, TREE_LOSSES, TREE_SHARP };

enum {
#define TREE_FIELD(name, least, most, usual) TREE_##name,
    TREE_FIELDS(TREE_FIELD)
#undef TREE_FIELD
        TREE_FIELD_COUNT
};

/* The fields by name and by number. */
union tree_params {
    struct {
#define TREE_MEMBER(name, least, most, usual) uint64_t name;
        TREE_FIELDS(TREE_MEMBER)
#undef TREE_MEMBER
    };
    uint64_t at[TREE_FIELD_COUNT];
};

/* A node on the path. Moves that commute are those of one block: 2t plies, one when t is 1. */
struct tree_node {
    uint64_t hash;
    uint64_t sum; /* sum of the block's edges, on the hash of its first node */
    int32_t score; /* static, from the side to move */
    int16_t surplus; /* the part of score that belongs to the node, not to moves; 0 at a block's
                        first */
    uint8_t block; /* ply of the block's first node */
    uint8_t width; /* moves */
    uint8_t place, siblings; /* place 1..siblings; taken from the parent where it has no choice */
};

struct tree_position {
    /* fixed after parse */
    union tree_params params;
    uint64_t key_mask; /* keeps the keys of unlike trees apart */
    uint8_t block_plies;
    uint8_t order_shift; /* brings 0..2 * range into the room a move's order has */
    uint8_t mean[2]; /* width, by the parity of the ply */
    bool by_node; /* half the value of a move belongs to the node reached */
    /* state */
    uint8_t ply;
    struct tree_node path[TREE_DEPTH_MAX + 1];
};

_Static_assert(sizeof(struct tree_position) < 4096, "a position is copied per job and per test");

static inline const struct tree_node *tree_position_node(const struct tree_position *p)
{
    return &p->path[p->ply];
}

#endif
