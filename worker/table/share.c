#include "worker/table/share.h"

#include <string.h>

enum {
    CLAIMS_RELAYS = 3, /* shards: fewer messages to read than through all, and one may be slow */
    DEPTH_FIRST = 3, /* the least depth at first ... */
    DEPTH_MAX = 6, /* ... and its bound */
    /* Bounds of the least depth at selection full: a shallower result is found sooner than taken
     * from a message. */
    FULL_MIN = 8,
    FULL_MAX = 14,
    /* What a host takes a second: 5% of the time of its searchers (50 ns a result), and 60% of a
     * network card of 1 Gb/s. */
    TAKEN_EACH_MAX = 1000000,
    TAKEN_MAX = 5700000,
};

static struct feed_limits limits_of(const struct share *s)
{
    const bool is_full = s->local->is_full;
    const unsigned lowest = is_full && s->depth < FULL_MIN ? FULL_MIN : s->depth;
    const uint64_t rate = (uint64_t)TAKEN_EACH_MAX * embedded_slots(s->local->table);
    return (struct feed_limits){.lowest = FEED_STEPS * lowest,
                                .first = FEED_STEPS * (is_full ? lowest : DEPTH_FIRST),
                                .highest = FEED_STEPS * (is_full ? FULL_MAX : DEPTH_MAX),
                                .rate_max = rate < TAKEN_MAX ? rate : TAKEN_MAX};
}

/* The search before may have been of another selection. */
void share_begin(struct share *s)
{
    const struct feed_limits limits = limits_of(s);
    feed_begin(&embedded_share_queue(s->local->table)->feed, &limits);
    s->count = 0;
    s->wanted = s->claims = s->relies = false;
}

bool share_has_peers(const struct share *s, uint64_t now_us)
{
    return now_us < embedded_other_table_until_us(s->local->table);
}

/* Whether the queue takes results of this searcher's namespace. The caller has the lock. Results of
 * another namespace that are long overdue are those of a job that ended, which nobody sends any
 * more: they make room. */
static bool enter_queue(struct share_queue *q, uint64_t namespace_id, uint64_t now_us)
{
    uint64_t due_us = atomic_load_explicit(&q->feed.due_us, memory_order_relaxed);
    if (q->namespace_id != namespace_id && now_us > due_us + FEED_PAUSE_US) {
        feed_clear(&q->feed);
    }
    if (feed_waiting(&q->feed) == 0) {
        q->namespace_id = namespace_id;
    }
    return q->namespace_id == namespace_id;
}

void share_send(struct share *s, uint64_t now_us)
{
    struct share_queue *q = embedded_share_queue(s->local->table);
    struct tt_store out[CLIENT_SHARE_MAX];
    const uint32_t pause_us = s->claims && s->claims_pause_us > 0 ? s->claims_pause_us
                              : share_has_peers(s, now_us)        ? FEED_PAUSE_US
                                                                  : FEED_PROBE_US;
    unsigned moved = 0;
    do {
        unsigned sent = 0;
        pthread_mutex_lock(&q->lock);
        if (enter_queue(q, s->local->namespace_id, now_us)) {
            while (moved < s->count && feed_put(&q->feed, &s->list[moved])) {
                moved++;
            }
            sent = feed_take_due(&q->feed, now_us, pause_us, out);
        } else if (now_us < s->due_us && s->count - moved < SHARE_OWN_MAX) {
            pthread_mutex_unlock(&q->lock);
            s->count -= moved;
            memmove(s->list, &s->list[moved], s->count * sizeof *s->list);
            return;
        } else { /* one message has results of one namespace, that of the sender's session */
            s->due_us = now_us + FEED_PAUSE_US;
            sent = s->count - moved;
            memcpy(out, &s->list[moved], sent * sizeof *out);
            moved = s->count;
        }
        pthread_mutex_unlock(&q->lock);
        if (sent > 0) {
            (void)client_share(s->client, out, sent, s->relies ? CLAIMS_RELAYS : 0, now_us);
        }
    } while (moved < s->count);
    s->count = 0;
}

