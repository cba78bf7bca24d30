#include "worker/search/handover/algorithms.h"

#include "worker/search/children.h"
#include "worker/search/handover/peers.h"
#include "worker/search/handover/steal.h"
#include "worker/search/handover/task_work.h"
#include "worker/search/handover/tasks.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STEALING .run = steal_run, .serve = steal_serve
#define WITH_TASKS .run = task_work_run, .serve = task_work_serve, .visit = tasks_node

/* ---- ybwc: Young Brothers Wait Concept (Feldmann 1993; Weill 1996, section 3.2) ----
 *
 * The young brothers of every node are given away, when the eldest is done. */

static const struct handover ybwc = {STEALING, .steals = &(const struct steal_rules){0}};

/* ---- jamboree: Jamboree search (Kuszmaul 1995, StarTech) ----
 *
 * After the eldest child all others are tested at the same time by null-window searches. Those that
 * fail the test are searched for their value one after the other, in order, each when all before it
 * are done: speculation is in the tests alone. Work is stolen as in StarTech; its deferred reads
 * are not here. */

static const struct handover jamboree = {
    STEALING, .steals = &(const struct steal_rules){.gives_tests = true}};

/* ---- pvs, epvs: principal variation splitting, and the enhanced one (Hyatt 1988; Hyatt, Suter,
 * Nelson 1989) ----
 *
 * PVS divides the nodes of the leftmost path, from the deepest to the root, each when its eldest
 * child is done; a searcher that finds no child left waits until the node is done. EPVS lets those
 * who wait into the subtrees of the others: the node two plies below the one that was divided is
 * divided as well, and so on from there. Hyatt's searchers stop for that and begin again two plies
 * below; here they go on, and hand over what is left of that node. */

/* How many moves of the path, from its begin on, lead to the eldest child. */
static unsigned eldest_plies(const struct search *s, const struct node *n)
{
    unsigned ply = s->start_ply;
    while (ply < n->ply && s->node[ply].move_now == s->node[ply].moves[0].move) {
        ply++;
    }
    return ply;
}

static bool is_leftmost(const struct search *s, const struct node *n)
{
    return s->start_ply == 0 && eldest_plies(s, n) == n->ply;
}

/* The leftmost path, and every second ply below it: what was given away begins at a node that is
 * divided. */
static bool is_at_second_ply(const struct search *s, const struct node *n)
{
    const unsigned divided = s->start_ply == 0 ? eldest_plies(s, n) : s->start_ply;
    return (n->ply - divided) % 2 == 0;
}

static const struct handover pvs = {STEALING,
                                    .steals = &(const struct steal_rules){.divides = is_leftmost}};
static const struct handover epvs = {
    STEALING, .steals = &(const struct steal_rules){.divides = is_at_second_ply}};

/* ---- dts: dynamic tree splitting (Hyatt 1988) ----
 *
 * A node is divided wherever its type says that all of its moves will be searched: an ALL node,
 * which is expected to fail low, at once; a PV node when the eldest child is done; a CUT node,
 * which one good move ends, only when the first few have failed.
 *
 * Hyatt's searchers are peers that share the tree in memory, and the last one to finish takes a
 * node over. Here a node stays with its master, who helps its slaves meanwhile (steal.h). */

enum { CUT_NODE_MOVES = 3 };

static unsigned first_of_type(const struct node *n)
{
    return !node_is_null_window(n) ? 1 : n->cut_node ? CUT_NODE_MOVES : 0;
}

static const struct handover dts = {
    STEALING, .steals = &(const struct steal_rules){.comes_first = first_of_type}};

/* ---- aphid: Asynchronous Parallel Hierarchical Iterative Deepening (Brockington 1998) ----
 *
 * By the description in Ura 2014, section 2.2: the passes of tasks.h in every iteration of the
 * root; a worker leaves the iteration of a task only if it is dropped or wanted in another window.
 * Brockington's masters between the first master and the workers are not here. */

static const struct handover aphid = {WITH_TASKS,
                                      .tasks = &(const struct task_rules){.reports = true}};

/* ---- minimal-tree: dynamic prediction of minimal trees (Ura, Tsuruoka, Chikayama 2014) ----
 *
 * The passes of tasks.h for the whole depth at once, after the master alone has searched half of
 * it; a worker leaves a task as soon as a more important one comes. With `static` workers report
 * results of the full depth alone, so that the prediction does not follow the shallower ones ("w/o
 * updates" there). */

static const struct handover minimal_tree = {
    WITH_TASKS, .tasks = &(const struct task_rules){.reports = true, .preempts = true}};
static const struct handover minimal_tree_static = {
    WITH_TASKS, .tasks = &(const struct task_rules){.preempts = true}};

/* Nodes between half of the limit and the limit. */
static bool skips_to_limit(const struct search_options *options, unsigned depth)
{
    return depth > options->depth_limit / 2 && depth < options->depth_limit;
}

/* ---- uidpabs: Unsynchronized Iteratively Deepening Parallel Alpha-Beta Search (Newborn 1988) ----
 *
 * By the description in Ura 2014, section 2.2: the moves of the root are tasks, and each worker
 * goes deeper in its own without waiting for the others. Here the answer is of one depth for all.
 */

