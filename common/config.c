#include "common/config.h"

#include "common/lines.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { WHY_MAX = 512, PATH_BYTES = 1024 };

/* Every program and command that has options. */
static const char *const sections[] = {
    "ttserver", "ttworker", "analyse", "solve", "check",   "uci", "nboard", "gtp",
    "top",      "tt",       "perft",   "bench", "ttbench", "sim", "keygen", "cluster"};

/* For all programs; the environment stands between the command line and the file. */
static const struct shared {
    const char *name, *variable;
} shared[] = {{"servers", "ABDADA_SERVERS"}, {"table", "ABDADA_TABLE"}, {"keys", "ABDADA_KEYS"}};
enum { SERVERS, TABLE, KEYS, SHARED };

/* What options point to, until the process ends. */
static struct kept {
    struct kept *next;
    char text[];
} * kept;

struct value {
    const char *text; /* NULL: not there */
    unsigned line;
};

struct reading {
    const struct options *options;
    const char *path, *section; /* ours */
    bool is_ours, is_before; /* the section that is read: ours; none yet */
    struct value shared[SHARED][2]; /* before all sections; in ours */
    char why[WHY_MAX];
};

static const char *keep(const char *text)
{
    size_t size = strlen(text) + 1;
    struct kept *k = malloc(sizeof *k + size);
    if (k == NULL) {
        return NULL;
    }
    memcpy(k->text, text, size);
    k->next = kept;
    kept = k;
    return k->text;
}

/* Without blanks around it. */
static char *strip(char *text)
{
    text += strspn(text, " \t\r\n");
    size_t length = strlen(text);
    while (length > 0 && isspace((unsigned char)text[length - 1])) {
        length--;
    }
    text[length] = '\0';
    return text;
}

static bool take_value(struct reading *r, const char *name, const char *value, unsigned line)
{
    if (!r->is_ours && !r->is_before) {
        return true; /* another program's */
    }
    const char *copy = keep(value);
    if (copy == NULL) {
        snprintf(r->why, sizeof r->why, "%s", err_text(ERR_NOMEM));
        return false;
    }
    for (unsigned i = 0; i < SHARED; i++) {
        if (strcmp(name, shared[i].name) == 0) {
            r->shared[i][r->is_ours] = (struct value){copy, line};
            return true;
        }
    }
    const struct options_row *option = options_find(r->options, name);
    if (r->is_before) {
        snprintf(r->why, sizeof r->why,
                 "'%.64s' belongs below a section such as [analyse]: only servers, keys and table "
                 "are for all",
                 name);
        return false;
    }
    if (option == NULL) {
        snprintf(r->why, sizeof r->why, "%s has no option '%.64s'", r->options->program, name);
        return false;
    }
    return options_set(option, copy, r->why, sizeof r->why);
}

/* False: `why` says what is wrong with it. */
static bool take_line(struct reading *r, char *text, unsigned line)
{
    char *comment = strstr(text, " #");
    if (comment != NULL) {
        *comment = '\0';
    }
    text = strip(text);
    size_t length = strlen(text);
    if (length == 0 || text[0] == '#' || text[0] == ';') {
        return true;
    }
    if (text[0] == '[' && text[length - 1] == ']') {
        bool is_known = false;
        text[length - 1] = '\0';
        const char *name = strip(text + 1);
        for (size_t i = 0; i < sizeof sections / sizeof *sections; i++) {
            is_known = is_known || strcmp(name, sections[i]) == 0;
        }
        if (!is_known) {
            snprintf(r->why, sizeof r->why, "no program has the section [%.64s]", name);
        }
        r->is_ours = strcmp(name, r->section) == 0;
        r->is_before = false;
        return is_known;
    }
    char *equals = strchr(text, '=');
    if (equals == NULL || equals == text) {
        snprintf(r->why, sizeof r->why, "neither [section] nor name = value");
        return false;
    }
    *equals = '\0';
    return take_value(r, strip(text), strip(equals + 1), line);
}

/* OPTIONS_RUN, or OPTIONS_WRONG after a line on stderr. */
static int read_file(struct reading *r, FILE *file)
{
    struct lines lines = {.file = file};
    int status = OPTIONS_RUN;
    while (status == OPTIONS_RUN && lines_next(&lines)) {
        if (!take_line(r, lines.text, lines.number)) {
            status =
                options_wrong(r->options->program, "%.200s:%u: %s", r->path, lines.number, r->why);
        }
    }
    if (status == OPTIONS_RUN && !feof(file)) {
        status = options_wrong(r->options->program, "%.200s: %s", r->path, strerror(errno));
    }
    lines_close(&lines);
    return status;
}

