/* The NBoard protocol, version 2: commands on stdin, answers on stdout. A command that comes during
 * a search ends it; its answer then goes out first. Source: C. Welty, "NBoard Protocol". */
#include "worker/programs/othello/othello_clock.h"
#include "worker/programs/othello/othello_player.h"

#include "common/clock.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { DEFAULT_DEPTH = 12, TEXT_MAX = 512, VERSION_MAX = 1000, PING_MAX = 2000000000 };

enum task { TASK_GO, TASK_HINT, TASK_ANALYZE };

struct nboard {
    enum task task; /* of the search under way, or the last */
    uint64_t begin_us;
    struct othello_clock clock[2]; /* of Black, of White */
    int64_t extra_ms[2]; /* when the clock has run out */
};

/* The GUI shows it, and takes no other notice. */
static void say_error(const char *text)
{
    char line[TEXT_MAX];
    snprintf(line, sizeof line, "%s", text);
    othello_player_clean(line);
    printf("status error: %s\n", line);
}

/* ---- what is found ---- */

struct line_text {
    char text[2 * SEARCH_PV_MAX + 1];
    size_t used;
};

static void add_move(struct line_text *line, const char *move)
{
    const bool is_pass = strcmp(move, "pass") == 0;
    if (line->used + 2 < sizeof line->text) {
        line->text[line->used++] = is_pass ? 'P' : (char)toupper((unsigned char)move[0]);
        line->text[line->used++] = is_pass ? 'A' : move[1];
        line->text[line->used] = '\0';
    }
}

static void move_text(const struct job *job, uint16_t move, char text[3])
{
    char name[GAME_MOVE_TEXT_MAX];
    struct line_text line = {.used = 0};
    job->game->format_move(job->position, move, name);
    add_move(&line, name);
    memcpy(text, line.text, 3);
}

/* Moves without blanks between, or the GUI would take the second for the value. */
static void write_line(const struct job *job, const struct search_result *r, struct line_text *out)
{
    char text[GAME_MOVE_TEXT_MAX];
    unsigned made = 0;
    *out = (struct line_text){.used = 0};
    if (r->pv.length == 0) { /* a result of others may come without a line */
        job->game->format_move(job->position, r->move, text);
        add_move(out, text);
    }
    for (; made < r->pv.length; made++) {
        job->game->format_move(job->position, r->pv.move[made], text);
        add_move(out, text);
        job->game->make(job->position, r->pv.move[made]);
    }
    while (made > 0) {
        job->game->unmake(job->position, r->pv.move[--made]);
    }
}

static void say_iteration(struct othello_player *p, unsigned number, const struct search_result *r,
                          const struct engine_status *s)
{
    const struct nboard *nboard = p->self;
    struct line_text line;
    char depth[16] = "100%"; /* so the GUI knows that the value is exact */
    (void)number;
    if (r->bound != TT_EXACT || r->move == 0 || nboard->task == TASK_ANALYZE) {
        return;
    }
    write_line(&p->record.job, r, &line);
    if (!othello_player_is_solved(p, r)) {
        snprintf(depth, sizeof depth, "%u", r->depth);
    }
    printf("search %s %.2f 0 %s nodes %" PRIu64 " time %.2f\n", line.text, (double)r->score, depth,
           s->nodes, (double)s->time_us / 1e6);
}

static void say_progress(struct othello_player *p, const struct engine_status *s)
{
    const struct nboard *nboard = p->self;
    char text[OTHELLO_HELP_MAX];
    if (othello_player_help(s, text)) {
        printf("status %s: %s\n", nboard->task == TASK_GO ? "thinking" : "analyzing", text);
    }
    printf("nodestats %" PRIu64 " %.2f\n", s->nodes, (double)s->time_us / 1e6);
}

static bool analyze_next(struct othello_player *p);

static void say_analysis(struct othello_player *p, int score)
{
    printf("analysis %u %.2f\n", p->record.at, (double)score);
}

static void answer(struct othello_player *p, bool is_stopped)
{
    const struct nboard *nboard = p->self;
    const struct engine_result *result = &p->search.result;
    char move[3];
    if (result->search.move == 0) {
        say_error("the search failed: out of memory");
    } else if (nboard->task == TASK_GO) {
        printf("nodestats %" PRIu64 " %.2f\n", result->status.nodes,
               (double)result->status.time_us / 1e6);
        move_text(&p->record.job, result->search.move, move);
        printf("=== %s/%.2f/%.2f\n", move, (double)result->search.score,
               (double)(clock_us() - nboard->begin_us) / 1e6);
    } else if (nboard->task == TASK_ANALYZE) {
        if (!is_stopped) { /* a value of a search that was cut short would mislead */
            say_analysis(p, result->search.score);
        }
        if (!is_stopped && analyze_next(p)) {
            return;
        }
        othello_record_go_to(&p->record, p->record.moves);
    }
    printf("status\n");
}

