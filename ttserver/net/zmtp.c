#include "ttserver/net/zmtp.h"

#include "common/err.h"

#include <string.h>
#include <strings.h>

enum {
    SIGNATURE = 10, /* bytes; a greeting follows */
    MECHANISM_AT = 12,
    MECHANISM = 20,
    AS_SERVER_AT = 32,
    FLAG_MORE = 1,
    FLAG_LONG = 2,
    FLAG_COMMAND = 4,
    FLAGS = 7, /* all that there are */
    SHORT_HEADER = 2,
    LONG_HEADER = 9,
    PING_HEADER = 7, /* name and time to live */
    PONG_HEADER = 5,
    PING_CONTEXT_MAX = 16,
};

/* Metadata of ours: name-length name, value-length (4 bytes) value. */
static const uint8_t metadata[] = "\13Socket-Type\0\0\0\6ROUTER\10Identity\0\0\0";

/* ERROR: its reason is the status by which libzmq knows a refusal from a broken handshake. */
static const char refused_key[] = "\5ERROR\003400";

_Static_assert(SHORT_HEADER + CURVE_WELCOME_BYTES <= ZMTP_REPLY_MAX &&
                   SHORT_HEADER + CURVE_READY_OVERHEAD + sizeof metadata <= ZMTP_REPLY_MAX &&
                   ZMTP_GREETING_BYTES + SHORT_HEADER + 6 + sizeof metadata <= ZMTP_REPLY_MAX,
               "room for what is answered at once");
_Static_assert(SHORT_HEADER + sizeof refused_key <= ZMTP_REPLY_MAX &&
                   ZMTP_OVERHEAD + PONG_HEADER + PING_CONTEXT_MAX <= ZMTP_REPLY_MAX,
               "room for ERROR and PONG");
_Static_assert(LONG_HEADER + CURVE_MESSAGE_OVERHEAD <= ZMTP_OVERHEAD, "room for a frame");

struct frame {
    uint8_t flags;
    uint8_t *body;
    size_t length;
};

static const char *mechanism(const struct zmtp *z)
{
    return z->server->needs_curve ? "CURVE" : "NULL";
}

void zmtp_init(struct zmtp *z, const struct zmtp_server *server)
{
    *z = (struct zmtp){.server = server, .state = ZMTP_AT_START};
}

void zmtp_close(struct zmtp *z)
{
    curve_close(&z->curve);
    z->state = ZMTP_AT_END;
}

static enum zmtp_result end(struct zmtp *z, struct zmtp_taken *taken, const char *why)
{
    zmtp_close(z);
    taken->why = why;
    return ZMTP_ENDED;
}

static enum zmtp_result wait_for(struct zmtp_taken *taken, size_t need)
{
    taken->need = need;
    return ZMTP_WAIT;
}

static size_t put_header(uint8_t *out, uint8_t flags, size_t length)
{
    if (length < 256) {
        out[0] = flags;
        out[1] = (uint8_t)length;
        return SHORT_HEADER;
    }
    out[0] = flags | FLAG_LONG;
    for (unsigned i = 8; i > 0; i--) {
        out[i] = (uint8_t)length;
        length >>= 8;
    }
    return LONG_HEADER;
}

/* As the mechanism wants it; libzmq sends no COMMAND flag outside a MESSAGE and trips over one. */
size_t zmtp_put(struct zmtp *z, bool is_command, const uint8_t *body, size_t length, uint8_t *out)
{
    CHECK(z->state == ZMTP_AT_TRAFFIC);
    if (z->server->needs_curve) {
        size_t header = put_header(out, 0, length + CURVE_MESSAGE_OVERHEAD);
        curve_put_message(&z->curve, is_command ? CURVE_COMMAND : 0, body, length, out + header);
        return header + length + CURVE_MESSAGE_OVERHEAD;
    }
    size_t header = put_header(out, is_command ? FLAG_COMMAND : 0, length);
    if (length > 0) {
        memcpy(out + header, body, length);
    }
    return header + length;
}