void share_end(struct share *s, uint64_t now_us)
{
    if (s->claims) {
        s->due_us = 0;
        atomic_store_explicit(&embedded_share_queue(s->local->table)->feed.due_us, 0,
                              memory_order_relaxed);
        share_send(s, now_us);
    }
    s->claims = s->relies = false;
}

/* What is said of a node of the least depth and more is sent. */
static bool is_deep_enough(const struct share *s, uint64_t key, uint8_t depth)
{
    return feed_wants(&embedded_share_queue(s->local->table)->feed, key, depth);
}

static bool is_claimable(const struct share *s, uint8_t depth)
{
    return s->claims && depth >= CLAIMS_FOREIGN_DEPTH;
}

/* The begin of the node, if it has not left yet. */
static bool take_back(struct share *s, uint64_t key, uint8_t depth)
{
    for (unsigned i = s->count; i-- > 0;) {
        const struct tt_store *at = &s->list[i];
        if (at->key == key && at->depth == depth && at->bound == TT_CLAIM &&
            at->score == TT_CLAIM_BEGINS) {
            s->list[i] = s->list[--s->count];
            return true;
        }
    }
    return false;
}

bool share_claim(struct share *s, uint64_t key, uint8_t depth, enum tt_claim what)
{
    if (!is_claimable(s, depth) || (what == TT_CLAIM_ENDS && take_back(s, key, depth)) ||
        !is_deep_enough(s, key, depth)) {
        return false;
    }
    s->list[s->count++] = (struct tt_store){.key = key,
                                            .depth = depth,
                                            .score = (int16_t)what,
                                            .bound = TT_CLAIM,
                                            .move = embedded_host_name(s->local->table)};
    return s->count == SHARE_OWN_MAX;
}

bool share_add(struct share *s, const struct tt_store *result)
{
    if (is_claimable(s, result->depth)) {
        (void)take_back(s, result->key, result->depth); /* the result says it all */
    }
    if (!s->wanted || result->depth < s->depth || !is_deep_enough(s, result->key, result->depth)) {
        return false;
    }
    s->list[s->count++] = *result;
    return s->count == SHARE_OWN_MAX;
}

/* A lying shard sends results to all searchers, not to one, so this takes the lock. */
static void received(struct share *s, unsigned count, unsigned load, uint64_t now_us)
{
    struct share_queue *q = embedded_share_queue(s->local->table);
    const struct feed_limits limits = limits_of(s);
    pthread_mutex_lock(&q->lock);
    feed_received(&q->feed, &limits, count, load, now_us);
    pthread_mutex_unlock(&q->lock);
}

void share_take(struct share *s, const struct proto_share *message, uint64_t now_us,
                uint64_t until_us)
{
    embedded_saw_other_table(s->local->table, until_us);
    embedded_take(s->local, message->list.at, message->list.count, now_us);
    received(s, message->list.count, message->load, now_us);
}

void share_serve(struct share *s, bool has_others, uint64_t now_us)
{
    const struct feed *feed = &embedded_share_queue(s->local->table)->feed;
    bool has_peers = share_has_peers(s, now_us);
    if (s->depth == 0) {
        return;
    }
    if (s->count > 0 || (feed_waiting(feed) > 0 && feed_is_due(feed, now_us))) {
        share_send(s, now_us);
    }
    if (s->local->slot == 0 && !has_peers &&
        atomic_load_explicit(&feed->least, memory_order_relaxed) > limits_of(s).first) {
        received(s, 0, 0, now_us);
    }
    /* Signs of others may come from peers with the same table. So a few results are sent now and
     * then: a peer with another table answers with its own. */
    s->wanted = has_peers || (has_others && feed_is_due(feed, now_us));
    s->claims = has_peers && s->local->counts_foreign;
    s->relies =
        s->claims && s->claims_pause_us > 0 && embedded_receives_claims(s->local->table, now_us);
}
