#include "worker/engine/bag_core.h"

#include <stdlib.h>
#include <string.h>

enum err bag_core_open(struct bag_core *c, uint32_t items, unsigned locals)
{
    memset(c, 0, sizeof *c);
    if (locals > BAG_WORKERS_MAX) {
        return ERR_RANGE;
    }
    c->items = c->open = c->until = items;
    c->locals = c->searchers = locals;
    c->item = calloc(items > 0 ? items : 1, sizeof *c->item);
    c->searcher = calloc(locals + BAG_WORKERS_MAX, sizeof *c->searcher);
    c->address = calloc(locals + BAG_WORKERS_MAX, sizeof *c->address);
    if (c->item == NULL || c->searcher == NULL || c->address == NULL) {
        bag_core_close(c);
        return ERR_NOMEM;
    }
    return ERR_OK;
}

void bag_core_close(struct bag_core *c)
{
    free(c->item);
    free(c->searcher);
    free(c->address);
    c->item = NULL;
    c->searcher = NULL;
    c->address = NULL;
}

void bag_core_set_until(struct bag_core *c, uint32_t until)
{
    c->until = until < c->items ? until : c->items;
}

static bool is_over(uint64_t begin_us, uint32_t ms, uint64_t now_us)
{
    return now_us >= begin_us + ms * UINT64_C(1000);
}

/* ---- who has what ---- */

static unsigned find_assigned(const struct bag_searcher *s, uint32_t item)
{
    unsigned i = 0;
    while (i < s->count && s->assigned[i].item != item) {
        i++;
    }
    return i;
}

/* A position becomes a searcher's first, or is it no more: first ones are searched. */
static void enter(struct bag_core *c, uint32_t number, uint64_t now_us)
{
    struct bag_item *item = &c->item[number];
    if (item->firsts++ == 0) {
        c->searched++;
        item->begun_us = now_us > 0 ? now_us : 1;
        c->figures.most_at_once =
            c->searched > c->figures.most_at_once ? c->searched : c->figures.most_at_once;
    }
}

static void leave(struct bag_core *c, uint32_t number)
{
    CHECK_THAT(c->item[number].firsts > 0 && c->searched > 0, "what is left was searched");
    if (--c->item[number].firsts == 0) {
        c->searched--;
        c->item[number].begun_us = 0;
    }
}

static void assign(struct bag_core *c, unsigned searcher, uint32_t item, uint64_t now_us)
{
    struct bag_searcher *s = &c->searcher[searcher];
    CHECK_THAT(s->count < BAG_ASSIGNED_MAX && !c->item[item].is_done,
               "what is assigned is to be done");
    c->open -= c->item[item].sharers == 0;
    c->item[item].sharers++;
    s->assigned[s->count++] = (struct bag_assigned){item, now_us};
    if (s->count == 1) {
        s->nodes = 0;
        enter(c, item, now_us);
    }
}

/* Without a word to the searcher. */
static void let_go(struct bag_core *c, unsigned searcher, unsigned at, uint64_t now_us)
{
    struct bag_searcher *s = &c->searcher[searcher];
    const uint32_t number = s->assigned[at].item;
    struct bag_item *item = &c->item[number];
    CHECK_THAT(at < s->count && item->sharers > 0, "what is let go was assigned");
    s->left[s->lefts++ % BAG_ASSIGNED_MAX] = number;
    s->count--;
    memmove(&s->assigned[at], &s->assigned[at + 1], (s->count - at) * sizeof s->assigned[0]);
    item->sharers--;
    if (item->sharers == 0 && !item->is_done) {
        c->open++;
        c->first_open = number < c->first_open ? number : c->first_open;
    }
    if (at == 0) {
        s->nodes = 0;
        leave(c, number);
        if (s->count > 0) {
            enter(c, s->assigned[0].item, now_us);
        }
    }
}

static void set_surplus(struct bag_core *c, unsigned searcher)
{
    c->searcher[searcher].has_surplus = true;
    c->has_surplus = true;
}

unsigned bag_core_next_surplus(struct bag_core *c)
{
    for (unsigned i = 0; c->has_surplus && i < c->searchers; i++) {
        if (c->searcher[i].has_surplus) {
            c->searcher[i].has_surplus = false;
            return i;
        }
    }
    c->has_surplus = false;
    return BAG_NONE;
}

/* ---- workers ---- */

/* The one that is silent longest, or BAG_NONE; one that is barred only where there is no other, so
 * that it does not come back with its old address. */
