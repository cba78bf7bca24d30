/* othello_probcut: how far the value of a deep search lies from that of a shallow one, which
 * ProbCut (worker/search/select.c) cuts by: the standard deviation, in hundredths of a disc.
 *
 *   othello_probcut --seed N --positions N --depth N
 *
 * Positions are drawn from games that begin with random moves and go on with searches of a few
 * plies. Each is searched with selection plain to `depth`, one iteration after the other, and every
 * value is compared with that of the iteration that forecasts it. Prints for each stage of the
 * game, and for all, DEPTH:DEVIATION and the mean difference: the last row is `deviation` in
 * worker/games/othello/othello.c. */
#include "common/options.h"
#include "common/rng.h"
#include "worker/games/othello/othello.h"
#include "worker/search/handover/algorithms.h"
#include "worker/search/search.h"
#include "worker/search/select.h"
#include "worker/table/embedded.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    STAGES = 4, /* of STAGE_SQUARES empty squares, from FIRST_EMPTIES on */
    STAGE_SQUARES = 9,
    FIRST_EMPTIES = 20,
    DEPTH_MAX = 16,
    RANDOM_MIN = 8, /* moves */
    RANDOM_MAX = 20,
    PLAY_DEPTH = 3,
    EXACT_GAP = 12, /* an iteration nearer to the end than this is the exact one */
    HASH_BYTES = 64 << 20,
};

struct tool {
    struct embedded *table;
    struct embedded_port port;
    struct search *search;
    int value[DEPTH_MAX + 1]; /* of each iteration */
    struct sum {
        double error, square;
        unsigned count;
    } sum[STAGES][DEPTH_MAX + 1];
};

static bool never(void *self, struct search *search)
{
    (void)self;
    (void)search;
    return false;
}

static void take_value(void *context, const struct search_result *result,
                       const struct counters *counters)
{
    struct tool *tool = context;
    (void)counters;
    if (result->bound == TT_EXACT && result->depth <= DEPTH_MAX) {
        tool->value[result->depth] = result->score;
    }
}

static uint16_t search(struct tool *tool, const struct othello_position *position,
                       struct search_options *options, const struct env_port *env, unsigned depth)
{
    struct search_result result;
    options->depth_limit = depth;
    search_set_limits(tool->search, options, env);
    search_set_position(tool->search, position);
    embedded_begin(&tool->port, 0, 0);
    search_run(tool->search, take_value, tool, &result);
    return result.move;
}

static void add(struct tool *tool, unsigned stage, int depth)
{
    struct sum *sum = &tool->sum[stage][depth];
    const double error = tool->value[depth] - tool->value[select_forecast_depth(depth)];
    sum->error += error;
    sum->square += error * error;
    sum->count++;
}

static void print(const struct sum *sum, int depth)
{
    for (int at = 2; at <= depth; at++) {
        const double count = sum[at].count > 0 ? sum[at].count : 1, mean = sum[at].error / count;
        printf(" %d:%.0f%+.0f", at, 100 * sqrt(sum[at].square / count - mean * mean), 100 * mean);
    }
    printf("\n");
}

int main(int argc, char *argv[])
{
    uint64_t seed = 1, positions = 400, depth = 12;
    const struct options_row table[] = {
        OPTIONS_ROW(U64, "seed", "N", &seed, 1, 0, "of the games"),
        OPTIONS_ROW(U64, "positions", "N", &positions, 1, 0, "to search"),
        OPTIONS_ROW(U64, "depth", "N", &depth, 4, DEPTH_MAX, "of the deepest search"),
        {0},
    };
    const struct options options = {
        .program = "othello_probcut", .summary = "Measures what ProbCut cuts by.", .table = table};
    const int status = options_parse(&options, argc, argv, NULL, NULL);
    if (status >= 0) {
        return status;
    }
    static struct tool tool;
    struct search_options search_options = {
        .game = &game_othello,
        .algorithm = algorithm_by_name("sequential"),
        .depth_limit = 1,
        .strict = true, /* deeper results of the game answer nothing */
    };
    if (embedded_open(&tool.table, HASH_BYTES, 1) != ERR_OK) {
        return 1;
    }
    tool.port = (struct embedded_port){.table = tool.table, .inflight_depth_max = EMBEDDED_NEVER};
    const struct table_port port = embedded_table_port(&tool.port);
    const struct env_port env = {.self = &tool, .poll = never};
    if (search_open(&tool.search, &search_options, &port, &env) != ERR_OK) {
        return 1;
    }
    for (uint64_t done = 0; done < positions;) {
        static struct othello_position position;
        char why[OTHELLO_WHY_MAX];
        const unsigned stage = (unsigned)(done % STAGES);
        const unsigned empties =
            FIRST_EMPTIES + STAGE_SQUARES * stage + (unsigned)rng_below(&seed, STAGE_SQUARES);
        const unsigned random = RANDOM_MIN + (unsigned)rng_below(&seed, RANDOM_MAX - RANDOM_MIN);
        game_othello.parse(&position, "startpos", why, sizeof why);
        bool is_over = false;
        while (!is_over && game_othello.depth_left(&position) > empties) {
            struct game_move list[GAME_MOVES_MAX];
            const unsigned count = game_othello.generate(&position, list);
            is_over = count == 0;
            if (!is_over) {
                const bool is_random = position.made < random;
                game_othello.make(&position, is_random ? list[rng_below(&seed, count)].move
                                                       : search(&tool, &position, &search_options,
                                                                &env, PLAY_DEPTH));
            }
        }
        const int deepest =
            (int)depth < (int)empties - EXACT_GAP ? (int)depth : (int)empties - EXACT_GAP;
        if (is_over || deepest < 3) {
            continue;
        }
        /* No iteration gives the value of depth 0. */
        tool.value[0] = game_othello.evaluate(&position);
        (void)search(&tool, &position, &search_options, &env, (unsigned)deepest);
        for (int at = 2; at <= deepest; at++) {
            add(&tool, stage, at);
        }
        done++;
    }
    struct sum all[DEPTH_MAX + 1] = {0};
    for (unsigned stage = 0; stage < STAGES; stage++) {
        printf("%2u empty squares:", FIRST_EMPTIES + STAGE_SQUARES * stage);
        print(tool.sum[stage], (int)depth);
        for (int at = 2; at <= (int)depth; at++) {
            all[at].error += tool.sum[stage][at].error;
            all[at].square += tool.sum[stage][at].square;
            all[at].count += tool.sum[stage][at].count;
        }
    }
    printf("all:             ");
    print(all, (int)depth);
    search_free(&tool.search);
    embedded_close(&tool.table);
    return 0;
}
