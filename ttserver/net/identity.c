#include "ttserver/net/identity.h"

#include "common/rng.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

enum {
    MAY_ALL = TTCORE_MAY_WORK | TTCORE_MAY_POST | TTCORE_MAY_USE_TABLE | TTCORE_MAY_READ_STATISTICS,
};

static const uint32_t may[KEYS_ROLES] = {
    [KEYS_WORKER] = TTCORE_MAY_WORK | TTCORE_MAY_USE_TABLE | TTCORE_MAY_READ_STATISTICS,
    [KEYS_FRONT] = TTCORE_MAY_POST | TTCORE_MAY_USE_TABLE | TTCORE_MAY_READ_STATISTICS,
    [KEYS_MONITOR] = TTCORE_MAY_READ_STATISTICS,
    [KEYS_ADMINISTRATOR] = MAY_ALL | TTCORE_MAY_STOP_ANY_JOB | TTCORE_MAY_FLUSH,
};

static uint64_t number_of(const void *bytes, size_t words)
{
    uint64_t number = 0;
    for (size_t i = 0; i < words; i++) {
        uint64_t word;
        memcpy(&word, (const uint8_t *)bytes + i * sizeof word, sizeof word);
        number = rng_mix(number ^ word);
    }
    return number | 1; /* 0 says "not known" */
}

uint64_t identity_by_key(struct connection *c, const struct keys_user *user)
{
    c->has_key = true;
    memcpy(c->key, user->public_key, sizeof c->key);
    c->key_role = user->role;
    snprintf(c->name, sizeof c->name, "%s", user->name);
    c->peer = (struct ttcore_peer){.may = may[user->role], .name = c->name};
    return number_of(c->key, sizeof c->key / sizeof(uint64_t));
}

/* As IPv6; false when there is none any more. */
static bool address_of(int fd, struct in6_addr *out)
{
    struct sockaddr_storage from = {0};
    socklen_t size = sizeof from;
    *out = (struct in6_addr){0};
    if (getpeername(fd, (struct sockaddr *)&from, &size) != 0) {
        return false;
    }
    if (from.ss_family == AF_INET6) {
        *out = ((const struct sockaddr_in6 *)(const void *)&from)->sin6_addr;
    } else {
        out->s6_addr[10] = out->s6_addr[11] = 0xff; /* IPv4, mapped */
        memcpy(&out->s6_addr[12], &((const struct sockaddr_in *)(const void *)&from)->sin_addr, 4);
    }
    return true;
}

void identity_address(int fd, char out[IDENTITY_ADDRESS_MAX])
{
    struct in6_addr at;
    if (!address_of(fd, &at)) {
        snprintf(out, IDENTITY_ADDRESS_MAX, "an address gone");
    } else if (IN6_IS_ADDR_V4MAPPED(&at)) {
        inet_ntop(AF_INET, &at.s6_addr[12], out, IDENTITY_ADDRESS_MAX);
    } else {
        inet_ntop(AF_INET6, &at, out, IDENTITY_ADDRESS_MAX);
    }
}

uint64_t identity_by_address(struct connection *c)
{
    struct in6_addr at;
    bool is_v4;
    c->peer = (struct ttcore_peer){.may = MAY_ALL | TTCORE_MAY_FLUSH, .name = c->name};
    if (!address_of(c->fd, &at)) {
        c->is_broken = true;
        return 0;
    }
    identity_address(c->fd, c->name);
    is_v4 = IN6_IS_ADDR_V4MAPPED(&at);
    if (IN6_IS_ADDR_LOOPBACK(&at) || (is_v4 && at.s6_addr[12] == 127)) {
        return 0;
    }
    /* A machine may take any address of its IPv6 network. */
    return number_of(&at, is_v4 ? 2 : 1);
}