/* What is wrong with the peer's metadata, or NULL. */
static const char *judge_metadata(const uint8_t *at, size_t left)
{
    bool is_dealer = false;
    while (left > 0) {
        size_t name = at[0], value;
        if (name == 0 || left < 1 + name + 4) {
            return "metadata is cut short";
        }
        const uint8_t *length = at + 1 + name;
        value =
            (size_t)length[0] << 24 | (size_t)length[1] << 16 | (size_t)length[2] << 8 | length[3];
        if (value > left - 1 - name - 4) {
            return "metadata is cut short";
        }
        if (name == 11 && strncasecmp((const char *)at + 1, "Socket-Type", 11) == 0) {
            if (value != 6 || memcmp(length + 4, "DEALER", 6) != 0) {
                return "the peer's socket is no DEALER";
            }
            is_dealer = true;
        }
        at += 1 + name + 4 + value;
        left -= 1 + name + 4 + value;
    }
    return is_dealer ? NULL : "the peer does not say what socket it is";
}

/* Ours goes out whole at the first bytes that look right: libzmq reads it as it comes. */
static enum zmtp_result on_signature(struct zmtp *z, const uint8_t *in, size_t length,
                                     struct zmtp_taken *taken)
{
    uint8_t *out = taken->reply;
    if (length >= 1 && in[0] != 0xff) {
        return end(z, taken, "no greeting of ZMTP");
    }
    if (length < SIGNATURE) {
        return wait_for(taken, SIGNATURE);
    }
    if (in[9] != 0x7f) {
        return end(z, taken, "no greeting of ZMTP 2 or later");
    }
    memset(out, 0, ZMTP_GREETING_BYTES);
    out[0] = 0xff;
    out[9] = 0x7f;
    out[10] = 3;
    out[11] = 1;
    memcpy(out + MECHANISM_AT, mechanism(z), strlen(mechanism(z)));
    out[AS_SERVER_AT] = z->server->needs_curve;
    taken->reply_length = ZMTP_GREETING_BYTES;
    taken->used = SIGNATURE;
    z->state = ZMTP_AT_GREETING;
    return ZMTP_GOING_ON;
}

static enum zmtp_result on_greeting(struct zmtp *z, const uint8_t *in, size_t length,
                                    struct zmtp_taken *taken)
{
    uint8_t wanted[MECHANISM] = {0};
    if (length >= 1 && in[0] < 3) {
        return end(z, taken, "the peer speaks ZMTP 2 or older");
    }
    if (length < ZMTP_GREETING_BYTES - SIGNATURE) {
        return wait_for(taken, ZMTP_GREETING_BYTES - SIGNATURE);
    }
    memcpy(wanted, mechanism(z), strlen(mechanism(z)));
    if (memcmp(in + MECHANISM_AT - SIGNATURE, wanted, MECHANISM) != 0) {
        return end(z, taken,
                   z->server->needs_curve ? "the peer does not come with CURVE"
                                          : "the peer comes with a mechanism, here is none");
    }
    if (in[AS_SERVER_AT - SIGNATURE] != 0) {
        return end(z, taken, "the peer wants to be the server");
    }
    taken->used = ZMTP_GREETING_BYTES - SIGNATURE;
    if (z->server->needs_curve) {
        z->state = ZMTP_AT_CURVE_HELLO;
        return ZMTP_GOING_ON;
    }
    size_t n = put_header(taken->reply, FLAG_COMMAND, 6 + sizeof metadata);
    memcpy(taken->reply + n, "\5READY", 6);
    memcpy(taken->reply + n + 6, metadata, sizeof metadata);
    taken->reply_length = n + 6 + sizeof metadata;
    z->state = ZMTP_AT_NULL_READY;
    return ZMTP_GOING_ON;
}

