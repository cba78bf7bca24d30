#include "worker/table/broadcast.h"

#include <string.h>

enum {
    SHARE_EVERY_US = 2000, /* a message costs more than its results are worth in a millisecond */
    CLAIMS_RELAYS = 3, /* shards: fewer messages to read than through all, and one may be slow */
    PROBE_EVERY_US = 10000, /* while all others may have the same table */
    WINDOW_US = 10000, /* between two looks at what came */
    MOST_DEPTH = 6, /* bound of the least depth */
    /* Bounds of the least depth at selection full: a shallower result is found sooner than taken
     * from a message. */
    LEAST_FULL = 8,
    MOST_FULL = 14,
    /* What a host takes a second: 5% of the time of its searchers (50 ns a result), and 60% of a
     * network card of 1 Gb/s. */
    TAKEN_EACH_MAX = 1000000,
    TAKEN_MAX = 5700000,
};

static unsigned lowest(const struct share *s)
{
    return SHARE_STEPS * (s->local->is_full && s->depth < LEAST_FULL ? LEAST_FULL : s->depth);
}

static unsigned highest(const struct share *s)
{
    return SHARE_STEPS * (s->local->is_full ? MOST_FULL : MOST_DEPTH);
}

static unsigned first(const struct share *s)
{
    return s->local->is_full ? lowest(s) : SHARE_DEPTH_FIRST * SHARE_STEPS;
}

/* The search before may have been of another selection. */
void share_begin(struct share *s)
{
    atomic_uint *at = &embedded_share_queue(s->local->table)->least;
    unsigned least = atomic_load_explicit(at, memory_order_relaxed);
    if (least < lowest(s) || least > highest(s)) {
        atomic_store_explicit(at, first(s), memory_order_relaxed);
    }
    s->count = 0;
    s->wanted = s->claims = s->relies = false;
}

bool share_has_peers(const struct share *s, uint64_t now_us)
{
    return now_us < embedded_other_table_until_us(s->local->table);
}

static bool is_due(const struct share_queue *q, uint64_t now_us)
{
    return now_us >= atomic_load_explicit(&q->due_us, memory_order_relaxed);
}

static unsigned waiting(const struct share_queue *q)
{
    return atomic_load_explicit(&q->count, memory_order_relaxed);
}

/* Whether the queue takes results of this searcher's namespace. The caller has the lock. Results of
 * another namespace that are long overdue are those of a job that ended, which nobody sends any
 * more: they make room. */
static bool enter_queue(struct share_queue *q, uint64_t namespace_id, uint64_t now_us)
{
    uint64_t due_us = atomic_load_explicit(&q->due_us, memory_order_relaxed);
    if (q->namespace_id != namespace_id && now_us > due_us + SHARE_EVERY_US) {
        atomic_store_explicit(&q->count, 0, memory_order_relaxed);
    }
    if (waiting(q) == 0) {
        q->namespace_id = namespace_id;
    }
    return q->namespace_id == namespace_id;
}

