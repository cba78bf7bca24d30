#include "common/placement.h"

#include <stdbool.h>
#include <string.h>

enum { NAME_BITS = 16 };

void placement_end(struct placement *placement, struct placement_slot *slot)
{
    if (slot->recorded == 0) {
        return;
    }
    _Atomic uint64_t *last = &placement->last[slot->recorded - 1];
    uint64_t found = atomic_load_explicit(last, memory_order_relaxed);
    if ((uint16_t)found == slot->name) {
        (void)atomic_compare_exchange_strong(last, &found, 0);
    }
    slot->recorded = 0;
}

/* Records the CPU for the thread; false, and nothing changes: another thread is recorded there. */
static bool take(struct placement *placement, struct placement_slot *slot, int cpu, uint64_t now_us)
{
    uint64_t last = atomic_load_explicit(&placement->last[cpu], memory_order_relaxed);
    uint64_t when = last >> NAME_BITS, word = now_us << NAME_BITS | slot->name;
    bool is_fresh =
        when != 0 && when + PLACEMENT_FRESH_US > now_us && when < now_us + PLACEMENT_FRESH_US;
    bool is_mine = slot->recorded == cpu + 1 && (uint16_t)last == slot->name;
    if ((is_fresh && !is_mine) ||
        !atomic_compare_exchange_strong(&placement->last[cpu], &last, word)) {
        return false;
    }
    if (slot->recorded != cpu + 1) {
        placement_end(placement, slot);
    }
    slot->recorded = (uint16_t)(cpu + 1);
    return true;
}

/* -1: the system does not say, or its number is beyond a cpu_set_t. */
static int current_cpu(void)
{
    int cpu = sched_getcpu();
    return cpu < CPU_SETSIZE ? cpu : -1;
}

/* Moves the thread to the CPU and then allows it all of `allowed` again; all CPUs when these were
 * taken from the process meanwhile. */
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

int placement_begin(struct placement *placement, struct placement_slot *slot, uint64_t now_us)
{
    cpu_set_t allowed;
    int here = current_cpu();
    slot->due_us = now_us + PLACEMENT_EVERY_US;
    if (here >= 0 && take(placement, slot, here, now_us)) {
        return here;
    }
    if (here < 0 || sched_getaffinity(0, sizeof allowed, &allowed) != 0) {
        CPU_ZERO(&allowed);
    }
    for (int i = 1; i < CPU_SETSIZE; i++) {
        int cpu = (here + i) % CPU_SETSIZE;
        if (CPU_ISSET(cpu, &allowed) && take(placement, slot, cpu, now_us)) {
            if (move_to(cpu, &allowed)) {
                return cpu;
            }
            break; /* other CPUs are likely to be refused as well */
        }
    }
    placement_end(placement, slot);
    return -1;
}

void placement_update(struct placement *placement, struct placement_slot *slot, uint64_t now_us)
{
    if (now_us < slot->due_us) {
        return;
    }
    int here = current_cpu();
    slot->due_us = now_us + PLACEMENT_EVERY_US;
    if (here < 0 || !take(placement, slot, here, now_us)) {
        placement_end(placement, slot); /* it has left its CPU for one that is recorded already */
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

bool placement_create_thread(struct placement_thread *thread, unsigned nth,
                             void *(*run)(void *context), void *context)
{
    pthread_attr_t attributes;
    cpu_set_t others;
    int here = current_cpu();
    bool is_created = false;
    *thread = (struct placement_thread){.run = run, .context = context};
    if (here >= 0 && sched_getaffinity(0, sizeof thread->allowed, &thread->allowed) == 0 &&
        nth < (unsigned)CPU_COUNT(&thread->allowed) && pthread_attr_init(&attributes) == 0) {
        others = thread->allowed;
        CPU_CLR(here, &others);
        thread->is_confined = true;
        is_created = pthread_attr_setaffinity_np(&attributes, sizeof others, &others) == 0 &&
                     pthread_create(&thread->thread, &attributes, run_thread, thread) == 0;
        pthread_attr_destroy(&attributes);
    }
    if (!is_created) { /* CPUs may have been taken from the process meanwhile */
        thread->is_confined = false;
        is_created = pthread_create(&thread->thread, NULL, run_thread, thread) == 0;
    }
    return is_created;
}
