/* config: options from a file, for what a user would type again and again.
 *
 * Lines `name = value` of a long option, in the section of its program ([ttserver], [ttworker], or
 * a command of abdada: [analyse], [uci], ...); before any section `servers`, `keys` and `table`,
 * for all programs. A flag is yes or no. A line that begins with # or ; is a comment, and so is
 * what follows " #". The file is that of --config FILE; else abdada/config.ini below
 * XDG_CONFIG_HOME or ~/.config, if there is one. What counts: the command line, then for those
 * three names ABDADA_SERVERS, ABDADA_KEYS, ABDADA_TABLE, then the program's section, then what
 * stands before all sections.
 *
 * Threads: the main thread. Memory: the values are kept until the process ends. */
#ifndef COMMON_CONFIG_H
#define COMMON_CONFIG_H

#include "common/options.h"

/* options_parse, with the file. A file that is wrong is reported in one line, and so is one that
 * cannot be read, if --config names it or it is there: OPTIONS_WRONG. --help and --version do not
 * need the file. */
int config_parse(const struct options *options, int argc, char *const argv[], const char **operand,
                 unsigned *operands);

#endif
