#include "worker/cli/cli.h"
#include "worker/cli/json.h"
#include "worker/engine/engine.h"
#include "worker/games/games.h"

#include "common/config.h"
#include "common/log.h"

#include <inttypes.h>

static const char program[] = "abdada bench";

/* The sum of the nodes of these single-threaded searches is the signature of the search: a commit
 * that changes it says so. Own positions: openings, middle games and endings. */
static const struct {
    const char *fen;
    unsigned depth;
} chess_case[] = {
    {"rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1", 8},
    {"r1bqkbnr/pppp1ppp/2n5/1B2p3/4P3/5N2/PPPP1PPP/RNBQK2R b KQkq - 3 3", 7},
    {"r1bq1rk1/ppp2ppp/2np1n2/2b1p3/2B1P3/2PP1N2/PP3PPP/RNBQ1RK1 w - - 0 7", 7},
    {"2rq1rk1/pb1nbppp/1p2pn2/2pp4/3P1B2/2PBPN2/PP1N1PPP/R2QR1K1 w - - 2 12", 7},
    {"8/5pk1/4p1p1/3pP2p/3P1P1P/2r3P1/1R4K1/8 w - - 0 40", 10},
    {"8/8/4kpp1/3p1b2/p6P/2B5/6P1/6K1 b - - 0 47", 11},
};

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
        .version = PROGRAM_VERSION,
        .table = table,
    };
    int status = config_parse(&options, argc, argv, NULL, NULL);
    if (status >= 0) {
        return status;
    }
    struct engine_options engine_options = {.threads = 1, .hash_bytes = 16 << 20};
    struct engine *engine = NULL;
    uint64_t nodes = 0, time_us = 0;
    char why[ENGINE_WHY_MAX];
    enum err err = engine_open(&engine, &engine_options, why);
    for (size_t i = 0; i < sizeof chess_case / sizeof chess_case[0] && err == ERR_OK; i++) {
        struct engine_result result = {0};
        struct job job = {
            .algorithm = algorithm_by_name("abdada"),
            .depth = (uint8_t)chess_case[i].depth,
            .remote_depth = PROTO_REMOTE_DEPTH_AUTO,
        };
        err = job_set_position(&job, games_by_name("chess"), chess_case[i].fen, why, sizeof why);
        if (err == ERR_OK) {
            job_set_repeatable_namespace(&job, 0);
            engine_clear(engine);
            err = engine_run(engine, &job, NULL, &result);
        }
        job_free(&job);
        nodes += result.status.nodes;
        time_us += result.status.time_us;
    }
    if (err != ERR_OK) {
        log_fail(program, "%s", err_text(err));
        engine_close(&engine);
        return 1;
    }
    engine_close(&engine);
    int64_t nps = time_us ? (int64_t)((double)nodes * 1e6 / (double)time_us) : 0;
    if (json) {
        struct json j;
        json_begin(&j, stdout);
        json_number(&j, "chess", (int64_t)nodes);
        json_number(&j, "nps", nps);
        json_end(&j);
    } else {
        printf("chess %" PRIu64 " nodes, %" PRId64 " nodes/s\n", nodes, nps);
    }
    return 0;
}
