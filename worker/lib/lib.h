/* lib: what the files of libabdada share; nobody else includes it. A handle is a small struct that
 * is never freed, so that a call with a closed one can be told from others; all that it is about is
 * in struct lib.
 *
 * Threads: between lib_enter and lib_leave the one that entered. Memory: struct lib allocates in
 * abdada_open. Blocking: lib_wait. */
#ifndef WORKER_LIB_LIB_H
#define WORKER_LIB_LIB_H

#include "common/tt/tt.h"
#include "proto/client/feed.h"
#include "proto/lane/lane.h"
#include "worker/lane/lanes.h"
#include "worker/lib/abdada.h"
#include "worker/lib/lib_nodes.h"

enum {
    LIB_TICKETS_MAX = 128, /* the caller's; fewer than a connection queues */
    LIB_LISTS = 8, /* lists of asks or peeks under way, all of one call */
    LIB_LIST_MAX = PROTO_BATCH_MAX, /* operations in one */
    LIB_FLUSH_FROM = 64, /* stores or releases of one call, which leave at once */
    LIB_RENEWALS = 16, /* under way */
    LIB_JOBS_MAX = 16,
    LIB_REFUSAL_MAX = 256,
    LIB_NAME_MAX = 64,
    LIB_RECEIVED_MAX = 4096, /* results of others that nobody has taken */
    LIB_FEED_REST_US = 1000, /* between two reads of a handle that waits for no answer */
};

/* An ask that was sent. */
struct lib_asked {
    struct tt_ask ask;
    uint32_t id; /* the client's ticket */
    uint8_t where;
    bool is_move; /* of a node that we were in, to another shard */
    bool is_awaited; /* in the call that sent it: nothing was left since */
};

/* A renewal of a node in flight, for which the library itself asks. */
struct lib_renewal {
    uint32_t ticket;
    uint16_t slot;
    uint8_t depth;
    uint64_t key;
};

/* The feed of a handle, which keeps it for ever: other threads may be in abdada_share. */
struct lib_feed {
    /* of any thread; like the feed's own, apart from what each feed_put writes */
    _Atomic uint64_t mix;
    atomic_bool is_wanted; /* others are there, or it is time to find out */
    struct feed feed;
    _Atomic uint64_t lost;
    /* of who has the handle */
    struct feed_limits limits;
    uint64_t table_id, received_us; /* of others; 0: not yet */
    uint64_t wake_us; /* by then other threads may have shared more: they wake nobody */
    struct tt_store received[LIB_RECEIVED_MAX]; /* a ring */
    unsigned first, count;
};

struct lib_jobs; /* lib_jobs.c */

struct lib_list { /* of asks, under way */
    uint32_t id; /* 0: nothing was sent */
    bool is_move[LIB_LIST_MAX];
    uint8_t where[LIB_LIST_MAX];
    struct tt_ask ask[LIB_LIST_MAX]; /* as sent */
};

struct lib {
    /* fixed after open */
    struct lanes *lanes;
    struct lane lane;
    struct options_servers servers;
    struct redis_address redis;
    unsigned tickets_max;
    uint32_t flags;
    enum abdada_role role;
    uint32_t answer_us;
    unsigned shards;
    char log_name[LIB_NAME_MAX];
    void (*node_done)(void *self, const struct abdada_store_op *result);
    void *self;
    void (*take)(struct lib *l, const struct client_event *event); /* lib_handle.c */
    struct lib_feed *feed; /* NULL: there is none. The handle's */
    /* state */
    uint64_t namespace_id, mix; /* XORed into each key */
    struct lib_nodes nodes;
    struct lib_list list[LIB_LISTS]; /* of the call under way: too much for its stack */
    struct lib_asked *ticket; /* at (id & ticket_mask); id 0: free */
    unsigned ticket_mask, tickets;
    struct lib_renewal renewal[LIB_RENEWALS];
    unsigned renewals;
    uint64_t renew_due_us, rest_until_us, tick_us;
    int epoll, timer; /* -1: abdada_fd was not called */
    bool is_watching; /* the sockets */
    uint64_t armed_us; /* what the timer is set to; UINT64_MAX: not set */
    char refusal[LIB_REFUSAL_MAX];
    struct lib_jobs *jobs; /* NULL: not a front-end */
    /* of abdada_shard_stats, while it waits */
    struct abdada_figure *figures;
    size_t figures_room;
    int figures_count; /* -1: not there yet */
    unsigned figures_shard;
};

/* ---- lib_enter.c ---- */

