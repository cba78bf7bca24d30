/* lab_clock: the clocks of a machine of the virtual cluster. Its monotonic clock begins anywhere,
 * drifts, and stands still while the machine is suspended; its wall clock jumps.
 *
 * A zeroed one shows virtual time. Pure. Threads: one at a time. Memory: none. */
#ifndef TESTS_CHAOS_LAB_CLOCK_H
#define TESTS_CHAOS_LAB_CLOCK_H

#include <stdint.h>

struct lab_clock {
    int64_t drift_ppm; /* it goes so much too fast */
    uint64_t begin_ns; /* what it shows when virtual time begins */
    uint64_t stood_ns; /* so long it stood still, before it last began to */
    uint64_t from_ns, resumed_ns; /* virtual time when it began to; ... when it last ceased to */
    unsigned suspended; /* how many reasons it has to stand still */
    int64_t wall_ns; /* so far the wall clock has jumped */
};

/* One that drifts by up to `most_ppm`; 0: it shows virtual time. */
struct lab_clock lab_clock_draw(uint64_t seed, uint32_t most_ppm);
/* What it shows at a virtual time that is not before it last began or ceased to stand still. */
uint64_t lab_clock_ns(const struct lab_clock *clock, uint64_t time_ns);
uint64_t lab_clock_us(const struct lab_clock *clock, uint64_t time_ns);
uint64_t lab_clock_wall_ns(const struct lab_clock *clock, uint64_t time_ns);
/* The virtual time from which on it shows `us`, if it does not stand still until then. */
uint64_t lab_clock_when_ns(const struct lab_clock *clock, uint64_t us);
/* It stands still; as many ends as begins. */
void lab_clock_suspend(struct lab_clock *clock, uint64_t now_ns);
void lab_clock_resume(struct lab_clock *clock, uint64_t now_ns);

#endif
