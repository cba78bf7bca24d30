/* client: one searcher's side of the protocol: which shard owns a key, what is outstanding, who is
 * alive. A pure state machine: time comes with every call, bytes leave through its lane.
 *
 * Threads: one client per thread, no locks. Memory: all of it in client_open, none later. Never
 * blocks: an answer is polled for with its ticket, and every ticket ends by itself, READY or LOST,
 * at client_deadline() at the latest. Deterministic given the calls and their times.
 *
 * Whenever its lane wakes, it gives everything the sockets hold to client_receive FIRST
 * (a time-out counts against a shard only if its answer did not lie there unread), taking events
 * after each message, then polls tickets, then calls client_tick. It must not call the client from
 * `send`.
 *
 * A key belongs to the shard that is up and whose place weighs most (rendezvous hashing,
 * PROTOCOL.md section 5). A shard that stays silent loses its keys to the others until it answers a
 * HELLO again; one that is much slower than the nearest, until it no longer is (keeps_slow).
 *
 * client_open.c opens and frees it, client_receive.c takes messages and time, client_table.c has
 * asks, peeks and stores. */
#ifndef PROTO_CLIENT_CLIENT_H
#define PROTO_CLIENT_CLIENT_H

#include "proto/codec.h"

enum {
    CLIENT_SHARDS_MAX = 64,
    CLIENT_NAME_MAX = 63,
    CLIENT_NOWHERE = 255, /* in place of a shard: registered nowhere */
    CLIENT_SHARE_MAX = 1024, /* results in one SHARE */
};

struct client;

/* Messages that no call asked for, answers without a ticket, and which shards come and go. */
enum client_event_kind {
    CLIENT_SHARD_UP,
    CLIENT_SHARD_DOWN,
    CLIENT_HELLO_REFUSED, /* `refused`: the shard does not take us; once per HELLO, which is
                             repeated every second then */
    /* for who posts jobs, or searches them */
    CLIENT_JOB, /* every shard says it: the receiver drops repeats by job id */
    CLIENT_JOB_STOP, /* PROTO_STOP_EXPIRED: the shard does not know a job we report on; once per
                        report */
    CLIENT_JOB_REPORT, /* any worker may say anything in it */
    CLIENT_JOB_REFUSED, /* `refused`: the shard does not take a job posted here; once per JOB_POST,
                           which goes on being repeated where there is no room, and to a shard that
                           bars it is sent again in the next session alone */
    CLIENT_WORKER_INDEX, /* a worker's index among the workers of the shard, repeated at times */
    /* for who watches shards, or their tables */
    CLIENT_STATS,
    CLIENT_MEMBERS,
    CLIENT_JOBS,
    CLIENT_FLUSHED, /* `refused`: without words the shard has forgotten all results that it had when
                       it was asked */
    CLIENT_SCANNED, /* a page of entries, in their range */
    /* for searches */
    CLIENT_NODE_DONE, /* once for each node that another searcher finished while we had it in
                         flight, with its result (slot 0), in its range. A hint: it may be missing,
                         late, or not close our window; our in-flight entry stays */
    CLIENT_SHARED, /* results of others that PROTO_WANTS_RESULTS asked for, in their range; slots
                      say nothing */
    CLIENT_CORRESPONDENTS, /* client_mail_join */
    CLIENT_MAIL,
};

struct client_event {
    enum client_event_kind kind;
    unsigned shard;
    /* borrowed until the next client_receive, as is what it points to; none of ups and downs */
    union {
        const struct proto_job *job;
        const struct proto_job_stop *job_stop;
        const struct proto_job_report *job_report;
        const struct proto_worker_index *worker_index;
        const struct proto_stats_answer *stats;
        const struct proto_members_answer *members;
        const struct proto_jobs_answer *jobs;
        const struct proto_scanned *scanned;
        const struct proto_node_done *node_done;
        const struct proto_share *shared;
        const struct proto_mail_list *correspondents;
        const struct proto_mail *mail;
        struct {
            uint64_t job; /* JOB_REFUSED */
            const struct proto_text *why; /* the shard's words; NULL: FLUSHED, and not refused */
        } refused;
    };
};

