#include "worker/programs/othello/othello_player.h"

#include "worker/games/games.h"
#include "worker/games/othello/othello.h"
#include "worker/programs/othello/othello_clock.h"

#include "common/config.h"
#include "common/log.h"

#include <stdio.h>
#include <string.h>

enum {
    SOLVE_FURTHER =
        4, /* a solved ending of so many plies more takes no longer than the middle game */
};

_Static_assert((int)OTHELLO_RECORD_MAX < (int)GAME_UNDO_MAX, "the moves fit on a position");

/* ---- the record ---- */

static const struct othello_position *position_of(const struct othello_record *r)
{
    return r->job.position;
}

static enum err begin(struct othello_record *r, const char *text, char why[OTHELLO_RECORD_WHY_MAX])
{
    enum err err = job_set_position(&r->job, r->job.game, text, why, OTHELLO_RECORD_WHY_MAX);
    if (err == ERR_OK) {
        r->moves = r->at = 0;
    }
    return err;
}

enum err othello_record_clear(struct othello_record *r)
{
    char why[OTHELLO_RECORD_WHY_MAX];
    return begin(r, "startpos", why);
}

bool othello_record_black_moves(const struct othello_record *r)
{
    return position_of(r)->is_black;
}

bool othello_record_is_over(const struct othello_record *r)
{
    struct game_move list[GAME_MOVES_MAX];
    return r->job.game->generate(r->job.position, list) == 0;
}

unsigned othello_record_empties(const struct othello_record *r)
{
    return othello_count(othello_empties(position_of(r)->board));
}

uint16_t othello_record_forced(const struct othello_record *r)
{
    struct game_move list[GAME_MOVES_MAX];
    return r->job.game->generate(r->job.position, list) == 1 ? list[0].move : 0;
}

int othello_record_score(const struct othello_record *r)
{
    const int score = othello_final_score(position_of(r)->board);
    return othello_record_black_moves(r) ? score : -score;
}

static void step(struct othello_record *r, bool forth)
{
    const struct game *game = r->job.game;
    const uint16_t move = r->move[forth ? r->at : r->at - 1];
    if (move != 0) {
        (forth ? game->make : game->unmake)(r->job.position, move);
        game->format(r->job.position, r->job.text);
    }
    r->at += forth ? 1u : -1u;
}

void othello_record_go_to(struct othello_record *r, unsigned at)
{
    CHECK(at <= r->moves);
    while (r->at != at) {
        step(r, r->at < at);
    }
}

void othello_record_forget(struct othello_record *r, unsigned moves)
{
    othello_record_go_to(r, moves);
    r->moves = moves;
}

static enum err add(struct othello_record *r, uint16_t move, bool is_implied)
{
    if (r->at == OTHELLO_RECORD_MAX) {
        return ERR_FULL;
    }
    r->move[r->at] = move;
    r->is_implied[r->at] = is_implied;
    r->moves = r->at + 1;
    step(r, true);
    return ERR_OK;
}

/* Whether the square, or OTHELLO_PASSED, is a legal move, and how the game has it. */
static bool find(const struct othello_record *r, int move, uint16_t *out)
{
    *out = (uint16_t)(move + 1);
    return game_is_legal(r->job.game, r->job.position, *out);
}

enum err othello_record_turn_to(struct othello_record *r, bool black)
{
    uint16_t pass;
    if (othello_record_black_moves(r) == black || othello_record_is_over(r)) {
        return ERR_OK;
    }
    return find(r, OTHELLO_PASSED, &pass) ? add(r, pass, true) : ERR_ILLEGAL;
}

