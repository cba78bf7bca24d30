/* abdada tt: sees and changes what is in a table by hand. */
#include "worker/programs/admin/tt_link.h"

#include "common/config.h"
#include "common/log.h"
#include "common/signals.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
    WORDS_MAX = 64, /* of a line, or of what follows a command */
    LINE_ROOM = 1024,
};

const char tt_program[] = "abdada tt";
static atomic_bool stopping;

/* What a command needs. */
enum need {
    NEEDS_KEY = 1,
    NEEDS_DEPTH = 2,
    NEEDS_RESULT = 4, /* --score, --bound */
    NEEDS_FILE = 8,
    NEEDS_LINK = 16, /* a session that may use the table */
};

static const struct command {
    const char *name;
    int (*run)(struct tt *tt);
    unsigned needs;
} commands[] = {
    {"ask", tt_key_ask, NEEDS_LINK | NEEDS_KEY | NEEDS_DEPTH},
    {"peek", tt_key_peek, NEEDS_LINK | NEEDS_KEY},
    {"store", tt_key_store, NEEDS_LINK | NEEDS_KEY | NEEDS_DEPTH | NEEDS_RESULT},
    {"release", tt_key_release, NEEDS_LINK | NEEDS_KEY | NEEDS_DEPTH},
    {"stats", tt_all_stats, 0},
    {"flush", tt_all_flush, NEEDS_LINK},
    {"save", tt_all_save, NEEDS_LINK | NEEDS_FILE},
    {"load", tt_all_load, NEEDS_LINK | NEEDS_FILE},
};

/* ---- the command line ---- */

static enum err read_score(const char *text, void *value)
{
    uint64_t size;
    bool is_negative = text[0] == '-';
    enum err err = options_unsigned(text + (is_negative || text[0] == '+'), 0, TT_SCORE_MAX, &size);
    if (err == ERR_OK) {
        *(int32_t *)value = is_negative ? -(int32_t)size : (int32_t)size;
    }
    return err;
}

static enum err read_depth(const char *text, void *value)
{
    uint64_t depth;
    enum err err = options_unsigned(text, 0, TT_DEPTH_MAX, &depth);
    if (err == ERR_OK) {
        *(int32_t *)value = (int32_t)depth;
    }
    return err;
}

/* `argv` has the words of a command line, or those of a line of input, for which no file counts. */
static int read_options(struct tt *tt, bool is_line, int argc, char *argv[], const char **operand,
                        unsigned *n)
{
    struct tt_command *c = &tt->command;
    const struct options_row table[] = {
        CLI_TABLE_ROWS(tt->table),
        {"wait", "MS", "time to wait for shards (default 2000)", &tt->wait_ms, OPTION_U32, 0, 1,
         60000},
        {"json", NULL, "one JSON object per line on stdout", &tt->json, OPTION_FLAG},
        {.kind = OPTION_HEADING, .help = "The position's key is that of a search of this kind:"},
        {"game", "NAME", "chess (default), othello, or a synthetic tree (tree:b=20,d=8,seed=1)",
         &tt->search.game, OPTION_TEXT},
        {"select", "plain|full", "as of `abdada analyse` (default plain)", &tt->search.select,
         OPTION_TEXT},
        {"strict", NULL, "key of a strict search; an ask then needs results of its own depth",
         &tt->search.strict, OPTION_FLAG},
        {"key", "HEX", "the key itself, as in messages, in place of a position", &c->key_text,
         OPTION_TEXT},
        {.kind = OPTION_HEADING, .help = "Operations:"},
        {"depth", "N", "remaining depth; save: the least", &c->depth, OPTION_CUSTOM, 'd',
         .parse = read_depth},
        {"alpha", "A", "ask: lower end of the window (default: all scores)", &c->alpha,
         OPTION_CUSTOM, .parse = read_score},
        {"beta", "B", "ask: its upper end", &c->beta, OPTION_CUSTOM, .parse = read_score},
        {"exclusive", NULL, "ask: busy if another is in the node", &c->exclusive, OPTION_FLAG},
        {"for", "MS", "ask: stay in the node this long", &c->for_ms, OPTION_U32, 0, 1, UINT32_MAX},
        {"score", "S", "store: score of the side to move", &c->score, OPTION_CUSTOM,
         .parse = read_score},
        {"bound", "exact|lower|upper", "store: what the score is", &c->bound, OPTION_TEXT},
        {"move", "MOVE", "store: the best move (with --key its number)", &c->move_text,
         OPTION_TEXT},
        {"most", "SIZE", "save: largest size of the file (default 4G)", &c->most_bytes, OPTION_SIZE,
         0, SNAPSHOT_ENTRY_BYTES, 0},
        {"yes", NULL, "flush: do not ask for confirmation", &c->yes, OPTION_FLAG},
        {0},
    };
    const struct options options = {
        .program = tt_program,
        .usage = "[ask|peek|store|release POSITION | stats | flush | save|load FILE] [OPTION]...",
        .summary =
            "Shows and changes what is in a table. A position is a FEN or startpos. Without a\n"
            "command: reads commands, one a line, and runs them in one session.",
        .example = {"abdada tt --servers 127.0.0.1:7400 stats",
                    "abdada tt --servers 127.0.0.1:7400 --depth 8 ask startpos"},
        .table = table,
        .operands_max = WORDS_MAX,
        .board_letters = CLI_BOARD_LETTERS,
    };
    return is_line ? options_parse(&options, argc, argv, operand, n)
                   : config_parse(&options, argc, argv, operand, n);
}

