/* algorithm: the parallel searches by name. They differ only in what an ask says and in which young
 * brother comes next; node, quiescence and ordering are the same code for all.
 *
 * Pure.
 *
 *   sequential    NegaScout; nobody is counted, nothing deferred: the reference
 *   shared-table  all start at the root and share results, no nproc (Otto and Felten 1988)
 *   abdada-paper  Weill 1996, figure 1: an exclusive pass over the young brothers in order, then
 *                 a second pass over all of them in order
 *   abdada        exclusive in order while alone; when others are met, the unfinished brother with
 *                 the fewest processors inside (design section 4)
 */
#ifndef WORKER_SEARCH_ALGORITHM_H
#define WORKER_SEARCH_ALGORITHM_H

#include <stdbool.h>

enum algorithm_brothers {
    BROTHERS_IN_ORDER, /* one pass, never exclusive */
    BROTHERS_TWO_PASSES, /* exclusive, then all again */
    BROTHERS_LEAST_HELPED, /* exclusive, then by nproc */
};

struct algorithm {
    const char *name;
    enum algorithm_brothers brothers;
    bool counted; /* its visits are counted by nproc */
};

/* NULL: no algorithm of that name. */
const struct algorithm *algorithm_by_name(const char *name);

/* The names, separated by ", ", for messages. */
const char *algorithm_names(void);

#endif
