#include "worker/programs/othello/othello_player.h"

#include "worker/programs/othello/othello_clock.h"

#include "common/config.h"
#include "common/log.h"
#include "common/signals.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum {
    SOLVE_FURTHER = 4, /* a solved ending of so many plies more takes no longer than the middle game
                        */
};

static atomic_bool quitting; /* a signal came */

/* ---- searching ---- */

/* The next iteration takes longer than all before it: it is not begun when more than half of the
 * time is used. */
static void on_iteration(void *self, unsigned line, const struct search_result *r,
                         const struct engine_status *s)
{
    struct othello_player *p = self;
    const uint32_t time_ms = p->record.job.time_ms;
    if (time_ms > 0 && r->bound == TT_EXACT && s->time_us / 500 > time_ms) {
        engine_stop(p->engine);
    }
    if (p->protocol->iteration != NULL) {
        p->protocol->iteration(p, line, r, s);
    }
}

bool othello_player_help(const struct engine_status *s, char text[OTHELLO_HELP_MAX])
{
    const double part =
        s->nodes > 0 ? 100 * (double)(s->nodes - s->own_nodes) / (double)s->nodes : 0;
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
    if (p->protocol->progress != NULL) {
        p->protocol->progress(p, s);
    } else if ((s->workers != p->said_workers || s->shards_up != p->said_shards_up) &&
               othello_player_help(s, text)) {
        p->said_workers = s->workers;
        p->said_shards_up = s->shards_up;
        log_line(p->protocol->program, "%s", text);
    }
}

static void on_refusal(void *self, unsigned shard, const char *why, const struct engine_status *s)
{
    struct othello_player *p = self;
    char text[CLI_REFUSAL_MAX];
    cli_refusal_text(p->engine, shard, why, s, text);
    log_line(p->protocol->program, "%s", text);
}

static void finish(struct othello_player *p, bool is_stopped)
{
    background_join(&p->search);
    p->protocol->answer(p, is_stopped);
}

void othello_player_stop(struct othello_player *p)
{
    if (p->search.is_running) {
        engine_stop(p->engine);
        finish(p, true);
    }
}

void othello_player_search(struct othello_player *p, const struct othello_limits *limits)
{
    struct job *job = &p->record.job;
    const struct engine_observer observer = {
        .self = p, .iteration = on_iteration, .progress = on_progress, .refused = on_refusal};
    CHECK(!p->search.is_running && limits->depth > 0 && limits->lines > 0);
    job->algorithm = algorithm_by_name("abdada");
    job->full = strcmp(p->select, "full") == 0;
    job->depth = (uint8_t)(limits->depth < SEARCH_DEPTH_MAX ? limits->depth : SEARCH_DEPTH_MAX);
    job->time_ms = limits->time_ms;
    job->lines = limits->lines;
    job->remote_depth = PROTO_REMOTE_DEPTH_AUTO;
    job_set_namespace(job, 0);
    background_begin(&p->search, p->engine, job, &observer);
    if (!p->search.is_running) {
        p->protocol->answer(p, false);
    }
}

unsigned othello_player_depth(const struct othello_player *p, unsigned depth, uint32_t time_ms)
{
    const unsigned empties = othello_record_empties(&p->record);
    const uint64_t all_ms = (uint64_t)time_ms * p->resources.threads;
    unsigned wanted = empties <= depth + SOLVE_FURTHER ? empties : depth;
    if (wanted == empties && time_ms > 0 && empties > othello_clock_solvable(all_ms)) {
        wanted = empties - 1; /* ply by ply, as far as the time allows */
    }
    return wanted > 0 ? wanted : 1;
}

bool othello_player_is_solved(const struct othello_player *p, const struct search_result *r)
{
    return r->bound == TT_EXACT && r->depth >= othello_record_empties(&p->record);
}

void othello_player_clean(char *text)
{
    for (; *text != '\0'; text++) {
        if (*text < ' ' || *text > '~') {
            *text = '?';
        }
    }
}

/* ---- lines ---- */

static bool waits(const struct othello_player *p)
{
    return p->protocol->is_ordered && p->search.is_running;
}

/* A line that is too long is refused once, and skipped to its end. */
static void read_input(struct othello_player *p)
{
    char start[16], why[64];
    if (!commands_read(&p->input, start, sizeof start)) {
        snprintf(why, sizeof why, "a line is longer than %d bytes", COMMANDS_LINE_MAX - 2);
        p->protocol->refuse(p, why);
    }
}

