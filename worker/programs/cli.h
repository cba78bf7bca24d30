/* cli: the commands of `abdada`. Each reads its own command line (argv[0] is the command's name)
 * and returns the process's exit status: 0 success, 1 failure, 2 wrong use.
 * Threads: the main thread. */
#ifndef WORKER_PROGRAMS_CLI_H
#define WORKER_PROGRAMS_CLI_H

#include "common/keys/keys.h"
#include "common/options.h"
#include "proto/lane/lane.h"
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
    const char *select; /* "plain" or "full" */
    const char *position; /* NULL until cli_resolve: the game's first */
    bool strict;
};

/* Sets position, and of the job game, algorithm, remote depth limit, selection and strictness.
 * Returns -1 to go on, or the exit status after a message. */
int cli_resolve(const char *program, struct cli_search *search, struct job *job);

/* Prints the warning of job_set_position, if there is one; `file`: NULL, or where the position
 * stands. */
void cli_left_out(const char *program, const char *file, unsigned line, const char *what);

/* Why a position was not taken: returns the exit status after a message. */
int cli_no_position(const char *program, enum err err, const char *why);

/* Where the table outside the process is: ttservers or a Redis; neither: there is none. */
struct cli_table {
    struct options_servers servers;
    const char *keys_dir; /* keys for ttservers; NULL: no keys */
    const char *url; /* address of a Redis; NULL: ttservers */
    struct redis_address redis; /* what it says, after cli_table_environment */
};

enum { CLI_HASH_MAX_MIB = 1 << 20 };

/* The resources of a command that searches. */
struct cli_resources {
    uint32_t threads, share;
    uint64_t hash_mib;
    const struct game *game; /* that is searched; NULL: any */
    struct cli_table table;
    struct options_host_port metrics; /* host "": none */
    bool is_private;
};

/* The rows of every command that connects. */
#define CLI_KEYS_ROW(variable)                       \
    OPTIONS_ROW(TEXT, "keys", "DIR", variable, 0, 0, \
                "keys made by `abdada keygen` (default: ABDADA_KEYS)")
#define CLI_TABLE_ROWS(table)                                                   \
    {"servers",        "HOST:PORT,...", "the shards (default: ABDADA_SERVERS)", \
     &(table).servers, OPTION_SERVERS,  's'},                                   \
        CLI_KEYS_ROW(&(table).keys_dir),                                        \
        OPTIONS_ROW(                                                            \
            TEXT, "table", "URL", &(table).url, 0, 0,                           \
            "a Redis in place of shards: redis://HOST:PORT[/DB], rediss://, redis+cluster://")
/* And of those that search. */
#define CLI_HASH_ROW(resources)                                                 \
    OPTIONS_ROW(U64, "hash", "MIB", &(resources).hash_mib, 1, CLI_HASH_MAX_MIB, \
                "table shared by the processes of this host (default 64)")
#define CLI_THREADS_ROWS(resources)                   \
    {"threads",                                       \
     "N",                                             \
     "searching threads of this process (default 1)", \
     &(resources).threads,                            \
     OPTION_U32,                                      \
     'j',                                             \
     1,                                               \
     EMBEDDED_SLOTS_MAX},                             \
        CLI_HASH_ROW(resources)
#define CLI_PRIVATE_ROW(resources)                                    \
    OPTIONS_ROW(FLAG, "private", NULL, &(resources).is_private, 0, 0, \
                "share no table with other processes of this host")
#define CLI_SHARE_ROW(resources)                                            \
    OPTIONS_ROW(U32, "share", "N", &(resources).share, 0, SEARCH_DEPTH_MAX, \
                "send results of depth N and more to other tables (default 2; 0: off)")
#define CLI_METRICS_ROW(resources)                                             \
    OPTIONS_ROW(HOST_PORT, "metrics", "HOST:PORT", &(resources).metrics, 0, 0, \
                "figures for Prometheus at http://HOST:PORT/metrics, and /healthz")

/* As one text, with blanks between the words. False: there was no room for all. */
bool cli_join(char *out, size_t size, const char **word, unsigned words);
/* As config_parse, for a command whose operands are a position, without quotes or with them.
 * *position stays if there are none. */
