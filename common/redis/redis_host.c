#include "common/redis/redis_host.h"

#include "common/lookup.h"

/* What was found last stays where nothing is found any more. */
static void take(struct redis_host *host, int error, struct addrinfo **found)
{
    host->error = error;
    if (error == 0) {
        if (host->found != NULL) {
            freeaddrinfo(host->found);
        }
        host->found = *found;
        *found = NULL;
    }
}

static void find(struct redis_host *host, const struct options_host_port *at, uint64_t now_us)
{
    struct addrinfo *found = NULL;
    if (host->lookup != NULL && lookup_wait(host->lookup, 0)) {
        int error = lookup_take(&host->lookup, &found);
        take(host, error, &found);
    } else if (host->lookup == NULL &&
               (host->lookup_us == 0 || now_us - host->lookup_us >= REDIS_HOST_LOOKUP_US)) {
        if (lookup_number(at, &found)) {
            take(host, 0, &found);
            host->lookup_us = now_us;
        } else {
            host->lookup = lookup_begin(at, false);
            host->lookup_us = host->lookup != NULL ? now_us : host->lookup_us;
        }
    }
}

const struct addrinfo *redis_host_next(struct redis_host *host, const struct options_host_port *at,
                                       uint64_t now_us, const char **why)
{
    if (host->next == NULL) {
        find(host, at, now_us);
        host->next = host->found;
    }
    const struct addrinfo *address = host->next;
    if (address != NULL) {
        host->next = address->ai_next;
    } else if (host->lookup == NULL && host->error != 0) {
        *why = gai_strerror(host->error);
    } else {
        bool is_slow = host->lookup != NULL && now_us - host->lookup_us > REDIS_HOST_SLOW_US;
        *why = is_slow ? "its name is still being resolved" : NULL;
    }
    return address;
}

void redis_host_rewind(struct redis_host *host)
{
    host->next = NULL;
}

void redis_host_forget(struct redis_host *host)
{
    lookup_leave(&host->lookup);
    if (host->found != NULL) {
        freeaddrinfo(host->found);
    }
    *host = (struct redis_host){.found = NULL};
}
