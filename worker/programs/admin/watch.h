/* watch: the figures, sessions and open jobs of the shards of a cluster, as the shards report them.
 *
 * Texts of peers are kept as printable ASCII. Threads: one at a time. Memory: grows with the number
 * of sessions and jobs, and is kept from round to round. Blocks in watch_round and watch_idle. */
#ifndef WORKER_PROGRAMS_ADMIN_WATCH_H
#define WORKER_PROGRAMS_ADMIN_WATCH_H

#include "common/err.h"
#include "proto/codec.h"
#include "worker/programs/cli.h"

#include <stdatomic.h>

enum {
    WATCH_NAME_MAX = 32,
    WATCH_FIGURES_MAX = 128,
    WATCH_POSITION_MAX = 128,
    WATCH_LINE_MAX = 512,
    WATCH_WHY_MAX = 80,
};

struct watch_figure {
    char name[WATCH_NAME_MAX];
    uint64_t value;
};

struct watch_shard {
    char address[TRANSPORT_NAME_MAX];
    bool up; /* answered in the last round */
    uint64_t boot;
    uint32_t rtt_us;
    struct watch_figure figure[WATCH_FIGURES_MAX];
    unsigned figures;
    double ops_per_s, asks_per_s, messages_per_s; /* between the last two rounds */
};

/* What searchers did, as they say. */
struct watch_work {
    uint64_t nodes, duplicated, abandoned; /* common/counters.h */
    uint64_t bytes; /* between them and the shards */
    /* between the last two rounds */
    double nodes_per_s, bytes_per_s;
    double waiting; /* share of their time that they waited for shards */
};

/* What they say of their talk with the shards. */
struct watch_talk {
    uint64_t asks, bytes_sent, bytes_received;
    /* between the last two rounds */
    double asks_per_s, sent_per_s, received_per_s;
    double talking; /* share of their time that went into it */
};

/* A session, known to one shard or several. */
struct watch_member {
    char name[WATCH_NAME_MAX], user[WATCH_NAME_MAX];
    uint32_t instance_id;
    uint8_t role;
    uint64_t job; /* 0: none */
    struct watch_work work; /* of that job, as are ... */
    struct watch_talk talk;
    uint64_t waited_us, talked_us;
    uint32_t silent_ms; /* the least of all shards */
    char release[WATCH_NAME_MAX]; /* of its program */
    unsigned protocol; /* the highest version that it speaks; 0: no shard says */
    uint64_t refuses; /* the open job that it refused last, and why; 0: none */
    char why[WATCH_WHY_MAX];
    uint64_t shards; /* bit i: shard i knows it */
};

/* The sessions of a process that search jobs, and say what they do: a front-end's searchers are one
 * session. */
struct watch_host {
    char name[WATCH_NAME_MAX];
    uint8_t role;
    unsigned sessions;
    struct watch_work work; /* sums, each of the job that the session searches; the mean of ... */
    struct watch_talk talk; /* ... `waiting`, and of `talking` */
};

struct watch_job {
    uint64_t job;
    char owner[WATCH_NAME_MAX], user[WATCH_NAME_MAX], game[WATCH_NAME_MAX],
        algorithm[WATCH_NAME_MAX];
    char position[WATCH_POSITION_MAX]; /* its beginning */
    unsigned depth, reached;
    int score; /* of iteration `reached`, in the units of the game; with ... */
    char line[WATCH_LINE_MAX]; /* ... its moves in the text of the game; empty: none yet */
    struct watch_work work; /* of all who search it; `waiting`: of the workers among them */
    uint32_t age_ms; /* the most of all shards */
    unsigned workers;
    uint64_t shards;
};

struct watch_totals {
    unsigned up, members[PROTO_MONITOR + 1];
    uint64_t entries, nodes;
    double ops_per_s;
    struct watch_work work; /* for all open jobs */
};

/* What the last round found. Lists hold no session of this process; workers first, by name. */
struct watch_view {
    unsigned shards, members, hosts, jobs;
    struct watch_shard shard[OPTIONS_SERVERS_MAX];
    struct watch_member *member;
    struct watch_host *host;
    struct watch_job *job;
    struct watch_totals total;
};

struct watch;

/* Begins to connect; shards may be down. `program` (borrowed) says on stderr which shard refuses
 * the keys. On failure a line for people is written to `why`. */
enum err watch_open(struct watch **out, const struct transport_address *address,
                    const char *program, char why[TRANSPORT_WHY_MAX]);
void watch_close(struct watch **watch);
/* Valid until the watch is closed; changes in watch_round. */
const struct watch_view *watch_view(const struct watch *watch);

/* Asks every shard and waits for the answers, up to `wait_ms` for a shard that is down. `brief`:
 * asks for figures alone; members and jobs stay. Returns early when *stop. */
void watch_round(struct watch *watch, unsigned wait_ms, bool brief, const atomic_bool *stop);
/* Rounds call it every 20 ms at least: the caller may have other sessions. */
void watch_meanwhile(struct watch *watch, void (*serve_others)(void *self), void *self);
/* Serves the sockets for `wait_ms`, so that the sessions do not expire. */
void watch_idle(struct watch *watch, unsigned wait_ms);

/* The highest version of the protocol that a shard speaks. */
unsigned watch_protocol(const struct watch_shard *shard);
/* 0 for a figure that the shard did not report. */
uint64_t watch_figure(const struct watch_shard *shard, const char *name);
/* "worker", "front", "client"; "?" for another. */
const char *watch_role(unsigned role);

#endif
