#include "worker/search/order.h"

#include "common/rng.h"

#include <string.h>
#include <sys/mman.h>

enum {
    CLASS_TABLE = 1 << 28,
    CLASS_NOISY = 1 << 26,
    CLASS_KILLER = 1 << 25,
    CLASS_LOSING = -(1 << 26),
    HISTORY_LIMIT = 1 << 19,
    NOISE_BITS = 4,
};

/* The side to move, and the move. */
static unsigned order_at(const struct node *n, uint16_t move)
{
    return (n->ply & 1) * SEARCH_HISTORY + (move & (SEARCH_HISTORY - 1));
}

/* Histories of selection full. A bonus moves a value towards HISTORY_MAX, a malus away from it, by
 * a share of what is left of the way, so that old ones fade. */
enum {
    HISTORY_MAX = 16384,
    BONUS_MAX = 1600,
    CORRECTIONS = 16384,
    CORRECTION_UNIT = 256, /* of a centipawn */
    CORRECTION_WEIGHT = 16, /* of a deep node, of CORRECTION_UNIT */
};

struct histories {
    int16_t quiet[2][SEARCH_HISTORY]; /* side to move; move */
    int16_t continuation[2][GAME_CLASSES][GAME_CLASSES]; /* one or two moves back; that; this */
    int16_t correction[CORRECTIONS]; /* structure */
};

