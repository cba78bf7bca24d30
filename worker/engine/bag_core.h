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
    bool is_silent; /* is given nothing now */
    bool is_barred; /* is silent for good; its place is the last that another one takes */
    bool is_known; /* has answered; else it is given one position at most */
    uint64_t received_us;
    uint64_t nodes; /* in its first, as it said last */
    unsigned count;
    struct bag_assigned assigned[BAG_ASSIGNED_MAX];
    uint32_t left[BAG_ASSIGNED_MAX]; /* what it has had, the last: a ring */
    unsigned lefts;
    bool has_surplus; /* it may have more than `assigned`, and is to be told so */
};

struct bag_item {
    bool is_done;
    uint16_t sharers; /* searchers that have it */
    uint16_t firsts; /* ... of whom so many search it */
    uint64_t begun_us; /* when its search began; 0: it is not searched */
};

struct bag_core {
    /* fixed after open */
    struct bag_item *item;
    uint32_t items;
    struct bag_searcher
        *searcher; /* the first `locals` are threads of this process, never silent */
    unsigned locals;
    uint64_t *address; /* of each searcher, for letters; 0: a thread of this process */
    /* state */
    uint32_t until; /* items from there on are not given yet; all are, to begin with */
    unsigned searchers;
    unsigned silent; /* ... of whom so many are */
    uint32_t open, done; /* items that nobody has; that are done */
    unsigned searched; /* items that are searched now */
    uint32_t first_open, first_undone; /* no open one, none that is not done, comes before */
    bool has_surplus; /* a searcher has */
    /* statistics */
    struct bag_figures {
        unsigned most_at_once; /* positions that were searched at the same time */
        unsigned taken_back; /* from who fell silent, or never got them */
        unsigned joined; /* times that a searcher joined others in a position */
    } figures;
};

static inline bool bag_is_listed(const uint32_t *item, unsigned count, uint32_t wanted)
{
    unsigned i = 0;
    while (i < count && item[i] != wanted) {
        i++;
    }
    return i < count;
}

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
 * not is given to others, what it has and should not is surplus. What it was given and was taken
 * back it keeps if nobody has it, or if it searches it and nobody else does. */
void bag_core_has(struct bag_core *core, unsigned searcher, const uint32_t *item, unsigned count,
                  uint64_t nodes, uint64_t now_us);
/* The next position for that searcher, which has it from now on; BAG_NONE: none now. To be called
 * until there is none. */
uint32_t bag_core_take(struct bag_core *core, unsigned searcher, uint64_t now_us);
/* It gives the position back without a result. */
void bag_core_return(struct bag_core *core, unsigned searcher, uint32_t item, uint64_t now_us);
/* It has a result of what it has or has had. True: it is the first; `nodes` are those that others
 * have spent on it so far, as far as known; nobody has it any more. False: there is one already,
 * or it was never given such an item. */
bool bag_core_done(struct bag_core *core, unsigned searcher, uint32_t item, uint64_t now_us,
                   uint64_t *nodes);
/* It said what cannot be true: what it has is given to others, and it gets nothing any more. */
void bag_core_bar(struct bag_core *core, unsigned searcher, uint64_t now_us);
/* From time to time: gives up who is silent. */
void bag_core_tick(struct bag_core *core, uint64_t now_us);
/* The next searcher that is to be told what it has, as what else it has nobody wants from it;
 * BAG_NONE: none. */
unsigned bag_core_next_surplus(struct bag_core *core);

#endif
