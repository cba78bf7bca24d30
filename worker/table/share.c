#include "worker/table/share.h"

enum {
    SHARE_EVERY_US = 2000, /* a message costs more than its results are worth in a millisecond */
    PROBE_EVERY_US = 10000, /* results told while others may all be using our table */
};

void share_open(struct share_queue *g, struct client *client, struct embedded *table, uint8_t depth)
{
    *g = (struct share_queue){.client = client, .table = table, .depth = depth};
}

void share_begin(struct share_queue *g)
{
    g->count = 0;
    g->due_us = 0;
    g->wanted = false;
}

bool share_sees_other_table(const struct share_queue *g, uint64_t now_us)
{
    return now_us < embedded_other_table_until_us(g->table);
}

void share_send(struct share_queue *g, uint64_t root_key, uint64_t now_us)
{
    if (g->count > 0) {
        (void)client_share(g->client, root_key, embedded_table_id(g->table), g->list, g->count,
                           now_us);
    }
    g->count = 0;
    g->due_us = now_us + (share_sees_other_table(g, now_us) ? SHARE_EVERY_US : PROBE_EVERY_US);
}

bool share_add(struct share_queue *g, const struct tt_store *store)
{
    if (!g->wanted || store->depth < g->depth) {
        return false;
    }
    g->list[g->count++] = *store;
    return g->count == CLIENT_SHARE_MAX;
}

void share_poll(struct share_queue *g, uint64_t root_key, bool has_others, uint64_t now_us)
{
    bool strangers = share_sees_other_table(g, now_us);
    if (g->count > 0 && now_us >= g->due_us) {
        share_send(g, root_key, now_us);
    }
    /* Signs of others may come from those who use our table: then a few results now and then find
     * out, for who has another table will answer with theirs. */
    g->wanted = g->depth > 0 && (strangers || (has_others && now_us >= g->due_us));
}
