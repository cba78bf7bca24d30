#include "worker/search/algorithm.h"

#include "worker/search/aphid.h"
#include "worker/search/children.h"
#include "worker/search/dts.h"
#include "worker/search/handover/steal.h"
#include "worker/search/jamboree.h"
#include "worker/search/lazy_smp.h"
#include "worker/search/minimal_tree.h"
#include "worker/search/pvs.h"
#include "worker/search/uidpabs.h"
#include "worker/search/ybwc.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* name, how children are searched, counts_inflight, uses_searchers, uses_shards, random_order,
 * how work is handed over by stealing or by a master, which iterations are left out */
static const struct algorithm algorithms[] = {
    /* While alone as abdada-paper; else the unfinished child with the fewest searchers first. Half
     * of the workers leave out iterations. */
    {"abdada", children_least_helped, true, true, true, false, NULL, NULL, lazy_smp_half_skips},
    /* Weill 1996, figure 1. */
    {"abdada-paper", children_two_passes, true, true, true, false, NULL, NULL, NULL},
    /* All start at the root and share results, nothing is deferred (Otto and Felten 1988). */
    {"shared-table", children_in_order, true, true, true, true, NULL, NULL, NULL},
    /* The same, each searcher in iterations of its own. */
    {"lazy", children_in_order, false, true, true, true, NULL, NULL, lazy_smp_skips},
    /* Young brothers are given to searchers that ask for work (Feldmann 1993). */
    {"ybwc", steal_children, false, true, true, false, &ybwc_rules, NULL, NULL},
    /* Tests side by side, values one after the other (Kuszmaul 1995). */
    {"jamboree", steal_children, false, true, true, false, &jamboree_rules, NULL, NULL},
    /* Work is divided on the leftmost path only; or two plies below it as well (Hyatt 1988). */
    {"pvs", steal_children, false, true, true, false, &pvs_rules, NULL, NULL},
    {"epvs", steal_children, false, true, true, false, &epvs_rules, NULL, NULL},
    /* Wherever the type of the node says that all moves will be searched (Hyatt 1988). */
    {"dts", steal_children, false, true, true, false, &dts_rules, NULL, NULL},
    /* A master's tree; each worker searches below its leaves (Brockington 1998; Ura 2014). */
    {"aphid", children_in_order, false, true, true, false, NULL, &aphid_rules, NULL},
    {"minimal-tree", children_in_order, false, true, true, false, NULL, &minimal_tree_rules,
     minimal_tree_skips},
    {"minimal-tree-static", children_in_order, false, true, true, false, NULL,
     &minimal_tree_static_rules, minimal_tree_skips},
    /* The same, with the root's moves as leaves (Newborn 1988). */
    {"uidpabs", children_in_order, false, true, true, false, NULL, &uidpabs_rules, NULL},
    /* NegaScout: the reference. */
    {"sequential", children_in_order, false, false, false, true, NULL, NULL, NULL},
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
