/* redis_shell_state: what the files of the Redis shell share (redis_shell*.c); nobody else includes
 * it.
 *
 * A message of the client becomes one call of a script, with what its row says
 * (redis_shell_call.c); what is needed to answer the client waits in a struct redis_pending under
 * the call's tag. A call whose answer is lost ends the session of that shard, as a lost connection
 * does at a ttserver: the next HELLO begins another one, and nobody counts what the old one had in
 * flight.
 *
 * Threads: the shell's own. Memory: in open; a batch of several asks is copied while it is under
 * way; so is what has come and was not read yet. */
#ifndef WORKER_REDIS_REDIS_SHELL_STATE_H
#define WORKER_REDIS_REDIS_SHELL_STATE_H

#include "common/redis/redis_link.h"
#include "proto/client/client.h"
#include "worker/redis/redis_script.h"

#include <stdatomic.h>

enum {
    /* Version of all that is kept and published there, and of the names of keys: builds that name
     * the keys otherwise see another table. */
    REDIS_VERSION = PROTO_VERSION,
    REDIS_HEARTBEAT_MS = 1000,
    REDIS_SESSION_MS = 3500, /* 3.5 of these */
    REDIS_AGE_S = 60, /* age limit of an in-flight entry */
    REDIS_RESULT_S = 86400, /* a result that nobody wrote for so long is forgotten */
    REDIS_PENDING_MAX = 1024, /* calls under way */
    REDIS_PREFIX_MAX = 24,
    REDIS_KEY_MAX = 48,
    REDIS_ARGS_MAX = 2 * PROTO_BATCH_MAX + 16,
    REDIS_PLACES = 4 * PROTO_BATCH_MAX, /* a power of two */
    REDIS_PAGE_SHIFT = 40,
    REDIS_SAID_MAX = 16, /* kinds of trouble that are said */
    REDIS_HEADER_BYTES = 1 + REDIS_BOOT_BYTES, /* head of what is published, so that nothing is
                                                  taken for another life's: shard, boot id */
};

/* A cursor of ours grows (PROTOCOL.md): above Redis's is the page's number. */
#define REDIS_CURSOR_MAX ((UINT64_C(1) << REDIS_PAGE_SHIFT) - 1)

/* What STATS answers besides what the script adds: counted here, summed at the server. */
/* clang-format off */
#define REDIS_FIGURES(X)                                                                   \
    X(asks) X(cuts) X(busy) X(opens) X(stores) X(releases) X(peeks) X(batches) X(messages) \
    X(node_dones) X(shared) X(job_posts) X(job_reports) X(reports_unknown_job)
/* clang-format on */

enum redis_figure {
#define X(name) REDIS_FIGURE_##name,
    REDIS_FIGURES(X)
#undef X
        REDIS_FIGURE_COUNT
};

/* A call under way. */
struct redis_pending {
    enum redis_script script;
    uint8_t shard;
    bool is_used, is_hello, is_flush;
    bool is_silent; /* nobody waits for the answer */
    uint8_t state; /* of a report */
    uint16_t count; /* operations; rows of a page; a depth */
    uint32_t request;
    uint32_t session, fresh_session; /* whose call it is; HELLO: the id it may have instead */
    uint64_t id; /* a job's; where a page begins; HELLO: the boot id of a life that it begins */
    uint64_t namespace_id;
    struct tt_ask ask; /* a batch of one */
    struct tt_ask *asks; /* a batch of several; allocated */
};

struct redis_shard {
    /* fixed after open */
    unsigned slot;
    bool has_jobs; /* jobs are offered here */
    char prefix[REDIS_PREFIX_MAX];
    unsigned prefix_length;
    /* state */
    uint64_t boot;
    uint32_t session; /* 0: none */
    uint32_t fresh_session; /* what HELLOs offer until one begins a session; 0: none is drawn */
    uint32_t dropped_session; /* session to be ended; 0: none */
    uint64_t renewed_us;
    uint64_t last_namespace; /* namespace of the session at the server */
    /* jobs that the client was offered */
    char jobs_version[24];
    uint64_t job[REDIS_JOBS_MAX];
    unsigned jobs;
    uint32_t figure[REDIS_FIGURE_COUNT]; /* not yet at the server */
};

