/* inside: which threads of a process are inside which (key, depth) now. nproc is the size of that
 * set, and exact.
 *
 * What common/tt/inflight.h is for the sessions of a shard, without their ages and quotas: a hash
 * table of cache lines, each with its own lock and room for five places, and spare lines for nodes
 * of many. A thread that goes inside or leaves touches that one line, which it seldom shares with
 * threads in other nodes. When the spare lines are used up a visit is not counted, and nothing else
 * happens. Visiting twice and leaving what one is not in change nothing (design section 2).
 *
 * Threads: any, between inside_lock and inside_unlock of the node's line; a thread holds one line
 * at a time, as long as it takes to look at it and at the results of that node. Who finds it held
 * yields its processor until it is not: threads are to be of one priority. Memory: allocates in
 * open. Every operation is O(threads in nodes of that line), and takes a lock common to all where
 * these outgrow the line or fit in again. */
#ifndef WORKER_TABLE_INSIDE_H
#define WORKER_TABLE_INSIDE_H

#include "common/err.h"

#include <stdbool.h>
#include <stdint.h>

enum { INSIDE_SLOTS_MAX = 1 << 10 };

struct inside;
struct inside_line;

struct inside_node {
    uint64_t key;
    uint8_t depth;
};

/* For `slots` threads, 1 to INSIDE_SLOTS_MAX, each in some tens of nodes. ERR_NOMEM, ERR_RANGE. */
enum err inside_open(struct inside **out, unsigned slots);
/* Accepts NULL, and twice. */
void inside_close(struct inside **inside);

/* Fetches the node's line for writing. */
void inside_prefetch(const struct inside *inside, struct inside_node node);
/* The line of that node, to be given to the calls below with the same node. */
struct inside_line *inside_lock(struct inside *inside, struct inside_node node);
void inside_unlock(struct inside_line *line);

/* How many are inside. */
unsigned inside_count(const struct inside *inside, const struct inside_line *line,
                      struct inside_node node);
/* Unless `exclusive` and another is inside (then *is_busy), adds `slot`. Returns the count after
 * it; without `slot` when it is refused or not counted, and was not inside. */
unsigned inside_visit(struct inside *inside, struct inside_line *line, struct inside_node node,
                      uint16_t slot, bool exclusive, bool *is_busy);
/* Removes `slot` if it is inside; returns how many are left. */
unsigned inside_leave(struct inside *inside, struct inside_line *line, struct inside_node node,
                      uint16_t slot);
/* Copies up to `room` of those inside; returns how many it copied. */
unsigned inside_slots(const struct inside *inside, const struct inside_line *line,
                      struct inside_node node, uint16_t *out, unsigned room);

/* Places taken, over all nodes. Locks every line in turn: nothing may be locked. */
unsigned inside_places(struct inside *inside);

#endif
