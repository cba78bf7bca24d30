/* redis_node: one connection to one Redis server: connects and connects again, TLS, log-in,
 * scripts, a pipeline of calls, and answers in the order of the calls. What redis_link is made of,
 * and who waits for one server alone.
 *
 *     IDLE --> CONNECTING --> (SECURING) --> LOGIN --> UP        any of them --> IDLE, which lasts
 *                                                                50 to 400 ms
 *
 * A server that owes an answer and is silent is given up: `silence_us`. One that is idle
 * is asked for a sign of life every second, so that a dead one is known before it is needed.
 *
 * What a server says is not trusted: replies are bounded in bytes and in elements, and one that was
 * not asked for ends the connection. Threads: one. Memory: allocates; bounded for each node.
 * Blocking: none. */
#ifndef COMMON_REDIS_REDIS_NODE_H
#define COMMON_REDIS_REDIS_NODE_H

#include "common/host_lookup.h"
#include "common/redis/redis_address.h"
#include "common/redis/redis_tls.h"

#include <poll.h>
#include <stddef.h>
#include <stdint.h>

struct redisReply;
struct redis_reader;

enum {
    REDIS_CALL_BYTES_MAX = 32 << 20,
    REDIS_CALL_HASH = 40, /* characters of a script's hash */
};

enum redis_call_kind {
    REDIS_CALL_USER, /* these three are the link's */
    REDIS_CALL_MAP,
    REDIS_CALL_SUBSCRIBE,
    REDIS_CALL_AUTH, /* these are the node's */
    REDIS_CALL_SELECT,
    REDIS_CALL_ROLE,
    REDIS_CALL_LOAD,
    REDIS_CALL_READY, /* the last one of a log-in */
    REDIS_CALL_PING,
    REDIS_CALL_ASKING,
};

/* A command as it is sent, and kept until its answer is there. One block of memory. */
struct redis_call {
    struct redis_call *next;
    uint64_t tag;
    uint64_t number; /* its number among the user's calls */
    uint64_t first_us, queued_us; /* when the user made it; when it came to this node */
    uint64_t due_us; /* for who keeps it aside */
    enum redis_call_kind kind;
    uint16_t slot;
    uint8_t script; /* number of the script, for EVALSHA and SCRIPT LOAD */
    uint8_t tries;
    size_t hash_at; /* where in `bytes` the script's hash belongs; 0: nowhere */
    size_t length;
    char bytes[];
};

enum {
    REDIS_NODE_CALLS_MAX = 1 << 16, /* calls that wait for answers, or to be sent */
    REDIS_NODE_READ = 64 << 10, /* bytes at once */
    REDIS_NODE_SILENCE_US = 1500000,
    REDIS_NODE_IDLE_US = 1000000, /* after which it is asked for a sign of life */
    REDIS_NODE_RETRY_MIN_US = 50000,
    REDIS_NODE_RETRY_MAX_US = 400000,
    REDIS_NODE_LOOKUP_US = 5000000, /* between the begins of two look-ups of its name */
    REDIS_NODE_REPLICA_US = 1000000, /* before a replica is looked at again */
};

enum redis_node_state {
    REDIS_NODE_IDLE,
    REDIS_NODE_CONNECTING,
    REDIS_NODE_SECURING,
    REDIS_NODE_LOGIN,
    REDIS_NODE_UP
};

struct redis_node;

/* What all nodes of a link have in common. */
struct redis_node_setup {
    const char *user, *password; /* empty: none; borrowed */
    unsigned db;
    const char *const *script;
    unsigned scripts;
    uint64_t silence_us; /* REDIS_NODE_SILENCE_US, if nobody wants to wait longer */
    struct redis_tls_trust *trust; /* NULL: no TLS */
    char unusable[REDIS_WHY_MAX]; /* not empty: why nothing can be connected at all */
    void *self;
    /* The three may queue calls on any node, and close none. Takes the call. */
    void (*replied)(void *self, struct redis_node *node, struct redis_call *call,
                    const struct redisReply *reply);
    /* Lost with the connection. Takes the call. */
    void (*lost)(void *self, struct redis_call *call);
    void (*pushed)(void *self, const struct redisReply *reply); /* a message of a channel */
    /* It is up now, or has failed (`why`). */
    void (*changed)(void *self, struct redis_node *node);
    char buffer[REDIS_NODE_READ];
};

