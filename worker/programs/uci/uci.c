/* The UCI protocol: commands on stdin, answers on stdout. One thread reads, one searches. */
#include "worker/games/chess/chess.h"
#include "worker/games/games.h"
#include "worker/programs/background.h"
#include "worker/programs/cli.h"
#include "worker/programs/commands.h"
#include "worker/programs/score.h"
#include "worker/programs/uci/uci_console.h"
#include "worker/programs/uci/uci_limits.h"
#include "worker/programs/uci/uci_lines.h"
#include "worker/programs/uci/uci_options.h"

#include "common/clock.h"
#include "common/config.h"
#include "common/log.h"
#include "common/signals.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

static const char program[] = "abdada uci";

enum { HISTORY_MAX = 600 };

struct uci {
    /* options, changed only while nothing is searched */
    struct uci_options options;
    /* state */
    struct searching_metrics *metrics; /* of the ... */
    struct engine *engine; /* NULL: opened with the current options when it is needed */
    struct job job;
    bool is_unset; /* the last "position" was bad: there is nothing to search */
    bool infinite;
    uint64_t ponder_us; /* time for the move from "ponderhit" on */
    uint64_t ponder_until_us; /* 0: no "ponderhit" yet */
    struct commands input;
    struct background search;
    struct uci_lines lines; /* of it */
    unsigned said_workers, said_shards_up; /* to the GUI */
    uint64_t good_hash_mib; /* of the last table that could be opened */
    unsigned mate; /* a mate in so many moves is looked for; 0: none */
};

static atomic_bool quitting; /* a signal came, or nobody reads what we say */

/* ---- answers ---- */

static bool mate_is_found(const struct uci *u, const struct search_result *r)
{
    unsigned moves = uci_lines_mate(u->job.game, r->score);
    return r->depth > 0 && r->bound == TT_EXACT && moves > 0 && moves <= u->mate;
}

static void say_iteration(void *self, unsigned line, const struct search_result *r,
                          const struct engine_status *s)
{
    struct uci *u = self;
    if (mate_is_found(u, r)) {
        engine_stop(u->engine);
    }
    if (r->bound == TT_EXACT) {
        uci_lines_take(&u->lines, line, r, s);
    } else {
        uci_lines_take_bound(&u->lines, r, s);
    }
}

static void say_root_move(void *self, uint16_t move, unsigned number, const struct engine_status *s)
{
    struct uci *u = self;
    char text[GAME_MOVE_TEXT_MAX];
    u->lines.is_open = true;
    printf("info depth %u currmove %s currmovenumber %u\n", s->depth,
           score_move(&u->job, move, text), number);
}

/* Helpers that come and go in mid-search. */
static void say_helpers(void *self, const struct search_result *best, const struct engine_status *s)
{
    struct uci *u = self;
    (void)best;
    if (s->shards > 0 && (s->workers != u->said_workers || s->shards_up != u->said_shards_up)) {
        u->said_workers = s->workers;
        u->said_shards_up = s->shards_up;
        printf("info string workers %u shards %u/%u\n", s->workers, s->shards_up, s->shards);
    }
}

static void say_refusal(void *self, unsigned shard, const char *why, const struct engine_status *s)
{
    struct uci *u = self;
    char text[CLI_REFUSAL_MAX];
    cli_refusal_text(u->engine, shard, why, s, text);
    printf("info string %s\n", text); /* one call, so that lines of several threads do not mix */
}

