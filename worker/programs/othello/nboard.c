/* The NBoard protocol, version 2: commands on stdin, answers on stdout. A command that comes during
 * a search ends it; its answer then goes out first. Source: C. Welty, "NBoard Protocol". */
#include "proto/codec.h"
#include "worker/programs/othello/othello_clock.h"
#include "worker/programs/othello/othello_player.h"
#include "worker/programs/score.h"

#include "common/clock.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEFAULT_DEPTH = 12, TEXT_MAX = 512, VERSION_MAX = 1000, PING_MAX = 2000000000 };

enum task { TASK_GO, TASK_HINT, TASK_ANALYZE };

struct nboard {
    struct othello_player player;
    enum task task; /* of the search under way, or the last */
    uint64_t begin_us;
    struct othello_clock clock[2]; /* of Black, of White */
    int64_t extra_ms[2]; /* when the clock has run out */
    bool is_unset; /* the last `set game` was refused: the game is not the one before */
};

/* The GUI shows it, and takes no other notice. */
static void say_error(const char *format, ...) __attribute__((format(printf, 1, 2)));

static void say_error(const char *format, ...)
{
    char line[TEXT_MAX];
    va_list list;
    va_start(list, format);
    vsnprintf(line, sizeof line, format, list);
    va_end(list);
    proto_text_printable(proto_text_of(line), line, sizeof line);
    printf("status error: %s\n", line);
}

/* ---- what is found ---- */

struct line_text {
    char text[2 * SEARCH_PV_MAX + 1];
    size_t used;
};

static void add_move(void *context, const char *move)
{
    struct line_text *line = context;
    const bool is_pass = strcmp(move, "pass") == 0;
    if (line->used + 2 < sizeof line->text) {
        line->text[line->used++] = is_pass ? 'P' : (char)toupper((unsigned char)move[0]);
        line->text[line->used++] = is_pass ? 'A' : move[1];
        line->text[line->used] = '\0';
    }
}

static struct line_text move_text(const struct job *job, uint16_t move)
{
    char name[GAME_MOVE_TEXT_MAX];
    struct line_text line = {.used = 0};
    job->game->format_move(job->position, move, name);
    add_move(&line, name);
    return line;
}

static void say_iteration(void *self, const struct search_result *r, const struct engine_status *s)
{
    const struct nboard *nboard = self;
    const struct job *job = &nboard->player.record.job;
    struct line_text line = {.used = 0}; /* with blanks the GUI would take a move for the value */
    char depth[16] = "100%"; /* so the GUI knows that the value is exact */
    if (r->bound != TT_EXACT || r->move == 0 || nboard->task == TASK_ANALYZE) {
        return;
    }
    if (r->pv.length == 0) { /* a result of others may come without a line */
        line = move_text(job, r->move);
    } else {
        score_line(job, &r->pv, false, add_move, &line);
    }
    if (!othello_player_is_solved(&nboard->player, r)) {
        snprintf(depth, sizeof depth, "%u", r->depth);
    }
    printf("search %s %.2f 0 %s nodes %" PRIu64 " time %.2f\n", line.text, (double)r->score, depth,
           s->sum.nodes, (double)s->time_us / 1e6);
}

static void say_progress(void *self, const struct engine_status *s)
{
    const struct nboard *nboard = self;
    char text[OTHELLO_HELP_MAX];
    if (othello_player_help(s, text)) {
        printf("status %s: %s\n", nboard->task == TASK_GO ? "thinking" : "analyzing", text);
    }
    printf("nodestats %" PRIu64 " %.2f\n", s->sum.nodes, (double)s->time_us / 1e6);
}

static bool analyze_next(struct nboard *nboard);

static void say_analysis(struct nboard *nboard, int score)
{
    printf("analysis %u %.2f\n", nboard->player.record.at, (double)score);
}

static void answer(void *self, bool is_stopped)
{
    struct nboard *nboard = self;
    const struct engine_result *result = &nboard->player.gui.result;
    if (result->search.move == 0) {
        say_error("the search failed: out of memory");
    } else if (nboard->task == TASK_GO) {
        printf("nodestats %" PRIu64 " %.2f\n", result->status.sum.nodes,
               (double)result->status.time_us / 1e6);
        printf("=== %s/%.2f/%.2f\n",
               move_text(&nboard->player.record.job, result->search.move).text,
               (double)result->search.score, (double)(clock_us() - nboard->begin_us) / 1e6);
    } else if (nboard->task == TASK_ANALYZE) {
        if (!is_stopped) { /* a value of a search that was cut short would mislead */
            say_analysis(nboard, result->search.score);
        }
        if (!is_stopped && analyze_next(nboard)) {
            return;
        }
        othello_record_go_to(&nboard->player.record, nboard->player.record.moves);
    }
    printf("status\n");
}

