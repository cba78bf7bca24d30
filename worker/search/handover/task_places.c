#include "worker/search/handover/task_places.h"

#include <string.h>

struct place *place_of(struct places *t, uint64_t key)
{
    key = key == 0 ? 1 : key;
    uint64_t at = key & (PLACES - 1);
    while (t->at[at].key != key) {
        if (t->at[at].key == 0) {
            if (t->used == PLACES_USED) {
                return NULL;
            }
            t->used++;
            t->at[at].key = key;
            t->at[at].owner = PLACE_UNOWNED;
            break;
        }
        at = (at + 1) & (PLACES - 1);
    }
    return &t->at[at];
}

bool place_take(struct place *p, const struct task_result *m)
{
    CHECK_THAT(p->known_count <= KNOWN, "the results of a place fit");
    const int depth = m->depth;
    unsigned at = 0;
    while (at < p->known_count && p->known[at].depth > depth) {
        at++;
    }
    if (at == p->known_count || p->known[at].depth != depth) {
        at = at < KNOWN ? at : KNOWN - 1;
        p->known_count += p->known_count < KNOWN;
        memmove(&p->known[at + 1], &p->known[at], (p->known_count - at - 1) * sizeof p->known[0]);
        p->known[at] = (struct known){(uint8_t)depth, -GAME_INFINITE, GAME_INFINITE, 0};
    }
    struct known *k = &p->known[at];
    const struct known before = *k;
    if (m->alpha > k->upper || m->beta < k->lower) { /* not strict, or a lie: asked once more it
                                                        might contradict itself for ever */
        k->lower = k->upper = (int16_t)m->best;
        k->move = m->move;
    } else if (m->alpha > k->lower || (m->alpha == k->lower && k->move == 0)) {
        k->move = m->move; /* the one that proved the lower bound, or none */
    }
    k->lower = m->alpha > k->lower ? (int16_t)m->alpha : k->lower;
    k->upper = m->beta < k->upper ? (int16_t)m->beta : k->upper;
    k->upper = k->upper < k->lower ? k->lower : k->upper;
    p->move = m->move != 0 ? m->move : p->move;
    return k->lower != before.lower || k->upper != before.upper;
}

const struct known *place_deepest(const struct place *p, int most, int alpha, int beta)
{
    for (unsigned i = 0; i < p->known_count; i++) {
        const struct known *k = &p->known[i];
        if (k->depth <= most && (k->lower >= beta || k->upper <= alpha || k->lower == k->upper)) {
            return k;
        }
    }
    return NULL;
}
