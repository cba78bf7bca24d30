/* uci_options: what "setoption" of the UCI protocol can set, and what "uci" says of it. Threads:
 * one at a time. Memory: none. Source: the UCI protocol, April 2006. */
#ifndef WORKER_PROGRAMS_UCI_UCI_OPTIONS_H
#define WORKER_PROGRAMS_UCI_UCI_OPTIONS_H

#include "worker/programs/cli.h"

struct uci_options {
    struct cli_resources resources;
    const struct algorithm *algorithm;
    bool strict, full;
    bool chess960; /* castling is written as the king's move to its rook */
    bool is_limited; /* set for the strength `elo`, by fewer nodes */
    uint64_t elo;
    uint64_t overhead_ms; /* time that a move takes beside the search */
    uint64_t lines; /* MultiPV */
};

/* A value that the option does not take changes nothing and is said on stdout as an info string.
 * `anew`: the engine is to be opened again; `clear`: its table is to be emptied. */
void uci_options_set(struct uci_options *options, const char *name, const char *value, bool *anew,
                     bool *clear);
/* The "option name" lines, on stdout. */
void uci_options_say(const struct uci_options *options);

#endif
