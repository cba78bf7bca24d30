/* cli: the commands of `abdada`. Each reads its own command line (argv[0] is the command's name)
 * and returns the process's exit status: 0 success, 1 failure, 2 wrong use.
 * Threads: the main thread. */
#ifndef WORKER_CLI_CLI_H
#define WORKER_CLI_CLI_H

#include "common/options.h"

#define CLI_VERSION "0.1.0"

int cli_analyse(int argc, char *argv[]);
int cli_perft(int argc, char *argv[]);
int cli_bench(int argc, char *argv[]);
int cli_uci(int argc, char *argv[]);
int cli_sim(int argc, char *argv[]);
int cli_top(int argc, char *argv[]);
int cli_ttbench(int argc, char *argv[]);

#endif
