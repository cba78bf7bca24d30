/* chaos_link: what faults do to what passes between a worker and a shard. Threads: one at a time.
 */
#ifndef TESTS_CHAOS_CHAOS_LINK_H
#define TESTS_CHAOS_CHAOS_LINK_H

#include "tests/chaos/chaos_world.h"

static inline bool lab_fault_is_of_links(const struct lab_fault *fault)
{
    return fault->kind == LAB_CUT || fault->kind == LAB_DELAY || fault->kind == LAB_LOSS ||
           fault->kind == LAB_RESET || fault->kind == LAB_HALF_OPEN || fault->kind == LAB_DEAF;
}

/* `passes` of struct lab_hooks. */
bool chaos_passes(struct lab *lab, unsigned worker, unsigned shard, enum lab_way way,
                  uint64_t *delay_ns);

/* Whether the two are cut off that way now. */
bool lab_is_cut(const struct lab *lab, unsigned worker, unsigned shard, enum lab_way way);

/* Whether the worker reads nothing of the shard now. */
bool lab_is_deaf(const struct lab *lab, unsigned worker, unsigned shard);

#endif
