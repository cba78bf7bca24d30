/* othello_selfplay: games of the Othello evaluation against itself, and their boards with the final
 * score, which othello_fit fits the evaluation to.
 *
 *   othello_selfplay --seed N --games N --depth N --exact N [--start] > FILE
 *   othello_selfplay --seed N --games N --depth N --exact N --against-start
 *
 * A game begins with random moves. Then a search of a few plies chooses; as soon as no more than
 * `exact` squares are empty, every move is the best and every score exact. From some boards of the
 * game a random move leads to another line, which is played in the same way: a search also meets
 * boards that no good player reaches. For the same reason some games begin with random moves for
 * long, and random moves are tried in the exact part. The boards before the last random move of a
 * line have no score from it.
 *
 * Each game has a seed of its own and they are written in order, so the file depends on the
 * options alone and not on the threads. With --start the evaluation written by hand plays. With
 * --against-start both play each other, each opening twice, and the share of points is printed. */
#include "common/options.h"
#include "common/rng.h"
#include "tests/instruments/tune/othello_sample.h"
#include "tests/instruments/tune/othello_solve.h"
#include "worker/games/othello/patterns.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    OPENING_MIN = 6, /* random moves */
    OPENING_MAX = 21,
    WILD_MAX = 46, /* in one game of WILD */
    WILD = 4,
    LINES = 3, /* the game and those that leave it */
    SAMPLES_MAX = 512, /* of a game */
    MOVES_MAX = 34,
    SCORE_WORST = -1000000,
    THREADS_MAX = 64,
};

typedef int evaluation(struct othello_board board);

static int by_hand(struct othello_board board)
{
    return othello_start_evaluate(board, OTHELLO_EVAL_UNIT);
}

/* ---- the search ---- */

struct choice {
    struct othello_board after;
    int order; /* its value for the opponent without a search */
};

/* The moves, best first if `evaluate` is given. */
static unsigned choices_of(struct othello_board b, evaluation *evaluate, struct choice *list)
{
    unsigned count = 0;
    for (uint64_t moves = othello_moves(b.own, b.other); moves != 0; moves &= moves - 1) {
        const unsigned square = othello_first(moves);
        struct choice choice = {othello_play(b, square, othello_flips(b.own, b.other, square)), 0};
        unsigned at = count++;
        if (evaluate != NULL) {
            choice.order = evaluate(choice.after);
            for (; at > 0 && list[at - 1].order > choice.order; at--) {
                list[at] = list[at - 1];
            }
        }
        list[at] = choice;
    }
    return count;
}

static int search(evaluation *evaluate, struct othello_board b, unsigned depth, int alpha, int beta)
{
    if (depth == 0) {
        return evaluate(b);
    }
    struct choice list[MOVES_MAX];
    const unsigned count = choices_of(b, depth > 1 ? evaluate : NULL, list);
    if (count == 0) {
        return othello_moves(b.other, b.own) == 0
                   ? othello_final_score(b) * OTHELLO_EVAL_UNIT
                   : -search(evaluate, othello_pass(b), depth, -beta, -alpha);
    }
    int best = SCORE_WORST;
    for (unsigned i = 0; i < count && best < beta; i++) {
        const int low = best > alpha ? best : alpha;
        int score = 0;
        if (i > 0 && beta - low > 1) {
            score = -search(evaluate, list[i].after, depth - 1, -low - 1, -low);
        }
        if (i == 0 || beta - low <= 1 || (score > low && score < beta)) {
            score = -search(evaluate, list[i].after, depth - 1, -beta, -low);
        }
        best = score > best ? score : best;
    }
    return best;
}

/* The board after the best move; there is one. */
static struct othello_board search_move(evaluation *evaluate, struct othello_board b,
                                        unsigned depth)
{
    struct choice list[MOVES_MAX];
    const unsigned count = choices_of(b, evaluate, list);
    unsigned best = 0;
    int low = SCORE_WORST;
    for (unsigned i = 0; i < count; i++) {
        const int score = -search(evaluate, list[i].after, depth - 1, SCORE_WORST, -low);
        if (score > low) {
            low = score;
            best = i;
        }
    }
    return list[best].after;
}