/* ---- searches ---- */

static void begin(struct nboard *nboard, enum task task, uint32_t time_ms, unsigned lines)
{
    nboard->task = task;
    nboard->begin_us = clock_us();
    othello_player_search(&nboard->player, time_ms, lines);
}

static uint32_t move_ms(const struct nboard *nboard)
{
    const unsigned side = othello_record_black_moves(&nboard->player.record) ? 0 : 1;
    struct othello_clock clock = nboard->clock[side];
    if (!clock.is_set) {
        return nboard->player.time_ms;
    }
    if (clock.left_ms <= 0) { /* less is lost by too long a move than by none */
        clock.left_ms += nboard->extra_ms[side];
    }
    return othello_clock_move_ms(&clock, othello_record_empties(&nboard->player.record));
}

static void go(struct nboard *nboard)
{
    const uint16_t forced = othello_record_forced(&nboard->player.record);
    if (othello_record_is_over(&nboard->player.record)) {
        printf("=== PA\nstatus the game is over\n"); /* each "go" has an answer */
    } else if (forced != 0) {
        printf("=== %s\n", move_text(&nboard->player.record.job, forced).text);
    } else {
        printf("status thinking\n");
        begin(nboard, TASK_GO, move_ms(nboard), 1);
    }
}

static bool read_number(const char *text, uint64_t min, uint64_t max, uint64_t *out,
                        const char *command)
{
    if (text != NULL && options_unsigned(text, min, max, out) == ERR_OK) {
        return true;
    }
    say_error("%s: a number from %" PRIu64 " to %" PRIu64 " is wanted, not '%.40s'", command, min,
              max, text == NULL ? "" : text);
    return false;
}

static void hint(struct nboard *nboard, const char *count)
{
    uint64_t lines = 1;
    if (count != NULL && !read_number(count, 1, GAME_MOVES_MAX, &lines, "hint")) {
        return;
    }
    if (othello_record_is_over(&nboard->player.record)) {
        printf("status the game is over\n");
        return;
    }
    printf("status analyzing\n");
    begin(nboard, TASK_HINT, nboard->player.time_ms, (unsigned)lines);
}

/* Begins to search the position. Where the game is over its value is known, and the one before is
 * next; passes may follow the end. False: there is none left. */
static bool analyze_here(struct nboard *nboard)
{
    struct othello_record *record = &nboard->player.record;
    while (othello_record_is_over(record)) {
        const int score = othello_record_score(record);
        say_analysis(nboard, othello_record_black_moves(record) ? score : -score);
        if (record->at == 0) {
            return false;
        }
        othello_record_go_to(record, record->at - 1);
    }
    begin(nboard, TASK_ANALYZE, nboard->player.time_ms, 1);
    return true;
}

/* Goes on with the position before the last one. False: there is none left. */
static bool analyze_next(struct nboard *nboard)
{
    struct othello_record *record = &nboard->player.record;
    if (record->at == 0) {
        return false;
    }
    othello_record_go_to(record, record->at - 1);
    return analyze_here(nboard);
}

static void analyze(struct nboard *nboard)
{
    printf("status analyzing the game\n");
    if (!analyze_here(nboard)) {
        othello_record_go_to(&nboard->player.record, nboard->player.record.moves);
        printf("status\n");
    }
}

/* ---- the game ---- */

static void set_game(struct nboard *nboard, const char *text)
{
    struct ggf_game game;
    char why[OTHELLO_RECORD_WHY_MAX];
    nboard->is_unset = true;
    if (!ggf_parse(text, &game, why) ||
        othello_record_set(&nboard->player.record, &game.game, why) != ERR_OK) {
        say_error("%s", why);
        return;
    }
    nboard->is_unset = false;
    for (unsigned side = 0; side < 2; side++) {
        const struct ggf_clock *c = &game.clock[side];
        const bool is_first = game.game.is_black == (side == 0);
        nboard->clock[side] = (struct othello_clock){
            .is_set = c->is_set,
            .left_ms = c->main_ms - game.used_ms[side] +
                       c->increment_ms * ((game.game.moves + (is_first ? 1 : 0)) / 2),
            .increment_ms = c->increment_ms,
        };
        nboard->extra_ms[side] = c->extra_ms;
    }
}

static void make_move(struct nboard *nboard, const char *text)
{
    int64_t used_ms;
    const int move = text == NULL ? -1 : ggf_move_and_time(text, &used_ms);
    const bool is_black = othello_record_black_moves(&nboard->player.record);
    if (move < 0 || othello_record_play(&nboard->player.record, is_black, move) != ERR_OK) {
        say_error("'%.40s' is not a legal move for %s", text == NULL ? "" : text,
                  is_black ? "Black" : "White");
        return;
    }
    struct othello_clock *clock = &nboard->clock[is_black ? 0 : 1];
    clock->left_ms += clock->increment_ms - used_ms;
}

