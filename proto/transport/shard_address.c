#include "proto/transport/shard_address.h"

#include "common/clock.h"
#include "common/log.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    AGAIN_US = 1000000, /* from the begin of a lookup to the next */
    SLOW_US = 1000000,
};

struct shard_address {
    bool is_number; /* fixed after open */
    char endpoint[SHARD_ADDRESS_ENDPOINT_MAX]; /* empty: not known */
    unsigned number; /* of it: another one, the next number */
    struct lookup *lookup; /* under way */
    uint64_t lookup_us; /* when it began, or the last one; 0: none did */
    bool was_said;
};

struct shard_addresses {
    const struct options_host_port *server; /* fixed after open */
    unsigned servers;
    const char *program;
    pthread_mutex_t lock; /* of the rest */
    struct shard_address shard[];
};

static void say(struct shard_addresses *a, unsigned shard, const char *why)
{
    const struct options_host_port *at = &a->server[shard];
    struct shard_address *s = &a->shard[shard];
    if (a->program != NULL && !s->was_said) {
        log_line(a->program, "shard %s:%u: %s", at->host, (unsigned)at->port, why);
    }
    s->was_said = true;
}

static void endpoint_of(const struct addrinfo *address, uint16_t port,
                        char out[SHARD_ADDRESS_ENDPOINT_MAX])
{
    char number[LOOKUP_NUMBER_MAX], text[SHARD_ADDRESS_ENDPOINT_MAX - sizeof "tcp://" + 1];
    out[0] = '\0';
    if (lookup_text(address, number)) {
        options_host_port_text(number, port, text, sizeof text);
        snprintf(out, SHARD_ADDRESS_ENDPOINT_MAX, "tcp://%s", text);
    }
}

/* The first one that is of IP. */
static void take(struct shard_addresses *a, unsigned shard, const struct addrinfo *found)
{
    struct shard_address *s = &a->shard[shard];
    char endpoint[SHARD_ADDRESS_ENDPOINT_MAX] = "";
    for (; found != NULL && endpoint[0] == '\0'; found = found->ai_next) {
        endpoint_of(found, a->server[shard].port, endpoint);
    }
    if (endpoint[0] != '\0' && strcmp(endpoint, s->endpoint) != 0) {
        memcpy(s->endpoint, endpoint, sizeof endpoint);
        s->number++;
    }
}

static void resolve(struct shard_addresses *a, unsigned shard)
{
    struct shard_address *s = &a->shard[shard];
    struct addrinfo *found = NULL;
    uint64_t now_us = clock_us();
    if (s->lookup == NULL) {
        if (s->lookup_us == 0 || now_us - s->lookup_us >= AGAIN_US) {
            s->lookup = lookup_begin(&a->server[shard], true);
            s->lookup_us = s->lookup != NULL ? now_us : s->lookup_us;
        }
    } else if (lookup_wait(s->lookup, 0)) {
        int error = lookup_take(&s->lookup, &found);
        if (error == 0) {
            take(a, shard, found);
            freeaddrinfo(found);
        } else {
            char why[128];
            snprintf(why, sizeof why, "this host is not known here (%s); it is tried again",
                     gai_strerror(error));
            say(a, shard, why);
        }
    } else if (now_us - s->lookup_us > SLOW_US) {
        say(a, shard, "its name is still being resolved");
    }
}

enum err shard_addresses_open(struct shard_addresses **out, const struct options_host_port *server,
                              unsigned servers, const char *program)
{
    struct shard_addresses *a = calloc(1, sizeof *a + servers * sizeof *a->shard);
    if (a == NULL) {
        return ERR_NOMEM;
    }
    a->server = server;
    a->servers = servers;
    a->program = program;
    pthread_mutex_init(&a->lock, NULL);
    for (unsigned i = 0; i < servers; i++) {
        struct addrinfo *found;
        a->shard[i].is_number = lookup_number(&server[i], &found);
        if (a->shard[i].is_number) {
            take(a, i, found);
            freeaddrinfo(found);
        } else {
            resolve(a, i); /* early: it may take a while */
        }
    }
    *out = a;
    return ERR_OK;
}

void shard_addresses_close(struct shard_addresses **addresses)
{
    struct shard_addresses *a = *addresses;
    if (a == NULL) {
        return;
    }
    for (unsigned i = 0; i < a->servers; i++) {
        lookup_leave(&a->shard[i].lookup);
    }
    pthread_mutex_destroy(&a->lock);
    free(a);
    *addresses = NULL;
}

unsigned shard_addresses_get(struct shard_addresses *a, unsigned shard, unsigned known,
                             bool is_silent, char endpoint[SHARD_ADDRESS_ENDPOINT_MAX])
{
    struct shard_address *s = &a->shard[shard];
    if (s->is_number && known != 0) {
        return known;
    }
    pthread_mutex_lock(&a->lock);
    if (!s->is_number && (s->number == 0 || s->lookup != NULL || is_silent)) {
        resolve(a, shard);
    }
    unsigned number = s->number;
    if (number != known) {
        memcpy(endpoint, s->endpoint, sizeof s->endpoint);
    }
    pthread_mutex_unlock(&a->lock);
    return number;
}
