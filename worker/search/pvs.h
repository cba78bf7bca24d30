/* pvs, epvs: principal variation splitting and the enhanced one (Hyatt 1988; Hyatt, Suter, Nelson
 * 1989).
 *
 * PVS divides the nodes of the leftmost path, from the deepest to the root, each when its eldest
 * child is done; a searcher that finds no child left waits until the node is done. EPVS lets those
 * who wait into the subtrees of the others: the node two plies below the one that was divided is
 * divided as well, and so on from there. Hyatt's searchers stop for that and begin again two plies
 * below; here they go on, and hand over what is left of that node. Pure. */
#ifndef WORKER_SEARCH_PVS_H
#define WORKER_SEARCH_PVS_H

#include "worker/search/handover/steal.h"

extern const struct steal_rules pvs_rules, epvs_rules;

#endif
