#include "worker/search/brothers.h"

#include "worker/search/move.h"
#include "worker/search/young.h"

enum search_visit brothers_in_order(struct search *s, unsigned ply, int depth, struct outcome *o)
{
    for (unsigned i = 0; i < s->frame[ply].count && !move_cut_off(o); i++) {
        order_pick(s, ply, i);
        if (move_search(s, ply, depth, o, i, false) == VISIT_STOP) {
            return VISIT_STOP;
        }
    }
    return VISIT_VALUE;
}

/* Figure 1 of the paper: the second pass goes over all moves again, the finished ones answered by
 * the table. */
static enum search_visit two_passes(struct search *s, unsigned ply, int depth, struct outcome *o)
{
    bool all_done = false;
    order_sort(s, ply);
    for (unsigned pass = 1; pass <= 2 && !all_done; pass++) {
        all_done = true;
        for (unsigned i = 0; i < s->frame[ply].count && !move_cut_off(o); i++) {
            bool exclusive = pass == 1 && i > 0;
            enum search_visit visit = move_search(s, ply, depth, o, i, exclusive);
            if (visit == VISIT_STOP) {
                return VISIT_STOP;
            }
            if (visit == VISIT_BUSY) {
                s->counters.deferred++;
                all_done = false;
            }
        }
        if (move_cut_off(o)) {
            break;
        }
    }
    return VISIT_VALUE;
}

enum search_visit brothers_search(struct search *s, unsigned ply, int depth, struct outcome *o,
                                  bool counted)
{
    if (!counted) {
        return brothers_in_order(s, ply, depth, o);
    }
    switch (s->options.algorithm->brothers) {
    case BROTHERS_TWO_PASSES:
        return two_passes(s, ply, depth, o);
    case BROTHERS_LEAST_HELPED:
        return young_brothers(s, ply, depth, o);
    case BROTHERS_IN_ORDER:
        break;
    }
    return brothers_in_order(s, ply, depth, o);
}