int cli_parse(struct options options, int argc, char *argv[], const char **position);

/* What the command line left out: servers from ABDADA_SERVERS, the directory of keys from
 * ABDADA_KEYS. Returns -1 to go on, or the exit status after a message: ABDADA_SERVERS is no list,
 * or there are no servers and the command `needs` them. */
int cli_environment(const char *program, struct options_servers *servers, const char **keys_dir,
                    bool needs);
/* The same for ttservers or Redis (ABDADA_TABLE), whose password comes from the environment
 * (redis_address.h). */
int cli_table_environment(const char *program, struct cli_table *table, bool needs);
/* Letters of boards of Othello, which may begin with an empty square, '-' (options.h). */
#define CLI_BOARD_LETTERS "-._XxOo*0BbWw"

bool cli_table_is_given(const struct cli_table *table);
/* As of now; borrows `table`. */
struct lanes_address cli_table_address(const struct cli_table *table,
                                       const struct keys_client *keys);

/* The keys of that role into *keys, and *out is `keys`, to be wiped; without a directory *out is
 * NULL. On failure one line is in why[KEYS_WHY_MAX]. */
enum err cli_load_keys(const char *keys_dir, enum keys_role role, struct keys_client *keys,
                       const struct keys_client **out, char *why);

/* A session at each shard of a table, for a command that shows or changes what is in it. */
struct cli_session {
    struct lanes *lanes;
    struct lane lane;
    unsigned shards;
};
enum { CLI_SESSION_RTO_US = 1000000 }; /* longer than in a search: people wait */
/* Begins to connect, with the keys of that role; shards may be down. `table` and `program`, which
 * says on stderr which shard refuses the keys, are borrowed until close. `options` lack the shards
 * and the name, which begins with `name`. On failure a line for people is in `why`; ERR_ABSENT:
 * there are no such keys. */
enum err cli_session_open(struct cli_session *session, const struct cli_table *table,
                          enum keys_role role, const char *program, const char *name,
                          struct client_options options, char why[LANES_WHY_MAX]);
/* Says BYE. Accepts a zeroed struct, and twice. */
void cli_session_close(struct cli_session *session);

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

/* Serves the engine's figures if the resources say where; says where on stderr. To be closed before
 * the engine. `past`: searching_metrics.h. `stop` as in http.h. On failure a line for people is
 * written to `why`. */
enum err cli_metrics_open(struct searching_metrics **out, const char *program,
                          const struct cli_resources *resources, struct engine *engine,
                          struct searcher_figures *past, const atomic_bool *stop,
                          char why[HTTP_WHY_MAX]);
/* Bytes of a searcher's histories in a game (NULL: any): it has some where moves have classes. */
enum { CLI_HISTORIES_BYTES = 4 << 20 };
uint64_t cli_histories_bytes(const struct game *game);
/* Whether this process may have all that a search of the game (NULL: any) takes. ERR_NOMEM: no;
 * `why` says so in one line. */
enum err cli_check_memory(uint64_t hash_mib, const struct game *game, unsigned threads, char *why,
                          size_t why_size);
/* The bytes that such a process may take besides; at least 1. */
uint64_t cli_memory_besides(uint64_t tables, unsigned threads);
/* On stderr: `reason`, not NULL, is why the table of that size is the process's own. */
void cli_say_private(const char *program, uint64_t hash_mib, const char *reason);

enum { CLI_TIME_LEFT_MAX = 32 };

/* "  about 3.2 hours left"; empty for 0, which is unknown. Returns `out`. */
const char *cli_time_left(uint32_t seconds, char out[CLI_TIME_LEFT_MAX]);

enum { CLI_REFUSAL_MAX = 512 };

/* "shard HOST:PORT refused the job: WHY; ..." and what that means for the search; `why` is NULL: it
 * has taken it since. */
void cli_refusal_text(const struct engine *engine, unsigned shard, const char *why,
                      const struct engine_status *status, char out[CLI_REFUSAL_MAX]);

#endif
