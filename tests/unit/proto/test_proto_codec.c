/* The codec: golden bytes, msgpack-c as an independent reader, round trips, hostile input. */
#include "proto/alias.h"
#include "tests/support/test_proto_fields.h"
#include "tests/support/test_proto_names.h"
#include "tests/support/test_proto_samples.h"
#include "tests/support/test_tt.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>
#include <msgpack.h>

static struct proto_decoder decoder;
static uint8_t bytes[PROTO_MESSAGE_MAX];
static uint64_t seed;

static size_t encode_sample(unsigned i)
{
    size_t length = proto_encode(&samples[i], bytes, sizeof bytes);
    assert_true(length > 0);
    return length;
}

/* Decodes from memory of exactly that length. */
static enum err decode_exact(const uint8_t *from, size_t length, struct proto_message *out)
{
    uint8_t *copy = exact_copy(from, length);
    enum err err = proto_decode(&decoder, copy, length, out);
    if (err == ERR_OK) {
        /* Reads every text while it is there, for the sanitizer. */
        static uint8_t again[PROTO_MESSAGE_MAX];
        (void)proto_encode(out, again, sizeof again);
    }
    free(copy);
    return err;
}

/* ---- golden bytes ---- */

static void line_of(unsigned i, char *line, size_t size)
{
    size_t length = encode_sample(i);
    int at = snprintf(line, size, "%s ", proto_type_name(samples[i].type));
    for (size_t b = 0; b < length; b++) {
        at += snprintf(line + at, size - (size_t)at, "%02x", bytes[b]);
    }
}

static char *read_file(const char *path)
{
    FILE *file = fopen(path, "r");
    char *text = calloc(1, 1 << 18);
    if (!file || !text) {
        fail_msg("%s: not readable; run from the top of the repository", path);
    }
    assert_true(fread(text, 1, (1 << 18) - 1, file) > 0);
    fclose(file);
    return text;
}

/* GOLDEN=write test_proto_codec: writes the file anew, while its version has not been released. */
static void golden_bytes_have_not_changed(void **state)
{
    char line[2048], path[64], expected[1 << 15] = "";
    (void)state;
    snprintf(path, sizeof path, "tests/data/golden/messages-%d.txt", PROTO_VERSION);
    for (unsigned i = 0; i < SAMPLES; i++) {
        line_of(i, line, sizeof line);
        strcat(expected, line);
        strcat(expected, "\n");
    }
    if (getenv("GOLDEN")) {
        FILE *file = fopen(path, "w");
        assert_non_null(file);
        fputs(expected, file);
        fclose(file);
    }
    char *golden = read_file(path);
    assert_string_equal(golden, expected);
    free(golden);
}

static void specification_shows_the_golden_bytes(void **state)
{
    char line[2048];
    char *text = read_file("proto/PROTOCOL.md");
    (void)state;
    for (unsigned i = 0; i < SAMPLES; i++) {
        line_of(i, line, sizeof line);
        if (!strstr(text, line)) {
            fail_msg("proto/PROTOCOL.md lacks this line:\n%s", line);
        }
    }
    free(text);
}

static void every_message_has_a_sample(void **state)
{
    uint64_t seen = 0, wanted = 0;
    (void)state;
#define MSG(NAME, name, id, fields) wanted |= UINT64_C(1) << id;
    PROTO_MESSAGES(MSG)
#undef MSG
    for (unsigned i = 0; i < SAMPLES; i++) {
        seen |= UINT64_C(1) << samples[i].type;
    }
    assert_true(seen == wanted);
}

/* ---- msgpack-c reads what we write ---- */

static void check_unsigned(const msgpack_object *o, uint64_t value)
{
    assert_int_equal(o->type, MSGPACK_OBJECT_POSITIVE_INTEGER);
    assert_true(o->via.u64 == value);
}

#define check_u8 check_unsigned
#define check_u16 check_unsigned
#define check_u32 check_unsigned
#define check_u64 check_unsigned

static void check_i16(const msgpack_object *o, int16_t value)
{
    if (value >= 0) {
        check_unsigned(o, (uint64_t)value);
    } else {
        assert_int_equal(o->type, MSGPACK_OBJECT_NEGATIVE_INTEGER);
        assert_true(o->via.i64 == value);
    }
}

static void check_text(const msgpack_object *o, struct proto_text value)
{
    assert_int_equal(o->type, MSGPACK_OBJECT_STR);
    assert_true(same_text((struct proto_text){o->via.str.ptr, o->via.str.size}, value));
}

