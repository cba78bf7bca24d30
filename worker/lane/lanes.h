/* lanes: those of a process to the table outside it, which is ttservers (zeromq.h) or a Redis
 * (redis_shell.h). Everybody who connects, engine, workers, tools and the library, goes through
 * them and knows neither.
 *
 * Threads: open, add and close by one thread, while no lane is in use; a lane by the thread of its
 * client. Memory: allocates in open and add. Blocking: close, up to 200 ms for BYE to leave. */
#ifndef WORKER_LANE_LANES_H
#define WORKER_LANE_LANES_H

#include "common/keys/keys.h"
#include "common/options.h"
#include "common/redis/redis_address.h"
#include "proto/lane/lane.h"

struct lanes;

enum { LANES_WHY_MAX = KEYS_WHY_MAX, LANES_NAME_MAX = OPTIONS_HOST_MAX + 16 };

/* Where the table is: `redis`, or else `server`. All borrowed until close but `keys`, which
 * open and add alone read. */
struct lanes_address {
    const struct options_host_port *server;
    unsigned servers;
    const struct keys_client *keys; /* keys for ttservers; NULL: no encryption */
    const struct redis_address *redis; /* NULL: ttservers */
    bool is_guest; /* in a program of others, whose limit of open files stays as it is */
};

static inline bool lanes_is_given(const struct lanes_address *address)
{
    return address->redis != NULL || address->servers > 0;
}

/* The same for all processes that name the same table (options_servers_hash). */
uint64_t lanes_group(const struct lanes_address *address);

/* For up to `lanes` clients. Nothing is connected yet. `program` names who says on stderr that it
 * is refused, or that a host is not known; NULL: nobody. On failure one line for people, which says
 * what to do, is written to `why`. ERR_FULL: more than the system allows; ERR_ABSENT: this build
 * has no Redis; ERR_NOMEM. */
enum err lanes_open(struct lanes **out, const struct lanes_address *address, unsigned lanes,
                    const char *program, char why[LANES_WHY_MAX]);
/* After the clients on its lanes are closed. Accepts NULL; nulls. */
void lanes_close(struct lanes **lanes);

/* How many shards a client on it has (client_options.shards). */
unsigned lanes_shards(const struct lanes *lanes);
/* What people call a shard: HOST:PORT, or the Redis's address. */
void lanes_shard_name(const struct lanes *lanes, unsigned shard, char out[LANES_NAME_MAX]);

enum { LANES_NONE_UP_MAX = LANES_NAME_MAX + 64 };
/* "no shard answered at 127.0.0.1:7400 and 3 more": what people are told then. */
void lanes_none_up(const struct lanes *lanes, char out[LANES_NONE_UP_MAX]);

/* Begins to connect one more client; nothing need be up. `keys` as in the address. The lane
 * lives until close. ERR_NOMEM, ERR_IO. */
enum err lanes_add(struct lanes *lanes, const struct keys_client *keys, struct lane *out);

/* Both, for a program with one client: its lane, with the client on it. `options` lack the number
 * of shards. On failure a line for people is in `why`. */
enum err lanes_open_one(struct lanes **out, struct lane *lane, const struct lanes_address *address,
                        const char *program, const struct client_options *options,
                        char why[LANES_WHY_MAX]);

#endif
