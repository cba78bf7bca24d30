/* share: the result broadcast of a searcher (PROTOCOL.md, SHARE; feed.h). Below the remote
 * depth limit nobody is asked, so each host would search what another has searched. So results
 * found there go to all hosts, through the shards, while there are any, and those that come are put
 * into the own table.
 *
 * The process is the unit: what its searchers find in a namespace is collected in one feed and
 * leaves in one message, and one searcher takes for all what comes from others. At selection full,
 * where a node takes far less, the feed's least depth stays between 8 and 14: a result below is
 * found sooner than taken from a message.
 *
 * Foreign claims go the same way: that a searcher of this host has begun a node, or left it without
 * a result, in the words of a result with TT_CLAIM in place of the bound. An exclusive ask of a
 * node that another host claims is BUSY, in a peek it has a searcher more. Claims are hints: a
 * result ends the claim of its node, its host ends it, and so does time
 * (CLAIMS_FOREIGN_LEAST_MS); what nobody claims is searched twice at worst. To replace asks they
 * have to be early: a host of many searchers sends a message as often as costs at most a fiftieth
 * of their time, and asks no shard who is where while claims of others come. One of few sends them
 * with its results, and asks as before. (A claim without `foreign` is within a host: host_table.h.)
 *
 * Threads: a share is one searcher's; its queue is the process's and has a lock, held for some 100
 * ns, a few us when a message of it leaves. Memory: none but the structs. Never blocks; what gets
 * lost is searched again. */
#ifndef WORKER_TABLE_SHARE_H
#define WORKER_TABLE_SHARE_H

#include "worker/table/claims.h"
#include "worker/table/embedded.h"

enum { SHARE_OWN_MAX = 32 };

struct share {
    /* fixed, the caller's to set, borrowed */
    struct client *client;
    const struct embedded_port *local;
    uint8_t depth; /* results of at least this depth may be sent; 0: none */
    uint32_t claims_pause_us; /* between two messages with foreign claims; 0: as without them */
    /* state */
    bool claims; /* foreign claims are sent: there are peers, and local->counts_foreign */
    bool relies; /* those of others come, and early enough to ask no shard who is where */
    uint64_t due_us; /* the next message of a namespace that does not have the queue */
    struct tt_store list[SHARE_OWN_MAX];
    unsigned count;
    bool wanted; /* there are peers with another table, or it is time to find out */
};

/* A new search. */
void share_begin(struct share *share);
/* Whether there are peers with another table: their results have to be asked for. */
bool share_has_peers(const struct share *share, uint64_t now_us);
/* A result was found here. True: share_send is due, there is no room for another. */
bool share_add(struct share *share, const struct tt_store *result);
/* The first searcher of this host begins a node of at least CLAIMS_FOREIGN_DEPTH, or the last
 * leaves it without a result. Of a claim that has not left the searcher yet neither it nor what
 * ends it is sent. True: as above.
 */
bool share_claim(struct share *share, uint64_t key, uint8_t depth, enum tt_claim what);
/* The search is over: sends what waits, ends of claims among it. */
void share_end(struct share *share, uint64_t now_us);
/* Gives what was found here to the queue, and sends that if it is full or due. */
void share_send(struct share *share, uint64_t now_us);
/* Results came from a peer with another table, which counts as there until `until_us`. */
void share_take(struct share *share, const struct proto_share *message, uint64_t now_us,
                uint64_t until_us);
/* From env.poll: sends what is due. `has_others`: there were signs of other searchers, which may
 * have the same table. */
void share_serve(struct share *share, bool has_others, uint64_t now_us);

#endif
