/* algorithms: the parallel searches by name, as a table: one row for each.
 *
 * To add one, write its row in algorithms.c, and above the table, under a heading that names the
 * paper, its rules (by way of children.h, and of steal.h or tasks.h if its searchers hand each
 * other work). Pure. */
#ifndef WORKER_SEARCH_HANDOVER_ALGORITHMS_H
#define WORKER_SEARCH_HANDOVER_ALGORITHMS_H

#include "common/err.h"
#include "worker/search/algorithm.h"

struct peers;

/* NULL: no algorithm of that name. */
const struct algorithm *algorithm_by_name(const char *name);

/* Row i of the table, NULL after the last. */
const struct algorithm *algorithm_at(unsigned i);

enum { ALGORITHM_NAMES_MAX = 192 };

/* The same for help texts, which are there before the program runs. A test compares the two. */
#define ALGORITHM_NAMES                                                                 \
    "abdada, abdada-paper, shared-table, lazy, ybwc, jamboree, pvs, epvs, dts, aphid, " \
    "minimal-tree, minimal-tree-static, uidpabs, sequential"

/* Writes the names, separated by ", ", for messages. Returns `names`. */
const char *algorithm_names(char names[ALGORITHM_NAMES_MAX]);

/* What a searcher keeps for all of them (peers.h). ERR_NOMEM. */
enum err algorithms_open_work(struct peers *peers);
/* Takes what was opened in part, or not at all; nulls. */
void algorithms_close_work(struct peers *peers);

#endif
