/* curve: the server's side of the CURVE mechanism (ZeroMQ RFC 26, CurveZMQ), the bodies of its
 * commands only: HELLO -> WELCOME, INITIATE -> READY, then MESSAGE both ways.
 *
 * Names as in the RFC: S, s the server's key pair; S', s' its pair of this connection; C the
 * client's key; C' its key of this connection. The cookie, in which a server without memory would
 * hand its state to the client, is here random bytes that nobody reads again: the state is in the
 * struct, and only who has c' can seal what s' opens.
 *
 * Threads: one at a time per struct. Memory: never allocates; bodies are opened where they are.
 * Keys of connections come from libsodium's random numbers. Those that fail return why, for
 * people; then the connection must end. */
#ifndef TTSERVER_NET_CURVE_H
#define TTSERVER_NET_CURVE_H

#include <stddef.h>
#include <stdint.h>

enum {
    CURVE_KEY_BYTES = 32,
    CURVE_WELCOME_BYTES = 168,
    CURVE_READY_OVERHEAD = 30, /* bytes of a READY beside its metadata */
    CURVE_MESSAGE_OVERHEAD = 33,
    CURVE_MORE = 1, /* flags within a MESSAGE */
    CURVE_COMMAND = 2,
};

struct curve {
    uint64_t in_nonce, out_nonce; /* nonces of the last command each way */
    uint8_t client_key[CURVE_KEY_BYTES]; /* C' */
    uint8_t secret_key[CURVE_KEY_BYTES]; /* s'; zero once the client is known */
    uint8_t shared[CURVE_KEY_BYTES]; /* key made of C' and s' */
};

/* What a true INITIATE says; both pointers point into its body. */
struct curve_initiate {
    const uint8_t *client_key; /* C, CURVE_KEY_BYTES */
    const uint8_t *metadata;
    size_t metadata_length;
};

const char *curve_take_hello(struct curve *c, const uint8_t server_secret[CURVE_KEY_BYTES],
                             const uint8_t *body, size_t length,
                             uint8_t welcome[CURVE_WELCOME_BYTES]);

const char *curve_take_initiate(struct curve *c, const uint8_t server_public[CURVE_KEY_BYTES],
                                uint8_t *body, size_t length, struct curve_initiate *out);

/* READY with that metadata; returns its length. */
size_t curve_put_ready(struct curve *c, const uint8_t *metadata, size_t length, uint8_t *out);

/* Opens the MESSAGE in body: its flags, and what it carries. */
const char *curve_take_message(struct curve *c, uint8_t *body, size_t length, uint8_t *flags,
                               uint8_t **plain, size_t *plain_length);

/* MESSAGE of length + CURVE_MESSAGE_OVERHEAD bytes. */
void curve_put_message(struct curve *c, uint8_t flags, const uint8_t *message, size_t length,
                       uint8_t *out);

/* Forgets the keys. */
void curve_close(struct curve *c);

#endif