/* ---- games ---- */

struct tool {
    uint64_t seed, games;
    uint32_t depth, exact, threads;
    bool with_start, against_start;
    atomic_uint_fast64_t next, done;
    atomic_uint_fast64_t points; /* twice, of the evaluation against the one of the start */
    struct played {
        struct othello_sample *sample;
        unsigned samples;
    } * game;
};

static const struct othello_board opening = {UINT64_C(0x0000000810000000),
                                             UINT64_C(0x0000001008000000)};

static bool is_over(struct othello_board b)
{
    return (othello_moves(b.own, b.other) | othello_moves(b.other, b.own)) == 0;
}

/* Passes if it must; the game is not over. */
static struct othello_board random_move(struct othello_board b, uint64_t *seed)
{
    struct choice list[MOVES_MAX];
    const unsigned count = choices_of(b, NULL, list);
    return count == 0 ? othello_pass(b) : list[rng_below(seed, count)].after;
}

static struct othello_board random_opening(uint64_t *seed, unsigned most)
{
    for (;;) {
        struct othello_board b = opening;
        unsigned moves = OPENING_MIN + rng_below(seed, most - OPENING_MIN + 1);
        for (; moves > 0 && !is_over(b); moves--) {
            b = random_move(b, seed);
        }
        if (!is_over(b)) {
            return b;
        }
    }
}

static void add_sample(struct played *game, uint64_t number, struct othello_board b, int score)
{
    if (game->samples < SAMPLES_MAX) {
        game->sample[game->samples++] = (struct othello_sample){
            .own = b.own, .other = b.other, .game = (uint32_t)number, .score = (int8_t)score};
    }
}

/* From `b` to the end; the boards on the way go to `line`, their number is returned. */
static unsigned play_line(const struct tool *tool, struct othello_memory *memory,
                          struct played *game, uint64_t number, struct othello_board b,
                          uint64_t *seed, struct othello_board *line)
{
    evaluation *evaluate = tool->with_start ? by_hand : othello_evaluate;
    int score[2 * OTHELLO_SQUARES];
    unsigned count = 0, exact_from = UINT32_MAX;
    while (!is_over(b)) {
        struct othello_board next = othello_pass(b);
        line[count] = b;
        if (othello_count(othello_empties(b)) <= tool->exact) {
            exact_from = exact_from < count ? exact_from : count;
            score[count] = othello_solve_best(memory, b, &next);
            if (othello_count(othello_empties(b)) > 3) {
                const struct othello_board tried = random_move(b, seed);
                if (!is_over(tried)) {
                    add_sample(game, number, tried, othello_solve_exactly(memory, tried));
                }
            }
        } else if (othello_moves(b.own, b.other) != 0) {
            next = search_move(evaluate, b, tool->depth);
        }
        count++;
        b = next;
    }
    int final = othello_final_score(b); /* of who would move now, that is who did not before */
    for (unsigned i = count; i-- > 0;) {
        final = -final;
        add_sample(game, number, line[i], i >= exact_from ? score[i] : final);
    }
    return count;
}

static void play_game(const struct tool *tool, struct othello_memory *memory, struct played *game,
                      uint64_t number)
{
    uint64_t seed = rng_mix(tool->seed * UINT64_C(0x9e3779b97f4a7c15) + number);
    struct othello_board line[2 * OTHELLO_SQUARES], other[2 * OTHELLO_SQUARES];
    const struct othello_board first =
        random_opening(&seed, number % WILD == 0 ? WILD_MAX : OPENING_MAX);
    const unsigned count = play_line(tool, memory, game, number, first, &seed, line);
    unsigned inexact = 0;
    while (inexact < count && othello_count(othello_empties(line[inexact])) > tool->exact) {
        inexact++;
    }
    for (unsigned i = 1; i < LINES && inexact > 0; i++) {
        const struct othello_board b = random_move(line[rng_below(&seed, inexact)], &seed);
        play_line(tool, memory, game, number, b, &seed, other);
    }
}

