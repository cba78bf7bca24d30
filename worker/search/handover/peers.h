/* peers: messages between the searchers of one search, and the port that carries them: memory
 * between threads, letters through a shard between processes, latency in the virtual cluster.
 *
 * One searcher owns the root; the others have no work but what messages bring (steal.h, tasks.h).
 * A port numbers the searchers as it knows them, so a number means something in one search alone.
 * Others come while a search runs, and those that are gone keep their number. Messages of one
 * sender arrive in the order in which they were sent, unless the network has jitter; through a
 * shard, to a searcher that dies, or to one that has too many, one may be lost. Threads: a port's
 * functions by the thread (or fiber) of its search. Memory: what is sent is copied. Blocking: wait.
 * Pure. */
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

/* A child of a split point. */
struct peer_child {
    uint64_t split; /* id */
    uint32_t at;
};

struct steal_request { /* REQUEST, with the path of a node: for work below it alone; NO_WORK */
    uint32_t number; /* the asker's own */
};

struct steal_work { /* with the path of the split point */
    struct peer_child child;
    uint32_t request; /* which it answers */
    struct game_move eldest, move;
    int32_t alpha, alpha_now, beta, best, depth, iteration; /* of the split point */
    bool cut_node;
};

struct steal_result { /* with the line */
    struct peer_child child;
    bool has_value; /* else the child was not searched */
    bool lacks_value; /* a test says that the value lies in the window */
    bool counts; /* of struct node, as is `repeats` */
    int32_t repeats;
    int32_t best; /* the child's value at the split point */
    uint64_t path_scout, path_again; /* critical path, of the scout and after it */
};

struct steal_narrow {
    struct peer_child child;
    int32_t alpha, beta; /* of the split point now */
};

struct steal_sign {
    struct peer_child child;
    bool is_answer; /* of the slave; else the master asks for one */
};

struct task_offer { /* TASK_WORK, with the path of the position */
    uint64_t key; /* of the position, here and below */
    uint64_t signature; /* the place of its path in a depth-first walk */
    uint32_t request; /* grows with each offer */
    int32_t alpha, beta, depth, iteration;
    bool cut_node;
    bool asks; /* for a sign */
};

struct task_drop {
    uint64_t key;
    uint32_t request; /* the last that it is about */
};

struct task_result {
    uint64_t key;
    uint32_t request;
    int32_t depth; /* 0: a sign, no result */
    int32_t best, alpha, beta; /* the value, and what it proves */
    uint16_t move; /* the best; 0: none */
};

struct peer_message {
    uint64_t job; /* that of another one is ignored */
    uint32_t kind, from;
    union { /* by kind */
        struct steal_request request; /* REQUEST, NO_WORK */
        struct peer_child child; /* ABORT; and the beginning of the next four */
        struct steal_work work;
        struct steal_result result;
        struct steal_narrow narrow;
        struct steal_sign sign;
        struct task_offer offer;
        struct task_drop drop;
        struct task_result known;
    };
    uint16_t length; /* moves in use */
    uint16_t moves[SEARCH_PLY_MAX]; /* a path from the root, or a line */
};

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
    unsigned lost; /* messages to this one that found no room, as of the last receive */
    bool owns_root; /* this one begins the search, the others help */
    void (*send)(void *self, unsigned to, const struct peer_message *message); /* never waits */
    bool (*receive)(void *self, struct peer_message *out); /* false: there is none; never waits */
    void (*wait)(void *self); /* until a message comes, or a while is over */
    uint64_t (*now_us)(void *self); /* any clock that goes on */
};

/* A message of this searcher. Zeroes the padding, too: the bytes travel. */
void peer_message(const struct search *s, struct peer_message *m, enum peer_kind kind);
/* The moves from the root to the node of ply `length`. */
void peer_set_path(const struct search *s, struct peer_message *m, unsigned length);

/* Milliseconds of the port's clock, for patience. */
uint32_t peers_now_ms(const struct search *s);
void peers_send(struct search *s, unsigned to, const struct peer_message *m);
/* The next message of this job; false: none has come. */
bool peers_receive(struct search *s, struct peer_message *out);

/* Whether the search is one of several that send each other messages: it has a port, an algorithm
 * that needs them, and selection plain: a path has no passes, and no search of a node again without
 * one of its moves. */
bool peers_are_there(const struct search *s);

/* Whether this search has no root of its own. */
bool peers_helps(const struct search *s);
/* Helps until env.poll says stop: serves what came, then does the next `work` (false: there is
 * none) or waits. False: this search has a root of its own. */
bool peers_help(struct search *s, bool (*work)(struct search *s));
/* Where it helps: work at the node of that ply begins, part of that iteration. */
void peers_begin_work(struct search *s, unsigned ply, unsigned iteration);

#endif
