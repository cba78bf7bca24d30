/* algorithm: the parallel searches by name, as a table: one row and one function for each.
 *
 * They differ in how the children of a node are searched and in what they need around them; node,
 * quiescence and ordering are the same code for all. To add one, write its function beside those of
 * children.c and its row in algorithm.c. A function that divides work gives a child a split_id
 * before its visit; it then gets VISIT_ABORTED when search_abort names that id. Pure. */
#ifndef WORKER_SEARCH_ALGORITHM_H
#define WORKER_SEARCH_ALGORITHM_H

#include <stdbool.h>

struct search;
struct node;

/* How a visit of a node ended. A status is never a score. */
enum search_visit {
    VISIT_VALUE, /* node->best is its value, or a bound outside the window */
    VISIT_BUSY, /* an exclusive visit, and another searcher is in the node; come back later */
    VISIT_STOP, /* no value: the search is being stopped, or unwinds to a node above */
    VISIT_ABORTED, /* no value: search_abort named the split point that is this node */
    VISIT_CONTINUE, /* select_node only: nothing is decided, search the children */
};

struct algorithm {
    const char *name;
    /* The children of a node of at least the in-flight depth (children.h). */
    enum search_visit (*search_children)(struct search *search, struct node *node);
    bool counts_inflight; /* its visits are registered in flight */
    bool uses_searchers; /* several searchers in one process */
    bool uses_shards; /* several processes, by way of ttservers */
    bool random_order; /* each searcher orders moves of equal worth in its own way */
};

/* NULL: no algorithm of that name. */
const struct algorithm *algorithm_by_name(const char *name);

/* Row i of the table, NULL after the last. */
const struct algorithm *algorithm_at(unsigned i);

/* The names, separated by ", ", for messages. */
const char *algorithm_names(void);

#endif
