/* The UCI protocol: commands on stdin, answers on stdout. One thread reads, one searches. */
#include "worker/programs/uci/uci.h"
#include "worker/games/chess/chess.h"
#include "worker/games/games.h"
#include "worker/programs/cli.h"
#include "worker/programs/engine/engine_front.h"
#include "worker/programs/gui.h"
#include "worker/programs/score.h"
#include "worker/programs/uci/uci_person.h"
#include "worker/programs/uci/uci_search.h"
#include "worker/programs/uci_text.h"

#include "common/clock.h"
#include "common/config.h"
#include "common/log.h"
#include "common/memory.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

static const char program[] = "abdada uci";

enum {
    PERFT_DEPTH_MAX = 9, /* nothing ends it but its end */
};

struct uci {
    struct gui gui; /* its engine is opened with the current options when it is needed */
    /* options, changed only while nothing is searched */
    struct cli_resources resources;
    uint64_t hash_max_mib; /* that there is memory for, as of the start */
    const struct algorithm *algorithm;
    bool strict, full;
    bool chess960; /* castling is written as the king's move to its rook */
    bool is_limited; /* set for the strength `elo`, by fewer nodes */
    uint64_t elo;
    uint64_t overhead_ms; /* time that a move takes beside the search */
    uint64_t multipv;
    /* state */
    struct searching_metrics *metrics; /* of the engine ... */
    struct searcher_figures past; /* ... and of earlier ones */
    struct job job;
    bool is_unset; /* the last "position" was bad: there is nothing to search */
    bool is_pondering; /* "ponderhit" is awaited ... */
    bool is_infinite; /* ... and the answer waits for "stop" even after it */
    uint64_t ponder_us; /* time for the move from "ponderhit" on */
    struct uci_lines lines; /* of the search */
    unsigned said_workers, said_shards_up; /* to the GUI */
    uint64_t good_hash_mib; /* of the last engine that could be opened, at first as at the start */
    uint32_t good_threads;
    unsigned mate; /* a mate in so many moves is looked for; 0: none */
};

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
        gui_end_search(&u->gui);
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
    cli_refusal_text(u->gui.engine, shard, why, s, text);
    printf("info string %s\n", text); /* one call, so that lines of several threads do not mix */
}

