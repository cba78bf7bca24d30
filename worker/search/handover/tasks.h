/* tasks: a master's tree and tasks for workers (Brockington 1998, APHID; Ura, Tsuruoka, Chikayama
 * 2014), by the rules of an algorithm.
 *
 * The searcher that owns the root, the master, searches the first plies of the tree again and
 * again, each time a pass. A leaf of its tree is a task: a worker searches the position below it by
 * iterative deepening (WORK) and reports what it knows after each iteration (RESULT). The pass goes
 * on with the deepest result there is, or the static evaluation; such a value is uncertain, and so
 * is every value above that comes from one. When a pass has an uncertain value at the root, leaves
 * that it did not come to are no tasks any more (DROP), and the next pass begins as soon as a
 * result has changed something. When the value of the root comes from results of the full depth
 * alone it is decided: then it is the sequential one, because strict results are a function of
 * position and depth.
 *
 * In which window: the master searches with null windows (NegaScout); a task gets that of its leaf,
 * wider by a margin to both sides (Ura, section 5.4). Which task first at a worker: the one with
 * the shallowest result, then the first in a depth-first walk (its signature). Which worker: the
 * one that has or had the position, whose tables know it, unless it has others in this pass while
 * another worker has none; else the one with the fewest tasks. Differences from Ura's: messages
 * carry changes alone, not all tasks of every pass, and workers share the tables that there are.
 *
 * Deaths: a worker's death costs its tasks. After half a second without a sign of a worker the
 * master asks it for one, and after as long again gives its tasks to others; a result
 * that comes twice does no harm. When nobody gives a sign the master searches the rest of the
 * iteration's window alone. Its own death ends the search.
 *
 * Bounds: a worker has 256 tasks at most, the rest waits at the master. If the master's tree has no
 * room it begins anew with a ply less.
 *
 * Threads: the search's own. Memory: tasks_open, and what the first search that has tasks needs
 * (30 MiB at the master); without it the search goes on alone. Blocking: in port.wait, while there
 * is no work. Selection plain. Where draws by repetition count, a position's result may be that of
 * another path to it. Pure. */
#ifndef WORKER_SEARCH_HANDOVER_TASKS_H
#define WORKER_SEARCH_HANDOVER_TASKS_H

#include "worker/search/handover/peers.h"

/* Shallower iterations are the master's alone. */
enum {
    TASKS_DEPTH = 4,
    TASK_PLIES = 48, /* from the root; positions below are no tasks */
};

/* What the algorithms with a master's tree differ in. */
struct task_rules {
    unsigned plies; /* of the master's tree, at most; 0: half of the iteration's */
    bool reports; /* workers report shallower results, too: the prediction of the tree follows them
                   */
    bool preempts; /* a worker leaves a task as soon as a more important one comes */
};

/* What the master keeps. NULL: no memory. */
struct tasks *tasks_open(void);
/* Accepts NULL; nulls. */
void tasks_free(struct tasks **tasks);

/* The master's part of task_work_run and task_work_serve (task_work.h, a worker's part): what is
 * left of its last search is forgotten; what came is taken. */
void tasks_begin(struct search *s);
void tasks_take_results(struct search *s);

/* A function of struct handover: a node of the master's tree, at the root pass after pass; a leaf
 * if the game solves it (`solves`). VISIT_CONTINUE: neither this node nor those below are of the
 * master's tree. */
enum search_visit tasks_node(struct search *s, struct node *n, bool solves);

#endif
