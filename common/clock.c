#include "common/clock.h"

#include "common/rng.h"

#include <stdatomic.h>
#include <sys/random.h>
#include <unistd.h>

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