enum err othello_record_play(struct othello_record *r, bool by_black, int move)
{
    const unsigned before = r->moves;
    uint16_t found = 0; /* a pass after the end */
    if (r->moves + 2 > OTHELLO_RECORD_MAX) {
        return ERR_FULL;
    }
    if (othello_record_is_over(r)) {
        return move == OTHELLO_PASSED ? add(r, 0, false) : ERR_ILLEGAL;
    }
    if (othello_record_turn_to(r, by_black) != ERR_OK) {
        return ERR_ILLEGAL;
    }
    if (!find(r, move, &found)) {
        othello_record_forget(r, before);
        return ERR_ILLEGAL;
    }
    return add(r, found, false);
}

bool othello_record_undo(struct othello_record *r)
{
    if (r->moves == 0) {
        return false;
    }
    unsigned at = r->moves - 1;
    at -= at > 0 && r->is_implied[at - 1] ? 1 : 0;
    othello_record_forget(r, at);
    return true;
}

enum err othello_record_set(struct othello_record *r, const struct othello_game *game,
                            char why[OTHELLO_RECORD_WHY_MAX])
{
    char text[67];
    othello_format(game->board, game->is_black, text);
    enum err err = begin(r, text, why);
    for (unsigned i = 0; i < game->moves && err == ERR_OK; i++) {
        uint16_t move;
        CHECK_THAT(find(r, game->move[i], &move), "the parser has checked the moves of a game");
        err = add(r, move, false);
    }
    return err;
}

/* ---- searching ---- */

/* The next iteration takes longer than all before it: it is not begun when more than half of the
 * time is used. */
static void on_iteration(void *self, unsigned line, const struct search_result *r,
                         const struct engine_status *s)
{
    struct othello_player *p = self;
    const uint32_t time_ms = p->record.job.time_ms;
    (void)line;
    if (time_ms > 0 && r->bound == TT_EXACT && s->time_us / 500 > time_ms) {
        gui_end_search(&p->gui);
    }
    if (p->iteration != NULL) {
        p->iteration(p->gui.self, r, s);
    }
}

bool othello_player_help(const struct engine_status *s, char text[OTHELLO_HELP_MAX])
{
    const uint64_t nodes = s->sum.nodes;
    const double part = nodes > 0 ? 100 * (double)(nodes - s->own.nodes) / (double)nodes : 0;
    snprintf(text, OTHELLO_HELP_MAX, "%u worker%s search%s %.0f%% of the nodes; %u of %u shards up",
             s->workers, s->workers == 1 ? "" : "s", s->workers == 1 ? "es" : "", part,
             s->shards_up, s->shards);
    return s->shards > 0;
}

/* A protocol that cannot say it leaves it to stderr, whenever it changes. */
static void on_progress(void *self, const struct search_result *best, const struct engine_status *s)
{
    struct othello_player *p = self;
    char text[OTHELLO_HELP_MAX];
    (void)best;
    if (p->progress != NULL) {
        p->progress(p->gui.self, s);
    } else if ((s->workers != p->said_workers || s->shards_up != p->said_shards_up) &&
               othello_player_help(s, text)) {
        p->said_workers = s->workers;
        p->said_shards_up = s->shards_up;
        log_line(p->program, "%s", text);
    }
}

static void on_refusal(void *self, unsigned shard, const char *why, const struct engine_status *s)
{
    struct othello_player *p = self;
    char text[CLI_REFUSAL_MAX];
    cli_refusal_text(p->gui.engine, shard, why, s, text);
    log_line(p->program, "%s", text);
}

void othello_player_search(struct othello_player *p, uint32_t time_ms, unsigned lines)
{
    struct job *job = &p->record.job;
    const struct engine_observer observer = {
        .self = p, .iteration = on_iteration, .progress = on_progress, .refused = on_refusal};
    const unsigned empties = othello_record_empties(&p->record);
    unsigned depth = empties <= p->depth + SOLVE_FURTHER ? empties : p->depth;
    if (depth == empties && time_ms > 0 &&
        empties > othello_clock_solvable((uint64_t)time_ms * p->resources.threads)) {
        depth = empties - 1; /* ply by ply, as far as the time allows */
    }
    CHECK(lines > 0);
    job->algorithm = algorithm_by_name("abdada");
    job->full = strcmp(p->select, "full") == 0;
    job->depth = (uint8_t)(depth > 0 ? depth : 1);
    job->time_ms = time_ms;
    job->lines = lines;
    job->remote_depth = PROTO_REMOTE_DEPTH_AUTO;
    job_set_namespace(job, 0);
    gui_begin(&p->gui, job, &observer);
}

