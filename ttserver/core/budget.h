/* ttcore_budget: how often something may be done, as one time: each use moves it on by one step or
 * more, and it may lie some `burst` steps ahead of now (the generic cell rate algorithm of ATM,
 * ITU-T I.371). Zero is unused. Pure. Threads: the caller's. */
#ifndef TTSERVER_CORE_BUDGET_H
#define TTSERVER_CORE_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

/* Whether it may be done once more now; counts it as `cost` steps if so. */
static inline bool ttcore_budget_take(uint64_t *budget_us, uint64_t now_us, uint32_t burst,
                                      uint64_t step_us, uint32_t cost)
{
    uint64_t from_us = *budget_us > now_us ? *budget_us : now_us;
    if (from_us - now_us > (burst - 1) * step_us) {
        return false;
    }
    *budget_us = from_us + cost * step_us;
    return true;
}

#endif
