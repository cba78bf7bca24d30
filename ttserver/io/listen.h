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

#endif
