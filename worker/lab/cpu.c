/* cpu: the fibers of one worker share its processor. Who waits for an answer gives it away, who is
 * answered queues for it; a fiber that searches keeps it, as a real one does. */
#include "worker/lab/world.h"

#include <stdlib.h>

enum { NOBODY = -1 };

static struct lab_cpu *cpu_of(struct lab_worker *p)
{
    return &p->lab->cpu[p->index / p->lab->options.fibers];
}

static unsigned cpus(const struct lab *lab)
{
    return lab->options.workers / lab->options.fibers;
}

enum err lab_cpus_open(struct lab *lab)
{
    lab->cpu = calloc(cpus(lab), sizeof *lab->cpu);
    for (unsigned i = 0; lab->cpu != NULL && i < cpus(lab); i++) {
        lab->cpu[i].holder = NOBODY;
    }
    return lab->cpu != NULL ? ERR_OK : ERR_NOMEM;
}

void lab_cpus_begin(struct lab *lab)
{
    for (unsigned i = 0; i < cpus(lab); i++) {
        lab->cpu[i].idle_ns = 0;
        lab->cpu[i].free_ns = lab->now_ns;
    }
}

uint64_t lab_cpus_idle_ns(const struct lab *lab)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < cpus(lab); i++) {
        const struct lab_cpu *cpu = &lab->cpu[i];
        sum += cpu->idle_ns + (cpu->holder == NOBODY ? lab->now_ns - cpu->free_ns : 0);
    }
    return sum;
}

bool lab_cpu_take(struct lab_worker *p)
{
    struct lab_cpu *cpu = cpu_of(p);
    int64_t me = (int64_t)p->index;
    if (cpu->holder == me) {
        return true;
    }
    if (cpu->holder != NOBODY) {
        if (!p->queued) {
            p->queued = true;
            p->next_queued = NULL;
            *(cpu->queue != NULL ? &cpu->queue_last->next_queued : &cpu->queue) = p;
            cpu->queue_last = p;
        }
        return false;
    }
    cpu->holder = me;
    cpu->idle_ns += p->lab->now_ns - cpu->free_ns;
    return true;
}

void lab_cpu_give(struct lab_worker *p)
{
    struct lab_cpu *cpu = cpu_of(p);
    struct lab_worker *next = cpu->queue;
    cpu->holder = NOBODY;
    cpu->free_ns = p->lab->now_ns;
    if (next != NULL) {
        cpu->queue = next->next_queued;
        next->queued = false;
        cpu->holder = (int64_t)next->index;
        lab_heap_push(&p->lab->heap, (struct lab_event){.time_ns = p->lab->now_ns,
                                                        .kind = LAB_WAKE,
                                                        .who = next->index,
                                                        .epoch = ++next->epoch});
    }
}
