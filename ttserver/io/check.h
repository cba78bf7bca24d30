/* check: asks a shard, as any client would, whether it serves. For health checks of supervisors.
 *
 * Threads: any. May block for CHECK_MS and a little. Memory: a ZeroMQ context of its own. */
#ifndef TTSERVER_IO_CHECK_H
#define TTSERVER_IO_CHECK_H

#include "common/options.h"

enum { CHECK_MS = 2000 };

/* Opens a session there and ends it again. ERR_ABSENT: nobody welcomed us in time: not there,
 * stalled, or full. An open port is not enough: ZeroMQ's own thread would answer on it. ERR_NOMEM,
 * ERR_IO. */
enum err check_shard(const struct options_host_port *at);

#endif
