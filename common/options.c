#include "common/options.h"

#include "common/rng.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* ---- values ---- */

/* Decimal digits only: strtoull alone would take "-1" and " 7". */
static enum err read_digits(const char *text, const char **end, uint64_t *out)
{
    char *stop;
    if (!isdigit((unsigned char)*text)) {
        return ERR_SYNTAX;
    }
    errno = 0;
    unsigned long long value = strtoull(text, &stop, 10);
    if (errno == ERANGE) {
        return ERR_RANGE;
    }
    *end = stop;
    *out = value;
    return ERR_OK;
}

enum err options_unsigned(const char *text, uint64_t min, uint64_t max, uint64_t *out)
{
    const char *end = text;
    uint64_t value = 0;
    enum err err = read_digits(text, &end, &value);
    if (err != ERR_OK) {
        return err;
    }
    if (*end != '\0') {
        return ERR_SYNTAX;
    }
    if (value < min || (max != 0 && value > max)) {
        return ERR_RANGE;
    }
    *out = value;
    return ERR_OK;
}

static enum err read_size(const char *text, uint64_t min, uint64_t max, uint64_t *bytes)
{
    static const char suffix[] = "KMGT";
    const char *end = text;
    uint64_t value = 0;
    unsigned shift = 0;
    enum err err = read_digits(text, &end, &value);
    if (err != ERR_OK) {
        return err;
    }
    if (*end != '\0') {
        const char *at = strchr(suffix, toupper((unsigned char)*end));
        if (at == NULL) {
            return ERR_SYNTAX;
        }
        shift = 10u * (unsigned)(at - suffix + 1);
        end++;
        if (*end != '\0' && strcmp(end, "B") != 0 && strcmp(end, "iB") != 0) {
            return ERR_SYNTAX;
        }
    }
    if (value > UINT64_MAX >> shift || value << shift < min || (max != 0 && value << shift > max)) {
        return ERR_RANGE;
    }
    *bytes = value << shift;
    return ERR_OK;
}

/* Blanks around it are passed over, as people write them after the commas of a list. */
static enum err read_host_port(const char *text, size_t length, struct options_host_port *out)
{
    char word[OPTIONS_HOST_MAX + sizeof "[]:65535"], *host = word;
    uint64_t port = 0;
    for (; length > 0 && isspace((unsigned char)*text); text++, length--) {
    }
    while (length > 0 && isspace((unsigned char)text[length - 1])) {
        length--;
    }
    if (length >= sizeof word) {
        return ERR_SYNTAX;
    }
    memcpy(word, text, length);
    word[length] = '\0';
    char *colon = strrchr(word, ':');
    if (colon == NULL) {
        return ERR_SYNTAX;
    }
    *colon = '\0';
    size_t host_length = (size_t)(colon - word);
    if (host_length >= 2 && word[0] == '[' && colon[-1] == ']') {
        colon[-1] = '\0';
        host++;
        host_length -= 2;
    } else if (strchr(host, ':') != NULL) {
        return ERR_SYNTAX; /* an IPv6 address without brackets: which colon is the port's? */
    }
    if (host_length == 0 || host_length >= sizeof out->host) {
        return ERR_SYNTAX;
    }
    for (const char *c = host; *c != '\0'; c++) {
        if ((unsigned char)*c <= ' ' || *c == 127) {
            return ERR_SYNTAX;
        }
    }
    enum err err = options_unsigned(colon + 1, 0, UINT16_MAX, &port);
    if (err == ERR_OK) {
        memcpy(out->host, host, host_length + 1);
        out->port = (uint16_t)port;
    }
    return err;
}

enum err options_host_port(const char *text, struct options_host_port *out)
{
    return read_host_port(text, strlen(text), out);
}

enum err options_servers(const char *text, struct options_servers *out)
{
    struct options_servers read = {.count = 0};
    for (;; text++) {
        size_t length = strcspn(text, ",");
        if (read.count >= OPTIONS_SERVERS_MAX) {
            return ERR_FULL;
        }
        struct options_host_port *at = &read.server[read.count];
        enum err err = read_host_port(text, length, at);
        if (err == ERR_OK && at->port == 0) {
            err = ERR_RANGE;
        }
        for (unsigned i = 0; i < read.count && err == ERR_OK; i++) {
            bool is_same =
                at->port == read.server[i].port && strcasecmp(at->host, read.server[i].host) == 0;
            err = is_same ? ERR_EXIST : ERR_OK;
        }
        if (err != ERR_OK) {
            return err;
        }
        read.count++;
        text += length;
        if (*text == '\0') {
            break;
        }
    }
    *out = read;
    return ERR_OK;
}

