#include "common/tt/inflight.h"

#include "common/rng.h"

#include <stdlib.h>
#include <string.h>

/* Links are indices into the pools; 0 is the end of a list. Most nodes have one holder, who is
 * found through the node; where a second has come, all are found by hash. */
struct tt_hold {
    uint64_t since_us;
    uint32_t session;
    uint32_t node;
    uint32_t next_hash;
    uint32_t next_node, prev_node;
    uint32_t next_session, prev_session;
    uint32_t next_age, prev_age;
    uint16_t slot;
    bool is_hashed;
};

struct tt_node {
    uint64_t key;
    uint32_t count;
    uint32_t first; /* hold */
    uint32_t next_hash;
    uint8_t depth;
};

/* Keys are well mixed by those who send them; one multiplication spreads those that are not. */
static uint64_t node_hash(uint64_t key, uint8_t depth)
{
    return (key + depth * UINT64_C(0x9e3779b97f4a7c15)) * UINT64_C(0xbf58476d1ce4e5b9) >> 32;
}

static uint32_t *node_head(const struct tt_inflight *t, uint64_t key, uint8_t depth)
{
    return &t->node_bucket[node_hash(key, depth) & t->mask];
}

void tt_inflight_prefetch(const struct tt_inflight *t, uint64_t key, uint8_t depth)
{
    __builtin_prefetch(node_head(t, key, depth));
}

static uint32_t *hold_head(const struct tt_inflight *t, uint32_t node, struct tt_holder who)
{
    uint64_t h = (uint64_t)node << 48 ^ (uint64_t)who.session << 16 ^ who.slot ^ node >> 16;
    return &t->hold_bucket[rng_mix(h) & t->mask];
}

/* Sessions share chains by hash; a chain is filtered by the session's own number. */
static uint32_t *session_head(const struct tt_inflight *t, uint32_t session)
{
    return &t->session_first[session * UINT64_C(0xbf58476d1ce4e5b9) >> 32 & t->mask];
}

enum err tt_inflight_open(struct tt_inflight *t, uint32_t capacity)
{
    struct tt_inflight fresh = {.capacity = capacity, .mask = 1};
    if (capacity < 1 || capacity > 1u << 24) {
        return ERR_RANGE;
    }
    while (fresh.mask < capacity) {
        fresh.mask = fresh.mask * 2;
    }
    fresh.hold = calloc((size_t)capacity + 1, sizeof *fresh.hold);
    fresh.node = calloc((size_t)capacity + 1, sizeof *fresh.node);
    fresh.hold_bucket = calloc(fresh.mask, sizeof *fresh.hold_bucket);
    fresh.node_bucket = calloc(fresh.mask, sizeof *fresh.node_bucket);
    fresh.session_first = calloc(fresh.mask, sizeof *fresh.session_first);
    if (fresh.hold == NULL || fresh.node == NULL || fresh.hold_bucket == NULL ||
        fresh.node_bucket == NULL || fresh.session_first == NULL) {
        tt_inflight_close(&fresh);
        return ERR_NOMEM;
    }
    for (uint32_t i = capacity; i >= 1; i--) {
        fresh.hold[i].next_hash = fresh.free_hold;
        fresh.free_hold = i;
        fresh.node[i].next_hash = fresh.free_node;
        fresh.free_node = i;
    }
    fresh.mask--;
    *t = fresh;
    return ERR_OK;
}

enum err tt_inflight_limit(struct tt_inflight *t, uint32_t quota, unsigned bits)
{
    CHECK(t->holds == 0 && t->session_holds == NULL && bits < 32);
    t->session_holds = calloc((size_t)1 << bits, sizeof *t->session_holds);
    if (t->session_holds == NULL) {
        return ERR_NOMEM;
    }
    t->session_mask = (UINT32_C(1) << bits) - 1;
    t->quota = quota;
    return ERR_OK;
}

void tt_inflight_close(struct tt_inflight *t)
{
    free(t->session_holds);
    free(t->hold);
    free(t->node);
    free(t->hold_bucket);
    free(t->node_bucket);
    free(t->session_first);
    memset(t, 0, sizeof *t);
}

/* The link to the node of (key, depth), or to where it would be: that one is 0. */
static uint32_t *find_link(const struct tt_inflight *t, uint64_t key, uint8_t depth)
{
    uint32_t *link = node_head(t, key, depth);
    while (*link != 0 && (t->node[*link].key != key || t->node[*link].depth != depth)) {
        link = &t->node[*link].next_hash;
    }
    return link;
}

