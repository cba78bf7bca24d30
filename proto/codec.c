#include "proto/codec.h"

#include <endian.h>
#include <msgpack.h>
#include <string.h>

enum { FIELDS_MAX = 64 /* of a message or operation, whoever sends it */ };

#define APART __attribute__((noinline)) /* else loops over lists have too few registers */

/* ---- reading ---- */

struct reader {
    const uint8_t *at, *end;
    struct proto_decoder *decoder; /* room for lists */
};

/* How a value begins: a number, or how long what follows is. */
struct head {
    enum { NUMBER, SIGNED, TEXT, BIN, ARRAY } kind;
    uint64_t value; /* bytes of a TEXT or BIN, elements of an ARRAY; of SIGNED: an int64_t */
};

/* Reads what a tag from c0 on begins: a length, or a number of its own bytes. */
static bool read_long_head(struct reader *r, uint8_t tag, struct head *out)
{
    static const struct {
        uint8_t kind, bytes; /* bytes: of the number behind the tag */
    } form[] = {[0x04] = {BIN, 1}, {BIN, 2},    {BIN, 4},    [0x0c] = {NUMBER, 1},
                {NUMBER, 2},       {NUMBER, 4}, {NUMBER, 8}, [0x10] = {SIGNED, 1},
                {SIGNED, 2},       {SIGNED, 4}, {SIGNED, 8}, [0x19] = {TEXT, 1},
                {TEXT, 2},         {TEXT, 4},   {ARRAY, 2},  {ARRAY, 4}};
    const unsigned at = tag - 0xc0u;
    const unsigned bytes = at < sizeof form / sizeof *form ? form[at].bytes : 0;
    if (bytes == 0 || (size_t)(r->end - r->at) < bytes) {
        return false;
    }
    uint64_t value = 0;
    for (unsigned i = 0; i < bytes; i++) {
        value = value << 8 | *r->at++;
    }
    if (form[at].kind == SIGNED) {
        value = (uint64_t)((int64_t)(value << (64 - 8 * bytes)) >> (64 - 8 * bytes));
    }
    *out = (struct head){form[at].kind, value};
    return true;
}

/* False: nothing of these is there. */
static inline bool read_head(struct reader *r, struct head *out)
{
    if (r->at >= r->end) {
        return false;
    }
    const uint8_t tag = *r->at++;
    if (tag <= 0x7f) {
        *out = (struct head){NUMBER, tag};
    } else if (tag >= 0xe0) {
        *out = (struct head){SIGNED, (uint64_t)(int8_t)tag};
    } else if (tag >= 0x90 && tag <= 0x9f) {
        *out = (struct head){ARRAY, tag & 0x0f};
    } else if (tag >= 0xa0 && tag <= 0xbf) {
        *out = (struct head){TEXT, tag & 0x1f};
    } else {
        return read_long_head(r, tag, out);
    }
    return true;
}

/* Reads a number of at most `max`, or how long something is that is here as a whole: every element
 * of an array takes a byte at least, and a count beyond the bytes left is a lie. */
static inline __attribute__((always_inline)) bool read_as(struct reader *r, unsigned kind,
                                                          uint64_t max, uint64_t *out)
{
    struct head head;
    bool ok = read_head(r, &head) && head.kind == kind && head.value <= max &&
              (kind == NUMBER || head.value <= (uint64_t)(r->end - r->at));
    *out = ok ? head.value : 0;
    return ok;
}

static bool read_i16(struct reader *r, int16_t *out)
{
    struct head head;
    if (!read_head(r, &head) || head.kind > SIGNED ||
        (head.kind == NUMBER && head.value > INT16_MAX)) {
        return false;
    }
    const int64_t value = (int64_t)head.value;
    *out = (int16_t)value;
    return value >= INT16_MIN && value <= INT16_MAX;
}

#define READ_UNSIGNED(type, ctype, max)                   \
    static bool read_##type(struct reader *r, ctype *out) \
    {                                                     \
        uint64_t value;                                   \
        bool ok = read_as(r, NUMBER, max, &value);        \
        *out = (ctype)value;                              \
        return ok;                                        \
    }
