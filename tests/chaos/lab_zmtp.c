#include "tests/chaos/lab_zmtp.h"

#include "common/err.h"

#include <sodium.h>
#include <string.h>

enum {
    MAC = crypto_box_MACBYTES,
    NONCE = crypto_box_NONCEBYTES,
    SHORT = 8, /* bytes of a nonce that counts */
    LONG = 16, /* of a random one */
    COOKIE = 96,
    WELCOME_BYTES = 8 + LONG + MAC + KEYS_BYTES + COOKIE,
    INITIATE_PLAIN = 9 + COOKIE + SHORT + MAC, /* where what is sealed begins */
    VOUCH = KEYS_BYTES + LONG, /* within that: the vouch, the metadata behind it */
    METADATA = VOUCH + MAC + 2 * KEYS_BYTES,
    MESSAGE_PLAIN = 8 + SHORT + MAC,
};

/* ---- frames ---- */

static const char metadata[] = "\13Socket-Type\0\0\0\6DEALER\10Identity\0\0\0";

_Static_assert(9 + sizeof metadata + INITIATE_PLAIN + METADATA <= LAB_CURVE_COMMAND_BYTES, "room");
_Static_assert(LAB_GREETING_BYTES + 8 + sizeof metadata <= LAB_HELLO_BYTES, "room");

size_t lab_zmtp_header(uint8_t out[LAB_FRAME_OVERHEAD], uint8_t flags, uint64_t length)
{
    out[0] = flags;
    out[1] = (uint8_t)length;
    if (length < 256) {
        return 2;
    }
    out[0] |= LAB_FRAME_LONG;
    for (unsigned i = 8; i > 0; i--, length >>= 8) {
        out[i] = (uint8_t)length;
    }
    return LAB_FRAME_OVERHEAD;
}

size_t lab_zmtp_greeting(uint8_t out[LAB_GREETING_BYTES], bool has_keys)
{
    memset(out, 0, LAB_GREETING_BYTES);
    memcpy(out, "\xff\0\0\0\0\0\0\0\1\x7f\3\1", 12);
    memcpy(out + 12, has_keys ? "CURVE" : "NULL", has_keys ? 5 : 4);
    return LAB_GREETING_BYTES;
}

size_t lab_zmtp_hello(uint8_t out[LAB_HELLO_BYTES])
{
    size_t n = lab_zmtp_greeting(out, false);
    n += lab_zmtp_header(out + n, LAB_FRAME_COMMAND, 6 + sizeof metadata);
    memcpy(out + n, "\5READY", 6);
    memcpy(out + n + 6, metadata, sizeof metadata);
    return n + 6 + sizeof metadata;
}

bool lab_zmtp_is_greeting(const uint8_t in[LAB_GREETING_BYTES], bool has_keys)
{
    uint8_t mechanism[20] = {0};
    memcpy(mechanism, has_keys ? "CURVE" : "NULL", has_keys ? 5 : 4);
    return in[0] == 0xff && in[9] == 0x7f && in[10] == 3 && in[11] == 1 &&
           memcmp(in + 12, mechanism, sizeof mechanism) == 0 && in[32] == has_keys;
}

int lab_zmtp_frame(uint8_t *in, size_t length, struct lab_frame *out)
{
    if (length == 0) {
        return 0;
    }
    size_t header = in[0] & LAB_FRAME_LONG ? LAB_FRAME_OVERHEAD : 2;
    uint64_t size = 0;
    if (in[0] > 7 || (in[0] & LAB_FRAME_COMMAND && in[0] & LAB_FRAME_MORE)) {
        return -1;
    }
    if (length < header) {
        return 0;
    }
    for (size_t i = 1; i < header; i++) {
        size = size << 8 | in[i];
    }
    if (size > LAB_FRAME_BODY_MAX) {
        return -1;
    }
    *out = (struct lab_frame){
        .flags = in[0], .body = in + header, .length = size, .used = header + size};
    return length >= out->used;
}

/* ---- CURVE ---- */

struct keys_pair lab_curve_pair(uint64_t seed)
{
    struct keys_pair pair;
    uint8_t bytes[crypto_box_SEEDBYTES] = {0};
    CHECK(sodium_init() >= 0);
    memcpy(bytes, &seed, sizeof seed);
    crypto_box_seed_keypair(pair.public_key, pair.secret_key, bytes);
    return pair;
}

void lab_curve_open(struct lab_curve *c, const struct keys_pair *own, const uint8_t *server_key)
{
    *c = (struct lab_curve){.own = own, .server_key = server_key, .nonce = 1};
    crypto_box_keypair(c->once.public_key, c->once.secret_key);
}

static void make_nonce(uint8_t nonce[NONCE], const char *name, uint64_t count)
{
    memcpy(nonce, name, NONCE - SHORT);
    for (unsigned i = NONCE; i > NONCE - SHORT; i--, count >>= 8) {
        nonce[i - 1] = (uint8_t)count;
    }
}

size_t lab_curve_hello(struct lab_curve *c, uint8_t out[LAB_CURVE_COMMAND_BYTES])
{
    enum { KEY = 80, COUNT = 112, BOX = 120, ZEROS = 64, BYTES = BOX + MAC + ZEROS };
    uint8_t nonce[NONCE], zeros[ZEROS] = {0};
    size_t n = lab_zmtp_header(out, LAB_FRAME_COMMAND, BYTES);
    uint8_t *body = out + n;
    memset(body, 0, BYTES);
    memcpy(body, "\5HELLO\1", 7);
    memcpy(body + KEY, c->once.public_key, KEYS_BYTES);
    make_nonce(nonce, "CurveZMQHELLO---", c->nonce++);
    memcpy(body + COUNT, nonce + NONCE - SHORT, SHORT);
    CHECK(crypto_box_easy(body + BOX, zeros, ZEROS, nonce, c->server_key, c->once.secret_key) == 0);
    return n + BYTES;
}

