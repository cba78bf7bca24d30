#include "worker/lib/lib_nodes.h"

#include <stdlib.h>
#include <string.h>

bool lib_nodes_open(struct lib_nodes *nodes)
{
    nodes->count = 0;
    nodes->at = calloc(LIB_NODES_MAX, sizeof *nodes->at);
    return nodes->at != NULL;
}

void lib_nodes_free(struct lib_nodes *nodes)
{
    free(nodes->at);
    nodes->at = NULL;
}

struct lib_node *lib_nodes_find(const struct lib_nodes *nodes, uint64_t key, uint8_t depth,
                                uint16_t slot)
{
    for (unsigned i = nodes->count; i-- > 0;) {
        struct lib_node *node = &nodes->at[i];
        if (node->key == key && node->depth == depth && node->slot == slot) {
            return node;
        }
    }
    return NULL;
}

void lib_nodes_add(struct lib_nodes *nodes, const struct lib_node *node)
{
    if (nodes->count < LIB_NODES_MAX) {
        nodes->at[nodes->count++] = *node;
    }
}

/* Nodes stay in the order in which they were entered: lib_nodes_find begins at the end. */
void lib_nodes_remove(struct lib_nodes *nodes, struct lib_node *node)
{
    unsigned i = (unsigned)(node - nodes->at);
    memmove(node, node + 1, (--nodes->count - i) * sizeof *node);
}
