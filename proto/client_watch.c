/* What people watch a cluster by: a shard's figures, sessions and jobs; and a worker's
 * worker_index. */
#include "proto/client_core.h"

/* Opens a request of this kind and sends its message, which has the request as first field. */
static bool watch_ask(struct client *c, unsigned shard, uint64_t now_us, enum part_kind kind,
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
    return watch_ask(c, shard, now_us, PART_STATS, &m, &m.stats.request);
}

bool client_members(struct client *c, unsigned shard, uint32_t from, uint64_t now_us)
{
    struct proto_message m = {.type = PROTO_MEMBERS, .members = {.from = from}};
    return watch_ask(c, shard, now_us, PART_MEMBERS, &m, &m.members.request);
}

bool client_jobs(struct client *c, unsigned shard, uint32_t from, uint64_t now_us)
{
    struct proto_message m = {.type = PROTO_JOBS, .jobs = {.from = from}};
    return watch_ask(c, shard, now_us, PART_JOBS, &m, &m.jobs.request);
}

void watch_on_stats(struct client *c, unsigned shard, const struct proto_stats_answer *m)
{
    if (shard_ends(c, shard, PART_STATS, m->request) && c->sink.stats) {
        c->sink.stats(c->sink.self, shard, m);
    }
}

void watch_on_members(struct client *c, unsigned shard, const struct proto_members_answer *m)
{
    if (shard_ends(c, shard, PART_MEMBERS, m->request) && c->sink.members) {
        c->sink.members(c->sink.self, shard, m);
    }
}

void watch_on_jobs(struct client *c, unsigned shard, const struct proto_jobs_answer *m)
{
    if (shard_ends(c, shard, PART_JOBS, m->request) && c->sink.jobs) {
        c->sink.jobs(c->sink.self, shard, m);
    }
}
