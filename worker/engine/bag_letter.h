/* bag_letter: letters (MAIL) between the front-end that has a bag of positions (bag_core.h) and the
 * workers that search them, and the inbox where they wait for a searcher's thread. Numbers begin
 * with the low byte.
 *
 *     front-end -> worker   WORK   positions to search, each with its number
 *                           DROP   numbers of those that nobody wants from it any more
 *     worker -> front-end   HAS    what it has, in its order: every 200 ms
 *                           FOUND  a result, and what it has still
 *
 * A body comes from anybody who takes part in the job. bag_letter_read takes none with counts,
 * depths or scores that no search has. Whether a position is one, a move legal and a score true is
 * not its business.
 *
 * Threads: an inbox is one searcher's; the rest any. Memory: an inbox allocates in open, the rest
 * never. Pure. */
#ifndef WORKER_ENGINE_BAG_LETTER_H
#define WORKER_ENGINE_BAG_LETTER_H

#include "proto/client/client.h"
#include "worker/engine/bag_core.h"
#include "worker/search/search.h"

/* Beyond those of searches (handover/peers.h): who takes the one takes none of the other. */
enum bag_kind { BAG_WORK = 64, BAG_DROP, BAG_HAS, BAG_FOUND };

/* What was found of a position. */
struct bag_found {
    uint32_t item;
    bool is_refused; /* the worker cannot search it */
    struct search_result result; /* exact; its depth may be 0: the limits were that small */
    struct search_counters counters;
    uint64_t time_us; /* that the search took */
};

struct bag_letter {
    enum bag_kind kind;
    bool is_shared; /* WORK: others search it, too */
    unsigned count; /* of `item`: that are to be searched, dropped, or that it has */
    uint32_t item[BAG_ASSIGNED_MAX];
    char text[BAG_ASSIGNED_MAX][GAME_TEXT_MAX]; /* WORK: positions */
    uint64_t nodes; /* HAS: in the first, so far */
    struct bag_found found; /* FOUND */
};

/* The length of the body; 0: it has no room for all. */
size_t bag_letter_write(const struct bag_letter *letter, uint8_t body[PROTO_BODY_MAX]);
/* False: it is none. */
bool bag_letter_read(const uint8_t *body, size_t length, struct bag_letter *out);

enum {
    BAG_INBOX_ROOM = 256, /* letters; what finds no room is lost, as a letter may be */
    BAG_PEERS_MAX = PROTO_BATCH_MAX, /* of the last list of who takes part */
    BAG_JOIN_FIRST_MS = 10, /* the job may not be open yet where letters go */
    BAG_JOIN_AWAIT_MS = 100, /* without an answer */
    BAG_JOIN_LONGEST_MS = 10000,
};

struct bag_inbox;

/* ERR_NOMEM. */
enum err bag_inbox_open(struct bag_inbox **out);
/* Accepts NULL; nulls. */
void bag_inbox_close(struct bag_inbox **inbox);
/* Empties it, and waits for letters of that job; 0: of none. */
void bag_inbox_begin(struct bag_inbox *inbox, uint64_t job);
/* Takes an event of the searcher's client, if it is about the job's letters, or the shards. */
void bag_inbox_event(struct bag_inbox *inbox, const struct client_event *event);
/* The next letter, in its order, with its sender; false: none. */
bool bag_inbox_next(struct bag_inbox *inbox, struct bag_letter *out, uint64_t *from);
/* Who takes part, of whom was not spoken since; returns how many. */
unsigned bag_inbox_peers(struct bag_inbox *inbox, uint64_t out[BAG_PEERS_MAX]);

/* Of a worker: whether it is to join the job's letters (client_mail_join) now. At once, and again
 * after ever longer pauses, until the front-end speaks to it. From then on there is a reason when a
 * shard came or went (letters may go by another one, or by one that has forgotten who takes part),
 * when an answer does not come, and after BAG_JOIN_LONGEST_MS, for what is not foreseen: a list of
 * all who take part is the shard's answer each time. */
bool bag_inbox_join_is_due(struct bag_inbox *inbox, uint64_t now_us);
/* The front-end spoke. */
void bag_inbox_answered(struct bag_inbox *inbox, uint64_t now_us);
/* An answer is due soon: the worker has nothing to search any more. */
void bag_inbox_await(struct bag_inbox *inbox, uint64_t now_us);

#endif
