/* chaos_faults: what faults do to front-ends, workers, watchers and shards: they die, start again,
 * stand still; their clocks change. What they do between a worker and a shard is in chaos_link.h.
 * Programs are numbered as in world.h. Threads: one at a time. */
#ifndef TESTS_CHAOS_CHAOS_FAULTS_H
#define TESTS_CHAOS_CHAOS_FAULTS_H

#include "tests/chaos/chaos_world.h"

/* ---- hooks (world.h) ---- */

/* Without memory, or what is on its disk, it is tried again some time later; ERR_NOMEM: the cluster
 * itself has none. */
enum err chaos_start(struct lab *lab, unsigned who);
/* ERR_IO: it cannot read what it kept now, and says so. */
enum err chaos_open_core(struct lab *lab, unsigned shard, struct ttcore_options *options);
void chaos_resume(struct lab_worker *w);

/* ---- events ---- */

/* LAB_TO_SHARD. True: it is lost, or comes later, and the packet is taken. */
bool chaos_shard_misses(struct lab *lab, unsigned shard, uint32_t incarnation,
                        struct lab_packet *packet);
/* LAB_KEEP: time for what it keeps. */
void chaos_keep(struct lab *lab, unsigned shard, uint32_t incarnation);
/* LAB_AGAIN: it starts if it could not before. */
void chaos_start_again(struct lab *lab, unsigned who);
/* LAB_FAULT, LAB_REPAIR. */
void chaos_begin_fault(struct lab *lab, unsigned number);
void chaos_end_fault(struct lab *lab, unsigned number);

/* ---- at the end ---- */

/* Ends all but kills for ever. */
void chaos_heal(struct lab *lab);
/* As kill -9. One that is dead may be killed. */
void chaos_kill(struct lab_worker *w);
/* `loses_power`: what it keeps on a disk, too; else that is drawn. */
void chaos_kill_shard(struct lab *lab, unsigned shard, bool loses_power);

#endif