static enum err read_real(const char *text, double *out)
{
    char *end;
    double value = strtod(text, &end);
    if (*end != '\0' || end == text || isspace((unsigned char)*text)) {
        return ERR_SYNTAX;
    }
    if (!isfinite(value) || value < 0) {
        return ERR_RANGE;
    }
    *out = value;
    return ERR_OK;
}

static enum err read_flag(const char *text, bool *out)
{
    bool is_yes = strcasecmp(text, "yes") == 0 || strcasecmp(text, "true") == 0;
    if (!is_yes && strcasecmp(text, "no") != 0 && strcasecmp(text, "false") != 0) {
        return ERR_SYNTAX;
    }
    *out = is_yes;
    return ERR_OK;
}

static enum err read_value(const struct options_row *option, const char *text)
{
    uint64_t value = 0;
    uint64_t max = option->max;
    enum err err = ERR_OK;
    switch (option->kind) {
    case OPTION_FLAG:
        return read_flag(text, option->value);
    case OPTION_U32:
        err =
            options_unsigned(text, option->min, max && max < UINT32_MAX ? max : UINT32_MAX, &value);
        if (err == ERR_OK) {
            *(uint32_t *)option->value = (uint32_t)value;
        }
        return err;
    case OPTION_U64:
        return options_unsigned(text, option->min, max, option->value);
    case OPTION_SIZE:
        return read_size(text, option->min, max, option->value);
    case OPTION_REAL:
        return read_real(text, option->value);
    case OPTION_TEXT:
        *(const char **)option->value = text;
        return ERR_OK;
    case OPTION_HOST_PORT:
        return options_host_port(text, option->value);
    case OPTION_SERVERS:
        return options_servers(text, option->value);
    case OPTION_CUSTOM:
        return option->parse(text, option->value);
    case OPTION_HEADING:
        break;
    }
    return ERR_SYNTAX;
}

/* ---- help ---- */

static bool is_last(const struct options_row *option)
{
    return option->name == NULL && option->help == NULL;
}

enum { COLUMN = 32, TEXT_WIDTH = 80 }; /* of the help of an option */

/* Breaks the text between words. */
static void print_text(const char *text)
{
    while (strlen(text) > TEXT_WIDTH) {
        int length = TEXT_WIDTH;
        while (length > 0 && text[length] != ' ') {
            length--;
        }
        if (length == 0) {
            break;
        }
        printf("%.*s\n%*s", length, text, COLUMN, "");
        text += length + 1;
    }
    printf("%s\n", text);
}

static void print_row(char letter, const char *name, const char *argument, const char *help)
{
    char left[80];
    int width =
        snprintf(left, sizeof left, "  %c%c%c --%s%s%s", letter ? '-' : ' ', letter ? letter : ' ',
                 letter ? ',' : ' ', name, argument ? " " : "", argument ? argument : "");
    if (width <= COLUMN - 2) {
        printf("%-*s", COLUMN, left);
    } else {
        printf("%s\n%*s", left, COLUMN, "");
    }
    print_text(help);
}

static void print_help(const struct options *options)
{
    printf("Usage: %s %s\n%s\n\n", options->program, options->usage, options->summary);
    for (const struct options_row *o = options->table; !is_last(o); o++) {
        if (o->kind == OPTION_HEADING) {
            printf("%s\n", o->help);
        } else if (o->help != NULL) {
            print_row(o->letter, o->name, o->argument, o->help);
        }
    }
    if (options->has_config) {
        print_row(0, "config", "FILE", "options from FILE (default: ~/.config/abdada/config.ini)");
    }
    print_row('h', "help", NULL, "print this and exit");
    print_row(0, "version", NULL, "print the version and exit");
    for (unsigned i = 0; i < 2 && options->example[i] != NULL; i++) {
        printf("%s  $ %s\n", i == 0 ? "\nExamples:\n" : "", options->example[i]);
    }
}

const char *options_about;

void options_print_version(const char *program)
{
    printf("%s %s\n%s", program, PROGRAM_VERSION, options_about != NULL ? options_about : "");
}

/* ---- words ---- */

