/* The Go Text Protocol, version 2, as programs that play Othello use it: vertices are squares, "a1"
 * at the top left, or "pass"; a side without a legal move passes, said or not. Commands are obeyed
 * one after the other. Source: G. Farneback, "Specification of the Go Text Protocol, version 2,
 * draft 2", 2002. */
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
#include <sys/resource.h>

enum {
    DEFAULT_TIME_MS = 5000,
    WORDS_MAX = 8, /* of a command; more are too many for each */
    ANSWER_MAX = 2048,
    ID_MAX = INT32_MAX,
    SECONDS_MAX = 10000000,
    PIPE_MS = 10, /* of a move that the controller sees and we do not */
};

struct gtp {
    int64_t id; /* of the command that is obeyed; -1: it has none */
    struct othello_clock clock[2]; /* of Black, of White */
    int64_t stone_ms; /* byo-yomi for each move, by time_settings */
    /* the search under way */
    bool is_kept; /* its move is played */
    bool is_black;
    unsigned moves; /* in the record before the command */
    uint64_t begin_us;
};

/* ---- answers ---- */

static void say(const struct gtp *gtp, char sign, const char *text)
{
    char id[24] = "";
    if (gtp->id >= 0) {
        snprintf(id, sizeof id, "%" PRId64, gtp->id);
    }
    printf("%c%s%s%s\n\n", sign, id, text[0] == '\0' ? "" : " ", text);
}

static void succeed(const struct gtp *gtp, const char *text)
{
    say(gtp, '=', text);
}

static void fail(const struct gtp *gtp, const char *text)
{
    char line[ANSWER_MAX];
    snprintf(line, sizeof line, "%s", text);
    othello_player_clean(line);
    say(gtp, '?', line);
}

/* ---- words ---- */

struct words {
    char *at[WORDS_MAX];
    unsigned count;
};

static bool is_color(const char *word, bool *is_black)
{
    *is_black = strcasecmp(word, "b") == 0 || strcasecmp(word, "black") == 0;
    return *is_black || strcasecmp(word, "w") == 0 || strcasecmp(word, "white") == 0;
}

static bool is_number(const char *word, double *out)
{
    char *end;
    *out = strtod(word, &end);
    return end != word && *end == '\0' && isfinite(*out);
}

/* Seconds or stones. */
static bool is_count(const char *word, int64_t *out)
{
    double number;
    if (!is_number(word, &number) || number < 0) {
        return false;
    }
    *out = (int64_t)(number < SECONDS_MAX ? number : SECONDS_MAX);
    return true;
}

/* ---- moves ---- */

static const char *color_name(bool is_black)
{
    return is_black ? "Black" : "White";
}

static void play(struct othello_player *p, const struct words *w)
{
    const struct gtp *gtp = p->self;
    bool is_black;
    const int move = ggf_move(w->at[2]);
    if (!is_color(w->at[1], &is_black) || move < 0) {
        fail(gtp, "syntax error: play COLOR VERTEX, such as play black d3");
        return;
    }
    switch (othello_record_play(&p->record, is_black, move)) {
    case ERR_OK:
        succeed(gtp, "");
        break;
    case ERR_FULL:
        fail(gtp, "too many moves");
        break;
    default:
        fail(gtp, "illegal move");
    }
}

/* What a move has cost, where the controller does not say it by time_left. */
static void charge(struct gtp *gtp)
{
    struct othello_clock *clock = &gtp->clock[gtp->is_black ? 0 : 1];
    clock->left_ms -= (int64_t)((clock_us() - gtp->begin_us) / 1000) + PIPE_MS;
    if (clock->left_ms < 0 && clock->period_ms > 0) {
        clock->left_ms = 0; /* byo-yomi has begun */
    }
}

