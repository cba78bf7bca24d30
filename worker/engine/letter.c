#include "worker/engine/letter.h"

#include <stddef.h>
#include <string.h>

/* ---- messages of searches ---- */

_Static_assert(offsetof(struct peer_message, moves) == 82, "builds lay it out in one way");
_Static_assert(sizeof(struct peer_message) <= (int)PROTO_BODY_MAX, "the longest message fits");

size_t letter_write(const struct peer_message *m, uint8_t body[PROTO_BODY_MAX])
{
    CHECK_THAT(m->length < SEARCH_PLY_MAX, "a message has room for its moves");
    memcpy(body, m, peer_message_size(m));
    return peer_message_size(m);
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

/* Whether a byte from elsewhere may be read as what it is. */
static bool is_bool(const bool *value)
{
    return *(const unsigned char *)value <= 1;
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
        return is_child(m);
    case STEAL_SIGN:
        return is_child(m) && is_bool(&m->sign.is_answer);
    case STEAL_NARROW:
        return is_child(m) && is_window(m->narrow.alpha, m->narrow.beta);
    case STEAL_WORK:
        return is_child(m) && is_window(w->alpha, w->beta) && is_window(w->alpha_now, w->beta) &&
               w->alpha_now >= w->alpha && is_bound(w->best, 0) && w->best < w->beta &&
               is_depth(w->depth) && is_depth(w->iteration) && is_bool(&w->cut_node);
    case STEAL_RESULT:
        return is_child(m) && m->length <= SEARCH_PV_MAX && is_bound(m->result.best, 0) &&
               m->result.repeats >= -1 && m->result.repeats <= NO_REPEAT &&
               is_bool(&m->result.has_value) && is_bool(&m->result.lacks_value) &&
               is_bool(&m->result.counts);
    case TASK_WORK:
        return is_window(m->offer.alpha, m->offer.beta) && is_depth(m->offer.depth) &&
               is_depth(m->offer.iteration) && is_bool(&m->offer.cut_node) &&
               is_bool(&m->offer.asks);
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
    struct peer_message message = {.job = 0}, *m = &message;
    if (length < offsetof(struct peer_message, moves) || length > sizeof *m) {
        return false;
    }
    memcpy(m, body, length);
    m->job = m->from = 0;
    if (m->length >= SEARCH_PLY_MAX || length != peer_message_size(m) || !is_sane(m)) {
        return false;
    }
    *out = *m;
    return true;
}

/* ---- letters about a bag ---- */

struct writer {
    uint8_t *at, *end;
    bool is_full;
};

static void put(struct writer *w, const void *from, size_t bytes)
{
    w->is_full = w->is_full || (size_t)(w->end - w->at) < bytes;
    if (!w->is_full) {
        memcpy(w->at, from, bytes);
        w->at += bytes;
    }
}

size_t bag_letter_write(const struct bag_letter *letter, uint8_t body[PROTO_BODY_MAX])
{
    struct writer w = {body, body + PROTO_BODY_MAX, false};
    const uint8_t head[] = {(uint8_t)letter->kind, letter->is_shared, (uint8_t)letter->count};
    put(&w, head, sizeof head);
    for (unsigned i = 0; i < letter->count; i++) {
        put(&w, &letter->item[i], sizeof letter->item[i]);
        if (letter->kind == BAG_WORK) {
            const uint8_t length = (uint8_t)strlen(letter->text[i]);
            put(&w, &length, sizeof length);
            put(&w, letter->text[i], length);
        }
    }
    if (letter->kind == BAG_HAS) {
        put(&w, &letter->nodes, sizeof letter->nodes);
    } else if (letter->kind == BAG_FOUND) {
        put(&w, &letter->found, sizeof letter->found);
    }
    return w.is_full ? 0 : (size_t)(w.at - body);
}

struct reader {
    const uint8_t *at, *end;
    bool is_bad; /* it ended too early */
};

static void get(struct reader *r, void *out, size_t bytes)
{
    r->is_bad = r->is_bad || (size_t)(r->end - r->at) < bytes;
    if (!r->is_bad) {
        memcpy(out, r->at, bytes);
        r->at += bytes;
    }
}

/* A position's text is printable ASCII. */
static bool is_text(const char *text, size_t length)
{
    size_t i = 0;
    while (i < length && text[i] >= ' ' && text[i] <= '~') {
        i++;
    }
    return i == length;
}

/* No searcher of a position counts so far, and sums must not overflow. */
static bool is_counter(uint64_t value)
{
    return value >> PROTO_COUNTER_BITS == 0;
}

static bool is_found(const struct bag_found *f)
{
    const struct search_result *result = &f->result;
    bool are_counters = is_counter(f->time_us);
    for (unsigned i = 0; i < COUNTERS_ALL; i++) {
        are_counters = are_counters && is_counter(f->counters.at[i]);
    }
    return are_counters && f->is_refused <= 1 && result->depth <= SEARCH_DEPTH_MAX &&
           result->deepest <= SEARCH_PLY_MAX && result->score <= GAME_MATE &&
           result->score >= -GAME_MATE && result->pv.length <= SEARCH_PV_MAX;
}

bool bag_letter_read(const uint8_t *body, size_t length, struct bag_letter *out)
{
    struct reader r = {body, body + length, false};
    uint8_t head[3] = {0}, text_length = 0;
    memset(out, 0, sizeof *out);
    get(&r, head, sizeof head);
    out->kind = (enum bag_kind)head[0];
    out->is_shared = head[1];
    out->count = head[2];
    if (out->kind < BAG_WORK || out->kind > BAG_FOUND || out->is_shared > 1 ||
        out->count > BAG_ASSIGNED_MAX) {
        return false;
    }
    for (unsigned i = 0; i < out->count; i++) {
        get(&r, &out->item[i], sizeof out->item[i]);
        if (out->kind == BAG_WORK) {
            get(&r, &text_length, sizeof text_length);
            get(&r, out->text[i], text_length < GAME_TEXT_MAX ? text_length : 0);
            if (!is_text(out->text[i], text_length)) {
                return false;
            }
        }
    }
    if (out->kind == BAG_HAS) {
        get(&r, &out->nodes, sizeof out->nodes);
    } else if (out->kind == BAG_FOUND) {
        get(&r, &out->found, sizeof out->found);
        out->found.result.bound = TT_EXACT;
    }
    return !r.is_bad && r.at == r.end && is_counter(out->nodes) && is_found(&out->found);
}
