/* identity: who is behind a connection, and what it may do: its key says it, or else its address.
 *
 * Both set the connection's peer, key and name and return the number of the user to whom quotas and
 * turns go: the same at every shard. Threads: the shard's. */
#ifndef TTSERVER_NET_IDENTITY_H
#define TTSERVER_NET_IDENTITY_H

#include "common/keys/keys.h"
#include "ttserver/net/connection.h"

enum { IDENTITY_ADDRESS_MAX = 64 };

/* The peer's numeric address, for people. */
void identity_address(int fd, char out[IDENTITY_ADDRESS_MAX]);

/* Never 0. */
uint64_t identity_by_key(struct connection *c, const struct keys_user *user);

/* Without keys everybody may do all but stop the jobs of others, and a user is who has an address.
 * 0 on this machine, where all have the same: each connection is a user of its own. */
uint64_t identity_by_address(struct connection *c);

#endif
