#include "worker/programs/analyse/analyse_options.h"

#include "worker/programs/score.h"

#include "worker/games/games.h"
#include "worker/programs/othello/proof.h"

#include "common/config.h"
#include "common/log.h"

#include <string.h>

enum { DEFAULT_TIME_MS = 5000 };

/* What both search with. */
#define RESOURCES_ROWS(a)                                                                 \
    {.kind = OPTION_HEADING, .help = "Resources:"}, CLI_THREADS_ROWS((a)->resources),     \
        CLI_TABLE_ROWS((a)->resources.table), CLI_PRIVATE_ROW((a)->resources),            \
        {"share",                                                                         \
         "N",                                                                             \
         "send results of depth N and more to other tables (default 2; 0: off)",          \
         &(a)->resources.share,                                                           \
         OPTION_U32,                                                                      \
         0,                                                                               \
         0,                                                                               \
         SEARCH_DEPTH_MAX},                                                               \
        {"remote-depth", "auto|N", "least remaining depth at which shards are asked",     \
         &(a)->search.remote_depth, OPTION_TEXT},                                         \
        {"positions", "auto|together|apart",                                              \
         "of a file: all searchers at one, or each at its own (auto: over shards)",       \
         &(a)->positions, OPTION_TEXT},                                                   \
        CLI_METRICS_ROW(&(a)->resources.metrics),                                         \
        {.kind = OPTION_HEADING, .help = "Search and output:"},                           \
    {                                                                                     \
        "algorithm", "NAME", ALGORITHM_NAMES " (default abdada)", &(a)->search.algorithm, \
            OPTION_TEXT, 'a'                                                              \
    }

int analyse_read_options(struct analyse *a, int argc, char *argv[])
{
    const struct options_row table[] = {
        {.kind = OPTION_HEADING, .help = "What to analyse:"},
        {"epd", "FILE", "positions from a file, one EPD a line; -: standard input", &a->epd,
         OPTION_TEXT},
        {"obf", "FILE", "Othello boards from a file, one OBF a line; -: standard input", &a->obf,
         OPTION_TEXT},
        {"game", "NAME", "chess (default), othello, or a synthetic tree (tree:b=20,d=8,seed=1)",
         &a->search.game, OPTION_TEXT},
        {.kind = OPTION_HEADING, .help = "Limits (default: 5 seconds per position):"},
        {"depth", "N", "end after iteration N", &a->depth, OPTION_U32, 'd', 1, SEARCH_DEPTH_MAX},
        {"time", "MS", "time per position", &a->job.time_ms, OPTION_U32, 't', 1, UINT32_MAX},
        {"nodes", "N", "nodes of this process per position", &a->job.nodes, OPTION_U64, 'n', 1},
        RESOURCES_ROWS(a),
        {"select", "plain|full", "fixed depth with check extension (default), or pruning",
         &a->select, OPTION_TEXT},
        {"strict", NULL, "scores depend on position and depth alone", &a->job.strict, OPTION_FLAG},
        {"fresh", NULL, "ignore results of earlier searches in the tables", &a->fresh, OPTION_FLAG},
        {"wait", NULL, "wait for each answer of a shard instead of searching on", &a->job.waits,
         OPTION_FLAG},
        {"json", NULL, "one JSON object per position on stdout", &a->json, OPTION_FLAG},
        {0},
    };
    const struct options options = {
        .program = a->program,
        .usage = "[OPTION]... [POSITION | --epd FILE | --obf FILE]",
        .summary = "Searches positions: a FEN or a board in quotes, or startpos (default).",
        .version = PROGRAM_VERSION,
        .table = table,
        .operands_max = 1,
        .board_letters = CLI_BOARD_LETTERS,
    };
    int status = config_parse(&options, argc, argv, &a->search.position, NULL);
    if (status >= 0) {
        return status;
    }
    if ((a->search.position != NULL) + (a->epd != NULL) + (a->obf != NULL) > 1) {
        return options_wrong(a->program, "a position, --epd and --obf exclude each other");
    }
    if (a->obf != NULL) {
        a->search.game = "othello";
    }
    return cli_table_environment(a->program, &a->resources.table, false);
}

