/* steal: work stealing between searchers (Feldmann 1993; Weill 1996, section 3.2), by the rules of
 * an algorithm. One searcher owns the root; the others have no work but what they are given.
 *
 * A searcher without work asks another one, drawn at random (REQUEST). Who has a split point, a
 * node that the rules divide, with a child that nobody is in, gives that of the node nearest to the
 * root (WORK) and is then its master; else he keeps the request until his next poll
 * and refuses it there (NO_WORK). The slave returns the value (RESULT) or the child, unsearched.
 * The master distributes a better alpha to his slaves (NARROW), and ends their work when the node
 * is cut off (ABORT). A master who waits for slaves helps them: he asks them for work below his
 * node (the helpful master concept).
 *
 * Who owns what: a split point belongs to its master alone, and nothing is shared but messages,
 * which the port carries: memory between threads, latency in the virtual cluster. Threads: the
 * search's own. Memory: steal_open only. Blocking: in port.wait, while there is no work. A message
 * must not get lost, or its node waits for ever: a searcher that dies with work stops the search
 * until its master's search is stopped. Pure. */
#ifndef WORKER_SEARCH_STEAL_H
#define WORKER_SEARCH_STEAL_H

#include "worker/search/search.h"

/* Children of at least this depth are worth a message; shallower ones, too, where the table's
 * in-flight depth is less. Selection plain alone: a path has no passes, and no search of a node
 * again without one of its moves. */
enum { STEAL_DEPTH = 4 };

/* What the algorithms that steal differ in. */
struct steal_rules {
    /* Whether the children of the node may be given away. NULL: of every node. */
    bool (*divides)(const struct search *s, const struct node *n);
    /* So many of its children come first, one after the other. NULL: the eldest. */
    unsigned (*comes_first)(const struct node *n);
    /* Only null-window searches are given away. A child whose value is in the window is searched
     * again by the master, when all children before it are done. */
    bool gives_tests;
};

enum steal_kind {
    STEAL_REQUEST,
    STEAL_NO_WORK,
    STEAL_WORK,
    STEAL_RESULT,
    STEAL_NARROW,
    STEAL_ABORT,
};

struct steal_message {
    uint64_t job; /* that of another one is ignored */
    uint64_t split; /* id of the split point */
    uint32_t kind, from;
    uint32_t request; /* of REQUEST, NO_WORK, WORK: the asker's number for it */
    uint32_t at; /* of WORK and what follows: which child */
    struct game_move eldest, move; /* WORK */
    int32_t alpha, alpha_now, beta, best; /* of the node; RESULT: best is the child's value there */
    int32_t depth, iteration;
    int32_t repeats; /* RESULT */
    bool cut_node;
    bool has_value; /* RESULT; else the child was not searched */
    bool lacks_value; /* RESULT: a test says that the value lies in the window */
    bool counts; /* RESULT */
    uint64_t path_scout, path_again; /* RESULT: critical path, of the scout and after it */
    uint16_t length; /* of the path from the root to the node; REQUEST: work below it alone */
    uint16_t line_length; /* RESULT */
    uint16_t moves[SEARCH_PLY_MAX]; /* the path, or the line */
};

/* Bytes of the message that are used. */
size_t steal_message_size(const struct steal_message *message);

struct steal_port {
    void *self;
    uint64_t job;
    unsigned index, count; /* of this searcher, of all */
    bool owns_root; /* this one begins the search, the others help */
    void (*send)(void *self, unsigned to, const struct steal_message *message); /* never waits */
    bool (*receive)(void *self, struct steal_message *out); /* false: there is none; never waits */
    void (*wait)(void *self); /* until a message comes, or a while is over */
};

struct steal;

/* NULL: no memory. For free(). */
struct steal *steal_open(void);

/* A search begins: what is left of the last one is forgotten. */
void steal_begin(struct search *s);

/* Whether it hands work over and takes some: it has a port, an algorithm that steals, and selection
 * plain. */
bool steal_is_possible(const struct search *s);

/* Whether this search has no root of its own, and its life: until env.poll says stop. */
bool steal_helps(const struct search *s);
void steal_help(struct search *s);

/* From node_count: takes and answers messages, if stealing is possible. */
void steal_serve(struct search *s);

struct node;

/* search_children of algorithm.h: those that come first, then the others, with all who ask for
 * work. */
enum search_visit steal_children(struct search *s, struct node *n);

#endif