/* ---- searches ---- */

static void begin(struct othello_player *p, enum task task, uint32_t time_ms, unsigned lines)
{
    struct nboard *nboard = p->self;
    const struct othello_limits limits = {
        .depth = othello_player_depth(p, p->depth, time_ms), .time_ms = time_ms, .lines = lines};
    nboard->task = task;
    nboard->begin_us = clock_us();
    othello_player_search(p, &limits);
}

static uint32_t move_ms(const struct othello_player *p)
{
    const struct nboard *nboard = p->self;
    const unsigned side = othello_record_black_moves(&p->record) ? 0 : 1;
    struct othello_clock clock = nboard->clock[side];
    if (!clock.is_set) {
        return p->time_ms;
    }
    if (clock.left_ms <= 0) { /* less is lost by too long a move than by none */
        clock.left_ms += nboard->extra_ms[side];
    }
    return othello_clock_move_ms(&clock, othello_record_empties(&p->record));
}

static void go(struct othello_player *p)
{
    const uint16_t forced = othello_record_forced(&p->record);
    char move[3];
    if (othello_record_is_over(&p->record)) {
        printf("=== PA\nstatus the game is over\n"); /* each "go" has an answer */
    } else if (forced != 0) {
        move_text(&p->record.job, forced, move);
        printf("=== %s\n", move);
    } else {
        printf("status thinking\n");
        begin(p, TASK_GO, move_ms(p), 1);
    }
}

static bool read_number(const char *text, uint64_t min, uint64_t max, uint64_t *out,
                        const char *command)
{
    char why[TEXT_MAX];
    if (text != NULL && options_unsigned(text, min, max, out) == ERR_OK) {
        return true;
    }
    snprintf(why, sizeof why, "%s: a number from %" PRIu64 " to %" PRIu64 " is wanted, not '%.40s'",
             command, min, max, text == NULL ? "" : text);
    say_error(why);
    return false;
}

static void hint(struct othello_player *p, const char *count)
{
    uint64_t lines = 1;
    if (count != NULL && !read_number(count, 1, GAME_MOVES_MAX, &lines, "hint")) {
        return;
    }
    if (othello_record_is_over(&p->record)) {
        printf("status the game is over\n");
        return;
    }
    printf("status analyzing\n");
    begin(p, TASK_HINT, p->time_ms, (unsigned)lines);
}

/* Goes on with the position before the last one. Where the game is over its value is known. False:
 * there is none left. */
static bool analyze_next(struct othello_player *p)
{
    if (p->record.at == 0) {
        return false;
    }
    othello_record_go_to(&p->record, p->record.at - 1);
    begin(p, TASK_ANALYZE, p->time_ms, 1);
    return true;
}

static void analyze(struct othello_player *p)
{
    printf("status analyzing the game\n");
    if (!othello_record_is_over(&p->record)) {
        begin(p, TASK_ANALYZE, p->time_ms, 1);
        return;
    }
    const int score = othello_record_score(&p->record);
    say_analysis(p, othello_record_black_moves(&p->record) ? score : -score);
    if (!analyze_next(p)) {
        printf("status\n");
    }
}

/* ---- the game ---- */

static void set_game(struct othello_player *p, const char *text)
{
    struct nboard *nboard = p->self;
    struct ggf_game game;
    char why[GGF_WHY_MAX], reason[OTHELLO_RECORD_WHY_MAX];
    if (!ggf_parse(text, &game, why)) {
        say_error(why);
        return;
    }
    if (othello_record_set(&p->record, &game, reason) != ERR_OK) {
        say_error(reason);
        return;
    }
    for (unsigned side = 0; side < 2; side++) {
        const struct ggf_clock *c = &game.clock[side];
        const bool is_first = game.is_black == (side == 0);
        nboard->clock[side] = (struct othello_clock){
            .is_set = c->is_set,
            .left_ms = c->main_ms - game.used_ms[side] +
                       c->increment_ms * ((game.moves + (is_first ? 1 : 0)) / 2),
            .increment_ms = c->increment_ms,
        };
        nboard->extra_ms[side] = c->extra_ms;
    }
}