static unsigned silent_longest(const struct bag_core *c)
{
    unsigned found = BAG_NONE;
    for (unsigned i = c->locals; i < c->searchers && c->silent > 0; i++) {
        const struct bag_searcher *s = &c->searcher[i];
        const struct bag_searcher *old = found != BAG_NONE ? &c->searcher[found] : s;
        if (s->is_silent &&
            (found == BAG_NONE || s->is_barred < old->is_barred ||
             (s->is_barred == old->is_barred && s->received_us < old->received_us))) {
            found = i;
        }
    }
    return found;
}

static unsigned find_worker(struct bag_core *c, uint64_t address)
{
    unsigned i = c->locals;
    while (i < c->searchers && c->address[i] != address) {
        i++;
    }
    if (i < c->searchers) {
        return i;
    }
    if (i == c->locals + BAG_WORKERS_MAX) {
        i = silent_longest(c);
        if (i == BAG_NONE) {
            return BAG_NONE;
        }
        CHECK_THAT(c->searcher[i].count == 0, "who is silent has nothing");
    } else {
        c->searchers++;
        c->silent++;
    }
    c->searcher[i] = (struct bag_searcher){.is_silent = true};
    c->address[i] = address;
    return i;
}

static void set_silent(struct bag_core *c, struct bag_searcher *s, bool is_silent)
{
    c->silent += (unsigned)is_silent - (unsigned)s->is_silent;
    s->is_silent = is_silent;
}

/* A searcher that does not answer is tried now and then: what it was given may have got lost. */
unsigned bag_core_present(struct bag_core *c, uint64_t address, uint64_t now_us)
{
    const unsigned i = find_worker(c, address);
    struct bag_searcher *s = i == BAG_NONE ? NULL : &c->searcher[i];
    if (s != NULL && s->is_silent && !s->is_barred &&
        (s->received_us == 0 || is_over(s->received_us, BAG_SILENT_MS, now_us))) {
        set_silent(c, s, false);
        s->is_known = false;
        s->received_us = now_us;
    }
    return i;
}

unsigned bag_core_receive(struct bag_core *c, uint64_t address, uint64_t now_us)
{
    const unsigned i = find_worker(c, address);
    if (i != BAG_NONE && !c->searcher[i].is_barred) {
        c->searcher[i].received_us = now_us;
        set_silent(c, &c->searcher[i], false);
        c->searcher[i].is_known = true;
    }
    return i;
}

static void take_back(struct bag_core *c, unsigned searcher, uint64_t now_us)
{
    struct bag_searcher *s = &c->searcher[searcher];
    set_silent(c, s, true);
    s->received_us = now_us;
    c->figures.taken_back += s->count;
    while (s->count > 0) {
        let_go(c, searcher, s->count - 1, now_us);
    }
    CHECK_THAT(c->silent <= c->searchers - c->locals, "threads of this process are never silent");
}

void bag_core_bar(struct bag_core *c, unsigned searcher, uint64_t now_us)
{
    take_back(c, searcher, now_us);
    c->searcher[searcher].is_barred = true;
}

void bag_core_tick(struct bag_core *c, uint64_t now_us)
{
    for (unsigned i = c->locals; i < c->searchers; i++) {
        if (!c->searcher[i].is_silent &&
            is_over(c->searcher[i].received_us, BAG_SILENT_MS, now_us)) {
            take_back(c, i, now_us);
        }
    }
}

/* Nobody answers for what he was not given. */
static bool had(const struct bag_searcher *s, uint32_t item)
{
    const unsigned lefts = s->lefts < BAG_ASSIGNED_MAX ? s->lefts : BAG_ASSIGNED_MAX;
    return find_assigned(s, item) < s->count || bag_is_listed(s->left, lefts, item);
}

void bag_core_has(struct bag_core *c, unsigned searcher, const uint32_t *item, unsigned count,
                  uint64_t nodes, uint64_t now_us)
{
    struct bag_searcher *s = &c->searcher[searcher];
    if (s->is_barred) {
        return;
    }
    for (unsigned i = s->count; i > 0; i--) {
        const struct bag_assigned *a = &s->assigned[i - 1];
        if (!bag_is_listed(item, count, a->item) && is_over(a->given_us, BAG_LOST_MS, now_us)) {
            c->figures.taken_back++;
            let_go(c, searcher, i - 1, now_us);
        }
    }
    for (unsigned i = 0; i < count; i++) {
        if (item[i] >= c->items || find_assigned(s, item[i]) < s->count) {
            continue;
        }
        const struct bag_item *it = &c->item[item[i]];
        const bool is_free = it->sharers == 0 || (i == 0 && it->firsts == 0);
        if (is_free && !it->is_done && s->count < BAG_ASSIGNED_MAX && had(s, item[i])) {
            assign(c, searcher, item[i], now_us); /* it was silent, and nobody has begun it since */
        } else {
            set_surplus(c, searcher);
        }
    }
    const unsigned first = count > 0 ? find_assigned(s, item[0]) : s->count;
    if (first < s->count) {
        const struct bag_assigned one = s->assigned[first];
        leave(c, s->assigned[0].item);
        memmove(&s->assigned[1], &s->assigned[0], first * sizeof one);
        s->assigned[0] = one;
        s->nodes = nodes;
        enter(c, one.item, now_us);
    }
}

