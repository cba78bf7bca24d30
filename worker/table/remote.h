/* remote: a searcher's view of the shards: the protocol client, with the process's embedded table
 * first, where the threads of the process meet; alone below the remote depth limit and when no
 * shard is up.
 *
 * Nodes of at least the remote depth limit (remote_depth.h) ask the shards, the rest the embedded
 * table. An ask is not waited for unless the job says so (deferred reads: Kuszmaul 1995, section
 * 4): the node is begun with what is known here, and the search gets the answer when it has come.
 * Results below the limit are broadcast (share.h), and in-flight entries that grow old are
 * renewed.
 *
 * Threads: one remote for each searcher; only its thread calls it. Memory: allocates in open.
 * Blocking: the port's await, peek and peek_take wait for answers, no longer than the client's
 * time-outs and the limit of the search; remote_connect and remote_wait as long as they are told;
 * the rest never. */
#ifndef WORKER_TABLE_REMOTE_H
#define WORKER_TABLE_REMOTE_H

#include "proto/lane/lane.h"
#include "worker/table/embedded.h"

enum {
    REMOTE_SHARE_DEPTH = 2, /* the default */
};

struct remote;

/* The receiver of the client's events (proto/client/client.h) that are not about nodes: jobs,
 * letters, shards that come and go. NULL: nobody. It may call the client, and of the
 * remote remote_now_us and remote_client alone. */
struct remote_events {
    void *self;
    void (*take)(void *self, const struct client_event *event);
};

/* Until when a search waits for the answers of shards. One that died would cost its time-out, while
 * the clock of a game runs. */
struct remote_limit {
    uint64_t until_us; /* 0: no limit of time */
    const atomic_bool *stop; /* NULL: nobody stops it; borrowed; any thread sets it */
};

struct remote_options {
    struct lane lane; /* without a client; what it points to is borrowed until close */
    struct client_options client; /* hello_flags are set by the remote */
    struct remote_events events;
    struct embedded_port *local; /* borrowed until close */
    uint8_t share_depth; /* results of at least this depth are broadcast; 0: none */
};

/* Nothing is sent yet. ERR_NOMEM, ERR_RANGE. */
enum err remote_open(struct remote **out, const struct remote_options *options);
/* Says BYE where there is a session. Accepts NULL; nulls. */
void remote_close(struct remote **remote);

/* Serves the sockets until all shards are up, `wait_ms` is over, or 100 ms after the first is up:
 * one that is dead costs no more. Returns how many are up. */
unsigned remote_connect(struct remote *remote, unsigned wait_ms);
/* Serves the sockets for up to `wait_ms`, returning early when something came; 0: serves what is
 * there now. Between searches: during one remote_serve does it. */
void remote_wait(struct remote *remote, unsigned wait_ms);

/* A new search: the remote depth limit is fixed, or PROTO_REMOTE_DEPTH_AUTO; what was under way for
 * the last search is forgotten. `uses_shards`: the search asks the shards at all. `waits`: it waits
 * for each answer. */
void remote_begin(struct remote *remote, uint8_t remote_depth, bool uses_shards, bool waits);
/* The search that was begun asks no shard, nor sends them anything, before that time of the lane's
 * clock: nobody else is in its tree, and it may be over by then. */
void remote_keep_alone(struct remote *remote, uint64_t until_us);
/* The search that was begun waits for no answer after the limit: what it asks then is lost, and it
 * goes on alone to its next poll. */
void remote_set_limit(struct remote *remote, const struct remote_limit *limit);
/* Sends the stores that wait to fill a message: the last results of a search are for others, too.
 */
void remote_flush(struct remote *remote);

/* From env.poll: does what is due and hands what came to the search: answers that were not waited
 * for (search_answered), completion notices, foreign claims and renewals (search_renew). `now_us`:
 * the time now, of the lane's clock. Never waits. */
void remote_serve(struct remote *remote, struct search *search, uint64_t now_us);
/* At a poll of the search: the lane has let time pass (lane.h), and there is nothing else to do.
 */
bool remote_pass(struct remote *remote);

struct client *remote_client(struct remote *remote);
unsigned remote_depth_now(const struct remote *remote);
/* For answers, in the search begun last. */
uint64_t remote_waited_us(const struct remote *remote);
/* By the clock, in that search: on asks, peeks and stores that go to shards, on waiting, and on
 * taking in what comes from them and sending on what is found. */
uint64_t remote_talked_us(const struct remote *remote);
struct table_port remote_table_port(struct remote *remote);
/* The namespace from now on (client_hello). A worker is offered all open jobs anew. */
void remote_hello(struct remote *remote, uint64_t namespace_id);
/* The same HELLO again. */
void remote_refresh(struct remote *remote);
/* The lane's clock. */
uint64_t remote_now_us(const struct remote *remote);

#endif