/* Says the move and plays it, or takes back the pass that was made for it. */
static void end_move(struct othello_player *p, uint16_t move)
{
    struct gtp *gtp = p->self;
    const struct game *game = p->record.job.game;
    char text[GAME_MOVE_TEXT_MAX] = "pass";
    if (move != 0) {
        game->format_move(p->record.job.position, move, text);
    }
    if (gtp->is_kept) {
        CHECK(othello_record_play(&p->record, gtp->is_black, ggf_move(text)) == ERR_OK);
        charge(gtp);
    } else {
        othello_record_forget(&p->record, gtp->moves);
    }
    succeed(gtp, text);
}

static void answer(struct othello_player *p, bool is_stopped)
{
    struct gtp *gtp = p->self;
    (void)is_stopped;
    if (p->search.result.search.move == 0) {
        othello_record_forget(&p->record, gtp->moves);
        fail(gtp, "the search failed: out of memory");
    } else {
        end_move(p, p->search.result.search.move);
    }
}

static void generate(struct othello_player *p, const struct words *w, bool is_kept)
{
    struct gtp *gtp = p->self;
    struct othello_limits limits = {.lines = 1, .time_ms = p->time_ms};
    bool is_black;
    char why[64];
    if (!is_color(w->at[1], &is_black)) {
        fail(gtp, "syntax error: a color is wanted, black or white");
        return;
    }
    gtp->moves = p->record.moves;
    gtp->is_black = is_black;
    gtp->is_kept = is_kept;
    gtp->begin_us = clock_us();
    if (p->record.moves + 3 > OTHELLO_RECORD_MAX) { /* two passes and the move */
        fail(gtp, "too many moves");
        return;
    }
    if (othello_record_turn_to(&p->record, is_black) != ERR_OK) {
        snprintf(why, sizeof why, "it is %s's turn", color_name(!is_black));
        fail(gtp, why);
        return;
    }
    const uint16_t forced = othello_record_forced(&p->record);
    if (forced != 0 || othello_record_is_over(&p->record)) {
        end_move(p, forced);
        return;
    }
    const struct othello_clock *clock = &gtp->clock[is_black ? 0 : 1];
    if (clock->is_set) {
        limits.time_ms = othello_clock_move_ms(clock, othello_record_empties(&p->record));
    }
    limits.depth = othello_player_depth(p, p->depth, limits.time_ms);
    othello_player_search(p, &limits);
}

static void genmove(struct othello_player *p, const struct words *w)
{
    generate(p, w, true);
}

static void reg_genmove(struct othello_player *p, const struct words *w)
{
    generate(p, w, false);
}

static void undo(struct othello_player *p, const struct words *w)
{
    (void)w;
    if (othello_record_undo(&p->record)) {
        succeed(p->self, "");
    } else {
        fail(p->self, "cannot undo");
    }
}

/* ---- the board ---- */

static void clear_board(struct othello_player *p, const struct words *w)
{
    (void)w;
    if (othello_record_clear(&p->record) != ERR_OK) {
        fail(p->self, err_text(ERR_NOMEM));
    } else {
        succeed(p->self, "");
    }
}

static void boardsize(struct othello_player *p, const struct words *w)
{
    double size;
    if (!is_number(w->at[1], &size)) {
        fail(p->self, "syntax error: a size is wanted");
    } else if (size < 8 || size > 8) {
        fail(p->self, "unacceptable size");
    } else {
        clear_board(p, w);
    }
}

static void komi(struct othello_player *p, const struct words *w)
{
    double number;
    if (is_number(w->at[1], &number)) {
        succeed(p->self, ""); /* means nothing in Othello */
    } else {
        fail(p->self, "syntax error: a number is wanted");
    }
}

static void set_game(struct othello_player *p, const struct words *w)
{
    if (strcasecmp(w->at[1], "othello") == 0) {
        clear_board(p, w);
    } else {
        fail(p->self, "unknown game: there is Othello");
    }
}

static void list_games(struct othello_player *p, const struct words *w)
{
    (void)w;
    succeed(p->self, "Othello");
}

