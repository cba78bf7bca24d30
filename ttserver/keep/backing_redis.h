/* backing_redis: what a shard's results are in a Redis, and the calls that put them there and get
 * them back.
 *
 *     abdada:backing:NAME           hash: place and stamp (hexadecimal), buckets (of the table)
 *     abdada:backing:PLACE:SLICE    hash: of SLICE (hexadecimal), 128 buckets of the table: field
 * is the bucket's number in it, 0..127, value is its entries of the depth that is kept, 15 bytes
 * each (common/tt/snapshot.h)
 *
 * NAME names a shard, so that it finds its results after a restart: HOSTNAME/LISTEN ADDRESS. So a
 * Redis never has more than the table; small hashes of short values are what it stores with least
 * memory.
 *
 * Threads: one at a time for a link. Memory: by malloc; what Redis answers is bounded
 * (common/redis/redis_reader.h). Everything but put blocks, for BACKING_ANSWER_MS at
 * most for each answer, and not beyond the time that open was given; open as long as a name takes
 * to be resolved, and BACKING_ANSWER_MS for each of its addresses, one after the other. A failure
 * writes one line for people to `why`; the link is good for nothing then but close. */
#ifndef TTSERVER_KEEP_BACKING_REDIS_H
#define TTSERVER_KEEP_BACKING_REDIS_H

#include "common/redis/redis_address.h"
#include "common/tt/results.h"

#include <stdatomic.h>
#include <stdint.h>

enum {
    BACKING_SLICE = 128, /* buckets: as many as Redis keeps in a compact hash */
    BACKING_NAME_MAX = 600,
    BACKING_ANSWER_MS = 5000,
};

/* Most buckets of a record: a table of 4 TiB. */
#define BACKING_BUCKETS_MAX (UINT64_C(1) << 36)

struct backing_link;

struct backing_record {
    uint64_t place; /* 0: there is no record */
    uint64_t buckets;
    uint64_t stamp; /* drawn for the last flush, set when all before it is removed; or 0 */
};

static inline uint64_t backing_slices(uint64_t buckets)
{
    return (buckets + BACKING_SLICE - 1) / BACKING_SLICE;
}

/* Connects and logs in. `end_by_us`: when it is not 0, all calls that wait longer than that fail
 * with ERR_FULL; borrowed, may change at any time. ERR_IO; ERR_ABSENT: it is there and still reads
 * its own file. */
enum err backing_link_open(struct backing_link **out, const struct redis_address *address,
                           const _Atomic uint64_t *end_by_us, char why[REDIS_WHY_MAX]);
/* Accepts a null. */
void backing_link_close(struct backing_link **link);

enum err backing_link_record(struct backing_link *link, const char *name,
                             struct backing_record *out, char why[REDIS_WHY_MAX]);
enum err backing_link_set_record(struct backing_link *link, const char *name,
                                 const struct backing_record *record, char why[REDIS_WHY_MAX]);

/* Restores all entries of a record into the table, adds their number to *entries. What is no entry
 * is left out. `flushed`: ERR_EXIST as soon as it is not what it was at the call, so that what was
 * forgotten does not come back; NULL: nobody flushes. */
enum err backing_link_read(struct backing_link *link, const struct backing_record *record,
                           struct tt_results *results, const _Atomic uint64_t *flushed,
                           uint64_t *entries, char why[REDIS_WHY_MAX]);

/* Queues the buckets of a slice whose bit in `bits` is set: entries of at least that depth. Returns
 * how many entries, 0: nothing is queued. */
unsigned backing_link_put(struct backing_link *link, uint64_t place, uint64_t slice,
                          const uint64_t bits[BACKING_SLICE / 64], const struct tt_results *results,
                          uint8_t depth_min);
/* Sends what is queued and waits until Redis has it. */
enum err backing_link_flush(struct backing_link *link, char why[REDIS_WHY_MAX]);

/* Whether it is still there. */
enum err backing_link_ping(struct backing_link *link, char why[REDIS_WHY_MAX]);

/* Removes the slices of a record. */
enum err backing_link_forget(struct backing_link *link, const struct backing_record *record,
                             char why[REDIS_WHY_MAX]);

#endif
