#include "worker/engine/letter.h"

#include <string.h>

/* NUMBER(field, type on the wire) of each kind, in order. */
#define CHILD(NUMBER)             \
    NUMBER(child.split, uint64_t) \
    NUMBER(child.at, uint16_t)
#define TASK(NUMBER, of)     \
    NUMBER(of.key, uint64_t) \
    NUMBER(of.request, uint32_t)
#define MOVE(NUMBER, of)       \
    NUMBER(of.move, uint16_t)  \
    NUMBER(of.flags, uint16_t) \
    NUMBER(of.order, int16_t)
#define STEAL_REQUEST_HAS(NUMBER) NUMBER(request.number, uint32_t)
#define STEAL_NO_WORK_HAS(NUMBER) NUMBER(request.number, uint32_t)
#define STEAL_WORK_HAS(NUMBER)      \
    CHILD(NUMBER)                   \
    NUMBER(work.request, uint32_t)  \
    MOVE(NUMBER, work.eldest)       \
    MOVE(NUMBER, work.move)         \
    NUMBER(work.alpha, int16_t)     \
    NUMBER(work.alpha_now, int16_t) \
    NUMBER(work.beta, int16_t)      \
    NUMBER(work.best, int16_t)      \
    NUMBER(work.depth, int16_t)     \
    NUMBER(work.iteration, int16_t) \
    NUMBER(work.cut_node, uint8_t)
#define STEAL_RESULT_HAS(NUMBER)        \
    CHILD(NUMBER)                       \
    NUMBER(result.has_value, uint8_t)   \
    NUMBER(result.lacks_value, uint8_t) \
    NUMBER(result.counts, uint8_t)      \
    NUMBER(result.repeats, int16_t)     \
    NUMBER(result.best, int16_t)        \
    NUMBER(result.path_scout, uint64_t) \
    NUMBER(result.path_again, uint64_t)
#define STEAL_NARROW_HAS(NUMBER)  \
    CHILD(NUMBER)                 \
    NUMBER(narrow.alpha, int16_t) \
    NUMBER(narrow.beta, int16_t)
#define STEAL_ABORT_HAS(NUMBER) CHILD(NUMBER)
#define STEAL_SIGN_HAS(NUMBER) \
    CHILD(NUMBER)              \
    NUMBER(sign.is_answer, uint8_t)
#define TASK_WORK_HAS(NUMBER)         \
    TASK(NUMBER, offer)               \
    NUMBER(offer.signature, uint64_t) \
    NUMBER(offer.alpha, int16_t)      \
    NUMBER(offer.beta, int16_t)       \
    NUMBER(offer.depth, int16_t)      \
    NUMBER(offer.iteration, int16_t)  \
    NUMBER(offer.cut_node, uint8_t)   \
    NUMBER(offer.asks, uint8_t)
#define TASK_DROP_HAS(NUMBER) TASK(NUMBER, drop)
#define TASK_RESULT_HAS(NUMBER)  \
    TASK(NUMBER, known)          \
    NUMBER(known.depth, int16_t) \
    NUMBER(known.best, int16_t)  \
    NUMBER(known.alpha, int16_t) \
    NUMBER(known.beta, int16_t)  \
    NUMBER(known.move, uint16_t)
#define KINDS(KIND, NUMBER)                        \
    KIND(STEAL_REQUEST, STEAL_REQUEST_HAS(NUMBER)) \
    KIND(STEAL_NO_WORK, STEAL_NO_WORK_HAS(NUMBER)) \
    KIND(STEAL_WORK, STEAL_WORK_HAS(NUMBER))       \
    KIND(STEAL_RESULT, STEAL_RESULT_HAS(NUMBER))   \
    KIND(STEAL_NARROW, STEAL_NARROW_HAS(NUMBER))   \
    KIND(STEAL_ABORT, STEAL_ABORT_HAS(NUMBER))     \
    KIND(STEAL_SIGN, STEAL_SIGN_HAS(NUMBER))       \
    KIND(TASK_WORK, TASK_WORK_HAS(NUMBER))         \
    KIND(TASK_DROP, TASK_DROP_HAS(NUMBER))         \
    KIND(TASK_RESULT, TASK_RESULT_HAS(NUMBER))

#define NUMBER(field, type) +sizeof(type)
#define KIND(kind, numbers) \
    _Static_assert(LETTER_KIND + (0 numbers) <= LETTER_HEAD, "the numbers of " #kind " fit");
KINDS(KIND, NUMBER)
#undef KIND
#undef NUMBER
_Static_assert(LETTER_HEAD + 2 * SEARCH_PLY_MAX <= (int)PROTO_BODY_MAX, "the longest message fits");

static uint8_t *put(uint8_t *at, uint64_t value, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) {
        at[i] = (uint8_t)(value >> 8 * i);
    }
    return at + bytes;
}