READ_UNSIGNED(u8, uint8_t, UINT8_MAX)
READ_UNSIGNED(u16, uint16_t, UINT16_MAX)
READ_UNSIGNED(u32, uint32_t, UINT32_MAX)
READ_UNSIGNED(u64, uint64_t, UINT64_MAX)

#define READ_TEXT(name, kind, max)                                           \
    static bool read_##name(struct reader *r, struct proto_##name *out)      \
    {                                                                        \
        uint64_t length;                                                     \
        bool ok = read_as(r, kind, max, &length);                            \
        *out = (struct proto_##name){(const void *)r->at, (uint32_t)length}; \
        r->at += length;                                                     \
        return ok;                                                           \
    }
READ_TEXT(text, TEXT, PROTO_TEXT_MAX)
READ_TEXT(bytes, BIN, PROTO_BODY_MAX)

static APART bool read_count(struct reader *r, uint64_t *count)
{
    return read_as(r, ARRAY, PROTO_BATCH_MAX, count);
}

/* Passes over so many values that are known to a later program alone, of the types that occur. */
static bool skip(struct reader *r, uint64_t values)
{
    for (; values > 0; values--) {
        struct head head;
        if (!read_head(r, &head)) {
            return false;
        }
        bool has_bytes = head.kind == TEXT || head.kind == BIN;
        if (has_bytes && head.value > (size_t)(r->end - r->at)) {
            return false;
        }
        r->at += has_bytes ? head.value : 0;
        values += head.kind == ARRAY ? head.value : 0;
    }
    return true;
}

/* How many fields are known here. */
#define F(type, name) +1
#define OP(list, element, fields) enum { FIELDS_OF_##list = 0 fields };
#define MSG(NAME, name, id, fields) enum { FIELDS_OF_##NAME = 0 fields };
PROTO_OPS(OP)
PROTO_MESSAGES(MSG)
#undef OP
#undef MSG
#undef F

/* ---- reading, the usual case ----
 *
 * Lists are long, and their numbers of every width: the widths are distinguished without branches,
 * which would be guessed wrong at every second field. Each reads at most IN_BYTES, or says `bad`:
 * then the operation is read again, slowly, and that decides. */
enum { IN_BYTES = 9 };

static inline const uint8_t *quick_short(const uint8_t *at, int32_t *out, unsigned *bad)
{
    unsigned tag = at[0], width = tag - 0xcc; /* cc, cd: 8, 16 bits; d0, d1: the same, signed */
    uint32_t is_wide = (width & ~5u) == 0, is_fixed = (int8_t)tag >= -32;
    int32_t raw = at[1] << 8 | at[2], all = -(int32_t)is_wide;
    raw -= (raw & 0x8000 & -(int32_t)(width >> 2 & 1)) * 2;
    raw >>= 8 & ((int32_t)(tag & 1) - 1);
    *bad |= !(is_wide | is_fixed);
    *out = (raw & all) | ((int8_t)tag & ~all);
    return at + 1 + ((unsigned)all & (1 + (tag & 1)));
}

/* `likely`: most values of this type are small. Then the place of the next field does not depend on
 * this field's width, and the CPU need not wait for it. */
#define QUICK_SHORT(type, ctype, min, max, likely)                                          \
    static inline const uint8_t *quick_##type(const uint8_t *at, ctype *out, unsigned *bad) \
    {                                                                                       \
        int32_t value;                                                                      \
        unsigned tag = *at;                                                                 \
        if (likely && tag <= 0x7f) {                                                        \
            *out = (ctype)*at;                                                              \
            return at + 1;                                                                  \
        }                                                                                   \
        at = quick_short(at, &value, bad);                                                  \
        *bad |= (value < (min)) | (value > (max)) | ((min) == 0 && (tag & 0xf0) == 0xd0);   \
        *out = (ctype)value;                                                                \
        return at;                                                                          \
    }
QUICK_SHORT(u8, uint8_t, 0, UINT8_MAX, true)
QUICK_SHORT(u16, uint16_t, 0, UINT16_MAX, true)
QUICK_SHORT(i16, int16_t, INT16_MIN, INT16_MAX, false)

static inline const uint8_t *quick_u64(const uint8_t *at, uint64_t *out, unsigned *bad)
{
    uint64_t raw;
    memcpy(&raw, at + 1, sizeof raw);
    *bad |= *at != 0xcf;
    *out = be64toh(raw);
    return at + IN_BYTES;
}

/* These types are in rare lists alone, which are read by the slow way, as are operations with a
 * longer head, or of another number of fields than is known here. */
#define HAS_SHORT_HEAD(list) ((int)FIELDS_OF_##list <= 15)
#define quick_u32(at, out, bad) (*(out) = 0, *(bad) = 1, (at))
#define quick_text(at, out, bad) (*(out) = (struct proto_text){0}, *(bad) = 1, (at))

#define F(type, name)                        \
    {                                        \
        PROTO_C_##type value;                \
        at = quick_##type(at, &value, &bad); \
        out->name = value;                   \
    }
#define OP(list, element, fields)                                                     \
    enum { ROOM_FOR_##list = 1 + IN_BYTES * FIELDS_OF_##list };                       \
    static inline const uint8_t *quick_one_of_##list(const uint8_t *at, element *out) \
    {                                                                                 \
        unsigned bad = *at++ != (0x90 | FIELDS_OF_##list);                            \
        fields;                                                                       \
        return bad || !HAS_SHORT_HEAD(list) ? NULL : at;                              \
    }
PROTO_OPS(OP)
#undef OP
#undef F

/* Where an operation is: in the message, or, of the last, in a copy with room behind it. */
static inline const uint8_t *padded(const struct reader *r, uint8_t *last, size_t room)
{
    const size_t left = (size_t)(r->end - r->at);
    if (__builtin_expect(left >= room, 1)) {
        return r->at;
    }
    memset(last, 0, room);
    memcpy(last, r->at, left);
    return last;
}

/* Fields that are missing stay zero. The verdict is an enum in memory and a small number on the
 * wire. */
#define F(type, name)                  \
    if (left > 0) {                    \
        PROTO_C_##type value;          \
        if (!read_##type(r, &value)) { \
            return false;              \
        }                              \
        out->name = value;             \
        left--;                        \
    }
#define OP(list, element, fields)                                        \
    static APART bool read_one_of_##list(struct reader *r, element *out) \
    {                                                                    \
        uint64_t left = 0;                                               \
        memset(out, 0, sizeof *out);                                     \
        if (!read_as(r, ARRAY, FIELDS_MAX, &left)) {                     \
            return false;                                                \
        }                                                                \
        fields return skip(r, left);                                     \
    }                                                                    \
    static bool read_##list(struct reader *r, struct proto_##list *out)  \
    {                                                                    \
        element *op = r->decoder->list;                                  \
        uint64_t count = 0;                                              \
        if (!read_count(r, &count)) {                                    \
            return false;                                                \
        }                                                                \
        *out = (struct proto_##list){(uint32_t)count, op};               \
        for (const element *end = op + count; op < end; op++) {          \
            uint8_t last[ROOM_FOR_##list];                               \
            const uint8_t *from = padded(r, last, sizeof last);          \
            const uint8_t *at = quick_one_of_##list(from, op);           \
            if (at != NULL && from != last) {                            \
                r->at = at;                                              \
            } else if (at != NULL && at - last <= r->end - r->at) {      \
                r->at += at - last;                                      \
            } else if (!read_one_of_##list(r, op)) {                     \
                return false;                                            \
            }                                                            \
        }                                                                \
        return true;                                                     \
    }
PROTO_OPS(OP)
#undef OP
#undef F

/* A result in SHARE; numbers begin with the low byte. */
struct packed_result {
    uint64_t key;
    uint16_t score, move;
    uint8_t depth_and_bound; /* the depth times four */
} __attribute__((packed));
_Static_assert(sizeof(struct packed_result) == PROTO_RESULT_BYTES,
               "as PROTOCOL.md section 2 has it");

static bool read_results(struct reader *r, struct proto_stores *out)
{
    uint64_t length;
    if (!read_as(r, BIN, PROTO_RESULT_BYTES * PROTO_BATCH_MAX, &length) ||
        length % PROTO_RESULT_BYTES != 0) {
        return false;
    }
    struct tt_store *at = r->decoder->stores;
    *out = (struct proto_stores){(uint32_t)length / PROTO_RESULT_BYTES, at};
    for (uint32_t i = 0; i < out->count; i++, r->at += PROTO_RESULT_BYTES) {
        struct packed_result in;
        memcpy(&in, r->at, sizeof in);
        at[i] = (struct tt_store){
            .key = le64toh(in.key),
            .score = (int16_t)le16toh(in.score),
            .move = le16toh(in.move),
            .depth = in.depth_and_bound >> 2,
            .bound = in.depth_and_bound & 3,
        };
    }
    return true;
}

/* A HELLO of a later version is read as far as it is known, so that both sides learn which versions
 * the other speaks; an ERROR of any, which may say that there is none in common. */
enum err proto_decode(struct proto_decoder *decoder, const uint8_t *bytes, size_t length,
                      struct proto_message *out)
{
    struct reader r = {bytes, bytes + length, decoder};
    uint64_t left = 0, version = 0, type = 0;

    if (length > PROTO_MESSAGE_MAX || !read_as(&r, ARRAY, FIELDS_MAX, &left) || left < 2 ||
        !read_as(&r, NUMBER, UINT32_MAX, &version)) {
        return ERR_PROTO;
    }
    bool is_ours = version == PROTO_VERSION, has_type = read_as(&r, NUMBER, UINT32_MAX, &type);
    if (!is_ours && type != PROTO_ERROR && (type != PROTO_HELLO || version < PROTO_VERSION)) {
        out->version = (uint32_t)version;
        return ERR_VERSION;
    }
    if (!has_type) {
        return ERR_PROTO;
    }
    left -= 2;
    switch (type) {
#define F(type, name) &&(left == 0 || (left--, read_##type(&r, &m.name)))
#define MSG(NAME, name, id, fields)                                              \
    case id: {                                                                   \
        struct proto_##name m = {0};                                             \
        if (!(true fields) || (is_ours && !(skip(&r, left) && r.at == r.end))) { \
            return ERR_PROTO;                                                    \
        }                                                                        \
        out->name = m;                                                           \
        break;                                                                   \
    }
        PROTO_MESSAGES(MSG)
#undef MSG
#undef F
    default:
        return ERR_TYPE;
    }
    out->type = (enum proto_type)type;
    out->version = (uint32_t)version;
    return ERR_OK;
}

/* ---- writing ---- */

struct writer {
    uint8_t *at, *end;
};

/* False: there is no room. */
static inline bool append(struct writer *w, const void *bytes, size_t length)
{
    bool fits = (size_t)(w->end - w->at) >= length;
    if (fits && length > 0) { /* an empty text may be nowhere */
        memcpy(w->at, bytes, length);
        w->at += length;
    }
    return fits;
}

/* msgpack-c's template makes its functions for this writer, as pack_uint8() and so on: with those
 * of a msgpack_packer each number would be appended by a call through a pointer. */
#define msgpack_pack_inline_func(name) static inline bool pack##name
#define msgpack_pack_user struct writer *
#define msgpack_pack_append_buffer(w, bytes, length) return append(w, bytes, length)
#define msgpack_pack_ext pack_ext
#include <msgpack/pack_template.h>

#define write_u8(w, value) pack_uint8(w, (uint8_t)(value))
#define write_u16 pack_uint16
#define write_u32 pack_uint32
#define write_u64 pack_uint64
#define write_i16 pack_int16

static bool write_text(struct writer *w, struct proto_text value)
{
    return value.length <= PROTO_TEXT_MAX && pack_str(w, value.length) &&
           append(w, value.at, value.length);
}

static bool write_bytes(struct writer *w, struct proto_bytes value)
{
    return value.length <= PROTO_BODY_MAX && pack_bin(w, value.length) &&
           append(w, value.at, value.length);
}

/* ---- writing, the usual case: as reading, where there is room for the longest ---- */

/* The shortest form of -32,768 to 65,535: tag, then up to two bytes. */
static inline uint8_t *put_short(uint8_t *at, int32_t value)
{
    uint32_t low = (uint32_t)value & 0xff, high = (uint32_t)value >> 8 & 0xff;
    uint32_t is_signed = (uint32_t)value >> 31;
    uint32_t is_two = (value > 0x7f) | (value < -32), is_three = (value > 0xff) | (value < -128);
    uint32_t two = (0xcc + 4 * is_signed) | low << 8;
    uint32_t three = (0xcd + 4 * is_signed) | high << 8 | low << 16;
    uint32_t form = low ^ ((low ^ two) & -is_two);
    form = htole32(form ^ ((form ^ three) & -is_three));
    memcpy(at, &form, sizeof form);
    return at + 1 + is_two + is_three;
}

/* NULL: not this way. */
static inline uint8_t *put_u64(uint8_t *at, uint64_t value)
{
    uint64_t raw = htobe64(value);
    if (value <= UINT32_MAX) {
        return NULL;
    }
    *at = 0xcf;
    memcpy(at + 1, &raw, sizeof raw);
    return at + IN_BYTES;
}

#define put_u8(at, value) put_short(at, (uint8_t)(value))
#define put_u16(at, value) put_short(at, value)
#define put_i16(at, value) put_short(at, value)
#define put_u32(at, value) ((void)(value), NULL)
#define put_text(at, value) ((void)(value), NULL)

#define F(type, name) at = at == NULL ? NULL : put_##type(at, op->name);
#define OP(list, element, fields)                                      \
    static inline uint8_t *put_one_of_##list(uint8_t *at, element one) \
    {                                                                  \
        const element *op = &one;                                      \
        *at++ = 0x90 | FIELDS_OF_##list;                               \
        fields return HAS_SHORT_HEAD(list) ? at : NULL;                \
    }
PROTO_OPS(OP)
#undef OP
#undef F

#define F(type, name) &&write_##type(w, op->name)
#define OP(name, element, fields)                                                               \
    static APART bool write_one_of_##name(struct writer *w, const element *op)                  \
    {                                                                                           \
        return pack_array(w, FIELDS_OF_##name) fields;                                          \
    }                                                                                           \
    static APART bool write_##name(struct writer *w, struct proto_##name list)                  \
    {                                                                                           \
        if (list.count > PROTO_BATCH_MAX || !pack_array(w, list.count)) {                       \
            return false;                                                                       \
        }                                                                                       \
        for (uint32_t i = 0; i < list.count; i++) {                                             \
            uint8_t *at =                                                                       \
                w->end - w->at < ROOM_FOR_##name ? NULL : put_one_of_##name(w->at, list.at[i]); \
            if (at != NULL) {                                                                   \
                w->at = at;                                                                     \
            } else if (!write_one_of_##name(w, &list.at[i])) {                                  \
                return false;                                                                   \
            }                                                                                   \
        }                                                                                       \
        return true;                                                                            \
    }
PROTO_OPS(OP)
#undef OP
#undef F

static bool write_results(struct writer *w, struct proto_stores list)
{
    bool ok = list.count <= PROTO_BATCH_MAX && pack_bin(w, (size_t)PROTO_RESULT_BYTES * list.count);
    for (uint32_t i = 0; ok && i < list.count; i++) {
        const struct tt_store *s = &list.at[i];
        const struct packed_result out = {htole64(s->key), htole16((uint16_t)s->score),
                                          htole16(s->move),
                                          (uint8_t)(s->depth << 2 | (s->bound & 3))};
        ok = s->depth <= PROTO_RESULT_DEPTH_MAX && append(w, &out, sizeof out);
    }
    return ok;
}

size_t proto_encode(const struct proto_message *message, uint8_t *bytes, size_t capacity)
{
    size_t room = capacity < PROTO_MESSAGE_MAX ? capacity : PROTO_MESSAGE_MAX;
    struct writer writer = {bytes, bytes + room}, *w = &writer;
    bool ok = false;

    switch (message->type) {
#define F(type, field) &&write_##type(w, m->field)
#define MSG(NAME, name, id, fields)                                               \
    case id: {                                                                    \
        const struct proto_##name *m = &message->name;                            \
        ok = pack_array(w, 2 + FIELDS_OF_##NAME) && write_u8(w, PROTO_VERSION) && \
             write_u8(w, id) fields;                                              \
        break;                                                                    \
    }
        PROTO_MESSAGES(MSG)
#undef MSG
#undef F
    }
    return ok ? (size_t)(writer.at - bytes) : 0;
}

bool proto_speaks_ours(const struct proto_message *hello)
{
    bool has_range = hello->hello.highest != 0;
    uint32_t lowest = has_range ? hello->hello.lowest : hello->version;
    uint32_t highest = has_range ? hello->hello.highest : hello->version;
    return lowest <= PROTO_VERSION && PROTO_VERSION <= highest;
}

/* ---- names and texts ---- */

struct proto_text proto_text_of(const char *string)
{
    return (struct proto_text){string, (uint32_t)strlen(string)};
}

bool proto_text_copy(struct proto_text text, char *out, size_t size)
{
    size_t n = text.length < size ? text.length : size - 1;
    if (n > 0) {
        memcpy(out, text.at, n);
    }
    out[n] = '\0';
    return strlen(out) == text.length;
}

void proto_text_printable(struct proto_text text, char *out, size_t size)
{
    size_t length = text.length < size - 1 ? text.length : size - 1;
    for (size_t i = 0; i < length; i++) {
        bool is_printable = text.at[i] >= ' ' && text.at[i] <= '~';
        out[i] = is_printable ? text.at[i] : '?';
    }
    out[length] = '\0';
}

bool proto_results_in_range(const struct proto_stores *list, bool may_be_claims)
{
    for (uint32_t i = 0; i < list->count; i++) {
        const struct tt_store *r = &list->at[i];
        bool is_claim = may_be_claims && r->bound == TT_CLAIM;
        bool is_bound = r->bound >= TT_LOWER && r->bound <= TT_EXACT && r->score >= TT_SCORE_MIN;
        bool says_which = r->score == TT_CLAIM_BEGINS || r->score == TT_CLAIM_ENDS;
        if (r->depth > TT_DEPTH_MAX || !(is_claim ? says_which : is_bound)) {
            return false;
        }
    }
    return true;
}

bool proto_entries_in_range(const struct proto_scanneds *list)
{
    for (uint32_t i = 0; i < list->count; i++) {
        const struct tt_scanned *e = &list->at[i];
        if (e->depth > TT_DEPTH_MAX || e->lower < TT_SCORE_MIN || e->upper < e->lower) {
            return false;
        }
    }
    return true;
}

const char *proto_report_fault(const struct proto_job_report *report)
{
    if (report->state > PROTO_JOB_REFUSED) {
        return "JOB_REPORT: unknown state";
    }
    if (report->score < TT_SCORE_MIN) {
        return "JOB_REPORT: score below -32767";
    }
    uint64_t all = 0;
#define X(name, ...) all |= report->name;
    COUNTERS_REPORTED(X)
    COUNTERS_OF_TALK(X)
#undef X
    if (all >> PROTO_COUNTER_BITS != 0) { /* senders stop before it, and sums must not overflow */
        return "JOB_REPORT: a number of 2^48 or more";
    }
    return report->depth > TT_DEPTH_MAX ? "JOB_REPORT: depth above 250" : NULL;
}
