/* codec: messages to bytes and back, generated from proto/messages.h.
 *
 * Threads: any, one decoder per thread. Memory: never allocates; a decoded message borrows its
 * texts from the bytes it was decoded from and its lists from the decoder: both must outlive it.
 * Errors: a malformed message is ERR_PROTO, ERR_VERSION or ERR_TYPE and says nothing more, except
 * the version of one that is ERR_VERSION.
 * Versions: a message is of PROTO_VERSION. Its reader takes the fields that it knows, passes over
 * those behind them, and takes zero for those that are missing, in operations of lists, too; so a
 * new field needs no new version. Besides, the HELLO of a later version is read, and an ERROR of
 * any.
 * Encoding goes through msgpack-c's template but for the numbers of lists, whose widths it would
 * tell apart by branches. Decoding is our own bounded reader: every count is checked
 * against the bytes that are left and the list's limit before anything is touched, where
 * msgpack_unpack() would reserve whatever a hostile header claims. */
#ifndef PROTO_CODEC_H
#define PROTO_CODEC_H

#include "common/err.h"
#include "common/tt/tt.h"
#include "proto/messages.h"

#include <stddef.h>
#include <stdint.h>

enum {
    PROTO_BATCH_MAX = 1024, /* operations in one message */
    PROTO_TEXT_MAX = 1024, /* bytes in one text */
    PROTO_BODY_MAX = 1024, /* bytes in one body (MAIL) */
    PROTO_RESULT_BYTES = 13, /* bytes of a result in SHARE */
    PROTO_RESULT_DEPTH_MAX = 63, /* most depth of a result in SHARE */
    PROTO_LOAD_BUSY = 50, /* load of a relay (SHARE) from which on less is to be sent */
    PROTO_COUNTER_BITS = 48, /* width of a counter in JOB_REPORT */
    PROTO_FRESH_SHIFT =
        32, /* bits below the half of a namespace that is a job's own (PROTOCOL.md section 8) */
    PROTO_MESSAGE_MAX = 65536, /* bytes in one message; larger ones are refused unread */
    /* bytes of a JOB or JOB_POST: three texts with their heads, eleven integers of nine bytes */
    PROTO_JOB_BYTES = 3 * (3 + PROTO_TEXT_MAX) + 11 * 9 + 8,
};

enum proto_role {
    PROTO_WORKER = 0, /* gets jobs */
    PROTO_FRONT = 1, /* posts jobs; they live as long as its session */
    PROTO_CLIENT = 2, /* the table alone */
    PROTO_MONITOR = 3, /* reads statistics, and nothing else */
};

enum proto_hello_flag {
    PROTO_WANTS_NODE_DONE = 1,
    PROTO_RELEASE_ALL = 2, /* its in-flight entries */
    PROTO_WANTS_RESULTS = 4, /* SHARE */
};

enum proto_job_flag {
    PROTO_JOB_STRICT = 1, /* a value depends on position and depth alone */
    PROTO_JOB_FULL = 2, /* forward pruning allowed (selection "full") */
    PROTO_JOB_WAITS = 4, /* wait for each answer instead of searching on meanwhile */
    PROTO_JOB_BAG = 16, /* many positions, which letters bring; the job's is the first of them */
    PROTO_JOB_KEEPS_ENDINGS = 32, /* results of small endings are wanted in the table */
};

enum proto_job_state {
    PROTO_JOB_SEARCHING = 0,
    PROTO_JOB_ENDED = 1,
    PROTO_JOB_REFUSED = 2, /* the worker cannot search it: it did nothing for it and never will */
};

enum proto_stop_reason {
    PROTO_STOP_OWNER = 0, /* its front-end said so */
    PROTO_STOP_EXPIRED = 1, /* its front-end's session on this shard is gone, or was never there */
};

/* Codes of ERROR: numbers of the wire, independent of enum err. */
enum proto_error_code {
    PROTO_ERR_MALFORMED = 1, /* not a message: truncated, oversized, wrong types or counts */
    PROTO_ERR_VERSION = 2, /* version not spoken here */
    PROTO_ERR_TYPE = 3, /* unknown type, or one that only shards send */
    PROTO_ERR_SESSION = 4, /* no session: say HELLO first */
    PROTO_ERR_RANGE = 5, /* well formed, but a value is outside its range */
    PROTO_ERR_LIMIT = 6, /* too many: sessions, jobs, operations in a batch */
    PROTO_ERR_ROLE = 7, /* not for this role */
};

