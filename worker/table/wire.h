/* wire: a remote table's shell on real sockets and the real clock: one ZeroMQ DEALER per shard.
 *
 * Threads: open and close by any one; the shell by the thread of its searcher. Memory: allocates in
 * open; ZeroMQ keeps its own. Sending never blocks. */
#ifndef WORKER_TABLE_WIRE_H
#define WORKER_TABLE_WIRE_H

#include "common/options.h"
#include "worker/table/remote.h"

struct wire;

/* Begins to connect; no shard need be up. `context` is ZeroMQ's, fresh or used by wires to as many
 * servers, borrowed until close: it gets a thread for each server. ERR_NOMEM, ERR_IO, ERR_RANGE. */
enum err wire_open(struct wire **out, void *context, const struct options_host_port *server,
                   unsigned servers);
/* After the remote on it is closed. Accepts NULL; nulls. */
void wire_close(struct wire **wire);

struct remote_shell wire_shell(struct wire *wire);

#endif
