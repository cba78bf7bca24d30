#include "worker/engine/bag_core.h"

#include <stdlib.h>
#include <string.h>

enum { PLACES = 2 * BAG_WORKERS_MAX }; /* a power of two */

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
    c->place = calloc(PLACES, sizeof *c->place);
    if (c->item == NULL || c->searcher == NULL || c->place == NULL) {
        bag_core_close(c);
        return ERR_NOMEM;
    }
    return ERR_OK;
}

void bag_core_close(struct bag_core *c)
{
    free(c->item);
    free(c->searcher);
    free(c->place);
    c->item = NULL;
    c->searcher = NULL;
    c->place = NULL;
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

static void drop(struct bag_core *c, unsigned searcher, uint32_t item)
{
    if (searcher < c->locals) {
        c->searcher[searcher].is_dropped = true;
        c->searcher[searcher].dropped = item;
    } else if (c->drops < BAG_DROPS_MAX) {
        c->drop[(c->first_drop + c->drops++) % BAG_DROPS_MAX] = (struct bag_drop){searcher, item};
    }
}

bool bag_core_drop(struct bag_core *c, struct bag_drop *out)
{
    for (unsigned i = 0; i < c->locals; i++) {
        if (c->searcher[i].is_dropped) {
            c->searcher[i].is_dropped = false;
            *out = (struct bag_drop){i, c->searcher[i].dropped};
            return true;
        }
    }
    if (c->drops == 0) {
        return false;
    }
    *out = c->drop[c->first_drop];
    c->first_drop = (c->first_drop + 1) % BAG_DROPS_MAX;
    c->drops--;
    return true;
}

/* ---- workers ---- */

/* Where its place is, or would be. */
static unsigned find_place(const struct bag_core *c, uint64_t address)
{
    unsigned at = (unsigned)(address % PLACES);
    while (c->place[at] != 0 && c->searcher[c->locals + c->place[at] - 1u].address != address) {
        at = (at + 1) % PLACES;
    }
    return at;
}

/* What lies behind it, and was put there because it was taken, moves up. */
static void free_place(struct bag_core *c, unsigned at)
{
    for (unsigned next = (at + 1) % PLACES; c->place[next] != 0; next = (next + 1) % PLACES) {
        const uint64_t address = c->searcher[c->locals + c->place[next] - 1u].address;
        if ((next - (unsigned)(address % PLACES)) % PLACES >= (next - at) % PLACES) {
            c->place[at] = c->place[next];
            at = next;
        }
    }
    c->place[at] = 0;
}

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

static void forget_drops(struct bag_core *c, unsigned searcher)
{
    unsigned kept = 0;
    for (unsigned i = 0; i < c->drops; i++) {
        const struct bag_drop d = c->drop[(c->first_drop + i) % BAG_DROPS_MAX];
        if (d.searcher != searcher) {
            c->drop[(c->first_drop + kept++) % BAG_DROPS_MAX] = d;
        }
    }
    c->drops = kept;
}

static unsigned find_worker(struct bag_core *c, uint64_t address)
{
    unsigned at = find_place(c, address);
    if (c->place[at] != 0) {
        return c->locals + c->place[at] - 1u;
    }
    unsigned i = c->searchers;
    if (i == c->locals + BAG_WORKERS_MAX) {
        i = silent_longest(c);
        if (i == BAG_NONE) {
            return BAG_NONE;
        }
        CHECK_THAT(c->searcher[i].count == 0, "who is silent has nothing");
        forget_drops(c, i);
        free_place(c, find_place(c, c->searcher[i].address));
        at = find_place(c, address);
    } else {
        c->searchers++;
        c->silent++;
    }
    c->searcher[i] = (struct bag_searcher){.address = address, .is_silent = true};
    c->place[at] = (uint16_t)(i - c->locals + 1);
    return i;
}

static void set_silent(struct bag_core *c, struct bag_searcher *s, bool is_silent)
{
    c->silent += (unsigned)is_silent - (unsigned)s->is_silent;
    s->is_silent = is_silent;
}

/* Who does not answer is tried now and then: what it was given may have got lost. */
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

static bool is_listed(const uint32_t *item, unsigned count, uint32_t wanted)
{
    unsigned i = 0;
    while (i < count && item[i] != wanted) {
        i++;
    }
    return i < count;
}

/* Nobody answers for what he was not given. */
static bool had(const struct bag_searcher *s, uint32_t item)
{
    const unsigned lefts = s->lefts < BAG_ASSIGNED_MAX ? s->lefts : BAG_ASSIGNED_MAX;
    return find_assigned(s, item) < s->count || is_listed(s->left, lefts, item);
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
        if (!is_listed(item, count, a->item) && is_over(a->given_us, BAG_LOST_MS, now_us)) {
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
            drop(c, searcher, item[i]);
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

/* One is searched; more wait only while there are so many that nobody goes short for it
 * (Polychronopoulos and Kuck 1987: guided self-scheduling). */
static unsigned most_assigned(const struct bag_core *c, const struct bag_searcher *s)
{
    const unsigned ahead = c->open / (2 * (c->searchers - c->silent));
    return s->address == 0 || !s->is_known ? 1
           : ahead >= BAG_ASSIGNED_MAX     ? (unsigned)BAG_ASSIGNED_MAX
                                           : 1 + ahead;
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
    drop(c, from, item);
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
            drop(c, i, item);
            let_go(c, i, at, now_us);
        }
    }
    CHECK_THAT(c->item[item].sharers == 0, "nobody has what is done");
    return true;
}

bool bag_core_is_done(const struct bag_core *c)
{
    return c->done == c->items;
}

unsigned bag_core_sharers(const struct bag_core *c, uint32_t item)
{
    return c->item[item].sharers;
}
