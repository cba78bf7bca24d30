/* tt_link: a session at each shard of a table, for people who want to see or change what is in it.
 * One request at a time, and each waits.
 *
 * Threads: one at a time. Memory: all in open. Blocking: everything but close waits for shards, up
 * to the times below, or until *stop. All that fail return ERR_IO, or what is said at each, and
 * write one line for people to `why`. */
#ifndef WORKER_PROGRAMS_ADMIN_TT_LINK_H
#define WORKER_PROGRAMS_ADMIN_TT_LINK_H

#include "worker/transport/transport.h"

#include <stdatomic.h>

enum {
    TT_LINK_WHY_MAX = TRANSPORT_NAME_MAX + 256,
    TT_LINK_ANSWER_MS = 5000, /* for an answer, however often it is asked for */
    TT_LINK_FLUSH_MS = 60000,
    TT_LINK_BATCH = 256, /* most peeks at once */
    TT_LINK_QUEUE = 4 * TT_LINK_BATCH,
};

struct tt_link;

/* Begins to connect. `stop` is borrowed until close, and so is what the address names. */
enum err tt_link_open(struct tt_link **out, const struct transport_address *address,
                      const char *program, const atomic_bool *stop, char why[TRANSPORT_WHY_MAX]);
/* Says BYE. Accepts NULL; nulls. */
void tt_link_close(struct tt_link **link);

/* Waits until all shards are up, for `wait_ms` at most; returns how many are. */
unsigned tt_link_connect(struct tt_link *link, unsigned wait_ms);
unsigned tt_link_shards(const struct tt_link *link);
bool tt_link_is_up(const struct tt_link *link, unsigned shard);
void tt_link_name(const struct tt_link *link, unsigned shard, char out[TRANSPORT_NAME_MAX]);
uint64_t tt_link_place(const struct tt_link *link, unsigned shard);
/* What stores belong to from now on, for their age (PROTOCOL.md section 3). */
void tt_link_set_namespace(struct tt_link *link, uint64_t namespace_id);
/* Keeps the sessions for so long. */
void tt_link_idle(struct tt_link *link, unsigned ms);

/* A shard that did not answer is left before another is asked. ERR_DOWN: no shard is up. */
enum err tt_link_ask(struct tt_link *link, const struct tt_ask *ask, struct tt_answer *out,
                     char why[TT_LINK_WHY_MAX]);
/* Up to TT_LINK_BATCH. What was stored or released before is done before. ERR_DOWN as above. */
enum err tt_link_peek(struct tt_link *link, const struct tt_peek *peeks, unsigned count,
                      struct tt_peeked *out, char why[TT_LINK_WHY_MAX]);
/* Queued until the next peek: TT_LINK_QUEUE at most between two. */
void tt_link_store(struct tt_link *link, const struct tt_store *store);
void tt_link_release(struct tt_link *link, const struct tt_release *release);
/* How many stores and releases were lost so far, as no shard was up. */
uint64_t tt_link_dropped(const struct tt_link *link);
/* The shard that has a key now; CLIENT_NOWHERE: none is up. */
unsigned tt_link_owner(const struct tt_link *link, uint64_t key);
/* How long a searcher that asks for the key is in the node there, unless it asks again; 0: no shard
 * is up, or for ever. */
uint32_t tt_link_age_max_ms(const struct tt_link *link, uint64_t key);

/* Asks a shard to forget all results. ERR_ILLEGAL: it refuses to. */
enum err tt_link_flush(struct tt_link *link, unsigned shard, char why[TT_LINK_WHY_MAX]);

/* Gives `each` all results of at least that depth of a shard, a page at a time, until it is false:
 * then ERR_FULL, and nothing in `why`. Also ERR_IO when the shard was started again meanwhile, and
 * when it gives more than the memory that it says it has can hold: it would never end. */
struct tt_link_reader {
    void *self;
    bool (*each)(void *self, const struct tt_scanned *entries, uint32_t count);
};
enum err tt_link_scan(struct tt_link *link, unsigned shard, uint8_t depth,
                      const struct tt_link_reader *reader, char why[TT_LINK_WHY_MAX]);

#endif
