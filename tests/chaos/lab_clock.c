#include "tests/chaos/lab_clock.h"

#include "common/err.h"
#include "common/rng.h"

#define DAY_NS (UINT64_C(86400) * 1000000000)

enum {
    UP_DAYS_MAX = 30,
    WALL_DAYS = 20000, /* so much the wall clock is ahead, before it jumps */
    TRY_NS = 500,
};

struct lab_clock lab_clock_draw(uint64_t seed, uint32_t most_ppm)
{
    uint64_t random = rng_mix(seed ^ UINT64_C(0xc10c));
    struct lab_clock clock = {.drift_ppm = 0};
    if (most_ppm > 0) {
        clock.drift_ppm = (int64_t)rng_below(&random, 2 * most_ppm + 1) - most_ppm;
        clock.begin_ns = rng_next(&random) % (UP_DAYS_MAX * DAY_NS);
    }
    return clock;
}

uint64_t lab_clock_ns(const struct lab_clock *c, uint64_t time_ns)
{
    const uint64_t at_ns = c->suspended > 0 ? c->from_ns : time_ns;
    CHECK(at_ns >= c->resumed_ns); /* nobody lives in a time that its host has slept through */
    const int64_t went_ns = (int64_t)(at_ns - c->stood_ns);
    return c->begin_ns + (uint64_t)(went_ns + went_ns * c->drift_ppm / 1000000);
}

uint64_t lab_clock_us(const struct lab_clock *c, uint64_t time_ns)
{
    return lab_clock_ns(c, time_ns) / 1000;
}

uint64_t lab_clock_wall_ns(const struct lab_clock *c, uint64_t time_ns)
{
    return lab_clock_ns(c, time_ns) + (uint64_t)((int64_t)(WALL_DAYS * DAY_NS) + c->wall_ns);
}

uint64_t lab_clock_when_ns(const struct lab_clock *c, uint64_t us)
{
    const uint64_t shown_ns = us > UINT64_MAX / 2000 ? UINT64_MAX / 2 : us * 1000;
    const uint64_t went_ns = shown_ns > c->begin_ns ? shown_ns - c->begin_ns : 0;
    if (c->drift_ppm == 0 || went_ns > UINT64_MAX / 4) {
        return went_ns + c->stood_ns;
    }
    const uint64_t rate = (uint64_t)(1000000 + c->drift_ppm);
    uint64_t at_ns = went_ns / rate * 1000000 + went_ns % rate * 1000000 / rate + c->stood_ns;
    while (lab_clock_us(&(struct lab_clock){.drift_ppm = c->drift_ppm,
                                            .begin_ns = c->begin_ns,
                                            .stood_ns = c->stood_ns},
                        at_ns) < us) {
        at_ns += TRY_NS;
    }
    return at_ns;
}

void lab_clock_suspend(struct lab_clock *c, uint64_t now_ns)
{
    if (c->suspended++ == 0) {
        c->from_ns = now_ns;
    }
}

void lab_clock_resume(struct lab_clock *c, uint64_t now_ns)
{
    if (--c->suspended == 0) {
        c->stood_ns += now_ns - c->from_ns;
        c->resumed_ns = now_ns;
    }
}
