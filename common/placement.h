/* placement: searching threads begin on processors of their own: those of a process, or of all
 * processes that have the memory in common.
 *
 * Linux may start or wake a thread on the processor of the one that caused it, and leave it there
 * while others are idle, until its load is balanced: seen are 4 and 8 ms in which two searching
 * threads took turns on one of two processors (docs/experiments.md), as long as a small search
 * takes. So each says now and then where it is; one that begins where another was just now moves to
 * a processor where none was. From then on the system places it as it likes: what other programs do
 * is not known here. Processors that the process may not use, by taskset or a container, are left
 * alone; where there are more threads than processors, or the system may have more than
 * CPU_SETSIZE, they stay where they are or begin where the system likes. Which processors are
 * halves of one core is not looked at.
 *
 * Threads: any, each with a place of its own. What one that is killed said counts for
 * PLACEMENT_FRESH_US. Allocates nothing but in placement_create_thread. A failure is only a thread
 * that is not moved. While a thread moves it may run nowhere else: it waits for that processor like
 * any other thread that is there. Then it may run where it might before; processors that the
 * process is given later may not be among them, for it and the threads that it starts. */
#ifndef COMMON_PLACEMENT_H
#define COMMON_PLACEMENT_H

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum {
    PLACEMENT_FRESH_US = 20000, /* longer than threads take turns on a processor */
    PLACEMENT_EVERY_US = 1000, /* often enough to say where one is */
};

/* All zero: nobody is anywhere. */
struct placement {
    /* Of each processor, by its number: when a thread was there, and its name. */
    _Atomic uint64_t last[CPU_SETSIZE];
};

/* A thread's. */
struct placement_slot {
    /* fixed */
    uint16_t name; /* tells threads apart; of two with one name, what one said may be taken back by
                      the other */
    /* state, all zero at first */
    uint16_t said; /* the processor where it said it was, from 1; 0: nowhere */
    uint64_t due_us;
};

/* The calling thread begins to search. If another is where it is, it moves to the next one of the
 * processors it may use where none is, and is there when this returns. `now_us`: CLOCK_MONOTONIC,
 * for all who share the memory. Returns the processor that is its own now; -1: all are taken, it
 * cannot be moved, or the system does not say. */
int placement_begin(struct placement *placement, struct placement_slot *place, uint64_t now_us);
/* It goes on: says where it is, unless it did so PLACEMENT_EVERY_US ago or later. Moves nobody. */
void placement_update(struct placement *placement, struct placement_slot *place, uint64_t now_us);
/* It searches no more: what it said is taken back. */
void placement_end(struct placement *placement, struct placement_slot *place);

/* A thread that placement_create_thread made; the caller's until it has joined `thread`. */
struct placement_thread {
    pthread_t thread;
    /* fixed */
    void *(*run)(void *context);
    void *context;
    cpu_set_t allowed; /* the creator's */
    bool is_confined; /* to those but the creator's processor, until it runs */
};

/* pthread_create for a creator that goes on with work of its own: the thread begins on another
 * processor. Behind its creator it would wait for the end of the creator's turn, some ms, before it
 * could say or change where it is. `nth`: of the creator's threads, from 1; one for which there is
 * no further processor that the creator may use begins anywhere. The creator says where it is
 * (placement_begin) before, so that no thread moves there. False: there is no thread. */
bool placement_create_thread(struct placement_thread *thread, unsigned nth,
                             void *(*run)(void *context), void *context);

#endif
