/* uci_limits: the limits of a "go" command, and which moves of the root it searches. Threads: one
 * at a time, while nothing is searched. Memory: none. Source: the UCI protocol, April 2006. */
#ifndef WORKER_PROGRAMS_UCI_UCI_LIMITS_H
#define WORKER_PROGRAMS_UCI_UCI_LIMITS_H

#include "worker/engine/job.h"
#include "worker/games/chess/tablebase.h"

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

/* ---- moves of the root ---- */

/* Those of "searchmoves"; all where there are none. What is no legal move is said on stdout as an
 * info string. False: moves were named, and none of them is legal. */
bool uci_root_searchmoves(struct job *job, const struct uci_limits *limits);

/* What endgame tables know of the root's moves. */
struct uci_root_values {
    struct chess_tablebase_move move[GAME_MOVES_MAX];
    unsigned count; /* 0: nothing */
};

/* In a position that they know: only moves that keep its value are searched, and where more lines
 * are wanted the best so many; unless moves were named. The job's lines become as many as it takes
 * to have the best of them. */
void uci_root_tablebase(struct job *job, struct uci_root_values *values);
/* The score of a root's move, of which the search says `score`. Of a mate and a win it is the one
 * that says more. */
int uci_root_score(const struct uci_root_values *values, uint16_t move, int score);

#endif
