/* listen: from HOST:PORT to addresses to bind, and whether that is safe.
 * Threads: any. Memory: the caller's. May block on the resolver. */
#ifndef COMMON_LISTEN_H
#define COMMON_LISTEN_H

#include "common/options.h"

#include <netinet/in.h>
#include <stdatomic.h>
#include <stdbool.h>

enum { LISTEN_ADDRESSES_MAX = 8 }; /* addresses of one name */

struct listen_address {
    char numeric[64]; /* without brackets */
    bool is_v6, is_loopback; /* loopback: nobody on another machine can reach it */
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    } at; /* with any port */
};

/* Every address of the name, each once; returns how many, 0: it is not known, or `stop` as below.
 * "*" is every address of IPv4. */
unsigned listen_resolve_all(const struct options_host_port *at, const atomic_bool *stop,
                            struct listen_address out[LISTEN_ADDRESSES_MAX]);

/* For who listens on one: of IPv4 if there is one. ERR_ABSENT when the name is not known, or was
 * not when `*stop` was set (NULL: nobody stops it). */
enum err listen_resolve(const struct options_host_port *at, const atomic_bool *stop,
                        struct listen_address *out);

/* Whether other machines can reach none of them. */
bool listen_are_loopback(const struct listen_address *address, unsigned addresses);

/* Binds to all of them that this machine has, at one port (0: any), and listens with that backlog.
 * `fd` gets the descriptors, which do not block. ERR_EXIST: the port is taken at one of them;
 * ERR_IO with errno. */
enum err listen_bind(const struct listen_address *address, unsigned addresses, uint16_t port,
                     int backlog, int fd[LISTEN_ADDRESSES_MAX], unsigned *fds, uint16_t *bound);

#endif