/* The points of the first to move, twice: 0, 1, 2. */
static unsigned play_match(const struct tool *tool, struct othello_memory *memory,
                           struct othello_board b, evaluation *first, evaluation *second)
{
    unsigned turn = 0;
    while (!is_over(b)) {
        struct othello_board next = othello_pass(b);
        if (othello_count(othello_empties(b)) <= tool->exact) {
            const int score = othello_solve_best(memory, b, &next);
            return score == 0 ? 1 : (score > 0) == (turn == 0) ? 2 : 0;
        }
        if (othello_moves(b.own, b.other) != 0) {
            next = search_move(turn == 0 ? first : second, b, tool->depth);
        }
        b = next;
        turn ^= 1;
    }
    const int score = othello_final_score(b);
    return score == 0 ? 1 : (score > 0) == (turn == 0) ? 2 : 0;
}

static void *run(void *context)
{
    struct tool *tool = context;
    struct othello_memory *memory = othello_solve_open();
    struct othello_sample room[SAMPLES_MAX];
    for (uint64_t i; memory != NULL && (i = atomic_fetch_add(&tool->next, 1)) < tool->games;) {
        if (tool->against_start) {
            uint64_t seed = rng_mix(tool->seed + i / 2);
            const struct othello_board b = random_opening(&seed, OPENING_MAX);
            tool->points += i % 2 == 0 ? play_match(tool, memory, b, othello_evaluate, by_hand)
                                       : 2 - play_match(tool, memory, b, by_hand, othello_evaluate);
        } else {
            struct played game = {.sample = room};
            play_game(tool, memory, &game, i);
            tool->game[i].sample = malloc(game.samples * sizeof room[0] + 1);
            if (tool->game[i].sample != NULL) {
                tool->game[i].samples = game.samples;
                memcpy(tool->game[i].sample, room, game.samples * sizeof room[0]);
            }
        }
        tool->done++;
    }
    free(memory);
    return NULL;
}

int main(int argc, char *argv[])
{
    uint32_t threads = 2;
    struct tool tool = {.seed = 1, .games = 1000, .depth = 4, .exact = 12};
    const struct options_row table[] = {
        OPTIONS_ROW(U64, "seed", "N", &tool.seed, 1, 0, "of the games"),
        OPTIONS_ROW(U64, "games", "N", &tool.games, 1, UINT32_MAX, "how many (1000)"),
        OPTIONS_ROW(U32, "depth", "N", &tool.depth, 1, 12, "plies of the search (4)"),
        OPTIONS_ROW(U32, "exact", "N", &tool.exact, 4, 24, "empty squares solved exactly (12)"),
        OPTIONS_ROW(U32, "threads", "N", &threads, 1, THREADS_MAX, "threads (2)"),
        {"start", NULL, "play with the evaluation written by hand", &tool.with_start, OPTION_FLAG},
        {"against-start", NULL, "games against it, with colours changed; no samples",
         &tool.against_start, OPTION_FLAG},
        {0},
    };
    const struct options options = {
        .program = "othello_selfplay", .summary = "Writes boards of own games.", .table = table};
    int status = options_parse(&options, argc, argv, NULL, NULL);
    if (status >= 0) {
        return status;
    }
    tool.game = calloc(tool.games, sizeof *tool.game);
    pthread_t thread[THREADS_MAX];
    for (unsigned t = 0; t < threads; t++) {
        if (tool.game == NULL || pthread_create(&thread[t], NULL, run, &tool) != 0) {
            return 1;
        }
    }
    for (unsigned t = 0; t < threads; t++) {
        pthread_join(thread[t], NULL);
    }
    if (tool.done != tool.games) {
        return 1;
    }
    if (tool.against_start) {
        printf("points against the evaluation of the start: %.1f of %llu, %.1f%%\n",
               (double)tool.points / 2, (unsigned long long)tool.games,
               50 * (double)tool.points / (double)tool.games);
    }
    for (uint64_t i = 0; i < tool.games && !tool.against_start; i++) {
        if (fwrite(tool.game[i].sample, sizeof *tool.game[i].sample, tool.game[i].samples,
                   stdout) != tool.game[i].samples) {
            return 1;
        }
        free(tool.game[i].sample);
    }
    free(tool.game);
    return fflush(stdout) == 0 ? 0 : 1;
}
