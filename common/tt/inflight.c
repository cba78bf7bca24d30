#include "common/tt/inflight.h"

#include "common/memory.h"
#include "common/rng.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum { SESSION_BITS = 6 /* of lists, unless told how many sessions there are */ };

/* Who is at which depth, in one comparison: session 32, slot 16, depth 8, hashed 1 of 8. */
enum { PLACE_HASHED = 1 };

struct link {
    struct link *newer, *older;
};

/* One holder in one node: a cache line. Numbered links are indices into the pool; 0 is the end of a
 * list, a record of no holders. Most nodes have one holder, and then its record is the node. With
 * more holders the node is the first of its list, and each is found by hash. */
struct tt_inflight_entry {
    _Alignas(64) struct link by_age; /* ring of the session; first: hold_of */
    uint64_t key;
    uint64_t place;
    uint64_t since_us;
    uint32_t next_hash; /* the first of a node: the next node's first; free: the next free */
    uint32_t count; /* the first of a node: of its holders */
    uint32_t next_node, prev_node;
    uint32_t next_who; /* if hashed */
};

_Static_assert(sizeof(struct tt_inflight_entry) == 64 &&
                   offsetof(struct tt_inflight_entry, by_age) == 0,
               "a cache line, found through its first member");

/* Of the sessions whose numbers end alike; by age. */
struct tt_session_entries {
    _Alignas(32) struct link ring;
    uint32_t entries;
};

_Static_assert(sizeof(struct tt_session_entries) == TT_INFLIGHT_LIST_BYTES, "as the header says");

static uint64_t place_of(struct tt_holder who, uint8_t depth)
{
    return (uint64_t)who.session << 32 | (uint64_t)who.slot << 16 | (uint64_t)depth << 8;
}

static struct tt_holder holder_of(uint64_t place)
{
    return (struct tt_holder){(uint32_t)(place >> 32), (uint16_t)(place >> 16)};
}

static uint8_t depth_of(uint64_t place)
{
    return (uint8_t)(place >> 8);
}

/* Keys are well mixed by those who send them; one multiplication spreads those that are not. */
static uint32_t *node_head(const struct tt_inflight *t, uint64_t key, uint8_t depth)
{
    return &t->node_bucket[(key + depth) * UINT64_C(0xbf58476d1ce4e5b9) >> t->shift];
}

void tt_inflight_prefetch(const struct tt_inflight *t, uint64_t key, uint8_t depth)
{
    __builtin_prefetch(node_head(t, key, depth), 1);
}

static uint32_t *who_head(const struct tt_inflight *t, uint64_t key, uint64_t place)
{
    return &t->who_bucket[rng_mix(rng_mix(place | PLACE_HASHED) + key) >> t->shift];
}

static struct tt_session_entries *session_list(const struct tt_inflight *t, uint64_t place)
{
    return &t->session[place >> 32 & t->session_mask];
}

enum err tt_inflight_open(struct tt_inflight *t, uint32_t capacity)
{
    struct tt_inflight fresh = {.capacity = capacity, .shift = 63};
    if (capacity < 1 || capacity > 1u << 24) {
        return ERR_RANGE;
    }
    while (UINT64_C(1) << (64 - fresh.shift) < capacity) {
        fresh.shift--;
    }
    size_t holds = (size_t)capacity + 1, buckets = (size_t)1 << (64 - fresh.shift);
    fresh.hold = aligned_alloc(sizeof *fresh.hold, holds * sizeof *fresh.hold);
    fresh.node_bucket = calloc(buckets, sizeof *fresh.node_bucket);
    fresh.who_bucket = calloc(buckets, sizeof *fresh.who_bucket);
    if (fresh.hold == NULL || fresh.node_bucket == NULL || fresh.who_bucket == NULL ||
        tt_inflight_limit(&fresh, 0, SESSION_BITS) != ERR_OK) {
        tt_inflight_close(&fresh);
        return ERR_NOMEM;
    }
    fresh.hold[0] = (struct tt_inflight_entry){.count = 0};
    *t = fresh;
    return ERR_OK;
}

