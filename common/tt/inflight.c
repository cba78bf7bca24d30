#include "common/tt/inflight.h"

#include "common/memory.h"
#include "common/rng.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* A holder and the depth of its node, for one comparison: session 32, slot 16, depth 8, hashed 1
 * of 8. */
enum { MEMBER_HASHED = 1 };

struct link {
    struct link *newer, *older;
};

/* One holder of one node: a cache line. Numbered links are indices into the pool; 0 is the end of a
 * list, an entry of no holders. Most nodes have one holder, and then its entry is the node. With
 * more holders the node is the first of its list, and each entry is found by hash. */
struct tt_inflight_entry {
    _Alignas(64) struct link by_age; /* ring of the session; first: entry_at */
    uint64_t key;
    uint64_t member;
    uint64_t renewed_us;
    uint32_t next_hash; /* the first of a node: the next node's first; free: the next free */
    uint32_t count; /* the first of a node: of its holders */
    uint32_t next_node, prev_node;
    uint32_t next_holder; /* if hashed */
};

_Static_assert(sizeof(struct tt_inflight_entry) == 64 &&
                   offsetof(struct tt_inflight_entry, by_age) == 0,
               "a cache line, found through its first member");

/* Entries of the sessions whose numbers end alike, by age. */
struct tt_session_entries {
    _Alignas(32) struct link ring;
    uint32_t entries;
};

_Static_assert(sizeof(struct tt_session_entries) == TT_INFLIGHT_LIST_BYTES, "as the header says");

static uint64_t member_of(struct tt_holder holder, uint8_t depth)
{
    return (uint64_t)holder.session << 32 | (uint64_t)holder.slot << 16 | (uint64_t)depth << 8;
}

static struct tt_holder holder_of(uint64_t member)
{
    return (struct tt_holder){(uint32_t)(member >> 32), (uint16_t)(member >> 16)};
}

static uint8_t depth_of(uint64_t member)
{
    return (uint8_t)(member >> 8);
}

/* Keys, depths and slots are chosen by peers: a secret before the mixing and one after it keep them
 * from choosing buckets. */
static uint32_t *node_head(const struct tt_inflight *t, uint64_t key, uint8_t depth)
{
    return &t->node_bucket[(rng_mix(key ^ t->secret) + depth) * t->secret >> t->shift];
}

void tt_inflight_prefetch(const struct tt_inflight *t, uint64_t key, uint8_t depth)
{
    __builtin_prefetch(node_head(t, key, depth), 1);
}

static uint32_t *holder_head(const struct tt_inflight *t, uint64_t key, uint64_t member)
{
    uint64_t hash = rng_mix((member | MEMBER_HASHED) ^ t->secret) + key;
    return &t->holder_bucket[rng_mix(hash) * t->secret >> t->shift];
}

static struct tt_session_entries *session_list(const struct tt_inflight *t, uint64_t member)
{
    return &t->session[member >> 32 & t->session_mask];
}

enum err tt_inflight_open(struct tt_inflight *t, uint32_t capacity, uint32_t quota, unsigned bits,
                          uint64_t secret)
{
    struct tt_inflight fresh = {
        .capacity = capacity,
        .shift = 63,
        .quota = quota > 0 ? quota : UINT32_MAX,
        .session_mask = (UINT32_C(1) << bits) - 1,
        .secret = rng_next(&secret) | 1,
    };
    if (capacity < 1 || capacity > 1u << 24) {
        return ERR_RANGE;
    }
    while (UINT64_C(1) << (64 - fresh.shift) < capacity) {
        fresh.shift--;
    }
    size_t entries = (size_t)capacity + 1, buckets = (size_t)1 << (64 - fresh.shift);
    size_t lists = (size_t)1 << bits;
    fresh.entry = aligned_alloc(sizeof *fresh.entry, entries * sizeof *fresh.entry);
    fresh.node_bucket = calloc(buckets, sizeof *fresh.node_bucket);
    fresh.holder_bucket = calloc(buckets, sizeof *fresh.holder_bucket);
    fresh.session = memory_lines(lists * sizeof *fresh.session);
    if (fresh.entry == NULL || fresh.node_bucket == NULL || fresh.holder_bucket == NULL ||
        fresh.session == NULL) {
        tt_inflight_close(&fresh);
        return ERR_NOMEM;
    }
    fresh.entry[0] = (struct tt_inflight_entry){.count = 0};
    for (size_t i = 0; i < lists; i++) {
        struct link *ring = &fresh.session[i].ring;
        fresh.session[i] = (struct tt_session_entries){.ring = {ring, ring}};
    }
    *t = fresh;
    return ERR_OK;
}

