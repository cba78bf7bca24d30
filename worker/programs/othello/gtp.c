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
    struct othello_player player;
    char *word[WORDS_MAX]; /* of the command that is obeyed */
    unsigned words;
    int64_t id; /* its number; -1: it has none */
    char text[ANSWER_MAX]; /* what it answers if it succeeds */
    bool is_late; /* a search answers it */
    struct othello_clock clock[2]; /* of Black, of White */
    int64_t stone_ms; /* byo-yomi for each move, by time_settings */
    /* the search under way */
    bool is_kept; /* its move is played */
    bool is_black;
    unsigned moves; /* in the record before the command */
    uint64_t begin_us;
};

/* Success ('=') or failure ('?'). */
static void say(const struct gtp *gtp, char sign, const char *text)
{
    char id[24] = "";
    if (gtp->id >= 0) {
        snprintf(id, sizeof id, "%" PRId64, gtp->id);
    }
    printf("%c%s%s%s\n\n", sign, id, text[0] == '\0' ? "" : " ", text);
}

/* ---- words ---- */

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

/* ---- moves; a command returns why it fails, or NULL ---- */

static const char *play(struct gtp *gtp)
{
    bool is_black;
    const int move = ggf_move(gtp->word[2]);
    if (!is_color(gtp->word[1], &is_black) || move < 0) {
        return "syntax error: play COLOR VERTEX, such as play black d3";
    }
    const enum err err = othello_record_play(&gtp->player.record, is_black, move);
    return err == ERR_OK ? NULL : err == ERR_FULL ? "too many moves" : "illegal move";
}

/* Answers with the move and plays it, or takes back the pass that was made for it. What it has cost
 * is charged, where the controller does not say it by time_left. */
static void end_move(struct gtp *gtp, uint16_t move)
{
    struct othello_record *r = &gtp->player.record;
    struct othello_clock *clock = &gtp->clock[gtp->is_black ? 0 : 1];
    snprintf(gtp->text, sizeof gtp->text, "pass");
    if (move != 0) {
        r->job.game->format_move(r->job.position, move, gtp->text);
    }
    if (!gtp->is_kept) {
        othello_record_forget(r, gtp->moves);
        return;
    }
    CHECK(othello_record_play(r, gtp->is_black, ggf_move(gtp->text)) == ERR_OK);
    clock->left_ms -= (int64_t)((clock_us() - gtp->begin_us) / 1000) + PIPE_MS;
    if (clock->left_ms < 0 && clock->period_ms > 0) {
        clock->left_ms = 0; /* byo-yomi has begun */
    }
}

static void answer(void *self, bool is_stopped)
{
    struct gtp *gtp = self;
    const uint16_t move = gtp->player.gui.result.search.move;
    (void)is_stopped;
    if (move == 0) {
        othello_record_forget(&gtp->player.record, gtp->moves);
        say(gtp, '?', "the search failed: out of memory");
    } else {
        end_move(gtp, move);
        say(gtp, '=', gtp->text);
    }
}

/* genmove, or reg_genmove, whose move is not played. */
static const char *genmove(struct gtp *gtp)
{
    struct othello_record *r = &gtp->player.record;
    bool is_black;
    if (!is_color(gtp->word[1], &is_black)) {
        return "syntax error: a color is wanted, black or white";
    }
    gtp->moves = r->moves;
    gtp->is_black = is_black;
    gtp->is_kept = strcmp(gtp->word[0], "genmove") == 0;
    gtp->begin_us = clock_us();
    if (r->moves + 3 > OTHELLO_RECORD_MAX) { /* two passes and the move */
        return "too many moves";
    }
    if (othello_record_turn_to(r, is_black) != ERR_OK) {
        return is_black ? "it is White's turn" : "it is Black's turn";
    }
    const uint16_t forced = othello_record_forced(r);
    if (forced != 0 || othello_record_is_over(r)) {
        end_move(gtp, forced);
        return NULL;
    }
    const struct othello_clock *clock = &gtp->clock[is_black ? 0 : 1];
    const uint32_t time_ms = clock->is_set ? othello_clock_move_ms(clock, othello_record_empties(r))
                                           : gtp->player.time_ms;
    gtp->is_late = true;
    othello_player_search(&gtp->player, time_ms, 1);
    return NULL;
}

