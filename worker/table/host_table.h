/* host_table: results in memory that the processes of one user on one host share.
 *
 * Processes that name the same shards and want a table of the same size use one table between them,
 * as threads of one process do. An entry is whole or absent (results.h), so a process that is
 * killed while it writes harms no other. The memory is a file in /dev/shm that only the user may
 * open. It goes with the last process that has it; what a killed process left behind is removed by
 * the next one that opens any table. Every process that has the file holds a read lock on it, which
 * the system takes back when the process ends: a write lock proves that no other process has it.
 *
 * Threads: open, clear and close of a table by one thread at a time; the rest by any. Memory: the
 * file's. Blocking: open waits while another process fills a new table with pages, as long as that
 * one goes on. */
#ifndef WORKER_TABLE_HOST_TABLE_H
#define WORKER_TABLE_HOST_TABLE_H

#include "common/err.h"
#include "common/options.h"
#include "common/placement.h"
#include "common/tt/generation.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    HOST_TABLE_JOBS = 8,
    HOST_TABLE_CLAIMS = 4096, /* some for each ply of each thread */
    HOST_TABLE_FOREIGN_CLAIMS =
        16384, /* all hosts' of some milliseconds, the deep ones' of seconds */
};

/* What those who share a table have in common besides results; a private table has one, too. */
struct host_state {
    /* Read with every store. */
    struct tt_generations generations;
    _Alignas(64) uint64_t table_id; /* random: tells tables apart */
    int64_t maker; /* the process that made it; said first of all */
    /* Written now and then. */
    _Alignas(64) _Atomic uint64_t job[HOST_TABLE_JOBS]; /* begun before, by id modulo the size */
    _Atomic uint64_t other_table_us; /* CLOCK_MONOTONIC: until then peers have other tables */
    /* A node that a thread is in: the high bits of a hash of key and depth, and the thread's
     * name. Hints: one may take the place of another, or be of a process that was killed. */
    _Alignas(64) _Atomic uint64_t claim[HOST_TABLE_CLAIMS];
    /* Foreign claims, of nodes that searchers of other hosts are in: the same bits, and until when
     * that counts. Hints, too. */
    _Alignas(64) _Atomic uint64_t foreign_claim[HOST_TABLE_FOREIGN_CLAIMS];
    _Atomic uint64_t foreign_received_us; /* when the last one came */
    /* Written each millisecond. */
    _Alignas(64) struct placement placement; /* CPUs of the threads of all processes */
};

struct host_table;

/* How open waits for the process that makes the table, which may be this one. Zero means the
 * default in brackets. */
struct host_table_wait {
    void *self;
    /* Called again and again meanwhile: bytes of `bytes` are filled so far by process `maker`, 0:
     * not known. False: wait no longer [wait]. */
    bool (*waiting)(void *self, long maker, uint64_t filled, uint64_t bytes);
    uint32_t still_ms; /* the longest without progress [5,000] */
};

/* Joins the table of `group` and `bytes`, at least 1 MiB, or makes it. ERR_IO with errno where
 * /dev/shm is no memory or has no room, a file of that name is not ours, or the process that makes
 * it stands still (ETIMEDOUT): use a private table then; or with ECANCELED, because `wait` said so.
 * `wait` may be NULL. ERR_NOMEM, ERR_RANGE. */
enum err host_table_open(struct host_table **out, uint64_t group, size_t bytes,
                         const struct host_table_wait *wait);
/* For people: why it could not be had, given that errno. */
const char *host_table_reason(int error);
/* Accepts NULL; nulls. */
void host_table_close(struct host_table **host);

/* Page-aligned; zero when made. */
void *host_table_memory(const struct host_table *host);
/* Bytes of that memory: some pages less than what was opened. */
size_t host_table_bytes(const struct host_table *host);
/* Makes it all zero if no other process has it; false: one has. */
bool host_table_clear(struct host_table *host);
struct host_state *host_table_state(const struct host_table *host);

#endif