void tt_inflight_close(struct tt_inflight *t)
{
    free(t->session);
    free(t->entry);
    free(t->node_bucket);
    free(t->holder_bucket);
    memset(t, 0, sizeof *t);
}

/* ---- a session's ring, by age: newer than its head is the oldest ---- */

static void ring_append(struct link *ring, struct link *link)
{
    link->newer = ring;
    link->older = ring->older;
    ring->older->newer = link;
    ring->older = link;
}

static void ring_remove(const struct link *link)
{
    link->older->newer = link->newer;
    link->newer->older = link->older;
}

static struct tt_inflight_entry *entry_at(struct link *link)
{
    return (struct tt_inflight_entry *)link;
}

/* ---- entries ---- */

/* An entry of that holder, in the list of its session; 0: refused. */
static uint32_t make_entry(struct tt_inflight *t, uint64_t key, uint64_t member, uint64_t now_us)
{
    struct tt_session_entries *list = session_list(t, member);
    if (list->entries >= t->quota) {
        t->over_quota++;
        return 0;
    }
    uint32_t e = t->first_free;
    if (e != 0) {
        t->first_free = t->entry[e].next_hash;
    } else if (t->used < t->capacity) {
        e = ++t->used;
    } else {
        t->refused++;
        return 0;
    }
    struct tt_inflight_entry *entry = &t->entry[e];
    entry->key = key;
    entry->member = member;
    entry->renewed_us = now_us;
    entry->next_hash = entry->next_node = entry->prev_node = 0;
    entry->count = 1;
    ring_append(&list->ring, &entry->by_age);
    list->entries++;
    t->entries++;
    CHECK_THAT(t->entries <= t->used, "in flight: an entry was used at some time");
    return e;
}

static void free_entry(struct tt_inflight *t, uint32_t e)
{
    struct tt_inflight_entry *entry = &t->entry[e];
    struct tt_session_entries *list = session_list(t, entry->member);
    CHECK_THAT(list->entries > 0 && t->entries > 0, "in flight: what leaves its list was counted");
    ring_remove(&entry->by_age);
    list->entries--;
    t->entries--;
    entry->next_hash = t->first_free;
    t->first_free = e;
}

/* ---- nodes of several holders: few ---- */

static void hash_entry(struct tt_inflight *t, uint32_t e)
{
    struct tt_inflight_entry *entry = &t->entry[e];
    if (!(entry->member & MEMBER_HASHED)) {
        uint32_t *head = holder_head(t, entry->key, entry->member);
        entry->next_holder = *head;
        entry->member |= MEMBER_HASHED;
        *head = e;
    }
}

/* Second in the list: the first entry keeps the count of the node. */
static void insert_holder(struct tt_inflight *t, uint32_t first, uint32_t e)
{
    struct tt_inflight_entry *node = &t->entry[first], *entry = &t->entry[e];
    CHECK_THAT(first != e && node->count > 0 && node->prev_node == 0,
               "in flight: the first of a node counts its holders");
    entry->prev_node = first;
    entry->next_node = node->next_node;
    if (node->next_node != 0) {
        t->entry[node->next_node].prev_node = e;
    }
    node->next_node = e;
    node->count++;
    t->helpers++;
    hash_entry(t, first); /* when it was alone until now */
    hash_entry(t, e);
}

