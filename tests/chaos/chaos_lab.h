/* chaos_lab: the virtual cluster (worker/lab/lab.h) with all that can go wrong in it: faults,
 * liars, disks, clocks, want of memory, connections of their own; and with checks of what is left
 * behind. The same options give the same trace, event for event, on any build. Threads: one at a
 * time. */
#ifndef TESTS_CHAOS_CHAOS_LAB_H
#define TESTS_CHAOS_CHAOS_LAB_H

#include "tests/chaos/lab_disk.h"
#include "worker/lab/lab.h"

enum {
    LAB_FAULTS_MAX = 256,
    LAB_WATCHERS_MAX = 8,
};

#define LAB_FOR_EVER UINT64_MAX

enum lab_fault_kind {
    LAB_KILL, /* as kill -9; at the end started anew, with nothing. Never the host of worker 0. */
    LAB_STALL, /* stands still, as after SIGSTOP; at the end goes on where it was */
    LAB_CUT, /* what passes between these workers and these shards is lost, one way or both */
    LAB_DELAY, /* ... comes `amount` nanoseconds later */
    LAB_LOSS, /* ... is lost `amount` times in a million */
    LAB_UPGRADE, /* ends as after SIGTERM, with a BYE; at the end started anew */
    LAB_SUSPEND, /* as a stall of whole hosts, whose monotonic clocks stand still as well */
    LAB_JUMP, /* their wall clocks jump by `amount` nanoseconds, forward or (two's complement) back;
                 what lasts is the difference */
    /* Faults of connections, where they are simulated: */
    LAB_RESET, /* those of these workers and these shards end, and both are told */
    LAB_HALF_OPEN, /* nothing passes any more on those that there are, and nobody is told */
    LAB_DEAF, /* these workers read nothing of these shards */
    LAB_FAULT_KINDS,
};

/* Kill, stall, suspend and jump hit these workers and these shards; the others every pair of the
 * two. Workers are numbered from the front-ends on: 0 is the first front-end. A kill takes the
 * whole host with it: its threads are of one process; suspend and jump do so, too. */
struct lab_fault {
    enum lab_fault_kind kind;
    unsigned worker, workers; /* the first, how many */
    unsigned shard, shards;
    enum lab_way ways;
    uint64_t at_ns; /* virtual time, which begins at 0 with HELLOs */
    uint64_t lasts_ns; /* LAB_FOR_EVER: to the answer, with which all faults end but such kills */
    uint64_t amount;
};

/* Faults of the program, to test the tests. */
struct lab_planted {
    uint32_t skip_release_ppm; /* messages of leaves (stores, releases) forgotten, in a million */
    bool never_expire_sessions; /* silent sessions stay */
    bool never_expire; /* in-flight entries have no age limit */
    bool skip_stop; /* front-ends never send a stop */
    bool lose_reports; /* last reports are lost */
    bool stale_index; /* workers are given one worker index, never another */
    bool lose_flushes; /* a shard says that it has forgotten its results, and has not */
    bool stray_letters; /* ... gives each letter to another */
    bool lose_rows; /* ... leaves out the last row of each page of members */
    bool half_made; /* a program that gets no memory leaves its host's table behind */
    bool false_results; /* the liar's scores are of the game: what others say is believed */
    bool lose_rest; /* shards take a write of a part for one of all */
    bool lose_budget; /* shards do not get back what a connection had of their budget */
    bool keep_half_open; /* shards never end a connection without a session */
    bool wall_clock; /* shards live by their wall clock */
    bool compare_clocks; /* shards compare their clock with that of a message's sender */
    bool trust_sums; /* a file is read whatever its sums say */
    struct lab_disk_planted disk;
};

struct chaos_options {
    struct lab_options lab; /* but for hooks, context and guests, which are set here */
    unsigned watchers; /* programs that do not search (lab_watcher.h), on the first host; links of
                          theirs are numbered after the workers */
    uint32_t drift_ppm; /* most, of the clocks of hosts and shards, which then begin anywhere; 0:
                           all show virtual time */
    uint64_t lie_ns; /* on average, between messages of a liar (lab_liar.h); 0: there is none */
    uint32_t want_ppm; /* so many calls for memory fail, in a million, where a program starts (but
                          the first front-end) and where a worker begins a job; one that cannot
                          start tries again some heartbeats later */
    uint64_t keep_ns; /* between two snapshots of a shard, which it reads when it starts again; 0:
                         it keeps nothing */
    struct lab_disk_faults disk; /* of the disks of shards, until the end of all posts */
    /* Faults, borrowed; at most LAB_FAULTS_MAX. None begins after the end of all posts. */
    const struct lab_fault *fault;
    unsigned faults;
    bool is_wired; /* the connections of shards are simulated, too (lab_stream.h): what is lost
                      comes later, and only the end of a connection loses messages */
    bool has_keys; /* with is_wired: they are CURVE, and all programs have keys */
    bool drain; /* after that, check what is left behind: the second half of the result */
    struct lab_planted planted;
};

