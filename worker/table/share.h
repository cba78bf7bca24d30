/* gifts: results below the remote_depth that are told to others unasked (PROTOCOL.md, SHARE), while
 * there is company that does not use the same table.
 *
 * Threads: the processor's own. Memory: none. Never waits; what gets lost is lost. */
#ifndef WORKER_TABLE_SHARE_H
#define WORKER_TABLE_SHARE_H

#include "proto/client.h"
#include "worker/table/embedded.h"

struct share_queue {
    /* fixed after open */
    struct client *client;
    struct embedded *table;
    uint8_t depth; /* results of at least this one are told; 0: none */
    /* state */
    struct tt_store list[CLIENT_SHARE_MAX];
    unsigned count;
    uint64_t due_us;
    bool wanted; /* somebody is there, or it is time to find out */
};

/* Client and table are borrowed. */
void share_open(struct share_queue *gifts, struct client *client, struct embedded *table,
                uint8_t depth);
void share_begin(struct share_queue *gifts);
/* Searchers that do not use our table: what they find has to be told, and asked for. */
bool share_sees_other_table(const struct share_queue *gifts, uint64_t now_us);
/* A result was found here. True: no room for another one before share_send. */
bool share_add(struct share_queue *gifts, const struct tt_store *store);
/* To those who search the root `root_key`. */
void share_send(struct share_queue *gifts, uint64_t root_key, uint64_t now_us);
/* From env.poll: sends what is due. `has_others`: others were heard of, who may have our table. */
void share_poll(struct share_queue *gifts, uint64_t root_key, bool has_others, uint64_t now_us);

#endif