bool lab_curve_take_welcome(struct lab_curve *c, const struct lab_frame *f)
{
    uint8_t nonce[NONCE], plain[KEYS_BYTES + COOKIE];
    if (f->length != WELCOME_BYTES || memcmp(f->body, "\7WELCOME", 8) != 0) {
        return false;
    }
    memcpy(nonce, "WELCOME-", 8);
    memcpy(nonce + 8, f->body + 8, LONG);
    if (crypto_box_open_easy(plain, f->body + 8 + LONG, MAC + sizeof plain, nonce, c->server_key,
                             c->once.secret_key) != 0) {
        return false;
    }
    memcpy(c->server_once, plain, KEYS_BYTES);
    memcpy(c->cookie, plain + KEYS_BYTES, COOKIE);
    return crypto_box_beforenm(c->shared, c->server_once, c->once.secret_key) == 0;
}

/* The vouch, which only who has the client's lasting key can seal, says whose the key of this
 * connection is. */
size_t lab_curve_initiate(struct lab_curve *c, uint8_t out[LAB_CURVE_COMMAND_BYTES])
{
    enum { PLAIN = METADATA + sizeof metadata, BYTES = INITIATE_PLAIN + PLAIN };
    uint8_t nonce[NONCE], plain[PLAIN], vouch[2 * KEYS_BYTES];
    size_t n = lab_zmtp_header(out, LAB_FRAME_COMMAND, BYTES);
    uint8_t *body = out + n;
    memcpy(vouch, c->once.public_key, KEYS_BYTES);
    memcpy(vouch + KEYS_BYTES, c->server_key, KEYS_BYTES);
    memcpy(plain, c->own->public_key, KEYS_BYTES);
    memcpy(nonce, "VOUCH---", 8);
    randombytes_buf(nonce + 8, LONG);
    memcpy(plain + KEYS_BYTES, nonce + 8, LONG);
    CHECK(crypto_box_easy(plain + VOUCH, vouch, sizeof vouch, nonce, c->server_once,
                          c->own->secret_key) == 0);
    memcpy(plain + METADATA, metadata, sizeof metadata);
    memcpy(body, "\10INITIATE", 9);
    memcpy(body + 9, c->cookie, COOKIE);
    make_nonce(nonce, "CurveZMQINITIATE", c->nonce++);
    memcpy(body + 9 + COOKIE, nonce + NONCE - SHORT, SHORT);
    CHECK(crypto_box_easy_afternm(body + INITIATE_PLAIN - MAC, plain, PLAIN, nonce, c->shared) ==
          0);
    return n + BYTES;
}

/* What is sealed begins after `name` and a nonce, which counts up. */
static bool open_box(struct lab_curve *c, const char *name, const char *nonce_name,
                     struct lab_frame *f)
{
    size_t n = strlen(name);
    uint8_t nonce[NONCE];
    if (f->length < n + SHORT + MAC || memcmp(f->body, name, n) != 0) {
        return false;
    }
    make_nonce(nonce, nonce_name, ++c->server_nonce);
    uint8_t *box = f->body + n + SHORT;
    size_t length = f->length - n - SHORT - MAC;
    if (memcmp(nonce + NONCE - SHORT, f->body + n, SHORT) != 0 ||
        crypto_box_open_detached_afternm(box + MAC, box + MAC, box, length, nonce, c->shared) !=
            0) {
        return false;
    }
    f->body = box + MAC;
    f->length = length;
    return true;
}

bool lab_curve_take_ready(struct lab_curve *c, const struct lab_frame *f)
{
    struct lab_frame opened = *f;
    return open_box(c, "\5READY", "CurveZMQREADY---", &opened);
}

bool lab_curve_unseal(struct lab_curve *c, struct lab_frame *f)
{
    if (!open_box(c, "\7MESSAGE", "CurveZMQMESSAGES", f) || f->length < 1 || f->body[0] > 2) {
        return false;
    }
    f->flags = f->body[0] == 1 ? LAB_FRAME_MORE : f->body[0] == 2 ? LAB_FRAME_COMMAND : 0;
    f->body++;
    f->length--;
    return true;
}

size_t lab_curve_seal(struct lab_curve *c, uint8_t flags, const uint8_t *bytes, size_t length,
                      uint8_t *out)
{
    uint8_t nonce[NONCE];
    size_t n = lab_zmtp_header(out, 0, MESSAGE_PLAIN + 1 + length);
    uint8_t *body = out + n, *plain = body + MESSAGE_PLAIN;
    memcpy(body, "\7MESSAGE", 8);
    make_nonce(nonce, "CurveZMQMESSAGEC", c->nonce++);
    memcpy(body + 8, nonce + NONCE - SHORT, SHORT);
    plain[0] = flags & LAB_FRAME_COMMAND ? 2 : flags & LAB_FRAME_MORE ? 1 : 0;
    if (length > 0) {
        memcpy(plain + 1, bytes, length);
    }
    CHECK(crypto_box_detached_afternm(plain, plain - MAC, plain, length + 1, nonce, c->shared) ==
          0);
    return n + MESSAGE_PLAIN + 1 + length;
}