static void check_bytes(const msgpack_object *o, struct proto_bytes value)
{
    assert_int_equal(o->type, MSGPACK_OBJECT_BIN);
    assert_int_equal(o->via.bin.size, value.length);
    assert_memory_equal(o->via.bin.ptr, value.at, value.length);
}

#define F(type, name) check_##type(at++, list.at[i].name);
#define OP(name, element, fields)                                                  \
    static void check_##name(const msgpack_object *o, struct proto_##name list)    \
    {                                                                              \
        assert_int_equal(o->type, MSGPACK_OBJECT_ARRAY);                           \
        assert_int_equal(o->via.array.size, list.count);                           \
        for (uint32_t i = 0; i < list.count; i++) {                                \
            const msgpack_object *one = &o->via.array.ptr[i];                      \
            assert_int_equal(one->type, MSGPACK_OBJECT_ARRAY);                     \
            const msgpack_object *at = one->via.array.ptr;                         \
            fields assert_ptr_equal(at, one->via.array.ptr + one->via.array.size); \
        }                                                                          \
    }
PROTO_OPS(OP)
#undef OP
#undef F

/* Byte by byte as PROTOCOL.md section 2 has it. */
static void check_results(const msgpack_object *o, struct proto_stores list)
{
    assert_int_equal(o->type, MSGPACK_OBJECT_BIN);
    assert_int_equal(o->via.bin.size, 13 * list.count);
    const uint8_t *at = (const uint8_t *)o->via.bin.ptr;
    for (uint32_t i = 0; i < list.count; i++, at += 13) {
        uint64_t key = 0;
        for (unsigned b = 8; b-- > 0;) {
            key = key << 8 | at[b];
        }
        assert_true(key == list.at[i].key);
        assert_int_equal((int16_t)(at[8] | at[9] << 8), list.at[i].score);
        assert_int_equal(at[10] | at[11] << 8, list.at[i].move);
        assert_int_equal(at[12] >> 2, list.at[i].depth);
        assert_int_equal(at[12] & 3, list.at[i].bound);
    }
}

static void check_message(const msgpack_object *o, const struct proto_message *m)
{
    assert_int_equal(o->type, MSGPACK_OBJECT_ARRAY);
    const msgpack_object *at = o->via.array.ptr;
    check_unsigned(at++, PROTO_VERSION);
    check_unsigned(at++, m->type);
    switch (m->type) {
#define MSG(NAME, name, id, fields)              \
    case id: {                                   \
        const struct proto_##name *x = &m->name; \
        fields break;                            \
    }
#define F(type, field) check_##type(at++, x->field);
        PROTO_MESSAGES(MSG)
#undef MSG
#undef F
    }
    assert_ptr_equal(at, o->via.array.ptr + o->via.array.size);
}

static void msgpack_reads_what_we_write(const struct proto_message *m)
{
    msgpack_unpacked unpacked;
    size_t offset = 0, length = proto_encode(m, bytes, sizeof bytes);
    assert_true(length > 0);
    msgpack_unpacked_init(&unpacked);
    assert_int_equal(msgpack_unpack_next(&unpacked, (char *)bytes, length, &offset),
                     MSGPACK_UNPACK_SUCCESS);
    assert_int_equal(offset, length);
    check_message(&unpacked.data, m);
    msgpack_unpacked_destroy(&unpacked);
}

static void msgpack_c_agrees_on_samples(void **state)
{
    (void)state;
    for (unsigned i = 0; i < SAMPLES; i++) {
        msgpack_reads_what_we_write(&samples[i]);
    }
}

/* ---- round trips ---- */

static void random_messages_come_back_as_sent(void **state)
{
    static struct filler f;
    struct proto_message m, back;
    (void)state;
    f.rng = seed;
    for (unsigned i = 0; i < PROTO_TEXT_MAX; i++) {
        f.text[i] = (char)rng_next(&f.rng);
    }
    for (unsigned round = 0; round < 3000; round++) {
        f.list_max = round % 50 == 0 ? PROTO_BATCH_MAX : 5;
        fill_message(&f, &m, samples[round % SAMPLES].type);
        size_t length = proto_encode(&m, bytes, sizeof bytes);
        if (length == 0) {
            assert_true(m.type == PROTO_STATS_ANSWER || m.type == PROTO_MEMBERS_ANSWER ||
                        m.type == PROTO_JOBS_ANSWER); /* long texts only may overflow */
            continue;
        }
        assert_int_equal(proto_decode(&decoder, bytes, length, &back), ERR_OK);
        assert_true(same_message(&m, &back));
        msgpack_reads_what_we_write(&m);
    }
}

