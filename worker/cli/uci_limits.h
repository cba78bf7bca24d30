/* uci_limits: the limits of a "go" command. Pure. Source: the UCI protocol, April 2006. */
#ifndef WORKER_CLI_UCI_LIMITS_H
#define WORKER_CLI_UCI_LIMITS_H

#include <stdbool.h>
#include <stdint.h>

struct uci_limits {
    unsigned depth; /* 1..SEARCH_DEPTH_MAX */
    uint32_t time_ms; /* 0: no limit */
    uint64_t nodes; /* 0: no limit */
    bool infinite; /* the answer waits for "stop" */
    bool ponder; /* it waits for "stop" or "ponderhit", and the time runs from the latter */
};

/* `words` is what follows "go"; changed. Unknown words are skipped, as UCI demands. */
void uci_read_limits(char *words, bool black, struct uci_limits *out);

/* Side to move of a FEN. */
bool uci_black_to_move(const char *fen);

#endif
