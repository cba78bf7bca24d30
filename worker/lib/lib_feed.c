/* The feed: results of others, unasked. */
#include "worker/lib/lib.h"

#include "common/clock.h"

enum {
    /* A searcher that finds nothing deep enough for a while is there all the same, and what is
     * dropped as for nobody is not counted. */
    PEERS_US = 2000000, /* how long a message from others says that they are there */
    SILENT_US = 50000, /* without one: perhaps since the least depth is too high everywhere */
    RATE_MAX = 1000000,
};

void lib_feed_open(struct lib *l, uint32_t depth, uint32_t rate)
{
    struct lib_feed *f = l->feed;
    unsigned lowest = depth * FEED_STEPS;
    if (f == NULL) {
        return;
    }
    f->limits = (struct feed_limits){.lowest = lowest,
                                     .first = lowest,
                                     .highest = PROTO_RESULT_DEPTH_MAX * FEED_STEPS,
                                     .rate_max = rate > 0 ? rate : RATE_MAX};
    f->table_id = clock_unique();
    atomic_store(&f->feed.least, lowest);
    atomic_store(&f->lost, 0);
}

void lib_feed_begin(struct lib *l)
{
    struct lib_feed *f = l->feed;
    if (f != NULL) {
        atomic_store(&f->mix, l->mix);
        feed_clear(&f->feed);
        f->count = 0;
        f->received_us = 0;
    }
}

/* ---- sending ---- */

/* Messages have no room for more depth. A result is good for less, too; a strict search, whose
 * results stay beside each other, wants the very depth. */
static unsigned sent_depth(const struct abdada_store_op *op)
{
    bool is_cut = op->depth > PROTO_RESULT_DEPTH_MAX && !(op->bound & TT_BESIDE);
    return is_cut ? PROTO_RESULT_DEPTH_MAX : op->depth;
}

bool lib_feed_put(struct lib_feed *f, const struct abdada_store_op *op)
{
    uint64_t key = op->key ^ atomic_load_explicit(&f->mix, memory_order_relaxed);
    unsigned depth = sent_depth(op);
    if (!atomic_load_explicit(&f->is_wanted, memory_order_relaxed) ||
        !feed_wants(&f->feed, key, depth)) {
        return true;
    }
    const struct tt_store store = {
        key, op->score, (uint8_t)depth, op->bound & (uint8_t)~TT_BESIDE, op->move, 0};
    bool is_put = feed_put(&f->feed, &store);
    if (!is_put) {
        atomic_fetch_add_explicit(&f->lost, 1, memory_order_relaxed);
    }
    return is_put;
}

uint64_t lib_feed_due(const struct lib *l)
{
    const struct lib_feed *f = l->feed;
    if (f == NULL) {
        return UINT64_MAX;
    }
    bool is_idle = feed_waiting(&f->feed) == 0 && atomic_load(&f->is_wanted);
    return is_idle ? f->wake_us : atomic_load(&f->feed.due_us);
}

void lib_feed_serve(struct lib *l, uint64_t now_us)
{
    struct lib_feed *f = l->feed;
    struct tt_store out[FEED_MAX];
    if (f == NULL) {
        return;
    }
    bool has_peers = now_us < f->received_us + PEERS_US;
    unsigned count =
        feed_take_due(&f->feed, now_us, has_peers ? FEED_PAUSE_US : FEED_PROBE_US, out);
    if (count > 0) {
        unsigned sent = client_share(l->lane.client, out, count, 0, now_us);
        atomic_fetch_add(&f->lost, count - sent);
    }
    if (now_us >= f->received_us + SILENT_US && atomic_load(&f->feed.least) > f->limits.first) {
        feed_received(&f->feed, &f->limits, 0, 0, now_us);
    }
    f->wake_us = has_peers ? now_us + FEED_PAUSE_US : UINT64_MAX;
    atomic_store(&f->is_wanted, has_peers || feed_is_due(&f->feed, now_us));
}

/* ---- taking ---- */

/* The own ones come back where a shard collects those of many senders; foreign claims are for
 * abdada's own search. */
void lib_feed_on_shared(struct lib *l, const struct proto_share *share)
{
    struct lib_feed *f = l->feed;
    if (f == NULL || share->list.count == 0 || share->table_id == f->table_id) {
        return;
    }
    uint64_t now = lib_now(l);
    f->received_us = now;
    feed_received(&f->feed, &f->limits, share->list.count, share->load, now);
    for (uint32_t i = 0; i < share->list.count; i++) {
        if (share->list.at[i].bound == TT_CLAIM) {
            continue;
        }
        if (f->count == LIB_RECEIVED_MAX) {
            atomic_fetch_add(&f->lost, share->list.count - i);
            return;
        }
        f->received[(f->first + f->count++) % LIB_RECEIVED_MAX] = share->list.at[i];
    }
}

int lib_feed_take(struct lib *l, struct abdada_store_op *out, size_t capacity)
{
    struct lib_feed *f = l->feed;
    int count = 0;
    for (; (size_t)count < capacity && f->count > 0; count++, f->count--) {
        const struct tt_store *r = &f->received[f->first];
        out[count] =
            (struct abdada_store_op){r->key ^ l->mix, r->score, r->move, 0, r->depth, r->bound};
        f->first = (f->first + 1) % LIB_RECEIVED_MAX;
    }
    return count;
}
