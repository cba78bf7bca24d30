/* lab_front: a front-end of the virtual cluster: it posts its jobs one after the other, searches
 * them itself, stops them, and waits for the last reports, with the job client and the core of the
 * engine (worker/engine/front_core.h). Threads: its fiber, but for open and close. */
#ifndef WORKER_LAB_LAB_FRONT_H
#define WORKER_LAB_LAB_FRONT_H

#include "worker/lab/world.h"

/* `searcher`: but for the role. */
enum err lab_front_open(struct lab_worker *w, const struct searcher_options *searcher);
void lab_front_close(struct lab_front *front);
/* Never returns. */
void lab_front_run(struct lab_worker *w);
/* Notes the end of the cluster's jobs when no front-end that lives has any left. */
void lab_fronts_check(struct lab *lab);

#endif
