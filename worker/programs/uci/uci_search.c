#include "worker/programs/uci/uci_search.h"

#include "worker/programs/score.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum {
    ELO_MIN_NODES = 256,
    ELO_OF_TWICE_THE_NODES = 130,
};

uint64_t uci_nodes_of_elo(uint64_t elo)
{
    return (uint64_t)(ELO_MIN_NODES * exp2(((double)elo - UCI_ELO_MIN) / ELO_OF_TWICE_THE_NODES));
}

/* ---- moves of the root ---- */

bool uci_root_searchmoves(struct job *job, const char *moves)
{
    char word[UCI_VALUE_MAX];
    job->root_moves = 0;
    for (const char *rest = moves; uci_next_word(&rest, word, sizeof word);) {
        uint16_t move;
        unsigned at = 0;
        if (job->game->parse_move(job->position, word, &move) != ERR_OK) {
            printf("info string error: searchmoves: '%.80s' is not a legal move here\n", word);
            continue;
        }
        while (at < job->root_moves && job->root_move[at] != move) { /* each once */
            at++;
        }
        job->root_move[at] = move;
        job->root_moves += at == job->root_moves;
    }
    return moves[0] == '\0' || job->root_moves > 0;
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

static const struct chess_tablebase_move *find(const struct uci_root_values *values, uint16_t move)
{
    for (unsigned i = 0; i < values->count; i++) {
        if (values->move[i].move == move) {
            return &values->move[i];
        }
    }
    return NULL;
}

int uci_root_score(const struct uci_root_values *values, uint16_t move, int score)
{
    const struct chess_tablebase_move *known = find(values, move);
    if (known == NULL) {
        return score;
    }
    const bool is_mate = known->value > CHESS_TABLEBASE_DRAW   ? score > GAME_MATE_MIN
                         : known->value < CHESS_TABLEBASE_DRAW ? score < -GAME_MATE_MIN
                                                               : false;
    return is_mate ? score : known->score;
}

/* Orders lines by these scores, and lines of one score by the tables. */
static bool is_better(const struct uci_root_values *values, const struct search_result *a,
                      const struct search_result *b)
{
    const struct chess_tablebase_move *x = find(values, a->move), *y = find(values, b->move);
    return a->score != b->score ? a->score > b->score
                                : x != NULL && y != NULL && x->value > y->value;
}

/* ---- lines ---- */

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
    printf(" nodes %" PRIu64 " nps %.0f time %" PRIu64 " hashfull %u", s->sum.nodes,
           s->time_us > 0 ? 1e6 * (double)s->sum.nodes / (double)s->time_us : 0, s->time_us / 1000,
           s->hash_permille);
    if (chess_tablebase_pieces() > 0) {
        printf(" tbhits %" PRIu64, s->sum.tbhits);
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
        score_line(l->job, &r->pv, false, score_print_word, stdout);
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
        for (; at > 0 && is_better(&l->values, &line, &l->line[at - 1]); at--) {
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
    if (s->time_us < ENGINE_PATIENCE_US || l->values.count > 0 ||
        is_mate(l->job->game, r->score, &moves)) {
        return; /* soon there is the value; tables know it; a mate is said with its line alone */
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
        printf("info string host %s nodes %" PRIu64 " nps %.0f", h->name, h->sum.nodes,
               time_us > 0 ? 1e6 * (double)h->sum.nodes / (double)time_us : 0);
        if (talking >= 0) {
            printf(" talk %.1f%%", 100 * talking);
        }
        printf(" asks %" PRIu64 " sent %" PRIu64 " received %" PRIu64 "%s\n", h->sum.asks,
               h->sum.bytes_sent, h->sum.bytes_received, h->is_gone ? " gone" : "");
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
