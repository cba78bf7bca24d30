/* spread: threads that start together, each on a processor of its own.
 *
 * Linux may start a thread on its creator's processor and leave it there while others are idle,
 * until its load is balanced: seen are 4 and 8 ms in which two searching threads took turns on one
 * of two processors (tests/bench/NOTES.md), as long as a small search takes. So a thread that finds
 * itself on a processor that another of them started on moves to one that none did; from then on
 * the system places it as it likes. What other programs do there is not known here: that, too, is
 * for the system to put right. Processors that the process may not use, by taskset or a container,
 * are left alone; where there are more threads than processors, or the system may have more than
 * CPU_SETSIZE, they stay where they are. Threads: spread_begin by one, before the others start;
 * then any number in spread_take. Allocates nothing; a failure is only a thread that is not moved.
 */
#ifndef COMMON_SPREAD_H
#define COMMON_SPREAD_H

#include <sched.h>
#include <stdatomic.h>

struct spread {
    atomic_bool taken[CPU_SETSIZE]; /* by the processor's number */
};

/* None is taken but the caller's, who is the first of the threads. */
void spread_begin(struct spread *spread);

/* The calling thread's processor from now on: the one it is on, or, if that is taken, the next one
 * of those it may use that is not, where the thread is when this returns. -1: all are taken, or the
 * system does not say; the thread stays where it is. The processors it may use are those of before;
 * one that is given to the process later, while the thread lives, may not be among them. */
int spread_take(struct spread *spread);

#endif