/* What a liar says, by type: what the shards take, not refuse, ignore or drop as malformed. */
#define LAB_LIES(X)          \
    X(HELLO, hellos)         \
    X(RETRIEVE_ASK, asks)    \
    X(STORE_HASH, stores)    \
    X(RELEASE, releases)     \
    X(PEEK, peeks)           \
    X(SHARE, shares)         \
    X(JOB_POST, posts)       \
    X(JOB_STOP, stops)       \
    X(JOB_REPORT, reports)   \
    X(MEMBERS, members)      \
    X(JOBS, jobs)            \
    X(STATS, stats)          \
    X(HEARTBEAT, heartbeats) \
    X(SCAN, scans)           \
    X(FLUSH, flushes)

struct chaos_result {
    struct lab_result lab; /* where connections are simulated `lost` counts segments, which came
                              later; its sum has the drain's probe in it */
    unsigned unanswered; /* posts that front-ends that live had not ended in time */
    uint64_t simulated_ns; /* virtual time of the whole run, with its drain */
    /* What faults did. */
    unsigned faults[LAB_FAULT_KINDS]; /* victims, or pairs for cut, delay and loss */
    unsigned restarts;
    uint64_t unsent; /* messages that found the queue of a client full */
    uint64_t lies; /* messages of the liar */
    uint64_t intrusions; /* what a liar below the messages did */
    unsigned storms; /* of connections, of them */
    uint64_t wants; /* calls for memory that failed */
    uint64_t letters; /* that watchers were given */
    unsigned starts_failed; /* for want of it, or as the disk failed; tried again */
#define X(TYPE, name) uint64_t taken_##name;
    LAB_LIES(X)
#undef X
    uint64_t expired_sessions;
    unsigned all_shards_dead, all_workers_dead; /* how often */
    /* Counts of disks: snapshots written, those that failed; at starts, files read, and refused;
     * starts that failed, and were tried again. What the disks did. */
    uint64_t kept, kept_failures, reloaded, refused_files;
    uint64_t short_calls, full_disks, disk_errors, power_losses, spoiled_files;
    /* With drain; all of it should be 0. In order of time. When the network is quiet again:
     * in-flight entries of live sessions whose messages all arrived; when dead sessions have
     * expired: other entries than those of live sessions that lost messages; when every entry has
     * reached its age: any. */
    unsigned inflight_kept, inflight_stale, inflight_left;
    unsigned sessions_stale; /* sessions of the dead, when they should have expired */
    unsigned unconnected; /* pairs of live worker and live shard without a session by then */
    unsigned still_searching; /* workers on a job that was stopped, or lost its front-end, long ago
                               */
    /* When every front-end has posted a job to the healed cluster and a while is over: */
    unsigned uneven; /* workers too many on one of the jobs, or without one */
    unsigned
        miscounted; /* workers that a front-end counts on its job and are not, or the reverse */
    unsigned reports_missing; /* last reports that did not come, also of earlier jobs where nothing
                                 was lost */
    unsigned requests_left; /* overdue in clients, at the end */
    unsigned foreign_files; /* files that were read, and are none that was written */
    unsigned lost_files; /* snapshots that were said to be written, and are not there */
    unsigned unsaid; /* files refused, or starts that failed, without a line */
    unsigned not_started; /* shards that do not start on a disk without faults */
    unsigned mistold; /* things that watchers were told wrong */
    unsigned half_made; /* tables of hosts that are not of the programs that live there */
    unsigned grown; /* shards whose memory or sets grew beyond what they were given */
    /* Counts of connections, where they are simulated: */
    unsigned broken_streams; /* times that a shard sent what is no ZMTP */
    unsigned over_budget; /* times that a shard held more bytes for its connections than it may, or
                             had counted others */
    unsigned
        connections_left; /* of a shard, that have no living peer; what is left of closed ones */
};

/* ERR_NOMEM, ERR_RANGE. */
enum err chaos_lab_run(const struct chaos_options *options, struct chaos_result *out);

#endif
