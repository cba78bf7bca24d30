/* lab_keep: what a shard of the virtual cluster keeps on a disk that fails (lab_disk.h), by the
 * code of ttserver (ttserver/keep/keep_file.h), and what must hold all the same: a shard starts, at
 * the latest when the disk has no faults any more; what it reads is a file that was written, whole,
 * or is refused with a line; a snapshot that was said to be written is there after a loss of power.
 *
 * Threads: one at a time. */
#ifndef TESTS_CHAOS_LAB_KEEP_H
#define TESTS_CHAOS_LAB_KEEP_H

#include "tests/chaos/chaos_world.h"

/* Shards that keep nothing have no disk: then none of these does anything. */
void lab_keep_open(struct lab *lab, unsigned index);
void lab_keep_close(struct lab *lab, unsigned index);
/* Before its core is opened, with these options. False: it cannot start now, and has said why. */
bool lab_keep_start(struct lab *lab, unsigned index, struct ttcore_options *core);
/* After that, where its core was not opened. */
void lab_keep_give_up(struct lab *lab, unsigned index);
/* Else: reads what there is into its table. */
void lab_keep_fill(struct lab *lab, unsigned index);
/* Writes some more; returns when there is more to do, in virtual time. */
uint64_t lab_keep_write(struct lab *lab, unsigned index);
/* Before its core is closed; `loses_power`: else that is drawn. */
void lab_keep_kill(struct lab *lab, unsigned index, bool loses_power);

#endif
