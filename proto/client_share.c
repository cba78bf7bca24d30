/* Results that searchers of a root_key tell each other without having been asked. */
#include "proto/client_core.h"

bool client_share(struct client *c, uint64_t root_key, const struct tt_store *results,
                  unsigned count, uint64_t now_us)
{
    CHECK(count <= CLIENT_SHARE_MAX);
    client_advance(c, now_us);
    unsigned shard = client_owner(c, root_key);
    if (shard == CLIENT_NOWHERE || count > c->shards[shard].batch_max ||
        c->shards[shard].fence != 0) { /* it might go to those of the old namespace */
        return false;
    }
    struct proto_message m = {.type = PROTO_SHARE};
    m.share.list.count = count;
    m.share.list.at = (struct tt_store *)results; /* only read */
    return client_send(c, shard, &m);
}

void share_on_push(struct client *c, unsigned shard, const struct proto_share *m)
{
    if (!proto_results_in_range(&m->list)) {
        c->counters.malformed++;
    } else if (c->sink.shared && c->shards[shard].fence == 0) {
        c->sink.shared(c->sink.node_self, m->list.at, m->list.count);
    }
}
