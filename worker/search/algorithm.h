/* algorithm: what the parallel searches differ in: how the children of a node are searched, and
 * what they need around them. Iterations, node, quiescence, ordering and the table port are the
 * same code for all. Their table is handover/algorithms.h. Pure. */
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
    VISIT_CONTINUE, /* select_node and `visit` below: nothing is decided, search the children */
};

/* How work goes from one searcher to another (handover/peers.h), and by which rules: at most one of
 * the two. Where the search has no port for it each searcher begins at the root. */
struct handover {
    /* A search begins. True: it had no root of its own, and has helped until env.poll said stop. */
    bool (*run)(struct search *search);
    /* The environment has been polled: what came is taken and answered. */
    void (*serve)(struct search *search);
    /* NULL: none. Each node comes here first (`solves`: the game solves it). VISIT_CONTINUE: it is
     * an ordinary one. */
    enum search_visit (*visit)(struct search *search, struct node *node, bool solves);
    const struct steal_rules *steals;
    const struct task_rules *tasks;
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
    const struct handover *handover; /* NULL: none */
    /* NULL: none. Whether the searcher with these options (its number: search.h) leaves out the
     * iteration of that depth; it never leaves out that of the limit, the last one. */
    bool (*skips_iteration)(const struct search_options *options, unsigned depth);
};

/* Whether its searchers send each other messages. */
static inline bool algorithm_needs_peers(const struct algorithm *a)
{
    return a->handover != NULL;
}

#endif
