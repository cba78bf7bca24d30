#include "worker/transport/transport.h"

#include "common/rng.h"
#include "proto/transport/zeromq.h"
#include "worker/redis/redis_shell.h"

#include <stdio.h>
#include <stdlib.h>
#include <zmq.h>

struct transport {
    /* fixed after open */
    struct transport_address address;
    const char *program;
    void *context; /* ZeroMQ's; NULL: Redis */
    unsigned lanes; /* room in the one that is used */
    struct zeromq **zeromq;
    struct redis_shell **redis;
    /* state */
    unsigned opened;
};

_Static_assert((int)TRANSPORT_WHY_MAX >= (int)ZEROMQ_WHY_MAX, "zeromq's words fit");

uint64_t transport_group(const struct transport_address *address)
{
    const struct redis_address *redis = address->redis;
    return redis == NULL
               ? options_servers_hash(address->server, address->servers)
               : rng_mix(options_servers_hash(redis->node, redis->nodes) + redis->db + 1) | 1;
}

enum err transport_open(struct transport **out, const struct transport_address *address,
                        unsigned lanes, const char *program, char why[TRANSPORT_WHY_MAX])
{
    why[0] = '\0';
    if (address->redis != NULL && redis_shell_shards(address->redis) == 0) {
        snprintf(why, TRANSPORT_WHY_MAX,
                 "this build has no Redis: install libhiredis-dev and "
                 "libssl-dev and build again");
        return ERR_IO;
    }
    struct transport *t = calloc(1, sizeof *t);
    enum err err = t == NULL ? ERR_NOMEM : ERR_OK;
    if (t != NULL) {
        t->address = *address;
        t->address.keys = NULL;
        t->program = program;
        t->lanes = lanes;
        if (address->redis != NULL) {
            t->redis = calloc(lanes, sizeof *t->redis);
        } else {
            t->zeromq = calloc(lanes, sizeof *t->zeromq);
        }
        err = t->redis == NULL && t->zeromq == NULL ? ERR_NOMEM : ERR_OK;
    }
    if (err == ERR_OK && address->redis == NULL) {
        err = zeromq_context(&t->context, address->servers, lanes, address->is_guest, why);
    }
    if (err != ERR_OK) {
        if (why[0] == '\0') {
            snprintf(why, TRANSPORT_WHY_MAX, "%s", err_text(err));
        }
        transport_close(&t);
        return err;
    }
    *out = t;
    return ERR_OK;
}

void transport_close(struct transport **transport)
{
    struct transport *t = *transport;
    if (t == NULL) {
        return;
    }
    for (unsigned i = t->opened; i-- > 0;) { /* the first is used by the others */
        if (t->redis != NULL) {
            redis_shell_close(&t->redis[i]);
        } else {
            zeromq_close(&t->zeromq[i]);
        }
    }
    if (t->context != NULL) {
        zmq_ctx_term(t->context);
    }
    free(t->zeromq);
    free(t->redis);
    free(t);
    *transport = NULL;
}

unsigned transport_shards(const struct transport *t)
{
    return t->redis != NULL ? redis_shell_shards(t->address.redis) : t->address.servers;
}

void transport_shard_name(const struct transport *t, unsigned shard, char out[TRANSPORT_NAME_MAX])
{
    if (t->redis != NULL) {
        char text[REDIS_TEXT_MAX];
        redis_address_text(t->address.redis, text);
        if (transport_shards(t) > 1) {
            snprintf(out, TRANSPORT_NAME_MAX, "%.240s (%u)", text, shard);
        } else {
            snprintf(out, TRANSPORT_NAME_MAX, "%.250s", text);
        }
    } else {
        const struct options_host_port *at = &t->address.server[shard];
        options_host_port_text(at->host, at->port, out, TRANSPORT_NAME_MAX);
    }
}

void transport_none_up(const struct transport *t, char out[TRANSPORT_NONE_UP_MAX])
{
    char name[TRANSPORT_NAME_MAX], more[24] = "";
    if (t->redis != NULL) {
        char text[REDIS_TEXT_MAX];
        redis_address_text(t->address.redis, text);
        snprintf(name, sizeof name, "%.250s", text);
    } else {
        transport_shard_name(t, 0, name);
        if (t->address.servers > 1) {
            snprintf(more, sizeof more, " and %u more", t->address.servers - 1);
        }
    }
    snprintf(out, TRANSPORT_NONE_UP_MAX, "no shard is up (%s%s)", name, more);
}

enum err transport_lane(struct transport *t, const struct keys_client *keys,
                        struct remote_shell *out)
{
    enum err err;
    unsigned i = t->opened;
    if (i == t->lanes) {
        return ERR_FULL;
    }
    if (t->redis != NULL) {
        err = redis_shell_open(&t->redis[i], t->address.redis, t->program,
                               i == 0 ? NULL : t->redis[0]);
    } else {
        err = zeromq_open(&t->zeromq[i], t->context, t->address.server, t->address.servers, keys,
                          t->program, i == 0 ? NULL : t->zeromq[0], 0);
    }
    if (err == ERR_OK) {
        *out = t->redis != NULL ? redis_shell_of(t->redis[i]) : zeromq_shell(t->zeromq[i]);
        t->opened++;
    }
    return err;
}