/* ZMTP_GOING_ON when a whole frame is there; its length is judged before its body is waited for. */
static enum zmtp_result read_frame(struct zmtp *z, uint8_t *in, size_t length,
                                   struct zmtp_taken *taken, struct frame *f)
{
    bool is_traffic = z->state == ZMTP_AT_TRAFFIC;
    size_t header = length > 0 && in[0] & FLAG_LONG ? LONG_HEADER : SHORT_HEADER;
    size_t max = is_traffic ? z->server->message_max : ZMTP_COMMAND_MAX;
    uint64_t size = 0;
    if (length > 0) {
        f->flags = in[0];
        if (f->flags & ~FLAGS || (f->flags & FLAG_COMMAND && f->flags & FLAG_MORE)) {
            return end(z, taken, "a frame has flags that there are not");
        }
        if (!is_traffic && !(f->flags & FLAG_COMMAND)) {
            return end(z, taken, "a message before the handshake's end");
        }
    }
    if (length < header) {
        return wait_for(taken, header);
    }
    for (size_t i = 1; i < header; i++) {
        size = size << 8 | in[i];
    }
    if (is_traffic && z->server->needs_curve) {
        max += CURVE_MESSAGE_OVERHEAD;
    } else if (f->flags & FLAG_COMMAND) {
        max = ZMTP_COMMAND_MAX;
    }
    if (size > max) {
        return end(z, taken, "a frame is too long");
    }
    if (length - header < size) {
        return wait_for(taken, header + (size_t)size);
    }
    f->body = in + header;
    f->length = (size_t)size;
    taken->used = header + f->length;
    return ZMTP_GOING_ON;
}

static bool is_named(const struct frame *f, const char *name, size_t length)
{
    return f->length > length && f->body[0] == length && memcmp(f->body + 1, name, length) == 0;
}

static enum zmtp_result on_null_ready(struct zmtp *z, const struct frame *f,
                                      struct zmtp_taken *taken)
{
    if (!is_named(f, "READY", 5)) {
        return end(z, taken,
                   is_named(f, "ERROR", 5) ? "the peer does not want to" : "NULL: no READY");
    }
    const char *why = judge_metadata(f->body + 6, f->length - 6);
    if (why) {
        return end(z, taken, why);
    }
    z->state = ZMTP_AT_TRAFFIC;
    return ZMTP_READY;
}

static enum zmtp_result on_hello(struct zmtp *z, const struct frame *f, struct zmtp_taken *taken)
{
    size_t n = put_header(taken->reply, FLAG_COMMAND, CURVE_WELCOME_BYTES);
    const char *why =
        curve_take_hello(&z->curve, z->server->secret_key, f->body, f->length, taken->reply + n);
    if (why) {
        return end(z, taken, why);
    }
    taken->reply_length = n + CURVE_WELCOME_BYTES;
    z->state = ZMTP_AT_CURVE_INITIATE;
    return ZMTP_GOING_ON;
}

static enum zmtp_result on_initiate(struct zmtp *z, const struct frame *f, struct zmtp_taken *taken)
{
    struct curve_initiate initiate;
    const char *why =
        curve_take_initiate(&z->curve, z->server->public_key, f->body, f->length, &initiate);
    why = why ? why : judge_metadata(initiate.metadata, initiate.metadata_length);
    if (why) {
        return end(z, taken, why);
    }
    const void *user = z->server->user_of(z->server->self, initiate.client_key);
    if (!user) {
        taken->reply_length = put_header(taken->reply, FLAG_COMMAND, sizeof refused_key - 1);
        memcpy(taken->reply + taken->reply_length, refused_key, sizeof refused_key - 1);
        taken->reply_length += sizeof refused_key - 1;
        return end(z, taken, "CURVE: the client's key is not allowed");
    }
    size_t n = put_header(taken->reply, FLAG_COMMAND, CURVE_READY_OVERHEAD + sizeof metadata);
    n += curve_put_ready(&z->curve, metadata, sizeof metadata, taken->reply + n);
    taken->reply_length = n;
    taken->user = user;
    z->state = ZMTP_AT_TRAFFIC;
    return ZMTP_READY;
}

