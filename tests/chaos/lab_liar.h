/* lab_liar: a liar in the virtual cluster: somebody who has reached the shards, with some sessions
 * in whatever role they say, of several users; a session that is gone it opens again, and when it
 * is ignored it connects anew. It sees all that is asked, knows all jobs, and lies in every field
 * of every message, as fast as it likes. What it may not do is what no table can bear
 * (docs/security.md): store, or share, a result that the job's game could have, under a key of that
 * job's namespace. (Unless that is planted.) Neither does it know the instances of front-ends,
 * which nobody is told.
 *
 * It falls silent when the cluster's jobs have ended, without a BYE. Threads: one at a time. */
#ifndef TESTS_CHAOS_LAB_LIAR_H
#define TESTS_CHAOS_LAB_LIAR_H

#include "tests/chaos/chaos_world.h"

void lab_liar_start(struct lab *lab);
/* Where connections are simulated, it leaves its own there. */
void lab_liar_close(struct lab *lab, unsigned shard, unsigned who);
/* A shard is told this by a program, or by the liar itself. */
void lab_liar_overhear(struct lab *lab, uint32_t from, const uint8_t *bytes, size_t length);
/* LAB_LIE: some messages to some shard, and the next such event. */
void lab_liar_act(struct lab *lab);
/* Another byte in the place of one, unless a result that no game has became possible thereby. */
void lab_liar_garble(struct lab *lab, uint8_t *bytes, size_t length);

#endif
