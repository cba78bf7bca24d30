/* shard_resolver: by which address a process's lanes (zeromq.h) reach its shards now. libzmq
 * would resolve a name on the thread that moves messages, wait for that at its end, and try the
 * first address alone. So it gets addresses in numbers, one at a time: of a name that has several,
 * one that is reached (common/host_lookup.h). A name is resolved at first, and again while nobody
 * answers. A shard's port on this host is held where the kernel may choose it for a connection, so
 * that no client connects to itself there.
 *
 * Threads: any. Memory: allocates in open, and the system's. Blocking: none but a lock. */
#ifndef PROTO_LANE_SHARD_RESOLVER_H
#define PROTO_LANE_SHARD_RESOLVER_H

#include "common/host_lookup.h"

enum { SHARD_ADDRESS_ENDPOINT_MAX = HOST_LOOKUP_NUMBER_MAX + 16 };

struct shard_resolver;

/* `server` and `program` are borrowed until close; `program` names who says on stderr, once a
 * shard, that a host is not known, or not yet, at the latest in close; NULL: nobody. ERR_NOMEM. */
enum err shard_resolver_open(struct shard_resolver **out, const struct options_host_port *server,
                             unsigned servers, const char *program);
/* Accepts NULL; nulls. */
void shard_resolver_close(struct shard_resolver **addresses);

/* The number of the present address; 0: none is known yet. Where it is not `known`, its endpoint
 * is written. `is_silent`: nobody has answered there for a while, so it is looked for again. */
unsigned shard_resolver_get(struct shard_resolver *addresses, unsigned shard, unsigned known,
                            bool is_silent, char endpoint[SHARD_ADDRESS_ENDPOINT_MAX]);

/* A connection met itself there: the port is held from the next shard_resolver_get on. */
void shard_resolver_met_itself(struct shard_resolver *addresses, unsigned shard);

#endif
