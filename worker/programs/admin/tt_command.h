/* tt_command: what the files of `abdada tt` share; nobody else includes it. Threads: the main
 * thread. */
#ifndef WORKER_PROGRAMS_ADMIN_TT_COMMAND_H
#define WORKER_PROGRAMS_ADMIN_TT_COMMAND_H

#include "worker/engine/job.h"
#include "worker/programs/admin/tt_link.h"
#include "worker/programs/cli.h"

enum { TT_ABSENT = -1 };

/* One command with its options. */
struct tt_command {
    /* as it was given */
    char name[16];
    char text[512]; /* what follows it: a position, or a file */
    const char *key_text, *bound, *move_text; /* NULL: not given */
    int32_t depth, alpha, beta, score; /* depth, score: TT_ABSENT, TT_SCORE_MIN - 1: not given */
    uint32_t for_ms;
    uint64_t most_bytes; /* size limit of a saved file */
    bool exclusive, yes;
    /* what comes of it */
    uint64_t key;
    struct job job; /* without a position where the key was given */
};

struct tt {
    /* command line, the same for all commands */
    struct cli_table table;
    struct cli_search search;
    const char *select;
    uint32_t wait_ms;
    bool strict, json;
    bool is_alone; /* the session is for one command */
    const atomic_bool *stop;
    /* state */
    struct tt_command command;
    struct tt_link *link;
};

extern const char tt_program[];

/* The commands return an exit status. */

/* ---- tt_key.c ---- */

/* Makes the key. Returns -1 to go on, or the exit status after a message. */
int tt_key_resolve(struct tt *tt);
int tt_key_ask(struct tt *tt);
int tt_key_peek(struct tt *tt);
int tt_key_store(struct tt *tt);
int tt_key_release(struct tt *tt);

/* ---- tt_all.c ---- */

int tt_all_stats(struct tt *tt);
int tt_all_flush(struct tt *tt);
int tt_all_save(struct tt *tt);
int tt_all_load(struct tt *tt);

#endif
