#include "worker/lib/lib_nodes.h"

#include <stdlib.h>

bool lib_nodes_open(struct lib_nodes *nodes)
{
    nodes->count = 0;
    nodes->at = calloc(LIB_NODES_MAX, sizeof *nodes->at);
    nodes->head = calloc(LIB_NODES_HEADS, sizeof *nodes->head);
    return nodes->at != NULL && nodes->head != NULL;
}

void lib_nodes_free(struct lib_nodes *nodes)
{
    free(nodes->at);
    free(nodes->head);
    nodes->at = NULL;
    nodes->head = NULL;
}

/* Callers may use raw keys that are not well mixed. */
static uint16_t *chain_of(const struct lib_nodes *nodes, uint64_t key)
{
    return &nodes->head[(key * UINT64_C(0x9e3779b97f4a7c15) >> 51) % LIB_NODES_HEADS];
}

struct lib_node *lib_nodes_find(const struct lib_nodes *nodes, uint64_t key, uint8_t depth,
                                uint16_t slot)
{
    for (unsigned i = *chain_of(nodes, key); i != 0; i = nodes->at[i - 1].next) {
        struct lib_node *node = &nodes->at[i - 1];
        if (node->key == key && node->depth == depth && node->slot == slot) {
            return node;
        }
    }
    return NULL;
}

void lib_nodes_add(struct lib_nodes *nodes, const struct lib_node *node)
{
    if (nodes->count == LIB_NODES_MAX) {
        return;
    }
    uint16_t *head = chain_of(nodes, node->key);
    struct lib_node *at = &nodes->at[nodes->count++];
    *at = *node;
    at->next = *head;
    *head = (uint16_t)nodes->count;
}

/* What leads to a node: the head of its chain, or `next` of the one before. */
static uint16_t *link_to(const struct lib_nodes *nodes, const struct lib_node *node)
{
    uint16_t *link = chain_of(nodes, node->key);
    while (&nodes->at[*link - 1] != node) {
        link = &nodes->at[*link - 1].next;
    }
    return link;
}

/* The last takes its place. */
void lib_nodes_remove(struct lib_nodes *nodes, struct lib_node *node)
{
    *link_to(nodes, node) = node->next;
    struct lib_node *last = &nodes->at[--nodes->count];
    if (last != node) {
        *link_to(nodes, last) = (uint16_t)(node - nodes->at + 1);
        *node = *last;
    }
}