static void say_best(void *self, bool is_stopped)
{
    struct uci *u = self;
    (void)is_stopped;
    char text[GAME_MOVE_TEXT_MAX], reply[GAME_MOVE_TEXT_MAX];
    const struct search_result *r = uci_lines_best(&u->lines, &u->gui.result);
    uci_lines_end(&u->lines, &u->gui.result);
    uci_lines_hosts(&u->gui.result);
    if (r->depth == 0 && r->move == 0) {
        printf("info string error: the search failed: out of memory\n");
    }
    if (u->gui.stand_in != NULL) { /* its clock is not the GUI's */
        const struct engine_status *s = &u->gui.result.status;
        printf("info nodes %" PRIu64 " time %" PRIu64 "\n", s->sum.nodes, s->time_us / 1000);
    }
    const bool is_searched = u->mate > 0 && r->depth / 2 >= u->mate; /* all plies of such a mate */
    if (is_searched && !mate_is_found(u, r)) {
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

/* ---- what a person at a console may ask besides the protocol ---- */

static void say_no_position(void)
{
    printf("info string error: no position: the last one was refused\n");
}

/* Counts the legal move sequences by first move if `words`, which follow "go", are "perft N".
 * False: they are not. */
static bool obey_perft(const struct uci *u, const char *words)
{
    uint64_t depth;
    words += strspn(words, " \t");
    if (strncmp(words, "perft", 5) != 0) {
        return false;
    }
    words += 5 + strspn(words + 5, " \t");
    if (u->is_unset) {
        say_no_position();
    } else if (options_unsigned(words, 1, PERFT_DEPTH_MAX, &depth) == ERR_OK) {
        uci_person_perft(&u->job, (unsigned)depth);
    } else {
        printf("info string error: go perft N: a depth from 1 to %d, not '%.80s'\n",
               PERFT_DEPTH_MAX, words);
    }
    return true;
}

/* False: it is no word of a person's. */
static bool obey_person(struct uci *u, const char *word)
{
    const bool is_bench = strcmp(word, "bench") == 0, is_board = strcmp(word, "d") == 0;
    const bool is_eval = strcmp(word, "eval") == 0, is_flip = strcmp(word, "flip") == 0;
    if (!is_bench && !is_board && !is_eval && !is_flip) {
        return false;
    }
    gui_stop(&u->gui);
    if (is_bench) {
        char name[] = "bench", *argv[] = {name, NULL};
        (void)cli_bench(1, argv);
    } else if (u->is_unset) {
        say_no_position();
    } else if (is_board) {
        uci_person_board(&u->job);
    } else if (is_eval) {
        uci_person_evaluation(&u->job);
    } else if (uci_person_flip(&u->job) != ERR_OK) {
        printf("info string error: %s\n", err_text(ERR_NOMEM));
    }
    return true;
}

/* ---- options ---- */

enum { WANT_MAX = 256, OVERHEAD_MAX_MS = 5000 };

/* Options of a process that searches itself. */
static const char *const own_options[] = {"Hash",      "Threads", "Servers",  "Table",
                                          "Selection", "Strict",  "Algorithm"};

static bool has_option(const struct uci *u, const char *name)
{
    bool is_own = false;
    for (size_t i = 0; i < sizeof own_options / sizeof own_options[0]; i++) {
        is_own |= strcasecmp(name, own_options[i]) == 0;
    }
    return u->gui.stand_in == NULL || !is_own;
}

static void say_own_options(const struct uci *u)
{
    const struct options_servers *servers = &u->resources.table.servers;
    char address[OPTIONS_HOST_MAX + 16], url[REDIS_TEXT_MAX] = "<empty>";
    if (u->resources.table.url != NULL) {
        redis_address_text(&u->resources.table.redis, url);
    }
    printf("option name Hash type spin default %" PRIu64 " min 1 max %" PRIu64 "\n",
           u->resources.hash_mib, u->hash_max_mib);
    printf("option name Threads type spin default %u min 1 max %d\n", u->resources.threads,
           EMBEDDED_SLOTS_MAX);
    printf("option name Servers type string default%s", servers->count == 0 ? " <empty>" : "");
    for (unsigned i = 0; i < servers->count; i++) {
        options_host_port_text(servers->server[i].host, servers->server[i].port, address,
                               sizeof address);
        printf("%c%s", i == 0 ? ' ' : ',', address);
    }
    printf("\n");
    printf("option name Table type string default %s\n", url);
    printf("option name Selection type combo default %s var plain var full\n",
           u->full ? "full" : "plain");
    printf("option name Strict type check default %s\n", u->strict ? "true" : "false");
    printf("option name Algorithm type combo default %s", u->algorithm->name);
    for (unsigned i = 0; algorithm_at(i) != NULL; i++) {
        if (!algorithm_needs_peers(algorithm_at(i))) {
            printf(" var %s", algorithm_at(i)->name);
        }
    }
    printf("\n");
}

static void say_options(const struct uci *u)
{
    if (u->gui.stand_in == NULL) {
        say_own_options(u);
    }
    printf("option name Clear Hash type button\n");
    printf("option name Move Overhead type spin default %" PRIu64 " min 0 max %d\n", u->overhead_ms,
           OVERHEAD_MAX_MS);
    printf("option name MultiPV type spin default %" PRIu64 " min 1 max %d\n", u->multipv,
           SEARCH_LINES_MAX);
    printf("option name Ponder type check default false\n");
    printf("option name UCI_AnalyseMode type check default false\n");
    printf("option name UCI_Chess960 type check default %s\n", u->chess960 ? "true" : "false");
    printf("option name UCI_LimitStrength type check default %s\n",
           u->is_limited ? "true" : "false");
    printf("option name UCI_Elo type spin default %" PRIu64 " min %d max %d\n", u->elo, UCI_ELO_MIN,
           UCI_ELO_MAX);
    printf("option name SyzygyPath type string default <empty>\n");
}

static bool is_empty(const char *value)
{
    return value[0] == '\0' || strcasecmp(value, "<empty>") == 0;
}

/* A Redis in place of shards. The line is no command line, so it may have a password in it. False,
 * after a message: it is not taken. */
static bool set_table(struct cli_table *table, const char *url)
{
    struct redis_address redis;
    char why[REDIS_WHY_MAX];
    if (is_empty(url)) {
        table->url = NULL;
        return true;
    }
    if (redis_address_parse(&redis, url, why) != ERR_OK ||
        redis_address_environment(&redis, why) != ERR_OK) {
        printf("info string error: %s\n", why);
        return false;
    }
    table->redis = redis;
    table->url = "set by the option Table";
    table->servers.count = 0;
    return true;
}

/* False: the value is none of the option's; `want` says what it takes. */
static bool read_number(const char *value, uint64_t min, uint64_t max, uint64_t *out,
                        char want[WANT_MAX])
{
    snprintf(want, WANT_MAX, "a number from %" PRIu64 " to %" PRIu64, min, max);
    return options_unsigned(value, min, max, out) == ERR_OK;
}

static bool read_choice(const char *value, const char *yes, const char *no, bool *out,
                        char want[WANT_MAX])
{
    const bool is_yes = strcasecmp(value, yes) == 0, is_no = strcasecmp(value, no) == 0;
    snprintf(want, WANT_MAX, "%s or %s", yes, no);
    *out = is_yes || is_no ? is_yes : *out;
    return is_yes || is_no;
}

static bool read_algorithm(const char *value, const struct algorithm **out, char want[WANT_MAX])
{
    bool is_one = false;
    size_t used = (size_t)snprintf(want, WANT_MAX, "one of");
    for (unsigned i = 0; algorithm_at(i) != NULL && used < WANT_MAX; i++) {
        const struct algorithm *algorithm = algorithm_at(i);
        if (algorithm_needs_peers(algorithm)) { /* which is for selection plain */
            continue;
        }
        used += (size_t)snprintf(want + used, WANT_MAX - used, " %s", algorithm->name);
        if (strcasecmp(value, algorithm->name) == 0) {
            is_one = true;
            *out = algorithm;
        }
    }
    return is_one;
}

static bool read_servers(const char *value, struct cli_table *table, char want[WANT_MAX])
{
    snprintf(want, WANT_MAX, "HOST:PORT,... or <empty>");
    if (is_empty(value)) {
        table->servers.count = 0;
        return true;
    }
    bool ok = options_servers(value, &table->servers) == ERR_OK;
    table->url = ok ? NULL : table->url;
    return ok;
}

static void set_tablebase(const char *path)
{
    char why[WANT_MAX];
    if (chess_tablebase_open(is_empty(path) ? NULL : path, why, sizeof why) != ERR_OK) {
        printf("info string error: SyzygyPath: %s\n", why);
    } else if (chess_tablebase_pieces() > 0) {
        printf("info string Syzygy tables of up to %u pieces\n", chess_tablebase_pieces());
    }
}

static void clear_engine(struct uci *u)
{
    if (u->gui.stand_in != NULL) {
        u->gui.stand_in->forget(u->gui.stand_in->self);
    } else if (u->gui.engine != NULL) {
        engine_forget(u->gui.engine);
    }
}

static void close_engine(struct uci *u)
{
    searching_metrics_close(&u->metrics);
    engine_close(&u->gui.engine);
}

/* A value that the option does not take changes nothing. */
static void take_option(struct uci *u, const char *name, const char *value)
{
    char want[WANT_MAX] = "";
    uint64_t threads = u->resources.threads;
    bool ok = true, reopens = false, ignored = false;
    if (!has_option(u, name)) {
        printf("info string error: there is no option '%s'\n", name);
    } else if (strcasecmp(name, "Hash") == 0) {
        reopens = ok = read_number(value, 1, u->hash_max_mib, &u->resources.hash_mib, want);
    } else if (strcasecmp(name, "Threads") == 0) {
        reopens = ok = read_number(value, 1, EMBEDDED_SLOTS_MAX, &threads, want);
        u->resources.threads = (uint32_t)threads;
    } else if (strcasecmp(name, "Servers") == 0) {
        reopens = ok = read_servers(value, &u->resources.table, want);
    } else if (strcasecmp(name, "Table") == 0) {
        reopens = set_table(&u->resources.table, value); /* it says itself what is wrong */
    } else if (strcasecmp(name, "Clear Hash") == 0) {
        clear_engine(u);
    } else if (strcasecmp(name, "Move Overhead") == 0) {
        ok = read_number(value, 0, OVERHEAD_MAX_MS, &u->overhead_ms, want);
    } else if (strcasecmp(name, "MultiPV") == 0) {
        ok = read_number(value, 1, SEARCH_LINES_MAX, &u->multipv, want);
    } else if (strcasecmp(name, "Algorithm") == 0) {
        ok = read_algorithm(value, &u->algorithm, want);
    } else if (strcasecmp(name, "Strict") == 0) {
        ok = read_choice(value, "true", "false", &u->strict, want);
    } else if (strcasecmp(name, "Selection") == 0) {
        ok = read_choice(value, "full", "plain", &u->full, want);
    } else if (strcasecmp(name, "UCI_Chess960") == 0) {
        ok = read_choice(value, "true", "false", &u->chess960, want);
    } else if (strcasecmp(name, "UCI_LimitStrength") == 0) {
        ok = read_choice(value, "true", "false", &u->is_limited, want);
    } else if (strcasecmp(name, "UCI_Elo") == 0) {
        ok = read_number(value, UCI_ELO_MIN, UCI_ELO_MAX, &u->elo, want);
    } else if (strcasecmp(name, "SyzygyPath") == 0) {
        set_tablebase(value);
    } else if (strcasecmp(name, "Ponder") == 0 || strcasecmp(name, "UCI_AnalyseMode") == 0) {
        ok = read_choice(value, "true", "false", &ignored, want); /* nothing to prepare */
    } else {
        printf("info string error: there is no option '%s'\n", name);
    }
    if (!ok) {
        printf("info string error: option '%s' is %s, not '%s'\n", name, want, value);
    } else if (reopens) {
        close_engine(u);
    }
}

/* ---- searching ---- */

static bool ensure_engine(struct uci *u)
{
    if (u->gui.engine != NULL || u->gui.stand_in != NULL) {
        return true;
    }
    char why[CLI_WHY_MAX];
    enum err err = cli_engine_open(&u->gui.engine, program, &u->resources, u->gui.quitting, why);
    struct cli_resources *r = &u->resources;
    if (err != ERR_OK && (r->hash_mib != u->good_hash_mib || r->threads != u->good_threads)) {
        printf("info string error: %s; Hash stays %" PRIu64 ", Threads %" PRIu32 "\n", why,
               u->good_hash_mib, u->good_threads);
        r->hash_mib = u->good_hash_mib;
        r->threads = u->good_threads;
        err = cli_engine_open(&u->gui.engine, program, r, u->gui.quitting, why);
    }
    if (err != ERR_OK) {
        printf("info string error: no search with these options: %s\n", why);
        return false;
    }
    u->good_hash_mib = r->hash_mib;
    u->good_threads = r->threads;
    if (cli_metrics_open(&u->metrics, program, r, u->gui.engine, &u->past, u->gui.quitting, why) !=
        ERR_OK) {
        printf("info string error: no metrics: %s\n", why);
    }
    char what[LANES_NONE_UP_MAX];
    if (engine_none_up(u->gui.engine, what)) {
        printf("info string %s; searching on this machine until one does\n", what);
    }
    return true;
}

static void go(struct uci *u, char *words)
{
    const struct chess_position *position = u->job.position;
    struct uci_go asked;
    const struct engine_observer observer = {
        .self = u,
        .iteration = say_iteration,
        .root_move = say_root_move,
        .progress = say_helpers,
        .refused = say_refusal,
    };
    gui_stop(&u->gui);
    if (obey_perft(u, words)) {
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
    if (!uci_go_read(words, &asked)) {
        printf("info string error: the last searchmoves are left out: there are too many\n");
    }
    const struct uci_limits limits =
        uci_limits_of(&asked, position->side == CHESS_BLACK, (uint32_t)u->overhead_ms);
    if (!uci_root_searchmoves(&u->job, asked.moves)) {
        printf("info string error: none of these searchmoves is legal\nbestmove (none)\n");
        return;
    }
    u->gui.is_held = asked.infinite || asked.ponder;
    u->is_pondering = asked.ponder;
    u->is_infinite = asked.infinite;
    u->mate = limits.mate;
    u->ponder_us = asked.ponder ? limits.time_ms * UINT64_C(1000) - limits.spare_us : 0;
    u->gui.stop_us = 0;
    u->job.depth = (uint8_t)limits.depth;
    u->job.time_ms = asked.ponder ? 0 : limits.time_ms;
    u->job.spare_us = asked.ponder ? 0 : limits.spare_us;
    u->job.nodes = limits.nodes;
    u->job.at_once = true; /* a clock may run, and nobody is told the figures */
    if (u->is_limited) {
        uint64_t nodes = uci_nodes_of_elo(u->elo);
        u->job.nodes = limits.nodes == 0 || nodes < limits.nodes ? nodes : limits.nodes;
    }
    u->job.lines = limits.mate == 0 ? (unsigned)u->multipv : 1;
    u->job.algorithm = u->algorithm;
    u->job.strict = u->strict;
    /* Pruning depends on alpha: strict implies plain. A mate is proved or refuted by all moves. */
    u->job.full = u->full && !u->strict && limits.mate == 0;
    u->lines.values.count = 0;
    if (u->job.full) {
        uci_root_tablebase(&u->job, &u->lines.values);
    }
    uci_lines_begin(&u->lines, &u->job, limits.mate == 0 ? u->multipv : 1);
    u->job.remote_depth = PROTO_REMOTE_DEPTH_AUTO;
    job_set_namespace(&u->job, 0);
    gui_begin(&u->gui, &u->job, &observer);
}

/* ---- positions and options ---- */

static bool make_moves(struct job *job, char *moves, char *why, size_t size)
{
    for (char *word; (word = strtok_r(moves, " \t", &moves)) != NULL;) {
        uint16_t move;
        if (job->game->parse_move(job->position, word, &move) != ERR_OK) {
            snprintf(why, size, "'%.80s' is not a legal move here", word);
            return false;
        }
        chess_play(job->position, move);
    }
    job->game->format(job->position, job->text);
    return true;
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

/* K, Q, k and q are rights of a king on the e-file and a rook in the corner, unless castling is
 * that of Chess960. Letters of files (Shredder-FEN) are of Chess960 alone. */
static void leave_out_rights(struct chess_position *position, const char *fen)
{
    static const uint8_t corner[4] = {7, 0, 63, 56};
    static const char letter[] = "KQkq";
    for (unsigned i = 0; i < 2; i++) { /* board and side */
        fen += strspn(fen, " \t");
        fen += strcspn(fen, " \t");
    }
    fen += strspn(fen, " \t");
    if (strspn(fen, letter) < strcspn(fen, " \t")) {
        return;
    }
    for (unsigned i = 0; i < 4; i++) {
        const bool is_home =
            (chess_king(position, i / 2) & 7) == 4 && position->rook_home[i] == corner[i];
        if ((position->castling & 1u << i) != 0 && !is_home) {
            position->castling &= (uint8_t) ~(1u << i);
            printf("info string left out castling right '%c': no king and rook at home\n",
                   letter[i]);
        }
    }
    position->chess960 = false;
}

static void set_position(struct uci *u, char *words)
{
    char why[256] = "position startpos|fen ... [moves ...]";
    const char *fen = NULL;
    struct job fresh = {0};
    gui_stop(&u->gui);
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
              job_set_position(&fresh, games_by_name("chess"), fen, why, sizeof why) == ERR_OK;
    if (ok && why[0] != '\0') {
        printf("info string %s\n", why);
    }
    struct chess_position *position = ok ? fresh.position : NULL;
    if (ok && (u->chess960 || position->chess960)) { /* the text is what workers get */
        char text[GAME_TEXT_MAX];
        if (u->chess960) {
            position->chess960 = true;
        } else {
            leave_out_rights(position, fen);
        }
        fresh.game->format(fresh.position, text);
        ok = job_set_position(&fresh, fresh.game, text, why, sizeof why) == ERR_OK;
    }
    ok = ok && (moves == NULL || make_moves(&fresh, moves, why, sizeof why));
    u->is_unset = !ok;
    if (!ok) { /* to play a move of another position would be worse than none */
        printf("info string error: %s; there is no position until the next one\n", why);
        job_free(&fresh);
    } else {
        job_free(&u->job);
        u->job = fresh;
    }
}

/* ---- the loop ---- */

/* False: there is no such command. */
static bool obey_word(struct uci *u, const char *word, char *rest)
{
    if (strcmp(word, "uci") == 0) {
        flockfile(stdout); /* a search may print its lines as well */
        printf("id name abdada %s\nid author the abdada authors\n", PROGRAM_VERSION);
        say_options(u);
        printf("uciok\n");
        funlockfile(stdout);
    } else if (strcmp(word, "isready") == 0) {
        if (!u->gui.is_running) {
            ensure_engine(u); /* opening the tables takes long: before "go" */
        }
        printf("readyok\n");
    } else if (strcmp(word, "ucinewgame") == 0) {
        gui_stop(&u->gui);
        clear_engine(u);
    } else if (strcmp(word, "position") == 0) {
        set_position(u, rest);
    } else if (strcmp(word, "go") == 0) {
        go(u, rest);
    } else if (strcmp(word, "stop") == 0) {
        gui_stop(&u->gui);
    } else if (strcmp(word, "ponderhit") == 0) {
        if (u->is_pondering) {
            u->is_pondering = false;
            u->gui.is_held = u->is_infinite;
            u->gui.stop_us = u->ponder_us ? clock_us() + u->ponder_us : 0;
        }
    } else if (strcmp(word, "setoption") == 0) {
        char *name, *value;
        gui_stop(&u->gui);
        if (uci_cut_option(rest, &name, &value)) {
            take_option(u, name, value == NULL ? "" : value);
        } else {
            printf("info string error: setoption name NAME value VALUE\n");
        }
    } else {
        return obey_person(u, word) || strcmp(word, "debug") == 0 || strcmp(word, "register") == 0;
    }
    return true;
}

/* Words before one that is known are skipped, as UCI demands. False: quit. */
static bool obey(void *self, char *line)
{
    struct uci *u = self;
    char *rest = line;
    const char *first = NULL;
    for (char *word; (word = strtok_r(rest, " \t", &rest)) != NULL;) {
        if (strcmp(word, "quit") == 0) {
            gui_stop(&u->gui);
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

/* What cannot be read may have been a position: see set_position. */
static void refuse(void *self, const char *start, const char *why)
{
    struct uci *u = self;
    const bool is_position = strncmp(start + strspn(start, " \t"), "position", 8) == 0;
    if (is_position) {
        gui_stop(&u->gui);
        u->is_unset = true;
    }
    printf("info string error: %s%s\n", why,
           is_position ? "; there is no position until the next one" : "");
}

static void open_uci(struct uci *u)
{
    *u = (struct uci){
        .gui = {.self = u, .obey = obey, .answer = say_best, .refuse = refuse},
        .resources = {.threads = 1, .share = REMOTE_SHARE_DEPTH, .hash_mib = 64},
        .algorithm = algorithm_by_name("abdada"),
        .full = true,
        .overhead_ms = UCI_OVERHEAD_MS,
        .elo = UCI_ELO_MAX,
        .multipv = 1,
    };
}

/* Until the program is to end. Returns the exit status. */
static int talk(struct uci *u)
{
    char why[256];
    if (!gui_open(&u->gui, program)) {
        return 1;
    }
    const enum err err =
        job_set_position(&u->job, games_by_name("chess"), "startpos", why, sizeof why);
    if (err == ERR_OK) {
        gui_loop(&u->gui);
    } else {
        log_fail(program, "%s", err_text(err));
    }
    close_engine(u);
    job_free(&u->job);
    gui_close(&u->gui);
    return err == ERR_OK ? 0 : 1;
}

int uci_stand_in(const struct gui_stand_in *stand_in, const struct algorithm *algorithm, bool full)
{
    struct uci u;
    open_uci(&u);
    u.gui.stand_in = stand_in;
    u.algorithm = algorithm;
    u.full = full;
    u.overhead_ms = 0;
    return talk(&u);
}

int cli_uci(int argc, char *argv[])
{
    struct uci u;
    char why[256];
    const char *engine = NULL;
    struct cli_resources *resources = &u.resources;
    open_uci(&u);
    enum { THREADS = 4 }; /* one searches; the C library keeps the stacks of others that ended */
    const uint64_t all = memory_for_tables(THREADS), histories = CLI_HISTORIES_BYTES;
    const uint64_t most = (all > histories ? all - histories : 0) >> 20;
    u.hash_max_mib = most < 1 ? 1 : most < CLI_HASH_MAX_MIB ? most : CLI_HASH_MAX_MIB;
    if (resources->hash_mib > u.hash_max_mib) {
        resources->hash_mib = u.hash_max_mib;
    }
    u.good_hash_mib = resources->hash_mib;
    const struct options_row table[] = {
        CLI_TABLE_ROWS(u.resources.table),
        CLI_THREADS_ROWS(u.resources),
        CLI_PRIVATE_ROW(u.resources),
        CLI_METRICS_ROW(u.resources),
        OPTIONS_ROW(TEXT, "engine", "COMMAND", &engine, 0, 0,
                    "this UCI engine in place of our own search, here and on workers that have it"),
        {0},
    };
    const struct options options = {
        .program = program,
        .usage = "[OPTION]...",
        .summary = "Chess engine that speaks UCI on stdin and stdout.",
        .example = {"abdada uci --threads 4 --hash 256",
                    "abdada uci --servers ws1:7400,ws2:7400 --keys keys"},
        .table = table,
    };
    int status = config_parse(&options, argc, argv, NULL, NULL);
    status = status < 0 ? cli_table_environment(program, &u.resources.table, false) : status;
    if (status >= 0) {
        return status;
    }
    if (engine != NULL && resources->metrics.host[0] != '\0') {
        return options_wrong(program, "--metrics is for our own search: ask a ttworker --engine");
    }
    if (engine != NULL && (resources->threads != 1 || resources->hash_mib != u.good_hash_mib ||
                           resources->is_private)) {
        return options_wrong(program, "--threads, --hash and --private are for our own search: set "
                                      "the engine's options in your chess program");
    }
    if (engine != NULL) {
        return engine_front_serve(program, engine, &resources->table);
    }
    resources->game = games_by_name("chess");
    u.good_hash_mib = resources->hash_mib;
    u.good_threads = resources->threads;
    if (cli_check_memory(resources->hash_mib, resources->game, resources->threads, why,
                         sizeof why) != ERR_OK) {
        return log_fail(program, "%s", why);
    }
    return talk(&u);
}