static void clear_command(struct tt *tt)
{
    job_free(&tt->command.job);
    tt->command = (struct tt_command){
        .depth = TT_ABSENT,
        .alpha = TT_SCORE_MIN,
        .beta = TT_SCORE_MAX,
        .score = TT_SCORE_MIN - 1,
        .most_bytes = UINT64_C(4) << 30,
    };
}

/* Returns -1 to go on, or the exit status after a message. */
static int resolve(struct tt *tt, const struct command **out, const char **word, unsigned words)
{
    struct tt_command *c = &tt->command;
    const struct command *found = NULL;
    const char *near = NULL;
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
        found = strcmp(word[0], commands[i].name) == 0 ? &commands[i] : found;
        near = options_nearer(word[0], commands[i].name, near);
    }
    if (found == NULL) {
        return options_unknown(tt_program, "command", word[0], near);
    }
    snprintf(c->name, sizeof c->name, "%s", found->name);
    if (!cli_join(c->text, sizeof c->text, word + 1, words - 1)) {
        return options_wrong(tt_program, "%s: that is too long", c->name);
    }
    if ((found->needs & NEEDS_FILE) != 0 && words != 2) {
        return options_wrong(tt_program, "%s needs the name of a file", c->name);
    }
    if ((found->needs & (NEEDS_FILE | NEEDS_KEY)) == 0 && words != 1) {
        return options_wrong(tt_program, "unexpected argument '%s' (see --help)", word[1]);
    }
    if ((found->needs & NEEDS_DEPTH) != 0 && c->depth == TT_ABSENT) {
        return options_wrong(tt_program, "%s needs --depth N", c->name);
    }
    if (c->alpha >= c->beta) {
        return options_wrong(tt_program, "--alpha must be below --beta");
    }
    if ((found->needs & NEEDS_RESULT) != 0 && (c->score < TT_SCORE_MIN || c->bound == NULL)) {
        return options_wrong(tt_program, "store needs --score S and --bound exact|lower|upper");
    }
    *out = found;
    return (found->needs & NEEDS_KEY) != 0 ? tt_key_resolve(tt) : -1;
}

/* ---- the sessions ---- */

/* With the key of the first role, or else of the second. Returns -1 to go on, or the exit status.
 */
static int connect(struct tt *tt, enum keys_role role, enum keys_role otherwise)
{
    char name[LANES_NAME_MAX];
    enum err err = tt_link_open(tt->link, &tt->table, role);
    if (err == ERR_ABSENT && otherwise != role) {
        err = tt_link_open(tt->link, &tt->table, otherwise);
    }
    if (err != ERR_OK) {
        return log_fail(tt_program, "%s", tt->link->why);
    }
    unsigned up = tt_link_connect(tt->link, tt->wait_ms);
    if (up > 0) {
        tt_link_say_missing(tt->link, "; continuing without it"); /* its keys are the others' now */
    } else {
        lanes_shard_name(tt->link->session.lanes, 0, name);
        log_fail(tt_program, "no shard answers within %u ms (%s%s)", tt->wait_ms, name,
                 tt->link->session.shards > 1 ? " and the others" : "");
    }
    return up > 0 ? -1 : 1;
}

