/* cli: the commands of `abdada`. Each reads its own command line (argv[0] is the command's name)
 * and returns the process's exit status: 0 success, 1 failure, 2 wrong use. Called by main alone.
 Threads: the main thread. */
#ifndef WORKER_CLI_CLI_H
#define WORKER_CLI_CLI_H

#include "common/options.h"

#define CLI_VERSION "0.1.0"

enum { CLI_SERVERS_MAX = 64 };

int cli_analyse(int argc, char *argv[]);
int cli_perft(int argc, char *argv[]);
int cli_bench(int argc, char *argv[]);
int cli_uci(int argc, char *argv[]);
int cli_sim(int argc, char *argv[]);
int cli_top(int argc, char *argv[]);
int cli_ttbench(int argc, char *argv[]);

/* --servers HOST:PORT,HOST:PORT,... */
struct cli_servers {
    struct options_host_port server[CLI_SERVERS_MAX];
    unsigned count;
};
/* For OPTION_CUSTOM rows. */
enum err cli_parse_servers(const char *text, void *servers);

#endif
