/* uci_root: which moves of the root a "go" searches. Threads: one at a time, while nothing is
 * searched. Memory: none. Source: the UCI protocol, April 2006. */
#ifndef WORKER_CLI_UCI_ROOT_H
#define WORKER_CLI_UCI_ROOT_H

#include "worker/cli/uci_limits.h"
#include "worker/engine/job.h"

/* Those of "searchmoves"; all where there are none. What is no legal move is said on stdout as an
 * info string. False: moves were named, and none of them is legal. */
bool uci_root_searchmoves(struct job *job, const struct uci_limits *limits);

/* In a position that endgame tables know, only moves that keep its value, unless moves were named.
 */
void uci_root_tablebase(struct job *job);

#endif