int options_wrong(const char *program, const char *format, ...)
{
    char line[1024];
    va_list list;
    va_start(list, format);
    vsnprintf(line, sizeof line, format, list);
    va_end(list);
    fprintf(stderr, "%s: %s\n", program, line);
    return OPTIONS_WRONG;
}

static int refuse(const struct options *options, const char *what, const char *word)
{
    return options_wrong(options->program, "%s '%s' (see --help)", what, word);
}

/* The letters between what the two begin and end with in common. */
static size_t distance(const char *word, const char *name)
{
    const size_t n = strlen(word), m = strlen(name), least = n < m ? n : m;
    size_t begin = 0, end = 0;
    while (begin < least && word[begin] == name[begin]) {
        begin++;
    }
    while (end < least - begin && word[n - 1 - end] == name[m - 1 - end]) {
        end++;
    }
    return (n > m ? n : m) - begin - end;
}

const char *options_nearer(const char *word, const char *name, const char *best)
{
    const size_t most = best != NULL ? distance(word, best) : strlen(word) / 4 + 2;
    return distance(word, name) < most ? name : best;
}

int options_unknown(const char *program, const char *what, const char *word, const char *near)
{
    return near != NULL ? options_wrong(program, "unknown %s '%s'; did you mean %s%s?", what, word,
                                        word[0] == '-' ? "--" : "", near)
                        : options_wrong(program, "unknown %s '%s' (see --help)", what, word);
}

struct words {
    const struct options *options;
    int argc, at;
    char *const *argv;
};

/* `name` has `length` bytes. NULL when no row fits or several do. */
static const struct options_row *find_long(const struct options_row *table, const char *name,
                                           size_t length, bool *is_ambiguous)
{
    const struct options_row *found = NULL;
    *is_ambiguous = false;
    for (const struct options_row *o = table; !is_last(o); o++) {
        if (o->name == NULL || strncmp(o->name, name, length) != 0) {
            continue;
        }
        if (o->name[length] == '\0') {
            *is_ambiguous = false;
            return o;
        }
        *is_ambiguous = found != NULL;
        found = found != NULL ? found : o;
    }
    return *is_ambiguous ? NULL : found;
}

void options_host_port_text(const char *host, uint16_t port, char *out, size_t size)
{
    snprintf(out, size, strchr(host, ':') != NULL ? "[%s]:%u" : "%s:%u", host, (unsigned)port);
}

/* What the value should have been. */
static const char *wanted(const struct options_row *option)
{
    switch (option->kind) {
    case OPTION_FLAG:
        return "yes or no";
    case OPTION_U32:
    case OPTION_U64:
        return "a whole number";
    case OPTION_REAL:
        return "a number";
    case OPTION_SIZE:
        return "a size such as 64M";
    default:
        return option->argument != NULL ? option->argument : "a value it takes";
    }
}

/* `value` is not what the option takes, because of `err`. */
static void say_value(const struct options_row *option, const char *value, enum err err, char *why,
                      size_t why_size)
{
    const char *name = option->name;
    const bool is_list = option->kind == OPTION_SERVERS;
    uint64_t bytes;
    if (value[0] == '-' && isdigit((unsigned char)value[1]) && option->max != 0) {
        err = ERR_RANGE; /* of digits that are read without a sign */
    }
    if ((is_list || option->kind == OPTION_HOST_PORT) && value[strcspn(value, ":,")] == '\0' &&
        value[strspn(value, "0123456789")] != '\0') {
        snprintf(why, why_size, "--%s '%.200s': missing port: write %.200s:%s", name, value, value,
                 is_list ? "7400" : "PORT");
    } else if (option->kind == OPTION_SIZE && err == ERR_RANGE &&
               options_unsigned(value, 1, option->min, &bytes) == ERR_OK) {
        snprintf(why, why_size, "--%s '%.200s': too few bytes; did you mean %.20sM?", name, value,
                 value);
    } else if (err == ERR_EXIST) {
        snprintf(why, why_size, "--%s '%.200s': the same shard is named twice", name, value);
    } else if (err == ERR_SYNTAX) {
        snprintf(why, why_size, "--%s '%.200s': not %s (see --help)", name, value, wanted(option));
    } else if (err == ERR_RANGE && option->max != 0) {
        snprintf(why, why_size, "--%s '%.200s': not in %" PRIu64 " to %" PRIu64, name, value,
                 option->min, option->max);
    } else {
        snprintf(why, why_size, "--%s '%.200s': %s (see --help)", name, value, err_text(err));
    }
}

