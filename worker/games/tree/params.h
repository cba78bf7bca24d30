/* params: the fields of a tree's text. tree.h says what they mean. Pure. Threads: any. */
#ifndef WORKER_GAMES_TREE_PARAMS_H
#define WORKER_GAMES_TREE_PARAMS_H

#include "common/err.h"

#include <stddef.h>
#include <stdint.h>

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

struct tree_params {
#define TREE_MEMBER(name, least, most, usual) uint64_t name;
    TREE_FIELDS(TREE_MEMBER)
#undef TREE_MEMBER
};

/* ERR_SYNTAX or ERR_ILLEGAL, with the field and what it may be in `why`; `out` is untouched then.
 */
enum err tree_params_parse(struct tree_params *out, const char *text, char *why, size_t why_size);

/* GAME_TEXT_MAX bytes at most with the end; b, d, seed and what differs from its default. */
void tree_params_format(const struct tree_params *params, char *text);

/* Differs between any two sets of parameters. */
uint64_t tree_params_hash(const struct tree_params *params);

#endif