static const struct handover uidpabs = {
    WITH_TASKS, .tasks = &(const struct task_rules){.plies = 1, .reports = true}};

/* ---- lazy: Lazy SMP, as chess engines use it ----
 *
 * All searchers start at the root and share results, nothing is deferred, and the searchers are
 * kept apart by the iterations that each leaves out. There is no paper: it spread from Cheng (2013,
 * by Daniel Homan) and from Stockfish 7 (2016), whose table of skipped iterations this is. In
 * strict mode a result answers only at its own depth, so that searchers in other iterations give
 * each other the order of moves, and results only when they come to the same depth. An iteration
 * that a searcher ends has its exact value. */

/* Pattern i searches `size` iterations and leaves out as many, from `phase` on (Stockfish 7 to 9,
 * SkipSize and SkipPhase). */
static const struct {
    unsigned char size, phase;
} patterns[] = {
    {1, 0}, {1, 1}, {2, 0}, {2, 1}, {2, 2}, {2, 3}, {3, 0}, {3, 1}, {3, 2}, {3, 3},
    {3, 4}, {3, 5}, {4, 0}, {4, 1}, {4, 2}, {4, 3}, {4, 4}, {4, 5}, {4, 6}, {4, 7},
};

/* Number 0 leaves out none; the others leave out blocks of 1 to 4 iterations in turn. */
static bool skips(unsigned number, unsigned depth)
{
    if (number == 0) {
        return false;
    }
    unsigned i = (number - 1) % (sizeof patterns / sizeof patterns[0]);
    return (depth + patterns[i].phase) / patterns[i].size % 2 != 0;
}

static bool skips_by_number(const struct search_options *options, unsigned depth)
{
    return skips(options->number, depth);
}

/* The same for every second searcher of other processes than the front-end's; the others leave out
 * none. ABDADA's: those who run ahead find the move to begin with, and where many searchers wait
 * for a network they are in each other's way less. On threads of one process it brings nothing.
 * Not in games that are searched to their end, whose iterations are of unlike size: there it costs
 * more than it brings (docs/research/comparison.md). */
static bool half_skip(const struct search_options *options, unsigned depth)
{
    return options->number >= SEARCH_AWAY && options->game->depth_left == NULL &&
           options->number % 2 != 0 && skips((options->number + 1) / 2, depth);
}

/* ---- the table ---- */

/* name, how children are searched, counts_inflight, uses_searchers, uses_shards, random_order,
 * how work is handed over, which iterations are left out */
static const struct algorithm algorithms[] = {
    /* While alone as abdada-paper; else the unfinished child with the fewest searchers first. Half
     * of the workers leave out iterations. */
    {"abdada", children_least_helped, true, true, true, false, NULL, half_skip},
    /* Weill 1996, figure 1. */
    {"abdada-paper", children_two_passes, true, true, true, false, NULL, NULL},
    /* All start at the root and share results, nothing is deferred (Otto and Felten 1988). */
    {"shared-table", children_in_order, true, true, true, true, NULL, NULL},
    /* The same, each searcher in iterations of its own. */
    {"lazy", children_in_order, false, true, true, true, NULL, skips_by_number},
    /* Young brothers are given to searchers that ask for work (Feldmann 1993). */
    {"ybwc", steal_children, false, true, true, false, &ybwc, NULL},
    /* Tests side by side, values one after the other (Kuszmaul 1995). */
    {"jamboree", steal_children, false, true, true, false, &jamboree, NULL},
    /* Work is divided on the leftmost path only; or two plies below it as well (Hyatt 1988). */
    {"pvs", steal_children, false, true, true, false, &pvs, NULL},
    {"epvs", steal_children, false, true, true, false, &epvs, NULL},
    /* Wherever the type of the node says that all moves will be searched (Hyatt 1988). */
    {"dts", steal_children, false, true, true, false, &dts, NULL},
    /* A master's tree; each worker searches below its leaves (Brockington 1998; Ura 2014). */
    {"aphid", children_in_order, false, true, true, false, &aphid, NULL},
    {"minimal-tree", children_in_order, false, true, true, false, &minimal_tree, skips_to_limit},
    {"minimal-tree-static", children_in_order, false, true, true, false, &minimal_tree_static,
     skips_to_limit},
    /* The same, with the root's moves as leaves (Newborn 1988). */
    {"uidpabs", children_in_order, false, true, true, false, &uidpabs, NULL},
    /* NegaScout: the reference. */
    {"sequential", children_in_order, false, false, false, true, NULL, NULL},
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

/* ---- what a searcher keeps ---- */

enum err algorithms_open_work(struct peers *p)
{
    *p = (struct peers){steal_open(), tasks_open(), task_work_open()};
    if (p->steal == NULL || p->tasks == NULL || p->work == NULL) {
        algorithms_close_work(p);
        return ERR_NOMEM;
    }
    return ERR_OK;
}

void algorithms_close_work(struct peers *p)
{
    free(p->steal);
    p->steal = NULL;
    tasks_free(&p->tasks);
    task_work_free(&p->work);
}