/* A handle that is not open. NULL: no memory. */
struct abdada *lib_handle_new(void);
/* It is one of this process, about `l`. */
void lib_handle_open(struct abdada *t, struct lib *l);
/* Room for its feed. NULL: no memory. */
struct lib_feed *lib_handle_feed(struct abdada *t);
/* The feed of an open handle; from any thread, without taking the handle. HANDLE, ROLE. */
int lib_feed_of(struct abdada *t, struct lib_feed **out);
/* Ends that, and gives what it was about; the errors of lib_enter. */
int lib_handle_close(struct abdada *t, struct lib **out);
/* It is not open, and will be another's. */
void lib_handle_retire(struct abdada *t);
/* Takes the handle for this call, whose arguments are right, and serves what is due: ABDADA_OK, or
 * why not. */
int lib_enter(struct abdada *t, bool is_right, struct lib **out);
/* Begins a call of the interface: declares `l`, or returns why not. */
#define LIB_ENTER_OR_RETURN(t, is_right, l)          \
    struct lib *l;                                   \
    const int entered_ = lib_enter(t, is_right, &l); \
    if (entered_ != ABDADA_OK) {                     \
        return entered_;                             \
    }
/* The error for arguments that are wrong: a missing handle is the worse fault. */
int lib_wrong(const struct abdada *t);
/* Gives it back; returns `result`. */
int lib_leave(struct abdada *t, int result);

/* A struct with a struct_size from a caller whose header may be older, then what it does not have
 * is zero, or newer, then what we do not know must be zero. `size_0`: the least, that of the first
 * version. */
bool lib_copy_struct(void *out, size_t size, const void *given, size_t given_size, size_t size_0);

static inline uint64_t lib_now(const struct lib *l)
{
    return lane_now(&l->lane);
}

/* ---- lib_serve.c ---- */

/* Takes what has come. */
void lib_receive(struct lib *l);
/* Reads and sends what there is; sets l->tick_us. */
void lib_serve(struct lib *l);
/* The same, if it is due. */
void lib_serve_when_due(struct lib *l);
/* Waits until something comes or `until_us`, then serves. */
void lib_wait(struct lib *l, uint64_t until_us);
/* When to serve at the latest; for who does not have the descriptor. */
uint64_t lib_due(struct lib *l);
/* False: the system has no descriptor. */
bool lib_open_fd(struct lib *l);
/* The descriptor says what there is to do. */
void lib_update_fd(struct lib *l);
/* Takes what it says by the clock; false: it says nothing. */
bool lib_take_fd(struct lib *l);
void lib_close_fd(struct lib *l);

/* ---- lib_renew.c ---- */

/* Asks for nodes that are in flight for long; takes the answers to such asks. */
void lib_renew(struct lib *l, uint64_t now_us);
/* The next serve asks for it. */
void lib_renew_now(struct lib *l, struct lib_node *node);
/* When lib_renew wants to be called. */
uint64_t lib_renew_due(const struct lib *l);
void lib_leave_node_at(struct lib *l, unsigned where, uint64_t key, uint8_t depth, uint16_t slot);

/* ---- lib_table.c ---- */

bool lib_table_open(struct lib *l);
void lib_table_close(struct lib *l);
/* Ends all tickets and leaves all nodes. */
void lib_table_clear(struct lib *l);
void lib_table_on_node_done(struct lib *l, const struct proto_node_done *done);

/* ---- lib_feed.c ---- */

/* All accept an l->feed that is NULL, but lib_feed_take. */
void lib_feed_open(struct lib *l, uint32_t depth, uint32_t rate);
/* A new search, of l->mix. */
void lib_feed_begin(struct lib *l);
/* Any thread may call it, without the handle. False: there was no room. */
bool lib_feed_put(struct lib_feed *f, const struct abdada_store_op *result);
int lib_feed_take(struct lib *l, struct abdada_store_op *out, size_t capacity);
/* Sends what is due; when it wants to be called. */
void lib_feed_serve(struct lib *l, uint64_t now_us);
uint64_t lib_feed_due(const struct lib *l);
void lib_feed_on_shared(struct lib *l, const struct proto_share *share);

/* ---- lib_figures.c ---- */

void lib_figures_on_stats(struct lib *l, unsigned shard, const struct proto_stats_answer *answer);

/* ---- lib_jobs.c ---- */

bool lib_jobs_open(struct lib *l);
void lib_jobs_close(struct lib *l);
void lib_jobs_on_report(struct lib *l, const struct proto_job_report *report, unsigned shard);
void lib_jobs_on_refused(struct lib *l, uint64_t job, struct proto_text why, unsigned shard);

#endif
