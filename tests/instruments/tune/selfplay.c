/* selfplay: games of the engine against itself, and the quiet positions of them with the score of
 * the search and the result of the game (sample.h), which fit trains the evaluation on.
 *
 *   selfplay --seed N --positions N --nodes N > FILE
 *
 * The games are played with the evaluation that was written by hand, so that one network does
 * not depend on another. A game begins with some random moves; each move is searched for a number
 * of nodes. Left out are positions in check, those whose best move captures or promotes, and scores
 * of a decided game. */
#include "common/options.h"
#include "common/rng.h"
#include "tests/instruments/tune/sample.h"
#include "worker/games/chess/chess.h"
#include "worker/games/chess/movegen.h"
#include "worker/games/chess/position.h"
#include "worker/search/handover/algorithms.h"
#include "worker/search/search.h"
#include "worker/table/embedded.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    RANDOM_MOVES = 8,
    OPENING_SCORE_MAX = 350, /* a game that begins further apart teaches little */
    DECIDED = 1200, /* centipawns; for so many moves in turn the game is over: */
    DECIDED_MOVES = 6,
    SCORE_MAX = 2000,
    GAME_PLIES_MAX = 400,
    HASH_BYTES = 8 << 20,
};

struct player {
    struct embedded *table;
    struct embedded_port port;
    struct search *search;
    uint64_t nodes;
};

static bool is_over(void *self, struct search *search)
{
    const struct player *player = self;
    return search_iteration(search) > 1 && search_counters(search)->nodes >= player->nodes;
}

static struct sample sample_of(const struct chess_position *position, int score)
{
    struct sample sample = {.score = (int16_t)score};
    const unsigned turn = position->side == CHESS_WHITE ? 0 : 56;
    unsigned count = 0;
    for (unsigned at = 0; at < 64; at++) {
        unsigned piece = position->board[at ^ turn];
        if ((piece & 7) != CHESS_EMPTY) {
            piece ^= turn ? 8 : 0;
            sample.occupied |= UINT64_C(1) << at;
            sample.piece[count / 2] |= (uint8_t)(piece << (count % 2 * 4));
            count++;
        }
    }
    return sample;
}

static bool open_randomly(struct chess_position *position, uint64_t *seed)
{
    char why[80];
    game_chess.parse(position, "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1", why,
                     sizeof why);
    const unsigned moves = RANDOM_MOVES + (unsigned)rng_below(seed, 2);
    for (unsigned i = 0; i < moves; i++) {
        struct game_move list[GAME_MOVES_MAX];
        unsigned count = chess_movegen_all(position, list);
        if (count == 0) {
            return false;
        }
        chess_position_make(position, list[rng_below(seed, count)].move);
    }
    return true;
}

/* White's result: 0, 1, 2. `samples` has room for GAME_PLIES_MAX; sides[i] is who moves in it. */
static unsigned play(struct player *player, struct chess_position *position, struct sample *samples,
                     uint8_t *sides, unsigned *count)
{
    unsigned decided = 0;
    *count = 0;
    for (unsigned ply = 0; ply < GAME_PLIES_MAX; ply++) {
        struct search_result result;
        if (game_chess.drawn(position, GAME_UNDO_MAX)) {
            return 1;
        }
        search_set_position(player->search, position);
        embedded_begin(&player->port, 0, 0);
        search_run(player->search, NULL, NULL, &result);
        const bool is_white = position->side == CHESS_WHITE;
        if (result.move == 0) {
            return result.score == 0 ? 1 : is_white ? 0 : 2;
        }
        if (ply == 0 && abs(result.score) > OPENING_SCORE_MAX) {
            *count = 0;
            return 1;
        }
        decided = abs(result.score) >= DECIDED ? decided + 1 : 0;
        if (decided == DECIDED_MOVES) {
            return (result.score > 0) == is_white ? 2 : 0;
        }
        if (!chess_position_check(position) && abs(result.score) <= SCORE_MAX &&
            !(chess_move_kind(result.move) & (CHESS_CAPTURE | CHESS_PROMOTION))) {
            sides[*count] = position->side;
            samples[(*count)++] = sample_of(position, result.score);
        }
        chess_position_make(position, result.move);
    }
    return 1;
}

int main(int argc, char *argv[])
{
    uint64_t seed = 1, positions = 1000000, nodes = 1000, written = 0;
    const struct options_row table[] = {
        OPTIONS_ROW(U64, "seed", "N", &seed, 1, 0, "of the games"),
        OPTIONS_ROW(U64, "positions", "N", &positions, 1, 0, "to write, at least"),
        OPTIONS_ROW(U64, "nodes", "N", &nodes, 1, 0, "for each move"),
        {0},
    };
    const struct options options = {
        .program = "selfplay", .summary = "Writes positions of own games.", .table = table};
    int status = options_parse(&options, argc, argv, NULL, NULL);
    if (status >= 0) {
        return status;
    }
    struct player player = {.nodes = nodes};
    struct game by_hand = game_chess;
    by_hand.evaluator_size = 0;
    struct search_options search_options = {
        .game = &by_hand,
        .algorithm = algorithm_by_name("sequential"),
        .full = true,
        .depth_limit = SEARCH_DEPTH_MAX,
        .poll_nodes = 64,
    };
    struct chess_position *position = malloc(sizeof *position);
    if (position == NULL || embedded_open(&player.table, HASH_BYTES, 1) != ERR_OK) {
        return 1;
    }
    player.port =
        (struct embedded_port){.table = player.table, .inflight_depth_max = EMBEDDED_NEVER};
    const struct table_port port = embedded_table_port(&player.port);
    const struct env_port env = {.self = &player, .poll = is_over};
    if (search_open(&player.search, &search_options, &port, &env) != ERR_OK) {
        return 1;
    }
    while (written < positions) {
        struct sample samples[GAME_PLIES_MAX];
        uint8_t sides[GAME_PLIES_MAX];
        unsigned count = 0;
        embedded_clear(player.table);
        if (!open_randomly(position, &seed)) {
            continue;
        }
        unsigned white = play(&player, position, samples, sides, &count);
        for (unsigned i = 0; i < count; i++) {
            samples[i].result = (uint8_t)(sides[i] == CHESS_WHITE ? white : 2 - white);
        }
        if (fwrite(samples, sizeof samples[0], count, stdout) != count) {
            return 1;
        }
        written += count;
    }
    search_free(&player.search);
    embedded_close(&player.table);
    free(position);
    return fflush(stdout) == 0 ? 0 : 1;
}