static void say_best(struct uci *u)
{
    char text[GAME_MOVE_TEXT_MAX], reply[GAME_MOVE_TEXT_MAX];
    const struct search_result *r = uci_lines_best(&u->lines, &u->search.result);
    uci_lines_end(&u->lines, &u->search.result);
    uci_lines_hosts(&u->search.result);
    if (r->depth == 0 && r->move == 0) {
        printf("info string error: the search failed: out of memory\n");
    }
    if (u->mate > 0 && !mate_is_found(u, r) && r->depth >= u->job.depth) {
        const unsigned bare = uci_lines_bare_mate(u->job.game, r->score);
        const bool is_bare = bare > 0 && bare <= u->mate;
        printf("info string no %smate in %u%s\n", is_bare ? "line to a " : "", u->mate,
               is_bare ? " was found" : "");
    }
    if (r->move == 0) {
        printf("bestmove (none)\n"); /* no legal move: the game is over */
    } else {
        printf("bestmove %s", score_move(&u->job, r->move, text));
        if (r->pv.length > 1 && r->pv.move[0] == r->move) {
            u->job.game->make(u->job.position, r->move);
            u->job.game->format_move(u->job.position, r->pv.move[1], reply);
            u->job.game->unmake(u->job.position, r->move);
            printf(" ponder %s", reply);
        }
        printf("\n");
    }
}

/* ---- searching ---- */

/* Waits for the search's end and prints the best move. */
static void finish(struct uci *u)
{
    background_join(&u->search);
    say_best(u);
}

static void stop(struct uci *u)
{
    if (u->search.is_running) {
        engine_stop(u->engine);
        finish(u);
    }
}

static void close_engine(struct uci *u)
{
    searching_metrics_close(&u->metrics);
    engine_close(&u->engine);
}

static bool ensure_engine(struct uci *u)
{
    if (u->engine != NULL) {
        return true;
    }
    char why[CLI_WHY_MAX];
    enum err err = cli_engine_open(&u->engine, program, &u->options.resources, &quitting, why);
    if (err != ERR_OK && u->good_hash_mib != 0 &&
        u->options.resources.hash_mib > u->good_hash_mib) {
        printf("info string error: Hash %" PRIu64 ": %s; it stays %" PRIu64 "\n",
               u->options.resources.hash_mib, why, u->good_hash_mib);
        u->options.resources.hash_mib = u->good_hash_mib;
        err = cli_engine_open(&u->engine, program, &u->options.resources, &quitting, why);
    }
    if (err != ERR_OK) {
        printf("info string error: no search with these options: %s\n", why);
        return false;
    }
    u->good_hash_mib = u->options.resources.hash_mib;
    if (cli_metrics_open(&u->metrics, program, &u->options.resources, u->engine, &quitting, why) !=
        ERR_OK) {
        printf("info string error: no metrics: %s\n", why);
    }
    if (cli_table_is_given(&u->options.resources.table) && engine_shards_up(u->engine) == 0) {
        char what[TRANSPORT_NONE_UP_MAX];
        engine_none_up(u->engine, what);
        printf("info string %s: searching alone\n", what);
    }
    return true;
}

static void go(struct uci *u, char *words)
{
    struct uci_limits limits;
    const struct engine_observer observer = {
        .self = u,
        .iteration = say_iteration,
        .root_move = say_root_move,
        .progress = say_helpers,
        .refused = say_refusal,
    };
    stop(u);
    if (uci_console_perft(u->is_unset ? NULL : &u->job, words)) {
        return;
    }
    if (u->is_unset) {
        printf("info string error: no position: the last one was refused\nbestmove (none)\n");
        return;
    }
    if (!ensure_engine(u)) {
        printf("bestmove (none)\n");
        return;
    }
    uci_read_limits(words, uci_black_to_move(u->job.text), (uint32_t)u->options.overhead_ms,
                    &limits);
    if (!uci_root_searchmoves(&u->job, &limits)) {
        printf("info string error: none of these searchmoves is legal\nbestmove (none)\n");
        return;
    }
    u->infinite = limits.infinite || limits.ponder;
    u->mate = limits.mate;
    u->ponder_us = limits.ponder ? limits.time_ms * UINT64_C(1000) - limits.spare_us : 0;
    u->ponder_until_us = 0;
    u->job.depth = (uint8_t)limits.depth;
    u->job.time_ms = limits.ponder ? 0 : limits.time_ms;
    u->job.spare_us = limits.ponder ? 0 : limits.spare_us;
    u->job.nodes = limits.nodes;
    u->job.at_once = true; /* a clock may run, and nobody is told the figures */
    if (u->options.is_limited) {
        uint64_t nodes = uci_nodes_of_elo(u->options.elo);
        u->job.nodes = limits.nodes == 0 || nodes < limits.nodes ? nodes : limits.nodes;
    }
    u->job.lines = limits.mate == 0 ? (unsigned)u->options.lines : 1;
    u->job.algorithm = u->options.algorithm;
    u->job.strict = u->options.strict;
    /* Pruning depends on alpha: strict implies plain. A mate is proved or refuted by all moves. */
    u->job.full = u->options.full && !u->options.strict && limits.mate == 0;
    u->lines.values.count = 0;
    if (u->job.full) {
        uci_root_tablebase(&u->job, &u->lines.values);
    }
    uci_lines_begin(&u->lines, &u->job, limits.mate == 0 ? u->options.lines : 1);
    u->job.remote_depth = PROTO_REMOTE_DEPTH_AUTO;
    job_set_namespace(&u->job, 0);
    background_begin(&u->search, u->engine, &u->job, &observer);
    if (!u->search.is_running) {
        say_best(u);
    }
}