/* `link` is that to the node, of several holders. */
static unsigned remove_holder(struct tt_inflight *t, uint32_t *link, uint32_t e)
{
    struct tt_inflight_entry *entry = &t->entry[e];
    unsigned left = t->entry[*link].count - 1;
    CHECK_THAT((entry->prev_node == 0) == (*link == e), "in flight: one holder is the first");
    CHECK_THAT(t->helpers > 0 && left < t->entries, "in flight: further holders are counted");
    if (entry->prev_node != 0) {
        t->entry[entry->prev_node].next_node = entry->next_node;
    } else {
        t->entry[entry->next_node].next_hash = entry->next_hash;
        *link = entry->next_node;
    }
    if (entry->next_node != 0) {
        t->entry[entry->next_node].prev_node = entry->prev_node;
    }
    t->entry[*link].count = left;
    t->helpers--;
    return left;
}

/* ---- all nodes ---- */

/* The link to the node of (key, depth), or to where it would be: that one is 0. */
static uint32_t *find_link(const struct tt_inflight *t, uint64_t key, uint8_t depth)
{
    uint32_t *link = node_head(t, key, depth);
    while (*link != 0 &&
           (t->entry[*link].key != key || depth_of(t->entry[*link].member) != depth)) {
        link = &t->entry[*link].next_hash;
    }
    return link;
}

/* In the node whose first holder is `first`, 0 for none; 0: not there. */
static uint32_t find_entry(const struct tt_inflight *t, uint32_t first, uint64_t key,
                           uint64_t member)
{
    member |= MEMBER_HASHED;
    if (t->entry[first].count <= 1) {
        return (t->entry[first].member | MEMBER_HASHED) == member ? first : 0;
    }
    uint32_t e = *holder_head(t, key, member);
    while (e != 0 && (t->entry[e].key != key || t->entry[e].member != member)) {
        e = t->entry[e].next_holder;
    }
    return e;
}

/* `link` is that to its node. Returns how many holders the node has left. */
static unsigned remove_entry(struct tt_inflight *t, uint32_t *link, uint32_t e)
{
    unsigned left = 0;
    if (t->entry[e].member & MEMBER_HASHED) {
        uint32_t *hashed = holder_head(t, t->entry[e].key, t->entry[e].member);
        while (*hashed != e) {
            CHECK(*hashed != 0);
            hashed = &t->entry[*hashed].next_holder;
        }
        *hashed = t->entry[e].next_holder;
    }
    CHECK_THAT(*link != 0, "in flight: an entry's node is found by its key");
    if (t->entry[*link].count > 1) {
        left = remove_holder(t, link, e);
    } else {
        *link = t->entry[e].next_hash;
    }
    free_entry(t, e);
    return left;
}

static void remove_listed(struct tt_inflight *t, const struct tt_inflight_entry *entry)
{
    remove_entry(t, find_link(t, entry->key, depth_of(entry->member)),
                 (uint32_t)(entry - t->entry));
}

unsigned tt_inflight_count(const struct tt_inflight *t, uint64_t key, uint8_t depth)
{
    return t->entry[*find_link(t, key, depth)].count;
}

/* The general case of visit and of leave. Those two handle a bucket without nodes, and a first node
 * with the one holder itself; what follows is kept out of line, so that they stay short. */
__attribute__((noinline)) static unsigned visit_any(struct tt_inflight *t, uint64_t key,
                                                    uint64_t member, bool exclusive,
                                                    uint64_t now_us, bool *is_busy)
{
    uint32_t *link = find_link(t, key, depth_of(member)), n = *link;
    uint32_t e = find_entry(t, n, key, member), count = t->entry[n].count;
    CHECK_THAT((n != 0) == (count > 0), "in flight: a node has holders");
    *is_busy = exclusive && count > (e != 0);
    if (*is_busy) {
        return count;
    }
    if (e != 0) {
        struct tt_inflight_entry *entry = &t->entry[e];
        ring_remove(&entry->by_age);
        ring_append(&session_list(t, entry->member)->ring, &entry->by_age);
        entry->renewed_us = now_us;
        return count;
    }
    e = make_entry(t, key, member, now_us);
    if (e == 0) {
        return count;
    }
    if (n != 0) {
        insert_holder(t, n, e);
    } else {
        *link = e;
    }
    return count + 1;
}