static const char *undo(struct gtp *gtp)
{
    return othello_record_undo(&gtp->player.record) ? NULL : "cannot undo";
}

/* ---- the board ---- */

static const char *clear_board(struct gtp *gtp)
{
    return othello_record_clear(&gtp->player.record) == ERR_OK ? NULL : err_text(ERR_NOMEM);
}

static const char *boardsize(struct gtp *gtp)
{
    double size;
    if (!is_number(gtp->word[1], &size)) {
        return "syntax error: a size is wanted";
    }
    return size < 8 || size > 8 ? "unacceptable size" : clear_board(gtp);
}

/* Means nothing in Othello. */
static const char *komi(struct gtp *gtp)
{
    double number;
    return is_number(gtp->word[1], &number) ? NULL : "syntax error: a number is wanted";
}

static const char *set_game(struct gtp *gtp)
{
    return strcasecmp(gtp->word[1], "othello") == 0 ? clear_board(gtp)
                                                    : "unknown game: there is Othello";
}

static const char *showboard(struct gtp *gtp)
{
    const struct othello_record *r = &gtp->player.record;
    const char *squares = r->job.text;
    char *text = gtp->text;
    unsigned black = 0, white = 0;
    size_t used = (size_t)snprintf(text, ANSWER_MAX, "\n  A B C D E F G H");
    for (unsigned i = 0; i < OTHELLO_SQUARES; i++) {
        black += squares[i] == 'X';
        white += squares[i] == 'O';
        if (i % 8 == 0) {
            used += (size_t)snprintf(text + used, ANSWER_MAX - used, "\n%u", i / 8 + 1);
        }
        used += (size_t)snprintf(text + used, ANSWER_MAX - used, " %c",
                                 squares[i] == '-' ? '.' : squares[i]);
    }
    snprintf(text + used, ANSWER_MAX - used, "\nX Black %u, O White %u, %s", black, white,
             othello_record_is_over(r)       ? "the game is over"
             : othello_record_black_moves(r) ? "X to move"
                                             : "O to move");
    return NULL;
}

static const char *final_score(struct gtp *gtp)
{
    if (!othello_record_is_over(&gtp->player.record)) {
        return "cannot score: the game is not over";
    }
    const int score = othello_record_score(&gtp->player.record);
    snprintf(gtp->text, sizeof gtp->text, score == 0 ? "0" : "%c+%d", score > 0 ? 'B' : 'W',
             abs(score));
    return NULL;
}

/* ---- time ---- */

static const char *time_settings(struct gtp *gtp)
{
    int64_t main_s, period_s, stones;
    if (!is_count(gtp->word[1], &main_s) || !is_count(gtp->word[2], &period_s) ||
        !is_count(gtp->word[3], &stones)) {
        return "syntax error: three numbers are wanted: main time, byo-yomi time, stones";
    }
    gtp->stone_ms = stones > 0 ? period_s * 1000 / stones : 0;
    gtp->clock[0] = gtp->clock[1] = (struct othello_clock){
        .is_set = period_s == 0 || stones > 0, /* byo-yomi without stones: there is no limit */
        .left_ms = main_s * 1000,
        .period_ms = gtp->stone_ms,
    };
    return NULL;
}

static const char *time_left(struct gtp *gtp)
{
    int64_t left_s, stones;
    bool is_black;
    if (!is_color(gtp->word[1], &is_black) || !is_count(gtp->word[2], &left_s) ||
        !is_count(gtp->word[3], &stones)) {
        return "syntax error: a color and two numbers are wanted: time, stones";
    }
    gtp->clock[is_black ? 0 : 1] = (struct othello_clock){
        .is_set = true,
        .left_ms = stones > 0 ? 0 : left_s * 1000,
        .period_ms = stones > 0 ? left_s * 1000 / stones : gtp->stone_ms,
    };
    return NULL;
}

