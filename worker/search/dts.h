/* dts: dynamic tree splitting (Hyatt 1988): a node is divided wherever its type says that all of
 * its moves will be searched. An ALL node, which is expected to fail low, is divided at once; a PV
 * node when its eldest child is done; a CUT node, which one good move ends, only when the first few
 * have failed.
 *
 * Hyatt's searchers are peers that share the tree in memory, and the last one to finish takes a
 * node over. Here a node stays its master's, which helps its slaves until they are done (steal.h).
 * Pure. */
#ifndef WORKER_SEARCH_DTS_H
#define WORKER_SEARCH_DTS_H

#include "worker/search/handover/steal.h"

extern const struct steal_rules dts_rules;

#endif