enum {
    PROTO_REMOTE_DEPTH_AUTO = 255,
    PROTO_NO_LIMIT = 0,
    PROTO_ANY_EVALUATION = 0, /* each worker takes its own number */
};

/* Not terminated by a zero byte. */
struct proto_text {
    const char *at;
    uint32_t length;
};

struct proto_bytes {
    const uint8_t *at;
    uint32_t length;
};

#define PROTO_C_u8 uint8_t
#define PROTO_C_u16 uint16_t
#define PROTO_C_u32 uint32_t
#define PROTO_C_u64 uint64_t
#define PROTO_C_i16 int16_t
#define PROTO_C_text struct proto_text
#define PROTO_C_bytes struct proto_bytes
#define PROTO_C_results PROTO_C_stores /* slots are 0 */

#define F(type, name) PROTO_C_##type name;
#define OP(list, element, fields) element{fields};
PROTO_ROWS(OP)
#undef OP
#undef F

#define F(type, name)
#define OP(list, element, fields) \
    typedef struct proto_##list { \
        uint32_t count;           \
        element *at;              \
    } PROTO_C_##list; /* a type for the list's name in F, as the macros below are for others */
PROTO_OPS(OP)
#undef OP
#undef F

#define F(type, name) PROTO_C_##type name;
#define MSG(NAME, name, id, fields) \
    struct proto_##name {           \
        fields                      \
    };
PROTO_MESSAGES(MSG)
#undef MSG

enum proto_type {
#define MSG(NAME, name, id, fields) PROTO_##NAME = id,
    PROTO_MESSAGES(MSG)
#undef MSG
};

struct proto_message {
    enum proto_type type;
    uint32_t version; /* of a message that was read: another of a HELLO or ERROR alone */
    union {
#define MSG(NAME, name, id, fields) struct proto_##name name;
        PROTO_MESSAGES(MSG)
#undef MSG
    };
};
#undef F

/* A JOB_POST is read and written as a `job`: it has the same fields at the same places. */
#define F(type, name)                                                                         \
    _Static_assert(offsetof(struct proto_job_post, name) == offsetof(struct proto_job, name), \
                   "a JOB_POST has this field where a JOB has it");
PROTO_JOB_FIELDS
#undef F
_Static_assert(sizeof(struct proto_job_post) == sizeof(struct proto_job),
               "a JOB_POST has no more fields than a JOB");

/* Room for the one list a message may carry. */
struct proto_decoder {
    union {
#define F(type, name)
#define OP(list, element, fields) element list[PROTO_BATCH_MAX];
        PROTO_OPS(OP)
#undef OP
#undef F
    };
};

/* Reads exactly one message from `length` bytes. */
enum err proto_decode(struct proto_decoder *decoder, const uint8_t *bytes, size_t length,
                      struct proto_message *out);

/* Returns the message's length, or 0 when it does not fit into `capacity`. */
size_t proto_encode(const struct proto_message *message, uint8_t *bytes, size_t capacity);

/* Whether the sender of this HELLO speaks PROTO_VERSION. */
bool proto_speaks_ours(const struct proto_message *hello);

/* Borrows a terminated string. */
struct proto_text proto_text_of(const char *string);

/* Results as others may say them: what is outside must not reach a search. In a SHARE there
 * `may_be_claims` between them. */
bool proto_results_in_range(const struct proto_stores *list, bool may_be_claims);
bool proto_entries_in_range(const struct proto_scanneds *list);
/* NULL: it is; else what is not, for an ERROR. */
const char *proto_report_fault(const struct proto_job_report *report);
/* Whether `report` is the newer of two reports of a worker on one job. Every shard passes a report
 * on, and their paths differ in length: an older report that comes later is dropped. Counters only
 * grow, and a worker that refused a job does not search it later. */
static inline bool proto_report_is_newer(const struct proto_job_report *report,
                                         const struct proto_job_report *last)
{
    return report->nodes > last->nodes ||
           (report->nodes == last->nodes && last->state == PROTO_JOB_SEARCHING);
}
/* Copies into `out` (with a zero byte), cut to `size`; returns false when it was cut, or has a zero
 * byte of its own. */
bool proto_text_copy(struct proto_text text, char *out, size_t size);
/* What others wrote, for a person's screen: cut to fit, '?' for all but printable ASCII. */
void proto_text_printable(struct proto_text text, char *out, size_t size);

#endif
