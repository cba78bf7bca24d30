/* counters: what a search counts, listed once. The list makes struct counters, which whoever counts
 * or adds up has in it, the counters of JOB_REPORT, and the numbers that `analyse --json` and `sim
 * --json` print. A new counter is one line here; one in COUNTERS_REPORTED changes the protocol,
 * too.
 *
 * X(name, json, help): `json` is its key in JSON output, `help` that of its metric. All are
 * uint64_t.
 * Threads: any; counters_publish by one, counters_read by any meanwhile. Pure. */
#ifndef COMMON_COUNTERS_H
#define COMMON_COUNTERS_H

#include <stdatomic.h>
#include <stdint.h>

/* What a worker reports to its front-end, in the order of the message:
 * nodes: visits that were not BUSY, quiescence included (Weill 1996, footnote 4).
 * asks: for nodes at or above the in-flight depth; busy: of these, answered BUSY.
 * deferred: young brothers put off because others searched them.
 * duplicated: nodes below visits at the lowest in-flight depth that began while others were in the
 *   same node: no deeper split could keep the two apart, so what was searched there was searched
 *   twice, unless a result of the others cut it short. Each node once.
 * abandoned: nodes below visits that were given up because another searcher had resolved the node
 *   meanwhile (a completion notice, a late CUT or BUSY): work that brought nothing. Without those
 *   of registered visits inside that had stored a value, as others may have used it; without those
 *   counted as duplicated or abandoned before; and not when a search is stopped. */
#define COUNTERS_REPORTED(X)                                                                  \
    X(nodes, "nodes", "Nodes visited")                                                        \
    X(asks, "asks", "Nodes asked for at or above the in-flight depth")                        \
    X(busy, "busy", "Asks answered BUSY")                                                     \
    X(deferred, "deferred", "Young brothers put off because others searched them")            \
    X(duplicated, "duplicated_nodes", "Nodes searched while others were in the same subtree") \
    X(abandoned, "abandoned_nodes", "Nodes of visits that were given up")

/* What a worker reports of its talk with the shards, in the order of the message. X(name), all
 * uint64_t.
 * waited_us: time that it waited for answers. talked_us: that, and the time by the clock that it
 *   spent on asks, peeks and stores that go to shards, on taking in what comes from them (results
 *   of other hosts, too), and on sending on what it found.
 * bytes_sent, bytes_received: of messages, without what carries them. */
#define COUNTERS_OF_TALK(X) X(waited_us) X(talked_us) X(bytes_sent) X(bytes_received)

/* cuts: asks answered CUT. helped: visits of a node that others were searching.
 * unwound: completion notices (NODE_DONE) that ended a visit.
 * critical: nodes on the critical path (Kuszmaul 1995, section 3, by time-stamping): eldest, then
 *   the longest of the scouts side by side, then the searches again one by one; what a table
 *   answers costs nothing. Of the tree that this searcher walked, so it says how parallel the
 *   search is only where one walked it alone.
 * steals: young brothers that another searcher gave this one to search (algorithms that steal).
 * mailbox_lost: messages from searcher to searcher (algorithms that hand over work), in a full
 * mailbox. tbhits: positions whose value endgame tables gave. */
#define COUNTERS(X)                                                             \
    COUNTERS_REPORTED(X)                                                        \
    X(cuts, "cuts", "Asks answered by a result")                                \
    X(helped, "helped", "Visits of nodes that others were searching")           \
    X(peeks, "peeks", "Nodes asked about without entering them")                \
    X(unwound, "unwound", "Visits ended by a completion notice")                \
    X(critical, "critical", "Nodes on the critical path")                       \
    X(steals, "steals", "Young brothers taken from other searchers")            \
    X(mailbox_lost, "mailbox_lost", "Messages of searchers that found no room") \
    X(tbhits, "tbhits", "Positions found in endgame tables")

enum {
#define X(name, ...) COUNTER_##name,
    COUNTERS(X) COUNTERS_OF_TALK(X)
#undef X
        COUNTERS_ALL,
    COUNTERS_OF_SEARCH = COUNTER_waited_us, /* the first so many: COUNTERS, each with a name */
};

struct counters {
    union {
        struct {
#define X(name, ...) uint64_t name;
            COUNTERS(X) COUNTERS_OF_TALK(X)
#undef X
        };
        uint64_t at[COUNTERS_ALL]; /* the same, by COUNTER_... */
    };
};
_Static_assert(sizeof(struct counters) == COUNTERS_ALL * sizeof(uint64_t), "one list for both");

struct counter_name {
    const char *json, *help;
};

static const struct counter_name COUNTER_NAME[COUNTERS_OF_SEARCH] = {
#define X(name, json, help) {json, help},
    COUNTERS(X)
#undef X
};

static inline void counters_add(struct counters *sum, const struct counters *c)
{
    for (unsigned i = 0; i < COUNTERS_ALL; i++) {
        sum->at[i] += c->at[i];
    }
}

static inline void counters_subtract(struct counters *sum, const struct counters *c)
{
    for (unsigned i = 0; i < COUNTERS_ALL; i++) {
        sum->at[i] -= c->at[i];
    }
}

/* Counters that one thread changes and others read meanwhile. Each is whole; the set need not be of
 * one moment. */
struct counters_shared {
    _Atomic uint64_t at[COUNTERS_ALL];
};

static inline void counters_publish(struct counters_shared *out, const struct counters *c)
{
    for (unsigned i = 0; i < COUNTERS_ALL; i++) {
        atomic_store_explicit(&out->at[i], c->at[i], memory_order_relaxed);
    }
}

static inline struct counters counters_read(const struct counters_shared *shared)
{
    struct counters c;
    for (unsigned i = 0; i < COUNTERS_ALL; i++) {
        c.at[i] = atomic_load_explicit(&shared->at[i], memory_order_relaxed);
    }
    return c;
}

/* The estimated search overhead: work known to be in vain for each node that was not. A lower
 * bound: of what many search and one would not, searchers notice only this. 0 for what no search
 * counts. */
static inline double counters_overhead(uint64_t nodes, uint64_t duplicated, uint64_t abandoned)
{
    uint64_t in_vain = duplicated + abandoned;
    return in_vain < nodes ? (double)in_vain / (double)(nodes - in_vain) : 0;
}

#endif