/* Messages for the client, which takes them one at a time: one answer may be several. */
struct redis_inbox {
    uint8_t *bytes; /* of each its shard, its length, itself; grows */
    size_t room, length, read;
};

struct redis_shell {
    /* fixed after open */
    struct redis_link *link;
    unsigned shards;
    const char *program; /* NULL: says nothing */
    struct redis_shell *first; /* first shell of the process, or itself */
    char token[REDIS_TOKEN_BYTES + 1], channel[REDIS_TOKEN_BYTES + 16];
    char name[REDIS_TEXT_MAX]; /* name of the Redis, for people */
    /* state: what the last HELLO said */
    struct redis_shard shard[REDIS_SHELL_SHARDS];
    uint8_t role, flags;
    uint64_t namespace_id, instance;
    char client_name[CLIENT_NAME_MAX + 1];
    uint64_t table_id, searches; /* or the last SHARE said; the job of the last JOB_REPORT */
    uint64_t random, ticked_us;
    bool is_listening; /* for jobs */
    bool is_reading; /* set from the first message of a round to its end */
    struct redis_inbox inbox;
    struct redis_pending pending[REDIS_PENDING_MAX];
    unsigned last_pending; /* place of the last call */
    _Atomic uint64_t said[REDIS_SAID_MAX]; /* of `first`: what was said lately */
    _Atomic uint64_t said_from_us; /* of `first`: forgotten some minutes later, all at once */
    /* scratch */
    bool is_hashed;
    const void *body; /* of the call that is being made; ... */
    size_t body_length;
    unsigned keys, args; /* ... counts of what it has; keys are arguments, too */
    const char *arg[REDIS_ARGS_MAX];
    size_t arg_length[REDIS_ARGS_MAX];
    char key_bytes[REDIS_ARGS_MAX][REDIS_KEY_MAX];
    uint16_t place[REDIS_PLACES]; /* keys of the call, hashed; 0: free */
    uint8_t ops[PROTO_BATCH_MAX * REDIS_STORE_BYTES];
    struct proto_decoder decoder, answers; /* for what is read; for what is answered */
    uint8_t out[PROTO_MESSAGE_MAX];
};

/* ---- a call ---- */

/* A call with what all calls have. The rest is the caller's to set. */
struct redis_pending redis_shell_pending(const struct redis_shell *s, unsigned shard,
                                         enum redis_script script, uint32_t request, uint64_t id);
/* Calls the script, with what its row says, `body` included. False: not taken; nothing is pending
 * then. `pending` is copied (its asks become the shell's). */
bool redis_shell_call(struct redis_shell *s, const struct redis_pending *pending);
/* The same in two steps, for more keys between them: each its kind, then bytes. Returns its place
 * among the keys, from 1. */
void redis_shell_begin(struct redis_shell *s, const struct redis_pending *pending);
unsigned redis_shell_key(struct redis_shell *s, unsigned shard, const char *kind,
                         const uint8_t *bytes, size_t length);
bool redis_shell_send(struct redis_shell *s, const struct redis_pending *pending);
/* The call with that tag; it is no longer under way. False: there is none. */
bool redis_shell_take_pending(struct redis_shell *s, uint64_t tag, struct redis_pending *out);

/* ---- the client ---- */

/* Puts a message into the inbox; without memory for it, it is lost. */
void redis_shell_give(struct redis_shell *s, unsigned shard, const struct proto_message *message);
/* The same for the answer to the call `p`, with its fields. */
#define REDIS_GIVE_ANSWER(s, p, TYPE, field, ...)                  \
    redis_shell_give(s, (p)->shard,                                \
                     &(struct proto_message){.type = PROTO_##TYPE, \
                                             .field = {.request = (p)->request, __VA_ARGS__}})
void redis_shell_give_bytes(struct redis_shell *s, unsigned shard, const uint8_t *bytes,
                            size_t length);
