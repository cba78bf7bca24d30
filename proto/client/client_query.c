/* Requests to one shard, without a ticket. Those whose answer is awaited as a part
 * (client_state.h): STATS, MEMBERS, JOBS, SCAN. Two without a part: SHARE, which has no answer, and
 * FLUSH, whose answer may take long. */
#include "proto/alias.h"
#include "proto/client/client_state.h"

/* Asks for a page for people, which takes a shard many times as long as an ask: the answer has the
 * longest time-out there is. */
static bool page_query(struct client *c, unsigned shard, enum part_kind kind,
                       struct proto_message m, uint64_t now_us)
{
    client_advance(c, now_us);
    struct part *part = client_shard_query(c, shard, kind, &m);
    if (part != NULL) {
        part->deadline_us = c->now_us + c->options.rto_max_us;
    }
    return part != NULL;
}

bool client_stats(struct client *c, unsigned shard, uint64_t now_us)
{
    return page_query(c, shard, PART_STATS, (struct proto_message){.type = PROTO_STATS}, now_us);
}

bool client_members(struct client *c, unsigned shard, uint32_t from, uint64_t now_us)
{
    const struct proto_message m = {.type = PROTO_MEMBERS, .members = {.from = from}};
    return page_query(c, shard, PART_MEMBERS, m, now_us);
}

bool client_jobs(struct client *c, unsigned shard, uint32_t from, uint64_t now_us)
{
    const struct proto_message m = {.type = PROTO_JOBS, .jobs = {.from = from}};
    return page_query(c, shard, PART_JOBS, m, now_us);
}

bool client_scan(struct client *c, unsigned shard, uint64_t cursor, uint8_t depth, uint64_t now_us)
{
    const struct proto_message m = {.type = PROTO_SCAN, .scan = {.cursor = cursor, .depth = depth}};
    return page_query(c, shard, PART_SCAN, m, now_us);
}

bool client_flush_table(struct client *c, unsigned shard, uint64_t now_us)
{
    CHECK(shard < c->options.shards);
    struct shard *s = &c->shards[shard];
    struct proto_message m = {.type = PROTO_FLUSH};
    client_advance(c, now_us);
    if (s->state != CLIENT_UP) {
        return false;
    }
    m.flush.request = client_next_request(c);
    s->flush_request = client_send(c, shard, &m) ? m.flush.request : 0;
    return s->flush_request != 0;
}

unsigned client_share(struct client *c, const struct tt_store *results, unsigned count,
                      unsigned relays, uint64_t now_us)
{
    CHECK(count <= CLIENT_SHARE_MAX);
    client_advance(c, now_us);
    if (c->up_count == 0) {
        return 0;
    }
    unsigned most_relays = relays > 0 && relays < c->up_count ? relays : c->up_count;
    unsigned shard = c->owners[c->next_relay++ % most_relays].shard;
    uint32_t most = c->shards[shard].batch_max;
    struct proto_message m = {.type = PROTO_SHARE};
    m.share.table_id = c->options.table_id;
    unsigned sent = 0;
    for (unsigned n; sent < count; sent += n) {
        n = count - sent < most ? count - sent : most;
        m.share.list.count = n;
        m.share.list.at = (struct tt_store *)results + sent; /* only read */
        if (!client_send(c, shard, &m)) {
            break;
        }
    }
    c->counters.shared += sent;
    return sent;
}

bool client_mail_join(struct client *c, uint64_t job, bool takes_part, uint64_t now_us)
{
    client_advance(c, now_us);
    unsigned shard = client_shard_owning(c, job, c->up_count);
    struct proto_message m = {.type = PROTO_MAIL_JOIN};
    m.mail_join.job = takes_part ? job : 0;
    return shard != CLIENT_NOWHERE && client_shard_query(c, shard, PART_MAIL, &m) != NULL;
}

void client_mail(struct client *c, uint64_t job, uint64_t to, const uint8_t *body, size_t length,
                 uint64_t now_us)
{
    CHECK(length <= PROTO_BODY_MAX);
    client_advance(c, now_us);
    unsigned shard = client_shard_owning(c, job, c->up_count);
    struct proto_message m = {.type = PROTO_MAIL};
    m.mail = (struct proto_mail){.job = job,
                                 .to = to,
                                 .from = proto_alias(c->options.instance),
                                 .body = {body, (uint32_t)length}};
    if (shard != CLIENT_NOWHERE) {
        (void)client_send(c, shard, &m);
    }
}
