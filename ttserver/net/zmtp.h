/* zmtp: the server's side of one connection of ZMTP 3.0 and 3.1 (ZeroMQ RFC 23 and 37), as a pure
 * machine: bytes in, messages and bytes to send out. Security: NULL, or CURVE (RFC 25 and 26).
 *
 * Clients are libzmq's DEALER sockets, or anything that speaks as they do. A shard speaks it itself
 * because libzmq's ROUTER cannot be open to everybody: 4.3.4 aborts the process when a peer takes a
 * routing id that the socket is about to give away, and it can neither close one connection nor
 * bound its memory in bytes (docs/robustness.md).
 *
 * The peer is hostile until proven otherwise: whatever it sends, a call reads no byte outside what
 * it was given, answers within ZMTP_REPLY_MAX, and needs memory only in the struct. Its routing id
 * (Identity) is read past, its other metadata too except that its Socket-Type must be DEALER;
 * commands that are not known are ignored as the RFC wants.
 *
 * A client whose key is not allowed is told so by an ERROR command of the status 400 (RFC 27).
 * libzmq takes one as the end of that connect, as it does our greeting when it has the other
 * mechanism; our programs connect anew every few seconds (handshake_renew), and so come in when
 * they are allowed. Who breaks the protocol is told nothing.
 *
 * Threads: one at a time per connection. Pure (the keys of the connection come from libsodium's
 * random numbers). */
#ifndef TTSERVER_NET_ZMTP_H
#define TTSERVER_NET_ZMTP_H

#include "ttserver/net/curve.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    ZMTP_KEY_BYTES = 32,
    ZMTP_GREETING_BYTES = 64,
    ZMTP_COMMAND_MAX =
        1024, /* bytes of a command, and of any frame before the end of the handshake */
    ZMTP_REPLY_MAX = 512, /* bytes that one call of zmtp_take has to send */
    ZMTP_OVERHEAD = 64, /* bytes that a frame is longer than its message, at most */
};

/* What all connections of one server read. */
struct zmtp_server {
    bool needs_curve;
    uint8_t public_key[ZMTP_KEY_BYTES], secret_key[ZMTP_KEY_BYTES];
    /* The user with that key, to be found in taken.user; NULL: nobody, and the connection ends. */
    const void *(*user_of)(void *self, const uint8_t key[ZMTP_KEY_BYTES]);
    void *self;
    size_t message_max; /* bytes of a message; a frame above that ends the connection */
};

enum zmtp_result {
    ZMTP_WAIT, /* no whole item is there: call again with taken.need bytes at least */
    ZMTP_GOING_ON, /* an item was taken (greeting, command); there may be more */
    ZMTP_READY, /* the same, and the handshake is over: taken.user */
    ZMTP_FRAME, /* taken.frame of a message, taken.more when others of it follow */
    ZMTP_ENDED, /* the peer broke the protocol or is nobody's: send the reply and close */
};

struct zmtp_taken {
    size_t used; /* bytes of the input that are done with */
    size_t need; /* of ZMTP_WAIT: bytes to wait for, in all, from the first not used; never above
                  * the larger of ZMTP_COMMAND_MAX and message_max, + ZMTP_OVERHEAD */
    uint8_t *frame; /* within the input (the part that is used), decrypted there */
    size_t frame_length;
    bool more;
    const void *user; /* what user_of said; NULL without CURVE */
    uint8_t reply[ZMTP_REPLY_MAX]; /* bytes to be sent, with every result */
    size_t reply_length;
    const char *why; /* reason of ZMTP_ENDED, for people */
};

enum zmtp_state {
    ZMTP_AT_START,
    ZMTP_AT_GREETING,
    ZMTP_AT_NULL_READY,
    ZMTP_AT_CURVE_HELLO,
    ZMTP_AT_CURVE_INITIATE,
    ZMTP_AT_TRAFFIC,
    ZMTP_AT_END,
};

struct zmtp {
    const struct zmtp_server *server;
    enum zmtp_state state;
    struct curve curve; /* zero without CURVE */
};

/* `server` is borrowed until the connection's end. */
void zmtp_init(struct zmtp *z, const struct zmtp_server *server);

/* Takes at most one item from the front of in[length]. After ZMTP_ENDED it only says so again. */
enum zmtp_result zmtp_take(struct zmtp *z, uint8_t *in, size_t length, struct zmtp_taken *taken);

/* Writes a message of one frame, or a command, to out, which has room for length + ZMTP_OVERHEAD
 * bytes; returns how many it wrote. In ZMTP_AT_TRAFFIC only. */
size_t zmtp_put(struct zmtp *z, bool is_command, const uint8_t *body, size_t length, uint8_t *out);

/* Forgets the keys. */
void zmtp_close(struct zmtp *z);

#endif