int analyse_read_solve_options(struct analyse *a, int argc, char *argv[])
{
    const struct options_row table[] = {
        {.kind = OPTION_HEADING, .help = "What to solve:"},
        {"obf", "FILE", "boards from a file, one OBF a line; -: standard input", &a->obf,
         OPTION_TEXT},
        {"wld", NULL, "win (1), draw (0) or loss (-1) alone", &a->wld, OPTION_FLAG},
        {"all", NULL, "all best moves, not one", &a->all, OPTION_FLAG},
        {"time", "MS", "end after so long with what is known (default: no limit)", &a->job.time_ms,
         OPTION_U32, 't', 1, UINT32_MAX},
        RESOURCES_ROWS(a),
        {"resume", NULL,
         "go on with what the shards know of an earlier solve (they always do), and with its proof "
         "or its file of --obf-out: what is there is not solved again",
         &a->resume, OPTION_FLAG},
        {"fresh", NULL, "ignore results of earlier searches in the tables", &a->fresh, OPTION_FLAG},
        {"proof", "FILE", "write a proof of the scores, for `abdada check`", &a->proof,
         OPTION_TEXT},
        {"proof-leaf", "N", "empty squares where the proof ends and `check` solves (default 16)",
         &a->proof_leaf, OPTION_U32, 0, 1, PROOF_LEAF_MAX},
        {"obf-out", "FILE", "write each board with its best move and score, one OBF a line",
         &a->scored, OPTION_TEXT},
        {"json", NULL, "one JSON object per position on stdout", &a->json, OPTION_FLAG},
        {0},
    };
    const struct options options = {
        .program = a->program,
        .usage = "[OPTION]... BOARD | --obf FILE",
        .summary = "Solves Othello positions exactly: 64 squares (X, O, -) and the side to move.",
        .version = PROGRAM_VERSION,
        .table = table,
        .operands_max = 2,
        .board_letters = CLI_BOARD_LETTERS,
    };
    static char board[2 * SUITE_POSITION_MAX];
    const char *operand[2];
    unsigned operands;
    int status = config_parse(&options, argc, argv, operand, &operands);
    if (status >= 0) {
        return status;
    }
    if ((operands > 0) == (a->obf != NULL)) {
        return options_wrong(a->program, "a board or --obf FILE is wanted%s",
                             operands > 0 ? ", not both" : "");
    }
    if (operands > 0) { /* the side may be a word of its own */
        snprintf(board, sizeof board, "%s%s%s", operand[0], operands > 1 ? " " : "",
                 operands > 1 ? operand[1] : "");
        a->search.position = board;
    }
    a->search.game = a->wld ? "othello-wld" : "othello";
    a->depth = SEARCH_DEPTH_MAX;
    a->solves = true;
    status = cli_table_environment(a->program, &a->resources.table, false);
    if (status < 0 && a->resume && a->proof == NULL && a->scored == NULL &&
        !cli_table_is_given(&a->resources.table)) {
        return options_wrong(a->program, "--resume needs --servers or --table, which keep the "
                                         "results, or --proof, or --obf-out");
    }
    if (status < 0 && a->resume && a->proof != NULL && a->scored != NULL) {
        return options_wrong(a->program,
                             "--resume goes on with --proof or with --obf-out, not both: first "
                             "with the proof, then with the file, which costs little");
    }
    if (status < 0 && a->scored != NULL && a->wld) {
        return options_wrong(a->program, "--obf-out is of scores, which --wld does not find");
    }
    if (status < 0 && a->resume && a->fresh && a->scored == NULL) {
        return options_wrong(a->program, "--resume and --fresh exclude each other");
    }
    if (status < 0 && a->proof != NULL && a->wld) {
        return options_wrong(a->program, "--proof is of a score, which --wld does not find");
    }
    if (status < 0 && a->proof == NULL && a->proof_leaf != 0) {
        return options_wrong(a->program, "--proof-leaf needs --proof");
    }
    a->proof_leaf = a->proof_leaf != 0 ? a->proof_leaf : PROOF_LEAF;
    return status;
}

/* A move that cannot be read proves nothing of the one that is found. */
static void drop_unread(struct analyse *a, struct suite_case *c, const struct job *job)
{
    char unread[2][32];
    c->is_best_cut = score_drop_unread(c->best, job, unread[0], sizeof unread[0]);
    c->is_avoid_cut = score_drop_unread(c->avoid, job, unread[1], sizeof unread[1]);
    for (unsigned i = 0; i < 2; i++) {
        if (i == 0 ? c->is_best_cut : c->is_avoid_cut) {
            log_fail(a->program, "%s:%u: expected '%s' is not a legal move here: it is left out",
                     a->file, c->line, unread[i]);
        }
    }
}

