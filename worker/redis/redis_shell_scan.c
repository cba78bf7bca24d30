/* SCAN and FLUSH over Redis: its own SCAN goes through all keys of the server, of all shards and
 * anybody else's, a page a call. */
#include "worker/redis/redis_shell_core.h"

#include <stdio.h>
#include <string.h>

enum {
    PAGE_SHIFT = 40, /* a cursor of ours grows (PROTOCOL.md): above Redis's is the page's number */
    ENTRY_BYTES = 8 + REDIS_RESULT_BYTES,
};

static const uint64_t cursor_mask = (UINT64_C(1) << PAGE_SHIFT) - 1;

static bool call_scan(struct redis_shell *s, const struct redis_pending *p)
{
    char pattern[REDIS_KEY_MAX];
    int n = snprintf(pattern, sizeof pattern, "%sr:*", s->shard[p->shard].prefix);
    redis_shell_begin(s, p->shard);
    s->keys = s->args = 1; /* boot alone */
    redis_shell_begin_args(s, p->shard);
    redis_shell_number_arg(s, p->id & cursor_mask);
    redis_shell_arg(s, pattern, (size_t)n);
    redis_shell_number_arg(s, (uint64_t)n - 1);
    redis_shell_number_arg(s, p->count); /* the least depth */
    redis_shell_text(s, p->is_flush ? "1" : "0");
    return redis_shell_call(s, p);
}

bool redis_on_scan(struct redis_shell *s, unsigned shard, const struct proto_message *m)
{
    struct redis_pending p = redis_shell_pending(s, shard, REDIS_SCAN, m->scan.request);
    p.id = m->scan.cursor;
    p.count = m->scan.depth;
    return call_scan(s, &p);
}

bool redis_on_flush(struct redis_shell *s, unsigned shard, const struct proto_message *m)
{
    struct redis_pending p = redis_shell_pending(s, shard, REDIS_SCAN, m->flush.request);
    p.is_flush = true;
    return call_scan(s, &p);
}

static void give_page(struct redis_shell *s, const struct redis_pending *p, uint64_t next,
                      struct proto_text entries)
{
    struct proto_message m = {.type = PROTO_SCANNED};
    struct tt_scanned *out = s->answers.scanneds;
    uint32_t count = entries.length / ENTRY_BYTES;
    count = count < PROTO_BATCH_MAX ? count : PROTO_BATCH_MAX;
    for (uint32_t i = 0, from = 0, end = count; from < end; from++) {
        const char *at = entries.at + (size_t)from * ENTRY_BYTES;
        out[i] = (struct tt_scanned){
            .key = redis_get(at, 8),
            .depth = (uint8_t)at[8],
            .lower = (int16_t)redis_get(at + 9, 2),
            .upper = (int16_t)redis_get(at + 11, 2),
            .move = (uint16_t)redis_get(at + 13, 2),
        };
        bool is_sound = out[i].depth <= TT_DEPTH_MAX && out[i].lower >= TT_SCORE_MIN &&
                        out[i].lower <= out[i].upper;
        i += is_sound ? 1 : 0;
        count -= is_sound ? 0 : 1;
    }
    m.scanned.request = p->request;
    m.scanned.next = next;
    m.scanned.list = (struct proto_scanneds){count, out};
    redis_shell_give(s, p->shard, &m);
}

void redis_scanned(struct redis_shell *s, const struct redis_pending *p, const struct redisReply *r)
{
    uint64_t cursor;
    struct proto_text entries;
    if (!redis_reply_number(redis_reply_at(r, 0), &cursor) || cursor > cursor_mask ||
        !redis_reply_text(redis_reply_at(r, 1), &entries)) {
        redis_shell_refuse(s, p->shard, PROTO_ERR_LIMIT, p->request, "no page of a Redis");
        return;
    }
    uint64_t next = cursor == 0 ? 0 : ((p->id >> PAGE_SHIFT) + 1) << PAGE_SHIFT | cursor;
    if (!p->is_flush) {
        give_page(s, p, next, entries);
    } else if (next != 0) {
        struct redis_pending more = *p;
        more.id = next;
        if (!call_scan(s, &more)) {
            redis_shell_refuse(s, p->shard, PROTO_ERR_LIMIT, p->request, "the Redis is busy");
        }
    } else {
        struct proto_message m = {.type = PROTO_FLUSHED};
        m.flushed.request = p->request;
        redis_shell_give(s, p->shard, &m);
    }
}
