#include "worker/programs/analyse/analyse_options.h"

#include "worker/programs/score.h"

#include "worker/programs/othello/proof.h"

#include "common/log.h"

#include <string.h>

enum { DEFAULT_TIME_MS = 5000, LINES_NAMED = 20, SMALL_EMPTIES = 20 /* solved in half a second */ };

/* Where both find games. */
#define GAMES_ROWS(a)                                                                            \
    OPTIONS_ROW(TEXT, "games", "FILE", &(a)->games, 0, 0,                                        \
                "Othello games from a file: transcripts, one a line (f5d6c3...), GGF or WTHOR; " \
                "-: standard input"),                                                            \
        OPTIONS_ROW(U32, "empties", "N", &(a)->empties, 0, 60,                                   \
                    "take the position with N empty squares (default: the last)")

/* What both search with. */
#define RESOURCES_ROWS(a)                                                                        \
    {.kind = OPTION_HEADING, .help = "Resources:"}, CLI_THREADS_ROWS((a)->resources),            \
        CLI_TABLE_ROWS((a)->resources.table), CLI_PRIVATE_ROW((a)->resources),                   \
        CLI_SHARE_ROW((a)->resources),                                                           \
        OPTIONS_ROW(TEXT, "remote-depth", "auto|N", &(a)->search.remote_depth, 0, 0,             \
                    "ask shards at this remaining depth and more"),                              \
        OPTIONS_ROW(TEXT, "positions", "auto|together|apart", &(a)->positions, 0, 0,             \
                    "all searchers search one position, or each its own (auto: over shards, "    \
                    "and where threads solve boards of up to 20 empty squares)"),                \
        CLI_METRICS_ROW((a)->resources), {.kind = OPTION_HEADING, .help = "Search and output:"}, \
        {"algorithm", "NAME", ALGORITHM_NAMES " (default abdada)", &(a)->search.algorithm,       \
         OPTION_TEXT, 'a'},                                                                      \
        OPTIONS_ROW(FLAG, "verbose", NULL, &(a)->verbose, 0, 0,                                  \
                    "progress with costs that are zero")

/* Reads the words after the command. `sources` names the places of positions; `analyse` needs
 * none. */
static int read_words(struct analyse *a, struct options options, const char *sources, int argc,
                      char *argv[])
{
    options.program = a->program;
    int status = cli_parse(options, argc, argv, &a->search.position);
    if (status >= 0) {
        return status;
    }
    const unsigned given =
        (a->search.position != NULL) + (a->epd != NULL) + (a->obf != NULL) + (a->games != NULL);
    if (given > 1 || (given == 0 && a->solves)) {
        return options_wrong(a->program, "give one of %s", sources);
    }
    if (a->empties != SUITE_LAST && a->games == NULL) {
        return options_wrong(a->program, "--empties needs --games");
    }
    return cli_table_environment(a->program, &a->resources.table, false);
}