bool othello_player_is_solved(const struct othello_player *p, const struct search_result *r)
{
    return r->bound == TT_EXACT && r->depth >= othello_record_empties(&p->record);
}

/* ---- the program ---- */

static int read_options(struct othello_player *p, int argc, char *argv[])
{
    const struct options_row no_row = {0};
    const struct options_row game_row = {"game", "NAME", "othello, the only game so far", &p->game,
                                         OPTION_TEXT};
    const struct options_row table[] = {
        CLI_TABLE_ROWS(p->resources.table),
        CLI_THREADS_ROWS(p->resources),
        CLI_PRIVATE_ROW(p->resources),
        CLI_METRICS_ROW(p->resources),
        {"depth", "N", "search to this depth (nboard: 12), and endings of 4 empty squares more",
         &p->depth, OPTION_U32, 'd', 1, OTHELLO_SQUARES},
        {"time", "MS", "time for a move without a clock (gtp: 5000)", &p->time_ms, OPTION_U32, 't',
         1, UINT32_MAX},
        {"select", "plain|full", "plain: fixed depth; full (default): prunes, but not exact values",
         &p->select, OPTION_TEXT},
        p->has_game ? game_row : no_row,
        {0},
    };
    const struct options options = {
        .program = p->program,
        .usage = "[OPTION]...",
        .summary = p->summary,
        .example = {p->example[0], p->example[1]},
        .table = table,
    };
    int status = config_parse(&options, argc, argv, NULL, NULL);
    if (status >= 0) {
        return status;
    }
    if (strcmp(p->game, "othello") != 0) {
        return options_wrong(options.program, "--game is othello, not '%s'", p->game);
    }
    if (strcmp(p->select, "plain") != 0 && strcmp(p->select, "full") != 0) {
        return options_wrong(options.program, "--select is plain or full, not '%s'", p->select);
    }
    return cli_table_environment(options.program, &p->resources.table, false);
}

static int play(struct othello_player *p)
{
    char why[CLI_WHY_MAX + OTHELLO_RECORD_WHY_MAX];
    if (job_set_position(&p->record.job, p->resources.game, "startpos", why, sizeof why) !=
            ERR_OK ||
        cli_engine_open(&p->gui.engine, p->program, &p->resources, p->gui.quitting, why) !=
            ERR_OK) {
        if (atomic_load(p->gui.quitting)) {
            return 0; /* a signal that came while it began is no failure */
        }
        return log_fail(p->program, "%s", why);
    }
    if (cli_metrics_open(&p->metrics, p->program, &p->resources, p->gui.engine, NULL,
                         p->gui.quitting, why) != ERR_OK) {
        return log_fail(p->program, "--metrics: %s", why);
    }
    char what[LANES_NONE_UP_MAX];
    if (engine_none_up(p->gui.engine, what)) {
        log_line(p->program, "%s; searching on this machine until one does", what);
    }
    gui_loop(&p->gui);
    return 0;
}

int othello_player_main(struct othello_player *p, int argc, char *argv[])
{
    p->game = "othello";
    p->select = "full";
    p->resources = (struct cli_resources){
        .threads = 1, .share = REMOTE_SHARE_DEPTH, .hash_mib = 64, .game = games_by_name(p->game)};
    int status = read_options(p, argc, argv);
    status = status >= 0 ? status : gui_open(&p->gui, p->program) ? play(p) : 1;
    searching_metrics_close(&p->metrics);
    engine_close(&p->gui.engine);
    job_free(&p->record.job);
    gui_close(&p->gui);
    return status;
}
