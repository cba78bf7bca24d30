#include "common/listen.h"

#include "common/host_lookup.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <string.h>
#include <unistd.h>

static void describe(const struct addrinfo *found, struct listen_address *out)
{
    memset(out, 0, sizeof *out); /* compared as a whole */
    memcpy(&out->at, found->ai_addr, found->ai_addrlen);
    out->is_v6 = found->ai_family == AF_INET6;
    out->is_loopback = out->is_v6 ? IN6_IS_ADDR_LOOPBACK(&out->at.v6.sin6_addr)
                                  : ntohl(out->at.v4.sin_addr.s_addr) >> 24 == 127;
    inet_ntop(found->ai_family,
              out->is_v6 ? (void *)&out->at.v6.sin6_addr : (void *)&out->at.v4.sin_addr,
              out->numeric, sizeof out->numeric);
}

unsigned listen_resolve_all(const struct options_host_port *at, const atomic_bool *stop,
                            struct listen_address out[LISTEN_ADDRESSES_MAX])
{
    static const struct options_host_port all = {.host = "0.0.0.0"};
    struct addrinfo *list = NULL;
    unsigned count = 0;
    (void)host_lookup_find(strcmp(at->host, "*") == 0 ? &all : at, false, UINT64_MAX, stop, &list);
    for (const struct addrinfo *a = list; a != NULL && count < LISTEN_ADDRESSES_MAX;
         a = a->ai_next) {
        if (a->ai_family == AF_INET || a->ai_family == AF_INET6) {
            unsigned same = 0;
            describe(a, &out[count]);
            while (memcmp(&out[same], &out[count], sizeof *out) != 0) {
                same++;
            }
            count += same == count; /* else it is there already */
        }
    }
    if (list != NULL) {
        freeaddrinfo(list);
    }
    return count;
}

enum err listen_resolve(const struct options_host_port *at, const atomic_bool *stop,
                        struct listen_address *out)
{
    struct listen_address found[LISTEN_ADDRESSES_MAX];
    unsigned count = listen_resolve_all(at, stop, found), chosen = 0;
    while (chosen < count && found[chosen].is_v6) {
        chosen++;
    }
    if (count == 0) {
        return ERR_ABSENT;
    }
    *out = found[chosen < count ? chosen : 0];
    return ERR_OK;
}

bool listen_are_loopback(const struct listen_address *address, unsigned addresses)
{
    bool are = true;
    for (unsigned i = 0; i < addresses; i++) {
        are = are && address[i].is_loopback;
    }
    return are;
}

/* ---- sockets ---- */

/* -1 with errno. */
static int bind_one(const struct listen_address *address, uint16_t port, int backlog,
                    uint16_t *bound)
{
    struct listen_address to = *address;
    socklen_t size = to.is_v6 ? sizeof to.at.v6 : sizeof to.at.v4;
    in_port_t *at_port = to.is_v6 ? &to.at.v6.sin6_port : &to.at.v4.sin_port;
    int one = 1;
    int fd = socket(to.at.any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    *at_port = htons(port);
    if (fd >= 0 && (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) != 0 ||
                    bind(fd, &to.at.any, size) != 0 || listen(fd, backlog) != 0 ||
                    getsockname(fd, &to.at.any, &size) != 0)) {
        int why = errno;
        close(fd);
        errno = why;
        return -1;
    }
    *bound = fd >= 0 ? ntohs(*at_port) : *bound;
    return fd;
}

enum err listen_bind(const struct listen_address *address, unsigned addresses, uint16_t port,
                     int backlog, int fd[LISTEN_ADDRESSES_MAX], unsigned *fds, uint16_t *bound)
{
    unsigned count = 0;
    int why = EADDRNOTAVAIL;
    for (unsigned i = 0; i < addresses; i++) {
        int opened = bind_one(&address[i], port, backlog, &port);
        if (opened >= 0) {
            fd[count++] = opened;
            continue;
        }
        why = errno;
        /* Names have addresses that a machine has not: ::1 without IPv6, those of others. */
        if (why != EADDRNOTAVAIL && why != EAFNOSUPPORT) {
            while (count > 0) {
                close(fd[--count]);
            }
            break;
        }
    }
    if (count == 0) {
        errno = why;
        return why == EADDRINUSE ? ERR_EXIST : ERR_IO;
    }
    *fds = count;
    *bound = port;
    return ERR_OK;
}