int analyse_read_options(struct analyse *a, int argc, char *argv[])
{
    const struct options_row table[] = {
        {.kind = OPTION_HEADING, .help = "What to analyse:"},
        {"epd", "FILE", "positions from a file, one EPD a line; -: standard input", &a->epd,
         OPTION_TEXT},
        {"obf", "FILE", "Othello boards from a file, one OBF a line; -: standard input", &a->obf,
         OPTION_TEXT},
        GAMES_ROWS(a),
        {"game", "NAME", "chess (default), othello, or a synthetic tree (tree:b=20,d=8,seed=1)",
         &a->search.game, OPTION_TEXT},
        {.kind = OPTION_HEADING, .help = "Limits (default: 5 seconds per position):"},
        {"depth", "N", "stop after iteration N", &a->depth, OPTION_U32, 'd', 1, SEARCH_DEPTH_MAX},
        {"time", "MS", "time per position", &a->job.time_ms, OPTION_U32, 't', 1, UINT32_MAX},
        {"nodes", "N", "nodes of this process per position", &a->job.nodes, OPTION_U64, 'n', 1},
        RESOURCES_ROWS(a),
        {"select", "plain|full", "fixed depth with check extension (default), or pruning",
         &a->search.select, OPTION_TEXT},
        {"strict", NULL, "scores depend on position and depth alone", &a->search.strict,
         OPTION_FLAG},
        {"fresh", NULL, "ignore results of earlier searches in the tables", &a->fresh, OPTION_FLAG},
        {"wait", NULL, "wait for each answer of a shard instead of searching on", &a->job.waits,
         OPTION_FLAG},
        {"json", NULL, "one JSON object per position on stdout", &a->json, OPTION_FLAG},
        {0},
    };
    const struct options options = {
        .usage = "[OPTION]... [POSITION | --epd FILE | --obf FILE | --games FILE]",
        .summary = "Searches positions: a FEN, a board, or startpos (default).",
        .example = {"abdada analyse --depth 9 startpos",
                    "abdada analyse --servers 127.0.0.1:7400 --time 10000 --epd suite.epd"},
        .table = table,
    };
    int status = read_words(a, options, "a position, --epd, --obf and --games", argc, argv);
    if (a->obf != NULL || a->games != NULL) {
        a->search.game = "othello";
    }
    return status;
}