/* ---- other programs, which know more fields or fewer ---- */

enum change { MORE, FEWER, ZEROED };

/* Of each type that occurs; the last is a list of two operations. */
static const struct {
    const char *bytes;
    size_t length;
} unknown[] = {
    {"\x07", 1},
    {"\xd2\xff\xfe\xee\x90", 5},
    {"\xcf\xff\xff\xff\xff\xff\xff\xff\xff", 9},
    {"\xa4more", 5},
    {"\xc4\x03\x01\x02\x03", 5},
    {"\x92\x91\xfd\x94\x07\xcd\x03\xe8\xa0\xc4\x00", 11},
};
enum { UNKNOWN = sizeof unknown / sizeof *unknown };

static void pack_zero(msgpack_packer *p, const msgpack_object *of)
{
    if (of->type == MSGPACK_OBJECT_STR) {
        msgpack_pack_str(p, 0);
    } else if (of->type == MSGPACK_OBJECT_BIN) {
        msgpack_pack_bin(p, 0);
    } else if (of->type == MSGPACK_OBJECT_ARRAY) {
        msgpack_pack_array(p, 0);
    } else {
        msgpack_pack_uint8(p, 0);
    }
}

/* A message or operation with a field more, or without its last field, or with a zero there; so are
 * the operations of its lists. */
static void pack_changed(msgpack_packer *p, const msgpack_object *whole, enum change change,
                         unsigned kind)
{
    const uint32_t count = whole->via.array.size;
    msgpack_pack_array(p, count + (change == MORE) - (change == FEWER));
    for (uint32_t i = 0; i < count; i++) {
        const msgpack_object *field = &whole->via.array.ptr[i];
        if (i + 1 == count && change == ZEROED) {
            pack_zero(p, field);
        } else if (i + 1 < count || change == MORE) {
            bool is_list = field->type == MSGPACK_OBJECT_ARRAY;
            if (is_list) {
                msgpack_pack_array(p, field->via.array.size);
            } else {
                msgpack_pack_object(p, *field);
            }
            for (uint32_t k = 0; is_list && k < field->via.array.size; k++) {
                pack_changed(p, &field->via.array.ptr[k], change, kind + k);
            }
        }
    }
    if (change == MORE) {
        msgpack_sbuffer_write(p->data, unknown[kind % UNKNOWN].bytes,
                              unknown[kind % UNKNOWN].length);
    }
}

static msgpack_sbuffer changed_sample(unsigned i, enum change change, unsigned kind)
{
    msgpack_unpacked unpacked;
    msgpack_sbuffer out;
    msgpack_packer packer;
    size_t offset = 0, length = encode_sample(i);
    msgpack_sbuffer_init(&out);
    msgpack_packer_init(&packer, &out, msgpack_sbuffer_write);
    msgpack_unpacked_init(&unpacked);
    assert_int_equal(msgpack_unpack_next(&unpacked, (char *)bytes, length, &offset),
                     MSGPACK_UNPACK_SUCCESS);
    pack_changed(&packer, &unpacked.data, change, kind);
    msgpack_unpacked_destroy(&unpacked);
    return out;
}

static void fields_that_are_not_known_are_passed_over(void **state)
{
    struct proto_message out;
    (void)state;
    for (unsigned i = 0; i < SAMPLES; i++) {
        for (unsigned kind = 0; kind < UNKNOWN; kind++) {
            msgpack_sbuffer more = changed_sample(i, MORE, kind);
            const uint8_t *at = (const uint8_t *)more.data;
            assert_int_equal(decode_exact(at, more.size, &out), ERR_OK);
            assert_int_equal(proto_decode(&decoder, at, more.size, &out), ERR_OK);
            assert_true(same_message(&out, &samples[i]));
            for (size_t cut = 0; cut < more.size; cut++) {
                assert_int_equal(decode_exact(at, cut, &out), ERR_PROTO);
            }
            msgpack_sbuffer_destroy(&more);
        }
    }
}

