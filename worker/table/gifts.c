#include "worker/table/gifts.h"

enum {
    SHARE_EVERY_US = 2000, /* a message costs more than its results are worth in a millisecond */
    PROBE_EVERY_US = 10000, /* results told while others may all be using our table */
};

void gifts_open(struct gifts *g, struct client *client, struct embedded *table, uint8_t depth)
{
    *g = (struct gifts){.client = client, .table = table, .depth = depth};
}

void gifts_begin(struct gifts *g)
{
    g->count = 0;
    g->due_us = 0;
    g->wanted = false;
}

bool gifts_hear_strangers(const struct gifts *g, uint64_t now_us)
{
    return now_us < embedded_strangers_until_us(g->table);
}

void gifts_send(struct gifts *g, uint64_t topic, uint64_t now_us)
{
    if (g->count > 0) {
        (void)client_share(g->client, topic, g->list, g->count, now_us);
    }
    g->count = 0;
    g->due_us = now_us + (gifts_hear_strangers(g, now_us) ? SHARE_EVERY_US : PROBE_EVERY_US);
}

bool gifts_give(struct gifts *g, const struct tt_store *store)
{
    if (!g->wanted || store->depth < g->depth) {
        return false;
    }
    g->list[g->count] = *store;
    g->list[g->count++].slot = embedded_mark(g->table);
    return g->count == CLIENT_SHARE_MAX;
}

void gifts_poll(struct gifts *g, uint64_t topic, bool has_company, uint64_t now_us)
{
    bool strangers = gifts_hear_strangers(g, now_us);
    if (g->count > 0 && now_us >= g->due_us) {
        gifts_send(g, topic, now_us);
    }
    /* Signs of others may come from those who use our table: then a few results now and then find
     * out, for who has another table will answer with theirs. */
    g->wanted = g->depth > 0 && (strangers || (has_company && now_us >= g->due_us));
}
