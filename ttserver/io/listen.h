/* listen: from HOST:PORT to an endpoint that ZeroMQ can bind, and whether that is safe.
 *
 * ZeroMQ binds numeric addresses only, so names are resolved here. Threads: the main one. Memory:
 * the caller's. May block on the resolver. */
#ifndef TTSERVER_IO_LISTEN_H
#define TTSERVER_IO_LISTEN_H

#include "common/options.h"

#include <stdbool.h>

struct listen_address {
    char numeric[64]; /* without brackets */
    bool is_v6;
    bool is_loopback; /* nobody on another machine can reach it */
};

/* ERR_ABSENT when the name is not known. "*" is every address. */
enum err listen_resolve(const struct options_host_port *at, struct listen_address *out);

/* "tcp://1.2.3.4:7400", "tcp://[::1]:*" for port 0. */
void listen_endpoint(const struct listen_address *address, uint16_t port, char *out, size_t size);

/* The port at the end of an endpoint that ZeroMQ reports; 0 when there is none. */
uint16_t listen_port_of(const char *endpoint);

#endif
