/* redis_map: which node serves which slot. A single Redis serves all of them; of a Redis Cluster
 * the map is asked for (CLUSTER SLOTS) at any node of the address, and again, at each node in turn,
 * while there are slots whose node cannot be reached. What redis_link is made of; nobody else
 * includes it.
 *
 * The nodes that serve a slot are connected; replicas are only remembered, so that there is
 * somebody to ask when no master is left. Threads: one. Memory: allocates in open, and for the
 * reasons it has said. Blocking: as redis_node. */
#ifndef COMMON_REDIS_REDIS_MAP_H
#define COMMON_REDIS_REDIS_MAP_H

#include "common/redis/redis_node.h"

enum {
    REDIS_MAP_NODES_MAX = 127,
    REDIS_MAP_NOBODY = 0xff, /* in `owner` */
    REDIS_MAP_ASK_US = 200000, /* between two questions */
};

struct redis_map {
    /* fixed after open */
    struct redis_node_setup *setup;
    bool is_cluster;
    unsigned seeds; /* nodes of the address: the first ones */

    /* state */
    struct redis_node *node; /* REDIS_MAP_NODES_MAX */
    unsigned nodes;
    uint8_t owner[REDIS_SLOTS]; /* index of a node */
    bool is_known; /* the owners */
    char empty[REDIS_WHY_MAX]; /* while they are not: what a node without any said; or "" */
    uint64_t due_us; /* when to ask; UINT64_MAX: there is no need */
    bool is_full; /* while a map is read: there is no place for a node that is not known */
    unsigned next_node; /* node that is asked next, or connected to be asked */

    /* what was said of it */
    bool has_changed; /* there may be something to say */
    uint8_t said[REDIS_SLOTS]; /* of the slots */
    char *reason[REDIS_MAP_NODES_MAX + 1]; /* of the nodes, and of nobody; NULL: nothing */
};

/* ERR_NOMEM. */
enum err redis_map_open(struct redis_map *map, struct redis_node_setup *setup,
                        const struct redis_address *address);
/* A zeroed map is fine. */
void redis_map_close(struct redis_map *map);

/* The node that serves a slot, be it up or not; NULL: unknown. */
struct redis_node *redis_map_owner(const struct redis_map *map, unsigned slot);
/* "MOVED 3999 127.0.0.1:6381" from that node, or ASK: the node it names, which is added where it is
 * new, and wanted from now on. NULL: not understood, or no room. */
struct redis_node *redis_map_target(struct redis_map *map, const struct redis_node *from,
                                    const struct redisReply *reply, unsigned *slot);
void redis_map_assign(struct redis_map *map, unsigned slot, const struct redis_node *node);

/* Ask as soon as the next tick. */
void redis_map_doubt(struct redis_map *map);
/* A node's answer to REDIS_CALL_MAP. */
void redis_map_take(struct redis_map *map, struct redis_node *from, const struct redisReply *reply);
/* A node is up, or has failed. */
void redis_map_node_changed(struct redis_map *map, struct redis_node *node);
/* Serves the nodes as redis_node_tick, asks for the map where that is due. */
void redis_map_tick(struct redis_map *map, uint64_t now_us);

/* As redis_link_options.changed. */
typedef void redis_map_changed(void *self, unsigned first_slot, unsigned last_slot, bool up,
                               const char *why);
/* Says what has changed. */
void redis_map_say(struct redis_map *map, void *self, redis_map_changed *changed);
/* At the end: the same for what never was up, and of which nothing was said, as it had not been
 * silent for long enough to be given up. */
void redis_map_say_silent(const struct redis_map *map, void *self, redis_map_changed *changed);

#endif