/* Gives the client the first message of the inbox; false: it is empty. */
bool redis_shell_hand_over(struct redis_shell *s, struct client *client);
void redis_shell_refuse(struct redis_shell *s, unsigned shard, enum proto_error_code code,
                        uint32_t request, const char *why);
/* The session, if any, is to be ended at the server; its id is not used again. */
void redis_shell_drop_session(struct redis_shell *s, unsigned shard);
/* The session is over: the client is told, and says HELLO. */
void redis_shell_end_session(struct redis_shell *s, unsigned shard);
/* A JOB: the client is offered it, and it is known here. Anything else is dropped. */
void redis_shell_offer_job(struct redis_shell *s, unsigned shard, const uint8_t *bytes,
                           size_t length);
bool redis_shell_knows_job(const struct redis_shell *s, unsigned shard, uint64_t job);
void redis_shell_stop_job(struct redis_shell *s, unsigned shard, uint64_t job, uint8_t reason);

/* ---- what each message does: sends a call; false: not taken ---- */

/* clang-format off */
#define REDIS_MESSAGES(X)                                                       \
    X(HELLO, hello) X(BYE, bye) X(STATS, stats) X(MEMBERS, members) X(JOBS, jobs) \
    X(RETRIEVE_ASK, ask) X(STORE_HASH, store) X(RELEASE, release) X(PEEK, peek) \
    X(HEARTBEAT, heartbeat) X(JOB_POST, post) X(JOB_STOP, stop)                 \
    X(JOB_REPORT, report) X(SHARE, share) X(SCAN, scan)     \
    X(FLUSH, flush)
/* clang-format on */

#define X(type, name) \
    bool redis_on_##name(struct redis_shell *s, unsigned shard, const struct proto_message *m);
REDIS_MESSAGES(X)
#undef X

/* Renews the session, as a HEARTBEAT does; `is_silent`: the client did not ask for it. */
bool redis_renew(struct redis_shell *s, unsigned shard, uint32_t request, bool is_silent);

/* ---- what each script's answer means ---- */

/* clang-format off */
#define REDIS_ANSWERS(X)                                                   \
    X(ASK, asked) X(STORE, stored) X(RELEASE, stored) X(PEEK, peeked)      \
    X(SESSION, greeted) X(POST, posted) X(STOP, posted) X(REPORT, reported) \
    X(SHARE, shared) X(MEMBERS, members_read)     \
    X(JOBS, jobs_read) X(STATS, stats_read) X(SCAN, scanned)
/* clang-format on */

#define X(script, name)                                                     \
    void redis_##name(struct redis_shell *s, const struct redis_pending *p, \
                      const struct redisReply *r);
REDIS_ANSWERS(X)
#undef X

/* What was published for us, or for all workers. */
void redis_published(struct redis_shell *s, bool is_ours, const char *bytes, size_t length);

/* ---- people ---- */

/* Says what is wrong with the Redis, with advice where there is one; each kind once. */
void redis_shell_complain(struct redis_shell *s, const char *why, size_t length);
/* Says the words that a script added to its answer as element i, if any. */
void redis_shell_complain_of(struct redis_shell *s, const struct redisReply *r, size_t i);
/* One line, unless one of that kind was said in the last minutes. */
void redis_shell_say(struct redis_shell *s, const char *kind, const char *words);

/* ---- replies: what is not there, or of another type, is NULL, false or 0 ---- */

/* The server's words if it is an error. */
bool redis_reply_error(const struct redisReply *reply, struct proto_text *out);
bool redis_reply_text(const struct redisReply *reply, struct proto_text *out);
/* An integer, or a text of digits. */
bool redis_reply_number(const struct redisReply *reply, uint64_t *out);
/* Elements of an array. */
size_t redis_reply_count(const struct redisReply *reply);
const struct redisReply *redis_reply_at(const struct redisReply *reply, size_t i);

/* Element i of an array: its number, not above `max`; else 0. */
uint64_t redis_reply_number_at(const struct redisReply *reply, size_t i, uint64_t max);

/* ---- bytes ---- */

uint8_t *redis_put(uint8_t *to, uint64_t value, unsigned bytes);
uint64_t redis_get(const char *from, unsigned bytes);

#endif