static uint64_t get(const uint8_t *at, size_t bytes)
{
    uint64_t value = 0;
    for (size_t i = 0; i < bytes; i++) {
        value |= (uint64_t)at[i] << 8 * i;
    }
    return value;
}

/* Writes or reads what a message of its kind has. */
static void put_numbers(uint8_t *body, const struct peer_message *m)
{
    uint8_t *at = body + LETTER_KIND;
#define NUMBER(field, type) at = put(at, (uint64_t)m->field, sizeof(type));
#define KIND(kind, numbers) \
    case kind:              \
        numbers break;
    switch ((enum peer_kind)m->kind) {
        KINDS(KIND, NUMBER)
    }
#undef NUMBER
}

static void get_numbers(const uint8_t *body, struct peer_message *m)
{
    const uint8_t *at = body + LETTER_KIND;
#define NUMBER(field, type)                 \
    m->field = (type)get(at, sizeof(type)); \
    at += sizeof(type);
    switch ((enum peer_kind)m->kind) {
        KINDS(KIND, NUMBER)
    }
#undef KIND
#undef NUMBER
}

size_t letter_write(const struct peer_message *m, uint8_t body[PROTO_BODY_MAX])
{
    uint8_t *at = body + LETTER_HEAD;
    memset(body, 0, LETTER_HEAD);
    put(put(body, m->kind, 1), m->length, 2);
    put_numbers(body, m);
    for (unsigned i = 0; i < m->length; i++) {
        at = put(at, m->moves[i], sizeof m->moves[0]);
    }
    return (size_t)(at - body);
}

/* A score of some game, `beyond` it by that much, or what is wider than all. */
static bool is_bound(int bound, int beyond)
{
    const int most = GAME_MATE + beyond;
    return (bound >= -most && bound <= most) || bound == GAME_INFINITE || bound == -GAME_INFINITE;
}

/* Bounds go beyond a mate by a point for each ply (bound_down in context.h). */
static bool is_window(int alpha, int beta)
{
    return is_bound(alpha, SEARCH_PLY_MAX) && is_bound(beta, SEARCH_PLY_MAX) && alpha < beta;
}

static bool is_depth(int depth)
{
    return depth >= 1 && depth <= SEARCH_DEPTH_MAX;
}

static bool is_child(const struct peer_message *m)
{
    return m->child.at < GAME_MOVES_MAX;
}

/* What its kind says must be in the range of a search. */
static bool is_sane(const struct peer_message *m)
{
    const struct steal_work *w = &m->work;
    const struct task_result *known = &m->known;
    switch ((enum peer_kind)m->kind) {
    case STEAL_REQUEST:
    case STEAL_NO_WORK:
    case TASK_DROP:
        return true;
    case STEAL_ABORT:
    case STEAL_SIGN:
        return is_child(m);
    case STEAL_NARROW:
        return is_child(m) && is_window(m->narrow.alpha, m->narrow.beta);
    case STEAL_WORK:
        return is_child(m) && is_window(w->alpha, w->beta) && is_window(w->alpha_now, w->beta) &&
               w->alpha_now >= w->alpha && is_bound(w->best, 0) && w->best < w->beta &&
               is_depth(w->depth) && is_depth(w->iteration);
    case STEAL_RESULT:
        return is_child(m) && m->length <= SEARCH_PV_MAX && is_bound(m->result.best, 0);
    case TASK_WORK:
        return is_window(m->offer.alpha, m->offer.beta) && is_depth(m->offer.depth) &&
               is_depth(m->offer.iteration);
    case TASK_RESULT: /* a sign, or a result: `best`, and it is a bound or both */
        return known->depth == 0 ||
               (is_depth(known->depth) && is_bound(known->best, 0) &&
                (known->alpha == known->best || known->alpha == -GAME_INFINITE) &&
                (known->beta == known->best || known->beta == GAME_INFINITE));
    }
    return false;
}

bool letter_read(const uint8_t *body, size_t length, struct peer_message *out)
{
    struct peer_message m = {.job = 0};
    if (length < LETTER_HEAD) {
        return false;
    }
    m.kind = (uint32_t)get(body, 1);
    m.length = (uint16_t)get(body + 1, 2);
    get_numbers(body, &m);
    if (m.length >= SEARCH_PLY_MAX || !is_sane(&m) ||
        length != LETTER_HEAD + m.length * sizeof m.moves[0]) {
        return false;
    }
    const uint8_t *at = body + LETTER_HEAD;
    for (unsigned i = 0; i < m.length; i++, at += sizeof m.moves[0]) {
        m.moves[i] = (uint16_t)get(at, sizeof m.moves[0]);
    }
    *out = m;
    return true;
}
