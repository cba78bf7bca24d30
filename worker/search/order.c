#include "common/rng.h"
#include "common/tt/history_sums.h"
#include "worker/search/node.h"

#include <string.h>

enum {
    CLASS_TABLE = 1 << 28,
    CLASS_NOISY = 1 << 26,
    CLASS_KILLER = 1 << 25,
    CLASS_LOSING = -(1 << 26),
    HISTORY_LIMIT = TT_HISTORY_LIMIT, /* one scale for what is learnt here and told by others */
    NOISE_BITS = 4,
};

/* The side to move, and the move. */
static unsigned order_at(unsigned ply, uint16_t move)
{
    return (ply & 1) * SEARCH_HISTORY + (move & (SEARCH_HISTORY - 1));
}

void order_moves(struct search *s, unsigned ply, uint16_t table_move)
{
    struct frame *f = &s->frame[ply];
    for (unsigned i = 0; i < f->count; i++) {
        struct game_move *m = &f->moves[i];
        if (m->move == table_move) {
            m->order = CLASS_TABLE;
        } else if (m->flags & GAME_NOISY) {
            m->order += CLASS_NOISY;
        } else if (m->move == f->killer[0] || m->move == f->killer[1]) {
            m->order = CLASS_KILLER + (m->move == f->killer[0]);
        } else {
            m->order = s->history[order_at(ply, m->move)] * (1 << NOISE_BITS) +
                       s->noise[m->move & (SEARCH_HISTORY - 1)];
        }
    }
}

/* Captures are weighed by static exchange when their turn comes: most nodes end before. */
static bool demote_losing(struct search *s, struct game_move *m)
{
    if (!(m->flags & GAME_NOISY) || m->order < CLASS_NOISY || m->order >= CLASS_TABLE ||
        !s->options.game->losing(s->position, m->move)) {
        return false;
    }
    m->order += CLASS_LOSING - CLASS_NOISY;
    return true;
}

void order_pick(struct search *s, unsigned ply, unsigned at)
{
    struct frame *f = &s->frame[ply];
    for (;;) {
        unsigned best = at;
        for (unsigned i = at + 1; i < f->count; i++) {
            if (f->moves[i].order > f->moves[best].order) {
                best = i;
            }
        }
        struct game_move m = f->moves[best];
        f->moves[best] = f->moves[at];
        f->moves[at] = m;
        if (!demote_losing(s, &f->moves[at])) {
            return;
        }
    }
}

void order_sort(struct search *s, unsigned ply)
{
    for (unsigned i = 0; i < s->frame[ply].count; i++) {
        order_pick(s, ply, i);
    }
}

static void halve(struct search *s)
{
    for (unsigned i = 0; i < 2 * SEARCH_HISTORY; i++) {
        s->history[i] /= 2;
    }
    s->halved++;
}

static void add(struct search *s, unsigned at, uint32_t weight)
{
    s->history[at] += (int32_t)weight;
    if (s->history[at] >= HISTORY_LIMIT) {
        halve(s);
    }
}

static uint32_t weight_of(int depth)
{
    return (uint32_t)(depth * depth);
}

void order_learn(struct search *s, unsigned ply, uint16_t move, int depth)
{
    add(s, order_at(ply, move), weight_of(depth));
}

void order_reward(struct search *s, unsigned ply, uint16_t move, int depth)
{
    struct frame *f = &s->frame[ply];
    struct tt_weight lesson = {(uint16_t)order_at(ply, move), weight_of(depth)};

    if (f->killer[0] != move) {
        f->killer[1] = f->killer[0];
        f->killer[0] = move;
    }
    add(s, lesson.index, lesson.weight);
    s->fresh[lesson.index] += lesson.weight;
    if (depth >= RECENT_DEPTH && s->recent_count < RECENT) {
        s->recent[s->recent_count++] = lesson;
    }
}

unsigned search_log_publish(struct search *s, struct tt_weight *out, unsigned room)
{
    unsigned n = s->recent_count < room ? s->recent_count : room;
    memcpy(out, s->recent, n * sizeof *out);
    s->recent_count = 0;
    return n;
}

void search_log_merge(struct search *s, const struct tt_weight *lesson, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        add(s, lesson[i].index, lesson[i].weight);
    }
}

unsigned search_history_publish(struct search *s, struct tt_weight *out, unsigned room)
{
    unsigned n = 0, at = s->fresh_from;
    for (unsigned looked = 0; looked < TT_WEIGHTS && n < room;
         looked++, at = (at + 1) % TT_WEIGHTS) {
        if (s->fresh[at] != 0) {
            out[n++] = (struct tt_weight){(uint16_t)at, s->fresh[at]};
            s->fresh[at] = 0;
        }
    }
    s->fresh_from = at;
    return n;
}

void search_history_merge(struct search *s, const struct tt_weight *sum, unsigned count,
                          unsigned halvings)
{
    for (unsigned i = s->halved; i < halvings && i < s->halved + 32;
         i++) { /* some were done here */
        halve(s);
    }
    s->halved = 0;
    for (unsigned i = 0; i < count; i++) {
        uint64_t all = (uint64_t)sum[i].weight + s->fresh[sum[i].index];
        s->history[sum[i].index] = all < HISTORY_LIMIT ? (int32_t)all : HISTORY_LIMIT - 1;
    }
}

/* Searchers that do not know of each other part ways by it. To those that do it is only a worse
 * order. */
void order_seed(struct search *s)
{
    bool in_order = s->options.algorithm->brothers == BROTHERS_IN_ORDER;
    uint64_t state = in_order || s->options.random_order ? s->options.seed : 0;
    s->random = s->options.seed;
    for (unsigned i = 0; i < SEARCH_HISTORY; i++) {
        s->noise[i] = state == 0 ? 0 : (uint8_t)(rng_mix(state + i) & ((1 << NOISE_BITS) - 1));
    }
}

void order_age(struct search *s)
{
    for (unsigned i = 0; i < 2 * SEARCH_HISTORY; i++) {
        s->history[i] /= 8;
    }
    memset(s->fresh, 0, sizeof s->fresh);
    s->recent_count = 0;
    s->halved = 0;
    for (unsigned ply = 0; ply < SEARCH_PLY_MAX + 2; ply++) {
        memset(s->frame[ply].killer, 0, sizeof s->frame[ply].killer);
    }
}
