/* ttcore_sessions: the peers of this shard, found by route, by session id, by silence, and by what
 * results they want.
 *
 * A slot is free or live. Hash chains by route, slots in a list by last word. A session id
 * is a serial of its slot above the slot's number: never 0, and not seen again for long. Workers
 * sit on worker indexes 0, 1, 2 ... without gaps, those of a user side by side: so whatever a
 * user's workers do, those of each other user stay spread as evenly as consecutive numbers are.
 * O(users) when one comes or leaves, but for users of one worker. Threads: the core's owner.
 * Memory: allocates in open only; pointers stay good until the slot is reused. */
#ifndef TTSERVER_CORE_SESSION_TABLE_H
#define TTSERVER_CORE_SESSION_TABLE_H

#include "common/err.h"
#include "ttserver/core/actions.h"
#include "ttserver/core/options.h"
#include "ttserver/core/user_table.h"

#include <stdint.h>
#include <sys/queue.h>

enum { TTCORE_NAMESPACE_BUCKETS = 256 };

struct ttcore_session {
    uint32_t id; /* 0: the slot is free */
    uint32_t serial;
    TAILQ_ENTRY(ttcore_session) link; /* of `by_silence`, or of `free` */
    LIST_ENTRY(ttcore_session) by_route, by_mail; /* of a bucket */
    uint64_t last_seen_us;
    uint64_t namespace_id, instance;
    uint64_t alias; /* of the instance: by which others know it */
    struct ttcore_user *user;
    uint32_t jobs; /* it owns */
    uint32_t worker_index; /* of a worker */
    uint64_t searches; /* the job it reported on last as a searcher; 0: none */
    struct ttcore_work { /* of that job, as reported last */
        uint64_t nodes, asks, waited_us, talked_us;
        uint64_t duplicated, abandoned, bytes_sent, bytes_received;
    } work;
    uint64_t table_id; /* of its HELLO or last SHARE; 0: it does not say */
    uint64_t relayed; /* which SHARE it got last, of those of its table (share_relay) */
    uint64_t push_after_us; /* a HELLO before that is not answered by the open jobs at once ... */
    bool push_owed; /* ... but with ticks: */
    uint32_t push_from; /* from this slot of the table of jobs on */
    uint64_t reports_us; /* ttcore_budget: of reports passed on */
    uint64_t letters_us; /* ttcore_budget: of letters and joins */
    uint64_t mail_job; /* it gets letters of that job's searchers; 0: none */
    bool is_wanting; /* in the list of those that want results of its namespace */
    TAILQ_ENTRY(ttcore_session) by_want;
    uint32_t highest; /* version of the protocol that it speaks */
    uint64_t refuses; /* the job that it refused last, as a worker, because of `why`; 0: none */
    uint8_t role; /* enum proto_role */
    uint8_t flags; /* enum proto_hello_flag */
    uint8_t route_length;
    uint8_t route[TTCORE_ROUTE_MAX];
    char name[TTCORE_NAME_MAX], release[TTCORE_RELEASE_MAX], why[TTCORE_WHY_MAX];
};

TAILQ_HEAD(ttcore_session_queue, ttcore_session);
LIST_HEAD(ttcore_session_chain, ttcore_session);

struct ttcore_sessions {
    /* fixed after open */
    struct ttcore_session *slot;
    struct ttcore_session_chain *bucket; /* by route */
    struct ttcore_session_chain *mail_bucket; /* by (mail_job, alias) */
    uint32_t *worker_index; /* [of_role[PROTO_WORKER]] slots */
    uint32_t mask, max, slot_bits;
    uint64_t seed;
    /* state */
    struct ttcore_session_queue free;
    struct ttcore_session_queue by_silence; /* the one silent longest first */
    uint32_t live;
    uint32_t of_role[PROTO_MONITOR + 1];
    uint32_t workers_counted; /* of each user TTCORE_POST_WORKERS at most */
    struct ttcore_session_queue wanting[TTCORE_NAMESPACE_BUCKETS]; /* by namespace */
};

/* ERR_NOMEM. */
enum err ttcore_sessions_open(struct ttcore_sessions *sessions, uint32_t max, uint64_t seed);
/* Accepts a zeroed struct, and twice. */
void ttcore_sessions_close(struct ttcore_sessions *sessions);

/* NULL when nobody is there. */
struct ttcore_session *ttcore_sessions_find(const struct ttcore_sessions *sessions,
                                            const uint8_t *route, size_t length);
struct ttcore_session *ttcore_sessions_by_id(const struct ttcore_sessions *sessions, uint32_t id);

/* A live session of role PROTO_CLIENT for a route that has none; NULL when all slots are taken. */
struct ttcore_session *ttcore_sessions_add(struct ttcore_sessions *sessions, const uint8_t *route,
                                           size_t length, uint64_t now_us);
/* Its fields stay readable until the slot is reused by add. */
void ttcore_sessions_remove(struct ttcore_sessions *sessions, struct ttcore_session *session);

/* A worker has a user. */
void ttcore_sessions_set_role(struct ttcore_sessions *sessions, struct ttcore_session *session,
                              uint8_t role);
/* Whose it is; to be counted there by the caller. */
void ttcore_sessions_set_user(struct ttcore_sessions *sessions, struct ttcore_session *session,
                              struct ttcore_user *user);
/* It spoke now. */
void ttcore_sessions_touch(struct ttcore_sessions *sessions, struct ttcore_session *session,
                           uint64_t now_us);

/* Lists it with those that want results of its namespace, as the last, or takes it out. To be taken
 * out before its namespace changes. */
void ttcore_sessions_want(struct ttcore_sessions *sessions, struct ttcore_session *session,
                          bool wants);
/* The first of the list of a namespace, in which there may be sessions of others; NULL: empty. Who
 * looks at it makes it the last, so that all get a turn. */
struct ttcore_session *ttcore_sessions_next_wanting(struct ttcore_sessions *sessions,
                                                    uint64_t namespace_id);

/* Sets whose letters the session gets: those of a job; 0: none. A session is found by its job and
 * its alias, so set 0 before its instance changes. */
void ttcore_sessions_set_mail(struct ttcore_sessions *sessions, struct ttcore_session *session,
                              uint64_t job);
/* NULL: nobody. */
struct ttcore_session *ttcore_sessions_find_mail(const struct ttcore_sessions *sessions,
                                                 uint64_t job, uint64_t alias);

/* The worker on a worker_index below of_role[PROTO_WORKER]. */
static inline struct ttcore_session *ttcore_sessions_worker_at(
    const struct ttcore_sessions *sessions, uint32_t worker_index)
{
    return &sessions->slot[sessions->worker_index[worker_index]];
}

static inline uint32_t ttcore_sessions_slot(const struct ttcore_sessions *sessions,
                                            const struct ttcore_session *session)
{
    return (uint32_t)(session - sessions->slot);
}

#endif
