#include "worker/engine/letter.h"

#include <string.h>

/* NUMBER(field, type on the wire), in order; then the moves. */
#define NUMBERS(NUMBER)            \
    NUMBER(kind, uint8_t)          \
    NUMBER(split, uint64_t)        \
    NUMBER(signature, uint64_t)    \
    NUMBER(path_scout, uint64_t)   \
    NUMBER(path_again, uint64_t)   \
    NUMBER(request, uint32_t)      \
    NUMBER(at, uint16_t)           \
    NUMBER(eldest.move, uint16_t)  \
    NUMBER(eldest.flags, uint16_t) \
    NUMBER(eldest.order, int16_t)  \
    NUMBER(move.move, uint16_t)    \
    NUMBER(move.flags, uint16_t)   \
    NUMBER(move.order, int16_t)    \
    NUMBER(alpha, int16_t)         \
    NUMBER(alpha_now, int16_t)     \
    NUMBER(beta, int16_t)          \
    NUMBER(best, int16_t)          \
    NUMBER(depth, int16_t)         \
    NUMBER(iteration, int16_t)     \
    NUMBER(repeats, int16_t)       \
    NUMBER(cut_node, uint8_t)      \
    NUMBER(has_value, uint8_t)     \
    NUMBER(lacks_value, uint8_t)   \
    NUMBER(counts, uint8_t)        \
    NUMBER(length, uint16_t)       \
    NUMBER(line_length, uint16_t)

#define NUMBER(field, type) +sizeof(type)
_Static_assert(LETTER_HEAD == 0 NUMBERS(NUMBER), "the head has all numbers");
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

size_t letter_write(const struct peer_message *m, uint8_t body[PROTO_BODY_MAX])
{
    uint8_t *at = body;
#define NUMBER(field, type) at = put(at, (uint64_t)m->field, sizeof(type));
    NUMBERS(NUMBER)
#undef NUMBER
    for (unsigned i = 0; i < peer_message_moves(m); i++) {
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

/* Bounds go beyond a mate by a point for each ply (bound_down in node.h). */
static bool is_window(int alpha, int beta)
{
    return is_bound(alpha, SEARCH_PLY_MAX) && is_bound(beta, SEARCH_PLY_MAX) && alpha < beta;
}

static bool is_depth(int depth)
{
    return depth >= 1 && depth <= SEARCH_DEPTH_MAX;
}

/* What its kind says must be in the range of a search. */
static bool is_sane(const struct peer_message *m)
{
    if (m->length >= SEARCH_PLY_MAX || m->line_length > SEARCH_PV_MAX || m->at >= GAME_MOVES_MAX) {
        return false;
    }
    switch ((enum peer_kind)m->kind) {
    case STEAL_REQUEST:
    case STEAL_NO_WORK:
    case STEAL_ABORT:
    case STEAL_SIGN:
    case TASK_DROP:
        return true;
    case STEAL_NARROW:
        return is_window(m->alpha, m->beta);
    case STEAL_WORK:
        return is_window(m->alpha, m->beta) && is_window(m->alpha_now, m->beta) &&
               m->alpha_now >= m->alpha && is_bound(m->best, 0) && m->best < m->beta &&
               is_depth(m->depth) && is_depth(m->iteration);
    case STEAL_RESULT:
        return is_bound(m->best, 0);
    case TASK_WORK:
        return is_window(m->alpha, m->beta) && is_depth(m->depth) && is_depth(m->iteration);
    case TASK_RESULT: /* a sign, or a result: `best`, and it is a bound or both */
        return m->depth == 0 || (is_depth(m->depth) && is_bound(m->best, 0) &&
                                 (m->alpha == m->best || m->alpha == -GAME_INFINITE) &&
                                 (m->beta == m->best || m->beta == GAME_INFINITE));
    }
    return false;
}

bool letter_read(const uint8_t *body, size_t length, struct peer_message *out)
{
    struct peer_message m = {.job = 0};
    if (length < LETTER_HEAD) {
        return false;
    }
    const uint8_t *at = body;
#define NUMBER(field, type)                \
    m.field = (type)get(at, sizeof(type)); \
    at += sizeof(type);
    NUMBERS(NUMBER)
#undef NUMBER
    if (!is_sane(&m) || length != LETTER_HEAD + peer_message_moves(&m) * sizeof m.moves[0]) {
        return false;
    }
    for (unsigned i = 0; i < peer_message_moves(&m); i++, at += sizeof m.moves[0]) {
        m.moves[i] = (uint16_t)get(at, sizeof m.moves[0]);
    }
    *out = m;
    return true;
}
