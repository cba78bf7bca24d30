#include "worker/lane/lanes.h"

#include "common/rng.h"
#include "proto/lane/zeromq.h"
#include "worker/redis/redis_shell.h"

#include <stdio.h>
#include <stdlib.h>

struct lanes {
    /* fixed after open */
    struct lanes_address address;
    const char *program;
    struct zeromq *zeromq; /* NULL: Redis */
    unsigned room;
    /* state */
    unsigned opened;
    struct redis_shell *redis[]; /* room */
};

_Static_assert((int)LANES_WHY_MAX >= (int)ZEROMQ_WHY_MAX, "zeromq's words fit");

uint64_t lanes_group(const struct lanes_address *address)
{
    const struct redis_address *redis = address->redis;
    return redis == NULL
               ? options_servers_hash(address->server, address->servers)
               : rng_mix(options_servers_hash(redis->node, redis->nodes) + redis->db + 1) | 1;
}

enum err lanes_open(struct lanes **out, const struct lanes_address *address, unsigned lanes,
                    const char *program, char why[LANES_WHY_MAX])
{
    const struct redis_address *redis = address->redis;
    struct lanes *l = calloc(1, sizeof *l + lanes * sizeof *l->redis);
    enum err err = l == NULL                                         ? ERR_NOMEM
                   : redis != NULL && redis_shell_shards(redis) == 0 ? ERR_ABSENT
                                                                     : ERR_OK;
    if (err != ERR_OK) {
        snprintf(why, LANES_WHY_MAX, "%s",
                 err == ERR_NOMEM ? err_text(err)
                                  : "this build has no Redis: install libhiredis-dev and "
                                    "libssl-dev and build again");
    } else if (redis == NULL) {
        err = zeromq_open(&l->zeromq, address->server, address->servers, lanes, program,
                          address->is_guest ? ZEROMQ_IS_GUEST : 0, why);
    }
    if (err != ERR_OK) {
        free(l);
        return err;
    }
    l->address = *address;
    l->address.keys = NULL;
    l->program = program;
    l->room = lanes;
    *out = l;
    return ERR_OK;
}

void lanes_close(struct lanes **lanes)
{
    struct lanes *l = *lanes;
    if (l == NULL) {
        return;
    }
    zeromq_close(&l->zeromq);
    for (unsigned i = l->opened; i-- > 0;) { /* the first is used by the others */
        redis_shell_close(&l->redis[i]);
    }
    free(l);
    *lanes = NULL;
}

unsigned lanes_shards(const struct lanes *l)
{
    return l->address.redis != NULL ? redis_shell_shards(l->address.redis) : l->address.servers;
}

void lanes_shard_name(const struct lanes *l, unsigned shard, char out[LANES_NAME_MAX])
{
    char text[REDIS_TEXT_MAX], number[16] = "";
    if (l->address.redis == NULL) {
        const struct options_host_port *at = &l->address.server[shard];
        options_host_port_text(at->host, at->port, out, LANES_NAME_MAX);
        return;
    }
    redis_address_text(l->address.redis, text);
    if (lanes_shards(l) > 1) {
        snprintf(number, sizeof number, " (%u)", shard);
    }
    snprintf(out, LANES_NAME_MAX, "%.240s%s", text, number);
}

void lanes_none_up(const struct lanes *l, char out[LANES_NONE_UP_MAX])
{
    char name[REDIS_TEXT_MAX], more[24] = "";
    if (l->address.redis != NULL) {
        redis_address_text(l->address.redis, name);
    } else {
        lanes_shard_name(l, 0, name);
    }
    if (l->address.servers > 1) { /* none, of a Redis */
        snprintf(more, sizeof more, " and %u more", l->address.servers - 1);
    }
    snprintf(out, LANES_NONE_UP_MAX, "no shard answered at %.250s%s", name, more);
}

enum err lanes_add(struct lanes *l, const struct keys_client *keys, struct lane *out)
{
    if (l->address.redis == NULL) {
        return zeromq_lane(l->zeromq, keys, out);
    }
    CHECK_THAT(l->opened < l->room, "lanes: no more than they were opened for");
    struct redis_shell **redis = &l->redis[l->opened];
    enum err err =
        redis_shell_open(redis, l->address.redis, l->program, l->opened == 0 ? NULL : l->redis[0]);
    if (err == ERR_OK) {
        *out = redis_shell_lane(*redis);
        l->opened++;
    }
    return err;
}

enum err lanes_open_one(struct lanes **out, struct lane *lane, const struct lanes_address *address,
                        const char *program, const struct client_options *options,
                        char why[LANES_WHY_MAX])
{
    struct client_options completed = *options;
    enum err err = lanes_open(out, address, 1, program, why);
    if (err != ERR_OK) {
        return err;
    }
    completed.shards = lanes_shards(*out);
    err = lanes_add(*out, address->keys, lane);
    err = err == ERR_OK ? lane_open(lane, &completed) : err;
    if (err != ERR_OK) {
        snprintf(why, LANES_WHY_MAX, "%s", err_text(err));
        lanes_close(out);
    }
    return err;
}