/* Mapped, as malloc would write zeroes to all of it where it had been given back before. */
struct histories *order_histories(void)
{
    void *h = mmap(NULL, sizeof(struct histories), PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return h == MAP_FAILED ? NULL : h;
}

void order_histories_free(struct histories *histories)
{
    if (histories != NULL) {
        (void)munmap(histories, sizeof *histories);
    }
}

static int16_t *continuation(const struct search *s, const struct node *n, unsigned back,
                             unsigned move_class)
{
    unsigned before = n->ply >= s->start_ply + back ? n[-(int)back].move_class : 0;
    return &s->histories->continuation[back - 1][before][move_class];
}

static int worth_of(const struct search *s, const struct node *n, uint16_t move)
{
    const struct game *game = s->options.game;
    int worth = s->histories->quiet[n->ply & 1][move & (SEARCH_HISTORY - 1)];
    if (game->move_class != NULL) {
        unsigned move_class = game->move_class(s->position, move);
        for (unsigned back = 1; back <= game->search->continuations; back++) {
            worth += *continuation(s, n, back, move_class);
        }
    }
    return worth;
}

static void update_value(int16_t *worth, int bonus)
{
    *worth = (int16_t)(*worth + bonus - *worth * (bonus < 0 ? -bonus : bonus) / HISTORY_MAX);
}

static void update_move(struct search *s, const struct node *n, uint16_t move, int bonus)
{
    const struct game *game = s->options.game;
    update_value(&s->histories->quiet[n->ply & 1][move & (SEARCH_HISTORY - 1)], bonus);
    if (game->move_class != NULL) {
        unsigned move_class = game->move_class(s->position, move);
        for (unsigned back = 1; back <= game->search->continuations; back++) {
            update_value(continuation(s, n, back, move_class), bonus);
        }
    }
}

static int16_t *correction(const struct search *s)
{
    const struct game *game = s->options.game;
    const uint64_t structure = game->structure == NULL ? 0 : game->structure(s->position);
    return structure == 0 ? NULL : &s->histories->correction[structure % CORRECTIONS];
}

int order_correction(const struct search *s)
{
    const int16_t *value = correction(s);
    return value == NULL ? 0 : *value / CORRECTION_UNIT;
}

void order_correct(struct search *s, const struct node *n, enum tt_bound bound)
{
    const int error = n->best - n->raw_eval;
    if (n->best > GAME_MATE_MIN || n->best < -GAME_MATE_MIN ||
        (bound == TT_LOWER && n->best <= n->static_eval) ||
        (bound == TT_UPPER && n->best >= n->static_eval)) {
        return;
    }
    int16_t *value = correction(s);
    if (value == NULL) {
        return;
    }
    const int weight = n->depth + 1 < CORRECTION_WEIGHT ? n->depth + 1 : CORRECTION_WEIGHT;
    int now =
        (*value * (CORRECTION_UNIT - weight) + error * CORRECTION_UNIT * weight) / CORRECTION_UNIT;
    const int most = s->options.game->search->correction_max * CORRECTION_UNIT;
    now = now > most ? most : now < -most ? -most : now;
    *value = (int16_t)now;
}

int order_worth(const struct game_move *m)
{
    return m->order < CLASS_KILLER ? m->order / (1 << NOISE_BITS) : 0;
}

/* By the game's own judgement. */
static void order_rated(struct search *s, struct node *n, uint16_t table_move)
{
    s->options.game->rate(s->position, n->depth, n->moves, n->move_count);
    for (unsigned i = 0; i < n->move_count; i++) {
        struct game_move *m = &n->moves[i];
        m->order = m->move == table_move
                       ? CLASS_TABLE
                       : m->order * (1 << NOISE_BITS) + s->noise[m->move & (SEARCH_HISTORY - 1)];
    }
}

void order_moves(struct search *s, struct node *n, uint16_t table_move)
{
    if (s->options.game->rate != NULL) {
        order_rated(s, n, table_move);
        return;
    }
    for (unsigned i = 0; i < n->move_count; i++) {
        struct game_move *m = &n->moves[i];
        if (m->move == table_move) {
            m->order = CLASS_TABLE;
        } else if (m->flags & GAME_NOISY) {
            m->order += CLASS_NOISY;
        } else if (m->move == n->killer[0] || m->move == n->killer[1]) {
            m->order = CLASS_KILLER + (m->move == n->killer[0]);
        } else {
            const int worth =
                s->options.full ? worth_of(s, n, m->move) : s->history[order_at(n, m->move)];
            m->order = worth * (1 << NOISE_BITS) + s->noise[m->move & (SEARCH_HISTORY - 1)];
        }
    }
}

/* Captures are weighed by static exchange when their turn comes, because most nodes end before. */
static bool demote_losing(struct search *s, struct game_move *m)
{
    if (!(m->flags & GAME_NOISY) || m->order < CLASS_NOISY || m->order >= CLASS_TABLE ||
        !s->options.game->losing(s->position, m->move)) {
        return false;
    }
    m->order += CLASS_LOSING - CLASS_NOISY;
    return true;
}

void order_pick(struct search *s, struct node *n, unsigned at)
{
    for (;;) {
        unsigned best = at;
        for (unsigned i = at + 1; i < n->move_count; i++) {
            if (n->moves[i].order > n->moves[best].order) {
                best = i;
            }
        }
        struct game_move m = n->moves[best];
        n->moves[best] = n->moves[at];
        n->moves[at] = m;
        if (!demote_losing(s, &n->moves[at])) {
            return;
        }
    }
}

void order_sort(struct search *s, struct node *n)
{
    for (unsigned i = 0; i < n->move_count; i++) {
        order_pick(s, n, i);
    }
}

/* All values are halved when one becomes too large. */
static void add(struct search *s, const struct node *n, uint16_t move, int depth)
{
    const unsigned at = order_at(n, move);
    s->history[at] += depth * depth;
    const bool is_large = s->history[at] >= HISTORY_LIMIT;
    for (unsigned i = 0; is_large && i < 2 * SEARCH_HISTORY; i++) {
        s->history[i] /= 2;
    }
}

void order_refuted(struct search *s, const struct node *n, uint16_t move, int depth)
{
    if (!s->options.full) { /* which has histories of its own */
        add(s, n, move, depth);
    }
}

/* The position is that of the node. */
static void update_moves(struct search *s, const struct node *n, unsigned at)
{
    const int wanted = 140 * n->depth;
    const int bonus = wanted < BONUS_MAX ? wanted : BONUS_MAX;
    update_move(s, n, n->moves[at].move, bonus);
    for (unsigned i = 0; i < at; i++) {
        if (!(n->moves[i].flags & GAME_NOISY)) {
            update_move(s, n, n->moves[i].move, -bonus);
        }
    }
}

void order_reward(struct search *s, struct node *n, unsigned at)
{
    const uint16_t move = n->moves[at].move;

    if (n->killer[0] != move) {
        n->killer[1] = n->killer[0];
        n->killer[0] = move;
    }
    if (s->options.full) {
        update_moves(s, n, at);
    } else {
        add(s, n, move, n->depth);
    }
}

/* Searchers that do not know of each other are kept apart by it. For those that do it is only a
 * worse order. */
void order_seed(struct search *s)
{
    bool is_random = s->options.algorithm->random_order || s->options.random_order;
    uint64_t state = is_random ? s->options.seed : 0;
    s->random = s->options.seed;
    for (unsigned i = 0; i < SEARCH_HISTORY; i++) {
        s->noise[i] = state == 0 ? 0 : (uint8_t)(rng_mix(state + i) & ((1 << NOISE_BITS) - 1));
    }
}

void order_forget(struct search *s)
{
    memset(s->history, 0, sizeof s->history);
    if (madvise(s->histories, sizeof *s->histories, MADV_DONTNEED) != 0) { /* zeroes again */
        memset(s->histories, 0, sizeof *s->histories);
    }
}

void order_age(struct search *s)
{
    for (unsigned i = 0; i < 2 * SEARCH_HISTORY; i++) {
        s->history[i] /= 8;
    }
    for (unsigned i = 0; i < 2 * SEARCH_HISTORY && s->options.full; i++) {
        s->histories->quiet[i / SEARCH_HISTORY][i % SEARCH_HISTORY] /= 2;
    }
    for (unsigned ply = 0; ply < SEARCH_PLY_MAX + 2; ply++) {
        memset(s->node[ply].killer, 0, sizeof s->node[ply].killer);
    }
}
