/* client_state: what the files of the client share (proto/client/client_*.c); nobody else includes
 * it. client_open.c and client_receive.c are on top: they call the others.
 *
 * Threads: the client's own. */
#ifndef PROTO_CLIENT_STATE_H
#define PROTO_CLIENT_STATE_H

#include "proto/client/client.h"
#include "proto/client/rtt.h"

#include <sys/queue.h>

enum {
    ROW_NONE = 0xffff,
    HELLOS_MAX = 4, /* HELLOs outstanding at one shard */
    OTHERS_MAX = 4, /* requests outstanding at one shard besides an ask or peek for each ticket */
    UNSENT_PAUSE_MIN_US = 1000, /* before what the lane did not take is tried again: HELLOs, jobs */
    STOPPED_MAX = 16, /* stopped jobs whose stop is repeated */
    REFUSED_PAUSE_US = 1000000, /* between HELLOs to a shard that does not take us */
};

/* One request outstanding at one shard. Its index is the low bits of its request id. */
enum part_kind {
    PART_FREE,
    PART_HELLO,
    PART_HEARTBEAT,
    PART_STATS,
    PART_MEMBERS,
    PART_JOBS,
    PART_SCAN,
    PART_MAIL,
    PART_ASK,
    PART_PEEK,
};

struct part {
    uint64_t sent_us, deadline_us;
    uint32_t request, ticket;
    uint16_t first, count; /* of a list: where its first is among the ticket's, how many */
    TAILQ_ENTRY(part) in_order;
    uint8_t kind, shard;
};

/* Its index is the low bits of its id. */
struct ticket {
    uint64_t deadline_us;
    uint32_t id; /* 0: free */
    uint16_t count; /* asks or positions */
    uint16_t row; /* of client.rows; ROW_NONE: one ask, which is here */
    uint16_t waiting, answered; /* parts; answers to asks */
    uint8_t kind, one_owner;
    bool is_deferred;
    struct tt_ask one_ask;
    struct tt_answer one_answer;
    /* what it is about: these, or a row */
    struct tt_ask *asks;
    struct tt_answer *answers;
    struct tt_peeked *peeked;
    uint8_t *owner; /* the shard that each was sent to */
};

/* What tickets with lists are about: in rows of `size`, the last that was given back is used next.
 */
struct rows {
    struct tt_ask *asks; /* NULL: no list of more than one */
    struct tt_answer *answers;
    struct tt_peeked *peeked;
    uint8_t *owner;
    uint16_t *free;
    unsigned free_count, size;
};

struct queue {
    struct tt_store *stores;
    struct tt_release *releases;
    unsigned store_count, release_count;
    uint64_t oldest_us; /* when the oldest operation was queued */
};

struct shard {
    enum client_state state;
    bool known; /* has welcomed us once */
    uint32_t session, batch_max, heartbeat_ms, inflight_age_max_ms;
    uint64_t boot, place;
    uint32_t flush_request; /* outstanding; it has no time-out; 0: none */
    struct rtt rtt;
    unsigned timeouts_in_row;
    uint64_t timed_out_us; /* when the last one was counted */
    bool is_slow; /* up, but owns no keys: see shard_judge */
    unsigned verdicts; /* round trips in a row that speak for the other opinion of it */
    uint64_t judged_us; /* when the last of them was counted */
    unsigned outstanding, hellos; /* parts; those that are HELLOs */
    uint64_t hello_due_us; /* when not up, or hello_owed */
    uint32_t unsent_pause_us; /* after a HELLO that the lane did not take; 0: it took the last */
    bool hello_owed; /* a WELCOME has not confirmed the present role and namespace, or a leak */
    bool is_elsewhere; /* it may still send results of another namespace, which they do not name */
    bool leaked; /* leaves were dropped: the HELLO asks to release all */
    uint32_t hello_request; /* the HELLO that says all of it; 0: not sent yet */
    uint64_t request_us; /* when the last request was sent, or tried */
    uint64_t job_due_us; /* when the jobs are sent again */
    struct queue queue;
};

struct owner {
    uint64_t mixed_place; /* rng_mix(place) */
    uint8_t shard;
};

struct stopped_job {
    uint64_t job, at_us;
    bool used;
};

struct stored_job {
    bool used;
    uint64_t barred; /* bit i: shard i will not take it, however often */
    struct proto_job job;
    char text[3][PROTO_TEXT_MAX]; /* its texts */
};

struct client {
    /* fixed after open */
    bool (*send)(void *self, unsigned shard, const uint8_t *bytes, size_t length);
    void *self;
    struct client_options options;
    char name[CLIENT_NAME_MAX + 1];
    unsigned part_mask, part_limit, ticket_mask;
    size_t scratch_size;
    /* state */
    uint64_t now_us; /* the latest time seen */
    struct shard *shards;
    struct owner owners[CLIENT_SHARDS_MAX]; /* the shards that are up, those that own keys first */
    unsigned owner_count, up_count;
    struct part *parts;
    TAILQ_HEAD(part_list, part) outstanding; /* oldest first */
    unsigned part_count, ticket_count, deferred_count;
    unsigned next_relay; /* of results (SHARE): shards take turns */
    uint32_t next_request, next_ticket;
    uint64_t next_expiry_us; /* no part ends earlier */
    struct ticket *tickets;
    struct rows rows;
    struct tt_peek *gathered; /* [peek_max]: of one owner */
    struct tt_ask *gathered_asks; /* [ask_max] */
    struct stored_job *jobs;
    struct stopped_job stopped[STOPPED_MAX]; /* a ring */
    struct proto_message message; /* that was received last */
    struct client_event event; /* of it */
    bool has_event; /* nobody has taken it */
    uint64_t up, said_up, fell; /* bit i: shard i is up; was when last said; has fallen since */
    unsigned next_stopped;
    uint8_t *scratch;
    struct proto_decoder *decoder;
    struct client_counters counters;
};

