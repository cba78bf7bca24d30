/* What the codec tests generate from proto/messages.h: fill a message at random, compare two. */
#ifndef TESTS_SUPPORT_TEST_PROTO_FIELDS_H
#define TESTS_SUPPORT_TEST_PROTO_FIELDS_H

#include "common/rng.h"
#include "proto/codec.h"

#include <stdlib.h>
#include <string.h>

/* Room for the one list and the texts of a message filled at random. */
struct filler {
    uint64_t rng;
    struct proto_decoder room;
    char text[PROTO_TEXT_MAX];
    uint32_t list_max;
};

/* The edges of every msgpack width, now and then. */
static inline uint64_t fill_number(struct filler *f, uint64_t max)
{
    unsigned bits = rng_below(&f->rng, 65);
    uint64_t edge = bits == 64 ? UINT64_MAX : UINT64_C(1) << bits;
    uint64_t value = rng_below(&f->rng, 2) ? edge - rng_below(&f->rng, 2) : rng_next(&f->rng);
    return max == UINT64_MAX ? value : value % (max + 1);
}

#define FILL_UNSIGNED(type, ctype, max)                          \
    static inline void fill_##type(struct filler *f, ctype *out) \
    {                                                            \
        *out = (ctype)fill_number(f, max);                       \
    }                                                            \
    static inline bool same_##type(ctype a, ctype b)             \
    {                                                            \
        return a == b;                                           \
    }
FILL_UNSIGNED(u8, uint8_t, UINT8_MAX)
FILL_UNSIGNED(u16, uint16_t, UINT16_MAX)
FILL_UNSIGNED(u32, uint32_t, UINT32_MAX)
FILL_UNSIGNED(u64, uint64_t, UINT64_MAX)
FILL_UNSIGNED(i16, int16_t, UINT16_MAX)

static inline void fill_text(struct filler *f, struct proto_text *out)
{
    static const uint32_t edges[] = {0, 1, 31, 32, 255, 256, PROTO_TEXT_MAX};
    out->at = f->text;
    out->length = edges[rng_below(&f->rng, f->list_max > 100 ? 4 : 7)];
}

static inline bool same_text(struct proto_text a, struct proto_text b)
{
    return a.length == b.length && (a.length == 0 || memcmp(a.at, b.at, a.length) == 0);
}

static inline void fill_bytes(struct filler *f, struct proto_bytes *out)
{
    static const uint32_t edges[] = {0, 1, 255, 256, PROTO_BODY_MAX};
    out->at = (const uint8_t *)f->text;
    out->length = edges[rng_below(&f->rng, 5)];
}

static inline bool same_bytes(struct proto_bytes a, struct proto_bytes b)
{
    return a.length == b.length && (a.length == 0 || memcmp(a.at, b.at, a.length) == 0);
}

/* Some fields are enums or narrower in memory: go through the type of the wire. */
#define F(type, name)           \
    {                           \
        PROTO_C_##type value;   \
        fill_##type(f, &value); \
        out->name = value;      \
    }
#define OP(list, element, fields)                                             \
    static inline void fill_one_of_##list(struct filler *f, element *out)     \
    {                                                                         \
        fields                                                                \
    }                                                                         \
    static inline void fill_##list(struct filler *f, struct proto_##list *to) \
    {                                                                         \
        to->count = rng_below(&f->rng, f->list_max + 1);                      \
        to->at = f->room.list;                                                \
        for (uint32_t i = 0; i < to->count; i++) {                            \
            fill_one_of_##list(f, &to->at[i]);                                \
        }                                                                     \
    }
PROTO_OPS(OP)
#undef OP
#undef F

#define F(type, name) &&same_##type(a.at[i].name, b.at[i].name)
#define OP(list, element, fields)                                                \
    static inline bool same_##list(struct proto_##list a, struct proto_##list b) \
    {                                                                            \
        bool same = a.count == b.count;                                          \
        for (uint32_t i = 0; same && i < a.count; i++) {                         \
            same = true fields;                                                  \
        }                                                                        \
        return same;                                                             \
    }
PROTO_OPS(OP)
#undef OP
#undef F

/* What is packed has depths and bounds of few bits, and no slots. */
static inline void fill_results(struct filler *f, struct proto_stores *to)
{
    fill_stores(f, to);
    for (uint32_t i = 0; i < to->count; i++) {
        to->at[i].depth %= PROTO_RESULT_DEPTH_MAX + 1;
        to->at[i].bound &= 3;
        to->at[i].slot = 0;
    }
}

static inline bool same_results(struct proto_stores a, struct proto_stores b)
{
    return same_stores(a, b);
}

static inline void fill_message(struct filler *f, struct proto_message *m, unsigned type)
{
    memset(m, 0, sizeof *m);
    m->type = (enum proto_type)type;
    switch (type) {
#define F(ftype, field) fill_##ftype(f, &out->field);
#define MSG(NAME, name, id, fields)          \
    case id: {                               \
        struct proto_##name *out = &m->name; \
        fields break;                        \
    }
        PROTO_MESSAGES(MSG)
#undef MSG
#undef F
    default:
        abort();
    }
}

static inline bool same_message(const struct proto_message *a, const struct proto_message *b)
{
    if (a->type != b->type) {
        return false;
    }
    switch (a->type) {
#define F(ftype, field) &&same_##ftype(x->field, y->field)
#define MSG(NAME, name, id, fields)                             \
    case id: {                                                  \
        const struct proto_##name *x = &a->name, *y = &b->name; \
        return true fields;                                     \
    }
        PROTO_MESSAGES(MSG)
#undef MSG
#undef F
    }
    return false;
}

/* A copy of exactly these bytes on the heap, so that a sanitizer sees one byte too far. */
static inline uint8_t *exact_copy(const uint8_t *bytes, size_t length)
{
    uint8_t *copy = malloc(length ? length : 1);
    if (!copy) {
        abort();
    }
    memcpy(copy, bytes, length);
    return copy;
}

#endif
