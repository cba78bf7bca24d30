#include "worker/table/redis_host.h"

#include "common/signals.h"

#include <netdb.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

/* The thread and the owner both let go of it: the second one frees it. */
enum { UNDER_WAY, DONE, LEFT };

struct redis_lookup {
    struct options_host_port at;
    struct addrinfo *found;
    int error;
    atomic_int state;
};

static atomic_uint lookups; /* of the process */

static int resolve(const struct options_host_port *at, int flags, struct addrinfo **out)
{
    struct addrinfo hints = {.ai_flags = flags, .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    char port[8];
    snprintf(port, sizeof port, "%u", at->port);
    return getaddrinfo(at->host, port, &hints, out);
}

static void free_lookup(struct redis_lookup *l)
{
    if (l->found != NULL) {
        freeaddrinfo(l->found);
    }
    free(l);
}

static void *run(void *lookup)
{
    struct redis_lookup *l = lookup;
    l->error = resolve(&l->at, 0, &l->found);
    atomic_fetch_sub(&lookups, 1);
    if (atomic_exchange(&l->state, DONE) == LEFT) {
        free_lookup(l);
    }
    return NULL;
}

/* It is begun later where too many are under way, or there is no thread. */
static void begin(struct redis_host *host, const struct options_host_port *at, uint64_t now_us)
{
    struct redis_lookup *l = calloc(1, sizeof *l);
    pthread_t thread;
    if (l == NULL || atomic_fetch_add(&lookups, 1) >= REDIS_HOST_LOOKUPS_MAX) {
        atomic_fetch_sub(&lookups, l != NULL);
        free(l);
        return;
    }
    l->at = *at;
    atomic_init(&l->state, UNDER_WAY);
    if (!signals_create_thread(&thread, run, l)) {
        atomic_fetch_sub(&lookups, 1);
        free(l);
        return;
    }
    pthread_detach(thread);
    host->lookup = l;
    host->lookup_us = now_us;
}

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
    struct addrinfo *numeric = NULL;
    if (host->lookup != NULL && atomic_load(&host->lookup->state) == DONE) {
        take(host, host->lookup->error, &host->lookup->found);
        free_lookup(host->lookup);
        host->lookup = NULL;
    } else if (host->lookup == NULL &&
               (host->lookup_us == 0 || now_us - host->lookup_us >= REDIS_HOST_LOOKUP_US)) {
        if (resolve(at, AI_NUMERICHOST, &numeric) == 0) {
            take(host, 0, &numeric);
            host->lookup_us = now_us;
        } else {
            begin(host, at, now_us);
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
    if (host->lookup != NULL && atomic_exchange(&host->lookup->state, LEFT) == DONE) {
        free_lookup(host->lookup);
    }
    if (host->found != NULL) {
        freeaddrinfo(host->found);
    }
    *host = (struct redis_host){.found = NULL};
}
