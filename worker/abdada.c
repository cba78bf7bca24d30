/* abdada: the commands for users. `abdada COMMAND --help` describes each. */
#include "worker/programs/cli.h"

#include "common/log.h"
#include "common/signals.h"

#include <stdio.h>
#include <string.h>

static const struct {
    const char *name;
    int (*run)(int argc, char *argv[]);
    const char *help, *group; /* group: of this command and those that follow */
} commands[] = {
    {"analyse", cli_analyse, "search positions, alone or over a cluster", "Search and play"},
    {"solve", cli_solve, "solve Othello positions exactly, alone or over a cluster"},
    {"check", cli_check, "check a proof that solve has written"},
    {"uci", cli_uci, "be a chess engine for UCI programs"},
    {"nboard", cli_nboard, "be an Othello engine for NBoard"},
    {"gtp", cli_gtp, "be an Othello engine for programs that speak GTP"},
    {"top", cli_top, "show shards, jobs and workers", "Run a cluster"},
    {"tt", cli_tt, "show and change what is in a table"},
    {"cluster", cli_cluster, "start, watch and stop a cluster on many hosts, over ssh"},
    {"keygen", cli_keygen, "make keys for a cluster and its users"},
    {"perft", cli_perft, "count legal move sequences", "Measure"},
    {"bench", cli_bench, "search fixed positions: node signature and nodes per second"},
    {"ttbench", cli_ttbench, "load shards: operations per second, round trips"},
    {"sim", cli_sim, "search on a virtual cluster of up to 4,096 workers"},
};

static void print_help(FILE *out)
{
    fprintf(out, "Usage: abdada COMMAND [OPTION]...\n"
                 "Distributed game-tree search: ABDADA over a table served by ttserver.\n");
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
        if (commands[i].group != NULL) {
            fprintf(out, "\n%s:\n", commands[i].group);
        }
        fprintf(out, "  %-9s %s\n", commands[i].name, commands[i].help);
    }
    fprintf(out, "\n`abdada help COMMAND` lists a command's options.\n\nExamples:\n"
                 "  $ abdada analyse --depth 9 startpos\n  $ abdada help analyse\n");
}

/* -1: there is no such command. */
static int run(const char *name, int argc, char *argv[])
{
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
        if (strcmp(name, commands[i].name) == 0) {
            return log_end("abdada", commands[i].run(argc, argv));
        }
    }
    return -1;
}

int main(int argc, char *argv[])
{
    log_begin();
    signals_default();
    options_about = build_about;
    if (argc < 2) {
        print_help(stderr);
        return OPTIONS_WRONG;
    }
    if (strcmp(argv[1], "--version") == 0) {
        options_print_version("abdada");
        return log_end("abdada", 0);
    }
    bool is_help = strcmp(argv[1], "help") == 0;
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 || (is_help && argc == 2)) {
        print_help(stdout);
        return log_end("abdada", 0);
    }
    char *help[] = {argv[is_help ? 2 : 1], "--help", NULL};
    int status = is_help ? run(help[0], 2, help) : run(argv[1], argc - 1, argv + 1);
    const char *near = NULL;
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
        near = options_nearer(help[0], commands[i].name, near);
    }
    return status >= 0 ? status : options_unknown("abdada", "command", help[0], near);
}
