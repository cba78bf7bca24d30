#include "proto/codec.h"

#include <endian.h>
#include <msgpack.h>
#include <string.h>

/* ---- reading ---- */

struct reader {
    const uint8_t *at, *end;
    struct proto_decoder *decoder; /* room for lists */
    uint32_t version; /* of the message */
};

static bool read_byte(struct reader *r, uint8_t *out)
{
    if (r->at >= r->end) {
        return false;
    }
    *out = *r->at++;
    return true;
}

static bool read_big_endian(struct reader *r, unsigned bytes, uint64_t *out)
{
    if ((size_t)(r->end - r->at) < bytes) {
        return false;
    }
    uint64_t value = 0;
    for (unsigned i = 0; i < bytes; i++) {
        value = value << 8 | r->at[i];
    }
    r->at += bytes;
    *out = value;
    return true;
}

static bool read_unsigned(struct reader *r, uint64_t max, uint64_t *out)
{
    uint8_t tag;
    if (!read_byte(r, &tag)) {
        return false;
    }
    if (tag <= 0x7f) {
        *out = tag;
    } else if (tag < 0xcc || tag > 0xcf || !read_big_endian(r, 1u << (tag - 0xcc), out)) {
        return false;
    }
    return *out <= max;
}

static bool read_i16(struct reader *r, int16_t *out)
{
    uint64_t raw;
    if (r->at >= r->end) {
        return false;
    }
    uint8_t tag = *r->at;
    if (tag <= 0x7f || (tag >= 0xcc && tag <= 0xcf)) {
        if (!read_unsigned(r, INT16_MAX, &raw)) {
            return false;
        }
        *out = (int16_t)raw;
        return true;
    }
    r->at++;
    if (tag >= 0xe0) {
        *out = (int8_t)tag;
        return true;
    }
    if (tag < 0xd0 || tag > 0xd3 || !read_big_endian(r, 1u << (tag - 0xd0), &raw)) {
        return false;
    }
    unsigned shift = 64 - (8u << (tag - 0xd0));
    int64_t value = (int64_t)(raw << shift) >> shift;
    if (value < INT16_MIN || value > INT16_MAX) {
        return false;
    }
    *out = (int16_t)value;
    return true;
}

#define READ_UNSIGNED(type, ctype, max)                   \
    static bool read_##type(struct reader *r, ctype *out) \
    {                                                     \
        uint64_t value = 0;                               \
        if (!read_unsigned(r, max, &value)) {             \
            return false;                                 \
        }                                                 \
        *out = (ctype)value;                              \
        return true;                                      \
    }
READ_UNSIGNED(u8, uint8_t, UINT8_MAX)
READ_UNSIGNED(u16, uint16_t, UINT16_MAX)
READ_UNSIGNED(u32, uint32_t, UINT32_MAX)
READ_UNSIGNED(u64, uint64_t, UINT64_MAX)

static bool read_text(struct reader *r, struct proto_text *out)
{
    uint8_t tag;
    uint64_t length;
    if (!read_byte(r, &tag)) {
        return false;
    }
    if ((tag & 0xe0) == 0xa0) {
        length = tag & 0x1f;
    } else if (tag < 0xd9 || tag > 0xdb || !read_big_endian(r, 1u << (tag - 0xd9), &length)) {
        return false;
    }
    if (length > PROTO_TEXT_MAX || length > (size_t)(r->end - r->at)) {
        return false;
    }
    out->at = (const char *)r->at;
    out->length = (uint32_t)length;
    r->at += length;
    return true;
}

static bool read_bin(struct reader *r, uint64_t max, uint64_t *length)
{
    uint8_t tag;
    return read_byte(r, &tag) && tag >= 0xc4 && tag <= 0xc6 &&
           read_big_endian(r, 1u << (tag - 0xc4), length) && *length <= max &&
           *length <= (size_t)(r->end - r->at);
}

static bool read_bytes(struct reader *r, struct proto_bytes *out)
{
    uint64_t length;
    if (!read_bin(r, PROTO_BODY_MAX, &length)) {
        return false;
    }
    *out = (struct proto_bytes){r->at, (uint32_t)length};
    r->at += length;
    return true;
}

static bool read_array(struct reader *r, uint64_t max, uint64_t *count)
{
    uint8_t tag;
    if (!read_byte(r, &tag)) {
        return false;
    }
    if ((tag & 0xf0) == 0x90) {
        *count = tag & 0x0f;
    } else if (tag < 0xdc || tag > 0xdd || !read_big_endian(r, 2u << (tag - 0xdc), count)) {
        return false;
    }
    /* Every element takes a byte at least: a count beyond the bytes left is a lie. */
    return *count <= max && *count <= (uint64_t)(r->end - r->at);
}

