#include "worker/search/algorithm.h"

#include "worker/search/children.h"
#include "worker/search/lazy_smp.h"
#include "worker/search/steal.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* name, how children are searched, counts_inflight, uses_searchers, uses_shards, random_order,
 * which iterations are left out */
static const struct algorithm algorithms[] = {
    /* While alone as abdada-paper; else the unfinished child with the fewest searchers first. */
    {"abdada", children_least_helped, true, true, true, false, false, NULL},
    /* Weill 1996, figure 1. */
    {"abdada-paper", children_two_passes, true, true, true, false, false, NULL},
    /* All start at the root and share results, nothing is deferred (Otto and Felten 1988). */
    {"shared-table", children_in_order, true, true, true, true, false, NULL},
    /* The same, each searcher in iterations of its own. */
    {"lazy-smp", children_in_order, false, true, true, true, false, lazy_smp_skips},
    /* Young brothers are given to searchers that ask for work (Feldmann 1993). */
    {"ybwc", steal_children, false, true, true, false, true, NULL},
    /* NegaScout: the reference. */
    {"sequential", children_in_order, false, false, false, true, false, NULL},
};

const struct algorithm *algorithm_at(unsigned i)
{
    return i < sizeof algorithms / sizeof algorithms[0] ? &algorithms[i] : NULL;
}

const struct algorithm *algorithm_by_name(const char *name)
{
    const struct algorithm *a = NULL;
    for (unsigned i = 0; (a = algorithm_at(i)) != NULL && strcmp(a->name, name) != 0; i++) {
    }
    return a;
}

const char *algorithm_names(char names[ALGORITHM_NAMES_MAX])
{
    const struct algorithm *a;
    size_t length = 0;
    for (unsigned i = 0; (a = algorithm_at(i)) != NULL && length < ALGORITHM_NAMES_MAX; i++) {
        length += (size_t)snprintf(names + length, ALGORITHM_NAMES_MAX - length, "%s%s",
                                   i == 0 ? "" : ", ", a->name);
    }
    return names;
}
