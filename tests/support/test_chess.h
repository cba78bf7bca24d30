/* Shared by the chess tests: positions from the data files and random play. Run from the root of
 * the repository. TEST_SEED in the environment repeats a random run. */
#ifndef TESTS_SUPPORT_TEST_CHESS_H
#define TESTS_SUPPORT_TEST_CHESS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/rng.h"
#include "worker/games/chess/fen.h"
#include "worker/games/chess/movegen.h"
#include "worker/games/chess/position.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PERFT_FILE "tests/data/chess/perft.epd"
#define BRATKO_KOPEC_FILE "tests/data/chess/bratko-kopec.epd"

static inline uint64_t test_seed(void)
{
    const char *text = getenv("TEST_SEED");
    uint64_t seed = text ? strtoull(text, NULL, 0) : 20240601;
    print_message("repeat with TEST_SEED=%llu\n", (unsigned long long)seed);
    return seed;
}

static inline void test_parse(struct chess_position *position, const char *text)
{
    char why[128] = "";
    enum err err = chess_position_parse(position, text, why, sizeof(why));
    if (err) {
        fail_msg("%s: %s", text, why);
    }
}

/* Calls `visit` for every line of a file; `rest` is what follows `fields` space-separated fields,
 * which alone are left in `fen`. Returns the number of lines. */
static inline unsigned test_each_line(const char *path, unsigned fields,
                                      void (*visit)(const char *fen, char *rest, void *context),
                                      void *context)
{
    FILE *file = fopen(path, "r");
    if (!file) {
        fail_msg("%s: cannot open (run from the root of the repository)", path);
        return 0;
    }
    char line[1024];
    unsigned lines = 0;
    while (fgets(line, sizeof(line), file)) {
        char *rest = line;
        for (unsigned i = 0; i < fields; i++) {
            rest += strcspn(rest, " \n");
            rest += i + 1 < fields && *rest;
        }
        if (*rest) {
            *rest++ = '\0';
        }
        visit(line, rest, context);
        lines++;
    }
    fclose(file);
    return lines;
}

/* Plays up to `plies` random moves from every position of both files and calls `visit` at each. */
struct test_play {
    uint64_t seed;
    unsigned plies;
    void (*visit)(struct chess_position *position);
};

static inline void test_play_from(const char *fen, char *rest, void *context)
{
    (void)rest;
    struct test_play *play = context;
    struct chess_position position;
    test_parse(&position, fen);
    for (unsigned i = 0; i <= play->plies; i++) {
        play->visit(&position);
        struct game_move list[GAME_MOVES_MAX];
        unsigned count = chess_movegen_all(&position, list);
        if (count == 0) {
            return;
        }
        chess_position_make(&position, list[rng_below(&play->seed, count)].move);
    }
}

static inline void test_random_play(unsigned plies, void (*visit)(struct chess_position *))
{
    struct test_play play = {test_seed(), plies, visit};
    assert_true(test_each_line(PERFT_FILE, 6, test_play_from, &play) > 100);
    assert_true(test_each_line(BRATKO_KOPEC_FILE, 4, test_play_from, &play) == 24);
}

#endif
