/* lab_zmtp: ZMTP 3.1 as a client speaks it (ZeroMQ RFC 37), without keys or with CURVE (RFC 26):
 * the other half of ttserver/net/zmtp.h and curve.h, for the virtual cluster.
 *
 * Threads: one at a time per struct. Pure, but that the keys of a connection are random numbers of
 * libsodium's: what is sealed differs from run to run, its length does not. Never allocates. */
#ifndef TESTS_CHAOS_LAB_ZMTP_H
#define TESTS_CHAOS_LAB_ZMTP_H

#include "common/keys/key_file.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    LAB_GREETING_BYTES = 64,
    LAB_FRAME_OVERHEAD = 9, /* of a header */
    LAB_HELLO_BYTES = 128, /* room for a greeting and a READY */
    LAB_CURVE_COMMAND_BYTES = 400, /* room for a command of a CURVE handshake */
    LAB_CURVE_OVERHEAD = LAB_FRAME_OVERHEAD + 33, /* bytes that a sealed message is longer */
    LAB_FRAME_BODY_MAX = 1 << 18, /* bytes; no frame of a shard is longer */
};

enum { LAB_FRAME_MORE = 1, LAB_FRAME_LONG = 2, LAB_FRAME_COMMAND = 4 };

/* ---- frames ---- */

size_t lab_zmtp_greeting(uint8_t out[LAB_GREETING_BYTES], bool has_keys);
/* Greeting and READY of a DEALER without keys; returns how many bytes. */
size_t lab_zmtp_hello(uint8_t out[LAB_HELLO_BYTES]);
/* Whether a shard's greeting is one. */
bool lab_zmtp_is_greeting(const uint8_t in[LAB_GREETING_BYTES], bool has_keys);
/* The header of a frame of so many bytes; returns its length. */
size_t lab_zmtp_header(uint8_t out[LAB_FRAME_OVERHEAD], uint8_t flags, uint64_t length);

struct lab_frame {
    uint8_t flags;
    uint8_t *body;
    size_t length, used; /* bytes of the body; of the frame */
};

/* Takes the frame at the front: 1; not all of it is here: 0; it is none: -1. */
int lab_zmtp_frame(uint8_t *in, size_t length, struct lab_frame *out);

/* ---- CURVE ---- */

/* The same for the same seed. */
struct keys_pair lab_curve_pair(uint64_t seed);

struct lab_curve {
    const struct keys_pair *own; /* borrowed */
    const uint8_t *server_key; /* borrowed */
    struct keys_pair once; /* of this connection */
    uint8_t server_once[KEYS_BYTES]; /* the shard's of this connection */
    uint8_t shared[KEYS_BYTES];
    uint8_t cookie[96];
    uint64_t nonce, server_nonce;
};

void lab_curve_open(struct lab_curve *c, const struct keys_pair *own, const uint8_t *server_key);
/* Frames; they return their lengths. */
size_t lab_curve_hello(struct lab_curve *c, uint8_t out[LAB_CURVE_COMMAND_BYTES]);
size_t lab_curve_initiate(struct lab_curve *c, uint8_t out[LAB_CURVE_COMMAND_BYTES]);
/* A message, or with LAB_FRAME_COMMAND a command, of length + LAB_CURVE_OVERHEAD bytes. */
size_t lab_curve_seal(struct lab_curve *c, uint8_t flags, const uint8_t *bytes, size_t length,
                      uint8_t *out);
/* Bodies of a shard's frames; false: they do not open, or come out of turn. */
bool lab_curve_take_welcome(struct lab_curve *c, const struct lab_frame *f);
bool lab_curve_take_ready(struct lab_curve *c, const struct lab_frame *f);
/* Replaces the frame by what is in it. */
bool lab_curve_unseal(struct lab_curve *c, struct lab_frame *f);

#endif
