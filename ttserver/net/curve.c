#include "ttserver/net/curve.h"

#include "common/err.h"

#include <endian.h>
#include <sodium.h>
#include <stdbool.h>
#include <string.h>

/* Where the fields of the bodies are. */
enum {
    MAC = crypto_box_MACBYTES,
    NONCE = crypto_box_NONCEBYTES,
    SHORT = 8, /* bytes of a nonce that counts: the rest of it is the command's name */
    LONG = 16, /* of a random one */
    HELLO_CLIENT_KEY = 80,
    HELLO_NONCE = 112,
    HELLO_BOX = 120,
    HELLO_ZEROS = 64,
    HELLO_BYTES = HELLO_BOX + MAC + HELLO_ZEROS,
    COOKIE_BYTES = 96,
    INITIATE_NONCE = 9 + COOKIE_BYTES,
    INITIATE_BOX = INITIATE_NONCE + SHORT,
    INITIATE_PLAIN = INITIATE_BOX + MAC,
    VOUCH_NONCE = CURVE_KEY_BYTES, /* this and the next three: places within the INITIATE's box */
    VOUCH_BOX = VOUCH_NONCE + LONG,
    VOUCH_PLAIN = 2 * CURVE_KEY_BYTES,
    INITIATE_METADATA = VOUCH_BOX + MAC + VOUCH_PLAIN,
    MESSAGE_NONCE = 8,
    MESSAGE_BOX = MESSAGE_NONCE + SHORT,
    MESSAGE_PLAIN = MESSAGE_BOX + MAC,
};

_Static_assert(CURVE_KEY_BYTES == crypto_box_PUBLICKEYBYTES &&
                   CURVE_KEY_BYTES == crypto_box_SECRETKEYBYTES &&
                   CURVE_KEY_BYTES == crypto_box_BEFORENMBYTES,
               "one size of keys");
_Static_assert(CURVE_WELCOME_BYTES == 8 + LONG + MAC + CURVE_KEY_BYTES + COOKIE_BYTES, "WELCOME");
_Static_assert(CURVE_MESSAGE_OVERHEAD == MESSAGE_PLAIN + 1, "MESSAGE");

static uint64_t get_u64(const uint8_t *in)
{
    uint64_t raw;
    memcpy(&raw, in, sizeof raw);
    return be64toh(raw);
}

static void put_u64(uint8_t *out, uint64_t value)
{
    uint64_t raw = htobe64(value);
    memcpy(out, &raw, sizeof raw);
}

static void make_nonce(uint8_t nonce[NONCE], const char *name, const uint8_t *rest,
                       size_t rest_length)
{
    memcpy(nonce, name, NONCE - rest_length);
    memcpy(nonce + NONCE - rest_length, rest, rest_length);
}

const char *curve_take_hello(struct curve *c, const uint8_t server_secret[CURVE_KEY_BYTES],
                             const uint8_t *body, size_t length,
                             uint8_t welcome[CURVE_WELCOME_BYTES])
{
    uint8_t nonce[NONCE], zeros[HELLO_ZEROS], shared[CURVE_KEY_BYTES];
    CHECK(sodium_init() >= 0); /* the first time */
    if (length != HELLO_BYTES || memcmp(body, "\5HELLO\1\0", 8) != 0) {
        return "CURVE: no HELLO of version 1.0";
    }
    memcpy(c->client_key, body + HELLO_CLIENT_KEY, sizeof c->client_key);
    make_nonce(nonce, "CurveZMQHELLO---", body + HELLO_NONCE, SHORT);
    if (crypto_box_beforenm(shared, c->client_key, server_secret) != 0 ||
        crypto_box_open_easy_afternm(zeros, body + HELLO_BOX, MAC + HELLO_ZEROS, nonce, shared) !=
            0 ||
        !sodium_is_zero(zeros, sizeof zeros)) {
        sodium_memzero(shared, sizeof shared);
        return "CURVE: HELLO is not for this server: is the server key wrong?";
    }
    c->in_nonce = get_u64(body + HELLO_NONCE);

    /* WELCOME: S' and the cookie, sealed to C' by S. A new pair for each HELLO that is for us. */
    uint8_t plain[CURVE_KEY_BYTES + COOKIE_BYTES];
    crypto_box_keypair(plain, c->secret_key);
    randombytes_buf(plain + CURVE_KEY_BYTES, COOKIE_BYTES);
    memcpy(welcome, "\7WELCOME", 8);
    randombytes_buf(welcome + 8, LONG);
    make_nonce(nonce, "WELCOME-", welcome + 8, LONG);
    CHECK(crypto_box_easy_afternm(welcome + 8 + LONG, plain, sizeof plain, nonce, shared) == 0);
    sodium_memzero(shared, sizeof shared);
    return NULL;
}