static void fields_that_are_missing_are_zero(void **state)
{
    static uint8_t again[PROTO_MESSAGE_MAX];
    struct proto_message out;
    (void)state;
    for (unsigned i = 0; i < SAMPLES; i++) {
        msgpack_sbuffer fewer = changed_sample(i, FEWER, 0), zeroed = changed_sample(i, ZEROED, 0);
        memset(&decoder, 0xff, sizeof decoder); /* what an earlier message has left there */
        const uint8_t *at = (const uint8_t *)fewer.data;
        assert_int_equal(proto_decode(&decoder, at, fewer.size, &out), ERR_OK);
        assert_int_equal(proto_encode(&out, again, sizeof again), zeroed.size);
        assert_memory_equal(again, zeroed.data, zeroed.size);
        msgpack_sbuffer_destroy(&fewer);
        msgpack_sbuffer_destroy(&zeroed);
    }
}

/* So that a shard of today learns from a client of tomorrow what both speak. */
static void of_a_hello_of_a_later_version_what_is_known_is_read(void **state)
{
    struct proto_message out;
    (void)state;
    size_t length = encode_sample(0);
    assert_int_equal(samples[0].type, PROTO_HELLO);
    assert_int_equal(bytes[0], 0x9c);
    bytes[1] = 77;
    bytes[0] = 0x9e; /* two fields more, of any types */
    memcpy(bytes + length, "\xc3\x93\x01\x02\x03", 5);
    assert_int_equal(decode_exact(bytes, length + 5, &out), ERR_OK);
    assert_int_equal(proto_decode(&decoder, bytes, length + 5, &out), ERR_OK); /* with its texts */
    assert_int_equal(out.version, 77);
    assert_true(same_message(&out, &samples[0]));
    bytes[0] = 0x9b; /* a field less */
    assert_int_equal(decode_exact(bytes, length + 5, &out), ERR_OK);
    assert_int_equal(out.hello.release.length, 0);
    for (unsigned i = 1; i < SAMPLES; i++) {
        length = encode_sample(i);
        bytes[bytes[0] == 0xdc ? 3 : 1] = 77;
        assert_int_equal(decode_exact(bytes, length, &out),
                         samples[i].type == PROTO_ERROR ? ERR_OK : ERR_VERSION);
        bytes[bytes[0] == 0xdc ? 3 : 1] = 7;
        assert_int_equal(decode_exact(bytes, length, &out),
                         samples[i].type == PROTO_ERROR ? ERR_OK : ERR_VERSION);
    }
}

