/* peers: messages between the searchers of one search, and the port that carries them: memory
 * between threads, letters through a shard between processes, latency in the virtual cluster.
 *
 * One searcher owns the root; the others have no work but what messages bring (steal.h, tasks.h).
 * A port numbers the searchers as it knows them, so a number means something in one search alone.
 * Others come while a search runs, and those that are gone keep their number. Messages of one
 * sender arrive in the order in which they were sent, unless the network has jitter; through a
 * shard, or to a searcher that dies, one may be lost. Threads: a port's functions by the thread (or
 * fiber) of its search. Memory: what is sent is copied. Blocking: wait. Pure. */
#ifndef WORKER_SEARCH_HANDOVER_PEERS_H
#define WORKER_SEARCH_HANDOVER_PEERS_H

#include "worker/search/context.h"

enum peer_kind {
    STEAL_REQUEST, /* steal.h */
    STEAL_NO_WORK,
    STEAL_WORK,
    STEAL_RESULT,
    STEAL_NARROW,
    STEAL_ABORT,
    STEAL_SIGN,
    TASK_WORK, /* tasks.h */
    TASK_DROP,
    TASK_RESULT,
};

struct peer_message {
    uint64_t job; /* that of another one is ignored */
    uint64_t split; /* id of the split point; TASK: key of the position */
    uint64_t signature; /* TASK_WORK: the place of its path in a depth-first walk */
    uint32_t kind, from;
    uint32_t request; /* of REQUEST, NO_WORK, WORK: the asker's number for it */
    uint32_t at; /* of WORK and what follows: which child */
    struct game_move eldest, move; /* WORK; TASK_RESULT: `move`, 0 for none */
    int32_t alpha, alpha_now, beta; /* of the node; TASK_RESULT: its bounds */
    int32_t best; /* of the node; RESULT: the child's value there */
    int32_t depth, iteration;
    int32_t repeats; /* RESULT */
    bool cut_node;
    bool has_value; /* RESULT; else the child was not searched; SIGN: an answer */
    bool lacks_value; /* RESULT; a test says that the value lies in the window */
    bool counts; /* RESULT */
    uint64_t path_scout, path_again; /* RESULT: critical path, of the scout and after it */
    uint16_t length; /* of the path from the root to the node; REQUEST: work below it alone */
    uint16_t line_length; /* RESULT */
    uint16_t moves[SEARCH_PLY_MAX]; /* the path, or the line */
};

static inline unsigned peer_message_moves(const struct peer_message *message)
{
    return message->kind == STEAL_RESULT ? message->line_length : message->length;
}

/* Bytes of the message that are used. */
size_t peer_message_size(const struct peer_message *message);

/* What a searcher keeps of the work that it hands over and is given. */
struct peers {
    struct steal *steal; /* of algorithms that steal */
    struct tasks *tasks; /* of algorithms with a master's tree, the master's ... */
    struct task_work *work; /* ... and a worker's */
};

struct peer_port {
    void *self;
    const struct peers *peers; /* of this searcher, for one search at a time */
    uint64_t job;
    uint64_t address; /* of this searcher: that of no other, in any process */
    uint64_t secret; /* nobody else knows it; another in each search */
    unsigned index; /* of this searcher */
    unsigned count; /* of all: what is received may make it grow */
    bool owns_root; /* this one begins the search, the others help */
    void (*send)(void *self, unsigned to, const struct peer_message *message); /* never waits */
    bool (*receive)(void *self, struct peer_message *out); /* false: there is none; never waits */
    void (*wait)(void *self); /* until a message comes, or a while is over */
    uint64_t (*now_us)(void *self); /* any clock that goes on */
};

/* ERR_NOMEM. */
enum err peers_open(struct peers *peers);
/* Takes what was opened in part, or not at all; nulls. */
void peers_close(struct peers *peers);

/* A message of this searcher. Zeroes the padding, too: the bytes travel. */
void peer_message(const struct search *s, struct peer_message *m, enum peer_kind kind);
/* The moves from the root to the node of ply `length`. */
void peer_set_path(const struct search *s, struct peer_message *m, unsigned length);

/* Milliseconds of the port's clock, for patience. */
uint32_t peers_now_ms(const struct search *s);
void peers_send(struct search *s, unsigned to, const struct peer_message *m);

/* Of struct handover. */
bool peers_run(struct search *s);
void peers_serve(struct search *s);

/* Whether the search is one of several that send each other messages: it has a port, an algorithm
 * that needs them, and selection plain: a path has no passes, and no search of a node again without
 * one of its moves. */
bool peers_are_there(const struct search *s);

/* Whether this search has no root of its own. */
bool peers_helps(const struct search *s);
/* Where it helps: work at the node of that ply begins, part of that iteration. */
void peers_begin_work(struct search *s, unsigned ply, unsigned iteration);

#endif
