#include "worker/programs/uci/uci_lines.h"

#include "worker/games/chess/tablebase.h"
#include "worker/programs/score.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static bool is_mate(const struct game *game, int score, int64_t *moves)
{
    return strcmp(score_kind(game, score, moves), "mate") == 0;
}

unsigned uci_lines_mate(const struct game *game, int score)
{
    int64_t moves;
    return is_mate(game, score, &moves) && moves > 0 ? (unsigned)moves : 0;
}

unsigned uci_lines_bare_mate(const struct game *game, int score)
{
    const int plies = GAME_MATE_MIN - score;
    return game->score_kind == GAME_CENTIPAWNS && plies > 0 && plies < GAME_MATE - GAME_MATE_MIN
               ? (unsigned)(plies + 1) / 2
               : 0;
}

static void say_score(const struct game *game, int score)
{
    int64_t value;
    const bool in_moves = is_mate(game, score, &value);
    printf(" score %s %" PRId64, in_moves ? "mate" : "cp", value);
}

static void say_figures(const struct engine_status *s)
{
    printf(" nodes %" PRIu64 " nps %" PRIu64 " time %" PRIu64 " hashfull %u", s->nodes,
           s->time_us ? s->nodes * 1000000 / s->time_us : 0, s->time_us / 1000, s->hash_permille);
    if (chess_tablebase_pieces() > 0) {
        printf(" tbhits %" PRIu64, s->tbhits);
    }
}

static void say_line(const struct uci_lines *l, unsigned number, const struct engine_status *s)
{
    const struct search_result *r = &l->line[number];
    char text[GAME_MOVE_TEXT_MAX];
    printf("info depth %u seldepth %u", r->depth, r->deepest);
    if (l->are_numbered) {
        printf(" multipv %u", number + 1);
    }
    say_score(l->job->game, r->score);
    say_figures(s);
    printf(" pv");
    if (r->pv.length > 0) {
        score_line(l->job, &r->pv, score_print_word, NULL);
    } else { /* a result of others may come without a line */
        printf(" %s", score_move(l->job, r->move, text));
    }
    printf("\n");
}

static void say_lines(struct uci_lines *l, const struct engine_status *s)
{
    flockfile(stdout); /* the other thread prints as well */
    for (unsigned i = 0; i < l->count && i < l->wanted; i++) {
        say_line(l, i, s);
    }
    l->is_open = false;
    funlockfile(stdout);
}

void uci_lines_begin(struct uci_lines *l, const struct job *job, uint64_t multipv)
{
    struct game_move list[GAME_MOVES_MAX];
    const unsigned moves =
        job->root_moves > 0 ? job->root_moves : job->game->generate(job->position, list);
    l->job = job;
    l->wanted = (unsigned)multipv;
    l->are_numbered = multipv > 1;
    l->all = job->lines < moves ? job->lines : moves;
    l->count = 0;
    l->is_open = false;
}

/* The search may think otherwise of them than the tables do, and a mate may be nearer than it
 * thought. */
static void sort(struct uci_lines *l)
{
    for (unsigned i = 1; i < l->all; i++) {
        const struct search_result line = l->line[i];
        unsigned at = i;
        for (; at > 0 && l->line[at - 1].score < line.score; at--) {
            l->line[at] = l->line[at - 1];
        }
        l->line[at] = line;
    }
}

void uci_lines_take(struct uci_lines *l, unsigned number, const struct search_result *r,
                    const struct engine_status *s)
{
    if (number >= SEARCH_LINES_MAX) {
        return;
    }
    l->line[number] = *r;
    l->line[number].score = uci_root_score(&l->values, r->move, r->score);
    if (number + 1 == l->all) {
        sort(l);
        l->count = l->all;
        say_lines(l, s);
    }
}

void uci_lines_take_bound(struct uci_lines *l, const struct search_result *r,
                          const struct engine_status *s)
{
    int64_t moves;
    if (s->time_us < ENGINE_PATIENCE_US || is_mate(l->job->game, r->score, &moves)) {
        return; /* soon there is the value; and a mate is said with its line alone */
    }
    flockfile(stdout);
    printf("info depth %u seldepth %u", r->depth, r->deepest);
    if (l->are_numbered) {
        printf(" multipv 1");
    }
    say_score(l->job->game, r->score);
    printf(" %sbound", r->bound == TT_LOWER ? "lower" : "upper");
    say_figures(s);
    printf("\n");
    l->is_open = true;
    funlockfile(stdout);
}

void uci_lines_end(struct uci_lines *l, const struct engine_result *result)
{
    if (result->search.move == 0 && result->search.depth > 0) {
        printf("info depth 0");
        say_score(l->job->game, result->search.score);
        printf("\n");
    } else if (l->is_open) {
        say_lines(l, &result->status);
    }
}

void uci_lines_hosts(const struct engine_result *result)
{
    enum { MOST = 16 }; /* lines: those who did most */
    const uint64_t time_us = result->status.time_us;
    const unsigned count = result->hosts < MOST ? result->hosts : MOST;
    for (unsigned i = 0; i < count && result->hosts > 1; i++) {
        const struct front_host *h = &result->host[i];
        const double talking = front_host_talking(h);
        printf("info string host %s nodes %" PRIu64 " nps %.0f", h->name, h->nodes,
               time_us > 0 ? 1e6 * (double)h->nodes / (double)time_us : 0);
        if (talking >= 0) {
            printf(" talk %.1f%%", 100 * talking);
        }
        printf(" asks %" PRIu64 " sent %" PRIu64 " received %" PRIu64 "%s\n", h->asks,
               h->bytes_sent, h->bytes_received, h->is_gone ? " gone" : "");
    }
    if (result->hosts > count) {
        printf("info string and %u hosts more\n", result->hosts - count);
    }
}

const struct search_result *uci_lines_best(const struct uci_lines *l,
                                           const struct engine_result *result)
{
    return l->count > 0 ? &l->line[0] : &result->search;
}
