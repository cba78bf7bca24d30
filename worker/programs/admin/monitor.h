/* monitor: the figures, sessions and open jobs of the shards of a cluster, as the shards report
 * them.
 *
 * Texts of peers are kept as printable ASCII. Threads: one at a time. Memory: grows with the number
 * of sessions and jobs, and is kept from round to round. Blocks in monitor_round and monitor_idle.
 */
#ifndef WORKER_PROGRAMS_ADMIN_MONITOR_H
#define WORKER_PROGRAMS_ADMIN_MONITOR_H

#include "common/counters.h"
#include "common/err.h"
#include "proto/codec.h"
#include "worker/programs/cli.h"

#include <stdatomic.h>

enum {
    MONITOR_NAME_MAX = 32,
    MONITOR_FIGURES_MAX = 128,
    MONITOR_POSITION_MAX = 128,
    MONITOR_LINE_MAX = 512,
    MONITOR_WHY_MAX = 80,
};

struct monitor_figure {
    char name[MONITOR_NAME_MAX];
    uint64_t value;
};

struct monitor_shard {
    char address[LANES_NAME_MAX];
    bool up; /* answered in the last round */
    uint64_t boot, place;
    uint32_t rtt_us;
    struct monitor_figure figure[MONITOR_FIGURES_MAX]; /* by name, and none has that of a key of
                                                          ours in JSON */
    unsigned figures;
    double ops_per_s, asks_per_s, messages_per_s; /* between the last two rounds */
};

/* What searchers did, and how they talk with the shards, as they say. */
struct monitor_work {
    struct counters count; /* as far as rows of members say, of jobs less; a job's bytes of both
                              ways are its bytes_sent */
    /* between the last two rounds */
    double per_s[COUNTERS_ALL];
    double waiting, talking; /* shares of their time: in which they waited for shards, which went
                                into talk with them */
};

/* What the row of a member or a job keeps from round to round. */
struct monitor_past {
    uint32_t round; /* the last in which a shard named it */
    uint64_t job; /* that it was of in the round before, ... */
    struct counters count; /* ... and what was counted of it by then */
};

/* A session, known to one shard or several. */
struct monitor_member {
    char name[MONITOR_NAME_MAX], user[MONITOR_NAME_MAX];
    uint32_t instance_id;
    uint8_t role;
    uint64_t job; /* 0: none */
    struct monitor_work work; /* of that job */
    uint32_t silent_ms; /* the least of all shards */
    char release[MONITOR_NAME_MAX]; /* of its program */
    unsigned protocol; /* the highest version that it speaks; 0: no shard says */
    uint64_t refuses; /* the open job that it refused last, and why; 0: none */
    char why[MONITOR_WHY_MAX];
    uint64_t shards; /* bit i: shard i knows it */
    struct monitor_past past;
};

/* The sessions of a process that search jobs, and say what they do: a front-end's searchers are one
 * session. */
struct monitor_host {
    char name[MONITOR_NAME_MAX];
    uint8_t role;
    unsigned sessions;
    struct monitor_work
        work; /* sums, each of the job that the session searches; of shares the mean */
};

struct monitor_job {
    uint64_t job;
    char owner[MONITOR_NAME_MAX], user[MONITOR_NAME_MAX], game[MONITOR_NAME_MAX],
        algorithm[MONITOR_NAME_MAX];
    char position[MONITOR_POSITION_MAX]; /* its beginning */
    unsigned depth, reached;
    int score; /* of iteration `reached`, in the units of the game; with ... */
    char line[MONITOR_LINE_MAX]; /* ... its moves in the text of the game; empty: none yet */
    struct monitor_work work; /* of all who search it; `waiting`: of the workers among them */
    uint32_t age_ms; /* the most of all shards */
    uint32_t left_s; /* about, as its owner says; 0: unknown */
    unsigned workers;
    uint64_t shards;
    struct monitor_past past;
};

struct monitor_totals {
    unsigned up, members[PROTO_MONITOR + 1];
    bool has_entries; /* a shard reports them: a Redis does not */
    uint64_t entries, nodes; /* in flight */
    double ops_per_s;
    struct monitor_work work; /* for all open jobs */
};

/* What the last round found. Lists hold no session of this process; workers first, by name. */
struct monitor_view {
    unsigned shards, members, hosts, jobs;
    struct monitor_shard shard[OPTIONS_SERVERS_MAX];
    struct monitor_member *member;
    struct monitor_host *host;
    struct monitor_job *job;
    struct monitor_totals total;
};

struct monitor;

/* `session`: NULL, or one that is there, which it borrows; else it begins to connect, and shards
 * may be down. Table and program are borrowed, and errors as in cli_session_open. */
enum err monitor_open(struct monitor **out, struct cli_session *session,
                      const struct cli_table *table, const char *program, char why[LANES_WHY_MAX]);
void monitor_close(struct monitor **monitor);
/* Another shard of the view that is up with the same place in the ring, or NULL. */
const struct monitor_shard *monitor_twin(const struct monitor_view *view,
                                         const struct monitor_shard *shard);
/* Valid until the monitor is closed; changes in monitor_round. */
const struct monitor_view *monitor_view(const struct monitor *monitor);

/* Asks every shard and waits for the answers, up to `wait_ms` for a shard that is down. Returns
 * early when *stop. */
void monitor_round(struct monitor *monitor, unsigned wait_ms, const atomic_bool *stop);
/* Serves the sockets for `wait_ms`, so that the sessions do not expire. */
void monitor_idle(struct monitor *monitor, unsigned wait_ms);

/* 0 for a figure that the shard did not report. */
uint64_t monitor_figure(const struct monitor_shard *shard, const char *name);
bool monitor_has(const struct monitor_shard *shard, const char *name);
/* "worker", "front", "client"; "?" for another. */
const char *monitor_role(unsigned role);

#endif
