/* ttcore_options: the limits of a shard's core, and what it is given at start.
 * Pure types. */
#ifndef TTSERVER_CORE_OPTIONS_H
#define TTSERVER_CORE_OPTIONS_H

#include "proto/codec.h"
#include "ttserver/core/figures.h"
#include "ttserver/core/ledger.h"

#include <stddef.h>
#include <stdint.h>

enum {
    TTCORE_NAME_MAX = 32, /* bytes of a session's name, with the zero byte */
    TTCORE_RELEASE_MAX = 24, /* the same of its release ... */
    TTCORE_WHY_MAX = 80, /* ... and of why it refuses a job */
    TTCORE_SESSIONS_MAX = 1 << 20,
    TTCORE_JOBS_MAX = 1 << 12,
    TTCORE_INFLIGHT_ENTRY_BYTES = 80, /* memory of one entry, about */
    TTCORE_MEMBERS_PAGE = 128, /* sessions in one MEMBERS_ANSWER, at most */
    TTCORE_JOBS_PAGE = 8, /* jobs in one JOBS_ANSWER, at most */
    TTCORE_INDEXES_PER_TICK = 64, /* worker indexes repeated in one tick */
    TTCORE_PUSH_BYTES = 48 << 10, /* of jobs for one worker in a step */
    TTCORE_OWED_PER_TICK = 64, /* workers that get the jobs they are owed with one tick */
    TTCORE_REPORTS_BURST = 256, /* of a session, passed on at once ... */
    TTCORE_REPORTS = 200, /* ... and then in a heartbeat */
    TTCORE_LETTERS_BURST = 16384, /* letters of a session, passed on at once ... */
    TTCORE_LETTERS = 32768, /* ... and then in a second; a MAIL_JOIN counts as so many: */
    TTCORE_JOIN_COST = 64,
    TTCORE_SHARE_RATE = 16000000, /* results passed on a second: some 200 MB */
    TTCORE_SCAN_BUCKETS = 8192, /* gone through for one SCAN: 512 KiB, some 100 us */
    TTCORE_FLUSH_BUCKETS = 16384, /* cleared in one step: 1 MiB, some 100 us */
    TTCORE_FLUSHES_MAX = 16, /* FLUSHes not answered yet */
};

struct ttcore_options {
    uint64_t boot; /* random per start: clients see a restart by it */
    uint64_t place; /* which keys are its own: 0: those of `boot`, or as once when it was filled
                       with the results that it, or another, had then */
    uint64_t secret; /* random, never sent: seeds the hashes of what peers choose */
    uint64_t start_us; /* on the clock of the events */
    size_t results_bytes;
    uint32_t inflight_max; /* entries */
    uint32_t session_inflight_max; /* of one session; 0: inflight_max */
    uint32_t sessions_max; /* 1..TTCORE_SESSIONS_MAX */
    uint32_t jobs_max; /* 1..TTCORE_JOBS_MAX */
    uint32_t batch_max; /* operations in a message, 1..PROTO_BATCH_MAX */
    uint32_t heartbeat_ms; /* positive */
    uint32_t inflight_age_max_ms; /* age limit of an in-flight entry, positive */
    uint32_t share_rate_max; /* results passed on a second, one for each receiver; positive */
    const struct ttcore_outside *outside; /* borrowed until close; may be NULL */
    struct ttcore_ledger *ledger; /* borrowed until close; may be NULL */
};

struct ttcore;

enum { TTCORE_CHANGED_NAMES = 3 };

/* Workers that came and went, for the log. */
struct ttcore_changes {
    struct ttcore_changed {
        uint32_t count;
        char name[TTCORE_CHANGED_NAMES]
                 [TTCORE_NAME_MAX]; /* of the first; as they named themselves */
    } came, went;
    uint32_t workers; /* now */
};

/* Since the last call. */
struct ttcore_changes ttcore_take_changes(struct ttcore *core);

#endif
