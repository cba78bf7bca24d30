/* lib_nodes: the nodes that this client has in flight: where each is registered and by which ask.
 * So a leave finds the shard, and a node that is searched for long is renewed.
 *
 * Threads: one. Memory: allocates in open. Pure. */
#ifndef WORKER_LIB_LIB_NODES_H
#define WORKER_LIB_LIB_NODES_H

#include <stdbool.h>
#include <stdint.h>

enum { LIB_NODES_MAX = 4096 };

struct lib_node {
    uint64_t key; /* as in messages */
    uint64_t asked_us;
    uint32_t ticket; /* newest ask that may register the node; 0: the node is registered */
    uint16_t slot;
    uint8_t depth;
    uint8_t where; /* shard that was asked, as client_ask says it */
};

struct lib_nodes {
    struct lib_node *at; /* LIB_NODES_MAX */
    unsigned count;
};

/* False: no memory. */
bool lib_nodes_open(struct lib_nodes *nodes);
/* Accepts a zeroed struct. */
void lib_nodes_free(struct lib_nodes *nodes);
/* The node; NULL: not in flight here. A search leaves the nodes that it entered last first, and
 * these are found first. */
struct lib_node *lib_nodes_find(const struct lib_nodes *nodes, uint64_t key, uint8_t depth,
                                uint16_t slot);
/* Adds a node. Where the list is full the node is left out: nobody renews it then, and a leave goes
 * to the owner of its key. */
void lib_nodes_add(struct lib_nodes *nodes, const struct lib_node *node);
void lib_nodes_remove(struct lib_nodes *nodes, struct lib_node *node);

#endif