static void showboard(struct othello_player *p, const struct words *w)
{
    char text[ANSWER_MAX];
    const char *squares = p->record.job.text;
    unsigned black = 0, white = 0;
    size_t used = (size_t)snprintf(text, sizeof text, "\n  A B C D E F G H");
    (void)w;
    for (unsigned i = 0; i < OTHELLO_SQUARES; i++) {
        black += squares[i] == 'X';
        white += squares[i] == 'O';
        if (i % 8 == 0) {
            used += (size_t)snprintf(text + used, sizeof text - used, "\n%u", i / 8 + 1);
        }
        used += (size_t)snprintf(text + used, sizeof text - used, " %c",
                                 squares[i] == '-' ? '.' : squares[i]);
    }
    snprintf(text + used, sizeof text - used, "\nX Black %u, O White %u, %s", black, white,
             othello_record_is_over(&p->record)       ? "the game is over"
             : othello_record_black_moves(&p->record) ? "X to move"
                                                      : "O to move");
    succeed(p->self, text);
}

static void final_score(struct othello_player *p, const struct words *w)
{
    char text[16] = "0";
    (void)w;
    if (!othello_record_is_over(&p->record)) {
        fail(p->self, "cannot score: the game is not over");
        return;
    }
    const int score = othello_record_score(&p->record);
    if (score != 0) {
        snprintf(text, sizeof text, "%c+%d", score > 0 ? 'B' : 'W', abs(score));
    }
    succeed(p->self, text);
}

/* ---- time ---- */

static void time_settings(struct othello_player *p, const struct words *w)
{
    struct gtp *gtp = p->self;
    int64_t main_s, period_s, stones;
    if (!is_count(w->at[1], &main_s) || !is_count(w->at[2], &period_s) ||
        !is_count(w->at[3], &stones)) {
        fail(gtp, "syntax error: three numbers are wanted: main time, byo-yomi time, stones");
        return;
    }
    gtp->stone_ms = stones > 0 ? period_s * 1000 / stones : 0;
    gtp->clock[0] = gtp->clock[1] = (struct othello_clock){
        .is_set = period_s == 0 || stones > 0, /* byo-yomi without stones: there is no limit */
        .left_ms = main_s * 1000,
        .period_ms = gtp->stone_ms,
    };
    succeed(gtp, "");
}

static void time_left(struct othello_player *p, const struct words *w)
{
    struct gtp *gtp = p->self;
    int64_t left_s, stones;
    bool is_black;
    if (!is_color(w->at[1], &is_black) || !is_count(w->at[2], &left_s) ||
        !is_count(w->at[3], &stones)) {
        fail(gtp, "syntax error: a color and two numbers are wanted: time, stones");
        return;
    }
    gtp->clock[is_black ? 0 : 1] = (struct othello_clock){
        .is_set = true,
        .left_ms = stones > 0 ? 0 : left_s * 1000,
        .period_ms = stones > 0 ? left_s * 1000 / stones : gtp->stone_ms,
    };
    succeed(gtp, "");
}

