/* placement: starts each searching thread on a CPU of its own, among the threads of a process or of
 * all processes that have the memory in common.
 *
 * Why: Linux may start or wake a thread on the CPU of its creator and leave it there while other
 * CPUs are idle, until its load is balanced. Two searching threads were seen to take turns on one
 * CPU for 4 and 8 ms (experiments.md), as long as a small search takes. Therefore each thread
 * records its CPU every PLACEMENT_EVERY_US, and a thread that begins on a CPU that another one has
 * recorded moves to a CPU that none has. After that the system places it as it likes.
 *
 * Limits: CPUs that the process may not use (taskset, a container) are left alone, and CPUs that it
 * is given later may be. Threads beyond the number of CPUs or CPU_SETSIZE begin where the system
 * puts them. That two CPUs may be halves of one core is ignored. A thread that moves waits for its
 * new CPU like any other thread there.
 *
 * Threads: any, each with its own slot. The record of a thread that is killed expires after
 * PLACEMENT_FRESH_US. Memory: allocates in placement_create_thread only. Errors: a thread that
 * cannot be moved stays where it is. */
#ifndef COMMON_PLACEMENT_H
#define COMMON_PLACEMENT_H

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum {
    PLACEMENT_FRESH_US = 20000, /* longer than threads take turns on a CPU */
    PLACEMENT_EVERY_US = 1000, /* between two records of a thread */
};

/* Zeroed: nothing is recorded. */
struct placement {
    /* By CPU number: the time of the last record and the name of the thread. */
    _Atomic uint64_t last[CPU_SETSIZE];
};

/* One thread's record. */
struct placement_slot {
    /* fixed */
    uint16_t name; /* differs between threads; of two with one name, one may remove the record of
                      the other */
    /* state, zeroed at first */
    uint16_t recorded; /* 1 + the recorded CPU; 0: none */
    uint64_t due_us;
};

/* The calling thread begins to search: it records its CPU. If another thread is recorded there, it
 * first moves to the next usable CPU that has no record, and runs there when this returns.
 * `now_us`: CLOCK_MONOTONIC, for all that share the memory. Returns the CPU recorded; -1: all are
 * taken, the thread cannot be moved, or the system does not say where it runs. */
int placement_begin(struct placement *placement, struct placement_slot *slot, uint64_t now_us);
/* The calling thread goes on: records its CPU again once PLACEMENT_EVERY_US have passed. Moves
 * nothing. */
void placement_update(struct placement *placement, struct placement_slot *slot, uint64_t now_us);
/* The calling thread stops searching: removes its record. */
void placement_end(struct placement *placement, struct placement_slot *slot);

/* State of a thread that placement_create_thread made. The caller keeps it until it has joined
 * `thread`. */
struct placement_thread {
    pthread_t thread;
    /* fixed */
    void *(*run)(void *context);
    void *context;
    cpu_set_t allowed; /* the creator's CPUs */
    bool is_confined; /* set while all CPUs but the creator's are allowed, until `run` is called */
};

/* pthread_create for a creator that goes on working, or waits: the thread begins on another CPU. On
 * its creator's CPU it would wait for the end of the creator's time slice, some ms, before it could
 * record or change its CPU. `nth` counts the creator's threads from 1; a thread for which no
 * further CPU is left begins anywhere. The creator calls placement_begin first, so that no thread
 * moves to its CPU. False: no thread was created. */
bool placement_create_thread(struct placement_thread *thread, unsigned nth,
                             void *(*run)(void *context), void *context);

#endif
