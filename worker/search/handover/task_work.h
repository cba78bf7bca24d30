/* task_work: what a worker does in a search with a master's tree (tasks.h): it takes tasks,
 * searches the most important one, an iteration at a time, and reports the results.
 *
 * Threads: the search's own. Memory: task_work_open, and the list of tasks as it grows; a task for
 * which there is none is lost, and the master finds out. Blocking: task_work_run, in port.wait,
 * while there is no work. Pure. */
#ifndef WORKER_SEARCH_HANDOVER_TASK_WORK_H
#define WORKER_SEARCH_HANDOVER_TASK_WORK_H

#include "worker/search/handover/peers.h"

/* NULL: no memory. */
struct task_work *task_work_open(void);
/* Accepts NULL; nulls. */
void task_work_free(struct task_work **work);

/* Functions of struct handover; at the master each does the master's part (tasks.h). */
bool task_work_run(struct search *s);
void task_work_serve(struct search *s);

#endif