static enum zmtp_result on_command(struct zmtp *z, const struct frame *f, struct zmtp_taken *taken)
{
    if (f->length == 0 || f->body[0] == 0 || f->length <= f->body[0]) {
        return end(z, taken, "a command is cut short");
    }
    if (is_named(f, "ERROR", 5)) {
        return end(z, taken, "the peer does not want to go on");
    }
    if (is_named(f, "PING", 4)) {
        uint8_t pong[PONG_HEADER + PING_CONTEXT_MAX];
        if (f->length < PING_HEADER || f->length > PING_HEADER + PING_CONTEXT_MAX) {
            return end(z, taken, "a PING is too short or too long");
        }
        size_t context = f->length - PING_HEADER;
        memcpy(pong, "\4PONG", PONG_HEADER);
        memcpy(pong + PONG_HEADER, f->body + PING_HEADER, context);
        taken->reply_length = zmtp_put(z, true, pong, PONG_HEADER + context, taken->reply);
    }
    return ZMTP_GOING_ON;
}

static enum zmtp_result on_traffic(struct zmtp *z, struct frame *f, struct zmtp_taken *taken)
{
    if (z->server->needs_curve) {
        uint8_t flags;
        if (f->flags & FLAG_MORE) {
            return end(z, taken, "CURVE: a MESSAGE is in pieces");
        }
        const char *why =
            curve_take_message(&z->curve, f->body, f->length, &flags, &f->body, &f->length);
        if (why) {
            return end(z, taken, why);
        }
        if (flags & ~(CURVE_MORE | CURVE_COMMAND) || flags == (CURVE_MORE | CURVE_COMMAND)) {
            return end(z, taken, "CURVE: a MESSAGE has flags that there are not");
        }
        f->flags = flags & CURVE_MORE ? FLAG_MORE : flags & CURVE_COMMAND ? FLAG_COMMAND : 0;
    }
    if (f->flags & FLAG_COMMAND) {
        return on_command(z, f, taken);
    }
    taken->frame = f->body;
    taken->frame_length = f->length;
    taken->more = f->flags & FLAG_MORE;
    return ZMTP_FRAME;
}

enum zmtp_result zmtp_take(struct zmtp *z, uint8_t *in, size_t length, struct zmtp_taken *taken)
{
    enum zmtp_result result;
    struct frame frame = {0};
    taken->used = taken->need = taken->frame_length = taken->reply_length = 0;
    taken->frame = NULL;
    taken->more = false;
    taken->user = NULL;
    taken->why = NULL;
    if (z->state == ZMTP_AT_START) {
        result = on_signature(z, in, length, taken);
    } else if (z->state == ZMTP_AT_GREETING) {
        result = on_greeting(z, in, length, taken);
    } else if (z->state == ZMTP_AT_END) {
        result = end(z, taken, "the connection is over");
    } else if ((result = read_frame(z, in, length, taken, &frame)) == ZMTP_GOING_ON) {
        result = z->state == ZMTP_AT_NULL_READY       ? on_null_ready(z, &frame, taken)
                 : z->state == ZMTP_AT_CURVE_HELLO    ? on_hello(z, &frame, taken)
                 : z->state == ZMTP_AT_CURVE_INITIATE ? on_initiate(z, &frame, taken)
                                                      : on_traffic(z, &frame, taken);
    }
    CHECK_THAT(taken->used <= length, "zmtp: it takes no more than there is");
    CHECK_THAT(result != ZMTP_FRAME || z->state == ZMTP_AT_TRAFFIC,
               "zmtp: no message comes before the handshake's end");
    CHECK_THAT(result != ZMTP_WAIT || taken->need > length, "zmtp: it waits for more than is here");
    return result;
}
