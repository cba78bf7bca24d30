#include "worker/programs/uci/uci_limits.h"

#include "worker/search/search.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MOVES_LEFT = 28,
    STALL_MS = 200, /* a busy machine may let a program wait for so long, now and then */
    ANSWER_US = 600,
    ELO_MIN_NODES = 256,
    ELO_OF_TWICE_THE_NODES = 130,
};

#define NOT_GIVEN INT64_MIN
#define NUMBER_MAX (INT64_MAX / 8) /* sums and products below do not overflow */

static bool take(const char *word, const char *name, char **rest, int64_t *value)
{
    if (strcmp(word, name) != 0) {
        return false;
    }
    const char *text = strtok_r(NULL, " \t", rest);
    int64_t number = text == NULL ? 0 : strtoll(text, NULL, 10);
    *value = number > NUMBER_MAX ? NUMBER_MAX : number < -NUMBER_MAX ? -NUMBER_MAX : number;
    return true;
}

/* A part of the clock, without a reserve for a stall, and half of the increment; at most three
 * fifths. Of the other half the clock of a long game is filled up again until 14 increments more
 * than the reserve are left. */
static uint32_t part_of_clock(int64_t clock, int64_t increment, int64_t moves, int64_t overhead)
{
    int64_t stall = clock / 2 < STALL_MS ? clock / 2 : STALL_MS;
    int64_t left = clock - overhead - stall;
    int64_t part = left / (moves > 0 ? moves + 1 : MOVES_LEFT) + increment / 2;
    int64_t most = left * 3 / 5;
    part = part < most ? part : most;
    return (uint32_t)(part < 1 ? 1 : part > UINT32_MAX ? UINT32_MAX : part);
}

static bool is_like_move(const char *word)
{
    static const char files[] = "abcdefghABCDEFGH"; /* as the game reads them */
    size_t size = strlen(word);
    return (size == 4 || size == 5) && strchr(files, word[0]) != NULL &&
           strchr("12345678", word[1]) != NULL && strchr(files, word[2]) != NULL &&
           strchr("12345678", word[3]) != NULL;
}

void uci_read_limits(char *words, bool black, uint32_t overhead_ms, struct uci_limits *out)
{
    bool in_moves = false;
    int64_t clock[2] = {NOT_GIVEN, NOT_GIVEN}, increment[2] = {0, 0};
    int64_t moves = 0, depth = NOT_GIVEN, nodes = 0, movetime = NOT_GIVEN, mate = 0;
    struct uci_limits limits = {.depth = SEARCH_DEPTH_MAX};
    char *rest = words;

    for (char *word = strtok_r(words, " \t", &rest); word != NULL;
         word = strtok_r(NULL, " \t", &rest)) {
        if (strcmp(word, "searchmoves") == 0) {
            in_moves = true;
            continue;
        }
        in_moves = in_moves && is_like_move(word);
        if (in_moves) {
            if (limits.moves < GAME_MOVES_MAX) {
                limits.move[limits.moves++] = word;
            }
        } else if (strcmp(word, "infinite") == 0) {
            limits.infinite = true;
        } else if (strcmp(word, "ponder") == 0) {
            limits.ponder = true;
        } else if (!take(word, "wtime", &rest, &clock[0]) &&
                   !take(word, "btime", &rest, &clock[1]) &&
                   !take(word, "winc", &rest, &increment[0]) &&
                   !take(word, "binc", &rest, &increment[1]) &&
                   !take(word, "movestogo", &rest, &moves) && !take(word, "depth", &rest, &depth) &&
                   !take(word, "nodes", &rest, &nodes) && !take(word, "mate", &rest, &mate)) {
            take(word, "movetime", &rest, &movetime);
        }
    }
    if (mate > 0 && mate < SEARCH_DEPTH_MAX / 2) {
        limits.mate = (unsigned)mate;
        limits.depth = 2 * limits.mate; /* plies of a mate in so many moves */
    }
    if (depth != NOT_GIVEN && depth < SEARCH_DEPTH_MAX) {
        limits.depth = depth < 1 ? 1 : (unsigned)depth; /* a bad value counts as 1 */
    }
    limits.nodes = nodes > 0 ? (uint64_t)nodes : 0;
    if (movetime != NOT_GIVEN) {
        movetime = movetime < 1 ? 1 : movetime < UINT32_MAX ? movetime : UINT32_MAX;
        limits.time_ms = (uint32_t)movetime;
        int64_t spare = ANSWER_US + movetime * 50, most = overhead_ms * INT64_C(100);
        limits.spare_us = (uint32_t)(spare < most ? spare : most);
        if (limits.spare_us >= movetime * 1000) {
            limits.spare_us = 0;
        }
    } else if (clock[black] != NOT_GIVEN && !limits.infinite) { /* the clock may be negative */
        limits.time_ms = part_of_clock(clock[black], increment[black], moves, overhead_ms);
    }
    *out = limits;
}

bool uci_black_to_move(const char *fen)
{
    const char *blank = strchr(fen, ' ');
    return blank != NULL && blank[1] == 'b';
}

uint64_t uci_nodes_of_elo(uint64_t elo)
{
    return (uint64_t)(ELO_MIN_NODES * exp2(((double)elo - UCI_ELO_MIN) / ELO_OF_TWICE_THE_NODES));
}

/* ---- moves of the root ---- */

static bool is_named(const struct job *job, uint16_t move)
{
    for (unsigned i = 0; i < job->root_moves; i++) {
        if (job->root_move[i] == move) {
            return true;
        }
    }
    return false;
}

bool uci_root_searchmoves(struct job *job, const struct uci_limits *limits)
{
    job->root_moves = 0;
    for (unsigned i = 0; i < limits->moves; i++) {
        uint16_t move;
        if (job->game->parse_move(job->position, limits->move[i], &move) != ERR_OK) {
            printf("info string error: searchmoves: '%s' is not a legal move here\n",
                   limits->move[i]);
        } else if (!is_named(job, move)) {
            job->root_move[job->root_moves++] = move;
        }
    }
    return limits->moves == 0 || job->root_moves > 0;
}

static bool is_alike(const struct chess_tablebase_move *a, const struct chess_tablebase_move *b)
{
    return a->value == b->value && a->score == b->score;
}

void uci_root_tablebase(struct job *job, struct uci_root_values *values)
{
    const struct chess_tablebase_move *move = values->move;
    values->count = chess_tablebase_root(job->position, values->move);
    if (values->count == 0 || job->root_moves > 0) {
        return;
    }
    const unsigned wanted = job->lines > 1 ? job->lines : 1;
    unsigned kept = wanted < values->count ? wanted : values->count;
    const struct chess_tablebase_move last = move[kept - 1];
    const bool loses = move[0].score < 0; /* then the search chooses among all of these */
    while (kept < values->count &&
           (is_alike(&move[kept], &last) || (loses && move[kept].value == last.value))) {
        kept++;
    }
    for (unsigned i = 0; i < kept; i++) {
        job->root_move[i] = move[i].move;
    }
    job->root_moves = kept;
    /* The search would take the lines that it likes best. */
    job->lines = wanted > 1 && !is_alike(&move[0], &last) ? kept : job->lines;
}

int uci_root_score(const struct uci_root_values *values, uint16_t move, int score)
{
    for (unsigned i = 0; i < values->count; i++) {
        const int known = values->move[i].score;
        if (values->move[i].move == move) {
            const bool is_mate = known > 0   ? score > GAME_MATE_MIN
                                 : known < 0 ? score < -GAME_MATE_MIN
                                             : false;
            return is_mate ? score : known;
        }
    }
    return score;
}
