/* abdada-chaos: jobs on the virtual cluster with everything drawn from a seed, and faults while
 * they last. `make chaos` runs it, and tests/sim/test_chaos.py. */
#include "tests/chaos/chaos_runs.h"

#include "common/log.h"
#include "common/options.h"
#include "worker/games/games.h"
#include "worker/programs/cli.h"

#include <signal.h>
#include <string.h>

static const char program[] = "abdada-chaos";

enum { COUNTS_MAX = 64, JOBS_MAX = 64 };

struct command {
    struct chaos_runs runs;
    struct cli_search search;
    uint32_t depth, shards, jobs;
    bool solve;
    uint32_t count[COUNTS_MAX]; /* of workers */
    struct job job;
};

static enum err parse_workers(const char *text, void *value)
{
    struct command *c = value;
    char copy[512], *rest = copy;
    unsigned n = 0;
    if (strlen(text) >= sizeof copy) {
        return ERR_SYNTAX;
    }
    strcpy(copy, text);
    for (char *word; (word = strtok_r(rest, ",", &rest)) != NULL; n++) {
        uint64_t number;
        enum err err =
            n == COUNTS_MAX ? ERR_FULL : options_unsigned(word, 1, LAB_WORKERS_MAX, &number);
        if (err != ERR_OK) {
            return err;
        }
        c->count[n] = (uint32_t)number;
    }
    c->runs.counts = n;
    return n > 0 ? ERR_OK : ERR_SYNTAX;
}

static int read_options(struct command *c, int argc, char *argv[])
{
    char plants[CHAOS_PLANTS_MAX + 64] = "a fault of the program, to see it caught: ";
    chaos_plants(plants + strlen(plants));
    const struct options_row table[] = {
        {"seeds", "A..B", "one run each (default 1); failures name their command", &c->runs.seeds,
         OPTION_TEXT},
        {"jobs", "N", "runs at a time (default 1)", &c->jobs, OPTION_U32, 'j', 1, JOBS_MAX},
        {"failures", "FILE",
         "append there the command of each run that fails, with this build's commit",
         &c->runs.failures, OPTION_TEXT},
        {"plant", "KIND", plants, &c->runs.plant, OPTION_TEXT},
        {"json", NULL, "one JSON object a failure, and one for the sums, on stdout", &c->runs.json,
         OPTION_FLAG},
        {.kind = OPTION_HEADING, .help = "What is not drawn:"},
        {"faults", "N", "the first N of a run (default: up to 12, and an upgrade of all)",
         &c->runs.faults, OPTION_U32, 0, 1, LAB_FAULTS_MAX},
        {"workers", "N,N,...", "that search, the front-end included; one run each", c,
         OPTION_CUSTOM, 'w', .parse = parse_workers},
        {"shards", "N", "of the table", &c->shards, OPTION_U32, 0, 1, LAB_SHARDS_MAX},
        {"algorithm", "NAME", ALGORITHM_NAMES, &c->search.algorithm, OPTION_TEXT, 'a'},
        {"game", "NAME|tree:SPEC", "chess, othello or tree: whose positions are drawn",
         &c->search.game, OPTION_TEXT, 'g'},
        {"depth", "N", "of the first job, on POSITION", &c->depth, OPTION_U32, 'd', 1,
         SEARCH_DEPTH_MAX},
        {"solve", NULL, "the same to the end of the game, exactly: othello", &c->solve,
         OPTION_FLAG},
        {0},
    };
    const struct options options = {
        .program = program,
        .usage = "[OPTION]... [POSITION]",
        .summary = "Searches on a virtual cluster under faults, all drawn from seeds. "
                   "Status 1 when a run broke an invariant.",
        .table = table,
        .operands_max = 1,
        .board_letters = CLI_BOARD_LETTERS,
    };
    int status = options_parse(&options, argc, argv, &c->search.position, NULL);
    if (status >= 0) {
        return status;
    }
    if (c->depth != 0 && c->solve) {
        return options_wrong(program, "only one of --depth and --solve");
    }
    if (c->depth == 0 && !c->solve && c->search.position != NULL) {
        return options_wrong(program, "a position wants --depth N or --solve");
    }
    return -1;
}

/* The first job. Returns -1 to go on, or the exit status. */
static int read_job(struct command *c)
{
    struct cli_search search = c->search;
    char why[256];
    search.game = search.game != NULL ? search.game : "chess";
    search.algorithm = search.algorithm != NULL ? search.algorithm : "abdada";
    int status = cli_resolve(program, &search, &c->job);
    if (status >= 0) {
        return status;
    }
    const enum err err = job_set_position(&c->job, c->job.game, search.position, why, sizeof why);
    if (err != ERR_OK) {
        return cli_no_position(program, err, why);
    }
    if (c->solve && c->job.game->depth_left == NULL) {
        return options_wrong(program, "--solve: nobody knows how long a game of %s is; --depth N",
                             c->job.game->name);
    }
    c->job.depth = c->solve ? SEARCH_DEPTH_MAX : (uint8_t)c->depth;
    c->job.depth = (uint8_t)job_last_iteration(&c->job);
    c->runs.job = &c->job;
    return -1;
}

/* The game whose positions are drawn; without --game they are of several. */
static int read_game(struct command *c)
{
    const char *name = c->search.game;
    if (name == NULL) {
        return -1;
    }
    if (strchr(name, ':') != NULL) {
        return options_wrong(program, "--game %s is a position: it wants --depth N", name);
    }
    c->runs.game = games_by_name(name);
    return c->runs.game != NULL
               ? -1
               : options_wrong(program, "unknown game '%s' (there are: %s)", name, games_names());
}

int main(int argc, char *argv[])
{
    struct command c = {
        .runs = {.program = program, .seeds = "1"},
        .search = {.remote_depth = "auto", .select = "plain"},
        .jobs = 1,
    };
    options_about = build_about;
    log_begin();
    (void)signal(SIGCHLD, SIG_DFL); /* it waits for its children */
    int status = read_options(&c, argc, argv);
    if (status < 0) {
        status = c.depth != 0 || c.solve ? read_job(&c) : read_game(&c);
    }
    if (status < 0) {
        c.runs.algorithm = c.search.algorithm;
        c.runs.workers = c.count;
        c.runs.shards = c.shards;
        c.runs.jobs = c.jobs;
        status = chaos_runs(&c.runs);
    }
    job_free(&c.job);
    return log_end(program, status);
}
