/* remote: a processor's view of the shards: the protocol client on ZeroMQ sockets, with the
 * process's embedded table below the remote_depth, as a cache above it, and in place of it when no
 * shard is up.
 *
 * Horizon (remote_depth.h): nodes of at least that remaining depth ask the shards, the rest the
 * process's table. Deferred reads (Kuszmaul 1995, section 4): an ask is not waited for unless the
 * job says so; the node is begun with what is known here, and remote_settle hands the answer to the
 * search when it has come. Shared results: below the remote_depth nobody is asked, so that each
 * would search what another has searched; what is found there is told to others now and then,
 * unasked, while there is company that does not use the same table (embedded_table_id). Threads:
 * one remote per searching thread; only that thread calls it. Memory: allocates in open. Blocking:
 * await and peek wait for answers, no longer than the client's time-outs; the rest never. */
#ifndef WORKER_TABLE_REMOTE_H
#define WORKER_TABLE_REMOTE_H

#include "proto/client.h"
#include "worker/table/embedded.h"

enum {
    REMOTE_NOTICES_MAX = 32,
    REMOTE_SHARE_DEPTH = 2, /* where nothing else is wished */
};

struct remote;

/* The world around a remote: sockets and a clock (wire.h), or their likeness in the virtual
 * cluster. */
struct remote_shell {
    void *self;
    uint64_t (*now)(void *self); /* microseconds, monotonic */
    bool (*send)(void *self, unsigned shard, const uint8_t *bytes, size_t length); /* client_port */
    /* Gives the client all that has arrived; true if anything had. Never waits. */
    bool (*drain)(void *self, struct client *client);
    /* Waits until something arrives or `until_us`. */
    void (*sleep)(void *self, uint64_t until_us);
    uint32_t
        ask_cost_us; /* what an ask and its store count as in what the remote_depth may spend */
    uint32_t rest_us; /* between two polls while no answer is under way; 0: every poll drains */
};

struct remote_options {
    struct remote_shell shell; /* borrowed until close */
    struct client_options client; /* hello_flags are set by the remote */
    struct client_sink sink; /* node_done is taken by the remote */
    struct embedded_port *local; /* borrowed until close */
    uint8_t share_depth; /* results of at least this depth are broadcast; 0: none */
};

struct remote_times {
    uint64_t waited_us; /* for answers */
    uint64_t since_us; /* when counting began */
};

/* Nothing is sent yet. ERR_NOMEM, ERR_RANGE. */
enum err remote_open(struct remote **out, const struct remote_options *options);
/* Says BYE where there is a session. Accepts NULL; nulls. */
void remote_close(struct remote **remote);

/* Serves the sockets until all shards are up, `wait_ms` is over, or 100 ms after the first is up:
 * one that is dead costs no more. Returns how many are up. */
unsigned remote_connect(struct remote *remote, unsigned wait_ms);
/* Serves what is there now. Called by the search's environment, which makes heartbeats flow. */
void remote_poll(struct remote *remote);
/* Serves the sockets for up to `wait_ms`, returning early when something came. */
void remote_wait(struct remote *remote, unsigned wait_ms);

/* A new search: remote_depth fixed (or PROTO_REMOTE_DEPTH_AUTO), clocks to zero, old news
 * forgotten. */
void remote_begin(struct remote *remote, uint8_t remote_depth, bool counted, bool waits);
/* From env.poll: hands answers that came to the search. */
void remote_settle(struct remote *remote, struct search *search);
/* Results of nodes others finished while this processor was inside. */
unsigned remote_notices(struct remote *remote, struct tt_store *out, unsigned room);

/* Sends the stores that wait for company in a batch: the last results of a search are for others,
 * too. */
void remote_flush(struct remote *remote);

struct client *remote_client(struct remote *remote);
unsigned remote_depth_now(const struct remote *remote);
struct remote_times remote_times(const struct remote *remote);
struct table_port remote_table_port(struct remote *remote);
/* Role and namespace from now on (client_hello). A worker is offered all open jobs anew. */
void remote_hello(struct remote *remote, enum proto_role role, uint64_t namespace_id);
/* The shell's clock. */
uint64_t remote_now_us(const struct remote *remote);

#endif