enum err tt_inflight_limit(struct tt_inflight *t, uint32_t quota, unsigned bits)
{
    CHECK(t->used == 0 && bits < 32);
    size_t lists = (size_t)1 << bits;
    struct tt_session_entries *session = memory_lines(lists * sizeof *session);
    if (session == NULL) {
        return ERR_NOMEM;
    }
    for (size_t i = 0; i < lists; i++) {
        session[i] = (struct tt_session_entries){.ring = {&session[i].ring, &session[i].ring}};
    }
    free(t->session);
    t->session = session;
    t->session_mask = (UINT32_C(1) << bits) - 1;
    t->quota = quota > 0 ? quota : UINT32_MAX;
    return ERR_OK;
}

void tt_inflight_close(struct tt_inflight *t)
{
    free(t->session);
    free(t->hold);
    free(t->node_bucket);
    free(t->who_bucket);
    memset(t, 0, sizeof *t);
}

/* ---- a session's ring, by age ---- */

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

/* `ring` itself: there is none. */
static struct link *ring_oldest(const struct link *ring)
{
    return ring->newer;
}

static struct tt_inflight_entry *hold_of(struct link *link)
{
    return (struct tt_inflight_entry *)link;
}

static void renew(struct tt_inflight *t, uint32_t h, uint64_t now_us)
{
    struct tt_inflight_entry *hold = &t->hold[h];
    ring_remove(&hold->by_age);
    ring_append(&session_list(t, hold->place)->ring, &hold->by_age);
    hold->since_us = now_us;
}

/* ---- nodes of one holder: nearly all of them ---- */

/* Not used at the moment; 0: all are in use. */
static uint32_t take_free(struct tt_inflight *t)
{
    uint32_t h = t->first_free;
    if (h != 0) {
        t->first_free = t->hold[h].next_hash;
    } else if (t->used < t->capacity) {
        h = ++t->used;
    }
    return h;
}

/* A record of that holder, listed; 0: refused. */
static uint32_t make_hold(struct tt_inflight *t, uint64_t key, uint64_t place, uint64_t now_us)
{
    struct tt_session_entries *list = session_list(t, place);
    if (list->entries >= t->quota) {
        t->over_quota++;
        return 0;
    }
    uint32_t h = take_free(t);
    if (h == 0) {
        t->refused++;
        return 0;
    }
    struct tt_inflight_entry *hold = &t->hold[h];
    hold->key = key;
    hold->place = place;
    hold->since_us = now_us;
    hold->next_hash = hold->next_node = hold->prev_node = 0;
    hold->count = 1;
    ring_append(&list->ring, &hold->by_age);
    list->entries++;
    t->entries++;
    return h;
}

static void free_hold(struct tt_inflight *t, uint32_t h)
{
    struct tt_inflight_entry *hold = &t->hold[h];
    ring_remove(&hold->by_age);
    session_list(t, hold->place)->entries--;
    t->entries--;
    hold->next_hash = t->first_free;
    t->first_free = h;
}

/* ---- nodes of several holders ---- */

static void hash_hold(struct tt_inflight *t, uint32_t h)
{
    struct tt_inflight_entry *hold = &t->hold[h];
    if (!(hold->place & PLACE_HASHED)) {
        uint32_t *head = who_head(t, hold->key, hold->place);
        hold->next_who = *head;
        hold->place |= PLACE_HASHED;
        *head = h;
    }
}

static void unhash_hold(struct tt_inflight *t, uint32_t h)
{
    uint32_t *link = who_head(t, t->hold[h].key, t->hold[h].place);
    while (*link != h) {
        CHECK(*link != 0);
        link = &t->hold[*link].next_who;
    }
    *link = t->hold[h].next_who;
}

