#include "worker/games/chess/chess.h"
#include "worker/games/chess/movegen.h"
#include "worker/games/games.h"
#include "worker/games/othello/othello.h"
#include "worker/programs/cli.h"
#include "worker/programs/json.h"

#include "common/clock.h"
#include "common/placement.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>

static const char program[] = "abdada perft";

enum { PERFT_DEPTH_MAX = 20, THREADS_MAX = 256 };

union perft_position {
    struct chess_position chess;
    struct othello_position othello;
};

struct perft {
    const struct game *game;
    union perft_position position;
    unsigned depth;
    unsigned count;
    struct game_move move[GAME_MOVES_MAX];
    uint64_t leaves[GAME_MOVES_MAX]; /* each by the thread that drew its index from `next` */
    atomic_uint next;
    struct placement placement; /* of the threads */
    atomic_uint started;
};

static void *count_moves(void *context)
{
    struct perft *p = context;
    union perft_position position = p->position;
    for (unsigned i; (i = atomic_fetch_add(&p->next, 1)) < p->count;) {
        p->game->make(&position, p->move[i].move);
        p->leaves[i] = p->game == &game_chess ? chess_perft(&position.chess, p->depth - 1)
                                              : othello_perft(&position.othello, p->depth - 1);
        p->game->unmake(&position, p->move[i].move);
    }
    return NULL;
}

static void *start(void *context)
{
    struct perft *p = context;
    struct placement_slot place = {.name = (uint16_t)(1 + atomic_fetch_add(&p->started, 1))};
    (void)placement_begin(&p->placement, &place, clock_us());
    return count_moves(p);
}

static uint64_t count_all(struct perft *p, unsigned threads)
{
    struct placement_thread thread[THREADS_MAX];
    unsigned started = 1;
    uint64_t sum = 0;
    struct placement_slot place = {.name = 0};
    p->count = p->game->generate(&p->position, p->move);
    (void)placement_begin(&p->placement, &place, clock_us());
    while (started < threads && placement_create_thread(&thread[started], started, start, p)) {
        started++;
    }
    count_moves(p);
    for (unsigned i = 1; i < started; i++) {
        pthread_join(thread[i].thread, NULL);
    }
    for (unsigned i = 0; i < p->count; i++) {
        sum += p->leaves[i];
    }
    return p->count == 0 ? p->game == &game_othello : sum; /* there a finished game is a leaf */
}

static void print(const struct perft *p, uint64_t leaves, uint64_t time_us, bool divide, bool json)
{
    char text[GAME_MOVE_TEXT_MAX];
    struct json j;
    for (unsigned i = 0; i < p->count && divide && !json; i++) {
        p->game->format_move(&p->position, p->move[i].move, text);
        printf("%s: %" PRIu64 "\n", text, p->leaves[i]);
    }
    if (!json) {
        printf("depth %u: %" PRIu64 " nodes, %.3f s, %.1f Mnodes/s\n", p->depth, leaves,
               (double)time_us / 1e6, time_us ? (double)leaves / (double)time_us : 0);
        return;
    }
    json_begin(&j, stdout);
    json_number(&j, "depth", p->depth);
    json_number(&j, "nodes", (int64_t)leaves);
    json_real(&j, "time_ms", (double)time_us / 1e3);
    json_number(&j, "nps", time_us ? (int64_t)((double)leaves * 1e6 / (double)time_us) : 0);
    if (divide) {
        json_object_begin(&j, "moves");
        for (unsigned i = 0; i < p->count; i++) {
            p->game->format_move(&p->position, p->move[i].move, text);
            json_number(&j, text, (int64_t)p->leaves[i]);
        }
        json_object_end(&j);
    }
    json_end(&j);
}

int cli_perft(int argc, char *argv[])
{
    const char *fen = "startpos", *game = "chess";
    uint32_t depth = 0, threads = 1;
    bool divide = false, json = false;
    char why[256];
    const struct options_row table[] = {
        {"depth", "N", "depth in plies (required)", &depth, OPTION_U32, 'd', 1, PERFT_DEPTH_MAX},
        {"game", "NAME", "chess (default) or othello", &game, OPTION_TEXT},
        {"divide", NULL, "one line for each first move", &divide, OPTION_FLAG},
        {"threads", "N", "counting threads (default 1)", &threads, OPTION_U32, 'j', 1, THREADS_MAX},
        {"json", NULL, "one JSON object on stdout", &json, OPTION_FLAG},
        {0},
    };
    const struct options options = {
        .program = program,
        .usage = "[OPTION]... [FEN | BOARD] --depth N",
        .summary = "Counts the legal move sequences of a position (default: startpos).",
        .example = {"abdada perft --depth 5", "abdada perft --game othello --depth 8 --threads 4"},
        .table = table,
    };
    int status = cli_parse(options, argc, argv, &fen);
    if (status >= 0) {
        return status;
    }
    if (depth == 0) {
        return options_wrong(program, "--depth N is required");
    }
    struct perft perft = {.depth = depth, .game = games_by_name(game)};
    if (perft.game != &game_chess && perft.game != &game_othello) {
        return options_wrong(program, "unknown game '%s' (there are: chess, othello)", game);
    }
    if (perft.game->parse(&perft.position, fen, why, sizeof why) != ERR_OK) {
        return options_wrong(program, "%s", why);
    }
    cli_left_out(program, NULL, 0, why);
    uint64_t begin = clock_us();
    uint64_t leaves = count_all(&perft, threads);
    print(&perft, leaves, clock_us() - begin, divide, json);
    return 0;
}