/* Zero means the default in brackets. */
struct client_options {
    unsigned shards; /* 1..CLIENT_SHARDS_MAX, no default */
    enum proto_role role;
    uint8_t hello_flags; /* enum proto_hello_flag */
    uint64_t namespace_id; /* of the session (PROTOCOL.md section 3); keys are the caller's */
    uint64_t instance; /* random, one per client */
    uint64_t table_id; /* random, one for all who share a table (SHARE) [unknown] */
    const char *name; /* for people; copied, cut to CLIENT_NAME_MAX */
    const char *release; /* of the program, for people; borrowed [none] */
    uint32_t rto_min_us, rto_max_us; /* bounds of the wait for an answer [2,000, 250,000] */
    unsigned timeouts_in_row; /* time-outs in a row that take a shard out [3] */
    bool keeps_slow; /* a shard that is much slower than the nearest keeps its keys */
    uint32_t probe_us; /* between HELLOs to a shard that is not up [100,000]; the lane not taking
                          one, the next is tried after 1,000, 2,000, ... to that; a second after
                          one that was refused */
    uint32_t linger_us; /* the longest that a store waits in the queue, given ticks [1,000] */
    unsigned tickets; /* outstanding asks and peeks, up to 1,024 [64] */
    unsigned ask_max; /* asks in one list, up to PROTO_BATCH_MAX [1] */
    unsigned peek_max; /* positions in one peek, up to PROTO_BATCH_MAX [256] */
    unsigned lists; /* peeks, and lists of more than one ask, outstanding [tickets] */
    unsigned queue; /* stores, and as many releases, queued per shard [64] */
    unsigned jobs; /* jobs posted and not stopped [2] */
    struct proto_decoder *decoder; /* borrowed; clients of one thread may share it, whose events are
                                      taken before another receives [its own] */
};

enum client_state {
    CLIENT_ABSENT, /* nothing sent yet */
    CLIENT_GREETING, /* HELLO sent, no session */
    CLIENT_UP, /* in the map */
    CLIENT_DOWN, /* was up; fell silent or said BYE; probed */
    CLIENT_LEFT, /* we said BYE */
};

enum client_result { CLIENT_WAITING, CLIENT_READY, CLIENT_LOST };

enum { CLIENT_UNANSWERED = 3 }; /* in place of a verdict: that ask of a list was lost */

struct client_counters {
    uint64_t asks, peeks, stores, releases; /* operations sent */
    uint64_t shared; /* results told to others; ... */
    uint64_t shared_taken, shares_taken; /* ... those told by others, and the messages with them */
    uint64_t timeouts; /* requests without an answer in time */
    uint64_t late; /* answers to requests no longer known */
    uint64_t ups, downs;
    uint64_t refused; /* ERROR messages */
    uint64_t malformed, unexpected; /* dropped messages */
    uint64_t dropped; /* stores and releases that had no shard or no room */
    uint64_t leaks; /* of these, leaves: the next HELLO asks the shard to release all */
    uint64_t exhausted; /* asks and peeks refused for want of a ticket */
    uint64_t messages_sent, messages_received; /* of all kinds */
    uint64_t bytes_sent, bytes_received; /* theirs, without what carries them */
    uint64_t ask_messages, ask_bytes, store_messages, store_bytes; /* sent, among these */
};

/* `send` hands one message to the lane and never waits. False: it could not be taken now (no
 * connection, high-water mark); what it carried counts as lost at once. Per shard the lane keeps
 * the order; it may lose, and loses all or nothing of a message. ERR_RANGE for options outside
 * their ranges, ERR_NOMEM. Sends nothing: the first tick does. */
enum err client_open(const struct client_options *options,
                     bool (*send)(void *self, unsigned shard, const uint8_t *bytes, size_t length),
                     void *self, struct client **out);
void client_free(struct client **client);

/* One message from a shard. Anything malformed or out of place is counted and dropped. Its events
 * borrow from `bytes`, and are taken before the next one. */
void client_receive(struct client *client, unsigned shard, const uint8_t *bytes, size_t length,
                    uint64_t now_us);