static uint32_t find_hashed(const struct tt_inflight *t, uint64_t key, uint64_t place)
{
    uint32_t h = *who_head(t, key, place);
    place |= PLACE_HASHED;
    while (h != 0 && (t->hold[h].key != key || t->hold[h].place != place)) {
        h = t->hold[h].next_who;
    }
    return h;
}

/* Second in the list: the first keeps what it knows of the node. */
static void insert_holder(struct tt_inflight *t, uint32_t first, uint32_t h)
{
    struct tt_inflight_entry *node = &t->hold[first], *hold = &t->hold[h];
    hold->prev_node = first;
    hold->next_node = node->next_node;
    if (node->next_node != 0) {
        t->hold[node->next_node].prev_node = h;
    }
    node->next_node = h;
    node->count++;
    t->helpers++;
    hash_hold(t, first); /* when it was alone until now */
    hash_hold(t, h);
}

/* `link` is that to the node, of several holders. */
static unsigned remove_holder(struct tt_inflight *t, uint32_t *link, uint32_t h)
{
    struct tt_inflight_entry *hold = &t->hold[h];
    unsigned left = t->hold[*link].count - 1;
    if (hold->prev_node != 0) {
        t->hold[hold->prev_node].next_node = hold->next_node;
    } else {
        t->hold[hold->next_node].next_hash = hold->next_hash;
        *link = hold->next_node;
    }
    if (hold->next_node != 0) {
        t->hold[hold->next_node].prev_node = hold->prev_node;
    }
    t->hold[*link].count = left;
    t->helpers--;
    return left;
}

/* ---- all nodes ---- */

/* The link to the node of (key, depth), or to where it would be: that one is 0. */
static uint32_t *find_link(const struct tt_inflight *t, uint64_t key, uint8_t depth)
{
    uint32_t *link = node_head(t, key, depth);
    while (*link != 0 && (t->hold[*link].key != key || depth_of(t->hold[*link].place) != depth)) {
        link = &t->hold[*link].next_hash;
    }
    return link;
}

/* In the node whose first holder is `first`, 0 for none; 0: not there. */
static uint32_t find_hold(const struct tt_inflight *t, uint32_t first, uint64_t key, uint64_t place)
{
    const struct tt_inflight_entry *hold = &t->hold[first];
    if (hold->count > 1) {
        return find_hashed(t, key, place);
    }
    return (hold->place | PLACE_HASHED) == (place | PLACE_HASHED) ? first : 0;
}

/* `link` is that to its node. Returns how many holders the node has left. */
static unsigned remove_hold(struct tt_inflight *t, uint32_t *link, uint32_t h)
{
    unsigned left = 0;
    if (t->hold[h].place & PLACE_HASHED) {
        unhash_hold(t, h);
    }
    if (t->hold[*link].count > 1) {
        left = remove_holder(t, link, h);
    } else {
        *link = t->hold[h].next_hash;
    }
    free_hold(t, h);
    return left;
}

static void remove_listed(struct tt_inflight *t, const struct tt_inflight_entry *hold)
{
    remove_hold(t, find_link(t, hold->key, depth_of(hold->place)), (uint32_t)(hold - t->hold));
}

unsigned tt_inflight_count(const struct tt_inflight *t, uint64_t key, uint8_t depth,
                           struct tt_holder holder, bool *is_holder)
{
    uint32_t n = *find_link(t, key, depth);
    *is_holder = find_hold(t, n, key, place_of(holder, depth)) != 0;
    return t->hold[n].count;
}

/* Visit and leave are for those who find nobody at the node's head, and themselves alone; these two
 * are for all, and kept out of their way. */
__attribute__((noinline)) static unsigned visit_any(struct tt_inflight *t, uint64_t key,
                                                    uint64_t place, bool exclusive, uint64_t now_us,
                                                    bool *is_busy)
{
    uint32_t *link = find_link(t, key, depth_of(place)), n = *link;
    uint32_t h = find_hold(t, n, key, place), count = t->hold[n].count;
    *is_busy = exclusive && count > (h != 0);
    if (*is_busy) {
        return count;
    }
    if (h != 0) {
        renew(t, h, now_us);
        return count;
    }
    h = make_hold(t, key, place, now_us);
    if (h == 0) {
        return count;
    }
    if (n != 0) {
        insert_holder(t, n, h);
    } else {
        *link = h;
    }
    return count + 1;
}