static void cputime(struct othello_player *p, const struct words *w)
{
    struct rusage usage = {0};
    char text[32];
    (void)w;
    (void)getrusage(RUSAGE_SELF, &usage);
    snprintf(text, sizeof text, "%.2f",
             (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
                 (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6);
    succeed(p->self, text);
}

/* ---- commands ---- */

static void protocol_version(struct othello_player *p, const struct words *w)
{
    (void)w;
    succeed(p->self, "2");
}

static void name(struct othello_player *p, const struct words *w)
{
    (void)w;
    succeed(p->self, "abdada");
}

static void version(struct othello_player *p, const struct words *w)
{
    (void)w;
    succeed(p->self, PROGRAM_VERSION);
}

static void quit(struct othello_player *p, const struct words *w)
{
    (void)w;
    succeed(p->self, "");
}

static void known_command(struct othello_player *p, const struct words *w);
static void list_commands(struct othello_player *p, const struct words *w);

static const struct command {
    const char *name;
    unsigned arguments; /* more are ignored, as the specification allows */
    void (*run)(struct othello_player *p, const struct words *w);
} commands[] = {
    {"protocol_version", 0, protocol_version},
    {"name", 0, name},
    {"version", 0, version},
    {"known_command", 1, known_command},
    {"list_commands", 0, list_commands},
    {"quit", 0, quit},
    {"boardsize", 1, boardsize},
    {"clear_board", 0, clear_board},
    {"komi", 1, komi},
    {"play", 2, play},
    {"genmove", 1, genmove},
    {"reg_genmove", 1, reg_genmove},
    {"undo", 0, undo},
    {"showboard", 0, showboard},
    {"final_score", 0, final_score},
    {"time_settings", 3, time_settings},
    {"time_left", 3, time_left},
    {"set_game", 1, set_game},
    {"list_games", 0, list_games},
    {"cputime", 0, cputime},
};
enum { COMMANDS = sizeof commands / sizeof *commands };

static const struct command *find(const char *word)
{
    for (unsigned i = 0; i < COMMANDS; i++) {
        if (strcmp(word, commands[i].name) == 0) {
            return &commands[i];
        }
    }
    return NULL;
}

static void known_command(struct othello_player *p, const struct words *w)
{
    succeed(p->self, find(w->at[1]) != NULL ? "true" : "false");
}

static void list_commands(struct othello_player *p, const struct words *w)
{
    char text[ANSWER_MAX];
    size_t used = 0;
    (void)w;
    for (unsigned i = 0; i < COMMANDS; i++) {
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%s", i == 0 ? "" : "\n",
                                 commands[i].name);
    }
    succeed(p->self, text);
}

/* Comments and control characters go, as section 2 of the specification says. */
static void prepare(char *line)
{
    char *to = line;
    for (const char *c = line; *c != '\0' && *c != '#'; c++) {
        if (*c == '\t') {
            *to++ = ' ';
        } else if (!iscntrl((unsigned char)*c)) {
            *to++ = *c;
        }
    }
    *to = '\0';
}

static bool is_id(const char *word, int64_t *id)
{
    uint64_t number;
    if (options_unsigned(word, 0, ID_MAX, &number) != ERR_OK) {
        return false;
    }
    *id = (int64_t)number;
    return true;
}

static bool obey(struct othello_player *p, char *line)
{
    struct gtp *gtp = p->self;
    struct words w = {.count = 0};
    char *rest = line, *word;
    gtp->id = -1;
    prepare(line);
    word = strtok_r(line, " ", &rest);
    if (word != NULL && is_id(word, &gtp->id)) {
        word = strtok_r(rest, " ", &rest);
    }
    for (; word != NULL && w.count < WORDS_MAX; word = strtok_r(rest, " ", &rest)) {
        w.at[w.count++] = word;
    }
    if (w.count == 0 && gtp->id < 0) {
        return true; /* an empty line */
    }
    const struct command *command = w.count > 0 ? find(w.at[0]) : NULL;
    if (command == NULL) {
        fail(gtp, "unknown command");
    } else if (w.count <= command->arguments) {
        char why[64];
        snprintf(why, sizeof why, "syntax error: %s takes %u argument%s", command->name,
                 command->arguments, command->arguments == 1 ? "" : "s");
        fail(gtp, why);
    } else {
        command->run(p, &w);
    }
    return command == NULL || command->run != quit;
}

static void refuse(struct othello_player *p, const char *why)
{
    struct gtp *gtp = p->self;
    gtp->id = -1;
    fail(gtp, why);
}

int cli_gtp(int argc, char *argv[])
{
    static const struct othello_protocol protocol = {
        .program = "abdada gtp",
        .summary = "Othello engine that speaks GTP, version 2, on stdin and stdout.",
        .has_game = true,
        .is_ordered = true,
        .obey = obey,
        .answer = answer,
        .refuse = refuse,
    };
    struct gtp gtp = {.id = -1};
    struct othello_player player = {
        .protocol = &protocol, .self = &gtp, .depth = OTHELLO_SQUARES, .time_ms = DEFAULT_TIME_MS};
    return othello_player_main(&player, argc, argv);
}
