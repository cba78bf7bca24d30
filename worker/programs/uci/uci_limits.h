/* uci_limits: the limits of a "go" command. Pure. Source: the UCI protocol, April 2006. */
#ifndef WORKER_PROGRAMS_UCI_UCI_LIMITS_H
#define WORKER_PROGRAMS_UCI_UCI_LIMITS_H

#include "worker/games/game.h"

#include <stdbool.h>
#include <stdint.h>

enum { UCI_ELO_MIN = 1500, UCI_ELO_MAX = 2800 };

enum { UCI_OVERHEAD_MS = 100 }; /* the option Move Overhead as it is at first */

struct uci_limits {
    unsigned depth; /* 1..SEARCH_DEPTH_MAX */
    unsigned mate; /* a mate in so many moves is looked for, and nothing else; 0: none */
    uint32_t time_ms; /* 0: no limit */
    uint32_t spare_us; /* the search ends so much earlier: its answer takes time as well */
    uint64_t nodes; /* 0: no limit */
    bool infinite; /* the answer waits for "stop" */
    bool ponder; /* set when it waits for "stop" or "ponderhit", whose time then runs */
    const char *move[GAME_MOVES_MAX]; /* searchmoves, as they are written in `words` */
    unsigned moves;
};

/* `words` is what follows "go"; changed. Unknown words are skipped, as UCI demands. `overhead_ms`:
 * what a move takes beside the search, by the opponent's clock. */
void uci_read_limits(char *words, bool black, uint32_t overhead_ms, struct uci_limits *out);

/* Nodes a move for this strength: a rough scale (docs/operations.md). */
uint64_t uci_nodes_of_elo(uint64_t elo);

/* Side to move of a FEN. */
bool uci_black_to_move(const char *fen);

#endif
