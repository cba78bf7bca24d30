/* connection: a peer's TCP connection with what waits in it, both ways.
 *
 * Bytes are read only when it is the connection's turn, so that what waits to be served waits in
 * the kernel, where TCP slows the sender down. Likewise a peer that does not read its answers is
 * read no further. So a peer's share of this process's memory is bounded whatever it does
 * (CONNECTION_OUT_MAX, and one message in). Threads: the shard's. Memory: its buffers come and go
 * with what waits; `held` of its owner counts them. Never blocks. */
#ifndef TTSERVER_NET_CONNECTION_H
#define TTSERVER_NET_CONNECTION_H

#include "proto/codec.h"
#include "ttserver/core/actions.h"
#include "ttserver/net/socket_port.h"
#include "ttserver/net/turns.h"
#include "ttserver/net/zmtp.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

enum {
    /* A message above PROTO_MESSAGE_MAX is counted and refused; one above this ends the connection
     * before it is read. */
    CONNECTION_MESSAGE_MAX = 2 * PROTO_MESSAGE_MAX,
    CONNECTION_READ = 32768, /* bytes read at a time: a batch of a thousand operations is 20,000 */
    CONNECTION_OUT_PAUSE = 16384, /* waiting to be sent: beyond it, nothing is read */
    CONNECTION_OUT_MAX = 65536 + 1024, /* then messages to the peer are dropped */
    CONNECTION_NAME_MAX = 64,
    CONNECTION_ROUTE = 8, /* bytes of a route */
};

struct who_user; /* ttserver/net/who.h */

struct connection {
    /* fixed after open */
    const struct socket_port *port;
    void *socket; /* of the port; NULL: closed */
    uint32_t slot; /* of its owner */
    uint8_t route[CONNECTION_ROUTE]; /* slot, and a number that no earlier one there had */
    size_t *held; /* bytes of all the owner's connections */
    void *owner;
    /* once it is ready */
    bool is_ready; /* the handshake is over */
    bool has_key;
    uint8_t key[ZMTP_KEY_BYTES];
    int key_role;
    struct ttcore_peer peer;
    char name[CONNECTION_NAME_MAX]; /* the user's name; before, the address */
    /* state */
    struct zmtp zmtp;
    unsigned watched; /* enum socket_events */
    struct turns_member turn;
    struct turns_user own; /* its user, when it shares none */
    struct who_user *shared; /* its user, when others may have the same */
    TAILQ_ENTRY(connection) by_silence; /* without a session: by age */
    TAILQ_ENTRY(connection) to_flush;
    TAILQ_ENTRY(connection) to_release; /* link of connections held back (ttserver/net/pushes.h) */
    bool is_pending; /* has no session */
    uint64_t pending_us; /* since then */
    uint32_t pending_at; /* place among those */
    bool is_dirty; /* in the list to be flushed */
    bool is_broken; /* set when it is to be closed */
    bool is_held_back; /* not to be served for a while */
    bool is_skipping; /* the rest of a message of several frames */
    uint64_t received_us;
    uint8_t *in, *out;
    size_t in_size, in_used; /* in[in_used] not yet taken */
    size_t need; /* bytes that make sense to wait for */
    size_t out_size, out_begin, out_end;
};

TAILQ_HEAD(connections, connection);

void connection_init(struct connection *c, const struct socket_port *port, void *socket,
                     const struct zmtp_server *server, size_t *held);
/* Closes the socket and frees the buffers; the struct is the owner's. */
void connection_close(struct connection *c);

/* Reads, once, behind what is there; `scratch` has CONNECTION_READ bytes and is used when nothing
 * is. Returns where the bytes are, *length of them in all; NULL when nothing came: then the peer
 * may be gone (is_broken). */
uint8_t *connection_read(struct connection *c, uint8_t *scratch, size_t *length);

/* Keeps the last `left` of the bytes that connection_read returned, or that were kept before. */
void connection_keep(struct connection *c, const uint8_t *at, size_t left);

/* Queues a message. False when it was dropped, as the peer does not read. */
bool connection_put(struct connection *c, const uint8_t *message, size_t length);
/* The same for bytes of the handshake, and a PONG. */
void connection_put_raw(struct connection *c, const uint8_t *bytes, size_t length);

/* Sends what the socket takes. */
void connection_flush(struct connection *c);

static inline size_t connection_waiting(const struct connection *c)
{
    return c->out_end - c->out_begin;
}

static inline bool connection_is_paused(const struct connection *c)
{
    return c->is_held_back || connection_waiting(c) > CONNECTION_OUT_PAUSE;
}

static inline size_t connection_held(const struct connection *c)
{
    return c->in_size + c->out_size;
}

#endif