static uint32_t find_node(const struct tt_inflight *t, uint64_t key, uint8_t depth)
{
    return *find_link(t, key, depth);
}

static bool is_held_by(const struct tt_hold *hold, uint32_t node, struct tt_holder who)
{
    return hold->node == node && hold->session == who.session && hold->slot == who.slot;
}

/* In a node that has holders. */
static uint32_t find_hold(const struct tt_inflight *t, uint32_t n, struct tt_holder who)
{
    uint32_t h = t->node[n].first;
    if (t->node[n].count == 1) {
        return is_held_by(&t->hold[h], n, who) ? h : 0;
    }
    h = *hold_head(t, n, who);
    while (h != 0 && !is_held_by(&t->hold[h], n, who)) {
        h = t->hold[h].next_hash;
    }
    return h;
}

static void hash_hold(struct tt_inflight *t, uint32_t h)
{
    struct tt_hold *hold = &t->hold[h];
    if (!hold->is_hashed) {
        struct tt_holder who = {hold->session, hold->slot};
        uint32_t *head = hold_head(t, hold->node, who);
        hold->next_hash = *head;
        hold->is_hashed = true;
        *head = h;
    }
}

static void unhash_hold(struct tt_inflight *t, uint32_t h)
{
    struct tt_hold *hold = &t->hold[h];
    struct tt_holder who = {hold->session, hold->slot};
    uint32_t *head = hold_head(t, hold->node, who);
    while (*head != h) {
        CHECK(*head != 0);
        head = &t->hold[*head].next_hash;
    }
    *head = hold->next_hash;
    hold->is_hashed = false;
}

static void age_unlink(struct tt_inflight *t, uint32_t h)
{
    struct tt_hold *hold = &t->hold[h];
    *(hold->prev_age ? &t->hold[hold->prev_age].next_age : &t->oldest) = hold->next_age;
    *(hold->next_age ? &t->hold[hold->next_age].prev_age : &t->newest) = hold->prev_age;
}

static void age_append(struct tt_inflight *t, uint32_t h, uint64_t now_us)
{
    struct tt_hold *hold = &t->hold[h];
    hold->since_us = now_us;
    hold->next_age = 0;
    hold->prev_age = t->newest;
    *(t->newest ? &t->hold[t->newest].next_age : &t->oldest) = h;
    t->newest = h;
}

static void free_node(struct tt_inflight *t, uint32_t *link)
{
    uint32_t n = *link;
    *link = t->node[n].next_hash;
    t->node[n].next_hash = t->free_node;
    t->free_node = n;
    t->nodes--;
}

/* `link` is that to its node; NULL: to be found. Returns how many holders the node has left. */
static unsigned remove_hold(struct tt_inflight *t, uint32_t h, uint32_t *link)
{
    struct tt_hold *hold = &t->hold[h];
    struct tt_node *node = &t->node[hold->node];

    if (hold->is_hashed) {
        unhash_hold(t, h);
    }
    *(hold->prev_node ? &t->hold[hold->prev_node].next_node : &node->first) = hold->next_node;
    if (hold->next_node) {
        t->hold[hold->next_node].prev_node = hold->prev_node;
    }
    *(hold->prev_session ? &t->hold[hold->prev_session].next_session
                         : session_head(t, hold->session)) = hold->next_session;
    if (hold->next_session) {
        t->hold[hold->next_session].prev_session = hold->prev_session;
    }
    age_unlink(t, h);
    if (t->quota > 0) {
        t->session_holds[hold->session & t->session_mask]--;
    }
    CHECK(node->count > 0);
    unsigned left = --node->count;
    if (left == 0) {
        free_node(t, link != NULL ? link : find_link(t, node->key, node->depth));
    }
    hold->next_hash = t->free_hold;
    t->free_hold = h;
    t->holds--;
    return left;
}

unsigned tt_inflight_count(const struct tt_inflight *t, uint64_t key, uint8_t depth,
                           struct tt_holder holder, bool *is_inside)
{
    uint32_t n = find_node(t, key, depth);
    *is_inside = n != 0 && find_hold(t, n, holder) != 0;
    return n == 0 ? 0 : t->node[n].count;
}

static uint32_t make_node(struct tt_inflight *t, uint64_t key, uint8_t depth)
{
    uint32_t n = t->free_node;
    CHECK(n != 0); /* a node has a hold at least, and there is one record for every hold */
    t->free_node = t->node[n].next_hash;
    t->node[n] = (struct tt_node){.key = key, .depth = depth};
    t->nodes++;
    return n;
}