/* Whether the option is there, and has a value by now. */
static bool is_given(const struct options *options, const char *name)
{
    const struct options_row *o = options_find(options, name);
    return o != NULL && (o->kind == OPTION_SERVERS ? ((struct options_servers *)o->value)->count > 0
                         : o->kind == OPTION_FLAG  ? *(bool *)o->value
                                                   : *(const char **)o->value != NULL);
}

/* Shared names count where neither the command line nor the environment says otherwise: a table
 * there excludes servers here, and so on. */
static int give_shared(struct reading *r)
{
    const struct options *options = r->options;
    for (int own = 1; own >= 0; own--) {
        for (unsigned i = 0; i < SHARED; i++) {
            const struct value *v = &r->shared[i][own];
            const struct options_row *o = options_find(options, shared[i].name);
            const char *other = i == TABLE ? "servers" : "table";
            const char *other_set = getenv(shared[i == TABLE ? SERVERS : TABLE].variable);
            const bool is_for_shards = options_find(options, "table") == NULL ||
                                       (i == KEYS && is_given(options, "servers"));
            const bool is_servers_own = i == KEYS && options_find(options, "servers") == NULL;
            bool is_excluded = (is_servers_own && is_given(options, "insecure")) ||
                               is_given(options, other) ||
                               (!is_for_shards && other_set != NULL && other_set[0] != '\0');
            if (v->text != NULL && o != NULL && !is_given(options, shared[i].name) &&
                getenv(shared[i].variable) == NULL && !is_excluded &&
                !options_set(o, v->text, r->why, sizeof r->why)) {
                return options_wrong(options->program, "%.200s:%u: %s", r->path, v->line, r->why);
            }
        }
    }
    return OPTIONS_RUN;
}

/* The user's own, whether or not it is there; false: there is no place for one. */
static bool usual_path(char path[PATH_BYTES])
{
    const char *home = getenv("HOME"), *xdg = getenv("XDG_CONFIG_HOME");
    int n = 0;
    if (xdg != NULL && xdg[0] == '/') {
        n = snprintf(path, PATH_BYTES, "%s/abdada/config.ini", xdg);
    } else if (home != NULL && home[0] == '/') {
        n = snprintf(path, PATH_BYTES, "%s/.config/abdada/config.ini", home);
    }
    return n > 0 && n < PATH_BYTES;
}

/* *path: NULL when none was named. True when the file is not needed. */
static bool read_words(int argc, char *const argv[], const char **path)
{
    static const char option[] = "--config";
    const size_t length = sizeof option - 1;
    bool only_says = false;
    *path = NULL;
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
        only_says = only_says || strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0 ||
                    strcmp(argv[i], "--version") == 0;
        if (strcmp(argv[i], option) == 0 && i + 1 < argc) {
            *path = argv[i + 1];
        } else if (strncmp(argv[i], option, length) == 0 && argv[i][length] == '=') {
            *path = argv[i] + length + 1;
        }
    }
    return only_says;
}

int config_parse(const struct options *options, int argc, char *const argv[], const char **operand,
                 unsigned *operands)
{
    char usual[PATH_BYTES];
    const char *blank = strrchr(options->program, ' '); /* "abdada analyse" */
    struct options with_file = *options;
    struct reading r = {.options = options,
                        .section = blank != NULL ? blank + 1 : options->program,
                        .is_before = true};
    int status = OPTIONS_RUN;
    with_file.has_config = true;
    bool only_says = read_words(argc, argv, &r.path);
    bool is_named = r.path != NULL;
    if (!is_named && usual_path(usual)) {
        r.path = usual;
    }
    FILE *file = r.path != NULL && !only_says ? fopen(r.path, "r") : NULL;
    int error = errno;
    /* The usual path may lead to another user's folder, which sudo and containers leave in HOME:
     * what is there is not meant for this user. */
    struct stat at;
    if (file == NULL && r.path != NULL && !only_says &&
        (is_named || (stat(r.path, &at) == 0 && at.st_uid == geteuid()))) {
        return options_wrong(options->program, "--config %.200s: %s", r.path, strerror(error));
    }
    if (file != NULL) {
        status = read_file(&r, file);
        fclose(file);
    }
    if (status == OPTIONS_RUN) {
        status = options_parse(&with_file, argc, argv, operand, operands);
    }
    return status == OPTIONS_RUN ? give_shared(&r) : status;
}
