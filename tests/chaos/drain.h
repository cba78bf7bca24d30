/* drain: what must hold in a virtual cluster after a post, and after all of them: what is left
 * behind, and whether the healed cluster serves jobs as it should, the second half of chaos_result.
 * The three are hooks (world.h). Threads: one at a time. */
#ifndef TESTS_CHAOS_DRAIN_H
#define TESTS_CHAOS_DRAIN_H

#include "tests/chaos/chaos_world.h"

void chaos_check_post(struct lab_worker *w); /* posted */
void chaos_probe(struct lab_worker *w); /* idle */
void chaos_drain(struct lab *lab); /* end */

#endif
