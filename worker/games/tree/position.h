/* position: a path in a synthetic tree. Everything about a node follows from its hash and static
 * value; the rules are in tree.h. Pure; no allocation. */
#ifndef WORKER_GAMES_TREE_POSITION_H
#define WORKER_GAMES_TREE_POSITION_H

#include "worker/games/game.h"
#include "worker/games/tree/params.h"

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
    struct tree_params params;
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
