/* ybwc: the Young Brothers Wait Concept (Feldmann 1993; Weill 1996, section 3.2): the young
 * brothers of every node are given away, when the eldest is done. Pure. */
#ifndef WORKER_SEARCH_YBWC_H
#define WORKER_SEARCH_YBWC_H

#include "worker/search/handover/steal.h"

extern const struct steal_rules ybwc_rules;

#endif
