#include "worker/search/algorithm.h"

#include "worker/search/children.h"

#include <stddef.h>
#include <string.h>

/* name, how children are searched, counts_inflight, uses_searchers, uses_shards, random_order */
#define ALGORITHMS(X)                                                                             \
    /* While alone as abdada-paper; else the unfinished child with the fewest searchers first. */ \
    X("abdada", children_least_helped, true, true, true, false)                                   \
    /* Weill 1996, figure 1. */                                                                   \
    X("abdada-paper", children_two_passes, true, true, true, false)                               \
    /* All start at the root and share results, nothing is deferred (Otto and Felten 1988). */    \
    X("shared-table", children_in_order, true, true, true, true)                                  \
    /* NegaScout: the reference. */                                                               \
    X("sequential", children_in_order, false, false, false, true)

#define ROW(...) {__VA_ARGS__},
static const struct algorithm algorithms[] = {ALGORITHMS(ROW)};
#undef ROW

#define NAME(name, ...) ", " name
static const char names[] = ALGORITHMS(NAME);
#undef NAME

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

const char *algorithm_names(void)
{
    return names + 2; /* without the first separator */
}
