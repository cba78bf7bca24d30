/* handshake: the keys of a ZeroMQ client's socket, and why a server would not have it.
 *
 * libzmq tells nobody but a socket monitor that a handshake failed; after some failures it does not
 * even try again: a server that said that it does not know our key may be told of it, one without
 * our kind of keys may have them when it comes back, hence handshake_renew. Threads: that of the
 * socket. Memory: ZeroMQ's. Never blocks. */
#ifndef PROTO_LANE_HANDSHAKE_H
#define PROTO_LANE_HANDSHAKE_H

#include "common/keys/keys.h"

/* Zero: does not watch. */
struct handshake {
    void *monitor;
    bool has_keys;
    unsigned closed; /* connections that ended in the handshake, without a reason */
    bool is_final; /* the server has said why; libzmq does not try again by itself */
};

/* Before the socket connects. The socket keeps copies of the keys; NULL: none. ERR_IO: libzmq has
 * no CURVE. */
enum err handshake_keys(void *socket, const struct keys_client *keys);

/* Before the socket connects. `context` is that of the socket. Takes two more sockets of it.
 * ERR_NOMEM. */
enum err handshake_watch(struct handshake *out, void *context, void *socket, bool has_keys);

/* Why the server refused, in words that follow its address; NULL: as far as known it did not, or
 * nothing has happened since the last call. Sets is_final where asking again is of no use. */
const char *handshake_refusal(struct handshake *h);

/* Ends what is left of a connection and begins a new one: for a socket without one, for seconds. */
void handshake_renew(void *socket, const char *endpoint);

/* Before the socket is closed. Accepts zero; twice. */
void handshake_close(struct handshake *h, void *socket);

#endif
