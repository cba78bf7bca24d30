#include "common/spread.h"

#include <stdbool.h>
#include <string.h>

static bool take(struct spread *spread, int cpu)
{
    return cpu >= 0 && cpu < CPU_SETSIZE && !atomic_exchange(&spread->taken[cpu], true);
}

void spread_begin(struct spread *spread)
{
    for (int i = 0; i < CPU_SETSIZE; i++) {
        atomic_init(&spread->taken[i], false);
    }
    take(spread, sched_getcpu());
}

/* There, and free to go anywhere after it. What was allowed may have been taken away meanwhile:
 * then all that is left is. */
static bool move_to(int cpu, const cpu_set_t *allowed)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    if (sched_setaffinity(0, sizeof set, &set) != 0) {
        return false;
    }
    if (sched_setaffinity(0, sizeof *allowed, allowed) != 0) {
        memset(&set, 0xff, sizeof set);
        (void)sched_setaffinity(0, sizeof set, &set);
    }
    return true;
}

int spread_take(struct spread *spread)
{
    cpu_set_t allowed;
    int here = sched_getcpu();
    if (take(spread, here)) {
        return here;
    }
    if (here < 0 || sched_getaffinity(0, sizeof allowed, &allowed) != 0) {
        return -1;
    }
    for (int i = 1; i < CPU_SETSIZE; i++) {
        int cpu = (here + i) % CPU_SETSIZE;
        if (CPU_ISSET(cpu, &allowed) && take(spread, cpu) && move_to(cpu, &allowed)) {
            return cpu;
        }
    }
    return -1;
}