static void a_hello_says_whether_ours_is_spoken(void **state)
{
    enum { OURS = PROTO_VERSION };
    static const struct {
        uint32_t version;
        uint8_t lowest, highest;
        bool is_ours;
    } cases[] = {
        {OURS, OURS, OURS, true},
        {OURS, 0, 0, true}, /* it names no range: it speaks the version of its HELLO */
        {OURS + 1, 0, 0, false},
        {OURS + 1, OURS, OURS + 1, true},
        {OURS + 2, OURS + 1, OURS + 2, false},
        {OURS, 0, 255, true},
        {OURS, OURS, OURS - 1, false},
        {OURS, OURS - 2, OURS - 1, false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct proto_message hello = {.type = PROTO_HELLO, .version = cases[i].version};
        hello.hello.lowest = cases[i].lowest;
        hello.hello.highest = cases[i].highest;
        assert_int_equal(proto_speaks_ours(&hello), cases[i].is_ours);
    }
}

static void a_message_fits_exactly_or_not_at_all(void **state)
{
    (void)state;
    for (unsigned i = 0; i < SAMPLES; i++) {
        size_t length = encode_sample(i);
        for (size_t room = 0; room < length; room++) {
            uint8_t *tight = exact_copy(bytes, room);
            assert_int_equal(proto_encode(&samples[i], tight, room), 0);
            free(tight);
        }
    }
}

/* ---- hostile input ---- */

static void every_truncation_is_an_error(void **state)
{
    struct proto_message out;
    (void)state;
    for (unsigned i = 0; i < SAMPLES; i++) {
        size_t length = encode_sample(i);
        for (size_t cut = 0; cut < length; cut++) {
            assert_int_equal(decode_exact(bytes, cut, &out), ERR_PROTO);
        }
        bytes[length] = 0;
        assert_int_equal(decode_exact(bytes, length + 1, &out), ERR_PROTO);
    }
}

static void every_flipped_bit_is_survived(void **state)
{
    struct proto_message out;
    (void)state;
    for (unsigned i = 0; i < SAMPLES; i++) {
        size_t length = encode_sample(i);
        for (size_t bit = 0; bit < 8 * length; bit++) {
            bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
            enum err err = decode_exact(bytes, length, &out);
            assert_true(err == ERR_OK || err == ERR_PROTO || err == ERR_VERSION || err == ERR_TYPE);
            bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
        }
    }
}

struct hostile {
    const char *what, *hex;
    enum err expected;
};

static const struct hostile hostiles[] = {
    {"nothing", "", ERR_PROTO},
    {"an empty array", "90", ERR_PROTO},
    {"a version alone", "9109", ERR_PROTO},
    {"nil", "c0", ERR_PROTO},
    {"a map", "820102", ERR_PROTO},
    {"another version", "93010900", ERR_VERSION},
    {"another version without a type", "9201c0", ERR_VERSION},
    {"a version without a type", "9209c0", ERR_PROTO},
    {"version 2^32", "93cf000000010000000009 01", ERR_PROTO},
    {"type 0", "930900 00", ERR_TYPE},
    {"type 99", "930963 00", ERR_TYPE},
    {"a field more", "9409090000", ERR_OK},
    {"a field more that is nil", "94090900c0", ERR_PROTO},
    {"a field more that is a map", "94090900820102", ERR_PROTO},
    {"a field more that is an extension", "94090900d40000", ERR_PROTO},
    {"a field more of 2^32-1 bytes", "94090900c6ffffffff00", ERR_PROTO},
    {"a field more of 2^32-1 elements", "94090900ddffffffff00", ERR_PROTO},
    {"a field more that is not there", "94090900", ERR_PROTO},
    {"65 fields",
     "dc0041 0909 00 00000000000000000000000000000000000000000000000000000000000000000000"
     "00000000000000000000000000000000000000000000000000000000",
     ERR_PROTO},
    {"a field less", "920909", ERR_OK},
    {"an array of 2^32-1", "ddffffffff0909", ERR_PROTO},
    {"asks: a count of 2^32-1", "94090302ddffffffff", ERR_PROTO},
    {"asks: a count of 65535", "94090302dcffff", ERR_PROTO},
    {"asks: one operation promised, none there", "9409030291", ERR_PROTO},
    {"asks: an operation that is no array", "940903029105", ERR_PROTO},
    {"asks: an operation with five fields", "94090302919501090000 00", ERR_OK},
    {"request as a negative number", "930909ff", ERR_PROTO},
    {"request as a text", "930909a131", ERR_PROTO},
    {"request as a float", "930909ca3f800000", ERR_PROTO},
    {"request as true", "930909c3", ERR_PROTO},
    {"request beyond 32 bits", "930909cf0000000100000000", ERR_PROTO},
    {"request in a wider form than needed", "930909cf0000000000000007", ERR_OK},
    {"header in a wider form than needed", "dd00000003090907", ERR_OK},
    {"reason beyond 8 bits", "930912cd0100", ERR_PROTO},
    {"alpha below -32768", "940903029196 01 09 d2ffff7fff 00 00 00", ERR_PROTO},
    {"alpha above 32767", "940903029196 01 09 cd8000 00 00 00", ERR_PROTO},
    {"alpha as a 64-bit negative", "940903029196 01 09 d3ffffffffffffff00 00 00 00", ERR_OK},
    {"a text longer than the message", "95091101 00 bf41", ERR_PROTO},
    {"a text of 2^32-1 bytes", "95091101 00 dbffffffff41", ERR_PROTO},
    {"a text as binary", "95091101 00 c40141", ERR_PROTO},
    {"the type never used", "9309 09 c1", ERR_PROTO},
    {"results: none", "95091a01 c400 00", ERR_OK},
    {"results: one", "95091a01 c40d 0100000000000000 0700 0000 0d 00", ERR_OK},
    {"results: one, length of 16 bits", "95091a01 c5000d 0100000000000000 0700 0000 0d 00", ERR_OK},
    {"results: one, length of 32 bits", "95091a01 c60000000d 0100000000000000 0700 0000 0d 00",
     ERR_OK},
    {"results: one byte less", "95091a01 c40c 0100000000000000 0700 0000 00", ERR_PROTO},
    {"results: one byte more", "95091a01 c40e 0100000000000000 0700 0000 0d 00 00", ERR_PROTO},
    {"results: more promised than there", "95091a01 c41a 0100000000000000 0700 0000 0d 00",
     ERR_PROTO},
    {"results: 2^32-1 bytes promised", "95091a01 c6ffffffff 00", ERR_PROTO},
    {"results: no length", "95091a01 c5", ERR_PROTO},
    {"results as a text", "95091a01 ad 0100000000000000 0700 0000 0d 00", ERR_PROTO},
    {"results as a list", "95091a01 91 96 01 03 07 01 00 00 00", ERR_PROTO},
    {"results as an extension", "95091a01 c70d00 0100000000000000 0700 0000 0d 00", ERR_PROTO},
    {"results without a load", "94091a01 c40d 0100000000000000 0700 0000 0d", ERR_OK},
    {"a load beyond 8 bits", "95091a01 c400 cd0100", ERR_PROTO},
};

static size_t from_hex(const char *hex, uint8_t *out)
{
    size_t n = 0;
    while (*hex) {
        unsigned value;
        if (*hex == ' ') {
            hex++;
            continue;
        }
        assert_int_equal(sscanf(hex, "%2x", &value), 1);
        out[n++] = (uint8_t)value;
        hex += 2;
    }
    return n;
}

/* Long lists are read by a quicker reader than what is near the end of a message: both must give
 * one verdict on whatever is there, and the same numbers. */
static size_t some_integer(uint64_t *random, bool quick_only, uint8_t *at)
{
    static const uint8_t tags[] = {0xcc, 0xcd, 0xce, 0xcf, 0xd0, 0xd1, 0xd2, 0xd3};
    uint64_t value = rng_next(random) >> rng_below(random, 64);
    unsigned kind = rng_below(random, 16);
    unsigned width = 1u << (kind & 3);
    if (quick_only) {
        at[0] = 0xcf;
        memset(at + 1, (int)value, 8);
        return 9;
    }
    if (kind >= 8) {
        at[0] = kind == 8 ? 0xc0 : kind == 9 ? 0xa1 : (uint8_t)(kind & 1 ? value : value & 0x7f);
        return 1;
    }
    at[0] = tags[kind];
    for (unsigned i = 0; i < width; i++) {
        at[1 + i] = (uint8_t)(value >> 8 * (width - 1 - i));
    }
    return 1 + width;
}

static void both_readers_of_a_list_agree(void **state)
{
    static const char valid[] = "96 cf0000000000000001 01 00 01 00 00";
    uint64_t random = tt_seed();
    unsigned accepted = 0;
    (void)state;
    for (unsigned round = 0; round < 200000; round++) {
        uint8_t alone[128], followed[512];
        struct proto_message one, many;
        size_t head = from_hex("9409030291", alone);
        size_t n = head;
        alone[n++] = 0x96;
        for (unsigned field = 0; field < 6; field++) {
            bool is_key = field == 0 && rng_below(&random, 4) != 0;
            n += some_integer(&random, is_key, alone + n);
        }
        memcpy(followed, alone, n);
        followed[head - 1] = 0x99;
        size_t length = n;
        for (unsigned i = 0; i < 8; i++) {
            length += from_hex(valid, followed + length);
        }
        enum err slow = decode_exact(alone, n, &one);
        struct tt_ask read = slow == ERR_OK ? one.retrieve_ask.list.at[0] : (struct tt_ask){0};
        enum err quick = decode_exact(followed, length, &many);
        assert_int_equal(slow, quick);
        if (slow == ERR_OK) {
            const struct tt_ask *other = &many.retrieve_ask.list.at[0];
            accepted++;
            assert_true(read.key == other->key && read.depth == other->depth &&
                        read.alpha == other->alpha && read.beta == other->beta &&
                        read.flags == other->flags && read.slot == other->slot);
        }
    }
    assert_true(accepted > 1000);
}

static void hostile_messages_are_refused(void **state)
{
    struct proto_message out;
    (void)state;
    for (unsigned i = 0; i < sizeof hostiles / sizeof *hostiles; i++) {
        size_t length = from_hex(hostiles[i].hex, bytes);
        enum err err = decode_exact(bytes, length, &out);
        if (err != hostiles[i].expected) {
            fail_msg("%s: %s", hostiles[i].what, err_text(err));
        }
    }
}

static void nesting_and_size_are_bounded(void **state)
{
    struct proto_message out;
    static uint8_t large[PROTO_MESSAGE_MAX + 1];
    (void)state;
    memset(large, 0x91, sizeof large); /* arrays in arrays in arrays */
    assert_int_equal(decode_exact(large, PROTO_MESSAGE_MAX, &out), ERR_PROTO);
    assert_int_equal(decode_exact(large, sizeof large, &out), ERR_PROTO);
    memcpy(large, "\x94\x09\x09\x00", 4); /* the same as a field more */
    assert_int_equal(decode_exact(large, PROTO_MESSAGE_MAX, &out), ERR_PROTO);
    large[PROTO_MESSAGE_MAX - 1] = 0;
    assert_int_equal(decode_exact(large, PROTO_MESSAGE_MAX, &out), ERR_OK);
    large[0] = 0x94, large[1] = PROTO_VERSION, large[2] = PROTO_PEEK, large[3] = 0, large[4] = 0xdc;
    large[5] = (PROTO_BATCH_MAX + 1) >> 8, large[6] = (PROTO_BATCH_MAX + 1) & 0xff;
    for (unsigned i = 0; i <= PROTO_BATCH_MAX; i++) {
        memcpy(large + 7 + 3 * i, "\x92\x01\x01", 3);
    }
    size_t length = 7 + 3 * (PROTO_BATCH_MAX + 1);
    assert_int_equal(decode_exact(large, length, &out), ERR_PROTO);
    large[5] = PROTO_BATCH_MAX >> 8, large[6] = PROTO_BATCH_MAX & 0xff;
    assert_int_equal(decode_exact(large, length - 3, &out), ERR_OK);
    assert_int_equal(out.peek.list.count, PROTO_BATCH_MAX);
}

/* ---- packed results (SHARE) ---- */

static size_t share_of(uint32_t packed_bytes, uint8_t *out)
{
    static const uint8_t head[] = {0x95, PROTO_VERSION, PROTO_SHARE, 1, 0xc5};
    memcpy(out, head, sizeof head);
    out[5] = (uint8_t)(packed_bytes >> 8), out[6] = (uint8_t)packed_bytes;
    memset(out + 7, 0x55, packed_bytes);
    out[7 + packed_bytes] = 20;
    return 8 + packed_bytes;
}

static void packed_results_are_whole_and_bounded(void **state)
{
    static uint8_t large[PROTO_MESSAGE_MAX];
    struct proto_message out;
    (void)state;
    for (uint32_t n = 0; n < 8 * PROTO_RESULT_BYTES; n++) {
        enum err expected = n % PROTO_RESULT_BYTES == 0 ? ERR_OK : ERR_PROTO;
        assert_int_equal(decode_exact(large, share_of(n, large), &out), expected);
    }
    uint32_t most = PROTO_RESULT_BYTES * PROTO_BATCH_MAX;
    assert_int_equal(decode_exact(large, share_of(most, large), &out), ERR_OK);
    assert_int_equal(out.share.list.count, PROTO_BATCH_MAX);
    assert_int_equal(out.share.list.at[PROTO_BATCH_MAX - 1].score, 0x5555);
    assert_int_equal(out.share.load, 20);
    most += PROTO_RESULT_BYTES;
    assert_int_equal(decode_exact(large, share_of(most, large), &out), ERR_PROTO);
}

/* Every value of the byte decodes; what is a bound is the reader's to judge. */
static void depth_and_bound_are_one_byte(void **state)
{
    struct proto_message out;
    (void)state;
    for (unsigned byte = 0; byte < 256; byte++) {
        size_t length = share_of(PROTO_RESULT_BYTES, bytes);
        bytes[7 + 12] = (uint8_t)byte;
        assert_int_equal(decode_exact(bytes, length, &out), ERR_OK);
        assert_int_equal(out.share.list.at[0].depth, byte / 4);
        assert_int_equal(out.share.list.at[0].bound, byte % 4);
        assert_int_equal(out.share.list.at[0].slot, 0);
        assert_int_equal(proto_results_in_range(&out.share.list, false), byte % 4 != 0);
    }
}

/* In a SHARE the bound may be none: then the score is that of a foreign claim. */
static void a_shared_result_or_claim_is_in_its_range(void **state)
{
    (void)state;
    for (int score = -3; score <= 3; score++) {
        for (unsigned bound = 0; bound <= 4; bound++) {
            struct tt_store one = {.score = (int16_t)score, .depth = 4, .bound = (uint8_t)bound};
            const struct proto_stores list = {1, &one};
            bool is_result = bound >= TT_LOWER && bound <= TT_EXACT;
            bool is_claim = bound == TT_CLAIM && (score == 0 || score == 1);
            assert_int_equal(proto_results_in_range(&list, false), is_result);
            assert_int_equal(proto_results_in_range(&list, true), is_result || is_claim);
            one.depth = TT_DEPTH_MAX + 1;
            assert_false(proto_results_in_range(&list, true));
        }
    }
}

static void results_of_greater_depths_are_not_packed(void **state)
{
    static struct tt_store list[PROTO_BATCH_MAX + 1];
    struct proto_message m = {.type = PROTO_SHARE, .share = {.list = {3, list}}};
    (void)state;
    for (unsigned i = 0; i < PROTO_BATCH_MAX + 1; i++) {
        list[i] = (struct tt_store){.key = i, .depth = PROTO_RESULT_DEPTH_MAX, .bound = TT_EXACT};
    }
    assert_true(proto_encode(&m, bytes, sizeof bytes) > 0);
    list[2].depth = PROTO_RESULT_DEPTH_MAX + 1;
    assert_int_equal(proto_encode(&m, bytes, sizeof bytes), 0);
    list[2].depth = 250;
    assert_int_equal(proto_encode(&m, bytes, sizeof bytes), 0);
    list[2].depth = PROTO_RESULT_DEPTH_MAX;
    m.share.list.count = PROTO_BATCH_MAX;
    assert_true(proto_encode(&m, bytes, sizeof bytes) > 0);
    m.share.list.count = PROTO_BATCH_MAX + 1;
    assert_int_equal(proto_encode(&m, bytes, sizeof bytes), 0);
}

static void failure_leaves_the_output_alone(void **state)
{
    struct proto_message out = {.type = PROTO_BYE}, before = out;
    (void)state;
    size_t length = encode_sample(0);
    assert_int_equal(decode_exact(bytes, length - 1, &out), ERR_PROTO);
    length = encode_sample(1);
    assert_int_equal(decode_exact(bytes, length - 1, &out), ERR_PROTO);
    assert_memory_equal(&out, &before, sizeof out);
}

/* The 9th of the vectors that the authors of SipHash give, and numbers for PROTOCOL.md. */
static void an_alias_is_the_siphash_of_an_instance(void **state)
{
    (void)state;
    assert_true(proto_siphash(UINT64_C(0x0706050403020100), UINT64_C(0x0f0e0d0c0b0a0908),
                              UINT64_C(0x0706050403020100)) == UINT64_C(0x93f5f5799a932462));
    assert_true(proto_alias(1) == UINT64_C(0xfb59658d69635a1f));
    assert_true(proto_alias(SAMPLE_KEY) == UINT64_C(0xbc71d93e3c7978f1));
}

static void texts_are_cut_with_a_zero_byte(void **state)
{
    char room[4];
    (void)state;
    assert_true(proto_text_copy(proto_text_of("abc"), room, sizeof room));
    assert_string_equal(room, "abc");
    assert_false(proto_text_copy(proto_text_of("abcd"), room, sizeof room));
    assert_string_equal(room, "abc");
    assert_false(proto_text_copy((struct proto_text){"a\0b", 3}, room, sizeof room));
    assert_string_equal(room, "a");
    assert_true(proto_text_copy((struct proto_text){NULL, 0}, room, sizeof room));
    assert_string_equal(room, "");
}

int main(void)
{
    const char *given = getenv("TEST_SEED");
    seed = given ? strtoull(given, NULL, 0) : 20260101;
    printf("TEST_SEED=%llu\n", (unsigned long long)seed);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_message_has_a_sample),
        cmocka_unit_test(golden_bytes_have_not_changed),
        cmocka_unit_test(specification_shows_the_golden_bytes),
        cmocka_unit_test(msgpack_c_agrees_on_samples),
        cmocka_unit_test(random_messages_come_back_as_sent),
        cmocka_unit_test(fields_that_are_not_known_are_passed_over),
        cmocka_unit_test(fields_that_are_missing_are_zero),
        cmocka_unit_test(of_a_hello_of_a_later_version_what_is_known_is_read),
        cmocka_unit_test(a_hello_says_whether_ours_is_spoken),
        cmocka_unit_test(a_message_fits_exactly_or_not_at_all),
        cmocka_unit_test(every_truncation_is_an_error),
        cmocka_unit_test(every_flipped_bit_is_survived),
        cmocka_unit_test(both_readers_of_a_list_agree),
        cmocka_unit_test(hostile_messages_are_refused),
        cmocka_unit_test(nesting_and_size_are_bounded),
        cmocka_unit_test(packed_results_are_whole_and_bounded),
        cmocka_unit_test(depth_and_bound_are_one_byte),
        cmocka_unit_test(a_shared_result_or_claim_is_in_its_range),
        cmocka_unit_test(results_of_greater_depths_are_not_packed),
        cmocka_unit_test(failure_leaves_the_output_alone),
        cmocka_unit_test(an_alias_is_the_siphash_of_an_instance),
        cmocka_unit_test(texts_are_cut_with_a_zero_byte),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
