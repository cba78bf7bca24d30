/* jamboree: Jamboree search (Kuszmaul 1995, StarTech): after the eldest child all others are tested
 * at the same time by null-window searches. Those that fail the test are searched for their value
 * one after the other, in order, each when all before it are done: speculation is in the tests
 * alone. Work is stolen as in StarTech; its deferred reads are not here. Pure. */
#ifndef WORKER_SEARCH_JAMBOREE_H
#define WORKER_SEARCH_JAMBOREE_H

#include "worker/search/handover/steal.h"

extern const struct steal_rules jamboree_rules;

#endif