struct redis_node {
    struct redis_node_setup *setup;
    struct options_host_port at;
    bool is_subscriber; /* no scripts, and replies may be messages of channels */

    bool is_wanted; /* the owner of the node says so: connect, and again */
    enum redis_node_state state;
    int fd;
    struct redis_tls *tls;
    struct redis_reader *reader;
    struct host_lookup_name name; /* addresses of the host, resolved anew where none answers */
    uint64_t progress_us; /* the last step of connecting, or the last whole reply */
    uint64_t retry_us, backoff_us;
    uint64_t now_us;
    bool is_broken; /* while nobody could be called back; serve ends the connection */
    bool has_failed; /* not up again after that */
    bool is_replica; /* set when it said so last: before it is up its role is asked for */
    bool was_refused; /* set when the server refused us; else `why` is the network's */
    char why[REDIS_WHY_MAX]; /* begins with its address */

    struct redis_call *first, *last; /* in the order of their answers */
    struct redis_call *unsent; /* the first that is not wholly written */
    size_t unsent_offset;
    unsigned calls;
    size_t bytes; /* of them, up to REDIS_CALL_BYTES_MAX */
    char hash[REDIS_SCRIPTS_MAX][REDIS_CALL_HASH];
    bool is_loading[REDIS_SCRIPTS_MAX];
};

/* A call made of argc arguments; ahead of them, where `script` is not negative, EVALSHA, room for
 * the hash of that script, and `keys`. NULL: no memory, or too large. */
struct redis_call *redis_call_make(enum redis_call_kind kind, int script, unsigned keys,
                                   unsigned argc, const char *const *argv, const size_t *length);
/* Frees a call. One with a password is wiped. Accepts NULL. */
void redis_call_free(struct redis_call *call);
/* A command of up to 8 plain words. */
struct redis_call *redis_call_make_words(enum redis_call_kind kind, unsigned argc,
                                         const char *const *argv);

/* Nothing is connected yet. False: no memory. */
bool redis_node_open(struct redis_node *node, struct redis_node_setup *setup, const char *host,
                     uint16_t port, bool is_subscriber);
/* Gives what is queued one chance to leave; calls nobody back. A zeroed node is fine. */
void redis_node_close(struct redis_node *node);

static inline bool redis_node_is_up(const struct redis_node *node)
{
    return node->state == REDIS_NODE_UP && !node->is_broken;
}

/* What to say of one that is silent. */
static inline const char *redis_node_silence_text(enum redis_node_state state)
{
    return state == REDIS_NODE_IDLE         ? "its name is still being resolved"
           : state == REDIS_NODE_CONNECTING ? "it cannot be reached: no answer"
           : state == REDIS_NODE_SECURING   ? "it does not answer: perhaps it has no TLS there"
                                            : "it does not answer";
}

/* Queues it behind the others and sends what the socket takes. False: not up, or full, and the call
 * is still the caller's. */
bool redis_node_call(struct redis_node *node, struct redis_call *call, uint64_t now_us);
/* The server forgot the script: loads it again, ahead of what is queued from now on. False: not up.
 */
bool redis_node_load(struct redis_node *node, unsigned script, uint64_t now_us);
/* Ends the connection at the next serve or tick; `reason` is what people read. */
void redis_node_break(struct redis_node *node, const char *reason);

/* The same for one that takes no writes as it is a replica, or has become one: another address of
 * its host is tried, or its name is resolved again. */
void redis_node_refuse_replica(struct redis_node *node);

/* Another host or port was written to `at` of a node that is not connected. */
void redis_node_moved(struct redis_node *node);

/* Writes and reads what the socket takes and has, calls back. True if anything came. */
bool redis_node_serve(struct redis_node *node, uint64_t now_us);
/* Connects where that is wanted and due, ends what is silent. */
void redis_node_tick(struct redis_node *node, uint64_t now_us);
/* False: there is nothing to poll for. */
bool redis_node_poll(const struct redis_node *node, struct pollfd *out);

#endif
