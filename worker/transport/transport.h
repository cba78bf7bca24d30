/* transport: how a process reaches the table outside it: ttservers over ZeroMQ (zeromq.h), or a
 * Redis or Redis Cluster (redis_shell.h). Everybody who connects, engine, workers, tools and the
 * library, goes through it and knows neither.
 *
 * Threads: open, lane and close by one thread, while no lane is in use; a lane's shell by the
 * thread of its client. Memory: allocates in open and lane. Blocking: close, up to 200 ms for BYE
 * to leave. */
#ifndef WORKER_TRANSPORT_TRANSPORT_H
#define WORKER_TRANSPORT_TRANSPORT_H

#include "common/keys/keys.h"
#include "common/options.h"
#include "common/redis/redis_address.h"
#include "proto/transport/shell.h"

struct transport;

enum { TRANSPORT_WHY_MAX = KEYS_WHY_MAX, TRANSPORT_NAME_MAX = OPTIONS_HOST_MAX + 16 };

/* Where the table is: `redis`, or else `server`. All borrowed until close but `keys`, which open
 * and lane alone read. */
struct transport_address {
    const struct options_host_port *server;
    unsigned servers;
    const struct keys_client *keys; /* keys for ttservers; NULL: no encryption */
    const struct redis_address *redis; /* NULL: ttservers */
    bool is_guest; /* in a program of others, whose limit of open files stays as it is */
};

static inline bool transport_is_given(const struct transport_address *address)
{
    return address->redis != NULL || address->servers > 0;
}

/* The same for all processes that name the same table (options_servers_hash). */
uint64_t transport_group(const struct transport_address *address);

/* For up to `lanes` clients. Nothing is connected yet. `program` names who says on stderr that it
 * is refused, or that a host is not known; NULL: nobody. On failure one line for people, which says
 * what to do, is written to `why`. ERR_FULL: more than the system allows; ERR_IO: this build has no
 * Redis; ERR_NOMEM. */
enum err transport_open(struct transport **out, const struct transport_address *address,
                        unsigned lanes, const char *program, char why[TRANSPORT_WHY_MAX]);
/* After the clients on its lanes are closed. Accepts NULL; nulls. */
void transport_close(struct transport **transport);

/* How many shards a client on it has (client_options.shards). */
unsigned transport_shards(const struct transport *transport);
/* What people call a shard: HOST:PORT, or the Redis's address. */
void transport_shard_name(const struct transport *transport, unsigned shard,
                          char out[TRANSPORT_NAME_MAX]);

enum { TRANSPORT_NONE_UP_MAX = TRANSPORT_NAME_MAX + 64 };
/* "no shard is up (127.0.0.1:7400 and 3 more)": what people are told then. */
void transport_none_up(const struct transport *transport, char out[TRANSPORT_NONE_UP_MAX]);

/* Begins to connect one more client; nothing need be up. `keys` as in the address. `out->self`
 * lives until close. ERR_FULL: more lanes than were opened for; ERR_NOMEM, ERR_IO. */
enum err transport_lane(struct transport *transport, const struct keys_client *keys,
                        struct remote_shell *out);

#endif
