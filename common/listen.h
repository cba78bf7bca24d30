/* listen: from HOST:PORT to an address to bind, and whether that is safe.
 * Threads: any. Memory: the caller's. May block on the resolver. */
#ifndef COMMON_LISTEN_H
#define COMMON_LISTEN_H

#include "common/options.h"

#include <stdbool.h>
#include <sys/socket.h>

struct listen_address {
    char numeric[64]; /* without brackets */
    bool is_v6;
    uint32_t scope; /* of a link-local IPv6 address */
    bool is_loopback; /* nobody on another machine can reach it */
};

/* ERR_ABSENT when the name is not known. "*" is every address. */
enum err listen_resolve(const struct options_host_port *at, struct listen_address *out);

/* Writes the address; returns its size. */
socklen_t listen_sockaddr(const struct listen_address *address, uint16_t port,
                          struct sockaddr_storage *out);

/* The port of a bound socket's address. */
uint16_t listen_port(const struct sockaddr_storage *at);

#endif
