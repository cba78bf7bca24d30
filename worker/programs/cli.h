/* cli: the commands of `abdada`. Each reads its own command line (argv[0] is the command's name)
 * and returns the process's exit status: 0 success, 1 failure, 2 wrong use.
 * Threads: the main thread. */
#ifndef WORKER_PROGRAMS_CLI_H
#define WORKER_PROGRAMS_CLI_H

#include "common/keys/keys.h"
#include "common/options.h"
#include "worker/engine/engine.h"
#include "worker/engine/searching_metrics.h"

int cli_analyse(int argc, char *argv[]);
int cli_solve(int argc, char *argv[]);
int cli_check(int argc, char *argv[]);
int cli_perft(int argc, char *argv[]);
int cli_bench(int argc, char *argv[]);
int cli_uci(int argc, char *argv[]);
int cli_nboard(int argc, char *argv[]);
int cli_gtp(int argc, char *argv[]);
int cli_sim(int argc, char *argv[]);
int cli_top(int argc, char *argv[]);
int cli_ttbench(int argc, char *argv[]);
int cli_keygen(int argc, char *argv[]);
int cli_tt(int argc, char *argv[]);
/* Does not return when it succeeds: another program takes its place. */
int cli_cluster(int argc, char *argv[]);

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

/* Why a position was not taken: returns the exit status after a message. */
int cli_no_position(const char *program, enum err err, const char *why);

/* Where the table outside the process is: ttservers or a Redis; neither: there is none. */
struct cli_table {
    struct options_servers servers;
    const char *keys_dir; /* keys for ttservers; NULL: no keys */
    const char *url; /* address of a Redis; NULL: ttservers */
    struct redis_address redis; /* what it says, after cli_table_environment */
};

/* The resources of a command that searches. */
struct cli_resources {
    uint32_t threads, share;
    uint64_t hash_mib;
    struct cli_table table;
    struct options_host_port metrics; /* host "": none */
    bool is_private;
};

/* The rows of every command that connects. */
#define CLI_TABLE_ROWS(table)                                                                  \
    {"servers",        "HOST:PORT,...", "the shards (default: ABDADA_SERVERS)",                \
     &(table).servers, OPTION_SERVERS,  's'},                                                  \
        CLI_KEYS_ROW(&(table).keys_dir),                                                       \
    {                                                                                          \
        "table", "URL",                                                                        \
            "a Redis in place of shards: redis://HOST:PORT[/DB], rediss://, redis+cluster://", \
            &(table).url, OPTION_TEXT                                                          \
    }
/* And of every one that searches. */
#define CLI_THREADS_ROWS(resources)                                               \
    {"threads",                                                                   \
     "N",                                                                         \
     "searching threads of this process (default 1)",                             \
     &(resources).threads,                                                        \
     OPTION_U32,                                                                  \
     'j',                                                                         \
     1,                                                                           \
     EMBEDDED_SLOTS_MAX},                                                         \
    {                                                                             \
        "hash", "MIB", "table shared by the processes of this host (default 64)", \
            &(resources).hash_mib, OPTION_U64, 0, 1, 1 << 20                      \
    }
#define CLI_PRIVATE_ROW(resources)                                           \
    {                                                                        \
        "private", NULL, "share no table with other processes of this host", \
            &(resources).is_private, OPTION_FLAG                             \
    }
#define CLI_KEYS_ROW(variable)                                                          \
    {                                                                                   \
        "keys", "DIR", "keys made by `abdada keygen` (default: ABDADA_KEYS)", variable, \
            OPTION_TEXT                                                                 \
    }

/* What the command line left out: servers from ABDADA_SERVERS, the directory of keys from
 * ABDADA_KEYS. Returns -1 to go on, or the exit status after a message: ABDADA_SERVERS is no list,
 * or there are no servers and the command `needs` them. */
int cli_environment(const char *program, struct options_servers *servers, const char **keys_dir,
                    bool needs);
/* The same for ttservers or Redis (ABDADA_TABLE), whose password comes from the environment
 * (redis_address.h). */
int cli_table_environment(const char *program, struct cli_table *table, bool needs);
/* Of boards of Othello, which may begin with an empty square, '-' (options.h). */
#define CLI_BOARD_LETTERS "-._XxOo*0BbWw"

bool cli_table_is_given(const struct cli_table *table);
/* As of now; borrows `table`. */
struct transport_address cli_table_address(const struct cli_table *table,
                                           const struct keys_client *keys);

/* The keys of that role into *keys, and *out is `keys`, to be wiped; without a directory *out is
 * NULL. On failure one line is in why[KEYS_WHY_MAX]. */
enum err cli_load_keys(const char *keys_dir, enum keys_role role, struct keys_client *keys,
                       const struct keys_client **out, char *why);

/* Says on stderr that the table is waited for, or takes long to make, now and then. */
struct cli_wait {
    const char *program;
    const atomic_bool *stop; /* true ends the wait; NULL: never */
    uint64_t next_us; /* when it is said again */
};
/* For host_table_wait. */
bool cli_say_waiting(void *wait, long maker, uint64_t filled, uint64_t bytes);

/* The engine borrows the table's place and program until it is closed. What there is to say of its
 * table is said on stderr; on failure a line for people is written to `why`. */
enum err cli_engine_open(struct engine **out, const char *program,
                         const struct cli_resources *resources, const atomic_bool *stop,
                         char why[ENGINE_WHY_MAX]);
enum { CLI_WHY_MAX = (int)ENGINE_WHY_MAX + (int)HTTP_WHY_MAX }; /* for either */

#define CLI_METRICS_ROW(variable)                                                         \
    {                                                                                     \
        "metrics", "HOST:PORT",                                                           \
            "figures for Prometheus at http://HOST:PORT/metrics, and /healthz", variable, \
            OPTION_HOST_PORT                                                              \
    }
/* Serves the engine's figures if the resources say where; says where on stderr. To be closed before
 * the engine. `stop` as in http.h. On failure a line for people is written to `why`. */
enum err cli_metrics_open(struct searching_metrics **out, const char *program,
                          const struct cli_resources *resources, struct engine *engine,
                          const atomic_bool *stop, char why[HTTP_WHY_MAX]);
/* ERR_NOMEM: this process may not have a table of that size; `why` says so in one line. */
enum err cli_check_hash(uint64_t hash_mib, char *why, size_t why_size);
/* On stderr: `reason`, not NULL, is why the table of that size is the process's own. */
void cli_say_private(const char *program, uint64_t hash_mib, const char *reason);

enum { CLI_REFUSAL_MAX = 512 };

/* "shard HOST:PORT refused the job: WHY; ..." and what that means for the search; `why` is NULL: it
 * has taken it since. */
void cli_refusal_text(const struct engine *engine, unsigned shard, const char *why,
                      const struct engine_status *status, char out[CLI_REFUSAL_MAX]);

#endif
