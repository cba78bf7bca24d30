/* clock: monotonic time for shells (loops, engines, benches), and waits by it. Cores get their time
 * with the event.
 * Threads: any. */
#ifndef COMMON_CLOCK_H
#define COMMON_CLOCK_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

static inline uint64_t clock_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000u + (uint64_t)t.tv_nsec / 1000u;
}

/* The same as a member of a port; `self` is not read. */
uint64_t clock_port_us(void *self);

static inline uint64_t clock_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static inline uint64_t clock_after_ms(uint64_t now_us, uint32_t ms)
{
    return now_us + ms * UINT64_C(1000);
}

/* CPU time that this thread has had so far. */
static inline uint64_t clock_cpu_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* A condition of which `clock_wait` is the wait: a jump of the wall clock neither wakes nor keeps
 * anybody. To be ended by pthread_cond_destroy. */
void clock_open_condition(pthread_cond_t *out);
/* Waits until it is signalled (or for nothing, as conditions do), at the latest until clock_us() is
 * `until_us`. False: it is that late. The caller holds the lock. */
bool clock_wait(pthread_cond_t *condition, pthread_mutex_t *lock, uint64_t until_us);

/* Something no two processes share: for session instances, boot ids and job ids. Not for secrets.
 */
uint64_t clock_unique(void);

#endif
