/* algorithm: the parallel searches by name, as a table: one row and one function for each.
 *
 * They differ in how the children of a node are searched and in what they need around them;
 * iterations, node, quiescence, ordering and the table port are the same code for all. To add one,
 * write its row in algorithm.c, and above the table, under a heading that names the paper, its
 * rules (by way of children.h, and of steal.h or tasks.h if its searchers hand each other work).
 * Pure. */
#ifndef WORKER_SEARCH_ALGORITHM_H
#define WORKER_SEARCH_ALGORITHM_H

#include <stdbool.h>
#include <stddef.h>

struct search;
struct search_options;
struct node;
struct steal_rules;
struct task_rules;

/* How a visit of a node ended. A status is never a score. */
enum search_visit {
    VISIT_VALUE, /* node->best is its value, or a bound outside the window */
    VISIT_BUSY, /* an exclusive visit, and another searcher is in the node; come back later */
    VISIT_STOP, /* no value: the search is being stopped, or unwinds to a node above */
    VISIT_ABORTED, /* no value: search_abort, or search_narrow to an empty window, named the split
                      point that is this node */
    VISIT_CONTINUE, /* select_node and tasks_node: nothing is decided, search the children */
};

struct algorithm {
    const char *name;
    /* The children of a node, if they have at least the in-flight depth that the table gives, also
     * where nothing is registered (children.h). VISIT_ABORTED: a child was aborted and the function
     * has nothing to take its place; the node then has no value. */
    enum search_visit (*search_children)(struct search *search, struct node *node);
    bool counts_inflight; /* visits are registered in flight; shards register each ask anyway */
    bool uses_searchers; /* several searchers in one process */
    bool uses_shards; /* several processes, by way of ttservers */
    bool random_order; /* each searcher orders moves of equal worth in its own way */
    /* At most one of the two. By these rules the others help the searcher that owns the root, where
     * there is a port of peers.h; without one each begins at the root. */
    const struct steal_rules *steals;
    const struct task_rules *tasks;
    /* NULL: none. Whether the searcher with these options (its number: search.h) leaves out the
     * iteration of that depth; it never leaves out that of the limit, the last one. */
    bool (*skips_iteration)(const struct search_options *options, unsigned depth);
};

/* Whether its searchers send each other messages (peers.h). */
static inline bool algorithm_needs_peers(const struct algorithm *a)
{
    return a->steals != NULL || a->tasks != NULL;
}

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

#endif