/* ---- positions and options ---- */

/* A game may be longer than a position has room for: what is too old to be repeated is forgotten.
 */
static bool make_moves(struct job *job, char *moves, char *why, size_t size)
{
    unsigned made = 0;
    for (char *word; (word = strtok_r(moves, " \t", &moves)) != NULL;) {
        uint16_t move;
        if (job->game->parse_move(job->position, word, &move) != ERR_OK) {
            snprintf(why, size, "'%.80s' is not a legal move here", word);
            return false;
        }
        job->game->make(job->position, move);
        if (++made % HISTORY_MAX == 0) {
            chess_forget(job->position);
        }
    }
    job->game->format(job->position, job->text);
    return true;
}

/* The text is what workers get. */
static bool write_as_960(struct job *job, char *why, size_t size)
{
    char text[GAME_TEXT_MAX];
    chess_write_as_960(job->position);
    job->game->format(job->position, text);
    return job_set_position(job, job->game, text, why, size) == ERR_OK;
}

/* The moves behind the word, which ends the text before it; NULL: there is no such word. */
static char *cut_moves(char *words)
{
    static const char word[] = "moves";
    for (char *p = words; (p = strcasestr(p, word)) != NULL; p++) {
        char *rest = p + strlen(word);
        if (p > words && isblank((unsigned char)p[-1]) &&
            (*rest == '\0' || isblank((unsigned char)*rest))) {
            *p = '\0';
            return rest;
        }
    }
    return NULL;
}

static void set_position(struct uci *u, char *words)
{
    char why[256] = "position startpos|fen ... [moves ...]";
    const char *fen = NULL;
    struct job fresh = {0};
    stop(u);
    char *moves = cut_moves(words), *rest = words;
    const char *kind = strtok_r(words, " \t", &rest);
    if (kind != NULL && strcasecmp(kind, "fen") == 0) {
        fen = rest;
    } else if (kind != NULL && strcasecmp(kind, "startpos") == 0) {
        const char *next = strtok_r(NULL, " \t", &rest);
        if (next == NULL) {
            fen = "startpos";
        } else {
            snprintf(why, sizeof why, "behind 'startpos' comes 'moves', not '%.80s'", next);
        }
    }
    bool ok = fen != NULL &&
              job_set_position(&fresh, games_by_name("chess"), fen, why, sizeof why) == ERR_OK &&
              (!u->options.chess960 || write_as_960(&fresh, why, sizeof why)) &&
              (moves == NULL || make_moves(&fresh, moves, why, sizeof why));
    u->is_unset = !ok;
    if (!ok) { /* to play a move of another position would be worse than none */
        printf("info string error: %s; there is no position until the next one\n", why);
        job_free(&fresh);
    } else {
        job_free(&u->job);
        u->job = fresh;
    }
}

/* "name NAME... [value VALUE]": names have single blanks between their words, and values none
 * around them, however they are written. False: there is no name. */