int analyse_read_solve_options(struct analyse *a, int argc, char *argv[])
{
    const struct options_row table[] = {
        {.kind = OPTION_HEADING, .help = "What to solve:"},
        {"obf", "FILE", "boards from a file, one OBF a line; -: standard input", &a->obf,
         OPTION_TEXT},
        GAMES_ROWS(a),
        {"wld", NULL, "find only win (1), draw (0) or loss (-1)", &a->wld, OPTION_FLAG},
        {"all", NULL, "find all best moves", &a->all, OPTION_FLAG},
        {"time", "MS", "stop after this time (default: no limit)", &a->job.time_ms, OPTION_U32, 't',
         1, UINT32_MAX},
        RESOURCES_ROWS(a),
        {"resume", NULL,
         "continue an earlier solve: what is in the table, its --proof or its --obf-out stays",
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
    a->solves = true;
    const struct options options = {
        .usage = "[OPTION]... BOARD | --obf FILE | --games FILE",
        .summary = "Solves Othello positions exactly: 64 squares (X, O, -) and the side to move.",
        .example = {"abdada solve --threads 4 --obf ending.obf",
                    "abdada solve --servers 127.0.0.1:7400 --obf ending.obf --proof ending.proof"},
        .table = table,
    };
    int status = read_words(a, options, "a board, --obf FILE and --games FILE", argc, argv);
    a->search.game = a->wld ? "othello-wld" : "othello";
    a->depth = SEARCH_DEPTH_MAX;
    const struct {
        bool is_so;
        const char *why;
    } wrong[] = {
        {a->resume && a->proof == NULL && a->scored == NULL &&
             !cli_table_is_given(&a->resources.table),
         "--resume needs --servers or --table, which keep the results, or --proof, or --obf-out"},
        {a->resume && a->proof != NULL && a->scored != NULL,
         "--resume continues --proof or --obf-out, not both: first the proof, then the file, which "
         "costs little"},
        {a->scored != NULL && a->wld, "--obf-out writes scores, which --wld does not find"},
        {a->resume && a->fresh && a->scored == NULL, "--resume and --fresh exclude each other"},
        {a->proof != NULL && a->wld, "--proof needs a score, which --wld does not find"},
        {a->proof == NULL && a->proof_leaf != 0, "--proof-leaf needs --proof"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0] && status < 0; i++) {
        status = wrong[i].is_so ? options_wrong(a->program, "%s", wrong[i].why) : status;
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
            log_fail(a->program, "%s:%u: expected '%s' is not a legal move here: ignored", a->file,
                     c->line, unread[i]);
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
        const char *wrong = c->is_wrong ? c->position : NULL;
        const enum err err =
            c->is_wrong ? ERR_OK
                        : job_set_position(&job, a->job.game, c->position, why, sizeof why);
        if (err != ERR_OK) {
            wrong = why;
        }
        if (wrong == NULL) {
            cli_left_out(a->program, c->line > 0 ? a->file : NULL, c->line, why);
            drop_unread(a, c, &job);
            snprintf(c->position, sizeof c->position, "%s", job.text); /* as the game writes it */
            a->suite.at[kept++] = *c;
            const unsigned left = a->solves ? job.game->depth_left(job.position) : 0;
            a->empties_most = left > a->empties_most ? left : a->empties_most;
        } else if (c->line > 0 && err != ERR_NOMEM) {
            if (a->wrong_lines++ < LINES_NAMED) {
                log_fail(a->program, "%s:%u: %s", a->file, c->line, wrong);
            }
        } else {
            job_free(&job);
            return cli_no_position(a->program, err, wrong);
        }
    }
    job_free(&job);
    if (a->wrong_lines > LINES_NAMED) {
        log_fail(a->program, "%s: and %u more", a->file, a->wrong_lines - LINES_NAMED);
    }
    a->suite.count = kept;
    return kept > 0 ? -1 : 1;
}

/* Whether each searcher may search positions of its own: those of a file, wherever nothing is
 * wanted that all searchers do for one position. Threads without shards do so by default if all
 * boards are small: to divide one costs more than it saves. */
static int resolve_positions(struct analyse *a)
{
    const bool is_auto = strcmp(a->positions, "auto") == 0;
    const bool is_apart = strcmp(a->positions, "apart") == 0;
    const char *fault = a->proof != NULL                          ? "--proof"
                        : a->all                                  ? "--all"
                        : a->job.nodes != 0                       ? "--nodes"
                        : a->resources.table.url != NULL          ? "--table"
                        : algorithm_needs_peers(a->job.algorithm) ? "this --algorithm"
                        : !a->job.algorithm->uses_shards          ? "this --algorithm"
                                                                  : NULL;
    if (!is_auto && !is_apart && strcmp(a->positions, "together") != 0) {
        return options_wrong(a->program, "--positions is auto, together or apart, not '%s'",
                             a->positions);
    }
    if (is_apart && fault != NULL) {
        return options_wrong(a->program, "--positions apart and %s exclude each other", fault);
    }
    const bool is_small = a->solves && a->resources.threads > 1 && a->empties_most <= SMALL_EMPTIES;
    a->is_apart = fault == NULL && a->suite.count > 1 &&
                  (is_apart || (is_auto && a->job.time_ms == 0 &&
                                (cli_table_is_given(&a->resources.table) || is_small)));
    return -1;
}

int analyse_resolve(struct analyse *a)
{
    char why[256];
    int status = cli_resolve(a->program, &a->search, &a->job);
    if (status < 0 && algorithm_needs_peers(a->job.algorithm) && a->resources.table.url != NULL) {
        return options_wrong(a->program, "--algorithm %s does not work over a Redis; use --servers",
                             a->job.algorithm->name);
    }
    if (status >= 0) {
        return status;
    }
    a->file = a->epd != NULL ? a->epd : a->obf != NULL ? a->obf : a->games;
    const enum err err = a->file == NULL ? suite_add(&a->suite, "1", a->search.position) : ERR_OK;
    if (err != ERR_OK) {
        return cli_no_position(a->program, err, "the position is too long to be one");
    }
    const enum suite_form form = a->epd != NULL   ? SUITE_EPD
                                 : a->obf != NULL ? SUITE_OBF
                                                  : SUITE_GAMES;
    if (a->file != NULL &&
        suite_read(&a->suite, a->file, form, a->empties, why, sizeof why) != ERR_OK) {
        return log_fail(a->program, "%s", why);
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