/* ---- taking ---- */

/* One position is searched; more wait only while there are so many that nobody goes short for it
 * (Polychronopoulos and Kuck 1987: guided self-scheduling). */
static unsigned most_assigned(const struct bag_core *c, const struct bag_searcher *s)
{
    const unsigned ahead = c->open / (2 * (c->searchers - c->silent));
    return !s->is_known ? 1 : ahead >= BAG_ASSIGNED_MAX ? (unsigned)BAG_ASSIGNED_MAX : 1 + ahead;
}

static uint32_t next_open(struct bag_core *c)
{
    while (c->first_open < c->until &&
           (c->item[c->first_open].is_done || c->item[c->first_open].sharers > 0)) {
        c->first_open++;
    }
    return c->first_open < c->until ? c->first_open : BAG_NONE;
}

/* The last that waits at whom most wait at. */
static uint32_t take_waiting(struct bag_core *c, unsigned searcher, uint64_t now_us)
{
    unsigned most = 1, from = BAG_NONE;
    for (unsigned i = c->locals; i < c->searchers; i++) {
        if (i != searcher && c->searcher[i].count > most) {
            most = c->searcher[i].count;
            from = i;
        }
    }
    if (from == BAG_NONE) {
        return BAG_NONE;
    }
    const uint32_t item = c->searcher[from].assigned[most - 1].item;
    let_go(c, from, most - 1, now_us);
    set_surplus(c, from);
    return item;
}

/* The one with the fewest searchers; of these the first. */
static uint32_t choose_shared(struct bag_core *c)
{
    uint32_t found = BAG_NONE;
    while (c->first_undone < c->until && c->item[c->first_undone].is_done) {
        c->first_undone++;
    }
    for (uint32_t i = c->first_undone; i < c->until; i++) {
        if (!c->item[i].is_done &&
            (found == BAG_NONE || c->item[i].sharers < c->item[found].sharers)) {
            found = i;
        }
    }
    return found;
}

uint32_t bag_core_take(struct bag_core *c, unsigned searcher, uint64_t now_us)
{
    struct bag_searcher *s = &c->searcher[searcher];
    if (s->is_silent || s->count >= most_assigned(c, s)) {
        return BAG_NONE;
    }
    uint32_t item = next_open(c);
    if (item == BAG_NONE && s->count == 0) {
        item = take_waiting(c, searcher, now_us);
    }
    if (item == BAG_NONE && s->count == 0) {
        item = choose_shared(c);
        c->figures.joined += item != BAG_NONE;
    }
    if (item != BAG_NONE) {
        assign(c, searcher, item, now_us);
    }
    CHECK_THAT(c->open + c->done <= c->items, "a position that nobody has is not done");
    return item;
}

void bag_core_return(struct bag_core *c, unsigned searcher, uint32_t item, uint64_t now_us)
{
    const unsigned at = find_assigned(&c->searcher[searcher], item);
    if (at < c->searcher[searcher].count) {
        let_go(c, searcher, at, now_us);
    }
}

bool bag_core_done(struct bag_core *c, unsigned searcher, uint32_t item, uint64_t now_us,
                   uint64_t *nodes)
{
    *nodes = 0;
    if (c->searcher[searcher].is_barred || item >= c->items || c->item[item].is_done ||
        !had(&c->searcher[searcher], item)) {
        return false;
    }
    c->open -= c->item[item].sharers == 0; /* of who was silent: nobody has it now */
    c->item[item].is_done = true;
    c->done++;
    const unsigned own = find_assigned(&c->searcher[searcher], item);
    if (own < c->searcher[searcher].count) {
        let_go(c, searcher, own, now_us);
    }
    for (unsigned i = 0; i < c->searchers && c->item[item].sharers > 0; i++) {
        const unsigned at = find_assigned(&c->searcher[i], item);
        if (at < c->searcher[i].count) {
            *nodes += at == 0 ? c->searcher[i].nodes : 0;
            set_surplus(c, i);
            let_go(c, i, at, now_us);
        }
    }
    CHECK_THAT(c->item[item].sharers == 0 && c->item[item].firsts == 0, "nobody has what is done");
    CHECK_THAT(c->done <= c->items, "a position is done once");
    return true;
}