static int run_one(struct tt *tt, const char **word, unsigned words)
{
    const struct command *command = NULL;
    int status = resolve(tt, &command, word, words);
    if (status >= 0) {
        return status;
    }
    if (tt->link->session.lanes == NULL && (command->needs & NEEDS_LINK) != 0) {
        enum keys_role role = command->run == tt_all_flush ? KEYS_ADMINISTRATOR : KEYS_FRONT;
        status = connect(tt, role, role);
    }
    return status >= 0 ? status : command->run(tt);
}

/* ---- commands from the input ---- */

/* Part of a command may be another command. */
static int refuse_line(void)
{
    return options_wrong(tt_program, "a line has up to %d characters and %d words: left out",
                         LINE_ROOM - 1, WORDS_MAX);
}

static int run_line(struct tt *tt, char *line)
{
    char *argv[WORDS_MAX + 2] = {(char *)tt_program}, *rest = line;
    const char *operand[WORDS_MAX];
    unsigned operands = 0, words = 0;
    for (char *w; words <= WORDS_MAX && (w = strtok_r(rest, " \t\r\n", &rest)) != NULL;) {
        argv[++words] = w;
    }
    if (words == 0 || argv[1][0] == '#') {
        return 0;
    }
    if (words > WORDS_MAX) {
        return refuse_line();
    }
    struct tt at = *tt; /* a line changes the kind of search for itself alone */
    at.table = (struct cli_table){0};
    at.command.job.position = NULL; /* it is the first command's */
    clear_command(&at);
    int status = read_options(&at, true, (int)words + 1, argv, operand, &operands);
    if (status < 0 && (cli_table_is_given(&at.table) || at.table.keys_dir != NULL)) {
        status = options_wrong(tt_program, "a line cannot name another table");
    }
    at.table = tt->table;
    if (status < 0 && operands > 0) {
        status = run_one(&at, operand, operands);
    }
    job_free(&at.command.job);
    fflush(stdout);
    return status < 0 ? 0 : status;
}

/* A line without its end; false: there are no more. `whole`: it had room, and no byte zero. The
 * sessions are served meanwhile. */
static bool read_line(const struct tt *tt, char line[LINE_ROOM], bool *whole)
{
    *whole = true;
    size_t used = 0;
    while (tt_link_await_input(tt->link)) {
        char c;
        ssize_t n = read(STDIN_FILENO, &c, 1);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0 || c == '\n') {
            line[used] = '\0';
            return n > 0 || used > 0;
        }
        *whole = *whole && used < LINE_ROOM - 1 && c != '\0';
        if (*whole) {
            line[used++] = c;
        }
    }
    return false;
}

static int run_input(struct tt *tt)
{
    char line[LINE_ROOM];
    bool whole;
    int worst = 0, status = connect(tt, KEYS_ADMINISTRATOR, KEYS_FRONT); /* a line may flush */
    while (status < 0 && read_line(tt, line, &whole)) {
        int one = whole || line[0] == '#' ? run_line(tt, line) : refuse_line();
        worst = one > worst ? one : worst;
    }
    return status >= 0 ? status : worst;
}

int cli_tt(int argc, char *argv[])
{
    struct tt_link link = {.stop = &stopping};
    struct tt tt = {.search = {"chess", "abdada", "auto", "plain"}, .wait_ms = 2000, .link = &link};
    const char *operand[WORDS_MAX];
    unsigned operands = 0;
    clear_command(&tt);
    int status = read_options(&tt, false, argc, argv, operand, &operands);
    status = status < 0 ? cli_table_environment(tt_program, &tt.table, true) : status;
    if (status >= 0) {
        return status;
    }
    signals_end_by(&stopping);
    tt.is_alone = operands > 0;
    status = operands > 0 ? run_one(&tt, operand, operands) : run_input(&tt);
    cli_session_close(&link.session);
    job_free(&tt.command.job);
    return status;
}
