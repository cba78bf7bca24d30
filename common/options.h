/* options: GNU-style command lines read into variables from one table, which also prints --help.
 *
 * `--name value`, `--name=value` (of a flag: yes or no), unique prefixes of a name, `-l value` and
 * `-lvalue` for an option with a letter; `--` ends the options; operands may stand between options.
 * Every program has --help (-h) and --version. Wrong use is reported in one line on stderr; the
 * caller then exits with OPTIONS_WRONG. Not getopt_long, because that keeps its state in globals.
 * Threads: any; keeps no state. Memory: never allocates; texts are borrowed from argv. */
#ifndef COMMON_OPTIONS_H
#define COMMON_OPTIONS_H

#include "common/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { OPTIONS_HOST_MAX = 256, OPTIONS_SERVERS_MAX = 64 };

enum option_kind {
    OPTION_HEADING, /* a line (`help`) above the options that follow; no option itself */
    OPTION_FLAG, /* bool: takes no value */
    OPTION_U32, /* uint32_t in min..max */
    OPTION_U64, /* uint64_t in min..max */
    OPTION_SIZE, /* uint64_t bytes in min..max; suffixes K M G T (1024), also KiB or KB */
    OPTION_REAL, /* double, finite, not negative */
    OPTION_TEXT, /* const char * */
    OPTION_HOST_PORT, /* struct options_host_port */
    OPTION_SERVERS, /* struct options_servers */
    OPTION_CUSTOM, /* `parse` writes `value` */
};

struct options_host_port {
    char host[OPTIONS_HOST_MAX]; /* without the brackets of an IPv6 address */
    uint16_t port;
};

struct options_servers {
    struct options_host_port server[OPTIONS_SERVERS_MAX];
    unsigned count;
};

/* One row; the table ends with a row whose `name` and `help` are NULL. max == 0: no upper limit. */
struct options_row {
    const char *name; /* without the dashes */
    const char *argument; /* the word --help shows for the value; NULL for a flag */
    const char *help; /* one line; NULL hides the option */
    void *value;
    enum option_kind kind;
    char letter; /* 0: none */
    uint64_t min, max;
    enum err (*parse)(const char *text, void *value); /* OPTION_CUSTOM */
};

/* The usual row: OPTIONS_ROW(U32, "shards", "N", &shards, 1, 256, "shards (1)"). */
#define OPTIONS_ROW(type, option_name, word, variable, low, high, text)         \
    {                                                                           \
        .name = option_name, .argument = word, .help = text, .value = variable, \
        .kind = OPTION_##type, .min = low, .max = high                          \
    }

enum { OPTIONS_BOARD_MIN = 64 };

struct options {
    const char *program; /* begins every message: "ttserver", "abdada solve" */
    const char *usage; /* after the program's name: "[OPTION]... [POSITION]" */
    const char *summary; /* what it does, for --help */
    const char *example[2]; /* whole commands, which end --help; NULL: none */
    const struct options_row *table;
    unsigned operands_max; /* more is wrong use */
    const char *board_letters; /* a word of OPTIONS_BOARD_MIN of these or more is an operand, though
                                  it may begin with '-'; NULL: none is */
    bool has_config; /* takes --config FILE, which common/config.h has read before */
};

/* The lines that --version prints after "PROGRAM VERSION": of which commit the sources are, how and
 * with what they were built, each line with its end. The Makefile makes build_about, which programs
 * alone have; their main sets options_about to it before there are threads. Until then
 * it is NULL. */
extern const char build_about[];
extern const char *options_about;
/* Prints all of --version on stdout. */
void options_print_version(const char *program);

/* What to do after reading the options: go on, or end with this exit status. */
enum {
    OPTIONS_RUN = -1,
    OPTIONS_DONE = 0, /* help or version was printed */
    OPTIONS_WRONG = 2, /* one line was printed on stderr */
};

/* Reads argv[1..argc-1]. Variables keep their values where an option is absent. `operand` receives
 * up to operands_max words (may be NULL when that is 0), `operands` their number (may be NULL). On
 * OPTIONS_WRONG some variables may have been written. */
int options_parse(const struct options *options, int argc, char *const argv[], const char **operand,
                  unsigned *operands);

/* The option of that whole name; NULL: there is none. */
const struct options_row *options_find(const struct options *options, const char *name);
/* Sets it as --name=value does; a flag by yes or no. False: `why` says what is wrong in one line.
 */
bool options_set(const struct options_row *option, const char *value, char *why, size_t why_size);

/* Whichever of the names is nearer to the word, of which one is `best` (NULL: none so far); only a
 * name with some mistyped letters is near. */
const char *options_nearer(const char *word, const char *name, const char *best);
/* Says that there is no such option or command, and what is near (NULL: nothing); as below. */
int options_unknown(const char *program, const char *what, const char *word, const char *near);

/* Prints "PROGRAM: TEXT" in one line on stderr and returns OPTIONS_WRONG. */
int options_wrong(const char *program, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The parts, for values inside other texts. ERR_SYNTAX, ERR_RANGE; outputs untouched on failure. */
enum err options_unsigned(const char *text, uint64_t min, uint64_t max, uint64_t *out);
/* "HOST:PORT" or "[V6]:PORT", blanks around it passed over; port 0 is allowed. */
enum err options_host_port(const char *text, struct options_host_port *out);
/* The other way: "HOST:PORT", or "[HOST]:PORT" when the host has a colon. */
void options_host_port_text(const char *host, uint16_t port, char *out, size_t size);
/* "HOST:PORT,HOST:PORT,...", with blanks or without, ports not 0; ERR_FULL beyond
 * OPTIONS_SERVERS_MAX; ERR_EXIST when one is named twice. */
enum err options_servers(const char *text, struct options_servers *out);
/* Names a set of servers: the same in any order. Never 0. */
uint64_t options_servers_hash(const struct options_host_port *server, unsigned servers);

#endif