/* Obeys the whole lines that are there, as far as they need not wait. False: the program ends. */
static bool obey_lines(struct othello_player *p)
{
    bool goes_on = true;
    for (char *line; goes_on && !waits(p) && (line = commands_next(&p->input)) != NULL;) {
        goes_on = p->protocol->obey(p, line);
    }
    return goes_on;
}

/* Waits for input or for the end of the search, and keeps the sessions at the shards alive. False:
 * nobody reads the answers any more. */
static bool await_events(struct othello_player *p)
{
    const enum background_event event =
        background_wait(&p->search, !p->input.is_closed && !waits(p), BACKGROUND_PATIENCE_MS);
    if (event == BACKGROUND_GONE) {
        return false;
    }
    if (event == BACKGROUND_INPUT) {
        read_input(p);
    }
    if (p->search.is_running && p->search.has_ended) {
        finish(p, false);
    }
    if (event == BACKGROUND_QUIET && !p->search.is_running) {
        engine_idle(p->engine, 0);
    }
    return true;
}

static void loop(struct othello_player *p)
{
    while (!atomic_load(&quitting) && obey_lines(p)) {
        if (p->input.is_closed && !p->search.is_running) {
            break; /* what was asked before the end of input has its answers */
        }
        if (!await_events(p)) {
            break;
        }
    }
    othello_player_stop(p);
}

/* ---- the program ---- */

static int read_options(struct othello_player *p, int argc, char *argv[])
{
    const struct options_row no_row = {0},
                             game_row = {"game", "NAME", "othello (default): the only one yet",
                                         &p->game, OPTION_TEXT};
    const struct options_row table[] = {
        CLI_TABLE_ROWS(p->resources.table),
        CLI_THREADS_ROWS(p->resources),
        CLI_PRIVATE_ROW(p->resources),
        CLI_METRICS_ROW(&p->resources.metrics),
        {"depth", "N", "search to this depth; endings are solved from a little further on",
         &p->depth, OPTION_U32, 'd', 1, OTHELLO_SQUARES},
        {"time", "MS", "time for a move when no clock is given", &p->time_ms, OPTION_U32, 't', 1,
         UINT32_MAX},
        {"select", "plain|full", "plain: fixed depth; full (default): prunes, but not exact values",
         &p->select, OPTION_TEXT},
        p->protocol->has_game ? game_row : no_row,
        {0},
    };
    const struct options options = {
        .program = p->protocol->program,
        .usage = "[OPTION]...",
        .summary = p->protocol->summary,
        .version = PROGRAM_VERSION,
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
    const char *program = p->protocol->program;
    if (othello_record_open(&p->record, why) != ERR_OK ||
        cli_engine_open(&p->engine, program, &p->resources, &quitting, why) != ERR_OK) {
        if (atomic_load(&quitting)) {
            return 0; /* a signal that came while it began is no failure */
        }
        log_fail(program, "%s", why);
        return 1;
    }
    if (cli_metrics_open(&p->metrics, program, &p->resources, p->engine, &quitting, why) !=
        ERR_OK) {
        log_fail(program, "--metrics: %s", why);
        return 1;
    }
    if (cli_table_is_given(&p->resources.table) && engine_shards_up(p->engine) == 0) {
        char what[TRANSPORT_NONE_UP_MAX];
        engine_none_up(p->engine, what);
        log_line(program, "%s: searching alone", what);
    }
    loop(p);
    return 0;
}

int othello_player_main(struct othello_player *p, int argc, char *argv[])
{
    p->game = "othello";
    p->select = "full";
    p->resources =
        (struct cli_resources){.threads = 1, .share = REMOTE_SHARE_DEPTH, .hash_mib = 64};
    int status = read_options(p, argc, argv);
    if (status >= 0) {
        return status;
    }
    if (!commands_open(&p->input) || !background_open(&p->search)) {
        log_fail(p->protocol->program, "no memory or no pipe: %s", strerror(errno));
        commands_close(&p->input);
        return 1;
    }
    signals_end_by(&quitting);
    setvbuf(stdout, NULL, _IOLBF, BUFSIZ); /* each line goes out at once */
    status = play(p);
    searching_metrics_close(&p->metrics);
    engine_close(&p->engine);
    othello_record_close(&p->record);
    background_close(&p->search);
    commands_close(&p->input);
    return status;
}