static bool read_option(char *words, char **name, char **value)
{
    char *rest = words, *out, *word = strtok_r(words, " \t", &rest);
    *value = NULL;
    if (word == NULL || strcasecmp(word, "name") != 0) {
        return false;
    }
    *name = out = word;
    *out = '\0';
    while ((word = strtok_r(NULL, " \t", &rest)) != NULL && strcasecmp(word, "value") != 0) {
        if (out != *name) {
            *out++ = ' ';
        }
        const size_t length = strlen(word); /* it stands further on */
        memmove(out, word, length + 1);
        out += length;
    }
    if (word != NULL) {
        *value = rest + strspn(rest, " \t");
        for (size_t n = strlen(*value); n > 0 && isblank((unsigned char)(*value)[n - 1]); n--) {
            (*value)[n - 1] = '\0';
        }
    }
    return out != *name;
}

static void set_option(struct uci *u, char *words)
{
    char *name, *value;
    bool anew, clear;
    stop(u);
    if (!read_option(words, &name, &value)) {
        printf("info string error: setoption name NAME value VALUE\n");
        return;
    }
    uci_options_set(&u->options, name, value == NULL ? "" : value, &anew, &clear);
    if (clear && u->engine != NULL) {
        engine_clear(u->engine);
    }
    if (anew) {
        close_engine(u);
    }
}

/* ---- the loop ---- */

/* False: there is no such command. */
static bool obey_word(struct uci *u, const char *word, char *rest)
{
    if (strcmp(word, "uci") == 0) {
        printf("id name abdada %s\nid author the abdada authors\n", PROGRAM_VERSION);
        uci_options_say(&u->options);
        printf("uciok\n");
    } else if (strcmp(word, "isready") == 0) {
        if (!u->search.is_running) {
            ensure_engine(u); /* opening the tables takes long: before "go" */
        }
        printf("readyok\n");
    } else if (strcmp(word, "ucinewgame") == 0) {
        stop(u);
        if (u->engine != NULL) {
            engine_clear(u->engine);
        }
    } else if (strcmp(word, "position") == 0) {
        set_position(u, rest);
    } else if (strcmp(word, "go") == 0) {
        go(u, rest);
    } else if (strcmp(word, "stop") == 0) {
        stop(u);
    } else if (strcmp(word, "ponderhit") == 0) {
        u->infinite = false;
        u->ponder_until_us = u->ponder_us ? clock_us() + u->ponder_us : 0;
    } else if (strcmp(word, "setoption") == 0) {
        set_option(u, rest);
    } else if (uci_console_knows(word)) {
        stop(u);
        uci_console_obey(u->is_unset ? NULL : &u->job, word);
    } else {
        return strcmp(word, "debug") == 0 || strcmp(word, "register") == 0;
    }
    return true;
}

/* Words before one that is known are skipped, as UCI demands. False: quit. */
static bool obey(struct uci *u, char *line)
{
    char *rest = line;
    const char *first = NULL;
    for (char *word; (word = strtok_r(rest, " \t", &rest)) != NULL;) {
        if (strcmp(word, "quit") == 0) {
            stop(u);
            return false;
        }
        if (obey_word(u, word, rest)) {
            return true;
        }
        first = first == NULL ? word : first;
    }
    if (first != NULL) {
        printf("info string unknown command '%.80s'\n", first);
    }
    return true;
}

/* How long to wait for input or the end of the search. */
static int poll_timeout_ms(const struct uci *u)
{
    if (u->search.is_running && u->search.has_ended && !u->infinite) {
        return 0;
    }
    if (!u->search.is_running || u->ponder_until_us == 0) {
        return BACKGROUND_PATIENCE_MS;
    }
    uint64_t now = clock_us(), until = u->ponder_until_us;
    uint64_t left_ms = now < until ? (until - now + 999) / 1000 : 0;
    return left_ms < BACKGROUND_PATIENCE_MS ? (int)left_ms : BACKGROUND_PATIENCE_MS;
}

