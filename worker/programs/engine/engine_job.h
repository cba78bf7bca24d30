/* engine_job: what engines of one name are to search together, as the texts of a JOB (PROTOCOL.md
 * section 8), and which options a job may set.
 *
 *     game       uci:Stockfish 15.1
 *     position   startpos moves e2e4 e7e5
 *     algorithm  go depth 20; Skill Level=3; EvalFile=nn-1.nnue; ucinewgame=7f3a
 *
 * Everything comes from anybody who may post jobs. A job sets checks, spins and combos alone, and
 * each to a value that the option has. For texts (files, folders, commands) it says what its
 * front-end has: a worker that has another does not take the job. What the worker's owner has set
 * stays as it is, and resources are the owner's.
 *
 * Threads: any. Memory: none. Pure. */
#ifndef WORKER_PROGRAMS_ENGINE_ENGINE_JOB_H
#define WORKER_PROGRAMS_ENGINE_ENGINE_JOB_H

#include "worker/engine/job.h"
#include "worker/programs/engine/uci_engine.h"

enum {
    ENGINE_GAME_MAX = UCI_NAME_MAX + sizeof JOB_ENGINE_PREFIX,
    ENGINE_SETTINGS_MAX = UCI_ENGINE_OPTIONS_MAX,
    ENGINE_WHY_TEXT_MAX = 256,
    ENGINE_VALUE_MAX = 4096, /* lists of folders */
};

struct engine_setting {
    char name[UCI_NAME_MAX], value[ENGINE_VALUE_MAX];
};

/* Options that were set, each once. */
struct engine_settings {
    unsigned count;
    struct engine_setting at[ENGINE_SETTINGS_MAX];
};

/* False: there is no room. */
bool engine_settings_put(struct engine_settings *settings, const char *name, const char *value);
/* NULL: it is not set. */
const char *engine_settings_get(const struct engine_settings *settings, const char *name);

struct engine_job {
    char game[ENGINE_GAME_MAX];
    char position[PROTO_TEXT_MAX + 1];
    char search[PROTO_TEXT_MAX + 1]; /* the field `algorithm` */
};

void engine_job_game(const char *name, char game[ENGINE_GAME_MAX]);

/* Sets `search`: what the front-end's engine has that others must have too. `go` is a command that
 * ends at a depth, after nodes, or never. False: it is too long. */
bool engine_job_write(struct engine_job *job, const struct uci_engine *engine,
                      const struct engine_settings *set, const char *go, uint64_t new_game);

/* For a worker: the command; false, with `why`: it is none that a job may have. */
bool engine_job_go(const char *search, char go[PROTO_TEXT_MAX + 1], char why[ENGINE_WHY_TEXT_MAX]);
/* Number of the game that the position is of, as the front-end counts. */
uint64_t engine_job_new_game(const char *search);
/* What the worker's engine is to be set to. False, with `why`: it differs in what a job may not
 * set. */
bool engine_job_settings(const char *search, const struct uci_engine *engine,
                         const struct engine_settings *owners, struct engine_settings *out,
                         char why[ENGINE_WHY_TEXT_MAX]);
/* Whether both texts may become part of lines to an engine: they are of printable characters, and
 * the first is a position. */
bool engine_job_is_clean(const char *position, const char *search);

#endif
