/* sim_engine: a virtual cluster that searches in place of an engine, for a GUI's front-end. Between
 * two searches it lives on for as long as the last one took, as it would while the opponent thinks,
 * then its clock stands still. Its answers depend on its options, its seed and the searches since
 * it was last empty, and on nothing else, unless a search is stopped.
 *
 * Threads: as engine.h says of the functions in `gui_stand_in`; the observer is called by the
 * thread of the cluster. Memory: that of the cluster, from the first search on. Blocking: run, and
 * close and clear, which end the cluster. */
#ifndef WORKER_PROGRAMS_SIM_SIM_ENGINE_H
#define WORKER_PROGRAMS_SIM_SIM_ENGINE_H

#include "worker/lab/lab.h"
#include "worker/programs/gui.h"

struct sim_engine;

/* `options`: without posts, hooks and a job. ERR_NOMEM. */
enum err sim_engine_open(struct sim_engine **out, const struct lab_options *options);
/* Accepts NULL; nulls. */
void sim_engine_close(struct sim_engine **engine);

/* Borrows it. */
struct gui_stand_in sim_engine_stand_in(struct sim_engine *engine);

#endif