/* The vouch says that who has c also made C', and means this server. */
static bool is_vouched(const struct curve *c, const uint8_t server_public[CURVE_KEY_BYTES],
                       const uint8_t *plain)
{
    uint8_t nonce[NONCE], shared[CURVE_KEY_BYTES], vouch[VOUCH_PLAIN];
    make_nonce(nonce, "VOUCH---", plain + VOUCH_NONCE, LONG);
    bool ok = crypto_box_beforenm(shared, plain, c->secret_key) == 0 &&
              crypto_box_open_easy_afternm(vouch, plain + VOUCH_BOX, MAC + VOUCH_PLAIN, nonce,
                                           shared) == 0 &&
              sodium_memcmp(vouch, c->client_key, CURVE_KEY_BYTES) == 0 &&
              sodium_memcmp(vouch + CURVE_KEY_BYTES, server_public, CURVE_KEY_BYTES) == 0;
    sodium_memzero(shared, sizeof shared);
    return ok;
}

const char *curve_take_initiate(struct curve *c, const uint8_t server_public[CURVE_KEY_BYTES],
                                uint8_t *body, size_t length, struct curve_initiate *out)
{
    uint8_t nonce[NONCE], *plain = body + INITIATE_PLAIN;
    if (length < INITIATE_PLAIN + INITIATE_METADATA || memcmp(body, "\10INITIATE", 9) != 0) {
        return "CURVE: no INITIATE";
    }
    if (get_u64(body + INITIATE_NONCE) <= c->in_nonce) {
        return "CURVE: a nonce was used before";
    }
    c->in_nonce = get_u64(body + INITIATE_NONCE);
    make_nonce(nonce, "CurveZMQINITIATE", body + INITIATE_NONCE, SHORT);
    if (crypto_box_beforenm(c->shared, c->client_key, c->secret_key) != 0 ||
        crypto_box_open_detached_afternm(plain, plain, body + INITIATE_BOX, length - INITIATE_PLAIN,
                                         nonce, c->shared) != 0) {
        return "CURVE: INITIATE does not open";
    }
    if (!is_vouched(c, server_public, plain)) {
        return "CURVE: the client does not have the key that it names";
    }
    sodium_memzero(c->secret_key, sizeof c->secret_key);
    out->client_key = plain;
    out->metadata = plain + INITIATE_METADATA;
    out->metadata_length = length - INITIATE_PLAIN - INITIATE_METADATA;
    return NULL;
}

size_t curve_put_ready(struct curve *c, const uint8_t *metadata, size_t length, uint8_t *out)
{
    uint8_t nonce[NONCE];
    memcpy(out, "\5READY", 6);
    put_u64(out + 6, ++c->out_nonce);
    make_nonce(nonce, "CurveZMQREADY---", out + 6, SHORT);
    CHECK(crypto_box_easy_afternm(out + 6 + SHORT, metadata, length, nonce, c->shared) == 0);
    return length + CURVE_READY_OVERHEAD;
}

const char *curve_take_message(struct curve *c, uint8_t *body, size_t length, uint8_t *flags,
                               uint8_t **plain, size_t *plain_length)
{
    uint8_t nonce[NONCE], *open = body + MESSAGE_PLAIN;
    if (length < CURVE_MESSAGE_OVERHEAD || memcmp(body, "\7MESSAGE", 8) != 0) {
        return "CURVE: no MESSAGE";
    }
    if (get_u64(body + MESSAGE_NONCE) <= c->in_nonce) {
        return "CURVE: a nonce was used before";
    }
    c->in_nonce = get_u64(body + MESSAGE_NONCE);
    make_nonce(nonce, "CurveZMQMESSAGEC", body + MESSAGE_NONCE, SHORT);
    if (crypto_box_open_detached_afternm(open, open, body + MESSAGE_BOX, length - MESSAGE_PLAIN,
                                         nonce, c->shared) != 0) {
        return "CURVE: MESSAGE does not open";
    }
    *flags = open[0];
    *plain = open + 1;
    *plain_length = length - CURVE_MESSAGE_OVERHEAD;
    return NULL;
}

void curve_put_message(struct curve *c, uint8_t flags, const uint8_t *message, size_t length,
                       uint8_t *out)
{
    uint8_t nonce[NONCE], *plain = out + MESSAGE_PLAIN;
    memcpy(out, "\7MESSAGE", 8);
    put_u64(out + MESSAGE_NONCE, ++c->out_nonce);
    make_nonce(nonce, "CurveZMQMESSAGES", out + MESSAGE_NONCE, SHORT);
    plain[0] = flags;
    if (length > 0) {
        memcpy(plain + 1, message, length);
    }
    CHECK(crypto_box_detached_afternm(plain, out + MESSAGE_BOX, plain, length + 1, nonce,
                                      c->shared) == 0);
}

void curve_close(struct curve *c)
{
    sodium_memzero(c, sizeof *c);
}
