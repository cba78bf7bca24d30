/* A history table that all searchers of a root_key share. */
#include "proto/client_core.h"

unsigned client_history(struct client *c, uint64_t root_key, uint32_t epoch, uint32_t cursor,
                        const struct tt_weight *weights, unsigned count, uint64_t now_us)
{
    CHECK(count <= CLIENT_WEIGHTS_MAX);
    client_advance(c, now_us);
    unsigned shard = client_owner(c, root_key);
    struct part *part = shard != CLIENT_NOWHERE ? part_open(c, PART_HISTORY, shard) : NULL;
    if (!part) {
        return CLIENT_NOWHERE;
    }
    struct proto_message m = {.type = PROTO_HISTORY};
    m.history.request = part->request;
    m.history.root_key = root_key;
    m.history.epoch = epoch;
    m.history.cursor = cursor;
    uint32_t most = c->shards[shard].batch_max;
    m.history.list.count = count < most ? count : most;
    m.history.list.at = (struct tt_weight *)weights; /* only read */
    return shard_request(c, part, &m) ? shard : CLIENT_NOWHERE;
}

void history_on_answer(struct client *c, unsigned shard, const struct proto_history_answer *m)
{
    if (!shard_ends(c, shard, PART_HISTORY, m->request)) {
        return;
    }
    if (!proto_weights_in_range(&m->list)) {
        c->counters.malformed++;
    } else if (c->sink.history) {
        c->sink.history(c->sink.node_self, shard, m);
    }
}