/* Time never goes back. */
static inline uint64_t client_advance(struct client *c, uint64_t now_us)
{
    c->now_us = now_us > c->now_us ? now_us : c->now_us;
    return c->now_us;
}

/* A ticket that is open. */
static inline struct ticket *ticket_of(const struct client *c, uint32_t id)
{
    struct ticket *t = &c->tickets[id & c->ticket_mask];
    CHECK(id != 0 && t->id == id);
    return t;
}

/* Adds an event of the message received last, for client_next. */
static inline void event_put(struct client *c, struct client_event event)
{
    CHECK_THAT(!c->has_event, "client: a message is one event");
    c->event = event;
    c->has_event = true;
}

/* ---- client_send.c: sending, outstanding requests, the queue of stores and releases ---- */

/* Encodes and sends. A message that does not encode is a bug. */
bool client_send(struct client *c, unsigned shard, const struct proto_message *message);

/* An id that no outstanding part has. */
uint32_t client_next_request(struct client *c);
/* NULL when too many are outstanding, at that shard or at all; a HELLO always finds room. A shard
 * that takes one operation a message has no more parts than tickets + OTHERS_MAX, so that up to
 * eight such shards leave others theirs. Its deadline is the shard's time-out from now. */
struct part *client_part_open(struct client *c, enum part_kind kind, unsigned shard);
void client_part_close(struct client *c, struct part *part);
/* The outstanding part of that id at that shard, or NULL. */
struct part *client_part_find(struct client *c, uint32_t request, unsigned shard);
/* Closes a part that will not be answered; its ticket waits for one less. */
void client_part_lose(struct client *c, struct part *part);
void client_part_lose_all_of(struct client *c, unsigned shard);

/* False: something is still queued. */
bool client_queue_flush(struct client *c, unsigned shard);
/* Makes room for one more of `count`; false: there is none. */
bool client_queue_room(struct client *c, unsigned shard, const unsigned *count);
/* A leave will not reach the shard. */
void client_queue_leak(struct client *c, unsigned shard);
/* Queued stores become releases; counted as dropped. */
void client_queue_abandon_stores(struct client *c, unsigned shard);

/* ---- client_shard.c: sessions, time-outs in a row, the map ---- */

/* Ends what is overdue now. */
void client_part_expire(struct client *c);
/* Opens a request and sends its message, one whose first field is the request. NULL: not sent; if
 * the lane did not take it, that is a time-out, as it stood in place of a heartbeat. */
struct part *client_shard_query(struct client *c, unsigned shard, enum part_kind kind,
                                struct proto_message *m);
/* The outstanding part that a message answers in time: a sample, and the count of time-outs begins
 * anew. NULL: an answer to a request no longer known. */
struct part *client_shard_answered(struct client *c, unsigned shard, enum part_kind kind,
                                   uint32_t request);
/* Out of the map into `state`; everything outstanding there is lost. */
void client_shard_fall(struct client *c, unsigned shard, enum client_state state);
void client_shard_on_welcome(struct client *c, unsigned shard, const struct proto_welcome *m);
void client_shard_on_error(struct client *c, unsigned shard, const struct proto_error *m);
/* The owner of a key among the first of `owners`, or CLIENT_NOWHERE: of a node among `owner_count`;
 * of a job, for its letters, among `up_count`, slow or not, so that all clients for whom the same
 * shards are up agree. */
unsigned client_shard_owning(const struct client *c, uint64_t key, unsigned among);
/* FLUSH is answered; `refused` says why it is not done, or is NULL. False: it was not asked. */
bool client_shard_on_flushed(struct client *c, unsigned shard, uint32_t request,
                             const struct proto_text *refused);
/* HELLO, heartbeat, lingering stores when due; returns when the next is. */
uint64_t client_shard_tick(struct client *c, unsigned shard);

/* ---- client_table.c: stores, releases, asks and peeks ---- */

void client_table_on_answer(struct client *c, unsigned shard,
                            const struct proto_retrieve_answer *m);
void client_table_on_peek_answer(struct client *c, unsigned shard,
                                 const struct proto_peek_answer *m);

/* ---- client_job.c ---- */

/* Sends a shard the open jobs, and the stops of late; it ignores what it knows. */
void client_job_send_all(struct client *c, unsigned shard);
/* Makes an event of an ERROR that refuses the JOB_POST of an open job. */
void client_job_on_error(struct client *c, unsigned shard, const struct proto_error *m);
/* Repeats that at every heartbeat interval, as a message may be lost; returns when next. */
uint64_t client_job_tick(struct client *c, unsigned shard);

#endif
