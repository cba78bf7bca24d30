#include "proto/lane/shard_resolver.h"

#include "common/clock.h"
#include "common/log.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    AGAIN_US = 1000000, /* from the begin of a lookup to the next */
};

struct shard_address {
    char endpoint[SHARD_ADDRESS_ENDPOINT_MAX]; /* empty: not known */
    unsigned number; /* of it: another one, the next number */
    struct sockaddr_storage at; /* the same */
    socklen_t at_size;
    int port_fd; /* reserve_port; -1: none */
    bool wants_port; /* the kernel may choose the port, and the address may be this host's */
    struct host_lookup_name name;
    bool was_said; /* that it is not known */
};

struct shard_resolver {
    const struct options_host_port *server; /* fixed after open */
    unsigned servers;
    const char *program;
    unsigned chosen_first, chosen_last; /* ports that the kernel chooses */
    pthread_mutex_t lock; /* of the rest */
    struct shard_address shard[];
};

/* Keeps the kernel from choosing a shard's port for a connection that goes out. On the host of a
 * shard that is down a client could meet itself there (a simultaneous open of TCP), and the shard
 * would then find its port in use. The kernel does not choose a port that a socket is bound to; one
 * that does not listen is in no listener's way that has SO_REUSEADDR, as ttserver's has. While a
 * shard listens this fails and is not needed: callers repeat it. */
static void reserve_port(struct shard_address *s)
{
    int one = 1, fd = socket(s->at.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) == 0 &&
        bind(fd, (const struct sockaddr *)&s->at, s->at_size) == 0) {
        s->port_fd = fd;
        return;
    }
    s->wants_port = fd < 0 || errno != EADDRNOTAVAIL;
    if (fd >= 0) {
        close(fd);
    }
}

static void free_port(struct shard_address *s)
{
    if (s->port_fd >= 0) {
        close(s->port_fd);
    }
    s->port_fd = -1;
}

static void read_chosen_ports(struct shard_resolver *a)
{
    FILE *in = fopen("/proc/sys/net/ipv4/ip_local_port_range", "re"); /* of IPv6, too */
    if (in == NULL || fscanf(in, "%u %u", &a->chosen_first, &a->chosen_last) != 2) {
        a->chosen_first = 0;
        a->chosen_last = UINT16_MAX;
    }
    if (in != NULL) {
        fclose(in);
    }
}

/* The first one that is of IP. */
static void take(struct shard_resolver *a, unsigned shard, const struct addrinfo *found)
{
    struct shard_address *s = &a->shard[shard];
    const uint16_t port = a->server[shard].port;
    char number[HOST_LOOKUP_NUMBER_MAX], text[SHARD_ADDRESS_ENDPOINT_MAX - sizeof "tcp://" + 1];
    char endpoint[SHARD_ADDRESS_ENDPOINT_MAX] = "";
    while (found != NULL && !host_lookup_text(found, number)) {
        found = found->ai_next;
    }
    if (found == NULL) {
        return;
    }
    options_host_port_text(number, port, text, sizeof text);
    snprintf(endpoint, sizeof endpoint, "tcp://%s", text);
    if (strcmp(endpoint, s->endpoint) != 0) {
        memcpy(s->endpoint, endpoint, sizeof endpoint);
        memcpy(&s->at, found->ai_addr, found->ai_addrlen);
        s->at_size = found->ai_addrlen;
        s->number++;
        free_port(s);
        s->wants_port = port >= a->chosen_first && port <= a->chosen_last;
    }
}

/* Once for each shard: why it has no address. */
static void say_trouble(struct shard_resolver *a, unsigned shard, uint64_t now_us)
{
    const struct options_host_port *at = &a->server[shard];
    struct shard_address *s = &a->shard[shard];
    const char *why = host_lookup_name_trouble(&s->name, now_us);
    if (why != NULL && a->program != NULL && !s->was_said) {
        bool is_unknown = s->name.lookup == NULL;
        log_line(a->program, "shard %s:%u is down: %s%s%s", at->host, (unsigned)at->port,
                 is_unknown ? "unknown host (" : "", why, is_unknown ? "); retrying" : "");
    }
    s->was_said = s->was_said || why != NULL;
}

static void resolve(struct shard_resolver *a, unsigned shard)
{
    struct shard_address *s = &a->shard[shard];
    uint64_t now_us = clock_us();
    if (host_lookup_name_step(&s->name, &a->server[shard], true, AGAIN_US, now_us)) {
        take(a, shard, s->name.found);
    }
    say_trouble(a, shard, now_us);
}

enum err shard_resolver_open(struct shard_resolver **out, const struct options_host_port *server,
                             unsigned servers, const char *program)
{
    struct shard_resolver *a = calloc(1, sizeof *a + servers * sizeof *a->shard);
    if (a == NULL) {
        return ERR_NOMEM;
    }
    a->server = server;
    a->servers = servers;
    a->program = program;
    read_chosen_ports(a);
    pthread_mutex_init(&a->lock, NULL);
    for (unsigned i = 0; i < servers; i++) {
        a->shard[i].port_fd = -1;
        resolve(a, i); /* early: it may take a while */
    }
    *out = a;
    return ERR_OK;
}

void shard_resolver_close(struct shard_resolver **addresses)
{
    struct shard_resolver *a = *addresses;
    if (a == NULL) {
        return;
    }
    for (unsigned i = 0; i < a->servers; i++) {
        if (a->shard[i].number == 0) {
            say_trouble(a, i, UINT64_MAX); /* a short run, in which no name is slow */
        }
        host_lookup_name_forget(&a->shard[i].name);
        free_port(&a->shard[i]);
    }
    pthread_mutex_destroy(&a->lock);
    free(a);
    *addresses = NULL;
}

unsigned shard_resolver_get(struct shard_resolver *a, unsigned shard, unsigned known,
                            bool is_silent, char endpoint[SHARD_ADDRESS_ENDPOINT_MAX])
{
    struct shard_address *s = &a->shard[shard];
    pthread_mutex_lock(&a->lock);
    if (s->number == 0 || s->name.lookup != NULL || is_silent) {
        resolve(a, shard);
    }
    if (s->number != 0 && s->port_fd < 0 && s->wants_port) {
        reserve_port(s);
    }
    unsigned number = s->number;
    if (number != known) {
        memcpy(endpoint, s->endpoint, sizeof s->endpoint);
    }
    pthread_mutex_unlock(&a->lock);
    return number;
}

void shard_resolver_met_itself(struct shard_resolver *a, unsigned shard)
{
    pthread_mutex_lock(&a->lock);
    a->shard[shard].wants_port = true;
    pthread_mutex_unlock(&a->lock);
}
