/* lib_nodes: the nodes that this client has in flight: where each is registered and by which ask.
 * So a leave finds the shard, and a node that is searched for long is renewed.
 *
 * Threads: one. Memory: allocates in open. Pure. */
#ifndef WORKER_LIB_LIB_NODES_H
#define WORKER_LIB_LIB_NODES_H

#include <stdbool.h>
#include <stdint.h>

enum { LIB_NODES_MAX = 4096, LIB_NODES_HEADS = 2 * LIB_NODES_MAX };

struct lib_node {
    uint64_t key; /* as in messages */
    uint64_t asked_us;
    uint32_t ticket; /* of the newest ask that may register it; 0: it is registered */
    uint16_t slot;
    uint16_t next; /* place + 1 of the next of its chain; 0: none */
    uint8_t depth;
    uint8_t where; /* client_ask */
};

struct lib_nodes {
    struct lib_node *at; /* LIB_NODES_MAX places, the first `count` of them used, in any order */
    uint16_t *head; /* LIB_NODES_HEADS chains: place + 1 of the first; 0: none */
    unsigned count;
};

/* False: no memory. */
bool lib_nodes_open(struct lib_nodes *nodes);
/* Accepts a zeroed struct. */
void lib_nodes_free(struct lib_nodes *nodes);
/* NULL: not in flight here. Good until the next add or remove. */
struct lib_node *lib_nodes_find(const struct lib_nodes *nodes, uint64_t key, uint8_t depth,
                                uint16_t slot);
/* A full list drops the node: then it is not renewed, and a leave goes to the key's owner. */
void lib_nodes_add(struct lib_nodes *nodes, const struct lib_node *node);
void lib_nodes_remove(struct lib_nodes *nodes, struct lib_node *node);

#endif
