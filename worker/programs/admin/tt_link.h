/* tt_link: what the files of `abdada tt` share; nobody else includes it: a session at each shard of
 * a table, for people who want to see or change what is in it. One request at a time, and each
 * waits.
 *
 * Threads: the main thread. Memory: all in open. Blocking: everything but close waits for shards,
 * up to the times below, or until *stop. All of the link that fail return ERR_IO, or what is said
 * at each, and write one line for people to link->why. */
#ifndef WORKER_PROGRAMS_ADMIN_TT_LINK_H
#define WORKER_PROGRAMS_ADMIN_TT_LINK_H

#include "common/tt/snapshot.h"
#include "worker/engine/job.h"
#include "worker/programs/cli.h"

#include <stdatomic.h>

enum {
    TT_ABSENT = -1,
    TT_LINK_WHY_MAX = SNAPSHOT_WHY_MAX, /* the longest that anybody writes there */
    TT_LINK_ANSWER_MS = 5000, /* for an answer, however often it is asked for */
    TT_LINK_FLUSH_MS = 60000,
    TT_LINK_BATCH = 256, /* most peeks at once */
    TT_LINK_QUEUE = 4 * TT_LINK_BATCH,
};

/* A command with its options. */
struct tt_command {
    /* as it was given */
    char name[16];
    char text[512]; /* what follows it: a position, or a file */
    const char *key_text, *bound, *move_text; /* NULL: not given */
    int32_t depth, alpha, beta, score; /* depth, score: TT_ABSENT, TT_SCORE_MIN - 1: not given */
    uint32_t for_ms;
    uint64_t most_bytes; /* size limit of a saved file */
    bool exclusive, yes;
    /* what comes of it */
    uint64_t key;
    struct job job; /* without a position where the key was given */
};

struct tt {
    /* command line, the same for all commands */
    struct cli_table table;
    struct cli_search search;
    uint32_t wait_ms;
    bool json;
    bool is_alone; /* the session is for one command */
    /* state */
    struct tt_command command;
    struct tt_link *link; /* opened when the first command needs it */
};

extern const char tt_program[];

/* ---- tt_key.c, tt_all.c: the commands, which return an exit status ---- */

/* Makes the key. Returns -1 to go on, or the exit status after a message. */
int tt_key_resolve(struct tt *tt);
int tt_key_ask(struct tt *tt);
int tt_key_peek(struct tt *tt);
int tt_key_store(struct tt *tt);
int tt_key_release(struct tt *tt);

int tt_all_stats(struct tt *tt);
int tt_all_flush(struct tt *tt);
int tt_all_save(struct tt *tt);
int tt_all_load(struct tt *tt);

/* ---- tt_link.c ---- */

/* Stores and releases are given to the client, and are queued until the next peek: TT_LINK_QUEUE at
 * most between two. */
struct tt_link {
    const atomic_bool *stop;
    struct cli_session session;
    uint64_t namespace_id; /* of the last HELLO: stores belong to it, for their age */
    char why[TT_LINK_WHY_MAX]; /* what failed last */
};

/* Begins to connect; to be closed by cli_session_close. The table is borrowed until then; errors as
 * in cli_session_open. */
enum err tt_link_open(struct tt_link *link, const struct cli_table *table, enum keys_role role);

/* Waits until all shards are up, for `wait_ms` at most; returns how many are. */
unsigned tt_link_connect(struct tt_link *link, unsigned wait_ms);
/* Says of each shard that is not up that it does not answer, and what `follows`; returns how many
 * there are. */
unsigned tt_link_say_missing(const struct tt_link *link, const char *follows);
/* Keeps the sessions for so long. */
void tt_link_idle(struct tt_link *link, unsigned ms);
/* Keeps them until there is something to read on standard input; false: *stop. */
bool tt_link_await_input(struct tt_link *link);
/* How many stores and releases were lost so far, as no shard was up. */
uint64_t tt_link_dropped(const struct tt_link *link);

/* A shard that did not answer is left before another is asked. ERR_DOWN: no shard is up. */
enum err tt_link_ask(struct tt_link *link, const struct tt_ask *ask, struct tt_answer *out);
/* Up to TT_LINK_BATCH. What was stored or released before is done before. ERR_DOWN as above. */
enum err tt_link_peek(struct tt_link *link, const struct tt_peek *peeks, unsigned count,
                      struct tt_peeked *out);

/* Asks a shard to forget all results. ERR_ILLEGAL: it refuses to. */
enum err tt_link_flush(struct tt_link *link, unsigned shard);

/* Gives `each` all results of at least that depth of a shard, a page at a time, until it is false:
 * then ERR_FULL, and it says why. Also ERR_IO when the shard was started again meanwhile, and
 * when it gives more than the memory that it says it has can hold: it would never end. */
enum err tt_link_scan(struct tt_link *link, unsigned shard, uint8_t depth,
                      bool (*each)(void *self, const struct proto_scanned *page), void *self);

#endif
