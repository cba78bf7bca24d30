/* steal: work stealing between searchers (Feldmann 1993; Weill 1996, section 3.2), by the rules of
 * an algorithm. One searcher owns the root; the others have no work but what they are given.
 *
 * A searcher without work asks another one, drawn at random (REQUEST). A searcher that has split
 * points (nodes that the rules divide) with a child that nobody is in gives a child of the one
 * nearest to the root (WORK) and is then the master there; else it keeps the request until its next
 * poll, and refuses it there (NO_WORK). The slave returns the value (RESULT) or the child,
 * unsearched. The master distributes a better alpha to its slaves (NARROW), and ends their work
 * when the node is cut off (ABORT). A master that waits for slaves helps them: it asks them for
 * work below its node (the helpful master concept).
 *
 * Who owns what: a split point belongs to its master alone, and nothing is shared but messages,
 * which a port carries (peers.h). Threads: the search's own. Memory: steal_open only. Blocking: in
 * port.wait, while there is no work. Pure.
 *
 * Deaths, and messages that get lost: a master that has waited half a second for a slave asks it
 * for a sign (SIGN). A slave that does not have that child returns the child; a slave that gives no
 * sign for as long again loses the child to another, and what the first one reports meanwhile is
 * still taken as the child's value. A slave whose master is dead ends its child for nobody. So any
 * death but that of the searcher with the root costs time alone.
 *
 * Messages of liars: an illegal path is not searched, a slave takes work from the searcher that it
 * asked and orders from its master alone. A false value is believed, as one of the table is, and a
 * slave that only gives signs is waited for. */
#ifndef WORKER_SEARCH_HANDOVER_STEAL_H
#define WORKER_SEARCH_HANDOVER_STEAL_H

#include "worker/search/handover/peers.h"

/* Children of at least this depth are worth a message; shallower ones, too, where the table's
 * in-flight depth is less. Work is handed over without the shards, so their remote depth limit is
 * not its own. */
enum { STEAL_DEPTH = 4 };

/* What the algorithms that steal differ in. */
struct steal_rules {
    /* Whether the children of the node may be given away. NULL: of every node. */
    bool (*divides)(const struct search *s, const struct node *n);
    /* So many of its children come first, one after the other. NULL: the eldest. */
    unsigned (*comes_first)(const struct node *n);
    /* Only null-window searches are given away. A child whose value is in the window is searched
     * again by the master, when all children before it are done. */
    bool gives_tests;
};

struct steal;

/* NULL: no memory. For free(). */
struct steal *steal_open(void);

/* Functions of struct handover. */
bool steal_run(struct search *s);
void steal_serve(struct search *s);

struct node;

/* search_children of algorithm.h: those that come first, then the others, with all who ask for
 * work. */
enum search_visit steal_children(struct search *s, struct node *n);

#endif