__attribute__((noinline)) static unsigned leave_any(struct tt_inflight *t, uint64_t key,
                                                    uint64_t place, bool *was_holder)
{
    uint32_t *link = find_link(t, key, depth_of(place)), n = *link;
    uint32_t h = find_hold(t, n, key, place);
    *was_holder = h != 0;
    return h != 0 ? remove_hold(t, link, h) : t->hold[n].count;
}

unsigned tt_inflight_visit(struct tt_inflight *t, uint64_t key, uint8_t depth,
                           struct tt_holder holder, bool exclusive, uint64_t now_us, bool *is_busy)
{
    uint32_t *head = node_head(t, key, depth);
    uint64_t place = place_of(holder, depth);
    if (*head != 0) {
        return visit_any(t, key, place, exclusive, now_us, is_busy);
    }
    *is_busy = false;
    return (*head = make_hold(t, key, place, now_us)) != 0;
}

unsigned tt_inflight_join(struct tt_inflight *t, uint64_t key, uint8_t depth,
                          struct tt_holder holder, uint64_t now_us)
{
    bool is_busy, is_holder;
    tt_inflight_visit(t, key, depth, holder, false, now_us, &is_busy);
    unsigned count = tt_inflight_count(t, key, depth, holder, &is_holder);
    return is_holder ? count : 0;
}

unsigned tt_inflight_leave(struct tt_inflight *t, uint64_t key, uint8_t depth,
                           struct tt_holder holder, bool *was_holder)
{
    uint32_t *head = node_head(t, key, depth), h = *head;
    uint64_t place = place_of(holder, depth);
    const struct tt_inflight_entry *hold = &t->hold[h];
    if (hold->key != key || hold->place != place || hold->count != 1) {
        return leave_any(t, key, place, was_holder);
    }
    *was_holder = true;
    *head = hold->next_hash;
    free_hold(t, h);
    return 0;
}

unsigned tt_inflight_holders(const struct tt_inflight *t, uint64_t key, uint8_t depth,
                             struct tt_holder *out, unsigned room)
{
    unsigned copied = 0;
    for (uint32_t h = *find_link(t, key, depth); h != 0 && copied < room;
         h = t->hold[h].next_node) {
        out[copied++] = holder_of(t->hold[h].place);
    }
    return copied;
}

unsigned tt_inflight_of_session(const struct tt_inflight *t, uint32_t session)
{
    const struct link *ring = &session_list(t, (uint64_t)session << 32)->ring;
    unsigned count = 0;
    for (struct link *at = ring_oldest(ring); at != ring; at = at->newer) {
        count += holder_of(hold_of(at)->place).session == session;
    }
    return count;
}

unsigned tt_inflight_drop_session(struct tt_inflight *t, uint32_t session)
{
    const struct link *ring = &session_list(t, (uint64_t)session << 32)->ring;
    unsigned dropped = 0;
    for (struct link *at = ring_oldest(ring); at != ring;) {
        const struct tt_inflight_entry *hold = hold_of(at);
        at = at->newer;
        if (holder_of(hold->place).session == session) {
            remove_listed(t, hold);
            dropped++;
        }
    }
    return dropped;
}

unsigned tt_inflight_expire(struct tt_inflight *t, uint64_t before_us)
{
    unsigned dropped = 0;
    for (uint32_t i = 0; i <= t->session_mask && t->entries > 0; i++) {
        const struct link *ring = &t->session[i].ring;
        while (ring_oldest(ring) != ring && hold_of(ring_oldest(ring))->since_us <= before_us) {
            remove_listed(t, hold_of(ring_oldest(ring)));
            dropped++;
        }
    }
    return dropped;
}
