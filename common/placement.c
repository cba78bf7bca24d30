#include "common/placement.h"

#include <stdbool.h>
#include <string.h>

enum { NAME_BITS = 16 };

void placement_end(struct placement *placement, struct placement_slot *place)
{
    if (place->said == 0) {
        return;
    }
    _Atomic uint64_t *last = &placement->last[place->said - 1];
    uint64_t found = atomic_load_explicit(last, memory_order_relaxed);
    if ((uint16_t)found == place->name) {
        (void)atomic_compare_exchange_strong(last, &found, 0);
    }
    place->said = 0;
}

/* False: another was there just now. Then nothing changes. */
static bool take(struct placement *placement, struct placement_slot *place, int cpu,
                 uint64_t now_us)
{
    uint64_t last = atomic_load_explicit(&placement->last[cpu], memory_order_relaxed);
    uint64_t when = last >> NAME_BITS, word = now_us << NAME_BITS | place->name;
    bool is_fresh =
        when != 0 && when + PLACEMENT_FRESH_US > now_us && when < now_us + PLACEMENT_FRESH_US;
    bool is_mine = place->said == cpu + 1 && (uint16_t)last == place->name;
    if ((is_fresh && !is_mine) ||
        !atomic_compare_exchange_strong(&placement->last[cpu], &last, word)) {
        return false;
    }
    if (place->said != cpu + 1) {
        placement_end(placement, place);
    }
    place->said = (uint16_t)(cpu + 1);
    return true;
}

/* -1: the system does not say, or has more than are kept here. */
static int processor(void)
{
    int cpu = sched_getcpu();
    return cpu < CPU_SETSIZE ? cpu : -1;
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

int placement_begin(struct placement *placement, struct placement_slot *place, uint64_t now_us)
{
    cpu_set_t allowed;
    int here = processor();
    place->due_us = now_us + PLACEMENT_EVERY_US;
    if (here >= 0 && take(placement, place, here, now_us)) {
        return here;
    }
    if (here < 0 || sched_getaffinity(0, sizeof allowed, &allowed) != 0) {
        CPU_ZERO(&allowed);
    }
    for (int i = 1; i < CPU_SETSIZE; i++) {
        int cpu = (here + i) % CPU_SETSIZE;
        if (CPU_ISSET(cpu, &allowed) && take(placement, place, cpu, now_us)) {
            if (move_to(cpu, &allowed)) {
                return cpu;
            }
            break; /* nor to another one, most likely */
        }
    }
    placement_end(placement, place);
    return -1;
}

void placement_update(struct placement *placement, struct placement_slot *place, uint64_t now_us)
{
    if (now_us < place->due_us) {
        return;
    }
    int here = processor();
    place->due_us = now_us + PLACEMENT_EVERY_US;
    if (here < 0 || !take(placement, place, here, now_us)) {
        placement_end(placement, place); /* it is where another is, and no longer where it was */
    }
}

static void *run_thread(void *context)
{
    struct placement_thread *t = context;
    if (t->is_confined) {
        (void)sched_setaffinity(0, sizeof t->allowed, &t->allowed);
    }
    return t->run(t->context);
}

/* Elsewhere than here. */
static bool confine(struct placement_thread *t, unsigned nth, pthread_attr_t *attributes)
{
    cpu_set_t others;
    int here = processor();
    if (here < 0 || sched_getaffinity(0, sizeof t->allowed, &t->allowed) != 0) {
        return false;
    }
    others = t->allowed;
    CPU_CLR(here, &others);
    return nth < (unsigned)CPU_COUNT(&t->allowed) &&
           pthread_attr_setaffinity_np(attributes, sizeof others, &others) == 0;
}

bool placement_create_thread(struct placement_thread *thread, unsigned nth,
                             void *(*run)(void *context), void *context)
{
    pthread_attr_t attributes;
    bool is_created = false;
    *thread = (struct placement_thread){.run = run, .context = context};
    if (pthread_attr_init(&attributes) == 0) {
        thread->is_confined = confine(thread, nth, &attributes);
        is_created = thread->is_confined &&
                     pthread_create(&thread->thread, &attributes, run_thread, thread) == 0;
        pthread_attr_destroy(&attributes);
    }
    if (!is_created) { /* processors may have been taken away meanwhile */
        thread->is_confined = false;
        is_created = pthread_create(&thread->thread, NULL, run_thread, thread) == 0;
    }
    return is_created;
}
