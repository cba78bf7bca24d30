/* othello_ffo: the endgame solver alone, on one thread: for each position of a file its score, the
 * expected one, nodes and CPU time, and the sum. Memory is empty at the beginning of each.
 *
 *   othello_ffo FILE.obf [FIRST LAST]      only #FIRST to #LAST */
#include "worker/games/othello/solver.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static bool count(void *self, unsigned nodes)
{
    *(uint64_t *)self += nodes;
    return true;
}

/* What the thread has had of its CPU, which others may use as well. */
static uint64_t cpu_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

static void print_line(const char *name, const char *text, uint64_t nodes, uint64_t time_us)
{
    printf("%-6s %-22s %12llu nodes %9.3f s %7.1f M/s\n", name, text, (unsigned long long)nodes,
           (double)time_us / 1e6, (double)nodes / (double)(time_us != 0 ? time_us : 1));
    fflush(stdout);
}

int main(int argc, char **argv)
{
    FILE *file = argc > 1 ? fopen(argv[1], "r") : NULL;
    struct othello_memory *memory = aligned_alloc(64, othello_memory_bytes());
    if (file == NULL || memory == NULL) {
        fprintf(stderr, "usage: othello_ffo FILE.obf [FIRST LAST]\n");
        return 1;
    }
    const long first = argc > 2 ? atol(argv[2]) : 0, last = argc > 3 ? atol(argv[3]) : 1000;
    char line[2048];
    long number = 0;
    uint64_t all_nodes = 0, all_us = 0;
    int wrong = 0;
    while (fgets(line, sizeof line, file) != NULL) {
        struct othello_board board;
        bool is_black;
        char why[OTHELLO_WHY_MAX];
        const char *comment = strchr(line, '#');
        if (line[0] == '%') {
            number = comment != NULL ? atol(comment + 1) : number;
            continue;
        }
        const char *expected = strchr(line, ':');
        if (number < first || number > last || expected == NULL ||
            !othello_parse(line, &board, &is_black, why)) {
            continue;
        }
        uint64_t nodes = 0;
        const struct game_solver solver = {.self = &nodes, .count = count};
        int value = 0;
        unsigned move = OTHELLO_NO_MOVE;
        memset(memory, 0, othello_memory_bytes());
        const uint64_t begin = cpu_us();
        othello_solve(memory, board, -64, 64, &solver, &value, &move);
        const uint64_t time_us = cpu_us() - begin;
        char name[16], text[64];
        snprintf(name, sizeof name, "#%ld", number);
        snprintf(text, sizeof text, "%c%c %+d (expected %+d)%s", (char)('A' + move % 8),
                 (char)('1' + move / 8), value, atoi(expected + 1),
                 value != atoi(expected + 1) ? " WRONG" : "");
        wrong += value != atoi(expected + 1);
        print_line(name, text, nodes, time_us);
        all_nodes += nodes;
        all_us += time_us;
    }
    print_line("all", wrong == 0 ? "right" : "WRONG", all_nodes, all_us);
    fclose(file);
    free(memory);
    return wrong != 0;
}
