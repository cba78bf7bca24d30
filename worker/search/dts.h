/* dts: dynamic tree splitting (Hyatt 1988): a node is divided wherever its type says that all of
 * its moves will be searched. In an ALL node, which is expected to fail low, that is at once; in a
 * PV node when the eldest child is done; in a CUT node, which one good move ends, only when the
 * first few have failed.
 *
 * Hyatt's searchers are peers that share the tree in memory, and the last one to finish takes a
 * node over. Here a node stays its master's, who helps his slaves meanwhile (steal.h). Pure. */
#ifndef WORKER_SEARCH_DTS_H
#define WORKER_SEARCH_DTS_H

#include "worker/search/handover/steal.h"

extern const struct steal_rules dts_rules;

#endif
