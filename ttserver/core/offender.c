#include "ttserver/core/offender.h"

#include <string.h>

static struct ttcore_offender *set_of(struct ttcore_offenders *o, const uint8_t *route,
                                      size_t length)
{
    uint64_t hash = ttcore_route_hash(o->seed, route, length);
    return o->place[hash & (TTCORE_OFFENDER_SETS - 1)];
}

static bool is_ignored(const struct ttcore_offender *p)
{
    return p->faults == TTCORE_FAULTS_MAX;
}

static bool is_over(const struct ttcore_offender *p, uint64_t now_us)
{
    return now_us - p->began_us >= (is_ignored(p) ? TTCORE_IGNORE_US : TTCORE_FAULTS_US);
}

static void forgive(struct ttcore_offenders *o, struct ttcore_offender *p)
{
    CHECK_THAT(o->ignored >= is_ignored(p), "offenders: the ignored are counted");
    o->ignored -= is_ignored(p);
    p->faults = 0;
}

/* Forgets its faults if their time is over; NULL when the peer has none. */
static struct ttcore_offender *find(struct ttcore_offenders *o, const uint8_t *route, size_t length,
                                    uint64_t now_us)
{
    struct ttcore_offender *p = set_of(o, route, length);
    for (unsigned i = 0; i < TTCORE_OFFENDER_WAYS; i++, p++) {
        if (p->faults > 0 && p->route_length == length && memcmp(p->route, route, length) == 0) {
            if (!is_over(p, now_us)) {
                return p;
            }
            forgive(o, p);
        }
    }
    return NULL;
}

/* The place with least to lose; NULL when all of the set are ignored. */
static struct ttcore_offender *make_place(struct ttcore_offenders *o, const uint8_t *route,
                                          size_t length)
{
    struct ttcore_offender *p = set_of(o, route, length), *best = p;
    for (unsigned i = 1; i < TTCORE_OFFENDER_WAYS; i++) {
        best = p[i].faults < best->faults ? &p[i] : best;
    }
    if (is_ignored(best)) {
        return NULL;
    }
    best->faults = 0;
    best->route_length = (uint8_t)length;
    memcpy(best->route, route, length);
    return best;
}

void ttcore_offenders_note(struct ttcore_offenders *o, const uint8_t *route, size_t length,
                           uint64_t now_us)
{
    struct ttcore_offender *p = find(o, route, length, now_us);
    p = p != NULL ? p : make_place(o, route, length);
    if (p == NULL || is_ignored(p)) {
        return;
    }
    if (p->faults++ == 0) {
        p->began_us = now_us;
    }
    if (is_ignored(p)) {
        p->began_us = now_us;
        o->ignored++;
    }
    CHECK_THAT(p->faults <= TTCORE_FAULTS_MAX, "offenders: who is ignored has no more faults");
    CHECK_THAT(o->ignored <= TTCORE_OFFENDER_SETS * TTCORE_OFFENDER_WAYS,
               "offenders: each ignored one has a place");
}

bool ttcore_offenders_ignores(struct ttcore_offenders *o, const uint8_t *route, size_t length,
                              uint64_t now_us)
{
    const struct ttcore_offender *p = find(o, route, length, now_us);
    return p != NULL && is_ignored(p);
}

void ttcore_offenders_expire(struct ttcore_offenders *o, uint64_t now_us)
{
    struct ttcore_offender *p = &o->place[0][0];
    for (unsigned i = 0; i < TTCORE_OFFENDER_SETS * TTCORE_OFFENDER_WAYS; i++, p++) {
        if (p->faults > 0 && is_over(p, now_us)) {
            forgive(o, p);
        }
    }
}
