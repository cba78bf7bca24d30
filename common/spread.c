#include "common/spread.h"

#include <stdbool.h>

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

static bool move_to(int cpu, const cpu_set_t *allowed)
{
    cpu_set_t only;
    CPU_ZERO(&only);
    CPU_SET(cpu, &only);
    if (sched_setaffinity(0, sizeof only, &only) != 0) {
        return false;
    }
    (void)sched_setaffinity(0, sizeof *allowed, allowed);
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
    /* From here on: neighbours by number are other cores first, where cores run two threads. */
    for (int i = 1; i < CPU_SETSIZE; i++) {
        int cpu = (here + i) % CPU_SETSIZE;
        if (CPU_ISSET(cpu, &allowed) && take(spread, cpu)) {
            return move_to(cpu, &allowed) ? cpu : -1;
        }
    }
    return -1;
}