const struct options_row *options_find(const struct options *options, const char *name)
{
    bool is_ambiguous;
    const struct options_row *o = find_long(options->table, name, strlen(name), &is_ambiguous);
    return o != NULL && strcmp(o->name, name) == 0 ? o : NULL;
}

bool options_set(const struct options_row *option, const char *value, char *why, size_t why_size)
{
    enum err err = read_value(option, value);
    if (err != ERR_OK) {
        say_value(option, value, err, why, why_size);
    }
    return err == ERR_OK;
}

/* `value` is what stood in the same word, or NULL. */
static int apply(struct words *words, const struct options_row *option, const char *value)
{
    const char *program = words->options->program;
    char why[512];
    if (value == NULL && option->kind == OPTION_FLAG) {
        value = "yes"; /* no: against a file of options */
    } else if (value == NULL && words->at < words->argc) {
        value = words->argv[words->at++];
    }
    if (value == NULL) {
        return options_wrong(program, "--%s needs a value: %s (see --help)", option->name,
                             option->argument ? option->argument : "VALUE");
    }
    return options_set(option, value, why, sizeof why) ? OPTIONS_RUN
                                                       : options_wrong(program, "%s", why);
}

static int take_long(struct words *words, const char *word)
{
    const struct options *options = words->options;
    const char *name = word + 2;
    const char *equals = strchr(name, '=');
    size_t length = equals != NULL ? (size_t)(equals - name) : strlen(name);
    bool is_ambiguous;
    if (strcmp(name, "help") == 0) {
        print_help(options);
        return OPTIONS_DONE;
    }
    if (strcmp(name, "version") == 0) {
        options_print_version(options->program);
        return OPTIONS_DONE;
    }
    const struct options_row *option = find_long(options->table, name, length, &is_ambiguous);
    if (options->has_config && length == strlen("config") && strncmp(name, "config", length) == 0) {
        static const char *path; /* unused: config_parse has read the file */
        static const struct options_row config = {
            .name = "config", .argument = "FILE", .value = &path, .kind = OPTION_TEXT};
        option = &config;
    }
    if (option == NULL && is_ambiguous) {
        return refuse(options, "ambiguous option", word);
    }
    if (option == NULL) {
        char given[64];
        const char *near = NULL;
        snprintf(given, sizeof given, "%.*s", (int)length, name);
        for (const struct options_row *o = options->table; !is_last(o); o++) {
            near = o->name != NULL ? options_nearer(given, o->name, near) : near;
        }
        return options_unknown(options->program, "option", word, near);
    }
    return apply(words, option, equals != NULL ? equals + 1 : NULL);
}

static int take_short(struct words *words, const char *word)
{
    for (const struct options_row *o = words->options->table; !is_last(o); o++) {
        if (o->letter == word[1]) {
            return apply(words, o, word[2] != '\0' ? word + 2 : NULL);
        }
    }
    if (strcmp(word, "-h") == 0) {
        print_help(words->options);
        return OPTIONS_DONE;
    }
    return options_unknown(words->options->program, "option", word, NULL);
}

int options_parse(const struct options *options, int argc, char *const argv[], const char **operand,
                  unsigned *operands)
{
    struct words words = {options, argc, 1, argv};
    const char *letters = options->board_letters;
    unsigned count = 0;
    bool ended = false;
    while (words.at < argc) {
        const char *word = argv[words.at++];
        int outcome = OPTIONS_RUN;
        bool is_board = letters != NULL && strspn(word, letters) >= OPTIONS_BOARD_MIN;
        if (ended || word[0] != '-' || word[1] == '\0' || is_board) {
            if (count >= options->operands_max) {
                return refuse(options, "unexpected argument", word);
            }
            operand[count++] = word;
        } else if (strcmp(word, "--") == 0) {
            ended = true;
        } else {
            outcome = word[1] == '-' ? take_long(&words, word) : take_short(&words, word);
        }
        if (outcome != OPTIONS_RUN) {
            return outcome;
        }
    }
    if (operands != NULL) {
        *operands = count;
    }
    return OPTIONS_RUN;
}

uint64_t options_servers_hash(const struct options_host_port *server, unsigned servers)
{
    uint64_t sum = 1;
    for (unsigned i = 0; i < servers; i++) {
        sum += rng_mix(rng_hash_text(server[i].host) ^ server[i].port);
    }
    return sum == 0 ? 1 : sum;
}