static const char *cputime(struct gtp *gtp)
{
    struct rusage usage = {0};
    (void)getrusage(RUSAGE_SELF, &usage);
    snprintf(gtp->text, sizeof gtp->text, "%.2f",
             (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
                 (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6);
    return NULL;
}

/* ---- commands ---- */

static const char *known_command(struct gtp *gtp);
static const char *list_commands(struct gtp *gtp);

static const struct command {
    const char *name;
    unsigned arguments; /* more are ignored, as the specification allows */
    const char *(*run)(struct gtp *gtp); /* NULL: it always answers ... */
    const char *answer;
} commands[] = {
    {"protocol_version", 0, NULL, "2"},
    {"name", 0, NULL, "abdada"},
    {"version", 0, NULL, PROGRAM_VERSION},
    {"known_command", 1, known_command},
    {"list_commands", 0, list_commands},
    {"quit", 0, NULL, ""},
    {"boardsize", 1, boardsize},
    {"clear_board", 0, clear_board},
    {"komi", 1, komi},
    {"play", 2, play},
    {"genmove", 1, genmove},
    {"reg_genmove", 1, genmove},
    {"undo", 0, undo},
    {"showboard", 0, showboard},
    {"final_score", 0, final_score},
    {"time_settings", 3, time_settings},
    {"time_left", 3, time_left},
    {"set_game", 1, set_game},
    {"list_games", 0, NULL, "Othello"},
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

static const char *known_command(struct gtp *gtp)
{
    snprintf(gtp->text, sizeof gtp->text, find(gtp->word[1]) != NULL ? "true" : "false");
    return NULL;
}

static const char *list_commands(struct gtp *gtp)
{
    size_t used = 0;
    for (unsigned i = 0; i < COMMANDS; i++) {
        used += (size_t)snprintf(gtp->text + used, ANSWER_MAX - used, "%s%s", i == 0 ? "" : "\n",
                                 commands[i].name);
    }
    return NULL;
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

static bool obey(void *self, char *line)
{
    struct gtp *gtp = self;
    char *rest = line, *word;
    uint64_t id;
    gtp->id = -1;
    gtp->words = 0;
    gtp->text[0] = '\0';
    gtp->is_late = false;
    prepare(line);
    word = strtok_r(line, " ", &rest);
    if (word != NULL && options_unsigned(word, 0, ID_MAX, &id) == ERR_OK) {
        gtp->id = (int64_t)id;
        word = strtok_r(rest, " ", &rest);
    }
    for (; word != NULL && gtp->words < WORDS_MAX; word = strtok_r(rest, " ", &rest)) {
        gtp->word[gtp->words++] = word;
    }
    if (gtp->words == 0 && gtp->id < 0) {
        return true; /* an empty line */
    }
    const struct command *command = gtp->words > 0 ? find(gtp->word[0]) : NULL;
    const char *fault = NULL;
    char why[64];
    if (command == NULL) {
        fault = "unknown command";
    } else if (gtp->words <= command->arguments) {
        snprintf(why, sizeof why, "syntax error: %s takes %u argument%s", command->name,
                 command->arguments, command->arguments == 1 ? "" : "s");
        fault = why;
    } else if (command->run != NULL) {
        fault = command->run(gtp);
    }
    if (fault != NULL) {
        say(gtp, '?', fault);
    } else if (!gtp->is_late) {
        say(gtp, '=', command->run != NULL ? gtp->text : command->answer);
    }
    return command == NULL || strcmp(command->name, "quit") != 0;
}

static void refuse(void *self, const char *start, const char *why)
{
    struct gtp *gtp = self;
    (void)start;
    gtp->id = -1;
    say(gtp, '?', why);
}

int cli_gtp(int argc, char *argv[])
{
    struct gtp gtp = {
        .player = {.gui = {.self = &gtp,
                           .is_ordered = true,
                           .obey = obey,
                           .answer = answer,
                           .refuse = refuse},
                   .program = "abdada gtp",
                   .summary = "Othello engine that speaks GTP, version 2, on stdin and stdout.",
                   .example = {"abdada gtp --threads 4 --time 2000",
                               "abdada gtp --servers ws1:7400,ws2:7400 --keys keys"},
                   .has_game = true,
                   .depth = OTHELLO_SQUARES,
                   .time_ms = DEFAULT_TIME_MS},
        .id = -1,
    };
    return othello_player_main(&gtp.player, argc, argv);
}
