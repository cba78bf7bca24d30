#include "common/listen.h"

#include "common/lookup.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <string.h>
#include <unistd.h>

enum { WAIT_MS = 20 }; /* between looks at who would have it stop */

static void describe(const struct sockaddr *address, struct listen_address *out)
{
    memset(out, 0, sizeof *out);
    if (address->sa_family == AF_INET6) {
        const struct in6_addr *v6 =
            &((const struct sockaddr_in6 *)(const void *)address)->sin6_addr;
        out->is_v6 = true;
        out->scope = ((const struct sockaddr_in6 *)(const void *)address)->sin6_scope_id;
        out->is_loopback = IN6_IS_ADDR_LOOPBACK(v6);
        inet_ntop(AF_INET6, v6, out->numeric, sizeof out->numeric);
    } else {
        const struct in_addr *v4 = &((const struct sockaddr_in *)(const void *)address)->sin_addr;
        out->is_loopback = ntohl(v4->s_addr) >> 24 == 127;
        inet_ntop(AF_INET, v4, out->numeric, sizeof out->numeric);
    }
}

static bool is_among(const struct listen_address *known, unsigned count,
                     const struct listen_address *address)
{
    for (unsigned i = 0; i < count; i++) {
        if (memcmp(&known[i], address, sizeof *address) == 0) {
            return true;
        }
    }
    return false;
}

/* NULL: it is not known. */
static struct addrinfo *find(const struct options_host_port *at, const atomic_bool *stop)
{
    struct addrinfo *list = NULL;
    if (lookup_number(at, &list)) {
        return list;
    }
    struct lookup *lookup = lookup_begin(at, false);
    while (lookup != NULL && !lookup_wait(lookup, WAIT_MS)) {
        if (stop != NULL && atomic_load(stop)) {
            lookup_leave(&lookup);
        }
    }
    if (lookup != NULL) {
        (void)lookup_take(&lookup, &list);
    }
    return list;
}

unsigned listen_resolve_all(const struct options_host_port *at, const atomic_bool *stop,
                            struct listen_address out[LISTEN_ADDRESSES_MAX])
{
    unsigned count = 0;
    if (strcmp(at->host, "*") == 0) {
        memset(out, 0, sizeof *out);
        memcpy(out->numeric, "0.0.0.0", sizeof "0.0.0.0");
        return 1;
    }
    struct addrinfo *list = find(at, stop);
    for (const struct addrinfo *a = list; a != NULL && count < LISTEN_ADDRESSES_MAX;
         a = a->ai_next) {
        if (a->ai_family == AF_INET || a->ai_family == AF_INET6) {
            describe(a->ai_addr, &out[count]);
            count += !is_among(out, count, &out[count]);
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
    struct sockaddr_storage at;
    socklen_t size = listen_sockaddr(address, port, &at);
    int one = 1;
    int fd = socket(at.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd >= 0 && (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) != 0 ||
                    bind(fd, (struct sockaddr *)&at, size) != 0 || listen(fd, backlog) != 0 ||
                    getsockname(fd, (struct sockaddr *)&at, &size) != 0)) {
        int why = errno;
        close(fd);
        errno = why;
        return -1;
    }
    if (fd >= 0) {
        *bound = listen_port(&at);
    }
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

socklen_t listen_sockaddr(const struct listen_address *address, uint16_t port,
                          struct sockaddr_storage *out)
{
    memset(out, 0, sizeof *out);
    if (address->is_v6) {
        struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)out;
        v6->sin6_family = AF_INET6;
        v6->sin6_port = htons(port);
        v6->sin6_scope_id = address->scope;
        inet_pton(AF_INET6, address->numeric, &v6->sin6_addr);
        return sizeof *v6;
    }
    struct sockaddr_in *v4 = (struct sockaddr_in *)out;
    v4->sin_family = AF_INET;
    v4->sin_port = htons(port);
    inet_pton(AF_INET, address->numeric, &v4->sin_addr);
    return sizeof *v4;
}

uint16_t listen_port(const struct sockaddr_storage *at)
{
    return at->ss_family == AF_INET6
               ? ntohs(((const struct sockaddr_in6 *)(const void *)at)->sin6_port)
               : ntohs(((const struct sockaddr_in *)(const void *)at)->sin_port);
}
