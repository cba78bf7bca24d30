#include "worker/engine/engine.h"
#include "worker/games/games.h"
#include "worker/programs/cli.h"
#include "worker/programs/json.h"

#include "common/config.h"
#include "common/log.h"
#include "common/memory.h"

#include <inttypes.h>

static const char program[] = "abdada bench";

/* The sum of the nodes of these single-threaded searches is the signature of the search. A commit
 * that moves the signature says the old and the new number in its message and in docs/testing.md.
 * The positions are the project's own: openings, middle games and endings. */
enum { CHESS, OTHELLO, GAMES };
static const char *const game_name[GAMES] = {"chess", "othello"};

static const struct {
    unsigned game;
    const char *text;
    unsigned depth;
} bench_case[] = {
    {CHESS, "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1", 8},
    {CHESS, "r1bqkbnr/pppp1ppp/2n5/1B2p3/4P3/5N2/PPPP1PPP/RNBQK2R b KQkq - 3 3", 7},
    {CHESS, "r1bq1rk1/ppp2ppp/2np1n2/2b1p3/2B1P3/2PP1N2/PP3PPP/RNBQ1RK1 w - - 0 7", 7},
    {CHESS, "2rq1rk1/pb1nbppp/1p2pn2/2pp4/3P1B2/2PBPN2/PP1N1PPP/R2QR1K1 w - - 2 12", 7},
    {CHESS, "8/5pk1/4p1p1/3pP2p/3P1P1P/2r3P1/1R4K1/8 w - - 0 40", 10},
    {CHESS, "8/8/4kpp1/3p1b2/p6P/2B5/6P1/6K1 b - - 0 47", 11},
    {OTHELLO, "---------------------------OX------XO--------------------------- X", 9},
    {OTHELLO, "------------------XO------XXXO-----OOXX----OXX------------------ O", 9},
    {OTHELLO, "--XOO---X-OOOX--XXOXOXO-XXOOXOO-XXXOOOOOXXXOOX----OOXX----O-X--- X", 64},
};

struct bench_sum {
    uint64_t nodes[GAMES], time_us;
};

static enum err search_cases(struct engine *engine, struct bench_sum *sum, char *why)
{
    enum err err = ERR_OK;
    for (size_t i = 0; i < sizeof bench_case / sizeof bench_case[0] && err == ERR_OK; i++) {
        const struct game *game = games_by_name(game_name[bench_case[i].game]);
        struct engine_result result = {0};
        struct job job = {
            .algorithm = algorithm_by_name("abdada"),
            .depth = (uint8_t)bench_case[i].depth,
            .remote_depth = PROTO_REMOTE_DEPTH_AUTO,
        };
        err = job_set_position(&job, game, bench_case[i].text, why, ENGINE_WHY_MAX);
        if (err == ERR_OK) {
            job_set_repeatable_namespace(&job, 0);
            engine_clear(engine);
            err = engine_run(engine, &job, NULL, &result);
        }
        job_free(&job);
        sum->nodes[bench_case[i].game] += result.status.sum.nodes;
        sum->time_us += result.status.time_us;
    }
    return err;
}

int cli_bench(int argc, char *argv[])
{
    bool json = false;
    const struct options_row table[] = {
        {"json", NULL, "one JSON object on stdout", &json, OPTION_FLAG},
        {0},
    };
    const struct options options = {
        .program = program,
        .usage = "[--json]",
        .summary = "Searches fixed positions with one thread; the number of nodes is the signature "
                   "of the search.",
        .example = {"abdada bench", "abdada bench --json"},
        .table = table,
    };
    int status = config_parse(&options, argc, argv, NULL, NULL);
    if (status >= 0) {
        return status;
    }
    enum { HASH_MIB = 16 };
    struct engine_options engine_options = {.threads = 1, .hash_bytes = HASH_MIB << 20};
    struct engine *engine = NULL;
    struct bench_sum sum = {.time_us = 0};
    char why[ENGINE_WHY_MAX];
    const uint64_t besides = games_solver_bytes(NULL) + CLI_HISTORIES_BYTES;
    if (!memory_has_room(engine_options.hash_bytes, besides, 1, why, sizeof why)) {
        return log_fail(program, "a table of %d MiB %s", HASH_MIB, why);
    }
    enum err err = engine_open(&engine, &engine_options, why);
    err = err ? err : search_cases(engine, &sum, why);
    engine_close(&engine);
    if (err != ERR_OK) {
        return log_fail(program, "%s", err_text(err));
    }
    const double all = (double)(sum.nodes[CHESS] + sum.nodes[OTHELLO]);
    int64_t nps = sum.time_us ? (int64_t)(all * 1e6 / (double)sum.time_us) : 0;
    if (json) {
        struct json j;
        json_begin(&j, stdout);
        for (unsigned i = 0; i < GAMES; i++) {
            json_number(&j, game_name[i], (int64_t)sum.nodes[i]);
        }
        json_number(&j, "nps", nps);
        json_end(&j);
    } else {
        printf("chess %" PRIu64 " nodes, othello %" PRIu64 " nodes, %" PRId64 " nodes/s\n",
               sum.nodes[CHESS], sum.nodes[OTHELLO], nps);
    }
    return 0;
}
