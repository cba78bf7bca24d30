/* zeromq: the lanes of a process to its ttservers, on real sockets and the real clock: one ZeroMQ
 * DEALER for each lane and shard.
 *
 * Threads: open before others open files; open, zeromq_lane and close by one thread, while no lane
 * is in use; a lane by the thread of its client. Memory: allocates in open and zeromq_lane; ZeroMQ
 * keeps its own. Blocking: close, up to 200 ms for BYE to leave. */
#ifndef PROTO_LANE_ZEROMQ_H
#define PROTO_LANE_ZEROMQ_H

#include "common/keys/keys.h"
#include "common/options.h"
#include "proto/lane/lane.h"

struct zeromq;

enum { ZEROMQ_WHY_MAX = KEYS_WHY_MAX };

enum zeromq_flag {
    ZEROMQ_WATCHES = 1, /* for zeromq_refusal, without a program that says it */
    ZEROMQ_UNLIMITED = 2, /* no high-water marks: the client limits what is under way */
    ZEROMQ_IS_GUEST = 4, /* in a program of others, whose limit of open files stays as it is */
};

/* For up to `lanes` lanes, each to all servers. Each connection takes descriptors of the process:
 * its limit of open files is raised as far as needed. Each server has a thread of ZeroMQ's.
 * `server` is borrowed until close; a name among them is resolved by a thread that nobody waits
 * for. `program` (borrowed) names who says on stderr, once a shard, that its host is not known,
 * that it refuses our keys or our HELLO, or is there twice; NULL: nobody. `flags`: of enum
 * zeromq_flag. On failure one line for people, which says what to do, is written to `why`.
 * ERR_FULL: more than the system allows, or than are free. ERR_NOMEM, ERR_RANGE. */
enum err zeromq_open(struct zeromq **out, const struct options_host_port *server, unsigned servers,
                     unsigned lanes, const char *program, unsigned flags, char why[ZEROMQ_WHY_MAX]);
/* After the clients on its lanes are closed. Accepts NULL; nulls. */
void zeromq_close(struct zeromq **zeromq);

/* Begins to connect one more client; no shard need be up. The lane lives until close. `keys` are
 * copied into the sockets; NULL: no encryption. The first lane alone watches for refused keys,
 * which takes two more of ZeroMQ's sockets a shard. ERR_NOMEM, ERR_IO. */
enum err zeromq_lane(struct zeromq *zeromq, const struct keys_client *keys, struct lane *out);

/* Why a shard last refused the keys of the first lane, in words that follow its address; NULL: no
 * refusal is known. `is_final`: the shard said so itself, and asking again is of no use. */
const char *zeromq_refusal(struct zeromq *zeromq, unsigned shard, bool *is_final);

#endif
