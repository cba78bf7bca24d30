#include "worker/table/share.h"

enum {
    SHARE_EVERY_US = 2000, /* a message costs more than its results are worth in a millisecond */
    PROBE_EVERY_US = 10000, /* while all others may have the same table */
};

void share_begin(struct share *s)
{
    s->count = 0;
    s->due_us = 0;
    s->wanted = false;
}

bool share_has_peers(const struct share *s, uint64_t now_us)
{
    return now_us < embedded_other_table_until_us(s->local->table);
}

void share_send(struct share *s, uint64_t root_key, uint64_t now_us)
{
    if (s->count > 0) {
        (void)client_share(s->client, root_key, embedded_table_id(s->local->table), s->list,
                           s->count, now_us);
    }
    s->count = 0;
    s->due_us = now_us + (share_has_peers(s, now_us) ? SHARE_EVERY_US : PROBE_EVERY_US);
}

bool share_add(struct share *s, const struct tt_store *result)
{
    if (!s->wanted || result->depth < s->depth) {
        return false;
    }
    s->list[s->count++] = *result;
    return s->count == CLIENT_SHARE_MAX;
}

void share_take(struct share *s, const struct tt_store *results, uint32_t count, uint64_t until_us)
{
    embedded_saw_other_table(s->local->table, until_us);
    for (uint32_t i = 0; i < count; i++) {
        embedded_put(s->local, &results[i]);
    }
}

void share_serve(struct share *s, uint64_t root_key, bool has_others, uint64_t now_us)
{
    if (s->count > 0 && now_us >= s->due_us) {
        share_send(s, root_key, now_us);
    }
    /* Signs of others may come from peers with the same table. A few results now and then find out:
     * a peer with another table answers with its own. */
    bool may_probe = has_others && now_us >= s->due_us;
    s->wanted = s->depth > 0 && (share_has_peers(s, now_us) || may_probe);
}