/* How many fields there are in the newest version, in all versions, and in one of them. */
#define F(type, name) +1
#define NEW_IN(first, fields) fields
#define OP(list, element, fields) enum { FIELDS_OF_##list = 0 fields };
#define MSG(NAME, name, id, fields) enum { FIELDS_OF_##NAME = 0 fields };
PROTO_OPS(OP)
PROTO_MESSAGES(MSG)
#undef NEW_IN
#undef OP
#undef MSG
#define NEW_IN(first, fields)
#define OP(list, element, fields) enum { FIXED_FIELDS_OF_##list = 0 fields };
PROTO_OPS(OP)
#undef NEW_IN
#undef OP
#define NEW_IN(first, fields) +(version < (first) ? 0 : 0 fields)
#define OP(list, element, fields)                            \
    static inline uint32_t count_of_##list(uint32_t version) \
    {                                                        \
        (void)version;                                       \
        return 0 fields;                                     \
    }
#define MSG(NAME, name, id, fields) OP(NAME, , fields)
PROTO_OPS(OP)
PROTO_MESSAGES(MSG)
#undef NEW_IN
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
 * longer head, or of fields that some versions have not. */
#define HAS_SHORT_HEAD(list) \
    ((int)FIELDS_OF_##list <= 15 && (int)FIELDS_OF_##list == (int)FIXED_FIELDS_OF_##list)
#define quick_u32(at, out, bad) (*(out) = 0, *(bad) = 1, (at))
#define quick_text(at, out, bad) (*(out) = (struct proto_text){0}, *(bad) = 1, (at))

#define NEW_IN(first, fields) fields
#define F(type, name)                        \
    {                                        \
        PROTO_C_##type value;                \
        at = quick_##type(at, &value, &bad); \
        out->name = value;                   \
    }
#define OP(list, element, fields)                                                     \
    static inline bool read_quickly_##list(struct reader *r, element *out)            \
    {                                                                                 \
        const uint8_t *at = r->at;                                                    \
        unsigned bad = 0;                                                             \
        if (!HAS_SHORT_HEAD(list) || r->end - at < 1 + IN_BYTES * FIELDS_OF_##list || \
            *at++ != (0x90 | FIELDS_OF_##list)) {                                     \
            return false;                                                             \
        }                                                                             \
        fields;                                                                       \
        r->at = bad ? r->at : at;                                                     \
        return !bad;                                                                  \
    }
PROTO_OPS(OP)
#undef OP
#undef F
#undef NEW_IN

/* The verdict is an enum in memory and a small number on the wire. */
#define NEW_IN(first, fields)    \
    if (r->version >= (first)) { \
        fields                   \
    }
#define F(type, name)                  \
    {                                  \
        PROTO_C_##type value;          \
        if (!read_##type(r, &value)) { \
            return false;              \
        }                              \
        out->name = value;             \
    }
#define OP(list, element, fields)                                                    \
    static bool read_one_of_##list(struct reader *r, element *out)                   \
    {                                                                                \
        uint64_t count = 0;                                                          \
        uint32_t wanted = count_of_##list(r->version);                               \
        if (!read_array(r, wanted, &count) || count != wanted) {                     \
            return false;                                                            \
        }                                                                            \
        if (wanted != FIELDS_OF_##list) {                                            \
            memset(out, 0, sizeof *out);                                             \
        }                                                                            \
        fields return true;                                                          \
    }                                                                                \
    static bool read_##list(struct reader *r, struct proto_##list *out)              \
    {                                                                                \
        element *at = r->decoder->list;                                              \
        uint64_t count = 0;                                                          \
        if (!read_array(r, PROTO_BATCH_MAX, &count)) {                               \
            return false;                                                            \
        }                                                                            \
        *out = (struct proto_##list){(uint32_t)count, at};                           \
        for (uint64_t i = 0; i < count; i++) {                                       \
            if (!read_quickly_##list(r, &at[i]) && !read_one_of_##list(r, &at[i])) { \
                return false;                                                        \
            }                                                                        \
        }                                                                            \
        return true;                                                                 \
    }
PROTO_OPS(OP)
#undef OP
#undef F
#undef NEW_IN

static bool read_results(struct reader *r, struct proto_stores *out)
{
    uint64_t length;
    if (!read_bin(r, PROTO_RESULT_BYTES * PROTO_BATCH_MAX, &length) ||
        length % PROTO_RESULT_BYTES != 0) {
        return false;
    }
    struct tt_store *at = r->decoder->stores;
    *out = (struct proto_stores){(uint32_t)(length / PROTO_RESULT_BYTES), at};
    for (uint32_t i = 0; i < out->count; i++, r->at += PROTO_RESULT_BYTES) {
        uint64_t key;
        uint16_t score, move;
        memcpy(&key, r->at, sizeof key);
        memcpy(&score, r->at + 8, sizeof score);
        memcpy(&move, r->at + 10, sizeof move);
        at[i] = (struct tt_store){
            .key = le64toh(key),
            .score = (int16_t)le16toh(score),
            .move = le16toh(move),
            .depth = r->at[12] >> 2,
            .bound = r->at[12] & 3,
        };
    }
    return true;
}

/* What may be read whatever its version: a HELLO, whose first fields stay what they are, so that
 * the other side learns which versions are spoken; an ERROR, which may say that there is none in
 * common.
 */
static bool is_read_of_any(uint32_t version, uint64_t type)
{
    return type == PROTO_ERROR || (type == PROTO_HELLO && version > PROTO_VERSION);
}

enum err proto_decode(struct proto_decoder *decoder, const uint8_t *bytes, size_t length,
                      struct proto_message *out)
{
    struct reader r = {bytes, bytes + length, decoder, PROTO_VERSION};
    struct proto_message message;
    uint64_t count = 0, version = 0, type = 0;
    bool ok = false;

    if (length > PROTO_MESSAGE_MAX || !read_array(&r, 64, &count) || count < 2 ||
        !read_unsigned(&r, UINT32_MAX, &version)) {
        return ERR_PROTO;
    }
    bool is_spoken = version >= PROTO_LOWEST && version <= PROTO_VERSION;
    bool has_type = read_unsigned(&r, UINT32_MAX, &type);
    if (!is_spoken && !(has_type && is_read_of_any((uint32_t)version, type))) {
        out->version = (uint32_t)version;
        return ERR_VERSION;
    }
    if (!has_type) {
        return ERR_PROTO;
    }
    r.version = is_spoken ? (uint32_t)version : PROTO_VERSION;
    switch (type) {
#define F(type, name) &&read_##type(&r, &m->name)
#define NEW_IN(first, fields) &&(r.version < (first) || (true fields))
#define MSG(NAME, name, id, fields)                                  \
    case id: {                                                       \
        struct proto_##name *m = &message.name;                      \
        uint32_t wanted = 2 + count_of_##NAME(r.version);            \
        if (wanted != 2 + FIELDS_OF_##NAME) {                        \
            memset(m, 0, sizeof *m);                                 \
        }                                                            \
        ok = (is_spoken ? count == wanted : count >= wanted) fields; \
        break;                                                       \
    }
        PROTO_MESSAGES(MSG)
#undef MSG
#undef NEW_IN
#undef F
    default:
        return ERR_TYPE;
    }
    if (!ok || (is_spoken && r.at != r.end)) {
        return ERR_PROTO;
    }
    message.type = (enum proto_type)type;
    message.version = (uint32_t)version;
    *out = message;
    return ERR_OK;
}

/* ---- writing ---- */

struct writer {
    uint8_t *at, *end;
    uint32_t version; /* of the message */
};

static int writer_append(void *context, const char *bytes, size_t length)
{
    struct writer *w = context;
    if ((size_t)(w->end - w->at) < length) {
        w->end = w->at; /* full: a shorter piece must not follow the one that is left out */
        return -1;
    }
    memcpy(w->at, bytes, length);
    w->at += length;
    return 0;
}

#define write_u8(p, value) (msgpack_pack_uint8(p, (uint8_t)(value)) == 0)
#define write_u16(p, value) (msgpack_pack_uint16(p, value) == 0)
#define write_u32(p, value) (msgpack_pack_uint32(p, value) == 0)
#define write_u64(p, value) (msgpack_pack_uint64(p, value) == 0)
#define write_i16(p, value) (msgpack_pack_int16(p, value) == 0)

static bool write_text(msgpack_packer *p, struct proto_text value)
{
    return value.length <= PROTO_TEXT_MAX && msgpack_pack_str(p, value.length) == 0 &&
           (value.length == 0 || msgpack_pack_str_body(p, value.at, value.length) == 0);
}

static bool write_bytes(msgpack_packer *p, struct proto_bytes value)
{
    return value.length <= PROTO_BODY_MAX && msgpack_pack_bin(p, value.length) == 0 &&
           (value.length == 0 || msgpack_pack_bin_body(p, value.at, value.length) == 0);
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

#define NEW_IN(first, fields) fields
#define F(type, name) at = at == NULL ? NULL : put_##type(at, op->name);
#define OP(list, element, fields)                                                     \
    static inline bool write_quickly_##list(struct writer *w, const element *op)      \
    {                                                                                 \
        uint8_t *at = w->at;                                                          \
        if (!HAS_SHORT_HEAD(list) || w->end - at < 1 + IN_BYTES * FIELDS_OF_##list) { \
            return false;                                                             \
        }                                                                             \
        *at++ = 0x90 | FIELDS_OF_##list;                                              \
        fields;                                                                       \
        w->at = at == NULL ? w->at : at;                                              \
        return at != NULL;                                                            \
    }
PROTO_OPS(OP)
#undef OP
#undef F
#undef NEW_IN

#define F(type, name) &&write_##type(p, list.at[i].name)
#define NEW_IN(first, fields) &&(version < (first) || (true fields))
#define OP(name, element, fields)                                                          \
    static bool write_##name(msgpack_packer *p, struct proto_##name list)                  \
    {                                                                                      \
        const uint32_t version = ((const struct writer *)p->data)->version;                \
        bool ok = list.count <= PROTO_BATCH_MAX && msgpack_pack_array(p, list.count) == 0; \
        for (uint32_t i = 0; ok && i < list.count; i++) {                                  \
            ok = write_quickly_##name(p->data, &list.at[i]) ||                             \
                 (msgpack_pack_array(p, count_of_##name(version)) == 0 fields);            \
        }                                                                                  \
        return ok;                                                                         \
    }
PROTO_OPS(OP)
#undef OP
#undef NEW_IN
#undef F

static bool write_results(msgpack_packer *p, struct proto_stores list)
{
    bool ok = list.count <= PROTO_BATCH_MAX &&
              msgpack_pack_bin(p, (size_t)PROTO_RESULT_BYTES * list.count) == 0;
    for (uint32_t i = 0; ok && i < list.count; i++) {
        const struct tt_store *s = &list.at[i];
        uint8_t bytes[PROTO_RESULT_BYTES];
        uint64_t key = htole64(s->key);
        uint16_t score = htole16((uint16_t)s->score), move = htole16(s->move);
        memcpy(bytes, &key, sizeof key);
        memcpy(bytes + 8, &score, sizeof score);
        memcpy(bytes + 10, &move, sizeof move);
        bytes[12] = (uint8_t)(s->depth << 2 | (s->bound & 3));
        ok = s->depth <= PROTO_RESULT_DEPTH_MAX &&
             writer_append(p->data, (const char *)bytes, sizeof bytes) == 0;
    }
    return ok;
}

size_t proto_encode_as(uint32_t version, const struct proto_message *message, uint8_t *bytes,
                       size_t capacity)
{
    size_t room = capacity < PROTO_MESSAGE_MAX ? capacity : PROTO_MESSAGE_MAX;
    struct writer w = {bytes, bytes + room, version};
    msgpack_packer packer, *p = &packer;
    bool ok = false;

    CHECK_THAT(version >= PROTO_LOWEST && version <= PROTO_VERSION, "codec: a version spoken here");
    msgpack_packer_init(p, &w, writer_append);
    switch (message->type) {
#define F(type, field) &&write_##type(p, m->field)
#define NEW_IN(first, fields) &&(version < (first) || (true fields))
#define MSG(NAME, name, id, fields)                                                              \
    case id: {                                                                                   \
        const struct proto_##name *m = &message->name;                                           \
        ok = msgpack_pack_array(p, 2 + count_of_##NAME(version)) == 0 && write_u8(p, version) && \
             write_u8(p, id) fields;                                                             \
        break;                                                                                   \
    }
        PROTO_MESSAGES(MSG)
#undef MSG
#undef NEW_IN
#undef F
    }
    return ok ? (size_t)(w.at - bytes) : 0;
}

size_t proto_encode(const struct proto_message *message, uint8_t *bytes, size_t capacity)
{
    return proto_encode_as(PROTO_VERSION, message, bytes, capacity);
}

/* ---- which version ---- */

uint32_t proto_common_version(const struct proto_message *hello, uint32_t lowest, uint32_t highest)
{
    bool has_range = hello->version >= PROTO_NEGOTIATES && hello->hello.highest != 0;
    uint32_t from = has_range ? hello->hello.lowest : hello->version;
    uint32_t to = has_range ? hello->hello.highest : hello->version;
    uint32_t common = to < highest ? to : highest;
    return from <= common && lowest <= common ? common : 0;
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
    return n == text.length;
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

static bool are_in_range(const struct proto_stores *list, bool may_be_claims)
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

bool proto_results_in_range(const struct proto_stores *list)
{
    return are_in_range(list, false);
}

bool proto_shared_in_range(const struct proto_stores *list)
{
    return are_in_range(list, true);
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
    if (all >> PROTO_COUNTER_BITS != 0) { /* no search counts so far, and sums must not overflow */
        return "JOB_REPORT: a number of 2^48 or more";
    }
    return report->depth > TT_DEPTH_MAX ? "JOB_REPORT: depth above 250" : NULL;
}

bool proto_weights_in_range(const struct proto_weights *list)
{
    for (uint32_t i = 0; i < list->count; i++) {
        if (list->at[i].index >= TT_WEIGHTS) {
            return false;
        }
    }
    return true;
}
