/* connections: all connections of one shard, and the core that they talk to.
 *
 * It speaks ZMTP with them (zmtp.h), serves users in turns (turns.h), and bounds what they can
 * take: connections without a session, bytes and time. Threads: one at a time. Memory: the core's
 * is allocated in open; a connection's comes and goes with it. Never blocks. */
#ifndef TTSERVER_NET_CONNECTIONS_H
#define TTSERVER_NET_CONNECTIONS_H

#include "ttserver/core/core.h"
#include "ttserver/net/connection.h"
#include "ttserver/net/pushes.h"
#include "ttserver/net/who.h"

enum {
    CONNECTIONS_HELD_EACH =
        CONNECTION_READ + CONNECTION_OUT_PAUSE, /* for each known connection, besides held_max */
    CONNECTIONS_PENDING_MS = 5000,
    CONNECTIONS_ACCEPT_REST_MS = 1,
};

struct connections_options {
    uint32_t connections_max; /* as descriptors allow; at least 8 */
    const char *program; /* in the log; NULL: says nothing; borrowed until close */
    struct ttcore_options core;
    struct who *access; /* borrowed until close */
    const struct socket_port *port; /* borrowed until close */
    uint32_t pending_ms; /* a connection without a session is closed after that */
    size_t held_max; /* bytes of what is read and not yet served, and of what waits to be sent;
                        never more after a turn or a tick (and CONNECTIONS_HELD_EACH) */
    uint32_t pushed_at_once; /* as `at_once` of pushes; 0: PUSHES_AT_ONCE */
};

struct shard_connections {
    /* fixed after open */
    struct connections_options options;
    struct ttcore *core;
    const struct socket_port *port;
    struct zmtp_server zmtp;
    uint32_t connections_max, pending_max;
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

/* ERR_NOMEM; ERR_RANGE (core options). */
enum err connections_open(struct shard_connections *peers,
                          const struct connections_options *options);
/* Closes all connections. */
void connections_disconnect(struct shard_connections *peers);
/* After that. Accepts a zeroed struct, and twice. */
void connections_close(struct shard_connections *peers);

/* Some of those who wait at a listener of the port. While there is no room each newcomer costs
 * another, without a session, its place: slowly, so that a handshake has the time that it takes;
 * but not so slowly that newcomers wait behind a thousand a second of one address, which cost that
 * address alone its places. False: nobody is to be accepted for CONNECTIONS_ACCEPT_REST_MS. */
bool connections_accept(struct shard_connections *peers, void *listener);

/* The port saw some of the events (enum socket_events) that are watched, or that watching failed.
 * Then, before it waits again, it calls connections_turn. */
void connections_ready(struct connection *c, unsigned events);
void connections_failed(struct connection *c);

/* Serves those who wait, for about as long as a message may take. True when somebody waits still.
 */
bool connections_turn(struct shard_connections *peers);

/* Four times in a heartbeat. */
void connections_tick(struct shard_connections *peers);

/* Takes the present list of users; the connections of those who are not in it end. */
void connections_reread(struct shard_connections *peers);

/* BYE to all sessions. */
void connections_dismiss(struct shard_connections *peers);

#endif
