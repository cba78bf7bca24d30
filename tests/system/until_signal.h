/* until_signal: tools that do so much, and with --until-signal 1 go on until SIGTERM. Includes
 * functions. Threads: one. Memory: static. */
#ifndef TESTS_SYSTEM_UNTIL_SIGNAL_H
#define TESTS_SYSTEM_UNTIL_SIGNAL_H

#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

static atomic_bool enough;

static void on_signal(int number)
{
    (void)number;
    atomic_store(&enough, true);
}

/* Whether there is more to do; prints `counted` when `done` reaches `wanted`. */
static bool goes_on(uint64_t done, uint64_t wanted, bool until_signal)
{
    if (until_signal && done == wanted) {
        puts("counted");
        fflush(stdout);
    }
    return done < wanted || (until_signal && !atomic_load(&enough));
}

#endif