static void make_move(struct othello_player *p, const char *text)
{
    struct nboard *nboard = p->self;
    char why[TEXT_MAX];
    int64_t used_ms;
    const int move = text == NULL ? -1 : ggf_move_and_time(text, &used_ms);
    const bool is_black = othello_record_black_moves(&p->record);
    if (move < 0 || othello_record_play(&p->record, is_black, move) != ERR_OK) {
        snprintf(why, sizeof why, "'%.40s' is not a legal move for %s", text == NULL ? "" : text,
                 is_black ? "Black" : "White");
        say_error(why);
        return;
    }
    struct othello_clock *clock = &nboard->clock[is_black ? 0 : 1];
    clock->left_ms += clock->increment_ms - used_ms;
}

static void set_contempt(const char *text)
{
    char *end = NULL, why[TEXT_MAX];
    if (text == NULL || !isfinite(strtod(text, &end)) || end == text || *end != '\0') {
        snprintf(why, sizeof why, "set contempt: a number is wanted, not '%.40s'",
                 text == NULL ? "" : text);
        say_error(why); /* else nothing: every draw is worth nothing to both here */
    }
}

/* ---- commands ---- */

static void obey_set(struct othello_player *p, char *words)
{
    char *rest = words;
    const char *name = strtok_r(words, " \t", &rest);
    uint64_t depth;
    if (name == NULL) {
        return;
    }
    if (strcmp(name, "game") == 0) {
        othello_player_stop(p);
        set_game(p, rest);
    } else if (strcmp(name, "depth") == 0) {
        othello_player_stop(p);
        if (read_number(strtok_r(rest, " \t", &rest), 1, SEARCH_DEPTH_MAX, &depth, "set depth")) {
            p->depth = (uint32_t)depth;
            printf("set myname abdada\n");
        }
    } else if (strcmp(name, "contempt") == 0) {
        othello_player_stop(p);
        set_contempt(strtok_r(rest, " \t", &rest));
    }
}

static void ping(const char *text)
{
    uint64_t number;
    if (read_number(text, 0, PING_MAX, &number, "ping")) {
        printf("pong %" PRIu64 "\n", number);
    }
}

static void version(const char *text)
{
    uint64_t number;
    if (read_number(text, 1, VERSION_MAX, &number, "nboard")) {
        printf("set myname abdada\n");
    }
}

/* What the protocol does not know is ignored, as it demands: it goes on to grow. */
static bool obey(struct othello_player *p, char *line)
{
    static const char *const known[] = {"nboard", "set",   "move",    "hint",    "go",
                                        "ping",   "learn", "analyze", "analyse", "quit"};
    enum { NBOARD, SET, MOVE, HINT, GO, PING, GAME_ENDED, ANALYZE, ANALYSE, QUIT, COMMANDS };
    _Static_assert(COMMANDS == sizeof known / sizeof *known, "one name for each");
    char *rest = line;
    line[strcspn(line, "\r")] = '\0';
    char *word = strtok_r(line, " \t", &rest);
    unsigned i = 0;
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
        othello_player_stop(p);
    }
    switch (i) {
    case NBOARD:
        version(strtok_r(rest, " \t", &rest));
        break;
    case SET:
        obey_set(p, rest);
        break;
    case MOVE:
        make_move(p, strtok_r(rest, " \t", &rest));
        break;
    case HINT:
        hint(p, strtok_r(rest, " \t", &rest));
        break;
    case GO:
        go(p);
        break;
    case PING:
        ping(strtok_r(rest, " \t", &rest));
        break;
    case GAME_ENDED:
        printf("learned\n"); /* there is no book to add the game to */
        break;
    case ANALYZE:
    case ANALYSE:
        analyze(p);
        break;
    default:
        break;
    }
    return i != QUIT;
}

static void refuse(struct othello_player *p, const char *why)
{
    othello_player_stop(p);
    say_error(why);
}

int cli_nboard(int argc, char *argv[])
{
    static const struct othello_protocol protocol = {
        .program = "abdada nboard",
        .summary = "Othello engine that speaks the NBoard protocol on stdin and stdout.",
        .obey = obey,
        .answer = answer,
        .refuse = refuse,
        .iteration = say_iteration,
        .progress = say_progress,
    };
    struct nboard nboard = {.task = TASK_GO};
    struct othello_player player = {.protocol = &protocol, .self = &nboard, .depth = DEFAULT_DEPTH};
    return othello_player_main(&player, argc, argv);
}