/* The next event; false: none. A message makes one at most, besides ups and downs, which any call
 * may make: a shard that fell and rose since the last call is said to be down, then up; of one that
 * rose and fell nothing is said. */
bool client_next(struct client *client, struct client_event *out);

/* Time-outs, HELLOs, heartbeats, lingering stores. Returns when it wants to be called again at the
 * latest; UINT64_MAX: never, unless something else is called. Calling earlier is harmless. */
uint64_t client_tick(struct client *client, uint64_t now_us);

/* Changes role and namespace_id at once and says so to every shard, again until a WELCOME confirms
 * it. Nothing waits for that: asks, stores, sessions and in-flight entries go on as they are. */
void client_hello(struct client *client, enum proto_role role, uint64_t namespace_id,
                  uint64_t now_us);

/* Sends what is queued, BYE, and forgets all that is outstanding. Only client_hello revives. */
void client_bye(struct client *client, uint64_t now_us);

/* RetrieveAsk of 1..ask_max nodes, one message (as large as the shard takes) to each owner of their
 * keys, after what is queued for it. Returns a ticket; 0 when no shard is up, the lane took nothing
 * or no ticket is free. `where` has room for as many: the shard that each was sent to, or
 * CLIENT_NOWHERE, as for the rest of a list where tickets + 4 requests are outstanding at one shard
 * (its batch_max is small). Requires alpha < beta, depth <= TT_DEPTH_MAX. */
uint32_t client_ask(struct client *client, const struct tt_ask *asks, unsigned count,
                    uint64_t now_us, uint8_t *where);

/* Peeks at 1..peek_max positions, likewise. */
uint32_t client_peek(struct client *client, const struct tt_peek *peeks, unsigned count,
                     uint64_t now_us);

/* READY and LOST end the ticket. `out` has room for as many as were asked, in their order, and is
 * written on READY alone, when any was answered; the others are CLIENT_UNANSWERED. A shard may have
 * counted us in what was lost: leave such a node as if it had (store or release, with the same
 * `where`). */
enum client_result client_answer(struct client *client, uint32_t ticket, uint64_t now_us,
                                 struct tt_answer *out);

/* Whether client_answer or client_peeked would say CLIENT_WAITING. */
bool client_is_waiting(const struct client *client, uint32_t ticket, uint64_t now_us);

/* `out` has room for as many as were peeked at, in their order. READY if any part was answered:
 * the rest is unknown (unknown bounds, nproc 0). */
enum client_result client_peeked(struct client *client, uint32_t ticket, uint64_t now_us,
                                 struct tt_peeked *out);

/* Nobody polls for the answer of that ask, a list of one, from now on: client_next_deferred gives
 * it. */
void client_defer(struct client *client, uint32_t ticket);
/* Whether it is one of those, and open; and how many are. */
bool client_is_deferred(const struct client *client, uint32_t ticket);
unsigned client_deferred(const struct client *client);
/* The next of those that is READY, which ends its ticket; what got lost ends without a word. False:
 * none is. */
bool client_next_deferred(struct client *client, uint64_t now_us, struct tt_ask *ask,
                          struct tt_answer *answer);

/* Ends a ticket nobody will await; the places of its asks are released. */
void client_cancel(struct client *client, uint32_t ticket);
/* The same for asks whose places the caller leaves by client_store or client_release. */
void client_forget(struct client *client, uint32_t ticket);

/* When the ticket ends at the latest. */
uint64_t client_deadline(const struct client *client, uint32_t ticket);

/* Queued, never wait. `where` is what client_ask wrote: if another shard owns the key by now, that
 * one gets the result and `where` a release. Flushed before a later ask or peek to the
 * same shard, when the queue is full, by client_flush, or after linger_us by a tick. */
void client_store(struct client *client, unsigned where, const struct tt_store *store);
void client_release(struct client *client, unsigned where, const struct tt_release *release);
void client_flush(struct client *client, uint64_t now_us);

/* Posts to every shard that is up, and to every one that comes up until client_job_stop. Copies.
 * ERR_EXIST: posted already; ERR_FULL: options.jobs are open; ERR_RANGE: a text is too long. */
