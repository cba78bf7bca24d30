/* test_tree: what the tests of synthetic trees share. */
#ifndef TESTS_SUPPORT_TEST_TREE_H
#define TESTS_SUPPORT_TEST_TREE_H

#include "common/rng.h"
#include "worker/games/tree/tree.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Every kind, small enough to walk. */
static const char *const test_trees[] = {
    "tree:b=4,d=6,seed=1",
    "tree:b=3,d=7,seed=2,edges=bell,range=900",
    "tree:b=5,d=5,seed=3,edges=tailed,order=50,range=450",
    "tree:b=4,d=6,seed=4,edges=losses,order=70",
    "tree:b=4,d=6,seed=5,edges=sharp,order=0",
    "tree:b=3,d=6,seed=6,shape=ranked,order=30",
    "tree:b=3,d=6,seed=7,shape=varied,ends=10,checks=20",
    "tree:b=4,d=8,seed=8,replies=1,shape=ranked",
    "tree:b=3,d=8,seed=9,t=2",
    "tree:b=3,d=8,seed=10,t=3,edges=losses,replies=2",
    "tree:b=2,d=9,seed=11,t=16,ends=20,checks=20,order=60",
};
enum { TEST_TREES = sizeof test_trees / sizeof test_trees[0] };

static inline void test_parse(struct tree_position *p, const char *text)
{
    char why[200] = "";
    if (game_tree.parse(p, text, why, sizeof why) != ERR_OK) {
        fail_msg("%s: %s", text, why);
    }
}

static inline uint64_t test_power(unsigned base, unsigned exponent)
{
    uint64_t n = 1;
    while (exponent-- > 0) {
        n *= base;
    }
    return n;
}

/* Visits every node of the tree below `p`. */
static inline void test_walk(struct tree_position *p,
                             void (*visit)(const struct tree_position *p, void *context),
                             void *context)
{
    struct game_move list[GAME_MOVES_MAX];
    unsigned n = game_tree.generate(p, list);
    visit(p, context);
    for (unsigned i = 0; i < n; i++) {
        game_tree.make(p, list[i].move);
        test_walk(p, visit, context);
        game_tree.unmake(p, list[i].move);
    }
}

#endif
