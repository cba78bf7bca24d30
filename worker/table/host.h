/* host: results, and lessons, in memory that the processes of one user on one host share.
 *
 * Processes that name the same shards and want a table of the same size use one table between them,
 * as threads of one process do: entries are whole or not there (results.h), so that nobody need be
 * trusted to live. It is a file in /dev/shm that only the user may open, and ends with the last
 * process that has it; what a killed one left behind is swept away by the next that comes.
 * Whoever has the file holds a read lock on it, which the system takes back when it dies: a write
 * lock says that nobody else has it.
 *
 * Threads: open, clear and close by one; the rest by any. Memory: the file's. Open waits while
 * another process fills a new table with pages, for some seconds at most. */
#ifndef WORKER_TABLE_HOST_H
#define WORKER_TABLE_HOST_H

#include "common/err.h"
#include "common/options.h"
#include "common/placement.h"
#include "common/tt/generation.h"
#include "worker/table/lessons.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { HOST_JOBS = 8 };

/* What those who use a table together know of each other; also the private table's. */
struct host_state {
    /* Read with every store. */
    struct tt_generations generations;
    _Alignas(64) uint64_t table_id; /* random: tells tables apart */
    /* Written now and then. */
    _Alignas(64) _Atomic uint64_t job[HOST_JOBS]; /* begun before; each has its place */
    _Atomic uint64_t other_table_us; /* CLOCK_MONOTONIC: till then others with other tables count */
    /* Written each millisecond. */
    _Alignas(64) struct placement placement; /* of the threads of all */
};

struct host;

/* What processes have in common that share a table: never 0. The order of servers says nothing. */
uint64_t host_group(const struct options_host_port *server, unsigned servers);

/* Joins the table of `group` and `bytes`, at least 1 MiB, or makes it. Where /dev/shm is no memory
 * or has no room, where a file of that name is not ours, or another process is stuck in making it,
 * ERR_IO with errno: use a table of your own. ERR_NOMEM, ERR_RANGE. */
enum err host_open(struct host **out, uint64_t group, size_t bytes);
/* Accepts NULL; nulls. */
void host_close(struct host **host);

/* Page-aligned; zero when made. Some pages of the bytes wanted are not among it. */
void *host_memory(const struct host *host);
size_t host_memory_bytes(const struct host *host);
/* Makes it all zero if no other process has it; false: one has. */
bool host_clear(struct host *host);
struct host_state *host_state(const struct host *host);
struct lessons *host_lessons(const struct host *host);
/* Of its file. */
const char *host_path(const struct host *host);

#endif
