/* The client's side of ZMTP as far as tests need it: frames, a greeting, and CURVE (RFC 26). */
#ifndef TESTS_SUPPORT_TEST_ZMTP_CLIENT_H
#define TESTS_SUPPORT_TEST_ZMTP_CLIENT_H

#include "common/err.h"

#include <sodium.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum { CLIENT_ROOM = 1 << 16, GREETING_BYTES = 64 };

/* ---- frames ---- */

static inline size_t frame_put(uint8_t *out, uint8_t flags, const void *body, size_t length)
{
    size_t header = length < 256 ? 2 : 9;
    out[0] = (uint8_t)(length < 256 ? flags : flags | 2);
    for (size_t i = header - 1, left = length; i > 0; i--, left >>= 8) {
        out[i] = (uint8_t)left;
    }
    if (length > 0) {
        memcpy(out + header, body, length);
    }
    return header + length;
}

static inline size_t greeting_put(uint8_t out[GREETING_BYTES], const char *mechanism)
{
    memset(out, 0, GREETING_BYTES);
    memcpy(out, "\xff\0\0\0\0\0\0\0\1\x7f\3\1", 12);
    memcpy(out + 12, mechanism, strlen(mechanism));
    return GREETING_BYTES;
}

/* As libzmq's DEALER with a routing id says it. */
#define DEALER_METADATA "\13Socket-Type\0\0\0\6DEALER\10Identity\0\0\0\5\0\0\0\0\7"

/* ---- CURVE, the client's side ---- */

struct curve_client {
    uint8_t server_key[32], public_key[32], secret_key[32]; /* S, C, c */
    uint8_t cn_public[32], cn_secret[32]; /* C', c' */
    uint8_t cn_server[32]; /* S' */
    uint8_t cookie[96];
    uint64_t nonce, server_nonce;
};

static inline void client_nonce(uint8_t nonce[24], const char *name, uint64_t count)
{
    memcpy(nonce, name, 16);
    for (unsigned i = 24; i-- > 16; count >>= 8) {
        nonce[i] = (uint8_t)count;
    }
}

static inline void client_open(struct curve_client *c, const uint8_t server_key[32])
{
    *c = (struct curve_client){.nonce = 1};
    memcpy(c->server_key, server_key, 32);
    crypto_box_keypair(c->public_key, c->secret_key);
    crypto_box_keypair(c->cn_public, c->cn_secret);
}

static inline size_t client_hello(struct curve_client *c, uint8_t *out)
{
    uint8_t body[200] = "\5HELLO\1\0", nonce[24], zeros[64] = {0};
    client_nonce(nonce, "CurveZMQHELLO---", c->nonce++);
    memcpy(body + 80, c->cn_public, 32);
    memcpy(body + 112, nonce + 16, 8);
    CHECK(crypto_box_easy(body + 120, zeros, 64, nonce, c->server_key, c->cn_secret) == 0);
    return frame_put(out, 4, body, sizeof body);
}

static inline bool client_take_welcome(struct curve_client *c, const uint8_t *in, size_t length)
{
    uint8_t nonce[24] = "WELCOME-", plain[128];
    if (length != 170 || memcmp(in, "\4\250\7WELCOME", 10) != 0) {
        return false;
    }
    memcpy(nonce + 8, in + 10, 16);
    if (crypto_box_open_easy(plain, in + 26, 144, nonce, c->server_key, c->cn_secret) != 0) {
        return false;
    }
    memcpy(c->cn_server, plain, 32);
    memcpy(c->cookie, plain + 32, 96);
    return true;
}

/* The vouch says that `named` is the key of this connection; it should be cn_public. */
static inline size_t client_initiate(struct curve_client *c, const uint8_t named[32],
                                     const void *metadata, size_t length, uint8_t *out)
{
    uint8_t body[1200] = "\10INITIATE", plain[1200], vouch[64], nonce[24] = "VOUCH---";
    CHECK(113 + 16 + 128 + length <= sizeof body);
    memcpy(vouch, named, 32);
    memcpy(vouch + 32, c->server_key, 32);
    randombytes_buf(nonce + 8, 16);
    memcpy(plain, c->public_key, 32);
    memcpy(plain + 32, nonce + 8, 16);
    CHECK(crypto_box_easy(plain + 48, vouch, 64, nonce, c->cn_server, c->secret_key) == 0);
    memcpy(plain + 128, metadata, length);
    client_nonce(nonce, "CurveZMQINITIATE", c->nonce++);
    memcpy(body + 9, c->cookie, 96);
    memcpy(body + 105, nonce + 16, 8);
    CHECK(crypto_box_easy(body + 113, plain, 128 + length, nonce, c->cn_server, c->cn_secret) == 0);
    return frame_put(out, 4, body, 113 + 16 + 128 + length);
}

static inline size_t client_message(struct curve_client *c, uint8_t flags, const void *message,
                                    size_t length, uint8_t *out)
{
    static uint8_t body[CLIENT_ROOM], plain[CLIENT_ROOM];
    uint8_t nonce[24];
    CHECK(length + 33 <= sizeof body);
    client_nonce(nonce, "CurveZMQMESSAGEC", c->nonce++);
    memcpy(body, "\7MESSAGE", 8);
    memcpy(body + 8, nonce + 16, 8);
    plain[0] = flags;
    if (length > 0) {
        memcpy(plain + 1, message, length);
    }
    CHECK(crypto_box_easy(body + 16, plain, length + 1, nonce, c->cn_server, c->cn_secret) == 0);
    return frame_put(out, 0, body, length + 33);
}

/* READY or MESSAGE at the front of in; bytes used, 0 when it is none. plain: with the flags. */
static inline size_t client_take(struct curve_client *c, const char *name, const char *nonce_name,
                                 const uint8_t *in, size_t length, uint8_t *plain,
                                 size_t *plain_length)
{
    size_t header = length > 0 && in[0] & 2 ? 9 : 2, size = 0, n = strlen(name);
    uint8_t nonce[24];
    for (size_t i = 1; i < header && i < length; i++) {
        size = size << 8 | in[i];
    }
    if (length < header + size || size < n + 8 + 16 || memcmp(in + header, name, n) != 0) {
        return 0;
    }
    client_nonce(nonce, nonce_name, ++c->server_nonce);
    if (memcmp(nonce + 16, in + header + n, 8) != 0 ||
        crypto_box_open_easy(plain, in + header + n + 8, size - n - 8, nonce, c->cn_server,
                             c->cn_secret) != 0) {
        return 0;
    }
    *plain_length = size - n - 8 - 16;
    return header + size;
}

#endif