__attribute__((noinline)) static unsigned leave_any(struct tt_inflight *t, uint64_t key,
                                                    uint64_t member)
{
    uint32_t *link = find_link(t, key, depth_of(member)), n = *link;
    uint32_t e = find_entry(t, n, key, member);
    return e != 0 ? remove_entry(t, link, e) : t->entry[n].count;
}

unsigned tt_inflight_visit(struct tt_inflight *t, uint64_t key, uint8_t depth,
                           struct tt_holder holder, bool exclusive, uint64_t now_us, bool *is_busy)
{
    uint32_t *head = node_head(t, key, depth);
    uint64_t member = member_of(holder, depth);
    if (*head != 0) {
        return visit_any(t, key, member, exclusive, now_us, is_busy);
    }
    *is_busy = false;
    return (*head = make_entry(t, key, member, now_us)) != 0;
}

unsigned tt_inflight_leave(struct tt_inflight *t, uint64_t key, uint8_t depth,
                           struct tt_holder holder)
{
    uint32_t *head = node_head(t, key, depth), e = *head;
    uint64_t member = member_of(holder, depth);
    const struct tt_inflight_entry *entry = &t->entry[e];
    if (entry->key != key || entry->member != member || entry->count != 1) {
        return leave_any(t, key, member);
    }
    *head = entry->next_hash;
    free_entry(t, e);
    return 0;
}

unsigned tt_inflight_holders(const struct tt_inflight *t, uint64_t key, uint8_t depth,
                             struct tt_holder *out, unsigned room)
{
    unsigned copied = 0;
    for (uint32_t e = *find_link(t, key, depth); e != 0 && copied < room;
         e = t->entry[e].next_node) {
        out[copied++] = holder_of(t->entry[e].member);
    }
    return copied;
}

unsigned tt_inflight_of_session(const struct tt_inflight *t, uint32_t session)
{
    const struct link *ring = &session_list(t, (uint64_t)session << 32)->ring;
    unsigned count = 0;
    for (struct link *at = ring->newer; at != ring; at = at->newer) {
        count += holder_of(entry_at(at)->member).session == session;
    }
    return count;
}

unsigned tt_inflight_listed(const struct tt_inflight *t, uint32_t session)
{
    return session_list(t, (uint64_t)session << 32)->entries;
}

unsigned tt_inflight_drop_session(struct tt_inflight *t, uint32_t session)
{
    const struct link *ring = &session_list(t, (uint64_t)session << 32)->ring;
    unsigned dropped = 0;
    for (struct link *at = ring->newer; at != ring;) {
        const struct tt_inflight_entry *entry = entry_at(at);
        at = at->newer;
        if (holder_of(entry->member).session == session) {
            remove_listed(t, entry);
            dropped++;
        }
    }
    CHECK_THAT((tt_inflight_listed(t, session) == 0) == (ring->newer == ring),
               "in flight: a list that counts none is empty");
    return dropped;
}

unsigned tt_inflight_expire(struct tt_inflight *t, uint64_t before_us)
{
    unsigned dropped = 0;
    for (uint32_t i = 0; i <= t->session_mask && t->entries > 0; i++) {
        const struct link *ring = &t->session[i].ring;
        while (ring->newer != ring && entry_at(ring->newer)->renewed_us <= before_us) {
            remove_listed(t, entry_at(ring->newer));
            dropped++;
        }
    }
    CHECK_THAT(t->helpers <= t->entries, "in flight: a node has a first holder");
    return dropped;
}
