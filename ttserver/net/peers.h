/* peers: all connections of one shard, and the core that they talk to.
 *
 * It speaks ZMTP with them (zmtp.h), serves users in turns (turns.h), and bounds what they can
 * take: connections without a session, bytes and time. Threads: one at a time. Memory: the core's
 * is allocated in open; a connection's comes and goes with it. Never blocks. */
#ifndef TTSERVER_NET_PEERS_H
#define TTSERVER_NET_PEERS_H

#include "ttserver/core/core.h"
#include "ttserver/net/connection.h"
#include "ttserver/net/pushes.h"
#include "ttserver/net/who.h"

enum {
    PEERS_HELD_EACH =
        CONNECTION_READ + CONNECTION_OUT_PAUSE, /* for each known connection, besides held_max */
    PEERS_PENDING_MS = 5000,
    PEERS_ACCEPT_REST_MS = 1,
};

struct shard_peers {
    /* fixed after open */
    const char *program;
    struct ttcore *core;
    const struct socket_port *port;
    struct who *access;
    struct zmtp_server zmtp;
    uint32_t connections_max, pending_max;
    size_t held_max;
    uint64_t heartbeat_us, pending_us;
    uint64_t rng;
    /* state */
    struct ttcore_actions actions;
    struct who_list *allowed; /* NULL without keys */
    struct connection **connection; /* [slot]; NULL: free */
    uint32_t *free_slot; /* stack */
    struct connection **without_session; /* [pending], in any order */
    uint32_t open, pending; /* connections: all; without a session */
    uint32_t serial;
    struct connections by_silence; /* known ones, the one silent longest first */
    struct connections by_age; /* without a session, the oldest first */
    struct connections dirty; /* something was queued for them */
    struct pushes pushes;
    struct turns turns;
    struct turns_user newcomers; /* all whose keys are not known yet */
    struct who_users users;
    size_t held; /* bytes in buffers */
    uint64_t cpu_ns; /* CPU time of this thread, when it was last asked for */
    uint32_t pushed; /* connections for which something was queued, in this turn */
    uint8_t scratch[CONNECTION_READ];
    /* statistics */
    uint64_t received;
    struct ttcore_outside outside;
    struct who_refusals refusals; /* refused handshakes */
};

struct peers_options {
    uint32_t connections_max; /* as descriptors allow; at least 8 */
    const char *program; /* in the log; NULL: says nothing; borrowed until close */
    struct ttcore_options core;
    struct who *access; /* borrowed until close */
    const struct socket_port *port; /* borrowed until close */
    uint32_t pending_ms; /* a connection without a session is closed after that */
    size_t held_max; /* bytes of what is read and not yet served, and of what waits to be sent;
                        never more after a turn or a tick (and PEERS_HELD_EACH) */
    uint32_t pushed_at_once; /* as `at_once` of pushes; 0: PUSHES_AT_ONCE */
};

/* ERR_NOMEM; ERR_RANGE (core options). */
enum err peers_open(struct shard_peers *peers, const struct peers_options *options);
/* Closes all connections. */
void peers_disconnect(struct shard_peers *peers);
/* After that. Accepts a zeroed struct, and twice. */
void peers_close(struct shard_peers *peers);

/* Some of those who wait at a listener of the port. While there is no room each newcomer costs
 * another, without a session, its place: slowly, so that a handshake has the time that it takes;
 * but not so slowly that newcomers wait behind a thousand a second of one address, which cost that
 * address alone its places. False: nobody is to be accepted for PEERS_ACCEPT_REST_MS. */
bool peers_accept(struct shard_peers *peers, void *listener);

/* The port saw some of the events (enum socket_events) that are watched, or that watching failed.
 * Then, before it waits again, it calls peers_turn. */
void peers_ready(struct connection *c, unsigned events);
void peers_failed(struct connection *c);

/* Serves those who wait, for about as long as a message may take. True when somebody waits still.
 */
bool peers_turn(struct shard_peers *peers);

/* Four times in a heartbeat. */
void peers_tick(struct shard_peers *peers);

/* Takes the present list of users; the connections of those who are not in it end. */
void peers_reread(struct shard_peers *peers);

/* BYE to all sessions. */
void peers_dismiss(struct shard_peers *peers);

#endif