/* Waits for input or for the end of the search, and keeps the sessions at the shards alive. */
static bool input_is_there(struct uci *u)
{
    const enum background_event event = background_wait(&u->search, true, poll_timeout_ms(u));
    if (event == BACKGROUND_GONE) {
        atomic_store(&quitting, true);
        return false;
    }
    if (u->search.is_running && u->ponder_until_us != 0 && clock_us() >= u->ponder_until_us) {
        u->ponder_until_us = 0;
        engine_stop(u->engine);
    }
    if (u->search.is_running && u->search.has_ended && !u->infinite) {
        finish(u);
    }
    if (event == BACKGROUND_QUIET && !u->search.is_running && u->engine != NULL) {
        engine_idle(u->engine, 0);
    }
    return event == BACKGROUND_INPUT;
}

/* What cannot be read may have been a position: see set_position. */
static void refuse(struct uci *u, const char *start)
{
    const bool is_position = strncmp(start + strspn(start, " \t"), "position", 8) == 0;
    if (is_position) {
        stop(u);
        u->is_unset = true;
    }
    printf("info string error: a line is longer than %d bytes%s\n", COMMANDS_LINE_MAX - 2,
           is_position ? "; there is no position until the next one" : "");
}

static void loop(struct uci *u)
{
    char start[64], *line;
    bool going = true;
    while (going && !u->input.is_closed && !atomic_load(&quitting)) {
        if (!input_is_there(u)) {
            continue;
        }
        if (!commands_read(&u->input, start, sizeof start)) {
            refuse(u, start);
        }
        while (going && (line = commands_next(&u->input)) != NULL) {
            going = obey(u, line);
        }
    }
}

/* After an end of input without "quit" a search with limits runs to its end, so that commands can
 * be piped in, unless nobody is there any more to read its answer. */
static void drain_search(struct uci *u)
{
    bool waits = !u->infinite && u->ponder_until_us == 0;
    while (u->search.is_running && waits && !u->search.has_ended && !atomic_load(&quitting) &&
           background_wait(&u->search, false, BACKGROUND_PATIENCE_MS) != BACKGROUND_GONE) {
    }
    stop(u);
}

int cli_uci(int argc, char *argv[])
{
    struct uci u = {
        .options = {.resources = {.threads = 1, .share = REMOTE_SHARE_DEPTH, .hash_mib = 64},
                    .algorithm = algorithm_by_name("abdada"),
                    .full = true,
                    .overhead_ms = UCI_OVERHEAD_MS,
                    .elo = UCI_ELO_MAX,
                    .lines = 1},
    };
    char why[256];
    const struct options_row table[] = {
        CLI_TABLE_ROWS(u.options.resources.table),
        CLI_THREADS_ROWS(u.options.resources),
        CLI_PRIVATE_ROW(u.options.resources),
        CLI_METRICS_ROW(&u.options.resources.metrics),
        {0},
    };
    const struct options options = {
        .program = program,
        .usage = "[OPTION]...",
        .summary = "Chess engine that speaks UCI on stdin and stdout.",
        .version = PROGRAM_VERSION,
        .table = table,
    };
    int status = config_parse(&options, argc, argv, NULL, NULL);
    if (status < 0) {
        status = cli_table_environment(program, &u.options.resources.table, false);
    }
    if (status >= 0) {
        return status;
    }
    if (!commands_open(&u.input) || !background_open(&u.search)) {
        fprintf(stderr, "%s: no memory or no pipe: %s\n", program, strerror(errno));
        commands_close(&u.input);
        return 1;
    }
    const enum err err =
        job_set_position(&u.job, games_by_name("chess"), "startpos", why, sizeof why);
    if (err != ERR_OK) {
        log_fail(program, "%s", err_text(err));
        background_close(&u.search);
        commands_close(&u.input);
        return 1;
    }
    signals_end_by(&quitting);
    setvbuf(stdout, NULL, _IOLBF, BUFSIZ); /* each line goes out at once */
    loop(&u);
    drain_search(&u);
    close_engine(&u);
    job_free(&u.job);
    background_close(&u.search);
    commands_close(&u.input);
    return 0;
}