void share_send(struct share *s, uint64_t now_us)
{
    struct share_queue *q = embedded_share_queue(s->local->table);
    struct tt_store out[CLIENT_SHARE_MAX];
    unsigned moved = 0;
    do {
        unsigned sent = 0;
        pthread_mutex_lock(&q->lock);
        if (enter_queue(q, s->local->namespace_id, now_us)) {
            unsigned count = waiting(q), left = s->count - moved;
            unsigned n = left < CLIENT_SHARE_MAX - count ? left : CLIENT_SHARE_MAX - count;
            memcpy(&q->list[count], &s->list[moved], n * sizeof *out);
            moved += n;
            count += n;
            if (count == CLIENT_SHARE_MAX || (count > 0 && is_due(q, now_us))) {
                uint64_t pause_us = s->claims && s->claims_pause_us > 0 ? s->claims_pause_us
                                    : share_has_peers(s, now_us)        ? SHARE_EVERY_US
                                                                        : PROBE_EVERY_US;
                memcpy(out, q->list, count * sizeof *out);
                sent = count;
                count = 0;
                atomic_store_explicit(&q->due_us, now_us + pause_us, memory_order_relaxed);
            }
            atomic_store_explicit(&q->count, count, memory_order_relaxed);
        } else if (now_us < s->due_us && s->count - moved < SHARE_OWN_MAX) {
            pthread_mutex_unlock(&q->lock);
            s->count -= moved;
            memmove(s->list, &s->list[moved], s->count * sizeof *s->list);
            return;
        } else { /* one message has results of one namespace, that of the sender's session */
            s->due_us = now_us + SHARE_EVERY_US;
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
        atomic_store_explicit(&embedded_share_queue(s->local->table)->due_us, 0,
                              memory_order_relaxed);
        share_send(s, now_us);
    }
    s->claims = s->relies = false;
}

/* What is said of a node of the least depth and more is sent. */
static bool is_deep_enough(const struct share *s, uint64_t key, uint8_t depth)
{
    const struct share_queue *q = embedded_share_queue(s->local->table);
    unsigned steps = depth * SHARE_STEPS + (unsigned)(key >> 61);
    return depth <= PROTO_RESULT_DEPTH_MAX &&
           steps >= atomic_load_explicit(&q->least, memory_order_relaxed);
}

static bool is_claimable(const struct share *s, uint8_t depth)
{
    return s->claims && depth >= EMBEDDED_FOREIGN_DEPTH;
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

/* Moves the least depth by one step, so that all hosts come to the same one. */
static void adapt(const struct share *s, struct share_queue *q, uint64_t now_us)
{
    uint64_t elapsed_us = now_us - q->window_us;
    if (elapsed_us < WINDOW_US) {
        return;
    }
    uint64_t most = (uint64_t)TAKEN_EACH_MAX * embedded_slots(s->local->table);
    most = most < TAKEN_MAX ? most : TAKEN_MAX;
    uint64_t rate = q->window_taken * 1000000 / elapsed_us;
    unsigned least = atomic_load_explicit(&q->least, memory_order_relaxed);
    if (rate > most || q->window_load >= PROTO_LOAD_BUSY) {
        least += least < highest(s);
    } else if (rate * 4 < most * 3 && q->window_load < PROTO_LOAD_BUSY / 2) {
        least -= least > lowest(s);
    }
    atomic_store_explicit(&q->least, least, memory_order_relaxed);
    q->window_us = now_us;
    q->window_taken = 0;
    q->window_load = 0;
}

void share_take(struct share *s, const struct proto_share *message, uint64_t now_us,
                uint64_t until_us)
{
    struct share_queue *q = embedded_share_queue(s->local->table);
    embedded_saw_other_table(s->local->table, until_us);
    embedded_take(s->local, message->list.at, message->list.count, now_us);
    pthread_mutex_lock(&q->lock); /* a lying shard sends results to all searchers, not to one */
    q->window_taken += message->list.count;
    q->window_load = message->load > q->window_load ? message->load : q->window_load;
    adapt(s, q, now_us);
    pthread_mutex_unlock(&q->lock);
}

void share_serve(struct share *s, bool has_others, uint64_t now_us)
{
    struct share_queue *q = embedded_share_queue(s->local->table);
    bool has_peers = share_has_peers(s, now_us);
    if (s->depth == 0) {
        return;
    }
    if (s->count > 0 || (waiting(q) > 0 && is_due(q, now_us))) {
        share_send(s, now_us);
    }
    if (s->local->slot == 0 && !has_peers &&
        atomic_load_explicit(&q->least, memory_order_relaxed) > first(s)) {
        pthread_mutex_lock(&q->lock);
        adapt(s, q, now_us); /* else no host sends results so shallow, so none finds a peer */
        pthread_mutex_unlock(&q->lock);
    }
    /* Signs of others may come from peers with the same table. So a few results are sent now and
     * then: a peer with another table answers with its own. */
    s->wanted = has_peers || (has_others && is_due(q, now_us));
    s->claims = has_peers && s->local->counts_foreign;
    s->relies =
        s->claims && s->claims_pause_us > 0 && embedded_receives_claims(s->local->table, now_us);
}
