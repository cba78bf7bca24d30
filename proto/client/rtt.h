/* rtt: how long to wait for an answer, from the round trips measured (Jacobson and Karels 1988).
 *
 * Time-out = smoothed round trip + 4 mean deviations, within [min, max]; before the first sample,
 * max. Doubled by rtt_back_off until the next sample. Request ids are unique, so every sample is
 * unambiguous (Karn's rule holds by itself). Pure; microseconds; the caller owns the state. */
#ifndef PROTO_CLIENT_RTT_H
#define PROTO_CLIENT_RTT_H

#include <stdbool.h>
#include <stdint.h>

struct rtt {
    uint32_t min_us, max_us; /* fixed */
    uint32_t smoothed_x8, deviation_x4; /* scaled, as in BSD, to keep the fractions */
    uint32_t timeout_us;
    bool sampled;
};

static inline void rtt_reset(struct rtt *rtt, uint32_t min_us, uint32_t max_us)
{
    *rtt = (struct rtt){.min_us = min_us, .max_us = max_us, .timeout_us = max_us};
}

static inline void rtt_sample(struct rtt *rtt, uint64_t round_trip_us)
{
    uint32_t r = round_trip_us < rtt->max_us ? (uint32_t)round_trip_us : rtt->max_us;
    if (rtt->sampled) {
        int32_t error = (int32_t)r - (int32_t)(rtt->smoothed_x8 >> 3);
        uint32_t size = (uint32_t)(error < 0 ? -error : error);
        rtt->smoothed_x8 = (uint32_t)((int32_t)rtt->smoothed_x8 + error);
        rtt->deviation_x4 += size - (rtt->deviation_x4 >> 2);
    } else {
        rtt->smoothed_x8 = r << 3;
        rtt->deviation_x4 = r << 1;
        rtt->sampled = true;
    }
    uint64_t timeout = (uint64_t)(rtt->smoothed_x8 >> 3) + rtt->deviation_x4;
    timeout = timeout < rtt->min_us ? rtt->min_us : timeout;
    rtt->timeout_us = timeout > rtt->max_us ? rtt->max_us : (uint32_t)timeout;
}

static inline void rtt_back_off(struct rtt *rtt)
{
    rtt->timeout_us = rtt->timeout_us < rtt->max_us / 2 ? 2 * rtt->timeout_us : rtt->max_us;
}

static inline uint32_t rtt_smoothed_us(const struct rtt *rtt)
{
    return rtt->smoothed_x8 >> 3;
}

#endif
