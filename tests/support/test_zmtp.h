/* A peer for the ZMTP machine: feeds bytes in pieces and checks with every call what the machine
 * promises whatever comes. */
#ifndef TESTS_SUPPORT_TEST_ZMTP_H
#define TESTS_SUPPORT_TEST_ZMTP_H

#include "tests/support/test_zmtp_client.h"
#include "ttserver/net/zmtp.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { PEER_ROOM = 1 << 16, PEER_MESSAGE_MAX = 2000, PEER_FRAMES = 64 };

/* ---- what is said to the machine, and what it says ---- */

struct peer {
    struct zmtp_server server;
    struct zmtp z;
    uint8_t known[ZMTP_KEY_BYTES]; /* the key that is let in */
    unsigned asked; /* times that a key was looked up */
    uint8_t in[PEER_ROOM]; /* not taken yet */
    size_t in_length;
    uint8_t out[PEER_ROOM]; /* replies */
    size_t out_length;
    uint8_t got[PEER_ROOM]; /* frames, one after the other */
    size_t got_length;
    unsigned frames, commands, ready, ended;
    size_t frame_length[PEER_FRAMES];
    bool frame_more[PEER_FRAMES];
    const void *user;
    const char *why;
};

static const void *peer_user_of(void *self, const uint8_t key[ZMTP_KEY_BYTES])
{
    struct peer *p = self;
    p->asked++;
    return memcmp(key, p->known, ZMTP_KEY_BYTES) == 0 ? p->known : NULL;
}

/* Also for the second, third... connection to the same server. */
static inline void peer_connect(struct peer *p)
{
    zmtp_init(&p->z, &p->server);
    p->in_length = p->out_length = p->got_length = 0;
    p->frames = p->commands = p->ready = p->ended = 0;
    p->user = p->why = NULL;
}

static inline void peer_open(struct peer *p, bool curve)
{
    CHECK(sodium_init() >= 0);
    memset(p, 0, sizeof *p);
    p->server = (struct zmtp_server){
        .needs_curve = curve, .user_of = peer_user_of, .self = p, .message_max = PEER_MESSAGE_MAX};
    crypto_box_keypair(p->server.public_key, p->server.secret_key);
    peer_connect(p);
}

/* One call on a copy of exactly the bytes that are there: a sanitizer sees one too far. */
static inline enum zmtp_result peer_step(struct peer *p)
{
    static struct zmtp_taken taken;
    size_t length = p->in_length;
    uint8_t *in = malloc(length ? length : 1);
    CHECK(in != NULL);
    memcpy(in, p->in, length);
    enum zmtp_result result = zmtp_take(&p->z, in, length, &taken);
    CHECK(taken.used <= length && taken.reply_length <= ZMTP_REPLY_MAX);
    CHECK(p->out_length + taken.reply_length <= sizeof p->out);
    memcpy(p->out + p->out_length, taken.reply, taken.reply_length);
    p->out_length += taken.reply_length;
    switch (result) {
    case ZMTP_WAIT:
        CHECK(taken.used == 0 && taken.need > length);
        CHECK(taken.need <= PEER_MESSAGE_MAX + ZMTP_OVERHEAD);
        break;
    case ZMTP_FRAME:
        CHECK(p->ready == 1 && taken.frame >= in);
        CHECK(taken.frame + taken.frame_length <= in + taken.used);
        CHECK(taken.frame_length <= PEER_MESSAGE_MAX && p->frames < PEER_FRAMES);
        CHECK(p->got_length + taken.frame_length <= sizeof p->got);
        memcpy(p->got + p->got_length, taken.frame, taken.frame_length);
        p->got_length += taken.frame_length;
        p->frame_more[p->frames] = taken.more;
        p->frame_length[p->frames++] = taken.frame_length;
        break;
    case ZMTP_READY:
        CHECK(p->ready++ == 0 && taken.used > 0);
        CHECK((taken.user == p->known) == p->server.needs_curve);
        p->user = taken.user;
        break;
    case ZMTP_GOING_ON:
        CHECK(taken.used > 0);
        p->commands++;
        break;
    case ZMTP_ENDED:
        CHECK(taken.why != NULL && p->z.state == ZMTP_AT_END);
        CHECK(sodium_is_zero((const uint8_t *)&p->z.curve, sizeof p->z.curve));
        p->ended++;
        p->why = taken.why;
        break;
    }
    memmove(p->in, p->in + taken.used, length - taken.used);
    p->in_length -= taken.used;
    free(in);
    return result;
}

/* Bytes in pieces of that size; what comes after the end is lost, as on a closed connection. */
static inline void peer_say(struct peer *p, const void *bytes, size_t length, size_t piece)
{
    const uint8_t *at = bytes;
    while (length > 0 && !p->ended) {
        size_t n = piece < length ? piece : length;
        CHECK(p->in_length + n <= sizeof p->in);
        memcpy(p->in + p->in_length, at, n);
        p->in_length += n;
        at += n;
        length -= n;
        for (;;) {
            enum zmtp_result result = peer_step(p);
            if (result == ZMTP_WAIT || result == ZMTP_ENDED) {
                break;
            }
        }
    }
}

/* Greeting and handshake of a client that is let in, in pieces; what the machine said is gone. */
static inline bool peer_handshake(struct peer *p, struct curve_client *c, size_t piece)
{
    uint8_t bytes[1500], plain[600];
    size_t n;
    peer_say(p, bytes, greeting_put(bytes, "CURVE"), piece);
    p->out_length = 0;
    peer_say(p, bytes, client_hello(c, bytes), piece);
    if (!client_take_welcome(c, p->out, p->out_length)) {
        return false;
    }
    p->out_length = 0;
    n = client_initiate(c, c->cn_public, DEALER_METADATA, sizeof DEALER_METADATA - 1, bytes);
    peer_say(p, bytes, n, piece);
    bool ok = client_take(c, "\5READY", "CurveZMQREADY---", p->out, p->out_length, plain, &n) ==
              p->out_length;
    p->out_length = 0;
    return ok && p->ready == 1;
}

#endif