enum err client_job_post(struct client *client, const struct proto_job *job, uint64_t now_us);
void client_job_stop(struct client *client, uint64_t job, uint64_t now_us);
void client_job_report(struct client *client, const struct proto_job_report *report,
                       uint64_t now_us);

/* Broadcasts up to CLIENT_SHARE_MAX results, of PROTO_RESULT_DEPTH_MAX at most, to searchers with
 * another table than options.table_id: CLIENT_SHARED there. Through the shards that are up in
 * turns, which so bear the same load; with `relays` (not 0) through the first so many of them,
 * where the messages of many senders meet and leave as one. Nothing is kept or confirmed. Returns
 * how many were sent, from the first on. */
unsigned client_share(struct client *client, const struct tt_store *results, unsigned count,
                      unsigned relays, uint64_t now_us);

/* Takes part in the letters of an open job, or no longer, at the shard that owns its id as a key
 * among all that are up: its other searchers, to CLIENT_CORRESPONDENTS, or nothing. To be repeated,
 * some times a second: searchers come and go, and so does the shard. False: not sent. */
bool client_mail_join(struct client *client, uint64_t job, bool takes_part, uint64_t now_us);
/* A letter of up to PROTO_BODY_MAX bytes to the searcher of that alias, if it takes part: comes to
 * CLIENT_MAIL there, or gets lost. Letters from one to another arrive in their order as long as
 * the shard owns the job. */
void client_mail(struct client *client, uint64_t job, uint64_t to, const uint8_t *body,
                 size_t length, uint64_t now_us);

/* Asks one shard for its figures: CLIENT_STATS, or nothing. False: not up, or not sent. */
bool client_stats(struct client *client, unsigned shard, uint64_t now_us);
/* The same for its sessions and its open jobs, a page at a time: `from` 0, then the answer's `next`
 * until that is 0. */
bool client_members(struct client *client, unsigned shard, uint32_t from, uint64_t now_us);
bool client_jobs(struct client *client, unsigned shard, uint32_t from, uint64_t now_us);

/* Asks one shard to forget all results: CLIENT_FLUSHED, when it has, which takes a second for some
 * GiB, or nothing, when it fell silent meanwhile. Asked again before, it answers the last alone.
 * False: not up, or not sent. */
bool client_flush_table(struct client *client, unsigned shard, uint64_t now_us);
/* Asks one shard for results of at least `depth`, a page at a time: CLIENT_SCANNED, or nothing, as
 * with client_members. `cursor` 0, then the answer's `next` until that is 0; a page may be empty.
 * Results stored meanwhile may be among them. */
bool client_scan(struct client *client, unsigned shard, uint64_t cursor, uint8_t depth,
                 uint64_t now_us);

unsigned client_shards_up(const struct client *client);
/* The state of a shard now. */
struct client_shard {
    enum client_state state;
    /* as its last WELCOME said; 0 before the first */
    uint64_t boot; /* of this run of it */
    uint64_t place; /* which keys are its own, also after a restart that kept its results */
    uint32_t inflight_age_max_ms; /* of an in-flight entry before it expires; 0: it does not */
    uint32_t rtt_us; /* round trip, smoothed; 0: none yet */
};
struct client_shard client_shard(const struct client *client, unsigned shard);
/* Another shard that is up with the same place; CLIENT_NOWHERE: none. Both began with copies of one
 * snapshot or, with the same boot id, are one shard under two names. */
unsigned client_twin(const struct client *client, unsigned shard);
/* How long a node may be in flight without another ask, since shards drop old entries; 15 s at
 * most, which also makes up for a NODE_DONE that got lost. */
uint64_t client_renewal_us(const struct client *client);
/* The shard that owns the key now, or CLIENT_NOWHERE. */
unsigned client_owner(const struct client *client, uint64_t key);
uint32_t client_longest_rtt_us(const struct client *client); /* of shards that are up; at least 1 */
/* Outstanding requests of every kind, and those among them past their time-out by rto_max: 0 while
 * ticks come. */
unsigned client_outstanding(const struct client *client);
unsigned client_overdue(const struct client *client, uint64_t now_us);
const struct client_counters *client_counters(const struct client *client);

#endif
