#include "common/clock.h"

#include "common/rng.h"

#include <errno.h>
#include <stdatomic.h>
#include <sys/random.h>
#include <unistd.h>

uint64_t clock_port_us(void *self)
{
    (void)self;
    return clock_us();
}

void clock_open_condition(pthread_cond_t *out)
{
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(out, &monotonic);
    pthread_condattr_destroy(&monotonic);
}

bool clock_wait(pthread_cond_t *condition, pthread_mutex_t *lock, uint64_t until_us)
{
    const struct timespec until = {.tv_sec = (time_t)(until_us / 1000000),
                                   .tv_nsec = (long)(until_us % 1000000) * 1000};
    return pthread_cond_timedwait(condition, lock, &until) != ETIMEDOUT;
}

uint64_t clock_unique(void)
{
    static atomic_uint serial;
    uint64_t value;
    if (getrandom(&value, sizeof value, GRND_NONBLOCK) != sizeof value) {
        value = clock_us() ^ (uint64_t)getpid() << 40;
    }
    value = rng_mix(value + atomic_fetch_add(&serial, 1));
    return value == 0 ? 1 : value;
}
