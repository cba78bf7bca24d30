/* move: one child of a node: visited, and its value taken. Shared by the search's files only.
 * Threads: the search's own. */
#ifndef WORKER_SEARCH_MOVE_H
#define WORKER_SEARCH_MOVE_H

#include "worker/search/node.h"

/* Searches moves[at] of frame `ply` and takes its value into `o`: the eldest in the open window,
 * the others in a null window first (NegaScout). VISIT_BUSY only if `exclusive`. */
enum search_visit move_search(struct search *s, unsigned ply, int depth, struct outcome *o,
                              unsigned at, bool exclusive);

/* Takes the value of a child that was not visited. */
void move_take_value(struct search *s, unsigned ply, struct outcome *o, uint16_t move, int value);

bool move_cut_off(const struct outcome *o);

/* Remaining depth below moves[at], which has been made; `scout`: the one its first visit gets. */
int move_depth(struct search *s, unsigned ply, int depth, const struct outcome *o, unsigned at,
               int *scout);

#endif
