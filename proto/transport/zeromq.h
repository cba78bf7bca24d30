/* zeromq: a remote table's shell on real sockets and the real clock: one ZeroMQ DEALER per shard.
 *
 * Threads: zeromq_context before others open files; open and close by any one; the shell by the
 * thread of its searcher. Memory: allocates in open; ZeroMQ keeps its own. Sending never blocks. */
#ifndef PROTO_TRANSPORT_ZEROMQ_H
#define PROTO_TRANSPORT_ZEROMQ_H

#include "common/keys/keys.h"
#include "common/options.h"
#include "proto/transport/shell.h"

struct zeromq;

enum { ZEROMQ_WHY_MAX = KEYS_WHY_MAX };

enum zeromq_flag {
    ZEROMQ_WATCHES = 1, /* for zeromq_refusal, without a program that says it */
    ZEROMQ_UNLIMITED = 2, /* no high-water marks: the client limits what is under way */
};

/* A context of ZeroMQ for as many lanes to as many servers, of which one has a program's name; the
 * caller's, for zmq_ctx_term. Each connection takes descriptors of the process: its limit of open
 * files is raised as far as needed, unless it `is_guest` in a program of others. On failure one
 * line for people, which says what to do, is written to `why`. ERR_FULL: more than the system
 * allows, or than are free. ERR_NOMEM. */
enum err zeromq_context(void **out, unsigned servers, unsigned lanes, bool is_guest,
                        char why[ZEROMQ_WHY_MAX]);

/* Begins to connect; no shard need be up. `context` is ZeroMQ's, fresh or used by lanes to as many
 * servers, borrowed until close: it gets a thread for each server. `server` is borrowed until
 * close; a name among them is resolved by a thread that nobody waits for. `keys` are copied into
 * the sockets; NULL: no encryption. `program` (borrowed) names who says on stderr, once a shard,
 * that its host is not known, that it refuses our keys or our HELLO; NULL: nobody. `first`: NULL,
 * or another lane of the process to the same servers, closed after this one: they have the
 * addresses in common, what it has said is not said again, and it alone watches for refused keys,
 * which takes two more of ZeroMQ's sockets a shard. `flags`: of enum zeromq_flag. ERR_NOMEM,
 * ERR_IO, ERR_RANGE. */
enum err zeromq_open(struct zeromq **out, void *context, const struct options_host_port *server,
                     unsigned servers, const struct keys_client *keys, const char *program,
                     struct zeromq *first, unsigned flags);
/* After the remote on it is closed. Accepts NULL; nulls. */
void zeromq_close(struct zeromq **zeromq);

struct remote_shell zeromq_shell(struct zeromq *zeromq);

/* Of a lane that watches: why a shard refused our keys last, in words that follow its address;
 * NULL: as far as known it did not. `is_final`: it said so itself, and asking again is of no use.
 */
const char *zeromq_refusal(struct zeromq *zeromq, unsigned shard, bool *is_final);

#endif
