/* host: results in memory that the processes of one user on one host share.
 *
 * Processes that name the same shards and want a table of the same size use one table between them,
 * as threads of one process do: entries are whole or not there (results.h), so that nobody need be
 * trusted to live. It is a file in /dev/shm that only the user may open, and ends with the last
 * process that has it; what a killed one left behind is swept away by the next that comes.
 * Whoever has the file holds a read lock on it, which the system takes back when it dies: a write
 * lock says that nobody has it.
 *
 * Threads: open and close by one; the rest by any. Memory: the file's. Blocks in open for as long
 * as another process fills a new table with pages. */
#ifndef WORKER_TABLE_HOST_H
#define WORKER_TABLE_HOST_H

#include "common/err.h"
#include "common/options.h"

#include <stdatomic.h>
#include <stddef.h>

/* What those who use a table together know of each other; also the private table's. */
struct host_state {
    _Atomic uint64_t job; /* of the last advance */
    _Atomic uint64_t
        strangers_until_us; /* CLOCK_MONOTONIC: searchers with another table are there */
    uint64_t mark; /* random: tells tables apart */
    atomic_uint generation; /* 1 to 255 */
};

struct host;

/* What processes have in common that share a table: never 0. The order of servers says nothing. */
uint64_t host_group(const struct options_host_port *server, unsigned servers);

/* Joins the table of `group` and `bytes`, or makes it. Where there is no room, no /dev/shm, or a
 * file of that name which is not ours, ERR_IO with errno: use a table of your own. ERR_NOMEM. */
enum err host_open(struct host **out, uint64_t group, size_t bytes);
/* Accepts NULL; nulls. */
void host_close(struct host **host);

/* `bytes` as wanted, 4 KiB aligned, zero at first. */
void *host_memory(const struct host *host);
struct host_state *host_state(const struct host *host);
/* Of its file. */
const char *host_path(const struct host *host);

#endif