/* Refuses bad positions before anything is searched: of a file, those lines alone. */
static int check_positions(struct analyse *a)
{
    char why[256];
    struct job job = {0};
    unsigned kept = 0;
    for (unsigned i = 0; i < a->suite.count; i++) {
        struct suite_case *c = &a->suite.at[i];
        const char *wrong = c->wrong;
        const enum err err =
            wrong != NULL ? ERR_OK
                          : job_set_position(&job, a->job.game, c->position, why, sizeof why);
        if (err != ERR_OK) {
            wrong = why;
        }
        if (wrong == NULL) {
            drop_unread(a, c, &job);
            a->suite.at[kept++] = *c;
        } else if (c->line > 0 && err != ERR_NOMEM) {
            log_fail(a->program, "%s:%u: %s", a->file, c->line, wrong);
            a->wrong_lines++;
        } else {
            job_free(&job);
            return cli_no_position(a->program, err, wrong);
        }
    }
    job_free(&job);
    a->suite.count = kept;
    return kept > 0 ? -1 : 1;
}

/* Whether each searcher may search positions of its own: those of a file, wherever nothing is
 * wanted that all searchers do for one position. */
static const char *apart_fault(const struct analyse *a)
{
    return a->proof != NULL                          ? "--proof"
           : a->all                                  ? "--all"
           : a->job.nodes != 0                       ? "--nodes"
           : a->resources.table.url != NULL          ? "--table"
           : algorithm_needs_peers(a->job.algorithm) ? "its --algorithm"
           : !a->job.algorithm->uses_shards          ? "its --algorithm"
                                                     : NULL;
}

static int resolve_positions(struct analyse *a)
{
    const bool is_auto = strcmp(a->positions, "auto") == 0;
    const bool is_apart = strcmp(a->positions, "apart") == 0;
    const char *fault = apart_fault(a);
    if (!is_auto && !is_apart && strcmp(a->positions, "together") != 0) {
        return options_wrong(a->program, "--positions is auto, together or apart, not '%s'",
                             a->positions);
    }
    if (is_apart && fault != NULL) {
        return options_wrong(a->program, "%s is for positions that are searched together", fault);
    }
    a->is_apart =
        fault == NULL && a->suite.count > 1 &&
        (is_apart || (is_auto && a->job.time_ms == 0 && cli_table_is_given(&a->resources.table)));
    return -1;
}

int analyse_resolve(struct analyse *a)
{
    char why[256];
    int status = cli_resolve(a->program, &a->search, &a->job);
    if (status < 0 && algorithm_needs_peers(a->job.algorithm) && a->resources.table.url != NULL) {
        return options_wrong(a->program,
                             "--algorithm %s: its searchers send each other letters, which a Redis "
                             "does not pass on: --servers, or one process",
                             a->job.algorithm->name);
    }
    if (status >= 0) {
        return status;
    }
    a->job.full = strcmp(a->select, "full") == 0;
    if (!a->job.full && strcmp(a->select, "plain") != 0) {
        return options_wrong(a->program, "--select is plain or full, not '%s'", a->select);
    }
    if (a->job.full && algorithm_needs_peers(a->job.algorithm)) {
        return options_wrong(a->program, "--algorithm %s searches --select plain alone so far",
                             a->job.algorithm->name);
    }
    if (a->job.full && a->job.strict) {
        return options_wrong(a->program, "--strict needs --select plain: pruning depends on alpha");
    }
    a->file = a->epd != NULL ? a->epd : a->obf;
    const enum err err = a->file == NULL ? suite_add(&a->suite, "1", a->search.position) : ERR_OK;
    if (err != ERR_OK) {
        return cli_no_position(a->program, err, "the position is too long to be one");
    }
    if ((a->epd != NULL && suite_read_epd(&a->suite, a->epd, why, sizeof why) != ERR_OK) ||
        (a->obf != NULL && suite_read_obf(&a->suite, a->obf, why, sizeof why) != ERR_OK)) {
        log_fail(a->program, "%s", why);
        return 1;
    }
    if (a->file != NULL && strcmp(a->file, "-") == 0) {
        a->file = "standard input";
    }
    if (a->suite.count == 0) {
        return options_wrong(a->program, "%s contains no position", a->file);
    }
    if (a->depth == 0 && a->job.time_ms == 0 && a->job.nodes == 0) {
        a->job.time_ms = DEFAULT_TIME_MS;
    }
    a->job.depth = (uint8_t)(a->depth != 0 ? a->depth : SEARCH_DEPTH_MAX);
    status = check_positions(a);
    return status < 0 ? resolve_positions(a) : status;
}