static void renew(struct tt_inflight *t, uint32_t h, uint64_t now_us)
{
    age_unlink(t, h);
    age_append(t, h, now_us);
}

/* `link` is that to the node, or 0 and to be set. */
static unsigned add_hold(struct tt_inflight *t, uint32_t *link, uint64_t key, uint8_t depth,
                         struct tt_holder holder, uint64_t now_us)
{
    uint32_t h = t->free_hold;
    if (h == 0) {
        t->refused++;
        return 0;
    }
    if (t->quota > 0) {
        uint32_t *holds = &t->session_holds[holder.session & t->session_mask];
        if (*holds >= t->quota) {
            t->over_quota++;
            return 0;
        }
        ++*holds;
    }
    t->free_hold = t->hold[h].next_hash;
    if (*link == 0) {
        *link = make_node(t, key, depth);
    }
    uint32_t n = *link;
    struct tt_node *node = &t->node[n];
    uint32_t *session = session_head(t, holder.session);
    t->hold[h] = (struct tt_hold){
        .session = holder.session,
        .slot = holder.slot,
        .node = n,
        .next_node = node->first,
        .next_session = *session,
    };
    if (node->first) {
        t->hold[node->first].prev_node = h;
        hash_hold(t, node->first); /* when it was alone until now */
        hash_hold(t, h);
    }
    if (*session) {
        t->hold[*session].prev_session = h;
    }
    node->first = *session = h;
    age_append(t, h, now_us);
    t->holds++;
    return ++node->count;
}

unsigned tt_inflight_join(struct tt_inflight *t, uint64_t key, uint8_t depth,
                          struct tt_holder holder, uint64_t now_us)
{
    uint32_t *link = find_link(t, key, depth), n = *link;
    uint32_t h = n != 0 ? find_hold(t, n, holder) : 0;
    if (h != 0) {
        renew(t, h, now_us);
        return t->node[n].count;
    }
    return add_hold(t, link, key, depth, holder, now_us);
}

unsigned tt_inflight_visit(struct tt_inflight *t, uint64_t key, uint8_t depth,
                           struct tt_holder holder, bool exclusive, uint64_t now_us, bool *is_busy)
{
    uint32_t *link = find_link(t, key, depth), n = *link;
    uint32_t h = n != 0 ? find_hold(t, n, holder) : 0;
    unsigned count = n != 0 ? t->node[n].count : 0;
    *is_busy = exclusive && count > (h != 0);
    if (*is_busy) {
        return count;
    }
    if (h != 0) {
        renew(t, h, now_us);
        return count;
    }
    unsigned joined = add_hold(t, link, key, depth, holder, now_us);
    return joined != 0 ? joined : count;
}

unsigned tt_inflight_leave(struct tt_inflight *t, uint64_t key, uint8_t depth,
                           struct tt_holder holder, bool *was_inside)
{
    uint32_t *link = find_link(t, key, depth), n = *link;
    uint32_t h = n != 0 ? find_hold(t, n, holder) : 0;
    *was_inside = h != 0;
    if (h != 0) {
        return remove_hold(t, h, link);
    }
    return n == 0 ? 0 : t->node[n].count;
}

unsigned tt_inflight_holders(const struct tt_inflight *t, uint64_t key, uint8_t depth,
                             struct tt_holder *out, unsigned room)
{
    uint32_t n = find_node(t, key, depth);
    unsigned copied = 0;
    for (uint32_t h = n ? t->node[n].first : 0; h != 0 && copied < room; h = t->hold[h].next_node) {
        out[copied++] = (struct tt_holder){t->hold[h].session, t->hold[h].slot};
    }
    return copied;
}

unsigned tt_inflight_of_session(const struct tt_inflight *t, uint32_t session)
{
    unsigned count = 0;
    for (uint32_t h = *session_head(t, session); h != 0; h = t->hold[h].next_session) {
        count += t->hold[h].session == session;
    }
    return count;
}

unsigned tt_inflight_drop_session(struct tt_inflight *t, uint32_t session)
{
    unsigned dropped = 0;
    for (uint32_t h = *session_head(t, session); h != 0;) {
        uint32_t next = t->hold[h].next_session;
        if (t->hold[h].session == session) {
            remove_hold(t, h, NULL);
            dropped++;
        }
        h = next;
    }
    return dropped;
}

unsigned tt_inflight_expire(struct tt_inflight *t, uint64_t before_us)
{
    unsigned dropped = 0;
    while (t->oldest != 0 && t->hold[t->oldest].since_us <= before_us) {
        remove_hold(t, t->oldest, NULL);
        dropped++;
    }
    return dropped;
}
