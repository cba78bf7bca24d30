/* Requests that have one part and no ticket (STATS, MEMBERS, JOBS, HISTORY), and SHARE, which has
 * no answer. */
#include "proto/client_core.h"

/* Opens a request of this kind and sends its message, which has the request as first field. */
static bool query_open(struct client *c, unsigned shard, uint64_t now_us, enum part_kind kind,
                       struct proto_message *m, uint32_t *request)
{
    CHECK(shard < c->options.shards);
    client_advance(c, now_us);
    struct part *part = c->shards[shard].state == CLIENT_UP ? part_open(c, kind, shard) : NULL;
    if (!part) {
        return false;
    }
    *request = part->request;
    return shard_request(c, part, m);
}

bool client_stats(struct client *c, unsigned shard, uint64_t now_us)
{
    struct proto_message m = {.type = PROTO_STATS};
    return query_open(c, shard, now_us, PART_STATS, &m, &m.stats.request);
}

bool client_members(struct client *c, unsigned shard, uint32_t from, uint64_t now_us)
{
    struct proto_message m = {.type = PROTO_MEMBERS, .members = {.from = from}};
    return query_open(c, shard, now_us, PART_MEMBERS, &m, &m.members.request);
}

bool client_jobs(struct client *c, unsigned shard, uint32_t from, uint64_t now_us)
{
    struct proto_message m = {.type = PROTO_JOBS, .jobs = {.from = from}};
    return query_open(c, shard, now_us, PART_JOBS, &m, &m.jobs.request);
}

void query_on_stats(struct client *c, unsigned shard, const struct proto_stats_answer *m)
{
    if (shard_ends(c, shard, PART_STATS, m->request) && c->sink.stats) {
        c->sink.stats(c->sink.self, shard, m);
    }
}

void query_on_members(struct client *c, unsigned shard, const struct proto_members_answer *m)
{
    if (shard_ends(c, shard, PART_MEMBERS, m->request) && c->sink.members) {
        c->sink.members(c->sink.self, shard, m);
    }
}

void query_on_jobs(struct client *c, unsigned shard, const struct proto_jobs_answer *m)
{
    if (shard_ends(c, shard, PART_JOBS, m->request) && c->sink.jobs) {
        c->sink.jobs(c->sink.self, shard, m);
    }
}

/* ---- HISTORY and SHARE ---- */

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

void query_on_history(struct client *c, unsigned shard, const struct proto_history_answer *m)
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

bool client_share(struct client *c, uint64_t root_key, uint64_t table_id,
                  const struct tt_store *results, unsigned count, uint64_t now_us)
{
    CHECK(count <= CLIENT_SHARE_MAX);
    client_advance(c, now_us);
    unsigned shard = client_owner(c, root_key);
    if (shard == CLIENT_NOWHERE) {
        return false;
    }
    uint32_t most = c->shards[shard].batch_max;
    struct proto_message m = {.type = PROTO_SHARE};
    m.share.table_id = table_id;
    m.share.list.count = count < most ? count : most;
    m.share.list.at = (struct tt_store *)results; /* only read */
    return client_send(c, shard, &m);
}

void query_on_share(struct client *c, const struct proto_share *m)
{
    if (!proto_results_in_range(&m->list)) {
        c->counters.malformed++;
    } else if (c->sink.shared) {
        c->sink.shared(c->sink.node_self, m->table_id, m->list.at, m->list.count);
    }
}
