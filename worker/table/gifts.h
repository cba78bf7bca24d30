/* gifts: results below the horizon that are told to others unasked (PROTOCOL.md, SHARE), while
 * there is company that does not use the same table.
 *
 * Threads: the processor's own. Memory: none. Never waits; what gets lost is lost. */
#ifndef WORKER_TABLE_GIFTS_H
#define WORKER_TABLE_GIFTS_H

#include "proto/client.h"
#include "worker/table/embedded.h"

struct gifts {
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
void gifts_open(struct gifts *gifts, struct client *client, struct embedded *table, uint8_t depth);
void gifts_begin(struct gifts *gifts);
/* Searchers that do not use our table: what they find has to be told, and asked for. */
bool gifts_hear_strangers(const struct gifts *gifts, uint64_t now_us);
/* A result was found here. True: no room for another one before gifts_send. */
bool gifts_give(struct gifts *gifts, const struct tt_store *store);
/* To those who search the root `topic`. */
void gifts_send(struct gifts *gifts, uint64_t topic, uint64_t now_us);
/* From env.poll: sends what is due. `has_company`: others were heard of, who may have our table. */
void gifts_poll(struct gifts *gifts, uint64_t topic, bool has_company, uint64_t now_us);

#endif
