/* bag_core: who searches which of many positions: a bag of tasks (Carriero and Gelernter 1986),
 * from which searchers take whole positions as long as there are any. Threads of the front-end take
 * one at a time; a worker of another process is given a few ahead, so that it need not wait for
 * letters. When nobody's positions are left, an idle searcher takes one that waits at another, and
 * then joins one that is being searched, so that the last are shared.
 *
 *     open ──take──> assigned, to one or several ──done──> done
 *       ^              │
 *       └──────────────┘ the only one that has it fell silent, or says that it does not have it
 *
 * Nothing depends on a letter: a searcher says now and then what it has, and that is compared.
 * The first result of a position counts; a late one of somebody who was silent is as good.
 *
 * Pure. Threads: one at a time. Memory: allocates in open. */
#ifndef WORKER_ENGINE_BAG_CORE_H
#define WORKER_ENGINE_BAG_CORE_H

#include "common/err.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    BAG_ASSIGNED_MAX = 32, /* positions that a worker has at once; it searches the first */
    /* Workers that are known. One more takes the place of the one that is silent longest; where
     * none is, it is not given any. */
    BAG_WORKERS_MAX = 4096,
    BAG_DROPS_MAX = 256, /* of workers; what has no room is found when one says what it has */
    BAG_SILENT_MS = 1000, /* a worker says every 200 that it is there: after that it is given up */
    BAG_ALONE_MS =
        1000, /* a search that takes longer may be joined: it uses the shards from then */
    BAG_LOST_MS = 500, /* after so long a position that a worker does not name never came there */
};
#define BAG_NONE UINT32_MAX

struct bag_assigned {
    uint32_t item;
    uint64_t given_us;
};

struct bag_searcher {
    uint64_t address; /* of letters; 0: a thread of this process, which is never silent */
    bool is_silent; /* is given nothing now */
    bool is_barred; /* is silent for good; its place is the last that another one takes */
    bool is_known; /* has answered; else it is given one position at most */
    uint64_t received_us;
    uint64_t nodes; /* in its first, as it said last */
    unsigned count;
    struct bag_assigned assigned[BAG_ASSIGNED_MAX];
    uint32_t left[BAG_ASSIGNED_MAX]; /* what it has had, the last: a ring */
    unsigned lefts;
    bool is_dropped; /* of a thread of this process, in place of a letter: it leaves ... */
    uint32_t dropped; /* ... this item */
};

struct bag_item {
    bool is_done;
    uint16_t sharers; /* searchers that have it */
    uint16_t firsts; /* ... of whom so many search it */
    uint64_t begun_us; /* when its search began; 0: it is not searched */
};

/* That searcher need not have the item any more. */
struct bag_drop {
    unsigned searcher;
    uint32_t item;
};

struct bag_core {
    /* fixed after open */
    struct bag_item *item;
    uint32_t items;
    struct bag_searcher *searcher; /* the first `locals` are threads of this process */
    unsigned locals;
    uint16_t *place; /* of searchers, by their addresses; 0: none */
    /* state */
    uint32_t until; /* items from there on are not given yet; all are, to begin with */
    unsigned searchers;
    unsigned silent; /* ... of whom so many are */
    uint32_t open, done; /* items that nobody has; that are done */
    unsigned searched; /* items that are searched now */
    uint32_t first_open, first_undone; /* no open one, none that is not done, comes before */
    struct bag_drop drop[BAG_DROPS_MAX]; /* a ring: from `first_drop`, `drops` of them */
    unsigned first_drop, drops;
    /* statistics */
    struct bag_figures {
        unsigned most_at_once; /* positions that were searched at the same time */
        unsigned taken_back; /* from who fell silent, or never got them */
        unsigned joined; /* times that a searcher joined others in a position */
    } figures;
};

/* ERR_NOMEM; ERR_RANGE: more threads than BAG_WORKERS_MAX. */
enum err bag_core_open(struct bag_core *core, uint32_t items, unsigned locals);
/* Accepts a zeroed struct, and twice. */
void bag_core_close(struct bag_core *core);

/* Items before `until` may be given from now on: no fewer than before, once some were given. */
void bag_core_set_until(struct bag_core *core, uint32_t until);

/* A worker takes part; again and again, as long as it does. Returns its number, which is another's
 * once it was silent and others needed its place, or BAG_NONE: there is no room. */
unsigned bag_core_present(struct bag_core *core, uint64_t address, uint64_t now_us);
/* A letter came from it. */
unsigned bag_core_receive(struct bag_core *core, uint64_t address, uint64_t now_us);
/* What it has, the first of which it searches, in so many nodes by now: what it should have and has
 * not is given to others, what it has and should not is dropped. What it was given and was taken
 * back it keeps if nobody has it, or if it searches it and nobody else does. */
void bag_core_has(struct bag_core *core, unsigned searcher, const uint32_t *item, unsigned count,
                  uint64_t nodes, uint64_t now_us);
/* The next position for that searcher, which has it from now on; BAG_NONE: none now. To be called
 * until there is none. */
uint32_t bag_core_take(struct bag_core *core, unsigned searcher, uint64_t now_us);
/* It gives the position back without a result. */
void bag_core_return(struct bag_core *core, unsigned searcher, uint32_t item, uint64_t now_us);
/* It has a result of what it has or has had. True: it is the first; `nodes` are those that others
 * have spent on it so far, as far as known; all who have it drop it. False: there is one already,
 * or it was never given such an item. */
bool bag_core_done(struct bag_core *core, unsigned searcher, uint32_t item, uint64_t now_us,
                   uint64_t *nodes);
/* It said what cannot be true: what it has is given to others, and it gets nothing any more. */
void bag_core_bar(struct bag_core *core, unsigned searcher, uint64_t now_us);
/* From time to time: gives up who is silent. */
void bag_core_tick(struct bag_core *core, uint64_t now_us);
/* How many search a position that is assigned. */
unsigned bag_core_sharers(const struct bag_core *core, uint32_t item);
/* The next that somebody need not search any more; false: none. */
bool bag_core_drop(struct bag_core *core, struct bag_drop *out);
bool bag_core_is_done(const struct bag_core *core);

#endif
