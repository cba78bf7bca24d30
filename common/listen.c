#include "common/listen.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <string.h>

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

enum err listen_resolve(const struct options_host_port *at, struct listen_address *out)
{
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    struct addrinfo *list = NULL;
    if (strcmp(at->host, "*") == 0) {
        *out = (struct listen_address){.numeric = "0.0.0.0"};
        return ERR_OK;
    }
    /* "localhost" is ::1 on some machines first; clients of a default server say 127.0.0.1. */
    if (strcmp(at->host, "localhost") == 0) {
        hints.ai_family = AF_INET;
    }
    if (getaddrinfo(at->host, NULL, &hints, &list) != 0 || list == NULL) {
        return ERR_ABSENT;
    }
    bool is_known = list->ai_family == AF_INET || list->ai_family == AF_INET6;
    if (is_known) {
        describe(list->ai_addr, out);
    }
    freeaddrinfo(list);
    return is_known ? ERR_OK : ERR_ABSENT;
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
