/* cli: the commands of `abdada`. Each reads its own command line (argv[0] is the command's name)
 * and returns the process's exit status: 0 success, 1 failure, 2 wrong use.
 * Threads: the main thread. */
#ifndef WORKER_CLI_CLI_H
#define WORKER_CLI_CLI_H

#include "common/options.h"
#include "worker/engine/engine.h"

#define CLI_VERSION "0.1.0"

int cli_analyse(int argc, char *argv[]);
int cli_perft(int argc, char *argv[]);
int cli_bench(int argc, char *argv[]);
int cli_uci(int argc, char *argv[]);
int cli_sim(int argc, char *argv[]);
int cli_top(int argc, char *argv[]);
int cli_ttbench(int argc, char *argv[]);

/* What names a search on the command line. */
struct cli_search {
    const char *game; /* NAME, or tree:SPEC, whose position it is, too */
    const char *algorithm;
    const char *remote_depth; /* "auto" or a number */
    const char *position; /* NULL until cli_resolve: the game's first */
};

/* Sets position, and game, algorithm and remote depth limit of the job. Returns -1 to go on, or the
 * exit status after a message. */
int cli_resolve(const char *program, struct cli_search *search, struct job *job);

/* The resources of a command that searches. */
struct cli_resources {
    uint32_t threads, share;
    uint64_t hash_mib;
    struct options_servers servers;
    bool is_private;
};

/* The engine borrows the servers until it is closed. */
enum err cli_engine_open(struct engine **out, const struct cli_resources *resources);

#endif