/* ---- commands ---- */

static void obey_set(struct nboard *nboard, char *words)
{
    char *rest = words;
    const char *name = strtok_r(words, " \t", &rest);
    uint64_t depth;
    if (name == NULL) {
        return;
    }
    if (strcmp(name, "game") == 0) {
        gui_stop(&nboard->player.gui);
        set_game(nboard, rest);
    } else if (strcmp(name, "depth") == 0) {
        gui_stop(&nboard->player.gui);
        if (read_number(strtok_r(rest, " \t", &rest), 1, SEARCH_DEPTH_MAX, &depth, "set depth")) {
            nboard->player.depth = (uint32_t)depth;
            printf("set myname abdada\n");
        }
    } else if (strcmp(name, "contempt") == 0) {
        gui_stop(&nboard->player.gui);
        const char *text = strtok_r(rest, " \t", &rest);
        char *end = NULL;
        if (text == NULL || !isfinite(strtod(text, &end)) || end == text || *end != '\0') {
            say_error("set contempt: a number is wanted, not '%.40s'", text == NULL ? "" : text);
        } /* else nothing: every draw is worth nothing to both here */
    }
}

/* What the protocol does not know is ignored, as it demands: it goes on to grow. */
static bool obey(void *self, char *line)
{
    static const char *const known[] = {"nboard", "set",   "move",    "hint",    "go",
                                        "ping",   "learn", "analyze", "analyse", "quit"};
    enum { NBOARD, SET, MOVE, HINT, GO, PING, GAME_ENDED, ANALYZE, ANALYSE, QUIT, COMMANDS };
    const unsigned need_game = 1u << MOVE | 1u << HINT | 1u << GO | 1u << ANALYZE | 1u << ANALYSE;
    struct nboard *nboard = self;
    _Static_assert(COMMANDS == sizeof known / sizeof *known, "one name for each");
    char *rest = line;
    line[strcspn(line, "\r")] = '\0';
    char *word = strtok_r(line, " \t", &rest);
    unsigned i = 0;
    uint64_t number;
    if (word == NULL) {
        return true;
    }
    while (i < COMMANDS && strcmp(word, known[i]) != 0) {
        i++;
    }
    if (i == COMMANDS && ggf_move(word) >= 0) { /* NBoard 1.1 says no more of a move */
        i = MOVE;
        rest = word;
    }
    if (i != SET && i != COMMANDS) { /* of "set", only what is known ends a search */
        gui_stop(&nboard->player.gui);
    }
    if (nboard->is_unset && (need_game >> i & 1) != 0) {
        say_error("there is no game: the last `set game` was refused");
        return true;
    }
    if (i == SET) {
        obey_set(nboard, rest);
        return true;
    }
    const char *next = strtok_r(rest, " \t", &rest);
    switch (i) {
    case NBOARD:
        if (read_number(next, 1, VERSION_MAX, &number, "nboard")) {
            printf("set myname abdada\n");
        }
        break;
    case MOVE:
        make_move(nboard, next);
        break;
    case HINT:
        hint(nboard, next);
        break;
    case GO:
        go(nboard);
        break;
    case PING:
        if (read_number(next, 0, PING_MAX, &number, "ping")) {
            printf("pong %" PRIu64 "\n", number);
        }
        break;
    case GAME_ENDED:
        printf("learned\n"); /* there is no book to add the game to */
        break;
    case ANALYZE:
    case ANALYSE:
        analyze(nboard);
        break;
    default:
        break;
    }
    return i != QUIT;
}

/* What cannot be read may have been a game. */
static void refuse(void *self, const char *start, const char *why)
{
    char word[8], what[8];
    struct nboard *nboard = self;
    gui_stop(&nboard->player.gui);
    if (sscanf(start, "%7s %7s", word, what) == 2 && strcmp(word, "set") == 0 &&
        strcmp(what, "game") == 0) {
        nboard->is_unset = true;
    }
    say_error("%s", why);
}

int cli_nboard(int argc, char *argv[])
{
    struct nboard nboard = {
        .player = {.gui = {.self = &nboard, .obey = obey, .answer = answer, .refuse = refuse},
                   .program = "abdada nboard",
                   .summary = "Othello engine that speaks the NBoard protocol on stdin and stdout.",
                   .example = {"abdada nboard --threads 4 --time 2000",
                               "abdada nboard --servers ws1:7400,ws2:7400 --keys keys"},
                   .iteration = say_iteration,
                   .progress = say_progress,
                   .depth = DEFAULT_DEPTH},
        .task = TASK_GO,
    };
    return othello_player_main(&nboard.player, argc, argv);
}
